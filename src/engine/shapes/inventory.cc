// What a provider lists: Idle and bound machines of many prices, hardly two of them bound at the same terms. No demand.
#include <fmt/format.h>

#include <array>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

World Inventory(Scale scale, int64_t idle, int64_t configured) {
  constexpr std::array<std::string_view, 6> kTypes{"a3-highgpu-8g",  "n2-standard-32", "c3-highcpu-176",
                                                   "m3-megamem-128", "g2-standard-16", "h3-standard-88"};
  World world;
  for (int64_t c = 0; c < scale.Of(50); ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t k = 0; k < idle + configured; ++k) {
      const auto i = static_cast<int64_t>(world.machines.size());
      const std::string_view type = kTypes[static_cast<size_t>(i) % kTypes.size()];
      const std::string id = fmt::format("m-{}", i);
      const model::Attribution stamp{.priority = static_cast<int32_t>(1000 + i % 500),
                                     .reclamation = shapes::Dollars(i % 8192)};
      world.machines.push_back(k < idle ? shapes::BareMetal(id, model::MachineState::kIdle, type, {})
                                        : shapes::Bound(id, type, {}, cluster, stamp));
      world.machines.back().zone = "fr-par-1";
      world.machines.back().price_per_hour = {.micros = 1'000'000 + 50'000 * (i % 17)};
    }
  }
  return world;
}

}  // namespace

World Inventory60k(Scale scale) { return Inventory(scale, 800, 400); }
World Inventory500k(Scale scale) { return Inventory(scale, 6667, 3333); }

}  // namespace muster::engine
