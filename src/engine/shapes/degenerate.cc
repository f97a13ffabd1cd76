// A fleet without two machines alike and demand without two needs alike: nothing can be counted in groups.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using model::MachineState;
using model::Operator;

constexpr int64_t kNeedsPerCluster = 100;
constexpr int64_t kMachinesPerPool = 100;
constexpr std::string_view kPoolKey = "example.com/pool";
constexpr std::array<std::string_view, 3> kZones{"zone-a", "zone-b", "zone-c"};

std::string Rack(int64_t i) { return fmt::format("rack-{}", i); }
std::string Pool(int64_t i) { return fmt::format("pool-{}", i); }

void AddMachines(int64_t count, World& world) {
  constexpr std::array<int64_t, 5> kCpus{4, 8, 16, 32, 64};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t cpus = kCpus[static_cast<size_t>(i % 5)];
    const auto state = i % 2 == 0 ? MachineState::kIdle : MachineState::kSpeculative;
    model::Machine& machine = world.machines.emplace_back(
        shapes::BareMetal(fmt::format("m-{}", i), state, shapes::FiveTypes(i / 5),
                          {.cpu_milli = cpus * 1000, .memory_bytes = cpus * 4 * shapes::kGi}, Rack(i)));
    machine.zone = kZones[static_cast<size_t>(i % 3)];
    machine.capacity_type = model::CapacityType::kOnDemand;
    // Ten cents a cpu, and a price of its own.
    machine.price_per_hour = {.micros = cpus * 100'000 + i};
    machine.labels.emplace(std::string(kPoolKey), Pool(i / kMachinesPerPool));
  }
}

// One half names its own twenty racks, spread over a stretch of the fleet that its neighbours name others of; the other
// half names two pools of its own out of the same stretch, two of the three zones and not one of the types.
model::Profile ProfileOf(int64_t number, int64_t needs, int64_t machines) {
  model::ProfileParts parts{.priority = static_cast<int32_t>(100 * (1 + number % 3)),
                            .interruption = shapes::BucketOf(64),
                            .reclamation = shapes::BucketOf(64)};
  const int64_t first = number * machines / needs;
  const auto require = [&](std::string_view key, Operator op, std::vector<std::string> values) {
    parts.requirements.push_back({.key = std::string(key), .op = op, .values = std::move(values)});
  };
  if (number % 2 == 0) {
    std::vector<std::string> racks;
    for (int64_t k = 0; k < 20; ++k) racks.push_back(Rack((first + 7 * k) % machines));
    require(shapes::kRackKey, Operator::kIn, std::move(racks));
    return model::Profile(std::move(parts));
  }
  const int64_t pools = std::max<int64_t>(machines / kMachinesPerPool, 1);
  const int64_t pool = first / kMachinesPerPool;
  require(kPoolKey, Operator::kIn, {Pool(pool), Pool((pool + 1 + number % 7) % pools)});
  require(model::kZoneKey, Operator::kIn,
          {std::string(kZones[static_cast<size_t>(number % 3)]),
           std::string(kZones[static_cast<size_t>((number + 1) % 3)])});
  require(model::kInstanceTypeKey, Operator::kNotIn, {std::string(shapes::FiveTypes(number))});
  parts.priority = static_cast<int32_t>(1000 + number);  // two needs may name the same pools
  return model::Profile(std::move(parts));
}

}  // namespace

World Degenerate100k(Scale scale) {
  const int64_t machines = scale.Of(100'000);
  const int64_t clusters = scale.Of(50);
  World world;
  AddMachines(machines, world);
  for (int64_t c = 0; c < clusters; ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t i = 0; i < kNeedsPerCluster; ++i) {
      const int64_t number = c * kNeedsPerCluster + i;
      const shapes::Size unit{.cpu_milli = 2000, .memory_bytes = 8 * shapes::kGi};
      world.needs.push_back({.cluster = cluster,
                             .profile = ProfileOf(number, clusters * kNeedsPerCluster, machines),
                             .aggregate = unit.Times(20 + number % 60).Resources(),
                             .min_unit = unit.Resources()});
    }
  }
  return world;
}

}  // namespace muster::engine
