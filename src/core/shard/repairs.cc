#include "core/shard/repairs.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"
#include "base/probe.h"
#include "core/shard/executor.h"
#include "core/shard/losses.h"
#include "core/shard/rails.h"

namespace muster::shard {
namespace {

using model::MachineState;
using model::Reason;

bool IsOwnedHardware(const model::Machine& machine) {
  return machine.capacity_type != model::CapacityType::kOnDemand && machine.capacity_type != model::CapacityType::kSpot;
}

}  // namespace

Repairs::Repairs(const Config& config, State state) : config_(config), state_(std::move(state)) {
  for (const auto& [id, repair] : state_.repairs) {
    if (repair.due) QueueOf(id).emplace(*repair.due, id);
  }
}

void Repairs::RegisterRows(contract::RowReader& reader) {
  reader.On(kRepairRows, [this](std::string id, const RepairRow& row) {
    state_.repairs.emplace(std::move(id), Repair{.attempts = row.attempts, .recreate = row.recreate});
  });
  reader.On(kRefusedRows, [this](std::string id) { state_.given_up.insert(std::move(id)); });
  reader.On(kServedRows,
            [this](std::string id, std::string cluster) { state_.served.emplace(std::move(id), std::move(cluster)); });
}

const std::string& Repairs::ServedBy(const std::string& id) const {
  static const std::string none;
  const auto served = state_.served.find(id);
  return served == state_.served.end() ? none : served->second;
}

void Repairs::KeepServed(const std::string& id, const std::string& cluster, StepContext& ctx) {
  std::string& served = state_.served[id];
  if (served == cluster) return;
  served = cluster;
  ctx.Write(kServedRows.Put(id, cluster));
}

void Repairs::ForgetServed(const std::string& id, StepContext& ctx) {
  if (state_.served.erase(id) > 0) ctx.Write(kServedRows.Erase(id));
}

void Repairs::OnState(const model::Machine& machine, bool first_sweep, StepContext& ctx) {
  const std::string& id = machine.id;
  const auto known = state_.repairs.find(id);
  if (machine.state == MachineState::kFailed) {
    PROBE("shard.machine_failed");
    ctx.Note(Reason::kFailed, id, machine.last_error);
    SetUnderWay(id, false);
    if (state_.given_up.contains(id)) return;
    Repair& repair = state_.repairs[id];
    const bool keep = config_.failed_policy == FailedPolicy::kKeep || MUTANT("shard.failed_stay_failed");
    SetDue(id, repair, keep ? std::nullopt : std::optional(ctx.now.mono + PauseBefore(repair)));
    repair.recreate = false;
    if (!first_sweep || MUTANT("shard.failed_known_at_once")) Keep(id, ctx);
    return;
  }
  ForgetServed(id, ctx);
  state_.refusals.erase(id);
  state_.allowed.erase(id);
  if (state_.given_up.erase(id) > 0) ctx.Write(kRefusedRows.Erase(id));
  if (known == state_.repairs.end()) return;
  const bool goes_on = machine.state == MachineState::kSpeculative && known->second.recreate;
  if (goes_on || machine.state == MachineState::kDeleting) {
    SetUnderWay(id, true);
  } else if (machine.state != MachineState::kCreating) {
    SetUnderWay(id, false);
  }
  if (goes_on) SetDue(id, known->second, ctx.now.mono);
  if (machine.state == MachineState::kConfigured) Forget(id, ctx);
}

void Repairs::OnFirstSweep(StepContext& ctx) {
  for (const auto& [id, repair] : state_.repairs) Keep(id, ctx);
}

void Repairs::OnEnded(const std::string& id, OperationKind kind, Outcome outcome, StepContext& ctx) {
  const auto found = state_.repairs.find(id);
  if (found == state_.repairs.end()) return;
  Repair& repair = found->second;
  if (outcome == Outcome::kSuccess) {
    if (kind == OperationKind::kRecreate) repair.recreate = false;
    return Keep(id, ctx);
  }
  SetUnderWay(id, false);
  if (outcome == Outcome::kUnimplemented) return GiveUp(id, ctx);
  const auto refused = state_.refusals.find(id);
  const bool too_often = refused != state_.refusals.end() && refused->second >= config_.losses.refusals;
  if ((too_often || IsGivenUp(id)) && !MUTANT("shard.refused_for_ever")) return GiveUp(id, ctx);
  // One that was ordered by hand is not tried again by a policy that is not there.
  const bool keep = config_.failed_policy == FailedPolicy::kKeep && kind == OperationKind::kRepair;
  SetDue(id, repair, keep ? std::nullopt : std::optional(ctx.now.mono + PauseBefore(repair)));
}

void Repairs::GiveUp(const std::string& id, StepContext& ctx) {
  PROBE("shard.repair_given_up");
  if (!state_.given_up.insert(id).second) return;
  ctx.Write(kRefusedRows.Put(id));
  ctx.Note(Reason::kRepairRefused, id, "not tried again until its state changes or an operator orders it");
}

void Repairs::Forget(const std::string& id, StepContext& ctx) {
  SetUnderWay(id, false);
  ForgetServed(id, ctx);
  state_.refusals.erase(id);
  state_.allowed.erase(id);
  if (state_.given_up.erase(id) > 0) ctx.Write(kRefusedRows.Erase(id));
  const auto found = state_.repairs.find(id);
  if (found == state_.repairs.end()) return;
  SetDue(id, found->second, std::nullopt);
  state_.repairs.erase(found);
  Keep(id, ctx);
}

void Repairs::RunDue(const Losses& losses, Rails& rails, Executor& executor, StepContext& ctx) {
  const auto tracked = static_cast<int64_t>(executor.tracked());
  const int64_t most = std::max<int64_t>(1, tracked * config_.losses.repaired.millionths / 1'000'000);
  const auto is_due = [&](const Queue& queue) { return !queue.empty() && queue.begin()->first <= ctx.now.mono; };
  while (is_due(begun_)) {
    if (!RunFirst(begun_, losses, rails, executor, ctx)) return;
  }
  while (is_due(due_)) {
    if (std::ssize(state_.under_way) >= most && !MUTANT("shard.repairs_unlimited")) {
      PROBE("shard.repair_waits");
      return;  // those that are under way end first
    }
    if (!RunFirst(due_, losses, rails, executor, ctx)) return;
  }
}

bool Repairs::RunFirst(const Queue& queue, const Losses& losses, Rails& rails, Executor& executor, StepContext& ctx) {
  constexpr Duration kLeast = 1ms;  // what is put off is not due any more
  const std::string id = queue.begin()->second;
  Repair& repair = state_.repairs.find(id)->second;
  const model::Machine* machine = executor.FreeMachine(id);
  const std::string cluster = machine == nullptr ? "" : ClusterOf(*machine);
  // What an operator has accepted is no change of the shard's making, nor is what is made again.
  const bool changes = machine != nullptr && machine->state == MachineState::kFailed && !cluster.empty() &&
                       !state_.allowed.contains(id) && !MUTANT("shard.repairs_beside_the_budget");
  const bool may = machine != nullptr && losses.MayRepair(cluster) && rails.MayRepair(cluster) &&
                   (!changes || losses.MayMakeGood(cluster, rails.budget(), ctx));
  if (!may) {
    SetDue(id, repair, ctx.now.mono + std::max(config_.repair_first, kLeast));
  } else if (const MonoTime rest = executor.RestsUntil(id); rest > ctx.now.mono) {
    SetDue(id, repair, rest);  // its last transition has just failed
  } else if (!rails.AdmitRepair(executor.operations().size())) {
    return false;
  } else {
    if (changes) rails.budget().Spend(cluster, ctx);
    Begin(*machine, Reason::kRepair, executor, ctx);
  }
  return true;
}

void Repairs::Begin(const model::Machine& machine, Reason reason, Executor& executor, StepContext& ctx) {
  const std::string id = machine.id;
  Repair& repair = state_.repairs[id];
  SetDue(id, repair, std::nullopt);
  const bool recreate = machine.state == MachineState::kSpeculative && repair.recreate;
  if (machine.state != MachineState::kFailed && !recreate) return;
  if (!recreate) {
    ++repair.attempts;
    repair.recreate = IsOwnedHardware(machine);
  }
  Keep(id, ctx);
  SetUnderWay(id, true);
  executor.StartOperation(id,
                          {.kind = recreate ? OperationKind::kRecreate : OperationKind::kRepair,
                           .cluster = ClusterOf(machine),
                           .reason = reason,
                           .cycle = ctx.cycle.number(),
                           .decided = ctx.now},
                          ctx);
}

size_t Repairs::AllowNow(const std::string& cluster, const Machines& machines, StepContext& ctx) {
  size_t allowed = 0;
  for (auto& [id, repair] : state_.repairs) {
    const Tracked* tracked = machines.Find(id);
    if (!repair.due || tracked == nullptr || tracked->record->state != MachineState::kFailed) continue;
    if (!cluster.empty() && ClusterOf(*tracked->record) != cluster) continue;
    SetDue(id, repair, ctx.now.mono);
    state_.allowed.insert(id);
    ++allowed;
  }
  return allowed;
}

void Repairs::SetDue(const std::string& id, Repair& repair, std::optional<MonoTime> due) {
  Queue& queue = QueueOf(id);
  if (repair.due) queue.erase({*repair.due, id});
  repair.due = due;
  if (due) queue.emplace(*due, id);
}

void Repairs::SetUnderWay(const std::string& id, bool under_way) {
  if (under_way == state_.under_way.contains(id)) return;
  const auto repair = state_.repairs.find(id);
  const bool waits = repair != state_.repairs.end() && repair->second.due;
  if (waits) QueueOf(id).erase({*repair->second.due, id});
  if (under_way) {
    state_.under_way.insert(id);
  } else {
    state_.under_way.erase(id);
  }
  if (waits) QueueOf(id).emplace(*repair->second.due, id);
}

Duration Repairs::PauseBefore(const Repair& repair) const {
  const int64_t doubled = int64_t{1} << std::min(repair.attempts, 20);
  return std::min<Duration>(config_.repair_first * doubled, config_.repair_longest);
}

void Repairs::Keep(const std::string& id, StepContext& ctx) const {
  const auto found = state_.repairs.find(id);
  if (found == state_.repairs.end()) return ctx.Write(kRepairRows.Erase(id));
  ctx.Write(kRepairRows.Put(id, {.attempts = found->second.attempts, .recreate = found->second.recreate}));
}

void Repairs::CheckInvariants() const {
  size_t due = 0;
  for (const auto& [id, repair] : state_.repairs) {
    const Queue& queue = state_.under_way.contains(id) ? begun_ : due_;
    due += repair.due && queue.contains({*repair.due, id}) ? 1 : 0;
  }
  MUSTER_CHECK(due == begun_.size() + due_.size());
  for (const std::string& id : state_.under_way) MUSTER_CHECK(state_.repairs.contains(id), "{} is under repair", id);
}

}  // namespace muster::shard
