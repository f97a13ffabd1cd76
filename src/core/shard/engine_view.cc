#include "core/shard/engine_view.h"

#include <algorithm>

namespace muster::shard {
namespace {

size_t AgeClass(int64_t cycles) { return cycles < 10 ? 0 : cycles < 60 ? 1 : cycles < 300 ? 2 : 3; }

}  // namespace

void ShortCounts::Add(int64_t age, int32_t priority) {
  if (age <= 0) {
    ++without_age;
    return;
  }
  ++by_age[AgeClass(age)];
  ++by_priority[priority];
}

PlanCounts EngineView::Plans(PlanMode mode) const {
  const engine::fast::BrokerStats& broker = engine_.broker();
  const engine::fast::ModeStats& plans = mode == PlanMode::kIncremental ? broker.incremental : broker.all_or_nothing;
  return {.kept = plans.commits(),
          .conflicts = plans.conflicts,
          .displaced = plans.displacements,
          .retries = plans.retries,
          .nanos = plans.nanos};
}

uint64_t EngineView::PendingNeeds() const {
  return static_cast<uint64_t>(std::ranges::count_if(engine_.ShortNeeds(), &engine::fast::ShortNeed::pending));
}

ShortChanges EngineView::TakeShortChanges(int64_t cycle) {
  ShortChanges changes;
  const auto first_of = [&](int32_t cycles) { return cycles == 0 ? 0 : cycle - cycles + 1; };
  engine::fast::ShortChanges told =
      engine_.TakeShortChanges([&](int32_t priority, int32_t age) { changes.counts.Add(age, priority); });
  for (engine::fast::ShortChanges::Change& change : told.changed) {
    changes.changed.push_back({.key = std::move(change.key),
                               .priority = change.priority,
                               .cycles = {.first = first_of(change.memory.age_unmet),
                                          .hopeless = first_of(change.memory.hopeless),
                                          .supply_seen = change.memory.supply_seen}});
  }
  changes.ended = std::move(told.ended);
  return changes;
}

}  // namespace muster::shard
