// Gangs: needs with Same, whose machines must share one domain. [S.one-domain] [S.whole]
#include <algorithm>
#include <iterator>
#include <map>

#include "base/probe.h"
#include "engine/reference/cycle.h"

namespace muster::engine::reference {
namespace {

using model::MachineState;
using Totals = std::vector<Wide>;

// What one domain has for the gang, in the order it would be taken.
struct Supply {
  std::vector<MachineIndex> own;       // bound to the cluster and the gang's own, in keep order
  std::vector<MachineIndex> rest;      // bound to the cluster, other needs' machines, in keep order
  std::vector<MachineIndex> creating;  // the gang's own Creating ones
  std::vector<MachineIndex> free;      // Idle and Speculative it may acquire
  std::vector<MachineIndex> single;    // it could acquire them, were they not on hold one by one
  std::vector<MachineIndex> stock;     // nor these, out of stock by class
  std::vector<MachineIndex> pledged;   // Idle (in `free` too) and Draining ones taken for it
};

// What the ranking reads of a domain.
struct Rank {
  Domain domain;
  bool satisfiable_now = false;    // without waiting for a hold to pass, or where it has begun
  bool satisfiable = false;        // with machines on hold one by one
  bool hopeful = false;            // with what is out of stock too
  bool satisfiable_later = false;  // once what drains for it has arrived
  int64_t pledged = 0;
  Wide kept = 0;  // own coverage, for a gang that does not look for more: it stays where its own machines are
  Wide capped_total = 0;
  Wide capped_creditable = 0;
  Wide capped_own = 0;
  Wide tightness = 0;  // uncapped score: smaller fits tighter
  int64_t count = 0;
};

void AddTo(const Cycle& cycle, const std::vector<MachineIndex>& machines, Totals& totals) {
  for (const MachineIndex m : machines) {
    for (size_t d = 0; d < totals.size(); ++d) totals[d] += cycle.machines[m].allocatable[d];
  }
}

Wide Score(const Totals& totals, const Amounts& deficit, bool capped) {
  Wide score = 0;
  for (size_t d = 0; d < deficit.size(); ++d) {
    if (deficit[d] == 0) continue;
    const Wide ratio = Ratio(totals[d], deficit[d]);
    score += capped ? std::min<Wide>(ratio, kOne) : ratio;
  }
  return score;
}

bool Covers(const Totals& totals, const Amounts& deficit) {
  for (size_t d = 0; d < deficit.size(); ++d) {
    if (totals[d] < deficit[d]) return false;
  }
  return true;
}

Rank RankOf(const Cycle& cycle, const NeedRow& gang, const Domain& domain, const Supply& supply, bool looks) {
  Totals own(gang.aggregate.size(), 0);
  AddTo(cycle, supply.own, own);
  AddTo(cycle, supply.creating, own);
  Totals creditable = own;
  AddTo(cycle, supply.rest, creditable);
  Totals free = creditable;
  AddTo(cycle, supply.free, free);
  Totals total = free;
  AddTo(cycle, supply.single, total);
  Totals all = total;
  AddTo(cycle, supply.stock, all);
  // [H.stays] Where it has begun, a machine that is on hold for a moment is no reason to leave; elsewhere none to come.
  const bool begun =
      (!supply.own.empty() || !supply.creating.empty() || !supply.pledged.empty()) && !MUTANT("rule.hold_stays");
  const bool satisfiable_now = Covers(begun ? total : free, gang.aggregate);
  if (satisfiable_now && !begun) total = free;
  Totals later = total;
  for (const MachineIndex m : supply.pledged) {
    if (cycle.machines[m].state() == MachineState::kDraining) AddTo(cycle, {m}, later);
  }
  Rank rank{.domain = domain,
            .satisfiable_now = satisfiable_now,
            .satisfiable = Covers(total, gang.aggregate),
            .hopeful = Covers(all, gang.aggregate),
            .satisfiable_later = Covers(later, gang.aggregate),
            .pledged = static_cast<int64_t>(supply.pledged.size()),
            .capped_total = Score(total, gang.aggregate, true),
            .capped_creditable = Score(creditable, gang.aggregate, true),
            .capped_own = Score(own, gang.aggregate, true)};
  if (!looks) rank.kept = rank.capped_own;
  // [S.settled-rank] A gang that its cluster already covers does not look at shared supply.
  const bool settled = Covers(creditable, gang.aggregate);
  if (settled) PROBE("reference.gang_settled");
  rank.tightness = Score(settled ? creditable : total, gang.aggregate, false);
  rank.count = static_cast<int64_t>(supply.own.size() + supply.rest.size() + supply.creating.size() +
                                    (settled ? 0 : supply.free.size() + supply.single.size()));
  return rank;
}

// [S.rank]
bool IsBetter(const Rank& a, const Rank& b) {
  if (a.satisfiable_now != b.satisfiable_now) return a.satisfiable_now;
  if (a.satisfiable != b.satisfiable) return a.satisfiable;
  if (a.satisfiable) {
    if (a.capped_creditable != b.capped_creditable) return a.capped_creditable > b.capped_creditable;
    if (a.capped_own != b.capped_own) return a.capped_own > b.capped_own;
    if (a.tightness != b.tightness) return a.tightness < b.tightness;
  } else {
    if (a.kept != b.kept) return a.kept > b.kept;  // [S.parked-stays]
    if (a.capped_total != b.capped_total) return a.capped_total > b.capped_total;
    if (a.capped_creditable != b.capped_creditable) return a.capped_creditable > b.capped_creditable;
  }
  if (a.count != b.count) return a.count > b.count;
  PROBE("reference.tie.domain");
  return a.domain < b.domain;
}

std::map<Domain, Supply> CollectSupply(const Cycle& cycle, NeedIndex index, bool with_free) {
  const NeedRow& gang = cycle.needs[index];
  std::map<Domain, Supply> supply;
  const auto in_domain = [&](MachineIndex m) -> Supply& {
    return supply[*DomainOf(*cycle.machines[m].machine, gang.same_keys)];
  };
  if (const auto bound = cycle.bound.find(gang.key.cluster); bound != cycle.bound.end()) {
    for (const MachineIndex m : OwnFirst(cycle, gang, bound->second)) {
      Supply& domain = in_domain(m);
      (IsOwn(cycle, gang, m) ? domain.own : domain.rest).push_back(m);
    }
  }
  for (const MachineIndex m : OwnCreating(cycle, gang)) in_domain(m).creating.push_back(m);
  for (const MachineIndex m : PledgedTo(cycle, index)) in_domain(m).pledged.push_back(m);
  if (!with_free) return supply;
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    for (const Candidate& candidate : Pool(cycle, index, state, {})) {
      in_domain(candidate.machine).free.push_back(candidate.machine);
    }
  }
  for (const Candidate& candidate : PledgedIdle(cycle, index, {})) {
    in_domain(candidate.machine).free.push_back(candidate.machine);
  }
  for (const MachineIndex m : OnHold(cycle, index, Hold::kSingle, {})) in_domain(m).single.push_back(m);
  for (const MachineIndex m : OnHold(cycle, index, Hold::kClass, {})) in_domain(m).stock.push_back(m);
  return supply;
}

// [H.counts] What is on hold counts: that a hold passes is no new supply.
int64_t CountSupply(const std::map<Domain, Supply>& supply) {
  size_t count = 0;
  for (const auto& [domain, s] : supply) {
    count += s.own.size() + s.rest.size() + s.creating.size() + s.free.size() + s.single.size() + s.stock.size();
  }
  return static_cast<int64_t>(count);
}

// [S.park] Tried in vain for a while, and nothing has come since: it keeps what it has and stops looking.
bool IsParked(const Cycle& cycle, NeedIndex index, int64_t supply_now) {
  const NeedRow& gang = cycle.needs[index];
  const auto known = cycle.memory.needs.find(gang.key);
  if (known == cycle.memory.needs.end() || known->second.hopeless < cycle.policy.park_after) return false;
  if (!gang.cluster.acquires() || !PledgedTo(cycle, index).empty()) return false;
  if (supply_now > known->second.supply_seen) {  // [S.unpark]
    PROBE("reference.unparked_by_supply");
    return false;
  }
  const int32_t every = std::max(1, cycle.policy.reprobe_every);
  const bool probe = (known->second.hopeless - cycle.policy.park_after + 1) % every == 0;
  if (probe) PROBE("reference.park_probe");
  return !probe;
}

bool HoldsMorePledges(const Rank& a, const Rank& b) {
  if (a.satisfiable_later != b.satisfiable_later) return a.satisfiable_later;
  if (a.pledged != b.pledged) return a.pledged > b.pledged;
  return a.domain < b.domain;
}

// [S.choose-once] By rank, unless pledges tie the gang to their domain [S.pledge-domain]: to the one that will hold it
// whole, or, while no domain does, to the one with most of them.
void ChooseDomain(Cycle& cycle, NeedIndex index, const std::map<Domain, Supply>& supply, bool looks) {
  NeedRow& gang = cycle.needs[index];
  std::vector<Rank> ranks;
  for (const auto& [domain, s] : supply) ranks.push_back(RankOf(cycle, gang, domain, s, looks));
  std::ranges::sort(ranks, IsBetter);
  const auto demanded = std::ranges::count_if(gang.aggregate, [](int64_t amount) { return amount > 0; });
  for (const Rank& rank : ranks) {
    if (gang.domains.size() == 6) break;
    gang.domains.push_back({.domain = DomainText(rank.domain),
                            .coverage_per_mille = static_cast<int64_t>(rank.capped_total * 1000 / (demanded * kOne)),
                            .satisfiable = rank.satisfiable});
  }
  if (ranks.empty()) return;
  const Rank* choice = &ranks.front();
  const Rank* tied = nullptr;
  for (const Rank& rank : ranks) {
    if (rank.pledged > 0 && (tied == nullptr || HoldsMorePledges(rank, *tied))) tied = &rank;
  }
  if (tied != nullptr && (tied->satisfiable_later || !choice->satisfiable)) {
    PROBE("reference.domain_by_pledge");
    choice = tied;
  }
  gang.domain = choice->domain;
  gang.satisfiable = choice->satisfiable;
  gang.hopeful = std::ranges::any_of(ranks, &Rank::hopeful);
}

// [S.stays] Machines come to the gang in one domain: its own ones elsewhere stay until it is complete there.
void KeepElsewhere(Cycle& cycle, NeedIndex index, const std::map<Domain, Supply>& supply) {
  const NeedRow& gang = cycle.needs[index];
  const auto chosen = supply.find(*gang.domain);
  if (chosen->second.pledged.empty() || IsZero(gang.shortage) || MUTANT("rule.gang_stays")) return;
  for (const auto& [domain, s] : supply) {
    if (domain == *gang.domain) continue;
    for (const MachineIndex m : s.own) {
      PROBE("reference.gang_stays");
      cycle.machines[m].held_for = index;
    }
  }
}

// In its domain: all of it, or what is its own. [S.whole]
void ClaimWholeOrOwn(Cycle& cycle, NeedIndex index, const Supply& chosen, bool may_acquire) {
  NeedRow& gang = cycle.needs[index];
  Amounts shortage = gang.aggregate;
  std::vector<MachineIndex> credits;
  for (const MachineIndex m : gang.creditable[*gang.domain]) {
    if (!IsUseful(cycle.machines[m].allocatable, shortage)) continue;
    credits.push_back(m);
    SubtractSaturating(shortage, cycle.machines[m].allocatable);
  }
  Acquisition plan;
  if (may_acquire && !IsZero(shortage)) {
    plan = PlanAcquisition(cycle, index, shortage, [&](MachineIndex m) {
      return DomainOf(*cycle.machines[m].machine, gang.same_keys) == gang.domain;
    });
  }
  // Draining machines pledged to it will come: they count in the test, not in what it acquires.
  for (const MachineIndex m : chosen.pledged) {
    MachineRow& row = cycle.machines[m];
    row.held_for = index;
    if (row.state() == MachineState::kDraining) SubtractSaturating(shortage, row.allocatable);
  }
  const bool whole = IsZero(shortage);
  gang.satisfiable = gang.satisfiable || whole;
  if (whole || MUTANT("rule.gang_whole")) {
    for (const MachineIndex m : credits) ClaimCredit(cycle, index, m);
    for (const auto* list : {&plan.pledged, &plan.idle, &plan.speculative}) {
      for (const MachineIndex m : *list) ClaimAcquisition(cycle, index, m);
    }
    return;
  }
  PROBE("reference.gang_not_whole");
  for (const auto* list : {&chosen.own, &chosen.creating}) {
    for (const MachineIndex m : *list) {
      if (IsUseful(cycle.machines[m].allocatable, gang.shortage)) ClaimCredit(cycle, index, m);
    }
  }
}

}  // namespace

void ServeGang(Cycle& cycle, NeedIndex index) {
  NeedRow& gang = cycle.needs[index];
  if (IsZero(gang.aggregate)) return;
  std::map<Domain, Supply> supply = CollectSupply(cycle, index, true);
  gang.supply_now = CountSupply(supply);
  gang.parked = IsParked(cycle, index, gang.supply_now);
  const bool may_acquire = gang.cluster.acquires() && !gang.parked;
  if (!may_acquire) supply = CollectSupply(cycle, index, false);
  for (const auto& [domain, s] : supply) {
    std::vector<MachineIndex>& creditable = gang.creditable[domain];
    for (const auto* list : {&s.own, &s.rest, &s.creating}) std::ranges::copy(*list, std::back_inserter(creditable));
  }
  ChooseDomain(cycle, index, supply, may_acquire);
  if (!gang.domain) return;

  ClaimWholeOrOwn(cycle, index, supply[*gang.domain], may_acquire);
  KeepElsewhere(cycle, index, supply);
}

}  // namespace muster::engine::reference
