#include "engine/random_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/bind_stamp.h"

namespace muster::engine {
namespace {

using model::MachineState;
using model::Operator;
using model::PenaltyBucket;

constexpr int64_t kUnit = 1000;  // one whole unit, in milli-units

struct Shape {
  const char* type;
  int64_t cpu, memory, gpu;
};
const std::vector<Shape> kShapes = {
    {"small", 2, 4, 0}, {"medium", 4, 8, 0}, {"large", 8, 16, 0}, {"highmem", 2, 16, 0}, {"gpu", 4, 8, 1}};
const std::vector<std::string> kZones = {"a", "b", "c"};
const std::vector<std::string> kRacks = {"r1", "r2", "r3"};
const std::vector<int64_t> kPrices = {0, 100'000, 200'000, 300'000, 1'000'000};
const std::vector<int32_t> kProbabilities = {0, 0, 50'000, 300'000};
const std::vector<int32_t> kPriorities = {0, 100, 1000, 200'000, 600'000, 1'000'000};
const std::vector<PenaltyBucket> kBuckets = {PenaltyBucket::kZero, PenaltyBucket::kHalfDollar,
                                             PenaltyBucket::kOneDollar, static_cast<PenaltyBucket>(8),
                                             PenaltyBucket::kPinned};
const std::vector<std::string> kGroups = {"", "", "g1", "g2"};

// The first few of a list, when the alphabet is tight.
template <class T>
const T& Some(Choices& choices, const SceneOptions& options, const std::vector<T>& items, size_t tight) {
  return items[choices.Below(options.tight ? std::min(tight, items.size()) : items.size())];
}

std::string ClusterName(size_t i) { return fmt::format("c{}", i + 1); }

model::Resources Of(int64_t cpu, int64_t memory, int64_t gpu) {
  return {{"cpu", cpu * kUnit}, {"memory", memory * kUnit}, {"gpu", gpu * kUnit}};
}

model::Requirement RandomRequirement(Choices& choices) {
  const std::string type(model::kInstanceTypeKey);
  const std::string zone(model::kZoneKey);
  switch (choices.Below(9)) {
    case 0: return {.key = type, .op = Operator::kIn, .values = {choices.Of(kShapes).type}};
    case 1: return {.key = type, .op = Operator::kIn, .values = {"medium", choices.Of(kShapes).type}};
    case 2: return {.key = zone, .op = Operator::kIn, .values = {choices.Of(kZones)}};
    case 3: return {.key = zone, .op = Operator::kNotIn, .values = {choices.Of(kZones)}};
    case 4: return {.key = "tier", .op = Operator::kExists};
    case 5: return {.key = "tier", .op = Operator::kDoesNotExist};
    case 6: return {.key = "generation", .op = Operator::kGt, .values = {fmt::format("{}", choices.Below(4))}};
    case 7: return {.key = "generation", .op = Operator::kLt, .values = {fmt::format("{}", choices.Below(4))}};
    default: return {.key = "rack", .op = Operator::kNotIn, .values = {choices.Of(kRacks)}};
  }
}

void AddGang(Choices& choices, model::ProfileParts& parts) {
  const std::string zone(model::kZoneKey);
  if (!choices.OneIn(3)) {
    parts.requirements.push_back({.key = "rack", .op = Operator::kSame});
    return;
  }
  parts.requirements.push_back({.key = "rack", .op = Operator::kSame, .values = {"r1", choices.Of(kRacks)}});
  if (choices.OneIn(2)) parts.requirements.push_back({.key = zone, .op = Operator::kSame});
  if (choices.OneIn(3)) parts.spread.push_back({.topology_key = zone});
}

void AddSpread(Choices& choices, model::ProfileParts& parts) {
  const std::string zone(model::kZoneKey);
  switch (choices.Below(3)) {
    case 0: parts.spread.push_back({.topology_key = zone, .max_skew = static_cast<int32_t>(choices.Below(3))}); break;
    case 1:
      parts.spread.push_back({.topology_key = zone, .max_skew = 1});
      parts.spread.push_back({.topology_key = "rack", .max_skew = 2});
      break;
    default: parts.spread.push_back({.topology_key = "rack", .when = model::WhenUnsatisfiable::kScheduleAnyway}); break;
  }
}

void AddTopology(Choices& choices, const SceneOptions& options, model::ProfileParts& parts) {
  const size_t draw = choices.Below(8);
  if (draw < options.gangs) {
    AddGang(choices, parts);
  } else if (draw < options.gangs + options.spreads) {
    AddSpread(choices, parts);
  }
}

model::Attribution AttributionFor(const model::Need& need) {
  const NeedKey key = KeyOf(need);
  return {.fingerprint = key.fingerprint,
          .group = key.group,
          .priority = need.profile.priority(),
          .interruption = model::UpperBound(need.profile.interruption()),
          .reclamation = model::UpperBound(need.profile.reclamation())};
}

// States as a fleet has them: mostly stable ones.
MachineState RandomState(Choices& choices, const SceneOptions& options) {
  if (options.full && !choices.OneIn(6)) return MachineState::kConfigured;
  static const std::vector<MachineState> kStates = {
      MachineState::kSpeculative, MachineState::kSpeculative, MachineState::kSpeculative, MachineState::kIdle,
      MachineState::kIdle,        MachineState::kIdle,        MachineState::kConfigured,  MachineState::kConfigured,
      MachineState::kConfigured,  MachineState::kConfigured,  MachineState::kConfiguring, MachineState::kCreating,
      MachineState::kDraining,    MachineState::kDeleting,    MachineState::kFailed};
  return choices.Of(kStates);
}

// Rows of one key arrived together: an arrival belongs to the key.
void UnifyArrivals(World& world) {
  std::map<NeedKey, WallTime> arrivals;
  for (model::Need& need : world.needs) need.arrival = arrivals.emplace(KeyOf(need), need.arrival).first->second;
}

MachineMemory RandomMemory(Choices& choices, const model::Machine& machine, const Scene& scene) {
  MachineMemory memory;
  const Duration ago = std::chrono::seconds(choices.Below(20) * 60);
  const bool promised = machine.state == MachineState::kCreating || machine.state == MachineState::kDraining ||
                        machine.state == MachineState::kIdle;
  if (promised && !scene.world.needs.empty() && choices.OneIn(machine.state == MachineState::kCreating ? 2 : 3)) {
    memory.pledge = KeyOf(choices.Of(scene.world.needs));
  }
  if (machine.state == MachineState::kIdle) memory.idle_since = scene.now - ago;
  if (machine.state == MachineState::kDraining) memory.draining_since = scene.now - ago;
  if (machine.state == MachineState::kConfigured && choices.OneIn(2)) memory.unclaimed_since = scene.now - ago;
  return memory;
}

// A hold of each sort now and then; what was held before is not any more.
void AddHolds(Choices& choices, World& world) {
  world.holds = {};
  for (auto& [name, cluster] : world.clusters) {
    cluster.paused = choices.OneIn(8);
    cluster.on_hold = choices.OneIn(8);
  }
  for (const model::Machine& machine : world.machines) {
    switch (choices.Below(12)) {
      case 0: world.holds.machines.insert(machine.id); break;
      case 1: world.holds.pairs.emplace(machine.id, ClusterName(choices.Below(world.clusters.size()))); break;
      case 2: world.holds.classes.insert(StockClassOf(machine)); break;
      default: break;
    }
  }
}

}  // namespace

Choices Choices::Random(Rng& rng, size_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.Next() >> 56);
  return Choices(std::move(bytes));
}

size_t Choices::Below(size_t n) { return done() ? 0 : bytes_[next_++] % n; }

model::Need RandomNeed(Choices& choices, const SceneOptions& options) {
  model::Need need;
  need.cluster = ClusterName(choices.Below(options.clusters));
  model::ProfileParts parts;
  if (!options.tight && choices.OneIn(2)) parts.requirements.push_back(RandomRequirement(choices));
  if (!options.tight && choices.OneIn(6)) parts.requirements.push_back(RandomRequirement(choices));
  AddTopology(choices, options, parts);
  parts.priority = Some(choices, options, kPriorities, 2);
  parts.interruption = Some(choices, options, kBuckets, 1);
  parts.reclamation = Some(choices, options, kBuckets, 1);
  need.profile = model::Profile(std::move(parts));
  const int64_t unit = static_cast<int64_t>(1 + choices.Below(4));
  const int64_t count = static_cast<int64_t>(1 + choices.Below(options.max_count));
  const int64_t gpu = !options.tight && choices.OneIn(6) ? 1 : 0;
  need.min_unit = Of(unit, unit * static_cast<int64_t>(1 + choices.Below(3)), gpu);
  need.aggregate = *model::Scale(need.min_unit, count);
  need.group = choices.Of(kGroups);
  need.arrival = WallTime(std::chrono::seconds(1000 + choices.Below(2)));
  return need;
}

model::Machine RandomMachine(Choices& choices, const std::string& id, const std::vector<model::Need>& needs,
                             const SceneOptions& options) {
  model::Machine machine;
  machine.id = id;
  const Shape& shape = Some(choices, options, kShapes, 2);
  machine.instance_type = shape.type;
  machine.resources = Of(shape.cpu, shape.memory, shape.gpu);
  if (options.tight || !choices.OneIn(8)) machine.zone = Some(choices, options, kZones, 2);
  if (options.tight || !choices.OneIn(6)) machine.labels["rack"] = Some(choices, options, kRacks, 2);
  if (choices.OneIn(4)) machine.labels["tier"] = "gold";
  if (choices.OneIn(2)) machine.labels["generation"] = fmt::format("{}", choices.Below(4));
  machine.capacity_type = static_cast<model::CapacityType>(1 + choices.Below(4));
  machine.price_per_hour.micros = Some(choices, options, kPrices, 2);
  machine.interruption_probability.millionths = Some(choices, options, kProbabilities, 1);
  machine.state = RandomState(choices, options);
  const bool has_host = machine.state != MachineState::kSpeculative && machine.state != MachineState::kCreating;
  if (has_host) machine.host = {.provider = "test", .ref = id};
  if (machine.state == MachineState::kFailed) machine.last_error = "broken";
  const bool bound = machine.state == MachineState::kConfigured || machine.state == MachineState::kConfiguring ||
                     machine.state == MachineState::kDraining;
  if (bound) {
    machine.cluster = ClusterName(choices.Below(options.clusters));
    if (!needs.empty() && !choices.OneIn(4)) {
      const model::Need& need = choices.Of(needs);
      if (choices.OneIn(2)) machine.cluster = need.cluster;
      machine.shard_metadata = EncodeBindStamp(AttributionFor(need));
    }
  }
  return machine;
}

Scene RandomScene(Choices& choices, const SceneOptions& options) {
  Scene scene;
  const size_t machines = 1 + choices.Below(options.max_machines);
  const size_t needs = 1 + choices.Below(options.max_needs);
  for (size_t i = 0; i < options.clusters; ++i) {
    ClusterState& cluster = scene.world.clusters[ClusterName(i)];
    if (options.full) cluster.reclaims_allowed = static_cast<int64_t>(choices.Below(2));
    if (options.tight) continue;
    cluster.session = !choices.OneIn(10);
    cluster.gate_open = !choices.OneIn(8);
    if (choices.OneIn(6)) cluster.reclaims_allowed = static_cast<int64_t>(choices.Below(2));
  }
  for (size_t i = 0; i < needs; ++i) {
    scene.world.needs.push_back(RandomNeed(choices, options));
    if (choices.OneIn(8)) scene.world.needs.push_back(scene.world.needs.back());
  }
  UnifyArrivals(scene.world);
  for (size_t i = 0; i < machines; ++i) {
    scene.world.machines.push_back(RandomMachine(choices, fmt::format("m{:02}", i), scene.world.needs, options));
    if (!options.with_memory) continue;
    const model::Machine& machine = scene.world.machines.back();
    const MachineMemory memory = RandomMemory(choices, machine, scene);
    if (memory != MachineMemory{}) scene.memory.machines[machine.id] = memory;
  }
  if (choices.OneIn(2)) scene.policy.surplus_hold = Duration::zero();
  const auto up_to = [&](size_t most) { return static_cast<int32_t>(choices.Below(most + 1)); };
  if (options.slow) scene.dwell = {.create = up_to(2), .configure = up_to(1), .drain = up_to(3), .jitter = up_to(3)};
  if (options.holds) AddHolds(choices, scene.world);
  return scene;
}

void RandomChange(Choices& choices, Scene& scene) {
  World& world = scene.world;
  const SceneOptions options;
  const size_t need = world.needs.empty() ? 0 : choices.Below(world.needs.size());
  const size_t machine = world.machines.empty() ? 0 : choices.Below(world.machines.size());
  switch (choices.Below(11)) {
    case 0:
      world.needs.push_back(RandomNeed(choices, options));
      UnifyArrivals(world);
      break;
    case 1:
      if (world.needs.size() > 1) world.needs.erase(world.needs.begin() + static_cast<ptrdiff_t>(need));
      break;
    case 2:
    case 3:
      if (!world.needs.empty()) {
        const auto count = static_cast<int64_t>(choices.Below(8));
        world.needs[need].aggregate = *model::Scale(world.needs[need].min_unit, count);
      }
      break;
    case 4: {
      model::Machine added = RandomMachine(choices, fmt::format("n{:02}", choices.Below(40)), world.needs, options);
      const auto same = [&](const model::Machine& m) { return m.id == added.id; };
      if (std::ranges::none_of(world.machines, same)) world.machines.push_back(std::move(added));
      break;
    }
    case 5:
      if (world.machines.size() > 1) world.machines.erase(world.machines.begin() + static_cast<ptrdiff_t>(machine));
      break;
    case 6:
      if (!world.machines.empty() && !model::IsStable(world.machines[machine].state)) {
        world.machines[machine].state = MachineState::kFailed;
        world.machines[machine].last_error = "broken";
      }
      break;
    case 7:
      if (!world.machines.empty()) world.machines[machine].price_per_hour.micros = choices.Of(kPrices);
      break;
    case 8: {
      ClusterState& cluster = world.clusters[ClusterName(choices.Below(options.clusters))];
      cluster.session = choices.Below(4) != 3;
      cluster.gate_open = choices.Below(4) != 3;
      break;
    }
    case 9:
      AddHolds(choices, world);
      if (choices.OneIn(2)) world.holds = {};
      break;
    default: break;
  }
}

}  // namespace muster::engine
