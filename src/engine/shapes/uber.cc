// The realistic catalogue: nine kinds of work, from thousands of tiny services to gangs of GPU machines, in shares that
// fill a cluster of 25,000 pods. Clusters have what they started with; the rest of the fleet stands ready beside them.
#include <fmt/format.h>

#include <array>

#include "engine/bind_stamp.h"
#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using model::MachineState;
using shapes::kGi;
using shapes::kMi;
using shapes::Size;

constexpr size_t kKinds = 9;
constexpr std::array<std::string_view, 3> kZones{"zone-a", "zone-b", "zone-c"};

struct Kind {
  std::string_view name;
  std::vector<std::string> types;
  Size size;               // of a pod
  Size other_size;         // of the rest of the pods
  int64_t first_share;     // tenths of pods and machines that have `size`
  int64_t pods_a_machine;  // a machine's size in pods
  int32_t priority;
  int64_t interruption;  // dollars
  int64_t reclamation;
  int64_t objects;  // per ten clusters
  int64_t gang_min = 0;
  int64_t gang_max = 0;        // 0: no gang
  int64_t spread_percent = 0;  // of objects
  int32_t skew = 0;
  bool strict = false;  // DoNotSchedule
};

// NOLINTNEXTLINE(readability-function-size): a table
std::array<Kind, kKinds> Catalogue() {
  const Size gpu_pod{8000, 32 * kGi, 1};
  const Size gpu_node{64'000, 256 * kGi, 8};
  return {{
      {.name = "tiny-stateless",
       .types = {"m6i.large", "m6i.xlarge"},
       .size = {400, 500 * kMi},
       .other_size = {300, 384 * kMi},
       .first_share = 6,
       .pods_a_machine = 100,
       .priority = 100,
       .interruption = 32,
       .reclamation = 64,
       .objects = 8820,
       .spread_percent = 45,
       .skew = 2},
      {.name = "cpu-service",
       .types = {"m6i.xlarge", "m6i.2xlarge"},
       .size = {2200, 8500 * kMi},
       .other_size = {4200, 16'500 * kMi},
       .first_share = 7,
       .pods_a_machine = 100,
       .priority = 1000,
       .interruption = 1024,
       .reclamation = 8192,
       .objects = 1510,
       .spread_percent = 75,
       .skew = 1,
       .strict = true},
      {.name = "cpu-batch",
       .types = {"c6i.4xlarge", "c6i.8xlarge", "n2-standard-32"},
       .size = {4000, 8 * kGi},
       .other_size = {8000, 16 * kGi},
       .first_share = 6,
       .pods_a_machine = 100,
       .priority = 100,
       .interruption = 64,
       .reclamation = 256,
       .objects = 760,
       .spread_percent = 15,
       .skew = 2},
      {.name = "memory-cache",
       .types = {"r6i.xlarge", "r6i.2xlarge"},
       .size = {2000, 16 * kGi},
       .first_share = 10,
       .pods_a_machine = 100,
       .priority = 1000,
       .interruption = 4096,
       .reclamation = 16'384,
       .objects = 1100,
       .gang_min = 3,
       .gang_max = 5},
      {.name = "stateful-db",
       .types = {"r6i.2xlarge", "r6i.4xlarge"},
       .size = {8000, 32 * kGi},
       .first_share = 10,
       .pods_a_machine = 100,
       .priority = 1000,
       .interruption = 8192,
       .reclamation = 32'768,
       .objects = 1100,
       .gang_min = 3,
       .gang_max = 5},
      {.name = "gpu-inference",
       .types = {"a3-highgpu-8g", "a2-highgpu-8g"},
       .size = gpu_pod,
       .first_share = 10,
       .pods_a_machine = 8,
       .priority = 1000,
       .interruption = 4096,
       .reclamation = 8192,
       .objects = 55,
       .spread_percent = 50,
       .skew = 2},
      {.name = "gpu-training-small",
       .types = {"a3-highgpu-8g"},
       .size = gpu_node,
       .first_share = 10,
       .pods_a_machine = 1,
       .priority = 1000,
       .interruption = 16'384,
       .reclamation = 32'768,
       .objects = 18,
       .gang_min = 2,
       .gang_max = 8},
      {.name = "gpu-training-medium",
       .types = {"a3-highgpu-8g"},
       .size = gpu_node,
       .first_share = 10,
       .pods_a_machine = 1,
       .priority = 1000,
       .interruption = 32'768,
       .reclamation = 65'536,
       .objects = 10,
       .gang_min = 8,
       .gang_max = 16},
      {.name = "critical-realtime",
       .types = {"c6i.4xlarge", "m6i.2xlarge"},
       .size = {4000, 8 * kGi},
       .first_share = 10,
       .pods_a_machine = 100,
       .priority = 1'000'000,
       .interruption = 65'536,
       .reclamation = 65'536,
       .objects = 126,
       .spread_percent = 100,
       .skew = 1,
       .strict = true},
  }};
}

using Counts = std::array<int64_t, kKinds>;  // machines by kind
struct Tiers {
  int64_t clusters;
  Counts idle;
  Counts speculative;
};
constexpr Counts kConfigured{166, 29, 14, 15, 15, 13, 24, 48, 2};  // in each cluster

constexpr Counts Times(Counts counts, int64_t times) {
  for (int64_t& count : counts) count *= times;
  return counts;
}
// A gang kind keeps enough Idle for its largest gang in every zone, so the small fleet has a few more than a tenth.
constexpr Tiers k5k{20, {664, 114, 57, 15, 15, 52, 31, 48, 10}, {9965, 1708, 854, 232, 232, 775, 464, 627, 143}};
constexpr Tiers k50k{
    200, {6643, 1139, 569, 155, 155, 517, 309, 418, 95}, {99'652, 17'081, 8544, 2321, 2320, 7750, 4641, 6265, 1426}};
constexpr Tiers k500k{2000, Times(k50k.idle, 10), Times(k50k.speculative, 10)};

// SplitMix64, reduced by modulo: the stream the demand of this catalogue is known by.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  int64_t Below(int64_t bound) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(bound));
  }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }

 private:
  uint64_t state_;
};

int64_t Replicas(Draws& draws) {
  const int64_t percent = draws.Below(100);
  if (percent < 55) return draws.Between(1, 5);
  if (percent < 85) return draws.Between(6, 25);
  if (percent < 97) return draws.Between(26, 100);
  return draws.Between(101, 400);
}

model::Machine MachineOf(const Kind& kind, std::string id, MachineState state, int64_t j, int64_t rack) {
  const std::string_view zone = kZones[static_cast<size_t>(j % 3)];
  const Size& pod = j / 3 % 10 < kind.first_share ? kind.size : kind.other_size;
  model::Machine machine =
      shapes::BareMetal(std::move(id), state, kind.types[static_cast<size_t>(j / 3) % kind.types.size()],
                        pod.Times(kind.pods_a_machine), fmt::format("{}-rack-{}", zone, rack));
  machine.zone = zone;
  return machine;
}

model::TextMap StampOf(const Kind& kind) {
  return EncodeBindStamp({.priority = kind.priority,
                          .interruption = shapes::Dollars(kind.interruption),
                          .reclamation = shapes::Dollars(kind.reclamation)});
}

model::Profile ProfileOf(const Kind& kind, bool spread) {
  model::ProfileParts parts{.priority = kind.priority,
                            .interruption = shapes::BucketOf(kind.interruption),
                            .reclamation = shapes::BucketOf(kind.reclamation)};
  parts.requirements.push_back(
      {.key = std::string(model::kInstanceTypeKey), .op = model::Operator::kIn, .values = kind.types});
  if (kind.gang_max > 0) {
    parts.requirements.push_back({.key = std::string(shapes::kRackKey), .op = model::Operator::kSame});
  }
  if (spread) {
    parts.spread.push_back(
        {.topology_key = std::string(model::kZoneKey),
         .max_skew = kind.skew,
         .when = kind.strict ? model::WhenUnsatisfiable::kDoNotSchedule : model::WhenUnsatisfiable::kScheduleAnyway});
  }
  return model::Profile(std::move(parts));
}

// A kind's objects in the running number of clusters: 5.5 a cluster are 5 in the first and 6 in the second.
int64_t ObjectsOf(const Kind& kind, int64_t c) { return (c + 1) * kind.objects / 10 - c * kind.objects / 10; }

void AddGangs(const Kind& kind, int64_t c, const std::string& cluster, Draws& draws, World& world) {
  const model::Profile profile = ProfileOf(kind, false);
  for (int64_t object = 0; object < ObjectsOf(kind, c); ++object) {
    world.needs.push_back({.cluster = cluster,
                           .profile = profile,
                           .aggregate = kind.size.Times(draws.Between(kind.gang_min, kind.gang_max)).Resources(),
                           .min_unit = kind.size.Resources(),
                           .group = fmt::format("{}-{}", kind.name, object)});
  }
}

// One need for the objects that spread and one for those that do not.
void AddPlain(const Kind& kind, int64_t c, const std::string& cluster, Draws& draws, World& world) {
  struct Sum {
    Size total;
    Size largest;
  };
  std::array<Sum, 2> sums;  // [spreads]
  for (int64_t object = 0; object < ObjectsOf(kind, c); ++object) {
    const Size& pod = draws.Below(10) < kind.first_share ? kind.size : kind.other_size;
    const int64_t replicas = Replicas(draws);
    Sum& sum = sums[draws.Below(100) < kind.spread_percent ? 1 : 0];
    sum.total = sum.total.Plus(pod.Times(replicas));
    sum.largest = sum.largest.Max(pod);
  }
  for (const bool spread : {false, true}) {
    const Sum& sum = sums[spread ? 1 : 0];
    if (sum.total.cpu_milli == 0) continue;
    world.needs.push_back({.cluster = cluster,
                           .profile = ProfileOf(kind, spread),
                           .aggregate = sum.total.Resources(),
                           .min_unit = sum.largest.Resources()});
  }
}

World Uber(Scale scale, const Tiers& tiers) {
  const std::array<Kind, kKinds> catalogue = Catalogue();
  const int64_t clusters = scale.Of(tiers.clusters);
  const int64_t racks = std::max<int64_t>(clusters / 5, 1);  // in each zone
  World world;
  for (int64_t c = 0; c < clusters; ++c) {
    const std::string cluster = fmt::format("cluster-{:04}", c);
    world.clusters[cluster] = {};
    Draws draws(static_cast<uint64_t>(7919 * c + 1));
    for (size_t k = 0; k < kKinds; ++k) {
      const Kind& kind = catalogue[k];
      const auto stamp = StampOf(kind);
      for (int64_t j = 0; j < kConfigured[k]; ++j) {
        model::Machine& machine = world.machines.emplace_back(
            MachineOf(kind, fmt::format("cfg-{}-{}-{}", c, kind.name, j), MachineState::kConfigured, j, c % racks));
        machine.cluster = cluster;
        machine.shard_metadata = stamp;
      }
      kind.gang_max > 0 ? AddGangs(kind, c, cluster, draws, world) : AddPlain(kind, c, cluster, draws, world);
    }
  }
  for (size_t k = 0; k < kKinds; ++k) {
    const Kind& kind = catalogue[k];
    for (int64_t j = 0; j < scale.Of(tiers.idle[k]); ++j) {
      world.machines.push_back(
          MachineOf(kind, fmt::format("idle-{}-{}", kind.name, j), MachineState::kIdle, j, j / 96 % racks));
    }
    for (int64_t j = 0; j < scale.Of(tiers.speculative[k]); ++j) {
      model::Machine& machine = world.machines.emplace_back(
          MachineOf(kind, fmt::format("spec-{}-{}", kind.name, j), MachineState::kSpeculative, j, j / 96 % racks));
      machine.capacity_type = model::CapacityType::kOnDemand;
      machine.price_per_hour = {.micros = 1'000'000};
      machine.interruption_probability = {.millionths = 50'000};
    }
  }
  return world;
}

}  // namespace

World Uber5k(Scale scale) { return Uber(scale, k5k); }
World Uber50k(Scale scale) { return Uber(scale, k50k); }
World Uber500k(Scale scale) { return Uber(scale, k500k); }

}  // namespace muster::engine
