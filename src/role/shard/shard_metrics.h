// ShardMetrics: what a shard shows of itself, as Prometheus series. Names and labels that begin with bigfleet_shard_
// are those that dashboards and alerts of this protocol already know; ours begin with muster_shard_. docs/operating.md
// has the table.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
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
  // The registry outlives this.
  explicit ShardMetrics(metrics::Registry& registry);

  void CycleEnded(Duration took) { cycle_seconds_.Observe(std::chrono::duration<double>(took).count()); }
  // "phase1", ... of a cycle.
  void PhaseEnded(std::string_view phase, Duration took);
  void Ended(const Lasted& lasted);
  void RollupDecoded(Duration took) { decode_seconds_.Observe(std::chrono::duration<double>(took).count()); }
  void RollupReplaced() { rollups_replaced_.Add(); }
  void IdentityRejected() { identity_rejected_.Add(); }

  // Brings everything up to date that the core counts itself.
  void Update(const Snapshot& snapshot);

 private:
  // Under mu_.
  void SetGauges(const Snapshot& snapshot);
  void RaiseCounters(const Counters& counters);
  // Counts only grow, so a series is moved on by what is new.
  void Raise(std::string_view name, std::string_view help, const metrics::Labels& labels, uint64_t to);

  metrics::Registry& registry_;
  metrics::Histogram& cycle_seconds_;
  std::array<metrics::Histogram*, 4> legs_;  // by Leg
  metrics::Histogram& decode_seconds_;
  metrics::Counter& rollups_replaced_;
  metrics::Counter& identity_rejected_;
  std::mutex mu_;
  std::set<std::string> quarantined_;  // guarded by mu_: clusters that have a series
  std::set<std::string> by_priority_;  // guarded by mu_: priorities that have one
};

}  // namespace muster::shard
