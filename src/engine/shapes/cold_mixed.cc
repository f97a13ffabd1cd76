#include <fmt/format.h>

#include <array>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {

World ColdMixed(Scale scale) {
  constexpr int64_t kNeedsPerCluster = 10;
  constexpr int64_t kMachinesPerNeed = 4;
  const std::vector<std::string> types{"m6i.2xlarge", "c6i.4xlarge"};
  const shapes::Size size{.cpu_milli = 8000, .memory_bytes = 32 * shapes::kGi};
  World world;
  for (int64_t i = 0; i < scale.Of(5000); ++i) {
    world.machines.push_back(shapes::BareMetal(fmt::format("idle-{}", i), model::MachineState::kIdle,
                                               types[static_cast<size_t>(i % 2)], size));
    world.machines.back().zone = i / 2 % 2 == 0 ? "zone-a" : "zone-b";
  }
  const std::array<std::vector<std::string>, 3> wanted{{{types[0]}, {types[1]}, types}};
  const std::array<int32_t, 3> priorities{100, 1000, 10'000};
  for (int64_t c = 0; c < scale.Of(100); ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t i = 0; i < kNeedsPerCluster; ++i) {
      const auto number = static_cast<size_t>(c * kNeedsPerCluster + i);
      world.needs.push_back({.cluster = cluster,
                             .profile = shapes::TypeProfile(wanted[number / 3 % 3], priorities[number % 3], false),
                             .aggregate = size.Times(kMachinesPerNeed).Resources(),
                             .min_unit = size.Resources()});
    }
  }
  return world;
}

}  // namespace muster::engine
