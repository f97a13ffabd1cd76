#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "placement/arithmetic.h"
#include "placement/fast/state.h"

namespace muster::placement::fast {

int64_t Placer::State::Allowed(const std::string& budget) const {
  const auto it = budgets.find(budget);
  return it == budgets.end() ? 0 : it->second;
}

// Units of the node that may be evicted for a kind of this priority, those to evict first in front.
std::vector<UnitSlot> Placer::State::Candidates(int32_t priority, Position row) const {
  std::vector<UnitSlot> candidates;
  for (const UnitSlot slot : units_on[row]) {
    const UnitRow& unit = units[slot.value()];
    if (unit.terminating || !unit.may_evict || kinds[unit.unit.kind.value()].priority >= priority) continue;
    const bool allowed = std::ranges::all_of(unit.budgets, [&](const std::string& id) { return Allowed(id) > 0; });
    if (allowed || MUTANT("placement.budget_ignored")) candidates.push_back(slot);
  }
  std::ranges::sort(candidates, [&](UnitSlot a, UnitSlot b) {
    const Unit& left = units[a.value()].unit;
    const Unit& right = units[b.value()].unit;
    return EvictedBefore(kinds[left.kind.value()], left, kinds[right.kind.value()], right);
  });
  return candidates;
}

bool Placer::State::FitsWithout(KindIndex kind, Position row, const std::vector<UnitSlot>& without) {
  for (const UnitSlot slot : without) {
    Shift(units[slot.value()], -1);
    units[slot.value()].lifted = true;
  }
  const bool fits = Fits(kind_rows[kind.value()], row) && CheckRest(kind, row) == Reason::kNone;
  for (const UnitSlot slot : without) {
    units[slot.value()].lifted = false;
    Shift(units[slot.value()], 1);
  }
  return fits;
}

// Whether the node would have enough of every resource without any of the candidates: cheaper than trying.
bool Placer::State::CouldFit(KindIndex kind, Position row, const std::vector<UnitSlot>& candidates) const {
  return std::ranges::all_of(kind_rows[kind.value()].request, [&](const Amount& amount) {
    int64_t left = nodes.left(row, amount.dim);
    for (const UnitSlot slot : candidates) {
      if (left >= amount.milli) break;
      for (const Amount& held : kind_rows[units[slot.value()].unit.kind.value()].request) {
        if (held.dim == amount.dim) left += held.milli;
      }
    }
    return left >= amount.milli;
  });
}

std::vector<UnitSlot> Placer::State::VictimsOn(KindIndex kind, Position row) {
  const std::vector<UnitSlot> candidates = Candidates(kinds[kind.value()].priority, row);
  if (candidates.empty() || !CouldFit(kind, row, candidates)) return {};
  for (const UnitSlot candidate : candidates) {
    if (FitsWithout(kind, row, {candidate})) return {candidate};
  }
  std::map<std::string, int64_t> evicted;
  std::vector<UnitSlot> victims;
  for (const UnitSlot candidate : candidates) {
    const std::vector<std::string>& own = units[candidate.value()].budgets;
    if (!std::ranges::all_of(own, [&](const std::string& id) { return evicted[id] < Allowed(id); })) continue;
    for (const std::string& id : own) ++evicted[id];
    victims.push_back(candidate);
  }
  if (victims.size() < 2 || !FitsWithout(kind, row, victims)) return {};
  for (size_t i = victims.size(); i-- > 0;) {
    if (MUTANT("placement.no_reprieve")) break;
    std::vector<UnitSlot> fewer = victims;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (FitsWithout(kind, row, fewer)) victims = std::move(fewer);
  }
  return victims;
}

Placer::State::Preemption Placer::State::FindPreemption(KindIndex kind) {
  Preemption best;
  std::tuple<size_t, int32_t, int64_t, std::string_view> best_key;
  masks[kind_rows[kind.value()].mask.value()].all.ForEach([&](size_t bit) {
    const auto row = static_cast<Position>(bit);
    std::vector<UnitSlot> victims = VictimsOn(kind, row);
    if (victims.empty()) return;
    int64_t sum = 0;
    int32_t highest = INT32_MIN;
    for (const UnitSlot victim : victims) {
      const int32_t priority = kinds[units[victim.value()].unit.kind.value()].priority;
      sum += priority;
      highest = std::max(highest, priority);
    }
    const std::tuple key(MUTANT("placement.any_victims") ? 1 : victims.size(), highest, sum,
                         std::string_view(nodes.node(row).id));
    if (best.row != kNoValue && best_key <= key) return;
    best = {.row = row, .victims = std::move(victims)};
    best_key = key;
  });
  return best;
}

}  // namespace muster::placement::fast
