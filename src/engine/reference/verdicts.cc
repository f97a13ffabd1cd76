// What the cycle says about each need and machine, and what it remembers.
#include <algorithm>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;
using model::Reason;

SupplyCount CountSupply(const Cycle& cycle, const NeedRow& need) {
  SupplyCount supply;
  for (const MachineIndex m : cycle.by_id) {
    const MachineState state = cycle.machines[m].state();
    int64_t* count = state == MachineState::kIdle          ? &supply.idle
                     : state == MachineState::kSpeculative ? &supply.speculative
                     : state == MachineState::kConfigured  ? &supply.configured
                                                           : nullptr;
    if (count == nullptr || !CanServe(cycle, need, m)) continue;
    ++*count;
    const bool acquirable = state == MachineState::kIdle || state == MachineState::kSpeculative;
    if (acquirable && HoldOf(cycle, need, m) != Hold::kNone) ++supply.on_hold;
  }
  return supply;
}

// [A.dimensions] No machine offers something it asks for.
bool AsksForTheUnknown(const Cycle& cycle, const NeedRow& need) {
  for (size_t d = 0; d < need.aggregate.size(); ++d) {
    const auto offers = [&](const MachineRow& row) { return row.allocatable[d] > 0; };
    const bool asked = need.aggregate[d] > 0 || need.min_unit[d] > 0;
    if (asked && !cycle.machines.empty() && std::ranges::none_of(cycle.machines, offers)) return true;
  }
  return false;
}

// [H.reason] A machine on hold would help it.
bool IsOutOfStock(const Cycle& cycle, const NeedRow& need) {
  for (const MachineIndex m : cycle.by_id) {
    const MachineRow& row = cycle.machines[m];
    const bool free = row.state() == MachineState::kIdle || row.state() == MachineState::kSpeculative;
    if (!free || row.claimed_by.valid() || HoldOf(cycle, need, m) == Hold::kNone) continue;
    if (IsUseful(row.allocatable, need.shortage) && CanServe(cycle, need, m)) return true;
  }
  return false;
}

// [V.reason]
Reason ShortReason(const Cycle& cycle, const NeedRow& need, const SupplyCount& supply) {
  if (!need.cluster.session) return Reason::kNoSession;
  if (need.cluster.paused) return Reason::kClusterPaused;
  if (need.cluster.on_hold) return Reason::kClusterOnHold;
  if (need.on_its_way) return Reason::kDraining;
  if (need.lacks_budget) return Reason::kReclaimsSpent;
  if (AsksForTheUnknown(cycle, need)) return Reason::kNoSuchResource;
  const bool hopeful = need.satisfiable || need.hopeful;
  if (need.is_gang() && (!hopeful || need.parked || !need.domain)) return Reason::kTopologyUnsatisfiable;
  if (IsOutOfStock(cycle, need)) return Reason::kOutOfStock;
  if (supply == SupplyCount{}) return Reason::kNoMatchingSupply;
  if (!need.victims.empty()) return Reason::kPreemptionExhausted;
  return Reason::kPriorityStarved;
}

int64_t CountPledged(const Cycle& cycle, NeedIndex index) {
  int64_t count = 0;
  for (const MachineRow& row : cycle.machines) {
    const bool holds = row.state() == MachineState::kDraining || row.state() == MachineState::kIdle;
    if (!holds || row.pledge != cycle.needs[index].key || row.claimed_by.valid()) continue;
    count += row.held_for == index || (!row.held_for.valid() && cycle.first_of_key.at(*row.pledge) == index) ? 1 : 0;
  }
  return count;
}

// [V.pending] What it lacks is on its way, or waits for the budget only.
bool IsPending(const NeedRow& need) {
  if (MUTANT("rule.pending")) return false;
  return !IsZero(need.shortage) && (need.on_its_way || need.lacks_budget);
}

NeedMemory MemoryOf(const Cycle& cycle, const NeedRow& need) {
  const auto known = cycle.memory.needs.find(need.key);
  return known == cycle.memory.needs.end() ? NeedMemory{} : known->second;
}

// [V.pending] Cycles in a row it is short.
int32_t AgeOf(const Cycle& cycle, const NeedRow& need) {
  if (IsPending(need)) return 0;
  return std::max(1, MemoryOf(cycle, need).age_unmet + (cycle.world.counts_ages ? 1 : 0));
}

// [V.need]
NeedVerdict VerdictOf(const Cycle& cycle, NeedIndex index) {
  const NeedRow& need = cycle.needs[index];
  NeedVerdict verdict{.need = need.need, .rows = need.rows, .satisfied = IsZero(need.shortage)};
  verdict.residual = Sparse(cycle, need.shortage);
  verdict.credited = static_cast<int64_t>(need.credits.size());
  verdict.creating = static_cast<int64_t>(need.creating.size());
  verdict.bootstraps = static_cast<int64_t>(need.bootstraps.size());
  verdict.provisions = static_cast<int64_t>(need.provisions.size());
  if (need.domain) verdict.domain = DomainText(*need.domain);
  verdict.domains = need.domains;
  verdict.supply = CountSupply(cycle, need);
  verdict.victims = static_cast<int64_t>(need.victims.size());
  verdict.pledged = CountPledged(cycle, index);
  verdict.lost = need.lost;
  verdict.parked = need.parked;
  verdict.has_session = need.cluster.session;
  verdict.paused = need.cluster.paused;
  if (!verdict.satisfied) {
    verdict.pending = IsPending(need);
    verdict.age = AgeOf(cycle, need);
    verdict.reason = ShortReason(cycle, need, verdict.supply);
  }
  return verdict;
}

// Nobody may acquire it for now.
bool IsOnHold(const Cycle& cycle, const MachineRow& row) {
  const Holds& holds = cycle.world.holds;
  return holds.machines.contains(row.machine->id) || holds.classes.contains(StockClassOf(*row.machine));
}

// [V.machine]
MachineVerdict VerdictOf(const Cycle& cycle, const MachineRow& row) {
  MachineVerdict verdict{.machine = row.machine->id, .reason = row.reason};
  if (row.taken) {
    verdict.need = cycle.first_of_key.at(*row.pledge).value();
  } else if (row.claimed_by.valid()) {
    verdict.need = row.claimed_by.value();
    verdict.reason = Reason::kClaimed;
  } else if (row.pledge && row.reason != Reason::kReleaseIdle && row.state() != MachineState::kCreating) {
    verdict.need = cycle.first_of_key.at(*row.pledge).value();
    verdict.reason = Reason::kPledged;
  } else if (row.held_for.valid() && row.state() != MachineState::kIdle) {
    verdict.need = row.held_for.value();
    verdict.reason = Reason::kKeptForGang;
  } else if (row.reason == Reason::kNone) {
    switch (row.state()) {
      case MachineState::kFailed: verdict.reason = Reason::kFailed; break;
      case MachineState::kSpeculative:
        verdict.reason = IsOnHold(cycle, row) ? Reason::kOnHold : Reason::kUnneeded;
        break;
      default: verdict.reason = Reason::kTransitional; break;
    }
  }
  return verdict;
}

void AddClaims(const Cycle& cycle, NeedIndex index, Decision& decision) {
  const NeedRow& need = cycle.needs[index];
  const size_t first = decision.claims.size();
  const auto add = [&](const std::vector<MachineIndex>& machines, ClaimKind kind) {
    for (const MachineIndex m : machines) {
      decision.claims.push_back({.machine = cycle.machines[m].machine->id, .need = index.value(), .kind = kind});
    }
  };
  add(need.credits, ClaimKind::kCredit);
  add(need.creating, ClaimKind::kCreating);
  add(need.bootstraps, ClaimKind::kBootstrap);
  add(need.provisions, ClaimKind::kProvision);
  std::ranges::sort(decision.claims.begin() + static_cast<ptrdiff_t>(first), decision.claims.end(), {},
                    &Claim::machine);
}

// Whether memory keeps this machine's attribution: it is bound, or becomes bound by this cycle's action.
bool KeepsAttribution(const MachineRow& row) {
  switch (row.state()) {
    case MachineState::kConfigured:
    case MachineState::kConfiguring:
    case MachineState::kDraining: return row.attributed;
    case MachineState::kIdle: return row.claimed_by.valid();
    default: return false;
  }
}

void Remember(const Cycle& cycle, NeedIndex index, Memory& memory) {
  const NeedRow& need = cycle.needs[index];
  if (IsZero(need.shortage)) return;
  const NeedMemory old = MemoryOf(cycle, need);
  NeedMemory next{.age_unmet = AgeOf(cycle, need)};
  // [S.park] [H.counts] A domain that holds it once a hold has passed is hope, and so are victims.
  const bool in_vain =
      need.bootstraps.empty() && need.provisions.empty() && !need.satisfiable && !need.hopeful && need.victims.empty();
  if (need.is_gang() && need.cluster.acquires() && in_vain) {
    const bool more_supply =
        !need.parked && old.hopeless >= cycle.policy.park_after && need.supply_now > old.supply_seen;
    next.hopeless = (more_supply ? 0 : old.hopeless) + 1;
    next.supply_seen = need.parked ? old.supply_seen : need.supply_now;
  }
  if (next == NeedMemory{}) return;
  NeedMemory& kept = memory.needs[need.key];  // equal rows share one: it remembers the worse of them
  kept.age_unmet = std::max(kept.age_unmet, next.age_unmet);
  kept.hopeless = std::max(kept.hopeless, next.hopeless);
  kept.supply_seen = std::max(kept.supply_seen, next.supply_seen);
}

}  // namespace

Decision Conclude(const Cycle& cycle) {
  Decision decision;
  decision.actions = cycle.actions;
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) {
    decision.needs.push_back(VerdictOf(cycle, NeedIndex(i)));
    AddClaims(cycle, NeedIndex(i), decision);
  }
  for (const MachineIndex m : cycle.by_id) decision.machines.push_back(VerdictOf(cycle, cycle.machines[m]));
  return decision;
}

Memory NextMemory(const Cycle& cycle) {
  Memory memory{.drains = cycle.memory.drains};
  for (const MachineRow& row : cycle.machines) {
    MachineMemory next = cycle.memory.machines.at(row.machine->id);
    next.attribution = KeepsAttribution(row) ? std::optional(row.attribution) : std::nullopt;
    next.pledge = row.pledge;
    next.instead = row.instead && row.pledge;
    // [P3.hold-clock] The hold runs while the machine could be reclaimed: not behind a shut gate, not for its gang.
    const ClusterState cluster = StateOf(cycle, row.machine->cluster);
    const bool unclaimed = row.state() == MachineState::kConfigured && !row.claimed_by.valid() &&
                           !row.held_for.valid() && cluster.takes_part() && cluster.gate_open;
    next.unclaimed_since = unclaimed ? std::optional(next.unclaimed_since.value_or(cycle.now)) : std::nullopt;
    if (next != MachineMemory{}) memory.machines.emplace(row.machine->id, std::move(next));
  }
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) Remember(cycle, NeedIndex(i), memory);
  return memory;
}

}  // namespace muster::engine::reference
