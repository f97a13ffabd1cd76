#include "placement/random_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace muster::placement {
namespace {

using model::Operator;
using model::Requirement;

template <class T>
const T& Of(Rng& rng, const std::vector<T>& items) {
  return items[rng.Below(items.size())];
}

bool OneIn(Rng& rng, uint64_t n) { return rng.Chance(1, n); }

const std::vector<std::string> kTopology = {"zone", "rack", "host"};
const std::vector<std::string> kNamespaces = {"default", "other", "third"};
const std::vector<std::string> kApps = {"x", "y"};
const std::vector<std::string> kTenants = {"", "t1", "t2"};
const std::vector<std::string> kBudgets = {"b1", "b2"};

Requirement RandomNodeRequirement(Rng& rng) {
  switch (rng.Below(7)) {
    case 0: return {.key = "zone", .op = Operator::kIn, .values = {"a", "b"}};
    case 1: return {.key = "zone", .op = Operator::kNotIn, .values = {Of(rng, std::vector<std::string>{"a", "c"})}};
    case 2: return {.key = "gen", .op = Operator::kGt, .values = {"1"}};
    case 3: return {.key = "gen", .op = Operator::kLt, .values = {"3"}};
    case 4: return {.key = "rack", .op = Operator::kExists, .values = {}};
    case 5: return {.key = "gen", .op = Operator::kDoesNotExist, .values = {}};
    default: return {.key = "rack", .op = Operator::kIn, .values = {"r1"}};
  }
}

NodeTerm RandomNodeTerm(Rng& rng) {
  NodeTerm term;
  for (uint64_t i = rng.Below(3); i > 0; --i) term.labels.push_back(RandomNodeRequirement(rng));
  if (OneIn(rng, 6)) {
    term.fields.push_back({.key = std::string(kNodeNameField),
                           .op = OneIn(rng, 2) ? Operator::kIn : Operator::kNotIn,
                           .values = {fmt::format("n{}", rng.Below(6)), fmt::format("n{}", rng.Below(6))}});
  }
  return term;
}

Selector RandomSelector(Rng& rng) {
  if (OneIn(rng, 10)) return {};
  Selector selector{.given = true, .all = {}};
  if (OneIn(rng, 8)) return selector;
  switch (rng.Below(4)) {
    case 0: selector.all.push_back({.key = "app", .op = Operator::kExists, .values = {}}); break;
    case 1: selector.all.push_back({.key = "app", .op = Operator::kNotIn, .values = {"y"}}); break;
    default: selector.all.push_back({.key = "app", .op = Operator::kIn, .values = {Of(rng, kApps)}});
  }
  if (OneIn(rng, 5)) selector.all.push_back({.key = "v", .op = Operator::kIn, .values = {"1"}});
  return selector;
}

UnitTerm RandomUnitTerm(Rng& rng) {
  UnitTerm term{.topology_key = Of(rng, kTopology), .selector = RandomSelector(rng)};
  if (OneIn(rng, 4)) term.namespaces = {Of(rng, kNamespaces), Of(rng, kNamespaces)};
  if (OneIn(rng, 5)) {
    term.namespace_selector.given = true;
    if (!OneIn(rng, 3)) {
      term.namespace_selector.all.push_back({.key = "team", .op = Operator::kIn, .values = {"blue"}});
    }
  }
  if (OneIn(rng, 6)) term.match_label_keys = {"v"};
  if (OneIn(rng, 6)) term.mismatch_label_keys = {"v"};
  return term;
}

SpreadConstraint RandomSpread(Rng& rng) {
  SpreadConstraint constraint{
      .topology_key = Of(rng, kTopology),
      .max_skew = static_cast<int32_t>(rng.Between(0, 2)),
      .when = OneIn(rng, 3) ? model::WhenUnsatisfiable::kScheduleAnyway : model::WhenUnsatisfiable::kDoNotSchedule,
      .selector = RandomSelector(rng)};
  if (OneIn(rng, 4)) constraint.match_label_keys = {"v"};
  if (OneIn(rng, 3)) constraint.min_domains = static_cast<int32_t>(rng.Between(1, 4));
  if (OneIn(rng, 3)) constraint.node_affinity = NodeInclusion::kIgnore;
  if (OneIn(rng, 3)) constraint.node_taints = NodeInclusion::kHonor;
  return constraint;
}

Toleration RandomToleration(Rng& rng) {
  Toleration toleration{.key = OneIn(rng, 5) ? "" : Of(rng, std::vector<std::string>{"gpu", "old"}),
                        .exists = OneIn(rng, 2),
                        .value = OneIn(rng, 2) ? "yes" : ""};
  if (OneIn(rng, 8)) toleration = {.key = "node.kubernetes.io/unschedulable", .exists = true};
  if (OneIn(rng, 3)) {
    toleration.every_effect = false;
    toleration.effect = static_cast<TaintEffect>(rng.Below(3));
  }
  return toleration;
}

void AddUnitRules(Rng& rng, Kind& kind) {
  const auto some = [&](uint64_t one_in, auto add) {
    if (OneIn(rng, one_in)) add();
    if (OneIn(rng, one_in * 4)) add();
  };
  some(3, [&] { kind.spread.push_back(RandomSpread(rng)); });
  some(9, [&] { kind.colocate.push_back(RandomUnitTerm(rng)); });
  some(5, [&] { kind.exclude.push_back(RandomUnitTerm(rng)); });
  const auto weight = [&] { return static_cast<int32_t>(rng.Between(1, 3)); };
  some(7, [&] { kind.preferred_colocate.push_back({.weight = weight(), .term = RandomUnitTerm(rng)}); });
  some(7, [&] { kind.preferred_exclude.push_back({.weight = weight(), .term = RandomUnitTerm(rng)}); });
  some(6, [&] { kind.preferred_nodes.push_back({.weight = weight(), .term = RandomNodeTerm(rng)}); });
}

}  // namespace

Kind RandomKind(Rng& rng) {
  Kind kind{.name_space = OneIn(rng, 2) ? "default" : Of(rng, kNamespaces), .tenant = Of(rng, kTenants)};
  kind.priority = static_cast<int32_t>(rng.Below(3)) * 10;
  kind.may_preempt = !OneIn(rng, 6);
  if (OneIn(rng, 6)) kind.type = static_cast<model::WorkloadType>(rng.Below(5));
  kind.labels["app"] = Of(rng, kApps);
  if (OneIn(rng, 2)) kind.labels["v"] = OneIn(rng, 2) ? "1" : "2";
  kind.request.Set("cpu", static_cast<int64_t>(rng.Below(4)) * 500);
  kind.request.Set("memory", static_cast<int64_t>(rng.Below(3)) * 1000);
  if (OneIn(rng, 3)) kind.request.Set("pods", 1000);
  if (OneIn(rng, 6)) kind.request.Set("disk", static_cast<int64_t>(rng.Below(3)) * 1000);
  if (OneIn(rng, 6)) {
    (OneIn(rng, 2) ? kind.devices.whole : kind.devices.milli) = static_cast<int32_t>(rng.Between(1, 2));
    if (kind.devices.milli > 0) kind.devices.milli *= 400;
  }
  if (OneIn(rng, 5)) {
    kind.ports.push_back(
        {.protocol = OneIn(rng, 4) ? "UDP" : "TCP",
         .ip = OneIn(rng, 2) ? "" : Of(rng, std::vector<std::string>{"0.0.0.0", "10.0.0.1", "10.0.0.2"}),
         .port = OneIn(rng, 3) ? 81 : 80});
  }
  if (OneIn(rng, 4)) kind.requirements.push_back(RandomNodeRequirement(rng));
  if (OneIn(rng, 5)) {
    for (uint64_t i = rng.Below(3); i > 0; --i) kind.node_terms.push_back(RandomNodeTerm(rng));
  }
  for (uint64_t i = rng.Below(3); i > 0; --i) kind.tolerations.push_back(RandomToleration(rng));
  AddUnitRules(rng, kind);
  return kind;
}

Node RandomNode(Rng& rng, int number) {
  Node node{.id = fmt::format("n{}", number)};
  node.ready = !OneIn(rng, 25);
  node.fresh = !OneIn(rng, 25);
  node.cordoned = OneIn(rng, 20);
  if (!OneIn(rng, 6)) node.labels["zone"] = Of(rng, std::vector<std::string>{"a", "b", "c"});
  if (!OneIn(rng, 4)) node.labels["rack"] = OneIn(rng, 2) ? "r1" : "r2";
  if (!OneIn(rng, 8)) node.labels["host"] = node.id;
  if (!OneIn(rng, 3)) node.labels["gen"] = fmt::format("{}", rng.Between(1, 3));
  for (uint64_t i = rng.Below(9); i > 6; --i) {
    node.taints.push_back({.key = OneIn(rng, 2) ? "gpu" : "old",
                           .value = OneIn(rng, 2) ? "yes" : "",
                           .effect = static_cast<TaintEffect>(rng.Below(3))});
  }
  if (OneIn(rng, 5)) node.supported_types = {static_cast<model::WorkloadType>(1 + rng.Below(4))};
  node.total = {{"cpu", rng.Between(1, 6) * 1000}, {"memory", rng.Between(2, 6) * 1000}, {"pods", 3000}};
  if (OneIn(rng, 2)) node.total.Set("disk", 2000);
  if (OneIn(rng, 4)) node.unlimited = {"disk"};
  if (OneIn(rng, 20)) node.unlimited = {"cpu"};
  if (OneIn(rng, 4)) node.reserved = {{"cpu", 500}};
  if (OneIn(rng, 4)) node.used = {{"cpu", rng.Between(0, 4) * 500}, {"memory", 1000}};
  if (OneIn(rng, 3)) node.devices.assign(rng.Below(4), 1000);
  return node;
}

PlacedUnit RandomPlaced(Rng& rng, const World& world, int& next) {
  PlacedUnit placed{.unit = {.id = fmt::format("u{}", next++), .kind = KindIndex::Of(rng.Below(world.kinds.size()))},
                    .node = world.nodes[rng.Below(world.nodes.size())].id};
  placed.unit.order = rng.Between(0, 3);
  placed.terminating = OneIn(rng, 8);
  placed.may_evict = !OneIn(rng, 10);
  if (OneIn(rng, 3)) placed.budgets = {Of(rng, kBudgets)};
  if (OneIn(rng, 10)) placed.budgets = {"b1", "b2"};
  return placed;
}

std::vector<Unit> RandomBatch(Rng& rng, const World& world, int& next, int64_t most) {
  std::vector<Unit> batch;
  KindIndex kind = KindIndex::Of(rng.Below(world.kinds.size()));
  for (int64_t i = rng.Between(1, most); i > 0; --i) {
    if (OneIn(rng, 2)) kind = KindIndex::Of(rng.Below(world.kinds.size()));
    batch.push_back({.id = fmt::format("u{}", next++), .kind = kind, .order = rng.Between(0, 2)});
  }
  return batch;
}

namespace {

struct Size {
  int64_t kinds = 5;
  int64_t least_nodes = 1;
  int64_t most_nodes = 6;
  int64_t placed = 7;
  int64_t units = 6;
};

Scene SceneOf(Rng& rng, const Size& size) {
  Scene scene;
  World& world = scene.world;
  for (int64_t i = rng.Between(1, size.kinds); i > 0; --i) world.kinds.push_back(RandomKind(rng));
  const auto nodes = static_cast<int>(rng.Between(size.least_nodes, size.most_nodes));
  for (int i = 0; i < nodes; ++i) world.nodes.push_back(RandomNode(rng, i));
  rng.Shuffle(std::span(world.nodes));
  int next = 0;
  for (int64_t i = rng.Between(0, size.placed); i > 0; --i) world.placed.push_back(RandomPlaced(rng, world, next));
  if (!OneIn(rng, 3)) world.namespaces["other"]["team"] = "blue";
  if (OneIn(rng, 3)) world.namespaces["default"]["team"] = OneIn(rng, 2) ? "blue" : "red";
  for (const std::string& id : kBudgets) {
    if (!OneIn(rng, 6)) world.budgets.push_back({.id = id, .allowed = rng.Between(0, 2)});
  }
  if (OneIn(rng, 4)) world.quotas["t1"] = {{"cpu", rng.Between(2, 6) * 1000}};
  if (OneIn(rng, 4)) world.quotas["t2"] = {{kUnitsQuota, rng.Between(2, 6) * 1000}, {"gpu", 1000}};
  scene.policy.strategy = OneIn(rng, 3) ? Strategy::kPack : Strategy::kSpread;
  scene.policy.preempt = OneIn(rng, 2);
  if (OneIn(rng, 3)) {
    scene.policy.device_mix = {
        {.request = {{"cpu", 500}}, .devices = {.whole = 0, .milli = 400}, .weight = 3},
        {.request = {{"cpu", 1000}, {"memory", 1000}}, .devices = {.whole = 1, .milli = 0}, .weight = 2},
        {.request = {{"cpu", 1000}}, .devices = {}, .weight = 1}};
  }
  scene.batch = RandomBatch(rng, world, next, size.units);
  return scene;
}

}  // namespace

Scene RandomScene(Rng& rng) { return SceneOf(rng, {}); }

Scene WideScene(Rng& rng) {
  return SceneOf(rng, {.kinds = 3, .least_nodes = 60, .most_nodes = 200, .placed = 40, .units = 30});
}

Scene CrowdedScene(Rng& rng) {
  Scene scene = SceneOf(rng, {.least_nodes = 2, .placed = 24, .units = 3});
  Kind kind;
  kind.priority = 30;  // above every random kind
  kind.request = {{"cpu", rng.Between(2, 6) * 500}};
  scene.world.kinds.push_back(kind);
  for (Unit& unit : scene.batch) unit.kind = KindIndex::Of(scene.world.kinds.size() - 1);
  scene.policy.preempt = true;
  return scene;
}

uint64_t SearchScale() {
  const char* text = std::getenv("MUSTER_SEARCH_SCALE");
  return text == nullptr ? 1 : std::max(1UL, std::strtoul(text, nullptr, 10));
}

}  // namespace muster::placement
