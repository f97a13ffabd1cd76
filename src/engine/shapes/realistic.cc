// Six kinds of work on machines made for them. Machine and need number i of a kind have the i-th type, size, priority
// and so on of its lists, round and round; a need names its one type.
#include <fmt/format.h>

#include <array>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using shapes::kGi;
using shapes::Size;

constexpr int64_t kNeedsPerCluster = 1000;
constexpr int64_t kRacks = 8;  // of each archetype

struct Archetype {
  std::string_view name;
  int64_t weight;  // in per cent of machines and of needs
  std::vector<std::string> types;
  std::vector<std::string> zones;
  std::vector<Size> sizes;
  std::vector<int32_t> priorities;
  bool same_rack;
};

Size CpuAndMemory(int64_t cpus, int64_t gib) { return {.cpu_milli = cpus * 1000, .memory_bytes = gib * kGi}; }
Size Gpus(int64_t gpus) { return {.gpus = gpus}; }

std::array<Archetype, 6> Catalogue() {
  const std::vector<std::string> abc{"zone-a", "zone-b", "zone-c"};
  return {{
      {"gpu-training", 5, {"a3-highgpu-8g"}, abc, {Gpus(8), Gpus(16)}, {1000}, true},
      {"gpu-inference", 15, {"a3-highgpu-1g", "a2-highgpu-1g"}, abc, {Gpus(1), Gpus(2)}, {100, 1000}, false},
      {"cpu-batch",
       35,
       {"c6i.4xlarge", "c6i.8xlarge", "n2-standard-32"},
       abc,
       {CpuAndMemory(4, 8), CpuAndMemory(8, 16), CpuAndMemory(16, 32), CpuAndMemory(32, 64)},
       {100},
       false},
      {"cpu-service",
       30,
       {"m6i.large", "m6i.xlarge", "m6i.2xlarge"},
       abc,
       {CpuAndMemory(2, 8), CpuAndMemory(4, 16), CpuAndMemory(8, 32), CpuAndMemory(16, 64)},
       {1000},
       false},
      {"memory-db",
       10,
       {"r6i.xlarge", "r6i.2xlarge"},
       {"zone-a", "zone-b"},
       {CpuAndMemory(4, 32), CpuAndMemory(4, 64), CpuAndMemory(8, 128)},
       {1000},
       true},
      {"critical-realtime",
       5,
       {"c6i.4xlarge", "m6i.2xlarge"},
       abc,
       {CpuAndMemory(8, 16), CpuAndMemory(16, 32)},
       {1'000'000},
       false},
  }};
}

template <class T>
const T& Cycled(const std::vector<T>& list, int64_t i) {
  return list[static_cast<size_t>(i) % list.size()];
}

// By the weights: of every hundred needs the first five are gpu-training, the next fifteen gpu-inference, ...
const Archetype& ArchetypeOf(const std::array<Archetype, 6>& catalogue, int64_t number) {
  int64_t per_cent = number % 100;
  size_t i = 0;
  while (per_cent >= catalogue[i].weight) per_cent -= catalogue[i++].weight;
  return catalogue[i];
}

void AddMachines(const std::array<Archetype, 6>& catalogue, int64_t total, World& world) {
  for (const Archetype& archetype : catalogue) {
    for (int64_t i = 0; i < total * archetype.weight / 100; ++i) {
      model::Machine& machine = world.machines.emplace_back(shapes::BareMetal(
          fmt::format("idle-{}", world.machines.size()), model::MachineState::kIdle, Cycled(archetype.types, i),
          Cycled(archetype.sizes, i), fmt::format("rack-{}-{}", archetype.name, i % kRacks)));
      machine.zone = Cycled(archetype.zones, i);
    }
  }
}

World Realistic(Scale scale, bool all_same) {
  const std::array<Archetype, 6> catalogue = Catalogue();
  World world;
  AddMachines(catalogue, scale.Of(60'000), world);
  for (int64_t c = 0; c < scale.Of(50); ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t i = 0; i < kNeedsPerCluster; ++i) {
      const Archetype& archetype = ArchetypeOf(catalogue, c * kNeedsPerCluster + i);
      const model::Resources unit = Cycled(archetype.sizes, i).Resources();
      world.needs.push_back(
          {.cluster = cluster,
           .profile = shapes::TypeProfile({Cycled(archetype.types, i)}, Cycled(archetype.priorities, i),
                                          archetype.same_rack || all_same),
           .aggregate = unit,
           .min_unit = unit});
    }
  }
  return world;
}

}  // namespace

World Realistic50k(Scale scale) { return Realistic(scale, false); }
World Realistic50kSame(Scale scale) { return Realistic(scale, true); }

}  // namespace muster::engine
