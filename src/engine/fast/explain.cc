// Names and verdicts, for people and for comparison with the reference engine.
#include <algorithm>

#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::CapacityType;
using model::MachineState;
using model::Reason;

namespace {

const Outcome kSettledOutcome{.satisfiable = true};  // of a cycle without verdicts nothing else is known

}  // namespace

ClaimKind KindOfClaim(MachineState state) {
  switch (state) {
    case MachineState::kIdle: return ClaimKind::kBootstrap;
    case MachineState::kSpeculative: return ClaimKind::kProvision;
    case MachineState::kCreating: return ClaimKind::kCreating;
    default: return ClaimKind::kCredit;
  }
}

NeedId Cycle::FirstOfKey(KeyId key) const {
  for (const NeedRow& row : demand_.NeedsOf(inventory_.key(key).cluster)) {
    if (row.key == key) return row.id;
  }
  return kNoId;
}

// By machine: the need that claimed it.
Rows<MachineId, NeedId> Cycle::Claimers() const {
  Rows<MachineId, NeedId> claimers;
  claimers.resize(inventory_.rows());
  ForEachClaim([&](const ClaimRow& claim) {
    IdSet::Cursor cursor = inventory_.group(claim.group).members.Begin();
    inventory_.Skip(claim.group, cursor, claim.first);
    for (uint32_t i = 0; i < claim.count; ++i) claimers[inventory_.Next(claim.group, cursor)] = claim.need;
  });
  return claimers;
}

NeedVerdict Cycle::VerdictOf(NeedId n) {
  const NeedRow& row = need(n);
  const Outcome& outcome = progress_[n] == Progress::kSettled ? kSettledOutcome : outcomes_[n];
  NeedVerdict verdict;
  verdict.need.cluster = inventory_.cluster(row.cluster).name;
  verdict.need.profile = demand_.info(row.profile).profile;
  verdict.need.group = inventory_.key_group(row.key);
  verdict.need.aggregate = demand_.NamedAmounts(row, row.aggregate, false);
  verdict.need.min_unit = demand_.NamedAmounts(row, fit(n).min_unit, true);
  verdict.need.arrival = WallTime(WallTime::duration(row.arrival));
  verdict.rows = demand_.RowsOf(row);
  verdict.satisfied = IsZero(outcome.shortage, dims());
  verdict.residual = demand_.NamedAmounts(row, outcome.shortage, false);
  verdict.credited = outcome.credited;
  verdict.creating = outcome.creating;
  verdict.bootstraps = outcome.bootstraps;
  verdict.provisions = outcome.provisions;
  if (outcome.gang != kNoId) {
    const GangPlan& gang = gangs_[outcome.gang];
    if (gang.domain != kNoId) verdict.domain = DomainText(fit(n).domains[gang.domain]);
    verdict.domains = gang.domains;
  }
  for (const ClassId c : fit(n).classes) {
    for (const GroupId g : catalogue().cls(c).free) {
      const Group& group = inventory_.group(g);
      (group.state == MachineState::kIdle ? verdict.supply.idle : verdict.supply.speculative) += group.size;
      if (IsHeldFrom(n, group)) verdict.supply.on_hold += group.size;
    }
    for (const GroupId g : catalogue().cls(c).bound) verdict.supply.configured += inventory_.group(g).size;
  }
  verdict.victims = outcome.victims;
  inventory_.key(row.key).ForEachPledged([&](GroupId g) {
    const Group& group = inventory_.Open(g);
    if (group.pledge_ended) return;
    inventory_.ForEachUnclaimed(g, [&](MachineId m) {
      const auto held = held_.find(m);
      const NeedId holder = held != held_.end() ? held->second : group.held_for;
      verdict.pledged += holder == n || (holder == kNoId && FirstOfKey(row.key) == n) ? 1 : 0;
    });
  });
  verdict.lost = outcome.lost;
  verdict.parked = outcome.parked;
  verdict.has_session = cluster(n).session;
  verdict.paused = cluster(n).paused;
  if (verdict.satisfied) return verdict;
  verdict.pending = outcome.pending();
  verdict.age = AgeAfter(outcome, age_before_.Has(n) ? age_before_[n] : 0);
  verdict.reason = ShortReason(n, verdict.supply);
  return verdict;
}

// The need may not acquire machines of this free group for now.
bool Cycle::IsHeldFrom(NeedId n, const Group& group) const {
  const bool bought = group.state == MachineState::kSpeculative;
  return inventory_.IsOnHold(group, need(n).cluster) || (bought && catalogue().cls(group.cls).out_of_stock);
}

bool Cycle::AsksForTheUnknown(NeedId n) const {
  for (size_t d = 0; d < dims(); ++d) {
    const bool asked = need(n).aggregate[d] > 0 || fit(n).min_unit[d] > 0;
    if (asked && most_[d] == 0 && inventory_.machines() > 0) return true;
  }
  return false;
}

// A machine on hold would help it.
bool Cycle::IsOutOfStock(NeedId n) {
  for (const ClassId c : fit(n).classes) {
    for (const GroupId g : catalogue().cls(c).free) {
      const Group& group = inventory_.group(g);
      if (!IsHeldFrom(n, group) || inventory_.Remaining(g) == 0) continue;
      if (IsUseful(each(g), outcomes_[n].shortage, dims())) return true;
    }
  }
  return false;
}

Reason Cycle::ShortReason(NeedId n, const SupplyCount& supply) {
  const Outcome& outcome = outcomes_[n];
  if (!cluster(n).session) return Reason::kNoSession;
  if (cluster(n).paused) return Reason::kClusterPaused;
  if (cluster(n).on_hold) return Reason::kClusterOnHold;
  if (outcome.on_its_way) return Reason::kDraining;
  if (outcome.lacks_budget) return Reason::kReclaimsSpent;
  if (AsksForTheUnknown(n)) return Reason::kNoSuchResource;
  const bool has_domain = outcome.gang != kNoId && gangs_[outcome.gang].domain != kNoId;
  const bool hopeful = outcome.satisfiable || outcome.hopeful;
  if (need(n).is_gang && (!hopeful || outcome.parked || !has_domain)) return Reason::kTopologyUnsatisfiable;
  if (IsOutOfStock(n)) return Reason::kOutOfStock;
  if (supply == SupplyCount{}) return Reason::kNoMatchingSupply;
  return outcome.victims > 0 ? Reason::kPreemptionExhausted : Reason::kPriorityStarved;
}

MachineVerdict Cycle::VerdictOf(MachineId m, const Rows<MachineId, NeedId>& claimers) {
  MachineVerdict verdict{.machine = std::string(inventory_.id(m))};
  const auto action = std::ranges::find(actions_, m, &FastAction::machine);
  const bool acts = action != actions_.end();
  const MachineState state = inventory_.state(m);
  if (IsTaken(m)) {
    verdict.need = FirstOfKey(need(action->need).key).value();
    verdict.reason = action->reason;
    return verdict;
  }
  if (claimers[m] != kNoId) {
    verdict.need = claimers[m].value();
    verdict.reason = Reason::kClaimed;
    return verdict;
  }
  const bool pledged = inventory_.pledge_of(m) != kNoId && state != MachineState::kCreating;
  if (pledged && !acts) {
    verdict.need = FirstOfKey(inventory_.pledge_of(m)).value();
    verdict.reason = Reason::kPledged;
    return verdict;
  }
  const GroupId g = inventory_.group_of(m);
  const bool bound = state == MachineState::kConfigured || state == MachineState::kConfiguring;
  if (bound && g != kNoId && inventory_.group(g).cycle == inventory_.cycle() && inventory_.group(g).kept) {
    verdict.need = inventory_.group(g).held_for.value();
    verdict.reason = Reason::kKeptForGang;
    return verdict;
  }
  switch (state) {
    case MachineState::kFailed: verdict.reason = Reason::kFailed; break;
    case MachineState::kSpeculative: {
      const Group& group = inventory_.group(inventory_.group_of(m));
      const bool held = group.hold == HoldSets::kEveryone || catalogue().cls(group.cls).out_of_stock;
      verdict.reason = held ? Reason::kOnHold : Reason::kUnneeded;
      break;
    }
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
      const bool on_hold = inventory_.group(g).hold == HoldSets::kEveryone;
      verdict.reason = acts                 ? Reason::kReclaimSurplus
                       : !cluster.session   ? Reason::kClusterWithoutSession
                       : cluster.paused     ? Reason::kOfPausedCluster
                       : !cluster.gate_open ? Reason::kGateShut
                       : held               ? Reason::kSurplusHold
                       : on_hold            ? Reason::kOnHold
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
  most_ = {};
  for (const MachineId m : inventory_.by_id()) {
    const Amounts& each = catalogue().each(inventory_.cls(m));
    for (size_t d = 0; d < dims(); ++d) most_[d] = std::max(most_[d], each[d]);
  }
  for (const FastAction& action : actions_) decision.actions.push_back(Name(action));
  const Rows<MachineId, NeedId> claimers = Claimers();
  Rows<NeedId, std::vector<MachineId>> claimed;
  claimed.resize(outcomes_.size());
  for (const MachineId m : inventory_.by_id()) {
    if (claimers[m] != kNoId) claimed[claimers[m]].push_back(m);
  }
  for (const NeedId n : outcomes_.ids()) {
    decision.needs.push_back(VerdictOf(n));
    for (const MachineId m : claimed[n]) {
      decision.claims.push_back(
          {.machine = std::string(inventory_.id(m)), .need = n.value(), .kind = KindOfClaim(inventory_.state(m))});
    }
  }
  for (const MachineId m : inventory_.by_id()) decision.machines.push_back(VerdictOf(m, claimers));
  return decision;
}

}  // namespace muster::engine::fast
