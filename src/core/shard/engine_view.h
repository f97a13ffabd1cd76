// EngineView: the questions the shard asks the fast engine, in the shard's own terms. The only place of the shard that
// knows the engine's tables.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/parallel.h"
#include "engine/fast/engine.h"
#include "engine/fast/ids.h"
#include "engine/types.h"
#include "model/penalty.h"
#include "model/resources.h"

namespace muster::shard {

// Since when a need is short, as numbers of cycles, so that it stays the same from cycle to cycle.
struct ShortCycles {
  int64_t first = 0;        // the first cycle in which it was short
  int64_t hopeless = 0;     // gangs: the first cycle without hope; 0: there is hope
  int64_t supply_seen = 0;  // gangs: matching supply when it was last tried

  bool operator==(const ShortCycles&) const = default;
  MUSTER_FIELDS(ShortCycles, first, hopeless, supply_seen)
};

// How many needs are short, by age (1-9, 10-59, 60-299 and 300 or more cycles) and by priority.
struct ShortCounts {
  std::array<uint64_t, 4> by_age{};
  std::map<int32_t, uint64_t> by_priority;

  void Add(int64_t age, int32_t priority);
};

// Which needs the last decision left short, as a difference to the decision before.
struct ShortChanges {
  struct Changed {
    engine::NeedKey key;
    int32_t priority = 0;
    ShortCycles cycles;
  };
  std::vector<Changed> changed;    // became short, or are short in another way
  std::set<engine::NeedKey> over;  // are no longer short
  ShortCounts counts;
};

// How the plans of the last decision's needs ended.
struct PlanCounts {
  uint64_t kept = 0;
  uint64_t conflicts = 0;
  uint64_t displaced = 0;
};

class EngineView {
 public:
  // `parallel`, which must outlive this, may be null.
  EngineView(const engine::Policy& policy, Parallel* parallel) : engine_(policy, parallel) {}

  engine::fast::Engine& engine() { return engine_; }
  const engine::fast::Engine& engine() const { return engine_; }

  // Whether the engine can tell these dimensions apart beside those it knows.
  bool HasRoomFor(const model::Resources& dimensions) const;
  // What the engine was told of the cluster; none: nothing yet.
  std::optional<engine::ClusterState> ClusterStateOf(const std::string& cluster) const;
  // By instance type.
  std::vector<std::pair<std::string, engine::DrainMean>> DrainMeans() const;

  // --- of the last decision
  PlanCounts Plans() const;
  uint64_t ReclaimsCapped() const;  // clusters that reached their limit
  // Machines that needs have or get, by the interruption penalty of the need.
  std::map<model::PenaltyBucket, uint64_t> MachinesByPenalty() const;
  // `cycle` is the number of the decision. Call it once for each.
  ShortChanges TakeShortChanges(int64_t cycle);
  // After a load: the needs that are short already.
  void RestoreShort();

 private:
  // Of a need that is or was short, by the engine's number of it.
  struct Mark {
    ShortCycles cycles;
    int32_t priority = 0;
    int64_t seen = -1;  // the last cycle in which it was short
  };

  engine::fast::Engine engine_;
  std::vector<Mark> marks_;
  std::vector<engine::fast::KeyId> short_ids_;  // in the last cycle
};

}  // namespace muster::shard
