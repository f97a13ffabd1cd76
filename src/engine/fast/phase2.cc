// Phase 2: capacity for needs that are still short, from surplus and from victims.
#include <algorithm>
#include <functional>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::MachineState;
using model::Reason;

SpreadCounts Cycle::CountClaims(NeedId n) {
  SpreadCounts counts(fit(n), catalogue().filter(fit(n).filter), planners_[0]->scratch());
  for (ClaimId c = outcomes_[n].first_claim; c != kNoId; c = claims_[c].next_of_need) {
    counts.Add(DomainOf(fit(n), inventory_.group(claims_[c].group).cls), claims_[c].count);
  }
  return counts;
}

// What a gang lacks beside `rest`, once it has all it acquired, or could acquire, in the domain.
Amounts Cycle::GangResidual(NeedId n, DomainId domain, Amounts rest) {
  for (ClaimId c = outcomes_[n].first_claim; c != kNoId; c = claims_[c].next_of_need) {
    const MachineState state = inventory_.group(claims_[c].group).state;
    const bool acquired = state == MachineState::kIdle || state == MachineState::kSpeculative;
    if (acquired) Subtract(rest, each(claims_[c].group), claims_[c].count, dims());
  }
  for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
    planners_[0]->Offerers(n, state, domain, offerers_);
    for (const Offerer& offerer : offerers_) {
      const uint32_t held = inventory_.Open(offerer.group).held;
      Subtract(rest, each(offerer.group), inventory_.Remaining(offerer.group) - held, dims());
    }
  }
  return rest;
}

// Takes off what is on its way to the need.
void Cycle::CountPledges(NeedId n, Wanting& wanting) {
  const NeedRow& row = need(n);
  const Fit& classes = fit(n);
  if (!inventory_.key_state(row.key).has_pledges) return;
  merge_.Clear();
  std::vector<GroupId> groups;
  inventory_.key(row.key).ForEachPledged([&](GroupId g) {
    const Group& group = inventory_.Open(g);
    if (group.pledge_ended || !classes.Has(group.cls) || (group.held_for != kNoId && group.held_for != n)) return;
    if (row.is_gang && DomainOf(classes, group.cls) != wanting.domain) return;
    merge_.Add(g);
    groups.push_back(g);
  });
  for (; !merge_.empty(); merge_.Step()) {
    Group& group = inventory_.group(groups[merge_.source()]);
    const auto held = held_.find(merge_.machine());
    if (held != held_.end() && held->second != n) continue;
    if (!IsUseful(inventory_.each(group), wanting.residual, dims())) continue;
    if (wanting.counts != nullptr && !wanting.counts->Allows(DomainOf(classes, group.cls))) continue;
    if (held_.emplace(merge_.machine(), n).second) ++group.held;
    if (wanting.counts != nullptr) wanting.counts->Add(DomainOf(classes, group.cls), 1);
    Subtract(wanting.residual, inventory_.each(group), 1, dims());
  }
}

// Takes off what the need waits for: machines on hold one by one.
void Cycle::CountAwaited(NeedId n, Wanting& wanting, std::vector<MachineId>& awaited) {
  awaited.clear();
  if (inventory_.held_free().empty()) return;
  planners_[0]->OnHold(n, wanting.domain, offerers_);
  std::optional<SpreadCounts> counts;  // they make no room for what is taken now
  if (wanting.counts != nullptr) counts.emplace(*wanting.counts);
  const auto order = [&](const Offerer& o) { return std::tuple(inventory_.group(o.group).state, o.cost, o.size); };
  for (size_t i = 0; i < offerers_.size();) {
    merge_.Clear();
    const size_t first = i;
    for (; i < offerers_.size() && order(offerers_[i]) == order(offerers_[first]); ++i) merge_.Add(offerers_[i].group);
    for (; !merge_.empty(); merge_.Step()) {
      const GroupId g = offerers_[first + merge_.source()].group;
      if (awaited_.contains(merge_.machine()) || held_.contains(merge_.machine())) continue;
      if (!IsUseful(each(g), wanting.residual, dims())) continue;
      const DomainId domain = counts ? DomainOf(fit(n), inventory_.group(g).cls) : DomainId();
      if (counts && !counts->Allows(domain)) continue;
      if (counts) counts->Add(domain, 1);
      Subtract(wanting.residual, each(g), 1, dims());
      awaited.push_back(merge_.machine());
    }
  }
}

int64_t Cycle::StandingInFor(NeedId n) {
  int64_t count = 0;
  if (!inventory_.key_state(need(n).key).has_pledges) return count;
  for (const GroupId g : inventory_.key(need(n).key).draining) {
    if (inventory_.Open(g).pledge_ended) continue;
    inventory_.ForEachMember(g, [&](MachineId m) { count += inventory_.is_instead(m) ? 1 : 0; });
  }
  return count;
}

void Cycle::Commit(NeedId n, const Offers& offers) {
  outcomes_[n].victims += static_cast<uint32_t>(chosen_.size());
  for (const Offer& offer : chosen_) {
    const OfferRun& run = offers.runs[offer.run];
    if (run.claim.need != kNoId && !MUTANT("fast.lost_uncounted")) ++outcomes_[run.claim.need].lost;
    actions_.push_back({.kind = run.kind,
                        .reason = offer.reason,
                        .grace_seconds = run.grace_seconds,
                        .machine = offer.machine,
                        .need = n});
  }
}

// Looks for what the need lacks in one place, and takes it.
void Cycle::TakeIn(NeedId n, DomainId domain) {
  Outcome& outcome = outcomes_[n];
  const NeedRow& row = need(n);
  std::optional<SpreadCounts> counts;
  if (row.spreads) counts.emplace(CountClaims(n));
  Wanting wanting{.residual = outcome.shortage, .counts = counts ? &*counts : nullptr, .domain = domain};
  if (row.is_gang) wanting.residual = GangResidual(n, domain, gangs_[outcome.gang].rest);
  CountPledges(n, wanting);
  Amounts lacks = wanting.residual;
  if (IsZero(lacks, dims())) {
    outcome.on_its_way = true;
    return;
  }
  CountAwaited(n, wanting, awaiting_);
  for (const MachineId m : awaiting_) awaited_.insert(m);
  Offers& offers = offers_[OffersFor(n)];
  chosen_.clear();
  if (offers.runs.empty()) return;
  const Amounts wanted = wanting.residual;
  ChooseAll(n, offers, wanting);
  outcome.lacks_budget = awaiting_.empty() && LacksBudget(n, offers, wanting);
  PruneOffers(n, offers, wanted, wanting.counts);
  if (row.is_gang && !IsZero(wanting.residual, dims())) {
    for (const Offer& offer : chosen_) GiveBack(offers, offer);
    return;
  }
  for (const Offer& offer : chosen_) Subtract(lacks, *offers.runs[offer.run].each, 1, dims());
  outcome.on_its_way = IsZero(lacks, dims());
  Commit(n, offers);
}

void Cycle::ChooseAll(NeedId n, Offers& offers, Wanting& wanting) {
  standing_in_ = StandingInFor(n);
  if (wanting.counts != nullptr) {
    ChooseOneByOne(n, offers, wanting);
  } else {
    Choose(n, offers, wanting);
  }
}

// Whether all runs of the domain together are enough for what the gang wants there.
bool Cycle::MayComplete(NeedId n, Offers& offers, const Wanting& wanting) {
  Amounts rest = wanting.residual;
  for (const uint32_t at : RunsIn(n, wanting.domain, offers)) {
    const OfferRun& run = offers.runs[at];
    if (Concerns(n, wanting.domain, run)) Subtract(rest, *run.each, run.left, dims());
    if (IsZero(rest, dims())) return true;
  }
  return IsZero(rest, dims());
}

// What completing the gang in the domain costs others; nothing if it cannot be completed. Nothing is taken.
std::optional<Cycle::Harm> Cycle::HarmIn(NeedId n, DomainId domain, const GangPlan::Part* part) {
  Outcome& outcome = outcomes_[n];
  Wanting wanting{.residual = GangResidual(n, domain, part == nullptr ? need(n).aggregate : part->rest),
                  .counts = nullptr,
                  .domain = domain};
  CountAwaited(n, wanting, awaiting_);
  Offers& offers = offers_[OffersFor(n)];
  if (!MayComplete(n, offers, wanting)) return std::nullopt;
  std::vector<std::pair<uint32_t, OfferRun>> before;
  for (const uint32_t at : RunsIn(n, domain, offers)) before.emplace_back(at, offers.runs[at]);
  trying_ = true;
  chosen_.clear();
  const Amounts wanted = wanting.residual;
  ChooseAll(n, offers, wanting);
  outcome.lacks_budget = outcome.lacks_budget || (awaiting_.empty() && LacksBudget(n, offers, wanting));
  PruneOffers(n, offers, wanted, nullptr);
  Harm harm{.away = part == nullptr || !part->own, .machines = chosen_.size(), .domain = domain};
  for (const Offer& offer : chosen_) {
    const OfferRun& run = offers.runs[offer.run];
    for (const model::Penalty& penalty : {run.stamp->interruption, run.stamp->reclamation}) {
      if (offer.reason != Reason::kPreempt) continue;
      harm.pinned += penalty.pinned ? 1 : 0;
      harm.penalties += penalty.pinned ? 0 : penalty.finite.micros;
    }
    GiveBack(offers, offer);
  }
  trying_ = false;
  for (auto& [at, run] : before) offers.runs[at] = run;
  return IsZero(wanting.residual, dims()) ? std::optional(harm) : std::nullopt;
}

// No domain can hold the gang: the one that completes it with the least harm becomes its domain.
void Cycle::TakeWhereItHarmsLeast(NeedId n) {
  GangPlan& gang = gangs_[outcomes_[n].gang];
  std::optional<Harm> least;
  const GangPlan::Part* best = nullptr;
  for (const DomainId domain : fit(n).domains.ids()) {
    const auto at = std::ranges::find(gang.parts, domain, &GangPlan::Part::domain);
    const GangPlan::Part* part = at == gang.parts.end() ? nullptr : &*at;
    const auto harm = HarmIn(n, domain, part);
    if (!harm || (least && !(*harm < *least))) continue;
    least = harm;
    best = part;
  }
  if (!least) return;
  outcomes_[n].lacks_budget = false;
  gang.domain = least->domain;
  gang.rest = best == nullptr ? need(n).aggregate : best->rest;
  TakeIn(n, gang.domain);
}

void Cycle::Phase2() {
  for (Offers& offers : offers_) offers.valid = false;
  offers_of_.clear();
  awaited_.clear();
  out_of_order_ = false;
  for (const NeedId n : short_) {
    Outcome& outcome = outcomes_[n];
    if (outcome.parked || !Acquires(n)) continue;
    if (!need(n).is_gang) {
      TakeIn(n, kNoId);
    } else if (!outcome.satisfiable && !HasPledge(n)) {
      TakeWhereItHarmsLeast(n);
    } else if (gangs_[outcome.gang].domain != kNoId) {
      TakeIn(n, gangs_[outcome.gang].domain);
    }
  }
  PassTaken();
}

// Whether a machine is pledged to the need that no row of its key before it counts on.
bool Cycle::HasPledge(NeedId n) {
  bool has = false;
  if (!inventory_.key_state(need(n).key).has_pledges) return has;
  inventory_.key(need(n).key).ForEachPledged([&](GroupId g) {
    const Group& group = inventory_.Open(g);
    const bool can = inventory_.Remaining(g) > 0 && !group.pledge_ended && fit(n).Has(group.cls);
    has = has || (can && (group.held_for == kNoId || group.held_for == n));
  });
  return has;
}

// Of what is left of a group the first machines were taken: phase 3 begins behind them.
void Cycle::PassTaken() {
  for (const Offers& offers : offers_) {
    if (!offers.valid) continue;
    for (const OfferRun& run : offers.runs) {
      if (run.claim.need != kNoId || run.left == run.claim.count) continue;
      Group& group = inventory_.group(run.group);
      if (group.kept) continue;
      const uint32_t at = run.claim.first + run.claim.count - run.left;
      if (group.cursor_cycle == inventory_.cycle() && group.cursor_at >= at) continue;
      group.cursor_cycle = inventory_.cycle();
      group.cursor_at = at;
      group.cursor = run.head == kNoMachine ? run.cursor : run.passed;
    }
  }
}

}  // namespace muster::engine::fast
