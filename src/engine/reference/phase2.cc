// Phase 2: capacity for needs that are still short, taken from those who can do without or matter less.
#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;
using model::Reason;

struct Offer {
  MachineIndex machine;
  ActionKind kind = ActionKind::kPreempt;
  Reason reason = Reason::kPreempt;
  int64_t gap = 0;
  Wide score = 0;
};

// [P2.victims] [P2.one-action] [O.session]
bool MayBeTaken(const Cycle& cycle, const NeedRow& need, MachineIndex m) {
  const MachineRow& row = cycle.machines[m];
  if (row.taken || row.state() != MachineState::kConfigured || row.machine->cluster == need.key.cluster) return false;
  if (!StateOf(cycle, row.machine->cluster).session || !CanServe(cycle, need, m)) return false;
  return !need.is_gang() || DomainOf(*row.machine, need.same_keys) == need.domain;
}

int64_t DrainMillis(const Cycle& cycle, const model::Machine& machine) {
  const auto it = cycle.memory.drains.find(machine.instance_type);
  return it == cycle.memory.drains.end() ? kUnknownDrainMillis : MeanDrainMillis(it->second);
}

// [P2.score] Best victim first, then by id.
void SortByScore(const Cycle& cycle, std::vector<Offer>& offers) {
  std::ranges::sort(offers, [&](const Offer& a, const Offer& b) {
    if (a.score != b.score) return a.score > b.score;
    PROBE("reference.tie.victim");
    return cycle.machines[a.machine].machine->id < cycle.machines[b.machine].machine->id;
  });
}

// Everything the need may take, in the order it takes it: surplus of lower priority, other surplus, victims.
std::vector<Offer> Offers(const Cycle& cycle, const NeedRow& need) {
  std::vector<Offer> surplus;
  std::vector<Offer> reclaims;
  std::vector<Offer> victims;
  const int32_t priority = need.need.profile.priority();
  for (const auto& [cluster, machines] : cycle.bound) {
    for (const MachineIndex m : machines) {
      if (!MayBeTaken(cycle, need, m)) continue;
      const MachineRow& row = cycle.machines[m];
      Offer offer{.machine = m, .gap = int64_t{priority} - row.attribution.priority};
      offer.score = VictimScore(cycle.policy.victim_weights, offer.gap, DrainMillis(cycle, *row.machine),
                                row.attribution.interruption, row.attribution.reclamation);
      // [O.gate]
      const bool is_surplus = !row.claimed_by.valid() && StateOf(cycle, cluster).gate_open;
      if (is_surplus && !MUTANT("rule.surplus_first")) {
        offer.kind = offer.gap > 0 ? ActionKind::kPreempt : ActionKind::kReclaim;
        offer.reason = offer.gap > 0 ? Reason::kPreemptSurplus : Reason::kReclaimForNeed;
        (offer.gap > 0 ? surplus : reclaims).push_back(offer);
      } else if (offer.gap > 0) {
        victims.push_back(offer);
      }
    }
  }
  SortByScore(cycle, surplus);
  SortByScore(cycle, victims);
  // [P2.surplus-first] [P2.reclaim-for-need]
  surplus.insert(surplus.end(), reclaims.begin(), reclaims.end());
  surplus.insert(surplus.end(), victims.begin(), victims.end());
  return surplus;
}

// Where the need's machines lie: what it claims, and what is on its way to it as that is found out.
SpreadCounts CountClaims(const Cycle& cycle, const NeedRow& need) {
  SpreadCounts counts(cycle, need);
  for (const auto* list : {&need.credits, &need.creating, &need.bootstraps, &need.provisions}) {
    for (const MachineIndex m : *list) counts.Add(*cycle.machines[m].machine);
  }
  return counts;
}

// [P2.gang-residual] What a gang lacks beside all it could credit or acquire in its domain, had it been whole.
Amounts GangResidual(const Cycle& cycle, NeedIndex index, const Filter& in_domain) {
  const NeedRow& need = cycle.needs[index];
  Amounts residual = need.aggregate;
  for (const auto* list : {&need.could_credit, &need.bootstraps, &need.provisions}) {
    for (const MachineIndex m : *list) SubtractSaturating(residual, cycle.machines[m].allocatable);
  }
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    for (const Candidate& candidate : Pool(cycle, index, state, in_domain)) {
      SubtractSaturating(residual, cycle.machines[candidate.machine].allocatable);
    }
  }
  return residual;
}

// What the need still lacks once everything under way has arrived. [PL.in-flight]
Amounts Residual(Cycle& cycle, NeedIndex index, SpreadCounts& counts) {
  const NeedRow& need = cycle.needs[index];
  const auto in_domain = [&](MachineIndex m) {
    return !need.is_gang() || DomainOf(*cycle.machines[m].machine, need.same_keys) == need.domain;
  };
  Amounts residual = need.is_gang() ? GangResidual(cycle, index, in_domain) : need.shortage;
  for (const MachineIndex m : PledgedTo(cycle, index)) {
    MachineRow& row = cycle.machines[m];
    if (!in_domain(m) || !IsUseful(row.allocatable, residual) || !counts.Allows(*row.machine)) continue;
    row.held_for = index;
    counts.Add(*row.machine);
    SubtractSaturating(residual, row.allocatable);
  }
  return residual;
}

// [P2.prune] Leaves out what the rest makes redundant, the last taken first.
std::vector<Offer> PruneOffers(const Cycle& cycle, std::vector<Offer> chosen, const Amounts& wanted,
                               const Amounts& left, SpreadCounts& counts) {
  for (size_t i = chosen.size(); i-- > 0;) {
    Amounts without = wanted;
    for (size_t j = 0; j < chosen.size(); ++j) {
      if (j != i) SubtractSaturating(without, cycle.machines[chosen[j].machine].allocatable);
    }
    if (without != left || !counts.Remove(*cycle.machines[chosen[i].machine].machine)) continue;
    PROBE("reference.offer_pruned");
    chosen.erase(chosen.begin() + static_cast<ptrdiff_t>(i));
  }
  return chosen;
}

// Offers the need takes for this residual, in order; a spread's skew binds them too. [SP.victims]
std::vector<Offer> Choose(const Cycle& cycle, const NeedRow& need, Amounts& residual, SpreadCounts& counts) {
  const Amounts wanted = residual;
  std::vector<Offer> offers = Offers(cycle, need);
  std::vector<Offer> chosen;
  std::map<std::string, int64_t> reclaims_left = cycle.reclaims_left;
  for (size_t i = 0; i < offers.size() && !IsZero(residual);) {
    const MachineRow& row = cycle.machines[offers[i].machine];
    int64_t& left = reclaims_left[row.machine->cluster];
    const bool limited = offers[i].kind == ActionKind::kReclaim && left <= 0;  // [P2.reclaim-limit]
    if (limited) PROBE("reference.reclaim_limited");
    if (limited || !IsUseful(row.allocatable, residual) || !counts.Allows(*row.machine)) {
      ++i;
      continue;
    }
    if (offers[i].kind == ActionKind::kReclaim) --left;
    SubtractSaturating(residual, row.allocatable);
    counts.Add(*row.machine);
    chosen.push_back(offers[i]);
    offers.erase(offers.begin() + static_cast<ptrdiff_t>(i));
    if (!need.spread.empty()) i = 0;  // an offer passed over may be allowed now
  }
  return PruneOffers(cycle, std::move(chosen), wanted, residual, counts);
}

void TakeOffer(Cycle& cycle, NeedIndex index, const Offer& offer) {
  NeedRow& need = cycle.needs[index];
  MachineRow& row = cycle.machines[offer.machine];
  row.taken = true;
  row.pledge = need.key;  // [PL.pledge]
  row.reason = offer.reason;
  need.victims.push_back(offer.machine);
  if (row.claimed_by.valid()) ++cycle.needs[row.claimed_by].lost;  // [V.lost]
  if (offer.kind == ActionKind::kReclaim) --cycle.reclaims_left[row.machine->cluster];
  // [P2.grace]
  cycle.actions.push_back({.kind = offer.kind,
                           .machine = row.machine->id,
                           .cluster = row.machine->cluster,
                           .need = need.key,
                           .reason = offer.reason,
                           .grace = offer.kind == ActionKind::kReclaim ? kReclaimGrace : PreemptGrace(offer.gap)});
}

}  // namespace

// [P2.order]
void Phase2(Cycle& cycle) {
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) {
    const NeedIndex index(i);
    NeedRow& need = cycle.needs[index];
    if (IsZero(need.shortage) || need.parked || !need.has_session) continue;
    if (need.is_gang() && !need.domain) continue;
    SpreadCounts counts = CountClaims(cycle, need);
    Amounts residual = Residual(cycle, index, counts);
    if (IsZero(residual)) {
      need.on_its_way = true;
      continue;
    }
    const std::vector<Offer> chosen = Choose(cycle, need, residual, counts);
    // [P2.gang-completes] Half a gang is no use: it takes what completes it or nothing.
    if (need.is_gang() && !IsZero(residual)) {
      PROBE("reference.gang_cannot_complete");
      continue;
    }
    need.on_its_way = IsZero(residual);
    for (const Offer& offer : chosen) TakeOffer(cycle, index, offer);
  }
}

}  // namespace muster::engine::reference
