#include "engine/crowd.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "engine/bind_stamp.h"
#include "engine/invariants.h"

namespace muster::engine {
namespace {

using model::MachineState;
using model::Operator;
using model::PenaltyBucket;

// Beside the largest, {16, 16}, the first two are of one size, so are the next two, and the two with a third dimension.
const std::vector<model::Resources> kShapes = {
    {{"cpu", 8000}, {"memory", 16000}},
    {{"cpu", 16000}, {"memory", 8000}},
    {{"cpu", 8000}, {"memory", 8000}},
    {{"cpu", 4000}, {"memory", 12000}},
    {{"cpu", 16000}, {"memory", 16000}},
    {{"cpu", 8000}, {"memory", 8000}, {"gpu", 1000}},
    {{"cpu", 8000}, {"memory", 8000}, {"disk", 9000}},
    {{"cpu", 2000}, {"memory", 4000}},
    {{"cpu", 4000}, {"memory", 4000}, {"gpu", 2000}, {"disk", 3000}},
};
const std::vector<model::Resources> kUnits = {
    {{"cpu", 1000}, {"memory", 1000}},
    {{"cpu", 2000}, {"memory", 4000}},
    {{"cpu", 4000}, {"memory", 4000}},
    {{"cpu", 3000}},
    {{"memory", 5000}},
    {{"cpu", 1000}, {"memory", 2000}, {"gpu", 1000}},
    {{"cpu", 1000}, {"disk", 1000}},
};
const std::vector<int64_t> kPrices = {100'000, 100'000, 200'000, 300'000, 0};
const std::vector<int32_t> kProbabilities = {0, 0, 0, 100'000};
const std::vector<int32_t> kPriorities = {0, 0, 100, 200'000};
const std::vector<PenaltyBucket> kBuckets = {PenaltyBucket::kZero, PenaltyBucket::kZero, PenaltyBucket::kHalfDollar,
                                             PenaltyBucket::kPinned};
const std::vector<std::string> kZones = {"a", "b"};
const std::vector<std::string> kRacks = {"r1", "r2", "r3"};
// The last are names the engine gives itself: to a second gang of equal key, and to folded gangs.
const std::vector<std::string> kGroups = {"", "", "", "g1", "g1", "g2", "g1#2", "fold:cpu=8,memory=8"};
const std::vector<MachineState> kStates = {
    MachineState::kSpeculative, MachineState::kSpeculative, MachineState::kIdle,       MachineState::kIdle,
    MachineState::kConfigured,  MachineState::kConfigured,  MachineState::kConfigured, MachineState::kConfigured,
    MachineState::kConfiguring, MachineState::kCreating,    MachineState::kDraining,   MachineState::kFailed};

MachineState RandomState(Choices& choices, const CrowdOptions& options) {
  if (options.cold && !choices.OneIn(8)) return choices.OneIn(2) ? MachineState::kIdle : MachineState::kSpeculative;
  if (options.starved && !choices.OneIn(16)) return MachineState::kConfigured;
  return choices.Of(kStates);
}

std::string ClusterName(size_t i) { return fmt::format("c{}", i + 1); }

model::Machine RandomClass(Choices& choices, const CrowdOptions& options) {
  model::Machine machine;
  machine.instance_type = fmt::format("type-{}", choices.Below(3));
  machine.resources = choices.Of(kShapes);
  machine.zone = choices.Of(kZones);
  if (!choices.OneIn(5)) machine.labels["rack"] = choices.Of(kRacks);
  machine.capacity_type = static_cast<model::CapacityType>(1 + choices.Below(4));
  machine.price_per_hour.micros = choices.Of(kPrices);
  if (options.cold) machine.price_per_hour.micros = 50'000 + 1000 * static_cast<int64_t>(choices.Below(250));
  machine.interruption_probability.millionths = choices.Of(kProbabilities);
  return machine;
}

model::Profile RandomProfile(Choices& choices, const CrowdOptions& options) {
  model::ProfileParts parts;
  const std::string zone(model::kZoneKey);
  if (choices.OneIn(4)) parts.requirements.push_back({.key = zone, .op = Operator::kIn, .values = {"a"}});
  if (choices.OneIn(6)) parts.requirements.push_back({.key = "rack", .op = Operator::kNotIn, .values = {"r1"}});
  if (choices.OneIn(3)) {
    const std::string type = fmt::format("type-{}", choices.Below(3));
    parts.requirements.push_back({.key = std::string(model::kInstanceTypeKey), .op = Operator::kIn, .values = {type}});
  }
  const size_t draw = choices.Below(8);
  if (draw < options.gangs) {
    parts.requirements.push_back({.key = choices.OneIn(3) ? zone : "rack", .op = Operator::kSame});
  } else if (draw < options.gangs + options.spreads) {
    parts.spread.push_back({.topology_key = zone, .max_skew = static_cast<int32_t>(1 + choices.Below(3))});
    if (choices.OneIn(3)) parts.spread.push_back({.topology_key = "rack", .max_skew = 2});
  }
  parts.priority = choices.Of(kPriorities);
  parts.interruption = choices.Of(kBuckets);
  parts.reclamation = choices.Of(kBuckets);
  return model::Profile(std::move(parts));
}

// An arrival belongs to the key, so that equal rows arrive together.
void SetArrival(model::Need& need) {
  need.arrival = WallTime(std::chrono::seconds(1000 + Hash(need.profile.fingerprint() + need.group) % 3));
}

void SetCount(model::Need& need, size_t count) {
  need.aggregate = *model::Scale(need.min_unit, static_cast<int64_t>(count));
}

model::Need RandomCrowdNeed(Choices& choices, const Crowd& crowd) {
  model::Need need;
  need.cluster = ClusterName(choices.Below(crowd.options.clusters));
  need.profile = choices.Of(crowd.profiles);
  need.group = choices.Of(kGroups);
  need.min_unit = kUnits[choices.Below(crowd.options.starved ? 2 : kUnits.size())];
  SetCount(need, 1 + choices.Below(crowd.options.starved ? 15 : 40));
  SetArrival(need);
  return need;
}

void SetState(Choices& choices, const Crowd& crowd, model::Machine& machine, MachineState state) {
  machine.state = state;
  machine.cluster.clear();
  machine.shard_metadata.clear();
  machine.host = {};
  machine.last_error = state == MachineState::kFailed ? "broken" : "";
  if (state != MachineState::kSpeculative && state != MachineState::kCreating) {
    machine.host = {.provider = "test", .ref = machine.id};
  }
  const bool bound =
      state == MachineState::kConfigured || state == MachineState::kConfiguring || state == MachineState::kDraining;
  if (!bound) return;
  machine.cluster = ClusterName(choices.Below(crowd.options.clusters));
  if (crowd.scene.world.needs.empty() || choices.OneIn(5)) return;
  const model::Need& need = choices.Of(crowd.scene.world.needs);
  machine.cluster = need.cluster;
  machine.shard_metadata = EncodeBindStamp({.fingerprint = need.profile.fingerprint(),
                                            .group = need.group,
                                            .priority = need.profile.priority(),
                                            .interruption = model::UpperBound(need.profile.interruption()),
                                            .reclamation = model::UpperBound(need.profile.reclamation())});
}

// Ids in an order of their own, so that groups interleave.
std::string NextId(Crowd& crowd) { return fmt::format("m{:05}", crowd.next_id++ * 7919 % 100'003); }

// A run of machines that are alike but for their ids.
void AddRun(Choices& choices, Crowd& crowd, size_t count) {
  model::Machine machine = choices.Of(crowd.classes);
  SetState(choices, crowd, machine, RandomState(choices, crowd.options));
  for (size_t i = 0; i < count; ++i) {
    machine.id = NextId(crowd);
    if (!machine.host.ref.empty()) machine.host.ref = machine.id;
    crowd.scene.world.machines.push_back(machine);
  }
}

void AddMemory(Choices& choices, Scene& scene) {
  for (const model::Machine& machine : scene.world.machines) {
    MachineMemory memory;
    const MonoTime since = scene.now - std::chrono::seconds(choices.Below(12) * 60);
    const bool promised = machine.state == MachineState::kCreating || machine.state == MachineState::kDraining ||
                          machine.state == MachineState::kIdle;
    if (promised && !scene.world.needs.empty() && choices.OneIn(4)) {
      memory.pledge = KeyOf(choices.Of(scene.world.needs));
    }
    if (machine.state == MachineState::kIdle) memory.idle_since = since;
    if (machine.state == MachineState::kDraining) memory.draining_since = since;
    if (machine.state == MachineState::kConfigured && choices.OneIn(2)) memory.unclaimed_since = since;
    if (memory != MachineMemory{}) scene.memory.machines[machine.id] = memory;
  }
}

// --- changes

void RemoveMachines(Choices& choices, Crowd& crowd) {
  std::vector<model::Machine>& machines = crowd.scene.world.machines;
  const size_t every = 1 + choices.Below(5);
  const size_t first = choices.Below(8);
  std::vector<model::Machine> kept;
  for (size_t i = 0; i < machines.size(); ++i) {
    const bool goes = i % (every + 1) == first && machines.size() > 4;
    (goes ? crowd.gone : kept).push_back(std::move(machines[i]));
  }
  machines = std::move(kept);
}

// Some as they were, some as others.
void BringBack(Choices& choices, Crowd& crowd) {
  const size_t how = choices.Below(3);
  const model::Machine like = choices.Of(crowd.classes);
  const size_t count = crowd.gone.size() - crowd.gone.size() * choices.Below(3) / 3;
  for (size_t i = 0; i < count; ++i) {
    model::Machine machine = std::move(crowd.gone.back());
    crowd.gone.pop_back();
    if (how != 0) {
      const std::string id = machine.id;
      if (how == 2) machine = like;
      machine.id = id;
      SetState(choices, crowd, machine, RandomState(choices, crowd.options));
    }
    crowd.scene.world.machines.push_back(std::move(machine));
  }
}

// All machines of an instance type, or every second, become something else while their states stand still.
void ChangeClass(Choices& choices, Crowd& crowd) {
  const model::Machine like = RandomClass(choices, crowd.options);
  const size_t what = choices.Below(6);
  const bool all = choices.OneIn(2);
  bool odd = false;
  for (model::Machine& machine : crowd.scene.world.machines) {
    if (machine.instance_type != like.instance_type) continue;
    odd = !odd;
    if (!all && odd) continue;
    switch (what) {
      case 0: machine.price_per_hour = like.price_per_hour; break;
      case 1: machine.capacity_type = like.capacity_type; break;
      case 2: machine.labels = like.labels; break;
      case 3: machine.zone = like.zone; break;
      case 4: machine.interruption_probability = like.interruption_probability; break;
      default: machine.resources = like.resources; break;
    }
  }
}

void ChangeStates(Choices& choices, Crowd& crowd) {
  const size_t every = 2 + choices.Below(20);
  const MachineState state = RandomState(choices, crowd.options);
  for (size_t i = choices.Below(every); i < crowd.scene.world.machines.size(); i += every) {
    SetState(choices, crowd, crowd.scene.world.machines[i], state);
  }
}

// A shape nobody has seen, perhaps with a dimension nobody has seen, perhaps on a machine that counts for nothing.
void AddStranger(Choices& choices, Crowd& crowd) {
  model::Machine machine = RandomClass(choices, crowd.options);
  machine.resources.Set(choices.OneIn(3) ? "lamps" : "cpu", static_cast<int64_t>(1 + choices.Below(40)) * 700);
  machine.id = NextId(crowd);
  SetState(choices, crowd, machine, RandomState(choices, crowd.options));
  crowd.scene.world.machines.push_back(std::move(machine));
}

void ChangeCluster(Choices& choices, Crowd& crowd) {
  World& world = crowd.scene.world;
  const std::string name = ClusterName(choices.Below(crowd.options.clusters));
  if (choices.OneIn(4)) {
    world.clusters.erase(name);
    if (choices.OneIn(2)) std::erase_if(world.needs, [&](const model::Need& need) { return need.cluster == name; });
    return;
  }
  ClusterState& cluster = world.clusters[name];
  cluster = {};
  cluster.session = !choices.OneIn(4);
  cluster.gate_open = !choices.OneIn(4);
  if (choices.OneIn(3)) cluster.reclaims_allowed = static_cast<int64_t>(choices.Below(6));
}

void ChangeNeeds(Choices& choices, Crowd& crowd) {
  std::vector<model::Need>& needs = crowd.scene.world.needs;
  const size_t draw = choices.Below(10);
  if (needs.empty() || draw == 0) {
    if (needs.size() < 2 * crowd.options.max_needs) needs.push_back(RandomCrowdNeed(choices, crowd));
    return;
  }
  const size_t at = choices.Below(needs.size());
  switch (draw) {
    case 1: needs.erase(needs.begin() + static_cast<ptrdiff_t>(at)); break;
    case 2: needs.push_back(needs[at]); break;
    case 3: std::ranges::rotate(needs, needs.begin() + static_cast<ptrdiff_t>(at)); break;
    case 4: needs[at].profile = choices.Of(crowd.profiles); break;
    case 5: needs[at].group = choices.Of(kGroups); break;
    case 6: needs[at] = RandomCrowdNeed(choices, crowd); break;
    case 7: needs[at].min_unit = choices.Of(kUnits); break;
    default: SetCount(needs[at], choices.Below(60)); break;
  }
  for (model::Need& need : needs) SetArrival(need);
}

}  // namespace

Crowd RandomCrowd(Choices& choices, const CrowdOptions& options) {
  Crowd crowd{.scene = {}, .options = options, .classes = {}, .profiles = {}, .gone = {}};
  Scene& scene = crowd.scene;
  const size_t classes = 1 + choices.Below(options.classes);
  const size_t profiles = 1 + choices.Below(options.starved ? 3 : 8);
  const size_t needs = 1 + choices.Below(options.max_needs);
  for (size_t i = 0; i < classes; ++i) crowd.classes.push_back(RandomClass(choices, crowd.options));
  for (size_t i = 0; i < profiles; ++i) crowd.profiles.push_back(RandomProfile(choices, options));
  for (size_t i = 0; i < options.clusters; ++i) {
    ClusterState& cluster = scene.world.clusters[ClusterName(i)];
    if (options.starved && choices.OneIn(2)) cluster.reclaims_allowed = static_cast<int64_t>(1 + choices.Below(4));
  }
  for (size_t i = 0; i < needs; ++i) scene.world.needs.push_back(RandomCrowdNeed(choices, crowd));
  const size_t machines = options.min_machines + choices.Below(options.max_machines - options.min_machines + 1);
  while (scene.world.machines.size() < machines) AddRun(choices, crowd, 1 + choices.Below(12));
  if (choices.OneIn(2)) AddMemory(choices, scene);
  if (choices.OneIn(2)) scene.policy.surplus_hold = Duration::zero();
  const auto up_to = [&](size_t most) { return static_cast<int32_t>(choices.Below(most + 1)); };
  scene.dwell = {.create = up_to(3),
                 .configure = up_to(1),
                 .drain = up_to(4),
                 .remove = up_to(1),
                 .stop_at_idle = choices.OneIn(2),
                 .jitter = up_to(2)};
  return crowd;
}

void CrowdChange(Choices& choices, Crowd& crowd) {
  const size_t machines = crowd.scene.world.machines.size();
  switch (choices.Below(16)) {
    case 0: RemoveMachines(choices, crowd); break;
    case 1:
    case 2: BringBack(choices, crowd); break;
    case 3:
      if (machines < 2 * crowd.options.max_machines) AddRun(choices, crowd, 1 + choices.Below(machines + 1));
      break;
    case 4:
      crowd.classes.push_back(RandomClass(choices, crowd.options));
      AddRun(choices, crowd, 1 + choices.Below(12));
      break;
    case 5: ChangeClass(choices, crowd); break;
    case 6: ChangeStates(choices, crowd); break;
    case 7: AddStranger(choices, crowd); break;
    case 8: ChangeCluster(choices, crowd); break;
    case 9: std::ranges::reverse(crowd.scene.world.machines); break;
    default: ChangeNeeds(choices, crowd); break;
  }
}

std::optional<std::string> RunChurn(Choices& choices, int cycles, const DecideFn& decide) {
  Crowd crowd = RandomCrowd(
      choices,
      {.min_machines = 60, .max_machines = 90, .max_needs = 6, .clusters = 2, .classes = 2, .gangs = 0, .spreads = 0});
  Scene& scene = crowd.scene;
  std::vector<model::Machine>& machines = scene.world.machines;
  std::string squeezed = "m5";
  WorldSteps steps(scene.dwell);
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const Memory before = scene.memory;
    const Decision decision = decide(scene.world, scene.memory, scene.now, scene.policy);
    if (const Status status = CheckDecision(scene.world, before, decision); !status.ok()) return status.message();
    steps.Advance(scene.world, decision);
    scene.now += 20s;
    const size_t every = 2 + choices.Below(3);
    const size_t first = choices.Below(every);
    for (size_t i = first; i < machines.size(); i += every) {
      model::Machine fresh = choices.Of(crowd.classes);
      squeezed += '5';
      fresh.id = choices.OneIn(4) && squeezed.size() < 80 ? squeezed : NextId(crowd);
      SetState(choices, crowd, fresh, choices.Of(kStates));
      machines[i] = std::move(fresh);
    }
    if (squeezed.size() >= 80) squeezed = fmt::format("m{}-", cycle);
    ChangeNeeds(choices, crowd);
  }
  return std::nullopt;
}

std::optional<std::string> RunCrowd(Choices& choices, Crowd crowd, int changes, const DecideFn& decide) {
  static const std::vector<Duration> kSteps = {10s, 10s, 90s, 700s};
  Scene& scene = crowd.scene;
  WorldSteps steps(scene.dwell);
  for (int change = 0; change < changes; ++change) {
    for (size_t cycle = 1 + choices.Below(3); cycle > 0; --cycle) {
      const Memory before = scene.memory;
      const Decision decision = decide(scene.world, scene.memory, scene.now, scene.policy);
      if (const Status status = CheckDecision(scene.world, before, decision); !status.ok()) return status.message();
      steps.Advance(scene.world, decision);
      scene.now += choices.Of(kSteps);
    }
    CrowdChange(choices, crowd);
  }
  return std::nullopt;
}

}  // namespace muster::engine
