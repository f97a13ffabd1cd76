// What the cycle says about each need and machine, and what it remembers.
#include <algorithm>

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
    if (count != nullptr && CanServe(cycle, need, m)) ++*count;
  }
  return supply;
}

// [V.reason]
Reason ShortReason(const NeedRow& need, const SupplyCount& supply) {
  if (!need.has_session) return Reason::kNoSession;
  if (need.on_its_way) return Reason::kDraining;
  if (need.is_gang() && (!need.satisfiable || need.parked || !need.domain)) return Reason::kTopologyUnsatisfiable;
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
  verdict.has_session = need.has_session;
  if (!verdict.satisfied) {
    const auto known = cycle.memory.needs.find(need.key);
    verdict.age = (known == cycle.memory.needs.end() ? 0 : known->second.age_unmet) + 1;
    verdict.reason = ShortReason(need, verdict.supply);
  }
  return verdict;
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
  } else if (row.reason == Reason::kNone) {
    switch (row.state()) {
      case MachineState::kFailed: verdict.reason = Reason::kFailed; break;
      case MachineState::kSpeculative: verdict.reason = Reason::kUnneeded; break;
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
  const auto known = cycle.memory.needs.find(need.key);
  const NeedMemory old = known == cycle.memory.needs.end() ? NeedMemory{} : known->second;
  NeedMemory& next = memory.needs[need.key];  // equal rows share one: it remembers the worse of them
  next.age_unmet = std::max(next.age_unmet, old.age_unmet + 1);
  if (!need.is_gang() || !need.has_session) return;
  const bool in_vain = need.bootstraps.empty() && need.provisions.empty() && !need.satisfiable;
  if (!in_vain) return;
  const bool more_supply = !need.parked && old.hopeless >= cycle.policy.park_after && need.supply_now > old.supply_seen;
  next.hopeless = std::max(next.hopeless, (more_supply ? 0 : old.hopeless) + 1);
  next.supply_seen = std::max(next.supply_seen, need.parked ? old.supply_seen : need.supply_now);
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
    // [P3.hold-clock] The hold runs while the machine could be reclaimed, not behind a shut gate.
    const ClusterState cluster = StateOf(cycle, row.machine->cluster);
    const bool unclaimed =
        row.state() == MachineState::kConfigured && !row.claimed_by.valid() && cluster.session && cluster.gate_open;
    next.unclaimed_since = unclaimed ? std::optional(next.unclaimed_since.value_or(cycle.now)) : std::nullopt;
    if (next != MachineMemory{}) memory.machines.emplace(row.machine->id, std::move(next));
  }
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) Remember(cycle, NeedIndex(i), memory);
  return memory;
}

}  // namespace muster::engine::reference
