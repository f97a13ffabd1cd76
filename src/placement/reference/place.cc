#include "placement/reference/place.h"

#include <algorithm>
#include <numeric>

#include "placement/arithmetic.h"
#include "placement/devices.h"
#include "placement/reference/rules.h"

namespace muster::placement::reference {
namespace {

std::vector<RefusalCount> CountRefusals(const World& world, const Kind& kind) {
  std::map<Reason, int64_t> counts;
  for (const Node& node : world.nodes) ++counts[Check(world, kind, node).reason];
  std::vector<RefusalCount> rows;
  for (const auto& [reason, nodes] : counts) rows.push_back({reason, nodes});
  return rows;
}

// [S.order] The feasible node with the lowest score.
const Node* BestNode(const World& world, const Kind& kind, const Policy& policy) {
  const Node* best = nullptr;
  Score best_score;
  for (const Node& node : world.nodes) {
    if (Check(world, kind, node).reason != Reason::kNone) continue;
    Score score = ScoreOf(world, kind, node, policy);
    if (best != nullptr && best_score <= score) continue;
    best = &node;
    best_score = std::move(score);
  }
  return best;
}

std::vector<int32_t> DevicesFor(const World& world, const Kind& kind, const Node& node) {
  if (kind.devices.empty()) return {};
  return ChooseDevices(FreeDevices(world, node), node.devices, kind.devices).value_or(std::vector{kNoDevice});
}

// The victims leave, and their budgets allow so many fewer. [E.leave]
void Evict(World& world, const std::vector<std::string>& victims) {
  for (const PlacedUnit& placed : world.placed) {
    if (std::ranges::find(victims, placed.unit.id) == victims.end()) continue;
    for (const std::string& id : placed.budgets) {
      for (Budget& budget : world.budgets) budget.allowed -= budget.id == id;
    }
  }
  world = Without(world, victims);
}

Outcome PlaceOne(World& world, const Unit& unit, const Policy& policy) {
  const Kind kind = KindOf(world, unit);
  Outcome outcome{.unit = unit.id};
  const Node* node = BestNode(world, kind, policy);
  outcome.reason = Reason::kPlaced;
  if (node == nullptr) {
    const bool over_quota = CheckQuota(world, kind).reason != Reason::kNone;
    outcome.reason = over_quota ? Reason::kQuota : Reason::kNoNodeFits;
    std::optional<Preemption> preemption;
    if (policy.preempt && kind.may_preempt && !over_quota) preemption = FindPreemption(world, kind);  // [E.last]
    if (!preemption) {
      outcome.refusals = CountRefusals(world, kind);
      return outcome;
    }
    outcome.reason = Reason::kPlacedByPreemption;
    outcome.victims = preemption->victims;
    Evict(world, preemption->victims);
    node = FindNode(world, preemption->node);
  }
  outcome.node = node->id;
  outcome.devices = DevicesFor(world, kind, *node);
  world.placed.push_back({.unit = unit, .node = outcome.node, .devices = outcome.devices});
  return outcome;
}

}  // namespace

void AssignDevices(World& world) {
  for (PlacedUnit& placed : world.placed) {
    const Kind& kind = KindOf(world, placed.unit);
    if (kind.devices.empty() || !placed.devices.empty()) continue;
    placed.devices = DevicesFor(world, kind, *FindNode(world, placed.node));
  }
}

std::vector<Outcome> Place(World& world, std::span<const Unit> units, const Policy& policy) {
  AssignDevices(world);
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {  // [B.order]
    return ServedBefore(KindOf(world, units[a]), units[a], KindOf(world, units[b]), units[b]);
  });
  std::vector<Outcome> outcomes(units.size());
  for (const size_t i : order) outcomes[i] = PlaceOne(world, units[i], policy);  // [B.one-by-one]
  return outcomes;
}

}  // namespace muster::placement::reference
