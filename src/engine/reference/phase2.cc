// Phase 2: capacity for needs that are still short, taken from those who can do without or matter less.
#include <algorithm>
#include <set>
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

// What a need takes, in order, and what it then still lacks.
struct Plan {
  std::vector<Offer> takes;
  Amounts left;
  bool lacks_budget = false;  // surplus that the reclaim budget bars would cover the rest
};

using Place = std::optional<Domain>;  // of a gang: where it takes machines

bool LiesIn(const Cycle& cycle, const NeedRow& need, const Place& place, MachineIndex m) {
  return !need.is_gang() || DomainOf(*cycle.machines[m].machine, need.same_keys) == place;
}

// [P2.victims] [P2.one-action] [O.session] [O.paused]
bool MayBeTaken(const Cycle& cycle, const NeedRow& need, const Place& place, MachineIndex m) {
  const MachineRow& row = cycle.machines[m];
  if (row.taken || row.state() != MachineState::kConfigured || row.machine->cluster == need.key.cluster) return false;
  if (!StateOf(cycle, row.machine->cluster).takes_part() || !CanServe(cycle, need, m)) return false;
  // [H.not-taken] It could not be acquired once it has drained.
  if (HoldOf(cycle, need, m) != Hold::kNone && !MUTANT("rule.hold_not_taken")) return false;
  return LiesIn(cycle, need, place, m);
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
std::vector<Offer> Offers(const Cycle& cycle, const NeedRow& need, const Place& place) {
  std::vector<Offer> surplus;
  std::vector<Offer> reclaims;
  std::vector<Offer> victims;
  const int32_t priority = need.need.profile.priority();
  for (const auto& [cluster, machines] : cycle.bound) {
    for (const MachineIndex m : machines) {
      if (!MayBeTaken(cycle, need, place, m)) continue;
      const MachineRow& row = cycle.machines[m];
      Offer offer{.machine = m, .gap = int64_t{priority} - row.attribution.priority};
      offer.score = VictimScore(cycle.policy.victim_weights, offer.gap, DrainMillis(cycle, *row.machine),
                                row.attribution.interruption, row.attribution.reclamation);
      // [O.gate]
      const bool is_surplus = !row.claimed_by.valid() && !row.held_for.valid() && StateOf(cycle, cluster).gate_open;
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
Amounts GangResidual(const Cycle& cycle, NeedIndex index, const Place& place) {
  const NeedRow& need = cycle.needs[index];
  Amounts residual = need.aggregate;
  const auto creditable = need.creditable.find(*place);
  const std::vector<MachineIndex> none;
  for (const auto* list :
       {creditable == need.creditable.end() ? &none : &creditable->second, &need.bootstraps, &need.provisions}) {
    for (const MachineIndex m : *list) SubtractSaturating(residual, cycle.machines[m].allocatable);
  }
  const auto in_place = [&](MachineIndex m) { return LiesIn(cycle, need, place, m); };
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    for (const Candidate& candidate : Pool(cycle, index, state, in_place)) {
      SubtractSaturating(residual, cycle.machines[candidate.machine].allocatable);
    }
  }
  return residual;
}

// What the need still lacks once everything under way has arrived. [PL.in-flight]
Amounts Residual(Cycle& cycle, NeedIndex index, const Place& place, SpreadCounts& counts) {
  const NeedRow& need = cycle.needs[index];
  Amounts residual = need.is_gang() ? GangResidual(cycle, index, place) : need.shortage;
  for (const MachineIndex m : PledgedTo(cycle, index)) {
    MachineRow& row = cycle.machines[m];
    if (!LiesIn(cycle, need, place, m) || !IsUseful(row.allocatable, residual) || !counts.Allows(*row.machine)) {
      continue;
    }
    row.held_for = index;
    counts.Add(*row.machine);
    SubtractSaturating(residual, row.allocatable);
  }
  return residual;
}

// [H.waits] Machines on hold one by one that the need waits for, rather than take a machine from somebody. They make no
// room for others in a spread: what is taken now may come before them.
std::vector<MachineIndex> Awaited(const Cycle& cycle, NeedIndex index, const Place& place, Amounts& residual,
                                  SpreadCounts counts) {
  const NeedRow& need = cycle.needs[index];
  std::vector<MachineIndex> awaited;
  if (MUTANT("rule.hold_waits")) return awaited;
  const auto in_place = [&](MachineIndex m) { return LiesIn(cycle, need, place, m); };
  for (const MachineIndex m : OnHold(cycle, index, Hold::kSingle, in_place)) {
    const MachineRow& row = cycle.machines[m];
    if (row.awaited_by.valid() || row.held_for.valid() || !IsUseful(row.allocatable, residual) ||
        !counts.Allows(*row.machine))
      continue;
    counts.Add(*row.machine);
    SubtractSaturating(residual, row.allocatable);
    awaited.push_back(m);
  }
  return awaited;
}

Amounts Less(const Cycle& cycle, Amounts from, const std::vector<Offer>& offers) {
  for (const Offer& offer : offers) SubtractSaturating(from, cycle.machines[offer.machine].allocatable);
  return from;
}

// [P2.prune] Leaves out what the rest makes redundant, the last taken first.
void PruneTakes(const Cycle& cycle, const Amounts& wanted, SpreadCounts& counts, Plan& plan) {
  for (size_t i = plan.takes.size(); i-- > 0;) {
    std::vector<Offer> without = plan.takes;
    without.erase(without.begin() + static_cast<ptrdiff_t>(i));
    if (Less(cycle, wanted, without) != plan.left) continue;
    if (!counts.Remove(*cycle.machines[plan.takes[i].machine].machine)) continue;
    PROBE("reference.offer_pruned");
    plan.takes = std::move(without);
  }
}

int64_t ReclaimsLeft(const Cycle& cycle, const std::string& cluster, const Plan& plan) {
  const auto left = cycle.reclaims_left.find(cluster);
  return (left == cycle.reclaims_left.end() ? 0 : left->second) -
         std::ranges::count_if(plan.takes, [&](const Offer& o) {
           return o.reason == Reason::kReclaimForNeed && cycle.machines[o.machine].machine->cluster == cluster;
         });
}

bool IsPastHold(const Cycle& cycle, MachineIndex m) {
  const auto since = cycle.memory.machines.at(cycle.machines[m].machine->id).unclaimed_since;
  return cycle.now - since.value_or(cycle.now) >= cycle.policy.surplus_hold;
}

// Whether one machine adds at least as much to what is lacking as the other.
bool AddsAsMuch(const Cycle& cycle, MachineIndex one, MachineIndex other, const Amounts& lacking) {
  for (size_t d = 0; d < lacking.size(); ++d) {
    const auto adds = [&](MachineIndex m) { return std::min(cycle.machines[m].allocatable[d], lacking[d]); };
    if (adds(one) < adds(other)) return false;
  }
  return true;
}

// What is left of a need's offers while it takes them one after the other. [SP.victims] a spread's skew binds it too.
class Taking {
 public:
  Taking(const Cycle& cycle, const NeedRow& need, const Place& place, const Amounts& residual, SpreadCounts& counts)
      : cycle_(cycle),
        offers_(Offers(cycle, need, place)),
        counts_(counts),
        is_gang_(need.is_gang()),
        plan_{.takes = {}, .left = residual} {
    standing_in_ = std::ranges::count_if(cycle.machines, [&](const MachineRow& row) {
      return row.state() == MachineState::kDraining && row.instead && row.pledge == need.key;
    });
    if (standing_in_ > 0) PROBE("reference.standing_in");
  }

  Plan Run() {
    const Amounts wanted = plan_.left;
    while (!IsZero(plan_.left)) {
      const auto next = Next();
      if (next == offers_.end()) break;
      TakeOffer(next);
    }
    std::erase_if(offers_, [](const Offer& offer) { return offer.kind != ActionKind::kReclaim; });
    plan_.lacks_budget = !IsZero(plan_.left) && IsZero(Less(cycle_, plan_.left, offers_));
    PruneTakes(cycle_, wanted, counts_, plan_);
    return plan_;
  }

 private:
  using Iterator = std::vector<Offer>::iterator;

  const MachineRow& Row(const Offer& offer) const { return cycle_.machines[offer.machine]; }
  bool IsOfUse(const Offer& offer) const {
    return IsUseful(Row(offer).allocatable, plan_.left) && counts_.Allows(*Row(offer).machine);
  }
  bool IsWithinBudget(const Offer& offer) const {  // [P2.reclaim-limit]
    if (offer.kind != ActionKind::kReclaim || ReclaimsLeft(cycle_, Row(offer).machine->cluster, plan_) > 0) return true;
    PROBE("reference.reclaim_limited");
    return false;
  }

  // Surplus as far as the budget goes, then victims, or surplus that stands in for them.
  Iterator Next() {
    const auto free = std::ranges::find_if(
        offers_, [&](const Offer& o) { return o.reason != Reason::kPreempt && IsOfUse(o) && IsWithinBudget(o); });
    if (free != offers_.end()) return free;
    const auto is_victim = [&](const Offer& o) { return o.reason == Reason::kPreempt && IsOfUse(o); };
    // [P2.instead] One for one: what stands in, now or since an earlier cycle, leaves so many victims alone. A gang,
    // which takes what completes it or nothing, then takes the victims too.
    const bool spent = std::ranges::count_if(offers_, is_victim) <= standing_in_;
    if (spent && !is_gang_) return offers_.end();
    const auto victim = std::ranges::find_if(offers_, is_victim);
    if (victim == offers_.end() || spent) return victim;
    if (MUTANT("rule.instead")) return victim;
    const auto unused = std::ranges::find_if(offers_, [&](const Offer& o) {
      return o.kind == ActionKind::kReclaim && IsOfUse(o) && IsPastHold(cycle_, o.machine) &&
             AddsAsMuch(cycle_, o.machine, victim->machine, plan_.left);
    });
    if (unused == offers_.end()) return victim;
    PROBE("reference.instead");
    unused->reason = Reason::kReclaimInstead;
    ++standing_in_;
    return unused;
  }

  void TakeOffer(Iterator offer) {
    SubtractSaturating(plan_.left, Row(*offer).allocatable);
    counts_.Add(*Row(*offer).machine);
    plan_.takes.push_back(*offer);
    offers_.erase(offer);
  }

  const Cycle& cycle_;
  std::vector<Offer> offers_;
  SpreadCounts& counts_;
  const bool is_gang_;
  Plan plan_;
  int64_t standing_in_ = 0;  // machines that drain, or will, instead of one that serves somebody
};

Plan Choose(const Cycle& cycle, const NeedRow& need, const Place& place, const Amounts& residual,
            SpreadCounts& counts) {
  return Taking(cycle, need, place, residual, counts).Run();
}

void Take(Cycle& cycle, NeedIndex index, const Offer& offer) {
  NeedRow& need = cycle.needs[index];
  MachineRow& row = cycle.machines[offer.machine];
  row.taken = true;
  row.pledge = need.key;  // [PL.pledge]
  row.reason = offer.reason;
  row.instead = offer.reason == Reason::kReclaimInstead;
  need.victims.push_back(offer.machine);
  if (row.claimed_by.valid()) ++cycle.needs[row.claimed_by].lost;  // [V.lost]
  if (offer.reason == Reason::kReclaimForNeed) --cycle.reclaims_left[row.machine->cluster];
  // [P2.grace]
  cycle.actions.push_back({.kind = offer.kind,
                           .machine = row.machine->id,
                           .cluster = row.machine->cluster,
                           .need = need.key,
                           .reason = offer.reason,
                           .grace = offer.kind == ActionKind::kReclaim ? kReclaimGrace : PreemptGrace(offer.gap)});
}

// Looks for what the need lacks in one place, and takes it.
void TakeIn(Cycle& cycle, NeedIndex index, const Place& place) {
  NeedRow& need = cycle.needs[index];
  SpreadCounts counts = CountClaims(cycle, need);
  const Amounts lacks = Residual(cycle, index, place, counts);
  if (IsZero(lacks)) {
    need.on_its_way = true;
    return;
  }
  Amounts residual = lacks;
  const std::vector<MachineIndex> awaited = Awaited(cycle, index, place, residual, counts);
  for (const MachineIndex m : awaited) cycle.machines[m].awaited_by = index;
  const Plan plan = Choose(cycle, need, place, residual, counts);
  need.lacks_budget = plan.lacks_budget && awaited.empty();
  // [P2.gang-completes] Half a gang is no use: it takes what completes it or nothing.
  if (need.is_gang() && !IsZero(plan.left)) {
    PROBE("reference.gang_cannot_complete");
    return;
  }
  need.on_its_way = IsZero(Less(cycle, lacks, plan.takes));
  for (const Offer& offer : plan.takes) Take(cycle, index, offer);
}

// What completing a gang in a domain costs those who lose machines for it; least first.
struct Harm {
  bool away = false;  // from the domains that hold machines of its own
  int64_t pinned = 0;
  Wide penalties = 0;
  size_t machines = 0;
  Domain domain;

  bool operator<(const Harm& other) const {
    return std::tie(away, pinned, penalties, machines, domain) <
           std::tie(other.away, other.pinned, other.penalties, other.machines, other.domain);
  }
};

Harm HarmOf(const Cycle& cycle, const NeedRow& gang, const Domain& domain, const Plan& plan) {
  Harm harm{.machines = plan.takes.size(), .domain = domain};
  const auto creditable = gang.creditable.find(domain);
  harm.away = creditable == gang.creditable.end() || std::ranges::none_of(creditable->second, [&](MachineIndex m) {
                return cycle.machines[m].state() == MachineState::kCreating || IsOwn(cycle, gang, m);
              });
  for (const Offer& offer : plan.takes) {
    const MachineRow& row = cycle.machines[offer.machine];
    if (offer.reason != Reason::kPreempt) continue;
    for (const model::Penalty& penalty : {row.attribution.interruption, row.attribution.reclamation}) {
      harm.pinned += penalty.pinned ? 1 : 0;
      harm.penalties += penalty.pinned ? 0 : penalty.finite.micros;
    }
  }
  return harm;
}

// [S.victims] No domain can hold the gang: one does, perhaps, with what lesser needs have there. The domain that
// completes it with the least harm becomes its domain.
void TakeWhereItHarmsLeast(Cycle& cycle, NeedIndex index) {
  NeedRow& gang = cycle.needs[index];
  std::set<Domain> domains;
  for (const auto& [domain, machines] : gang.creditable) domains.insert(domain);
  for (uint32_t i = 0; i < cycle.machines.size(); ++i) {
    if (!CanServe(cycle, gang, MachineIndex(i))) continue;
    domains.insert(*DomainOf(*cycle.machines[MachineIndex(i)].machine, gang.same_keys));
  }
  std::optional<Harm> least;
  for (const Domain& domain : domains) {
    SpreadCounts counts = CountClaims(cycle, gang);
    Amounts residual = GangResidual(cycle, index, domain);
    const bool awaits = !Awaited(cycle, index, domain, residual, counts).empty();
    const Plan plan = Choose(cycle, gang, domain, residual, counts);
    gang.lacks_budget = gang.lacks_budget || (plan.lacks_budget && !awaits);
    if (!IsZero(plan.left)) continue;
    const Harm harm = HarmOf(cycle, gang, domain, plan);
    if (!least || harm < *least) least = harm;
  }
  if (!least) {
    PROBE("reference.gang_cannot_complete");
    return;
  }
  PROBE("reference.gang_by_victims");
  gang.domain = least->domain;
  gang.lacks_budget = false;
  TakeIn(cycle, index, gang.domain);
}

}  // namespace

// [P2.order]
void Phase2(Cycle& cycle) {
  for (uint32_t i = 0; i < cycle.needs.size(); ++i) {
    const NeedIndex index(i);
    const NeedRow& need = cycle.needs[index];
    if (IsZero(need.shortage) || need.parked || !need.cluster.acquires()) continue;
    const bool anywhere = need.is_gang() && !need.satisfiable && PledgedTo(cycle, index).empty();
    if (anywhere && !MUTANT("rule.gang_victims")) {
      TakeWhereItHarmsLeast(cycle, index);
    } else if (!need.is_gang() || need.domain) {
      TakeIn(cycle, index, need.domain);
    }
  }
}

}  // namespace muster::engine::reference
