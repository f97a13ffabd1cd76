// EngineView: the questions the shard asks the fast engine, in the shard's own terms.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/parallel.h"
#include "core/shard/snapshot.h"
#include "engine/fast/engine.h"
#include "engine/types.h"
#include "model/machine.h"
#include "model/penalty.h"

namespace muster::shard {

// Since when a need is short, as numbers of cycles, so that it stays the same from cycle to cycle.
struct ShortCycles {
  int64_t first = 0;        // the first of the cycles that count in which it was short; 0: it is pending
  int64_t hopeless = 0;     // gangs: the first cycle without hope; 0: there is hope
  int64_t supply_seen = 0;  // gangs: matching supply when it was last tried

  bool operator==(const ShortCycles&) const = default;
  MUSTER_FIELDS(ShortCycles, first, hopeless, supply_seen)
};

// How many needs are short, by age (1-9, 10-59, 60-299 and 300 or more cycles) and by priority; and how many are not,
// because all they lack is on its way.
struct ShortCounts {
  uint64_t all = 0;
  std::array<uint64_t, 4> by_age{};
  std::map<int32_t, uint64_t> by_priority;
  uint64_t pending = 0;

  void Add(int64_t age, int32_t priority);
};

// Which needs the last decision left short, as a difference to the decision before.
struct ShortChanges {
  struct Changed {
    engine::NeedKey key;
    int32_t priority = 0;
    ShortCycles cycles;
  };
  std::vector<Changed> changed;        // became short, or are short in another way
  std::vector<engine::NeedKey> ended;  // are no longer short
  ShortCounts counts;
};

// How the plans of the last decision's needs of one mode ended.
struct PlanCounts {
  uint64_t kept = 0;
  uint64_t conflicts = 0;
  uint64_t displaced = 0;
  uint64_t retries = 0;  // plans made again in turn
};

class EngineView {
 public:
  // `parallel`, which must outlive this, may be null.
  EngineView(const engine::Policy& policy, Parallel* parallel) : engine_(policy, parallel) {}

  engine::fast::Engine& engine() { return engine_; }
  const engine::fast::Engine& engine() const { return engine_; }

  // Why the engine cannot tell the machine's dimensions apart beside those it knows, in words; empty if it can.
  std::string DimensionsProblem(const model::Machine& machine) const;
  // What the engine was told of the cluster; none: nothing yet.
  std::optional<engine::ClusterState> ClusterStateOf(const std::string& cluster) const {
    return engine_.StateOf(cluster);
  }

  // --- of the last decision
  PlanCounts Plans(PlanMode mode) const;
  uint64_t ReclaimsCapped() const { return engine_.reclaims_capped(); }  // clusters that reached their limit
  // Machines that needs have or get, by the interruption penalty of the need.
  std::map<model::PenaltyBucket, uint64_t> MachinesByPenalty() const { return engine_.ClaimedByInterruption(); }
  // `cycle` is the number of the decision, `counted` that of the last one that counts for ages. Call it once for each.
  ShortChanges TakeShortChanges(int64_t cycle, int64_t counted);

 private:
  engine::fast::Engine engine_;
};

}  // namespace muster::shard
