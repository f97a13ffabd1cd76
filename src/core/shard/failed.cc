// What follows from a machine's state: its cluster is told, and one that failed is repaired.
//
// Repair is Delete, our one edge out of Failed. On-demand and spot machines are then promises again, and bought when
// somebody needs them; owned hardware is made again at once. Each attempt waits twice as long as the one before.
#include <algorithm>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

using model::MachineState;
using model::Reason;

bool IsOwned(const model::Machine& machine) {
  return machine.capacity_type != model::CapacityType::kOnDemand && machine.capacity_type != model::CapacityType::kSpot;
}

}  // namespace

void Core::OnState(const std::string& id, const model::Machine& before, const model::Machine& machine, Turn& turn) {
  if (!before.cluster.empty() && before.cluster != machine.cluster) TellNode(before.cluster, machine, turn);
  if (!machine.cluster.empty()) TellNode(machine.cluster, machine, turn);
  if (machine.state != MachineState::kConfigured && machine.state != MachineState::kDraining) {
    std::erase_if(unanswered_, [&](const auto& row) { return row.second.instruction.nodes.front() == id; });
  }
  const auto known = repairs_.find(id);
  if (machine.state == MachineState::kFailed) {
    PROBE("shard.machine_failed");
    Note(Reason::kFailed, id, machine.last_error, turn);
    if (config_.failed_policy == FailedPolicy::kKeep || MUTANT("shard.failed_stay_failed")) return;
    Repair& repair = repairs_[id];
    SetRepairDue(id, repair, turn.now.mono + RepairPause(repair));
    repair.recreate = false;
    KeepRepair(id, turn);
  } else if (known != repairs_.end() && machine.state == MachineState::kSpeculative && known->second.recreate) {
    SetRepairDue(id, known->second, turn.now.mono);
  } else if (known != repairs_.end() && machine.state == MachineState::kConfigured) {
    ForgetRepair(id, turn);
  }
}

void Core::SetRepairDue(const std::string& id, Repair& repair, std::optional<MonoTime> due) {
  if (repair.due) repairs_due_.erase({*repair.due, id});
  repair.due = due;
  if (due) repairs_due_.emplace(*due, id);
}

void Core::ForgetRepair(const std::string& id, Turn& turn) {
  const auto found = repairs_.find(id);
  if (found == repairs_.end()) return;
  SetRepairDue(id, found->second, std::nullopt);
  repairs_.erase(found);
  KeepRepair(id, turn);
}

Duration Core::RepairPause(const Repair& repair) const {
  const int64_t doubled = int64_t{1} << std::min(repair.attempts, 20);
  return std::min<Duration>(config_.repair_first * doubled, config_.repair_longest);
}

void Core::RunRepairs(Turn& turn) {
  while (!repairs_due_.empty() && repairs_due_.begin()->first <= turn.now.mono) {
    const std::string id = repairs_due_.begin()->second;
    Repair& repair = repairs_.find(id)->second;
    const auto tracked = machines_.find(id);
    const bool in_doubt = to_look_.contains(id) || looking_.contains(id) || operations_.contains(id);
    if (tracked == machines_.end() || in_doubt || mode_ != contract::ActuationMode::kActive || epoch_ == 0) {
      SetRepairDue(id, repair, turn.now.mono + config_.repair_first);  // not now
      continue;
    }
    if (const auto retry = retries_.find(id); retry != retries_.end() && retry->second.until > turn.now.mono) {
      SetRepairDue(id, repair, retry->second.until);  // its last transition has just failed
      continue;
    }
    BeginRepair(id, Reason::kRepair, turn);
  }
}

void Core::BeginRepair(const std::string& id, Reason reason, Turn& turn) {
  const model::Machine& machine = *machines_.find(id)->second.record;
  Repair& repair = repairs_[id];
  SetRepairDue(id, repair, std::nullopt);
  const bool again = machine.state == MachineState::kSpeculative && repair.recreate;
  if (machine.state != MachineState::kFailed && !again) return;
  if (!again) {
    ++repair.attempts;
    repair.recreate = IsOwned(machine);
  }
  KeepRepair(id, turn);
  Enter(id,
        {.kind = again ? OperationKind::kRecreate : OperationKind::kRepair,
         .reason = reason,
         .cycle = cycle_,
         .decided = turn.now},
        turn);
}

void Core::RepairEnded(const std::string& id, OperationKind kind, std::string_view outcome, Turn& turn) {
  const auto found = repairs_.find(id);
  if (found == repairs_.end()) return;
  Repair& repair = found->second;
  if (outcome == "success") {
    if (kind == OperationKind::kRecreate) repair.recreate = false;
    KeepRepair(id, turn);
  } else if (outcome != "unimplemented") {
    SetRepairDue(id, repair, turn.now.mono + RepairPause(repair));
  }
}

void Core::KeepRepair(const std::string& id, Turn& turn) {
  const auto found = repairs_.find(id);
  const std::string key = std::string(kRepairKey) + id;
  if (found == repairs_.end()) return Write(turn, key, std::nullopt);
  Write(turn, key, codec::ToBytes(RepairRow{.attempts = found->second.attempts, .recreate = found->second.recreate}));
}

}  // namespace muster::shard
