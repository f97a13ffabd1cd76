#include "core/shard/engine_view.h"

namespace muster::shard {
namespace {

size_t AgeClass(int64_t cycles) { return cycles < 10 ? 0 : cycles < 60 ? 1 : cycles < 300 ? 2 : 3; }

}  // namespace

void ShortCounts::Add(int64_t age, int32_t priority) {
  ++all;
  ++by_age[AgeClass(age)];
  ++by_priority[priority];
}

std::string EngineView::DimensionsProblem(const model::Machine& machine) const {
  if (engine_.HasRoomFor(machine.EffectiveAllocatable(), machine.id)) return "";
  return "resources: more kinds of resources than a shard can tell apart";
}

PlanCounts EngineView::Plans(PlanMode mode) const {
  const engine::fast::BrokerStats& broker = engine_.broker();
  const engine::fast::ModeStats& plans = mode == PlanMode::kIncremental ? broker.incremental : broker.all_or_nothing;
  return {.kept = plans.commits(),
          .conflicts = plans.conflicts,
          .displaced = plans.displacements,
          .retries = plans.retries};
}

ShortChanges EngineView::TakeShortChanges(int64_t cycle, int64_t counted) {
  ShortChanges changes;
  const auto first_of = [](int32_t cycles, int64_t now) { return cycles == 0 ? 0 : now - cycles + 1; };
  engine::fast::ShortChanges told = engine_.TakeShortChanges([&](int32_t priority, int32_t age) {
    if (age > 0) changes.counts.Add(age, priority);
  });
  changes.counts.pending = engine_.pending();
  for (engine::fast::ShortChanges::Change& change : told.changed) {
    changes.changed.push_back({.key = std::move(change.key),
                               .priority = change.priority,
                               .cycles = {.first = first_of(change.memory.age_unmet, counted),
                                          .hopeless = first_of(change.memory.hopeless, cycle),
                                          .supply_seen = change.memory.supply_seen}});
  }
  changes.ended = std::move(told.ended);
  return changes;
}

}  // namespace muster::shard
