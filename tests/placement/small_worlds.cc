#include "placement/small_worlds.h"

#include <fmt/format.h>

#include <array>

namespace muster::placement {
namespace {

Selector App(std::string value) {
  return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {std::move(value)}}}};
}

Kind Base(int64_t cpu) {
  Kind kind;
  kind.labels["app"] = "x";
  kind.request = {{"cpu", cpu}};
  return kind;
}

// Every kind of rule that looks at other units, and priorities.
std::vector<Kind> SmallKinds() {
  std::vector<Kind> kinds(7, Base(1000));
  kinds[1] = Base(2000);
  kinds[1].priority = 10;
  kinds[2].spread = {{.topology_key = "zone", .selector = App("x")}};
  kinds[3].exclude = {{.topology_key = "host", .selector = App("x")}};
  kinds[4].colocate = {{.topology_key = "zone", .selector = App("x")}};
  kinds[5].labels["app"] = "y";
  kinds[5].requirements = {{.key = "zone", .op = model::Operator::kIn, .values = {"a"}}};
  kinds[5].preferred_exclude = {{.weight = 1, .term = {.topology_key = "host", .selector = App("x")}}};
  kinds[6].priority = 10;
  kinds[6].spread = {{.topology_key = "host", .when = model::WhenUnsatisfiable::kScheduleAnyway, .selector = App("x")},
                     {.topology_key = "zone", .selector = App("x"), .min_domains = 2}};
  return kinds;
}

Node SmallNode(size_t letter, size_t number) {
  Node node{.id = fmt::format("n{}", number)};
  if (letter != 3) node.labels["zone"] = letter == 2 ? "b" : "a";
  node.labels["host"] = node.id;
  node.total = {{"cpu", letter == 1 ? 1000 : 2000}, {"memory", 1000}};
  if (letter == 3) node.taints = {{.key = "k", .value = "", .effect = TaintEffect::kPreferNoSchedule}};
  return node;
}

}  // namespace

uint64_t ForEachSmallWorld(uint64_t every,
                           const std::function<void(const Scene& scene, Arrival arrival, uint64_t number)>& look) {
  struct Mode {
    Policy policy;
    Arrival arrival;
  };
  const Policy packs{.strategy = Strategy::kPack, .preempt = true};
  const std::array<Mode, 3> modes = {{{.policy = {.strategy = Strategy::kSpread}, .arrival = Arrival::kTogether},
                                      {.policy = packs, .arrival = Arrival::kTogether},
                                      {.policy = packs, .arrival = Arrival::kOneByOne}}};
  constexpr size_t kNodeLetters = 4;
  const std::vector<Kind> kinds = SmallKinds();
  uint64_t number = 0;
  Scene scene;
  scene.world.kinds = kinds;
  const std::function<void(size_t)> units = [&](size_t left) {
    if (!scene.batch.empty()) {
      for (const Mode& mode : modes) {
        if (number++ % every != 0) continue;
        scene.policy = mode.policy;
        look(scene, mode.arrival, number);
      }
    }
    if (left == 0) return;
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      scene.batch.push_back({.id = fmt::format("u{}", scene.batch.size()),
                             .kind = KindIndex::Of(kind),
                             .order = static_cast<int64_t>(scene.batch.size())});
      units(left - 1);
      scene.batch.pop_back();
    }
  };
  const std::function<void(size_t)> nodes = [&](size_t left) {
    if (!scene.world.nodes.empty()) units(4);
    if (left == 0) return;
    for (size_t letter = 0; letter < kNodeLetters; ++letter) {
      scene.world.nodes.push_back(SmallNode(letter, scene.world.nodes.size()));
      nodes(left - 1);
      scene.world.nodes.pop_back();
    }
  };
  nodes(3);
  return number;
}

}  // namespace muster::placement
