#include "placement/shapes/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rng.h"

namespace muster::placement::shapes {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;
constexpr int64_t kGibi = int64_t{1} << 30;
constexpr int64_t kMilli = 1000;

int64_t Scaled(int64_t count, double scale) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) * scale));
}

Selector App(std::string_view value) {
  return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {std::string(value)}}}};
}

// `count` units, the i-th of the kind that kind_of(i) names.
template <class KindOf>
void AddPending(Filled& filled, int64_t count, bool unique, KindOf kind_of) {
  std::vector<Kind> kinds;
  if (unique) kinds.swap(filled.world.kinds);
  filled.pending.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    size_t kind = kind_of(i);
    if (unique) {
      filled.world.kinds.push_back(kinds[kind]);
      kind = filled.world.kinds.size() - 1;
      filled.world.kinds.back().labels["unit"] = fmt::format("{}", i);
    }
    filled.pending.push_back({.id = fmt::format("u-{:06}", i), .kind = KindIndex::Of(kind), .order = i});
  }
}

Filled Nomad(double scale, bool unique, bool spread) {
  Filled filled;
  for (int64_t i = 0; i < Scaled(5000, scale); ++i) {
    Node& node = filled.world.nodes.emplace_back();
    node.id = fmt::format("node-{:05}", i);
    node.labels = {{"dc", fmt::format("dc{}", i % 2)}, {"rack", fmt::format("r{:02}", i % 25)}};
    node.total = {{"cpu", 13'900 * kMilli}, {"memory", 31'744 * kMebi * kMilli}, {"disk", 96 * kGibi * kMilli}};
  }
  Kind& kind = filled.world.kinds.emplace_back();
  kind.labels["app"] = "job";
  kind.request = {{"cpu", 6000 * kMilli}, {"memory", 6000 * kMebi * kMilli}};
  model::Requirement racks{.key = "rack", .op = model::Operator::kIn, .values = {}};
  for (int i = 0; i < 12; ++i) racks.values.push_back(fmt::format("r{:02}", i));
  kind.requirements.push_back(racks);
  if (spread) kind.spread.push_back({.topology_key = "rack", .max_skew = 1, .selector = App("job")});
  AddPending(filled, Scaled(1200, scale), unique, [](int64_t) { return size_t{0}; });
  return filled;
}

constexpr std::string_view kZone = "topology.kubernetes.io/zone";

std::vector<Node> KubeNodes(double scale) {
  std::vector<Node> nodes;
  for (int64_t i = 0; i < Scaled(5000, scale); ++i) {
    Node& node = nodes.emplace_back();
    node.id = fmt::format("node-{:05}", i);
    node.labels[std::string(kZone)] = fmt::format("zone-{}", i % 3);
    node.labels["kubernetes.io/hostname"] = node.id;
    node.total = {{"cpu", 4 * kMilli}, {"memory", 32 * kGibi * kMilli}, {"pods", 110 * kMilli}};
  }
  return nodes;
}

Kind KubeKind() {
  Kind kind;
  kind.labels["app"] = "web";
  kind.request = {{"cpu", 100}, {"memory", 500 * kMebi * kMilli}, {"pods", kMilli}};
  return kind;
}

Filled Kube(double scale, bool unique, int64_t pending, bool spread) {
  Filled filled;
  filled.world.nodes = KubeNodes(scale);
  Kind& kind = filled.world.kinds.emplace_back(KubeKind());
  if (spread) kind.spread.push_back({.topology_key = std::string(kZone), .max_skew = 5, .selector = App("web")});
  AddPending(filled, Scaled(pending, scale), unique, [](int64_t) { return size_t{0}; });
  return filled;
}

// Ten labels of five values on each node, two In requirements on each unit: 250 kinds.
Filled KubeLabels(double scale, bool unique) {
  Filled filled;
  Rng rng(7);
  filled.world.nodes = KubeNodes(scale);
  for (Node& node : filled.world.nodes) {
    for (int label = 0; label < 10; ++label) {
      node.labels[fmt::format("label-{}", label)] = fmt::format("v{}", rng.Below(5));
    }
  }
  for (int i = 0; i < 250; ++i) {
    Kind& kind = filled.world.kinds.emplace_back(KubeKind());
    const uint64_t first = rng.Below(10);
    const uint64_t second = (first + 1 + rng.Below(9)) % 10;
    for (const uint64_t label : {first, second}) {
      kind.requirements.push_back({.key = fmt::format("label-{}", label),
                                   .op = model::Operator::kIn,
                                   .values = {fmt::format("v{}", rng.Below(5))}});
    }
  }
  AddPending(filled, Scaled(10'000, scale), unique, [](int64_t i) { return static_cast<size_t>(i * 7 % 250); });
  return filled;
}

// 20 kinds of nodes and 200 kinds of units over 3 zones; 60 of the kinds spread over the zones.
Filled Mixed(double scale, bool unique) {
  Filled filled;
  Rng rng(11);
  for (int64_t i = 0; i < Scaled(100'000, scale); ++i) {
    Node& node = filled.world.nodes.emplace_back();
    const int64_t type = i % 20;
    node.id = fmt::format("node-{:06}", i);
    node.labels = {{std::string(kZone), fmt::format("zone-{}", i / 20 % 3)}, {"type", fmt::format("t{:02}", type)}};
    const int64_t cpu = int64_t{4} << (type % 5);
    node.total = {{"cpu", cpu * kMilli}, {"memory", cpu * (2 << (type / 5)) * kGibi * kMilli}, {"pods", 110 * kMilli}};
  }
  for (int i = 0; i < 200; ++i) {
    Kind& kind = filled.world.kinds.emplace_back();
    kind.labels["app"] = fmt::format("app-{}", i);
    kind.request = {
        {"cpu", 100 * rng.Between(1, 20)}, {"memory", 256 * kMebi * kMilli * rng.Between(1, 16)}, {"pods", kMilli}};
    if (i % 4 == 0) {
      kind.requirements.push_back(
          {.key = "type", .op = model::Operator::kNotIn, .values = {fmt::format("t{:02}", rng.Below(20))}});
    }
    if (i % 10 < 3) {
      kind.spread.push_back(
          {.topology_key = std::string(kZone), .max_skew = 1, .selector = App(fmt::format("app-{}", i))});
    }
  }
  AddPending(filled, Scaled(100'000, scale), unique, [](int64_t i) { return static_cast<size_t>(i * 37 % 200); });
  return filled;
}

constexpr std::array<Shape, 7> kShapes = {{
    {"nomad-5000", "one job of 1,200 on the first 12 of 25 racks of 5,000 nodes",
     [](double scale, bool unique) { return Nomad(scale, unique, false); }},
    {"nomad-5000-spread", "the same, spread evenly over the racks",
     [](double scale, bool unique) { return Nomad(scale, unique, true); }},
    {"kube-5000", "10,000 equal pods on 5,000 nodes",
     [](double scale, bool unique) { return Kube(scale, unique, 10'000, false); }},
    {"kube-5000-spread", "the same, spread over three zones, skew 5",
     [](double scale, bool unique) { return Kube(scale, unique, 10'000, true); }},
    {"kube-5000-50k", "50,000 equal pods on 5,000 nodes",
     [](double scale, bool unique) { return Kube(scale, unique, 50'000, false); }},
    {"kube-5000-labels", "10,000 pods of 250 kinds, each with two requirements on labels", KubeLabels},
    {"place-100k", "100,000 pods of 200 kinds on 100,000 nodes of 20 kinds, 30 % spread over zones", Mixed},
}};

}  // namespace

std::span<const Shape> Shapes() { return kShapes; }

}  // namespace muster::placement::shapes
