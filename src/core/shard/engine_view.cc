#include "core/shard/engine_view.h"

#include "engine/fast/cycle.h"
#include "engine/fast/inventory.h"

namespace muster::shard {
namespace {

size_t AgeClass(int64_t cycles) { return cycles < 10 ? 0 : cycles < 60 ? 1 : cycles < 300 ? 2 : 3; }

}  // namespace

void ShortCounts::Add(int64_t age, int32_t priority) {
  ++by_age[AgeClass(age)];
  ++by_priority[priority];
}

bool EngineView::HasRoomFor(const model::Resources& dimensions) const {
  return engine_.inventory().catalogue().HasRoomFor(dimensions);
}

std::optional<engine::ClusterState> EngineView::ClusterStateOf(const std::string& cluster) const {
  const engine::fast::ClusterId id = engine_.inventory().FindCluster(cluster);
  if (id == engine::fast::kNoId) return std::nullopt;
  return engine_.inventory().cluster(id).state;
}

std::vector<std::pair<std::string, engine::DrainMean>> EngineView::DrainMeans() const {
  const engine::fast::Inventory& inventory = engine_.inventory();
  std::vector<std::pair<std::string, engine::DrainMean>> means;
  for (size_t i = 0; i < inventory.drains().size(); ++i) {
    means.emplace_back(inventory.catalogue().drain_types()[i], inventory.drains()[i]);
  }
  return means;
}

PlanCounts EngineView::Plans() const {
  const engine::fast::BrokerStats& plans = engine_.cycle().broker();
  return {.kept = plans.proposals_basic + plans.proposals_gang - plans.conflicts - plans.displacements,
          .conflicts = plans.conflicts,
          .displaced = plans.displacements};
}

uint64_t EngineView::ReclaimsCapped() const { return engine_.cycle().reclaims_capped(); }

std::map<model::PenaltyBucket, uint64_t> EngineView::MachinesByPenalty() const {
  std::map<model::PenaltyBucket, uint64_t> machines;
  const engine::fast::Demand& demand = engine_.demand();
  engine_.cycle().ForEachClaim([&](const engine::fast::ClaimRow& claim) {
    machines[demand.info(demand.order()[claim.need]->profile).profile.interruption()] += claim.count;
  });
  return machines;
}

// Most needs that are short stay as they are from cycle to cycle, so only those that changed are named.
ShortChanges EngineView::TakeShortChanges(int64_t cycle) {
  ShortChanges changes;
  const engine::fast::Cycle& decided = engine_.cycle();
  const engine::fast::Inventory& inventory = engine_.inventory();
  for (const engine::fast::KeyId id : decided.remembered()) {
    const engine::NeedMemory& memory = decided.need_memory(id);
    if (id >= marks_.size()) marks_.resize(id + 1);
    Mark& mark = marks_[id];
    const ShortCycles cycles{.first = cycle - memory.age_unmet + 1,
                             .hopeless = memory.hopeless == 0 ? 0 : cycle - memory.hopeless + 1,
                             .supply_seen = memory.supply_seen};
    const bool was_short = std::exchange(mark.seen, cycle) == cycle - 1;
    if (!was_short || mark.cycles != cycles) {
      mark.cycles = cycles;
      mark.priority = engine_.demand().info(inventory.key(id).profile).profile.priority();
      changes.changed.push_back({.key = inventory.NameOf(id), .priority = mark.priority, .cycles = cycles});
    }
    changes.counts.Add(memory.age_unmet, mark.priority);
  }
  for (const engine::fast::KeyId id : short_ids_) {
    if (id >= marks_.size() || marks_[id].seen != cycle) changes.over.insert(inventory.NameOf(id));
  }
  short_ids_ = decided.remembered();
  return changes;
}

void EngineView::RestoreShort() { short_ids_ = engine_.cycle().remembered(); }

}  // namespace muster::shard
