#include <algorithm>

#include "placement/arithmetic.h"
#include "placement/devices.h"
#include "placement/reference/rules.h"

namespace muster::placement::reference {
namespace {

constexpr int64_t kWithoutKey = int64_t{1} << 20;  // ranks behind every domain that is counted

int64_t UnitWeight(const World& world, const Kind& kind, const Node& node) {
  int64_t sum = 0;
  for (const PreferredUnitTerm& preferred : kind.preferred_colocate) {  // [S.colocate]
    if (HasMatch(world, SelectorOf(kind, preferred.term), preferred.term.topology_key, node)) sum += preferred.weight;
  }
  for (const PreferredUnitTerm& preferred : kind.preferred_exclude) {  // [S.exclude]
    if (HasMatch(world, SelectorOf(kind, preferred.term), preferred.term.topology_key, node)) sum -= preferred.weight;
  }
  return sum;
}

int64_t SoftSpread(const World& world, const Kind& kind, const Node& node) {
  int64_t sum = 0;
  for (const SpreadConstraint& constraint : kind.spread) {  // [S.spread]
    if (constraint.when == model::WhenUnsatisfiable::kDoNotSchedule) continue;
    const std::string* value = LabelOf(node, constraint.topology_key);
    if (value == nullptr) {
      sum += kWithoutKey;
      continue;
    }
    const auto counts = SpreadCounts(world, kind, constraint, {constraint.topology_key});
    const auto it = counts.find(*value);
    sum += it == counts.end() ? 0 : it->second;
  }
  return sum;
}

int64_t Left(const World& world, const Node& node, const std::string& resource) {
  if (std::ranges::find(node.unlimited, resource) != node.unlimited.end()) return kUnlimited;
  return node.total.Get(resource) - Reserved(world, node, resource);
}

int64_t CostOfDevices(const World& world, const Kind& kind, const Node& node, const Policy& policy) {
  DeviceRoom room{.cpu = Left(world, node, "cpu"),
                  .memory = Left(world, node, "memory"),
                  .free = FreeDevices(world, node),
                  .size = node.devices};
  return DeviceCost(kind, room, DeviceMix(policy.device_mix));
}

int64_t Utilisation(const World& world, const Node& node) {
  int64_t sum = 0;
  for (const std::string name : {"cpu", "memory"}) {  // [S.utilisation]
    sum += Share(std::max(Reserved(world, node, name), node.used.Get(name)), node.total.Get(name));
  }
  return sum;
}

}  // namespace

Score ScoreOf(const World& world, const Kind& kind, const Node& node, const Policy& policy) {
  const int64_t utilisation = Utilisation(world, node);
  return {.avoided_taints = AvoidedTaints(kind, node),
          .minus_weight = -(PreferredNodeWeight(kind, node) + UnitWeight(world, kind, node)),
          .soft_spread = SoftSpread(world, kind, node),
          .device_cost = CostOfDevices(world, kind, node, policy),                           // [S.devices]
          .utilisation = policy.strategy == Strategy::kSpread ? utilisation : -utilisation,  // [S.strategy]
          .node = node.id};                                                                  // [S.tie]
}

}  // namespace muster::placement::reference
