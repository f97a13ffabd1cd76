#include "core/shard/machine_changes.h"

#include <algorithm>

#include "base/probe.h"

namespace muster::shard {

using model::MachineState;

void MachineChanges::OnAdopted(const model::Machine& machine, bool first_sweep, StepContext& ctx) {
  // What an earlier life saw fail has a repair.
  if (first_sweep && machine.state == MachineState::kFailed && !deps_.repairs.Knows(machine.id)) {
    deps_.losses.OnFoundFailed(machine.id, machine.cluster, ctx);
  }
  OnState({}, machine, first_sweep, machine.state != MachineState::kFailed || !first_sweep, ctx);
}

std::vector<std::string> MachineChanges::OnMoved(const model::Machine& before, const model::Machine& machine,
                                                 bool first_sweep, StepContext& ctx) {
  deps_.executor.OnMachineMoved(before, machine, ctx);
  // Transitions that end in Failed are what holds are for.
  const bool served = (model::IsStable(before.state) && before.state != MachineState::kSpeculative) ||
                      before.state == MachineState::kDraining;
  std::vector<std::string> aside;
  if (machine.state == MachineState::kFailed && before.state != MachineState::kFailed && served) {
    const std::string& cluster = machine.cluster.empty() ? before.cluster : machine.cluster;
    if (first_sweep) {
      deps_.losses.OnFoundFailed(machine.id, cluster, ctx);
    } else {
      aside = deps_.losses.OnFailed(machine.id, cluster, deps_.rails.budget(), ctx);
    }
  }
  // A cluster deletes the node of a Failed machine. What waits to be given up may be well.
  const bool waits =
      std::ranges::find(aside, machine.id) != aside.end() || (first_sweep && machine.state == MachineState::kFailed);
  OnState(before, machine, first_sweep, !waits, ctx);
  return aside;
}

void MachineChanges::OnState(const model::Machine& before, const model::Machine& machine, bool first_sweep, bool told,
                             StepContext& ctx) {
  told = told || MUTANT("shard.failing_told");
  if (told && !before.cluster.empty() && before.cluster != machine.cluster) {
    deps_.sessions.SendNodeState(before.cluster, machine, ctx);
  }
  if (told && !machine.cluster.empty()) deps_.sessions.SendNodeState(machine.cluster, machine, ctx);
  if (machine.state != MachineState::kConfigured && machine.state != MachineState::kDraining) {
    deps_.executor.VoidInstructions(machine.id);
  }
  if (before.state == MachineState::kConfiguring && machine.state == MachineState::kConfigured) {
    deps_.demand.OnConfigured(machine, ctx);
  }
  deps_.repairs.OnState(machine, first_sweep, ctx);
}

void MachineChanges::OnStillFailing(const model::Machine& machine, StepContext& ctx) {
  deps_.losses.RestoreFailing(machine.id);
  deps_.machines.Put(machine.id, SetAside::kFailing);
  OnState(machine, machine, true, false, ctx);
  ctx.cycle.Request();
}

void MachineChanges::TellFailed(StepContext& ctx) const {
  for (const auto& [id, tracked] : deps_.machines.tracked()) {
    const model::Machine& machine = *tracked.record;
    const bool failed = machine.state == MachineState::kFailed && !machine.cluster.empty();
    if (failed && deps_.machines.AsideOf(id) == SetAside::kNo)
      deps_.sessions.SendNodeState(machine.cluster, machine, ctx);
  }
}

void MachineChanges::OnGivenUp(const model::Machine& machine, StepContext& ctx) const {
  if (!machine.cluster.empty()) deps_.sessions.SendNodeState(machine.cluster, machine, ctx);
}

void MachineChanges::OnReturned(const model::Machine& machine, bool first_sweep, StepContext& ctx) {
  deps_.repairs.OnState(machine, first_sweep, ctx);
}

void MachineChanges::OnMissing(const std::string& id, StepContext& ctx) {
  deps_.executor.OnMachineDropped(id, "the provider no longer shows it", ctx);
  deps_.machines.Put(id, SetAside::kMissing);
  ctx.cycle.Request();
}

void MachineChanges::Drop(const std::string& id, const std::string& detail, StepContext& ctx) {
  PROBE("shard.machine_dropped");
  deps_.executor.OnMachineDropped(id, detail, ctx);
  deps_.machines.Remove(id);
  deps_.repairs.Forget(id, ctx);
  deps_.ledger.OnMachineDropped(id, ctx);
  ctx.cycle.Request();
}

}  // namespace muster::shard
