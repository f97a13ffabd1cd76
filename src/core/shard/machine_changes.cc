#include "core/shard/machine_changes.h"

#include "base/probe.h"

namespace muster::shard {

using model::MachineState;

void MachineChanges::OnAdopted(const model::Machine& machine, StepContext& ctx) { OnState({}, machine, ctx); }

void MachineChanges::OnMoved(const model::Machine& before, const model::Machine& machine, StepContext& ctx) {
  p_.executor.OnMachineMoved(machine, ctx);
  OnState(before, machine, ctx);
}

void MachineChanges::OnState(const model::Machine& before, const model::Machine& machine, StepContext& ctx) {
  if (!before.cluster.empty() && before.cluster != machine.cluster) {
    p_.sessions.SendNodeState(before.cluster, machine, ctx);
  }
  if (!machine.cluster.empty()) p_.sessions.SendNodeState(machine.cluster, machine, ctx);
  if (machine.state != MachineState::kConfigured && machine.state != MachineState::kDraining) {
    p_.executor.VoidInstructions(machine.id);
  }
  p_.repairs.OnState(machine, ctx);
}

void MachineChanges::Drop(const std::string& id, const std::string& detail, StepContext& ctx) {
  PROBE("shard.machine_dropped");
  p_.executor.OnMachineDropped(id, detail, ctx);
  p_.machines.Remove(id);
  p_.repairs.Forget(id, ctx);
  p_.ledger.OnMachineDropped(id, ctx);
  ctx.cycle.Request();
}

}  // namespace muster::shard
