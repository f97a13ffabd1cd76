#include "engine/world_steps.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "engine/bind_stamp.h"

namespace muster::engine {
namespace {

using model::MachineState;

std::map<std::string, std::string> StampOf(const NeedKey& key, const Decision& decision) {
  for (const NeedVerdict& verdict : decision.needs) {
    if (KeyOf(verdict.need) != key) continue;
    return BindStampOf(key, verdict.need.profile);
  }
  MUSTER_CHECK(false, "an action for a need that was not decided");
}

MachineState StartOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kBootstrap:
    case ActionKind::kDelete: return MachineState::kIdle;
    case ActionKind::kProvision: return MachineState::kSpeculative;
    default: return MachineState::kConfigured;
  }
}

}  // namespace

void WorldSteps::Advance(World& world, const Decision& decision) {
  std::map<std::string, model::Machine*> by_id;
  for (model::Machine& machine : world.machines) by_id.emplace(machine.id, &machine);
  AdoptStrangers(world);
  std::vector<std::string> due;
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto machine = by_id.find(it->first);
    // A machine that vanished, failed or was moved by somebody else is no longer ours to move.
    if (machine == by_id.end() || model::IsStable(machine->second->state) ||
        machine->second->state == MachineState::kFailed) {
      it = pending_.erase(it);
    } else {
      if (--it->second.cycles_left <= 0) due.push_back(it->first);
      ++it;
    }
  }
  for (const std::string& id : due) {
    Pending pending = std::move(pending_.at(id));
    pending_.erase(id);
    Finish(*by_id.at(id), std::move(pending));
  }
  for (const Action& action : decision.actions) Start(*by_id.at(action.machine), action, decision);
}

void WorldSteps::AdoptStrangers(const World& world) {
  for (const model::Machine& machine : world.machines) {
    if (model::IsStable(machine.state) || machine.state == MachineState::kFailed) continue;
    const auto [it, is_new] = pending_.try_emplace(machine.id);
    if (is_new)
      it->second = {.cycles_left = DwellIn(machine.state, machine.id), .cluster = machine.cluster, .metadata = {}};
  }
}

void WorldSteps::Start(model::Machine& machine, const Action& action, const Decision& decision) {
  MUSTER_CHECK(machine.state == StartOf(action.kind), "{} of {}, which is {}", ActionKindName(action.kind), machine.id,
               model::StateName(machine.state));
  Pending pending;
  if (action.kind == ActionKind::kBootstrap || action.kind == ActionKind::kProvision) {
    pending.cluster = action.cluster;
    pending.metadata = StampOf(*action.need, decision);
  }
  switch (action.kind) {
    case ActionKind::kBootstrap: return Enter(machine, MachineState::kConfiguring, std::move(pending));
    case ActionKind::kProvision: return Enter(machine, MachineState::kCreating, std::move(pending));
    case ActionKind::kPreempt:
    case ActionKind::kReclaim: return Enter(machine, MachineState::kDraining, std::move(pending));
    case ActionKind::kDelete: return Enter(machine, MachineState::kDeleting, std::move(pending));
  }
}

void WorldSteps::Enter(model::Machine& machine, MachineState state, Pending pending) {
  machine.state = state;
  if (state == MachineState::kConfiguring) {
    machine.host = {.provider = "case", .ref = machine.id};
    machine.cluster = pending.cluster;
    machine.shard_metadata = pending.metadata;
  }
  pending.cycles_left = DwellIn(state, machine.id);
  if (pending.cycles_left == 0) return Finish(machine, std::move(pending));
  pending_[machine.id] = std::move(pending);
}

void WorldSteps::Finish(model::Machine& machine, Pending pending) {
  switch (machine.state) {
    case MachineState::kCreating:
      if (!pending.cluster.empty() && !dwell_.stop_at_idle)
        return Enter(machine, MachineState::kConfiguring, std::move(pending));
      machine.state = MachineState::kIdle;
      machine.host = {.provider = "case", .ref = machine.id};
      return;
    case MachineState::kConfiguring: machine.state = MachineState::kConfigured; return;
    case MachineState::kDraining:
      machine.state = MachineState::kIdle;
      machine.cluster.clear();
      machine.shard_metadata.clear();
      return;
    case MachineState::kDeleting:
      machine.state = MachineState::kSpeculative;
      machine.host = {};
      return;
    default: MUSTER_CHECK(false, "{} is in no transition", machine.id);
  }
}

int32_t WorldSteps::DwellIn(MachineState state, const std::string& id) const {
  const auto extra = static_cast<int32_t>(Hash(id) % static_cast<uint64_t>(dwell_.jitter + 1));
  switch (state) {
    case MachineState::kCreating: return dwell_.create + extra;
    case MachineState::kConfiguring: return dwell_.configure + extra;
    case MachineState::kDraining: return dwell_.drain + extra;
    default: return dwell_.remove + extra;
  }
}

}  // namespace muster::engine
