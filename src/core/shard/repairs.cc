#include "core/shard/repairs.h"

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/executor.h"

namespace muster::shard {
namespace {

using model::MachineState;
using model::Reason;

bool IsOwnedHardware(const model::Machine& machine) {
  return machine.capacity_type != model::CapacityType::kOnDemand && machine.capacity_type != model::CapacityType::kSpot;
}

}  // namespace

Repairs::Repairs(const Config& config, State state) : config_(config), state_(std::move(state)) {
  for (const auto& [id, repair] : state_) {
    if (repair.due) due_.emplace(*repair.due, id);
  }
}

void Repairs::RegisterRows(contract::RowReader& reader) {
  reader.On(kRepairRows, [this](std::string id, const RepairRow& row) {
    state_.emplace(std::move(id), Repair{.attempts = row.attempts, .recreate = row.recreate});
  });
}

void Repairs::OnState(const model::Machine& machine, StepContext& ctx) {
  const std::string& id = machine.id;
  const auto known = state_.find(id);
  if (machine.state == MachineState::kFailed) {
    PROBE("shard.machine_failed");
    ctx.Note(Reason::kFailed, id, machine.last_error);
    if (config_.failed_policy == FailedPolicy::kKeep || MUTANT("shard.failed_stay_failed")) return;
    Repair& repair = state_[id];
    SetDue(id, repair, ctx.now.mono + PauseBefore(repair));
    repair.recreate = false;
    Keep(id, ctx);
  } else if (known != state_.end() && machine.state == MachineState::kSpeculative && known->second.recreate) {
    SetDue(id, known->second, ctx.now.mono);
  } else if (known != state_.end() && machine.state == MachineState::kConfigured) {
    Forget(id, ctx);
  }
}

void Repairs::OnEnded(const std::string& id, OperationKind kind, Outcome outcome, StepContext& ctx) {
  const auto found = state_.find(id);
  if (found == state_.end()) return;
  Repair& repair = found->second;
  if (outcome == Outcome::kSuccess) {
    if (kind == OperationKind::kRecreate) repair.recreate = false;
    Keep(id, ctx);
  } else if (outcome != Outcome::kUnimplemented) {
    SetDue(id, repair, ctx.now.mono + PauseBefore(repair));
  }
}

void Repairs::Forget(const std::string& id, StepContext& ctx) {
  const auto found = state_.find(id);
  if (found == state_.end()) return;
  SetDue(id, found->second, std::nullopt);
  state_.erase(found);
  Keep(id, ctx);
}

void Repairs::RunDue(Executor& executor, StepContext& ctx) {
  while (!due_.empty() && due_.begin()->first <= ctx.now.mono) {
    const std::string id = due_.begin()->second;
    Repair& repair = state_.find(id)->second;
    const model::Machine* machine = executor.FreeMachine(id);
    if (machine == nullptr || !executor.MayRepair()) {
      SetDue(id, repair, ctx.now.mono + config_.repair_first);
      continue;
    }
    if (const MonoTime rest = executor.RestsUntil(id); rest > ctx.now.mono) {
      SetDue(id, repair, rest);  // its last transition has just failed
      continue;
    }
    Begin(*machine, Reason::kRepair, executor, ctx);
  }
}

void Repairs::Begin(const model::Machine& machine, Reason reason, Executor& executor, StepContext& ctx) {
  const std::string id = machine.id;
  Repair& repair = state_[id];
  SetDue(id, repair, std::nullopt);
  const bool recreate = machine.state == MachineState::kSpeculative && repair.recreate;
  if (machine.state != MachineState::kFailed && !recreate) return;
  if (!recreate) {
    ++repair.attempts;
    repair.recreate = IsOwnedHardware(machine);
  }
  Keep(id, ctx);
  executor.StartOperation(id,
                          {.kind = recreate ? OperationKind::kRecreate : OperationKind::kRepair,
                           .reason = reason,
                           .cycle = ctx.cycle.number(),
                           .decided = ctx.now},
                          ctx);
}

void Repairs::SetDue(const std::string& id, Repair& repair, std::optional<MonoTime> due) {
  if (repair.due) due_.erase({*repair.due, id});
  repair.due = due;
  if (due) due_.emplace(*due, id);
}

Duration Repairs::PauseBefore(const Repair& repair) const {
  const int64_t doubled = int64_t{1} << std::min(repair.attempts, 20);
  return std::min<Duration>(config_.repair_first * doubled, config_.repair_longest);
}

void Repairs::Keep(const std::string& id, StepContext& ctx) const {
  const auto found = state_.find(id);
  if (found == state_.end()) return ctx.Write(kRepairRows.Erase(id));
  ctx.Write(kRepairRows.Put(id, {.attempts = found->second.attempts, .recreate = found->second.recreate}));
}

void Repairs::CheckInvariants() const {
  size_t due = 0;
  for (const auto& [id, repair] : state_) due += repair.due && due_.contains({*repair.due, id}) ? 1 : 0;
  MUSTER_CHECK(due == due_.size());
}

}  // namespace muster::shard
