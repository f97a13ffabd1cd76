#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;

model::Attribution AttributionOf(const NeedRow& need) {
  const model::Profile& profile = need.need.profile;
  return {.fingerprint = need.key.fingerprint,
          .group = need.key.group,
          .priority = profile.priority(),
          .interruption = model::UpperBound(profile.interruption()),
          .reclamation = model::UpperBound(profile.reclamation())};
}

// A need without Same or spread: credit what the cluster has, acquire the rest. [P1.credit]
void ServePlain(Cycle& cycle, NeedIndex index) {
  const NeedRow& need = cycle.needs[index];
  for (const MachineIndex m : OwnFirst(cycle, need, cycle.bound[need.key.cluster])) {
    if (IsUseful(cycle.machines[m].allocatable, need.shortage)) ClaimCredit(cycle, index, m);
  }
  for (const MachineIndex m : OwnCreating(cycle, need)) {
    if (IsUseful(cycle.machines[m].allocatable, need.shortage)) ClaimCredit(cycle, index, m);
  }
  if (!need.cluster.acquires() || IsZero(need.shortage)) return;  // [O.session] [O.paused] [H.cluster]
  Amounts shortage = need.shortage;
  const Acquisition plan = PlanAcquisition(cycle, index, shortage, {});
  for (const auto* list : {&plan.pledged, &plan.idle, &plan.speculative}) {
    for (const MachineIndex m : *list) ClaimAcquisition(cycle, index, m);
  }
}

// What becomes of the pledges to a key once its last row had its turn.
void EndPledges(Cycle& cycle, const NeedKey& key) {
  std::vector<const NeedRow*> rows;
  bool covered = true;
  for (const NeedRow& need : cycle.needs) {
    if (need.key != key) continue;
    rows.push_back(&need);
    covered = covered && IsZero(need.shortage);
  }
  const bool acquires = rows.front()->cluster.acquires();
  for (uint32_t i = 0; i < cycle.machines.size(); ++i) {
    const MachineIndex m(i);
    MachineRow& row = cycle.machines[m];
    const bool holds = row.state() == MachineState::kDraining || row.state() == MachineState::kIdle;
    if (!holds || row.pledge != key || row.claimed_by.valid()) continue;
    bool ends = covered;  // [PL.covered] everybody has enough without it
    if (rows.front()->is_gang()) {
      ends = ends || (acquires && !row.held_for.valid());  // [PL.off-domain]
    } else {
      // [PL.useless] It could have been taken and was not: too small by now, of no use, or barred by the skew.
      const bool can_serve = std::ranges::any_of(rows, [&](const NeedRow* need) { return CanServe(cycle, *need, m); });
      ends = ends || !can_serve || (acquires && row.state() == MachineState::kIdle);
    }
    if (!ends) continue;
    PROBE("reference.pledge_ends");
    row.pledge.reset();
    row.held_for = {};
  }
}

}  // namespace

// [O.one-pass] One pass in order: at its turn a need credits, a gang chooses its domain, and it acquires.
void Phase1(Cycle& cycle) {
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) {
    const NeedIndex index(i);
    const NeedRow& need = cycle.needs[index];
    if (need.is_gang()) {
      ServeGang(cycle, index);
    } else if (!need.spread.empty()) {
      ServeSpread(cycle, index);
    } else {
      ServePlain(cycle, index);
    }
    const bool last_of_key = i + 1 == cycle.needs.size() || cycle.needs[NeedIndex(i + 1)].key != need.key;
    if (last_of_key) EndPledges(cycle, need.key);
  }
}

void ClaimCredit(Cycle& cycle, NeedIndex index, MachineIndex machine) {
  NeedRow& need = cycle.needs[index];
  MachineRow& row = cycle.machines[machine];
  row.claimed_by = index;
  SubtractSaturating(need.shortage, row.allocatable);
  if (row.state() == MachineState::kCreating) {
    need.creating.push_back(machine);
    return;
  }
  need.credits.push_back(machine);
  row.attribution = AttributionOf(need);  // [M.attribution]
  row.attributed = true;
}

void ClaimAcquisition(Cycle& cycle, NeedIndex index, MachineIndex machine) {
  NeedRow& need = cycle.needs[index];
  MachineRow& row = cycle.machines[machine];
  const bool idle = row.state() == MachineState::kIdle;
  row.claimed_by = index;
  SubtractSaturating(need.shortage, row.allocatable);
  (idle ? need.bootstraps : need.provisions).push_back(machine);
  if (idle) {
    row.pledge = need.key;  // [PL.pledge] until it is bound
    row.attribution = AttributionOf(need);
    row.attributed = true;
  } else {
    row.pledge = need.key;  // [P1.creating-stamp]
  }
  cycle.actions.push_back({.kind = idle ? ActionKind::kBootstrap : ActionKind::kProvision,
                           .machine = row.machine->id,
                           .cluster = need.key.cluster,
                           .need = need.key,
                           .reason = idle ? model::Reason::kAcquireIdle : model::Reason::kAcquireSpeculative});
}

std::vector<MachineIndex> OwnFirst(const Cycle& cycle, const NeedRow& need, const std::vector<MachineIndex>& from) {
  std::vector<MachineIndex> usable;
  for (const MachineIndex m : from) {
    const MachineRow& row = cycle.machines[m];
    if (row.claimed_by.valid() || row.held_for.valid()) continue;  // [S.stays]
    if (CanServe(cycle, need, m)) usable.push_back(m);
  }
  // [P1.own-first]
  if (!MUTANT("rule.own_first")) {
    std::ranges::stable_partition(usable, [&](MachineIndex m) { return IsOwn(cycle, need, m); });
  }
  return usable;
}

// [P1.own-creating]
std::vector<MachineIndex> OwnCreating(const Cycle& cycle, const NeedRow& need) {
  std::vector<MachineIndex> own;
  for (const MachineIndex m : cycle.creating) {
    const MachineRow& row = cycle.machines[m];
    if (!row.claimed_by.valid() && row.pledge == need.key && CanServe(cycle, need, m)) own.push_back(m);
  }
  return own;
}

}  // namespace muster::engine::reference
