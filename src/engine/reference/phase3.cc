// Phase 3: what nobody claims is given back, after a while.
#include <algorithm>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::CapacityType;
using model::MachineState;
using model::Reason;

// Why this Configured, unclaimed machine stays, or kReclaimSurplus if it may go.
Reason ReclaimReason(Cycle& cycle, const MachineRow& row) {
  const ClusterState cluster = StateOf(cycle, row.machine->cluster);
  if (row.held_for.valid()) return Reason::kKeptForGang;        // [S.stays]
  if (!cluster.session) return Reason::kClusterWithoutSession;  // [O.session]
  if (cluster.paused) return Reason::kOfPausedCluster;          // [O.paused]
  if (!cluster.gate_open) return Reason::kGateShut;             // [O.gate]
  // [P3.surplus-hold] Demand that dips for a moment costs nobody a machine.
  const MonoTime since = cycle.memory.machines[row.machine->id].unclaimed_since.value_or(cycle.now);
  if (cycle.now - since < cycle.policy.surplus_hold) return Reason::kSurplusHold;
  // [H.kept] Draining it failed: the cluster gives up another meanwhile.
  const bool on_hold = cycle.world.holds.machines.contains(row.machine->id);
  if (on_hold && !MUTANT("rule.hold_kept")) return Reason::kOnHold;
  // [P3.cap-head]
  if (cycle.reclaims_left[row.machine->cluster] <= 0) return Reason::kReclaimLimit;
  return Reason::kReclaimSurplus;
}

// [P3.reclaim] In keep order, clusters by id.
void Reclaim(Cycle& cycle) {
  for (const auto& [cluster, machines] : cycle.bound) {
    for (const MachineIndex m : machines) {
      MachineRow& row = cycle.machines[m];
      if (row.state() != MachineState::kConfigured || row.claimed_by.valid() || row.taken) continue;
      row.reason = ReclaimReason(cycle, row);
      if (row.reason != Reason::kReclaimSurplus) continue;
      --cycle.reclaims_left[cluster];
      cycle.actions.push_back({.kind = ActionKind::kReclaim,
                               .machine = row.machine->id,
                               .cluster = cluster,
                               .need = std::nullopt,
                               .reason = row.reason,
                               .grace = kReclaimGrace});
    }
  }
}

// Why this unclaimed Idle machine stays, or kReleaseIdle if it may go. [P3.release-hold]
Reason ReleaseReason(const Cycle& cycle, const MachineRow& row) {
  // [PL.not-released], but [PL.no-session] a pledge to a cluster that does not acquire does not stop the clock.
  if (row.pledge && StateOf(cycle, row.pledge->cluster).acquires()) return Reason::kPledged;
  Duration hold{};
  switch (row.machine->capacity_type) {
    case CapacityType::kOnDemand: hold = cycle.policy.release_hold_on_demand; break;
    case CapacityType::kSpot: hold = cycle.policy.release_hold_spot; break;
    default: return Reason::kNeverReleased;
  }
  const MonoTime since = cycle.memory.machines.at(row.machine->id).idle_since.value_or(cycle.now);
  return cycle.now - since >= hold ? Reason::kReleaseIdle : Reason::kReleaseHold;
}

// [P3.release] By id.
void Release(Cycle& cycle) {
  for (const MachineIndex m : cycle.by_id) {
    MachineRow& row = cycle.machines[m];
    if (row.state() != MachineState::kIdle || row.claimed_by.valid()) continue;
    row.reason = ReleaseReason(cycle, row);
    if (row.reason != Reason::kReleaseIdle) continue;
    cycle.actions.push_back({.kind = ActionKind::kDelete,
                             .machine = row.machine->id,
                             .cluster = "",
                             .need = std::nullopt,
                             .reason = row.reason});
  }
}

}  // namespace

void Phase3(Cycle& cycle) {
  Reclaim(cycle);
  Release(cycle);
}

}  // namespace muster::engine::reference
