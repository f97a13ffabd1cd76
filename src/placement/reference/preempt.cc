#include <algorithm>
#include <tuple>

#include "placement/arithmetic.h"
#include "placement/reference/rules.h"

namespace muster::placement::reference {
namespace {

int64_t Allowed(const World& world, const std::string& budget) {
  const auto it = std::ranges::find(world.budgets, budget, &Budget::id);
  return it == world.budgets.end() ? 0 : it->allowed;
}

// [E.candidates] Units of the node that may be evicted for this kind, those to evict first in front.
std::vector<const PlacedUnit*> Candidates(const World& world, const Kind& kind, const Node& node) {
  std::vector<const PlacedUnit*> candidates;
  for (const PlacedUnit& placed : world.placed) {
    if (placed.node != node.id || placed.terminating || !placed.may_evict) continue;
    if (KindOf(world, placed.unit).priority >= kind.priority) continue;
    // [E.budget]
    if (!std::ranges::all_of(placed.budgets, [&](const std::string& id) { return Allowed(world, id) > 0; })) continue;
    candidates.push_back(&placed);
  }
  std::ranges::sort(candidates, [&](const PlacedUnit* a, const PlacedUnit* b) {
    return EvictedBefore(KindOf(world, a->unit), a->unit, KindOf(world, b->unit), b->unit);
  });
  return candidates;
}

// As many of the candidates as their budgets allow together.
std::vector<const PlacedUnit*> WithinBudgets(const World& world, const std::vector<const PlacedUnit*>& candidates) {
  std::map<std::string, int64_t> evicted;
  std::vector<const PlacedUnit*> chosen;
  for (const PlacedUnit* candidate : candidates) {
    const bool allowed = std::ranges::all_of(candidate->budgets,
                                             [&](const std::string& id) { return evicted[id] < Allowed(world, id); });
    if (!allowed) continue;
    for (const std::string& id : candidate->budgets) ++evicted[id];
    chosen.push_back(candidate);
  }
  return chosen;
}

bool FitsWithout(const World& world, const Kind& kind, const Node& node, const std::vector<const PlacedUnit*>& units) {
  std::vector<std::string> ids;
  for (const PlacedUnit* unit : units) ids.push_back(unit->unit.id);
  return Check(Without(world, ids), kind, node).reason == Reason::kNone;
}

// [E.fewest] One unit if one is enough; otherwise all that may go, less those that can stay, the most important first.
std::vector<const PlacedUnit*> VictimsOn(const World& world, const Kind& kind, const Node& node) {
  const std::vector<const PlacedUnit*> candidates = Candidates(world, kind, node);
  for (const PlacedUnit* candidate : candidates) {
    if (FitsWithout(world, kind, node, {candidate})) return {candidate};
  }
  std::vector<const PlacedUnit*> victims = WithinBudgets(world, candidates);
  if (victims.size() < 2 || !FitsWithout(world, kind, node, victims)) return {};
  for (size_t i = victims.size(); i-- > 0;) {
    std::vector<const PlacedUnit*> fewer = victims;
    fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
    if (FitsWithout(world, kind, node, fewer)) victims = std::move(fewer);
  }
  return victims;
}

}  // namespace

World Without(const World& world, const std::vector<std::string>& units) {
  World rest = world;
  std::erase_if(rest.placed,
                [&](const PlacedUnit& placed) { return std::ranges::find(units, placed.unit.id) != units.end(); });
  return rest;
}

std::optional<Preemption> FindPreemption(const World& world, const Kind& kind) {
  std::optional<Preemption> best;
  std::tuple<size_t, int32_t, int64_t, std::string> best_key;
  for (const Node& node : world.nodes) {
    const std::vector<const PlacedUnit*> victims = VictimsOn(world, kind, node);
    if (victims.empty()) continue;
    int64_t sum = 0;
    int32_t highest = INT32_MIN;
    Preemption preemption{.node = node.id, .victims = {}};
    for (const PlacedUnit* victim : victims) {
      const int32_t priority = KindOf(world, victim->unit).priority;
      sum += priority;
      highest = std::max(highest, priority);
      preemption.victims.push_back(victim->unit.id);
    }
    std::ranges::sort(preemption.victims);
    std::tuple key(victims.size(), highest, sum, node.id);  // [E.node]
    if (best && best_key <= key) continue;
    best = std::move(preemption);
    best_key = std::move(key);
  }
  return best;
}

}  // namespace muster::placement::reference
