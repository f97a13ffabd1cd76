#include <algorithm>

#include "placement/arithmetic.h"
#include "placement/detail.h"
#include "placement/devices.h"
#include "placement/reference/place.h"
#include "placement/reference/rules.h"

namespace muster::placement::reference {
namespace {

Verdict CheckFit(const World& world, const Kind& kind, const Node& node) {
  // [F.fit] [F.fit-order]
  for (const auto& [name, asked] : InFitOrder(kind.request)) {
    if (std::ranges::find(node.unlimited, name) != node.unlimited.end()) continue;  // [F.unlimited]
    const int64_t left = node.total.Get(name) - Reserved(world, node, name);
    if (asked > left) return {FitReason(name), ShortDetail(name, asked, left)};
  }
  return {};
}

Verdict CheckDevices(const World& world, const Kind& kind, const Node& node) {
  // [F.device]
  if (kind.devices.empty()) return {};
  const std::vector<int32_t> free = FreeDevices(world, node);
  if (DevicesFit(free, node.devices, kind.devices)) return {};
  return {Reason::kDevice, DeviceDetail(kind.devices, free, node.devices)};
}

Verdict CheckPorts(const World& world, const Kind& kind, const Node& node) {
  // [F.port] The first port that is held, and of its holders the one with the smallest id.
  for (const HostPort& port : kind.ports) {
    const std::string* holder = nullptr;
    for (const PlacedUnit& placed : world.placed) {
      if (placed.node != node.id) continue;
      const bool held = std::ranges::any_of(KindOf(world, placed.unit).ports,
                                            [&](const HostPort& other) { return Conflicts(port, other); });
      if (held && (holder == nullptr || placed.unit.id < *holder)) holder = &placed.unit.id;
    }
    if (holder != nullptr) return {Reason::kPort, PortDetail(port, *holder)};
  }
  return {};
}

Verdict CheckNode(const Kind& kind, const Node& node) {
  if (!node.ready) return {Reason::kNotReady, {}};                                     // [F.ready]
  if (!node.fresh) return {Reason::kStale, {}};                                        // [F.fresh]
  if (!MatchesLabels(kind, node)) return {Reason::kLabels, LabelsDetail(kind, node)};  // [F.labels]
  if (!SupportsType(node, kind.type)) return {Reason::kType, TypeDetail(kind.type)};   // [F.type]
  return {};
}

Verdict CheckTaints(const Kind& kind, const Node& node) {
  if (!PassesCordon(kind, node)) return {Reason::kCordoned, {}};  // [F.cordon]
  const Taint* taint = UntoleratedTaint(kind, node);              // [F.taint]
  return taint == nullptr ? Verdict{} : Verdict{Reason::kTaint, TaintDetail(*taint)};
}

}  // namespace

const Kind& KindOf(const World& world, const Unit& unit) { return world.kinds.at(unit.kind.value()); }

const std::string* LabelOf(const Node& node, const std::string& key) {
  const auto it = node.labels.find(key);
  return it == node.labels.end() ? nullptr : &it->second;
}

const Node* FindNode(const World& world, const std::string& id) {
  const auto it = std::ranges::find(world.nodes, id, &Node::id);
  return it == world.nodes.end() ? nullptr : &*it;
}

int64_t Reserved(const World& world, const Node& node, const std::string& resource) {
  int64_t sum = node.reserved.Get(resource);
  for (const PlacedUnit& placed : world.placed) {
    if (placed.node == node.id) sum += KindOf(world, placed.unit).request.Get(resource);
  }
  return sum;
}

std::vector<int32_t> FreeDevices(const World& world, const Node& node) {
  std::vector<int32_t> free = node.devices;
  for (const PlacedUnit& placed : world.placed) {
    if (placed.node == node.id) {
      TakeDevices(free, node.devices, KindOf(world, placed.unit).devices, placed.devices, 1);
    }
  }
  return free;
}

Verdict CheckQuota(const World& world, const Kind& kind) {
  const auto quota = world.quotas.find(kind.tenant);
  if (quota == world.quotas.end()) return {};
  const model::Resources asked = QuotaUse(kind);
  for (const auto& [name, limit] : quota->second.entries()) {
    int64_t sum = asked.Get(name);
    if (sum == 0) continue;
    for (const PlacedUnit& placed : world.placed) {
      const Kind& other = KindOf(world, placed.unit);
      if (other.tenant == kind.tenant) sum += QuotaUse(other).Get(name);
    }
    if (sum > limit) return {Reason::kQuota, QuotaDetail(kind.tenant, name, sum - limit)};
  }
  return {};
}

// The filters in their order; the first that refuses is the reason. [F.order]
Verdict Check(const World& world, const Kind& kind, const Node& node) {
  if (Verdict verdict = CheckNode(kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckFit(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckDevices(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckPorts(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckTaints(kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckSpread(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckColocate(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  if (Verdict verdict = CheckExclude(world, kind, node); verdict.reason != Reason::kNone) return verdict;
  return CheckQuota(world, kind);
}

std::vector<NodeVerdict> Feasible(const World& world, const Kind& kind) {
  std::vector<NodeVerdict> verdicts;
  for (const Node& node : world.nodes) {
    Verdict verdict = Check(world, kind, node);
    verdicts.push_back({node.id, verdict.reason, std::move(verdict.detail)});
  }
  return verdicts;
}

}  // namespace muster::placement::reference
