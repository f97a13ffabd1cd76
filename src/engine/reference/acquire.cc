#include <algorithm>
#include <array>
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

// [A.cost]
Cost CostOf(const Cycle& cycle, NeedIndex need, const MachineRow& row) {
  if (MUTANT("rule.idle_risk") && row.state() == MachineState::kIdle)
    return {.micros = row.machine->price_per_hour.micros};
  return EffectiveCost(*row.machine, cycle.needs[need].need.profile.interruption());
}

enum class Pledged : uint8_t { kToIt, kNotToIt, kEither };

// Unclaimed machines of a state that can serve the need, in pool order.
std::vector<Candidate> Candidates(const Cycle& cycle, NeedIndex index, MachineState state, const Filter& filter,
                                  Pledged pledged, Hold hold = Hold::kNone) {
  const NeedRow& need = cycle.needs[index];
  std::vector<Candidate> pool;
  for (const MachineIndex m : state == MachineState::kIdle ? cycle.idle : cycle.speculative) {
    const MachineRow& row = cycle.machines[m];
    if (row.claimed_by.valid() || (filter && !filter(m))) continue;
    const bool mine = row.pledge == need.key;
    if (pledged != Pledged::kEither && mine != (pledged == Pledged::kToIt)) continue;
    if (IsHeldByAnother(row, index) || !CanServe(cycle, need, m) || HoldOf(cycle, need, m) != hold) continue;
    Cost cost = CostOf(cycle, index, row);
    cost.reserved = IsReserved(cycle, index, row);
    pool.push_back({.machine = m, .cost = cost});
  }
  // [P1.pool-order] cheap, then small, then by id; what a later need waits for comes last.
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
  return Candidates(cycle, need, state, filter, Pledged::kNotToIt);
}

std::array<std::vector<Candidate>, 4> Pools(const Cycle& cycle, NeedIndex need, const Filter& filter) {
  std::array<std::vector<Candidate>, 4> pools;
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    for (const Candidate& candidate : Pool(cycle, need, state, filter)) {
      pools[(candidate.cost.pinned ? 2 : 0) + (state == MachineState::kIdle ? 0 : 1)].push_back(candidate);
    }
  }
  if (!pools[2].empty() || !pools[3].empty()) PROBE("reference.infinite_last");
  return pools;
}

std::vector<MachineIndex> OnHold(const Cycle& cycle, NeedIndex need, Hold hold, const Filter& filter) {
  std::vector<MachineIndex> machines;
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    for (const Candidate& candidate : Candidates(cycle, need, state, filter, Pledged::kEither, hold)) {
      machines.push_back(candidate.machine);
    }
  }
  return machines;
}

// [H.machine] [H.class] Stock is what is still to be bought: an Idle machine of the class is there already.
Hold HoldOf(const Cycle& cycle, const NeedRow& need, MachineIndex machine) {
  const model::Machine& m = *cycle.machines[machine].machine;
  const Holds& holds = cycle.world.holds;
  if (MUTANT("rule.holds")) return Hold::kNone;
  if (m.state == MachineState::kSpeculative && holds.classes.contains(StockClassOf(m))) return Hold::kClass;
  const bool single = holds.machines.contains(m.id) || holds.pairs.contains({m.id, need.key.cluster});
  return single ? Hold::kSingle : Hold::kNone;
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
  return Candidates(cycle, need, MachineState::kIdle, filter, Pledged::kToIt);
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
  // [P1.idle-first] [P1.infinite-last] Each pool covers what it can of what is left; then all are pruned together.
  const Amounts deficit = shortage;
  Amounts rest = deficit;
  std::vector<Candidate> picks;
  for (const std::vector<Candidate>& pool : Pools(cycle, need, filter)) {
    if (IsZero(rest)) break;
    for (const Candidate& pick : CoverFrom(cycle, pool, rest)) picks.push_back(pick);
    rest = deficit;
    for (const Candidate& pick : picks) SubtractSaturating(rest, cycle.machines[pick.machine].allocatable);
  }
  picks = Prune(cycle, std::move(picks), deficit);
  for (const Candidate& pick : picks) {
    const bool idle = cycle.machines[pick.machine].state() == MachineState::kIdle;
    Take(cycle, {pick}, shortage, idle ? plan.idle : plan.speculative);
  }
  return plan;
}

}  // namespace muster::engine::reference
