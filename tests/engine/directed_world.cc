#include "engine/directed_world.h"

#include <fmt/format.h>

#include <utility>

#include "engine/bind_stamp.h"

namespace muster::engine {
namespace {

using model::MachineState;
using model::Operator;

constexpr int64_t kMachineCpu = 4000;  // every machine has so much
constexpr int64_t kUnit = 1000;
constexpr int64_t kEnough = 8;  // times what a need asks for: enough even while all that it gave back still drains

struct MachineKind {
  const char* type;
  MachineState state = MachineState::kIdle;
  const char* cluster = "";
  int64_t price = 0;
  bool tier = false;
};

void AddMachines(Choices& choices, World& world, const MachineKind& kind, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    model::Machine machine;
    // Ids break ties between equal victims: they are drawn, so that no kind always comes first.
    machine.id = fmt::format("m{}-{:02}", choices.Below(10), world.machines.size());
    machine.instance_type = kind.type;
    machine.state = kind.state;
    machine.cluster = kind.cluster;
    if (kind.state != MachineState::kSpeculative) machine.host = {.provider = "test", .ref = machine.id};
    machine.capacity_type = model::CapacityType::kBareMetal;
    machine.price_per_hour.micros = kind.price;
    machine.labels["rack"] = choices.OneIn(2) ? "r1" : "r2";
    if (kind.tier) machine.labels["tier"] = "gold";
    machine.resources = {{"cpu", kMachineCpu}};
    world.machines.push_back(std::move(machine));
  }
}

void AddNeed(World& world, const std::string& cluster, int32_t priority, int64_t machines,
             std::vector<model::Requirement> requirements) {
  model::Need need;
  need.cluster = cluster;
  need.profile = model::Profile({.requirements = std::move(requirements), .priority = priority});
  need.min_unit = {{"cpu", kUnit}};
  need.aggregate = {{"cpu", machines * kMachineCpu}};
  world.needs.push_back(std::move(need));
}

model::Requirement OfType(const char* type) {
  return {.key = std::string(model::kInstanceTypeKey), .op = Operator::kIn, .values = {type}};
}

int64_t Between(Choices& choices, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(choices.Below(static_cast<size_t>(high - low + 1)));
}

Swaying HalfGangs(Choices& choices) {
  Swaying swaying{.most = Between(choices, 1, 5)};
  swaying.scene.policy.surplus_hold = Duration::zero();
  World& world = swaying.scene.world;
  const int64_t idle = Between(choices, 0, 2);
  AddNeed(world, "c1", choices.OneIn(2) ? 100 : 200'000, swaying.most, {});
  AddNeed(world, "c2", 0, swaying.most + idle + Between(choices, 1, 3), {{.key = "rack", .op = Operator::kSame}});
  AddMachines(choices, world, {.type = "a", .state = MachineState::kConfigured, .cluster = "c1"}, swaying.most);
  AddMachines(choices, world, {.type = "a"}, idle);
  return swaying;
}

Swaying Pledges(Choices& choices) {
  Swaying swaying{.most = Between(choices, 2, 4), .preempts = Between(choices, 1, 3)};
  swaying.scene.policy.surplus_hold = Duration::zero();
  World& world = swaying.scene.world;
  const int64_t serving = swaying.preempts + Between(choices, 1, 4);
  AddNeed(world, "c3", 1'000'000, swaying.most, {});
  AddNeed(world, "c1", 200'000, swaying.preempts, {OfType("a")});
  AddNeed(world, "c2", 0, serving, {OfType("a")});
  AddMachines(choices, world, {.type = "a", .state = MachineState::kConfigured, .cluster = "c2", .price = 1}, serving);
  AddMachines(choices, world, {.type = "b", .price = Between(choices, 2, 4)}, kEnough * swaying.most);
  return swaying;
}

Swaying Surplus(Choices& choices) {
  Swaying swaying{.most = Between(choices, 1, 4)};
  swaying.preempts = kEnough * swaying.most;
  swaying.scene.policy.surplus_hold = 24h;
  World& world = swaying.scene.world;
  const int64_t serving = Between(choices, 1, 4);
  AddNeed(world, "c1", 100, swaying.most, {{.key = "tier", .op = Operator::kExists}});
  AddNeed(world, "c2", 0, serving, {OfType("a")});
  AddMachines(choices, world, {.type = "a", .state = MachineState::kConfigured, .cluster = "c2", .tier = true},
              serving);
  AddMachines(choices, world, {.type = "b", .state = MachineState::kConfigured, .cluster = "c3", .tier = true},
              swaying.preempts);
  // What the lesser need would buy, and the one that sways cannot use.
  AddMachines(choices, world, {.type = "a", .state = MachineState::kSpeculative}, serving);
  return swaying;
}

Swaying Budget(Choices& choices) {
  Swaying swaying{.most = Between(choices, 1, 4)};
  swaying.scene.policy.surplus_hold = Duration::zero();
  World& world = swaying.scene.world;
  const int64_t serving = Between(choices, 1, 4);
  AddNeed(world, "c1", 100, swaying.most, {{.key = "tier", .op = Operator::kExists}});
  AddNeed(world, "c2", 0, serving, {OfType("a")});
  AddMachines(choices, world, {.type = "a", .state = MachineState::kConfigured, .cluster = "c2", .tier = true},
              serving);
  AddMachines(choices, world, {.type = "b", .state = MachineState::kConfigured, .cluster = "c3", .tier = true},
              kEnough * swaying.most);
  for (model::Machine& machine : world.machines) {
    if (machine.cluster == "c3") machine.shard_metadata = EncodeBindStamp({.priority = 200'000});
  }
  return swaying;
}

}  // namespace

Swaying RandomSwaying(Choices& choices, Family family) {
  Swaying swaying;
  switch (family) {
    case Family::kHalfGangs: swaying = HalfGangs(choices); break;
    case Family::kPledges: swaying = Pledges(choices); break;
    case Family::kSurplus: swaying = Surplus(choices); break;
    case Family::kBudget: swaying = Budget(choices); break;
  }
  swaying.scene.world.clusters = {{"c1", {}}, {"c2", {}}, {"c3", {}}};
  if (family == Family::kBudget) swaying.scene.world.clusters["c3"].reclaims_allowed = 0;
  const auto up_to = [&](int64_t most) { return static_cast<int32_t>(Between(choices, 0, most)); };
  swaying.scene.dwell = {.create = up_to(2), .configure = up_to(1), .drain = up_to(3), .jitter = up_to(2)};
  return swaying;
}

Scene RandomHeldGang(Choices& choices) {
  Scene scene;
  World& world = scene.world;
  const int64_t own = Between(choices, 1, 3);
  const int64_t lacks = Between(choices, 1, 2);
  AddNeed(world, "c1", 100, own + lacks, {{.key = "rack", .op = Operator::kSame}});
  AddNeed(world, "c2", 0, lacks, {OfType("b")});
  const auto add = [&](const MachineKind& kind, int64_t count, const char* rack) {
    const size_t first = world.machines.size();
    AddMachines(choices, world, kind, count);
    for (size_t i = first; i < world.machines.size(); ++i) world.machines[i].labels["rack"] = rack;
  };
  const MachineState free = choices.OneIn(2) ? MachineState::kIdle : MachineState::kSpeculative;
  add({.type = "a", .state = MachineState::kConfigured, .cluster = "c1"}, own, "r1");
  for (model::Machine& machine : world.machines) {
    machine.shard_metadata = EncodeBindStamp({.fingerprint = world.needs[0].profile.fingerprint(), .priority = 100});
  }
  const size_t first = world.machines.size();
  add({.type = "a", .state = free}, lacks, "r1");
  for (size_t i = first; i < world.machines.size(); ++i) {
    if (choices.OneIn(2)) {
      world.holds.machines.insert(world.machines[i].id);
    } else {
      world.holds.pairs.emplace(world.machines[i].id, "c1");
    }
  }
  add({.type = "a", .state = free}, own + lacks, "r2");
  add({.type = "b", .state = MachineState::kConfigured, .cluster = "c2"}, lacks, "r1");
  world.clusters = {{"c1", {}}, {"c2", {}}};
  return scene;
}

void SetDemand(Swaying& swaying, int64_t machines) {
  swaying.scene.world.needs[swaying.need].aggregate = {{"cpu", machines * kMachineCpu}};
}

}  // namespace muster::engine
