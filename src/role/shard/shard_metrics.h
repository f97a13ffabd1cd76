// ShardMetrics: what a shard shows of itself, as Prometheus series. Names and labels that begin with bigfleet_shard_
// are those that dashboards and alerts of this protocol already know; ours begin with muster_shard_. The declarations
// are in shard_metrics.cc, their table in docs/operating-shard.md.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/time.h"
#include "core/shard/types.h"

namespace muster::shard {

class ShardMetrics {
 public:
  // The registry behind `in` outlives this.
  explicit ShardMetrics(metrics::Declarations& in);
  ~ShardMetrics();

  void CycleEnded(Duration took);
  // "phase1", ... of a cycle, or "proposal.<mode>": one plan.
  void PhaseEnded(std::string_view phase, Duration took);
  void Ended(const Lasted& lasted);
  void RollupDecoded(Duration took);
  void RollupReplaced();
  void IdentityRejected();

  // Brings everything up to date that the core counts itself.
  void Update(const Snapshot& snapshot);

 private:
  struct Declared;

  void AddOutcomes(const char* kind);  // every series of that kind

  // Under mu_.
  void SetGauges(const Snapshot& snapshot);
  void SetClusters(const Snapshot& snapshot);
  void RaiseCounters(const Counters& counters);

  const std::unique_ptr<const Declared> declared_;
  std::mutex mu_;
  std::set<std::string> clusters_;                 // guarded by mu_: that have series
  std::array<PlanTotals, kPlanModes> plans_ = {};  // guarded by mu_: as they were when metrics were read before
};

}  // namespace muster::shard
