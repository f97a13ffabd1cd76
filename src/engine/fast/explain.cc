// Names and verdicts, for people and for comparison with the reference engine.
#include <algorithm>

#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::CapacityType;
using model::MachineState;
using model::Reason;

namespace {

const Outcome kSettledOutcome{.satisfiable = true};  // what nobody asked about is not known

}  // namespace

NeedId Cycle::FirstOfKey(KeyId key) const {
  for (const NeedRow& row : demand_.NeedsOf(inventory_.key(key).cluster)) {
    if (row.key == key) return row.id;
  }
  return kNoId;
}

// By machine: the need that claimed it.
std::vector<NeedId> Cycle::Claimers() {
  std::vector<NeedId> claimers(inventory_.rows(), kNoId);
  ForEachClaim([&](const ClaimRow& claim) {
    IdSet::Cursor cursor = inventory_.group(claim.group).members.Begin();
    for (uint32_t i = 0; i < claim.first; ++i) inventory_.Next(claim.group, cursor);
    for (uint32_t i = 0; i < claim.count; ++i) claimers[inventory_.Next(claim.group, cursor)] = claim.need;
  });
  return claimers;
}

NeedVerdict Cycle::VerdictOf(NeedId n) {
  const NeedRow& row = need(n);
  const Outcome& outcome = turns_[n] == Turn::kSettled ? kSettledOutcome : outcomes_[n];
  NeedVerdict verdict;
  verdict.need.cluster = inventory_.cluster(row.cluster).name;
  verdict.need.profile = demand_.info(row.profile).profile;
  verdict.need.group = inventory_.key_group(row.key);
  verdict.need.aggregate = catalogue().Sparse(row.aggregate);
  verdict.need.min_unit = catalogue().Sparse(fit(n).min_unit);
  verdict.need.arrival = WallTime(WallTime::duration(row.arrival));
  verdict.rows = demand_.RowsOf(row);
  verdict.satisfied = IsZero(outcome.shortage, dims());
  verdict.residual = catalogue().Sparse(outcome.shortage);
  verdict.credited = outcome.credited;
  verdict.creating = outcome.creating;
  verdict.bootstraps = outcome.bootstraps;
  verdict.provisions = outcome.provisions;
  if (outcome.gang != kNoId && gangs_[outcome.gang].domain != kNoId) {
    std::string text;
    for (const std::string& value : fit(n).domains[gangs_[outcome.gang].domain]) {
      text += (text.empty() ? "" : "/") + value;
    }
    verdict.domain = text;
  }
  if (outcome.gang != kNoId) verdict.domains = gangs_[outcome.gang].domains;
  for (const ClassId c : fit(n).classes) {
    for (const GroupId g : catalogue().cls(c).free) {
      const Group& group = inventory_.group(g);
      (group.state == MachineState::kIdle ? verdict.supply.idle : verdict.supply.speculative) += group.size;
    }
    for (const GroupId g : catalogue().cls(c).bound) verdict.supply.configured += inventory_.group(g).size;
  }
  verdict.victims = outcome.victims;
  const Key& key = inventory_.key(row.key);
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.Open(g);
      if (group.pledge_ended) continue;
      IdSet::Cursor cursor = inventory_.FirstUnclaimed(g);
      for (MachineId m = inventory_.Next(g, cursor); m != kNoMachine; m = inventory_.Next(g, cursor)) {
        const auto held = held_.find(m);
        const NeedId holder = held != held_.end() ? held->second : group.held_for;
        verdict.pledged += holder == n || (holder == kNoId && FirstOfKey(row.key) == n) ? 1 : 0;
      }
    }
  }
  verdict.lost = outcome.lost;
  verdict.parked = outcome.parked;
  verdict.has_session = HasSession(n);
  if (verdict.satisfied) return verdict;
  verdict.age = (n < age_before_.size() ? age_before_[n] : 0) + 1;
  if (!verdict.has_session) {
    verdict.reason = Reason::kNoSession;
  } else if (outcome.on_its_way) {
    verdict.reason = Reason::kDraining;
  } else if (row.is_gang && (!outcome.satisfiable || outcome.parked || outcome.gang == kNoId ||
                             gangs_[outcome.gang].domain == kNoId)) {
    verdict.reason = Reason::kTopologyUnsatisfiable;
  } else if (verdict.supply == SupplyCount{}) {
    verdict.reason = Reason::kNoMatchingSupply;
  } else {
    verdict.reason = outcome.victims > 0 ? Reason::kPreemptionExhausted : Reason::kPriorityStarved;
  }
  return verdict;
}

MachineVerdict Cycle::VerdictOf(MachineId m, std::span<const NeedId> claimers) {
  MachineVerdict verdict{.machine = std::string(inventory_.id(m))};
  const auto action = std::ranges::find(actions_, m, &FastAction::machine);
  const bool acts = action != actions_.end();
  const MachineState state = inventory_.state(m);
  if (IsTaken(m)) {
    verdict.need = FirstOfKey(need(action->need).key);
    verdict.reason = action->reason;
    return verdict;
  }
  if (claimers[m] != kNoId) {
    verdict.need = claimers[m];
    verdict.reason = Reason::kClaimed;
    return verdict;
  }
  const bool pledged = inventory_.pledge_of(m) != kNoId && state != MachineState::kCreating;
  if (pledged && !acts) {
    verdict.need = FirstOfKey(inventory_.pledge_of(m));
    verdict.reason = Reason::kPledged;
    return verdict;
  }
  switch (state) {
    case MachineState::kFailed: verdict.reason = Reason::kFailed; break;
    case MachineState::kSpeculative: verdict.reason = Reason::kUnneeded; break;
    case MachineState::kIdle: {
      const CapacityType type = catalogue().cls(inventory_.cls(m)).capacity_type;
      const bool may_go = type == CapacityType::kOnDemand || type == CapacityType::kSpot;
      verdict.reason = acts ? Reason::kReleaseIdle : may_go ? Reason::kReleaseHold : Reason::kNeverReleased;
      break;
    }
    case MachineState::kConfigured: {
      if (inventory_.cluster_of(m) == kNoId) {
        verdict.reason = Reason::kTransitional;
        break;
      }
      const ClusterState& cluster = inventory_.cluster(inventory_.cluster_of(m)).state;
      // The clock was started by this very cycle where it did not run: then the hold has begun just now.
      const bool held = now_ - inventory_.since(m).value_or(now_) < policy_.surplus_hold;
      verdict.reason = acts                 ? Reason::kReclaimSurplus
                       : !cluster.session   ? Reason::kClusterWithoutSession
                       : !cluster.gate_open ? Reason::kGateShut
                       : held               ? Reason::kSurplusHold
                                            : Reason::kReclaimLimit;
      break;
    }
    default: verdict.reason = Reason::kTransitional; break;
  }
  return verdict;
}

Action Cycle::Name(const FastAction& action) const {
  Action named{
      .kind = action.kind, .machine = std::string(inventory_.id(action.machine)), .cluster = "", .need = std::nullopt};
  named.reason = action.reason;
  named.grace = std::chrono::seconds(action.grace_seconds);
  if (action.need != kNoId) named.need = inventory_.NameOf(need(action.need).key);
  const bool acquires = action.kind == ActionKind::kBootstrap || action.kind == ActionKind::kProvision;
  if (acquires) {
    named.cluster = named.need->cluster;
  } else if (action.kind != ActionKind::kDelete) {
    named.cluster = inventory_.cluster(inventory_.cluster_of(action.machine)).name;
  }
  return named;
}

Decision Cycle::Explain() {
  Decision decision;
  for (const FastAction& action : actions_) decision.actions.push_back(Name(action));
  const std::vector<NeedId> claimers = Claimers();
  std::vector<std::vector<MachineId>> claimed(outcomes_.size());
  for (const MachineId m : inventory_.by_id()) {
    if (claimers[m] != kNoId) claimed[claimers[m]].push_back(m);
  }
  for (NeedId n = 0; n < outcomes_.size(); ++n) {
    decision.needs.push_back(VerdictOf(n));
    for (const MachineId m : claimed[n]) {
      const MachineState state = inventory_.state(m);
      const ClaimKind kind = state == MachineState::kIdle          ? ClaimKind::kBootstrap
                             : state == MachineState::kSpeculative ? ClaimKind::kProvision
                             : state == MachineState::kCreating    ? ClaimKind::kCreating
                                                                   : ClaimKind::kCredit;
      decision.claims.push_back({.machine = std::string(inventory_.id(m)), .need = n, .kind = kind});
    }
  }
  for (const MachineId m : inventory_.by_id()) decision.machines.push_back(VerdictOf(m, claimers));
  return decision;
}

}  // namespace muster::engine::fast
