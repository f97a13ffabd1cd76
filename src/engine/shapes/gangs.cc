#include <fmt/format.h>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {

World Gangs100k(Scale scale) {
  constexpr int64_t kRacks = 8;
  constexpr std::string_view kType = "r6i.2xlarge";
  const shapes::Size size{.cpu_milli = 4000, .memory_bytes = 32 * shapes::kGi};
  World world;
  for (int64_t i = 0; i < scale.Of(100'000); ++i) {
    world.machines.push_back(shapes::BareMetal(fmt::format("idle-{}", i), model::MachineState::kIdle, kType, size,
                                               fmt::format("rack-mem-{}", i % kRacks)));
  }
  const model::Need need{.profile = shapes::TypeProfile({std::string(kType)}, 1000, true),
                         .aggregate = size.Resources(),
                         .min_unit = size.Resources()};
  for (int64_t c = 0; c < scale.Of(20'000); ++c) {
    world.needs.push_back(need);
    world.needs.back().cluster = fmt::format("c-{}", c);
    world.clusters[world.needs.back().cluster] = {};
  }
  return world;
}

}  // namespace muster::engine
