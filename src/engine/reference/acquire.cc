#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/check.h"
#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;

// [PL.reserved] What earlier gangs hold is out of reach (held_for); what later needs wait for, or needs whose cluster
// is away [PL.no-session], is a last resort.
bool IsReserved(const Cycle& cycle, NeedIndex need, const MachineRow& row) {
  if (!row.pledge || *row.pledge == cycle.needs[need].key) return false;
  PROBE("reference.reserved");
  return true;
}

bool IsHeldByAnother(const MachineRow& row, NeedIndex need) { return row.held_for.valid() && row.held_for != need; }

Cost CostOf(const Cycle& cycle, NeedIndex need, const MachineRow& row) {
  return row.state() == MachineState::kIdle
             ? IdleCost(*row.machine)
             : SpeculativeCost(*row.machine, cycle.needs[need].need.profile.interruption());
}

// Unclaimed machines of a state that can serve the need, in pool order: those pledged to it, or all others.
std::vector<Candidate> Candidates(const Cycle& cycle, NeedIndex index, MachineState state, const Filter& filter,
                                  bool pledged) {
  const NeedRow& need = cycle.needs[index];
  std::vector<Candidate> pool;
  for (const MachineIndex m : state == MachineState::kIdle ? cycle.idle : cycle.speculative) {
    const MachineRow& row = cycle.machines[m];
    if (row.claimed_by.valid() || (filter && !filter(m))) continue;
    const bool mine = row.pledge == need.key;
    if (mine != pledged || IsHeldByAnother(row, index) || !CanServe(cycle, need, m)) continue;
    Cost cost = CostOf(cycle, index, row);
    cost.reserved = IsReserved(cycle, index, row);
    pool.push_back({.machine = m, .cost = cost});
  }
  // [P1.pool-order] [A.cost] cheap, then small, then by id; what a later need waits for comes last.
  std::ranges::stable_sort(pool, [&](const Candidate& a, const Candidate& b) {
    const auto key = [&](const Candidate& c) { return std::tuple(c.cost, cycle.machines[c.machine].size); };
    return key(a) < key(b);
  });
  return pool;
}

void Take(const Cycle& cycle, const std::vector<Candidate>& picks, Amounts& shortage, std::vector<MachineIndex>& out) {
  for (const Candidate& pick : picks) {
    out.push_back(pick.machine);
    SubtractSaturating(shortage, cycle.machines[pick.machine].allocatable);
  }
}

std::vector<Candidate> CoverFrom(const Cycle& cycle, const std::vector<Candidate>& pool, const Amounts& deficit) {
  std::vector<Candidate> picks;
  for (const size_t position : BestCover(cycle, pool, deficit)) picks.push_back(pool[position]);
  return picks;
}

}  // namespace

std::vector<Candidate> Pool(const Cycle& cycle, NeedIndex need, MachineState state, const Filter& filter) {
  return Candidates(cycle, need, state, filter, false);
}

// [O.equal-rows]
std::vector<MachineIndex> PledgedTo(const Cycle& cycle, NeedIndex need) {
  std::vector<MachineIndex> pledged;
  for (const MachineIndex m : cycle.by_id) {
    const MachineRow& row = cycle.machines[m];
    if (row.state() != MachineState::kDraining && row.state() != MachineState::kIdle) continue;
    if (row.pledge != cycle.needs[need].key || row.claimed_by.valid()) continue;
    if (row.held_for.valid() && row.held_for != need) continue;
    if (CanServe(cycle, cycle.needs[need], m)) pledged.push_back(m);
  }
  return pledged;
}

std::vector<Candidate> PledgedIdle(const Cycle& cycle, NeedIndex need, const Filter& filter) {
  return Candidates(cycle, need, MachineState::kIdle, filter, true);
}

Acquisition PlanAcquisition(const Cycle& cycle, NeedIndex need, Amounts& shortage, const Filter& filter) {
  Acquisition plan;
  // [PL.pledgee-first]
  for (const Candidate& candidate : PledgedIdle(cycle, need, filter)) {
    if (!IsUseful(cycle.machines[candidate.machine].allocatable, shortage)) continue;
    PROBE("reference.pledge_kept");
    Take(cycle, {candidate}, shortage, plan.pledged);
  }
  if (IsZero(shortage)) return plan;
  // [P1.idle-first] Idle covers what it can, Speculative the rest; then both are pruned together.
  const Amounts deficit = shortage;
  Amounts rest = deficit;
  std::vector<Candidate> picks = CoverFrom(cycle, Pool(cycle, need, MachineState::kIdle, filter), rest);
  for (const Candidate& pick : picks) SubtractSaturating(rest, cycle.machines[pick.machine].allocatable);
  if (!IsZero(rest)) {
    std::ranges::copy(CoverFrom(cycle, Pool(cycle, need, MachineState::kSpeculative, filter), rest),
                      std::back_inserter(picks));
  }
  picks = Prune(cycle, std::move(picks), deficit);
  for (const Candidate& pick : picks) {
    const bool idle = cycle.machines[pick.machine].state() == MachineState::kIdle;
    Take(cycle, {pick}, shortage, idle ? plan.idle : plan.speculative);
  }
  return plan;
}

}  // namespace muster::engine::reference
