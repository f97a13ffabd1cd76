#include <fmt/format.h>

#include <array>

#include "engine/bind_stamp.h"
#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using model::MachineState;
using shapes::Size;

struct Archetype {
  std::string_view name;
  std::string_view type;
  Size unit;               // of one pod
  int64_t pods_a_machine;  // a machine's size in units
  int64_t configured;      // machines in each cluster
  bool racked;             // whether its Configured machines have a rack
};

constexpr Archetype kTiny{"tiny", "m6i.large", {400, 500 * shapes::kMi}, 100, 175, false};
constexpr Archetype kService{"service", "m6i.xlarge", {2200, 8500 * shapes::kMi}, 10, 30, false};
constexpr Archetype kCache{"cache", "r6i.2xlarge", {4000, 32 * shapes::kGi}, 10, 30, true};
constexpr Archetype kGpu{"gpu", "a3-highgpu-8g", {64'000, 0, 8}, 1, 15, true};

// Blocks of eight machines, twelve racks.
std::string Rack(const Archetype& archetype, int64_t i) {
  return fmt::format("zone-a-{}-rack-{}", archetype.name, i / 8 % 12);
}

model::Machine MachineOf(const Archetype& archetype, std::string id, MachineState state, std::string_view rack) {
  return shapes::BareMetal(std::move(id), state, archetype.type, archetype.unit.Times(archetype.pods_a_machine), rack);
}

void AddConfigured(const std::string& cluster, World& world) {
  const model::Penalty penalty{.finite = {.micros = 8'192'000'000}};
  const auto stamp = EncodeBindStamp({.priority = 1000, .interruption = penalty, .reclamation = penalty});
  for (const Archetype& archetype : {kTiny, kService, kCache, kGpu}) {
    for (int64_t i = 0; i < archetype.configured; ++i) {
      model::Machine& machine =
          world.machines.emplace_back(MachineOf(archetype, fmt::format("{}-{}-{}", cluster, archetype.name, i),
                                                MachineState::kConfigured, archetype.racked ? Rack(archetype, i) : ""));
      machine.cluster = cluster;
      machine.shard_metadata = stamp;
    }
  }
}

void AddFree(MachineState state, std::string_view prefix, int64_t count, World& world) {
  constexpr std::array kCycle{kTiny, kCache, kGpu};
  for (int64_t i = 0; i < count; ++i) {
    const Archetype& archetype = kCycle[static_cast<size_t>(i % 3)];
    world.machines.push_back(MachineOf(archetype, fmt::format("{}-{}", prefix, i), state, Rack(archetype, i)));
  }
}

model::Need NeedOf(const Archetype& archetype, std::vector<std::string> types, int32_t priority, int64_t pods) {
  const bool gang = archetype.racked;
  return {.profile = shapes::TypeProfile(std::move(types), priority, gang),
          .aggregate = archetype.unit.Times(pods).Resources(),
          .min_unit = archetype.unit.Resources()};
}

}  // namespace

World Colocated5k(Scale scale) {
  constexpr int64_t kCacheGangs = 95;
  constexpr int64_t kGpuGangs = 32;
  const model::Need tiny = NeedOf(kTiny, {"m6i.large", "m6i.xlarge"}, 100, 17'500);
  const model::Need service = NeedOf(kService, {"m6i.xlarge"}, 1000, 3000);
  const model::Need cache = NeedOf(kCache, {"r6i.2xlarge"}, 1000, 4);
  const model::Need gpu = NeedOf(kGpu, {"a3-highgpu-8g"}, 1000, 5);
  World world;
  for (int64_t c = 0; c < scale.Of(20); ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    AddConfigured(cluster, world);
    const size_t first = world.needs.size();
    world.needs.push_back(tiny);
    world.needs.push_back(service);
    world.needs.insert(world.needs.end(), kCacheGangs, cache);
    world.needs.insert(world.needs.end(), kGpuGangs, gpu);
    for (size_t i = first; i < world.needs.size(); ++i) world.needs[i].cluster = cluster;
  }
  AddFree(MachineState::kIdle, "idle", scale.Of(1000), world);
  AddFree(MachineState::kSpeculative, "spec", scale.Of(12'000), world);
  return world;
}

}  // namespace muster::engine
