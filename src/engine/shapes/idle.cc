// Half a million Idle machines of five types, and who asks for them: few needs of many machines, or many of one.
#include <fmt/format.h>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using shapes::FiveTypes;
using shapes::kOneCpu;

World FiveTypesIdle(Scale scale) {
  World world;
  for (int64_t i = 0; i < scale.Of(500'000); ++i) {
    world.machines.push_back(
        shapes::BareMetal(fmt::format("idle-{}", i), model::MachineState::kIdle, FiveTypes(i), kOneCpu));
  }
  return world;
}

// `needs` a cluster, of the types in turn and ten priorities; the n-th asks for machines(n).
template <class MachinesOf>
void AddNeeds(Scale scale, int64_t needs, MachinesOf machines, World& world) {
  for (int64_t c = 0; c < scale.Of(50); ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t i = 0; i < needs; ++i) {
      const auto priority = static_cast<int32_t>(1000 + 1000 * (i % 10));
      world.needs.push_back({.cluster = cluster,
                             .profile = shapes::TypeProfile({std::string(FiveTypes(c + i))}, priority, false),
                             .aggregate = kOneCpu.Times(machines(i)).Resources(),
                             .min_unit = kOneCpu.Resources()});
    }
  }
}

}  // namespace

World Aggregated500k(Scale scale) {
  World world = FiveTypesIdle(scale);
  AddNeeds(scale, 16, [](int64_t i) { return 62 + i % 2; }, world);
  return world;
}

World OneToOne500k(Scale scale) {
  World world = FiveTypesIdle(scale);
  AddNeeds(scale, 16, [](int64_t) { return 625; }, world);
  return world;
}

World OneToOne500kSingle(Scale scale) {
  World world = FiveTypesIdle(scale);
  AddNeeds(scale, 10'000, [](int64_t) { return 1; }, world);
  return world;
}

}  // namespace muster::engine
