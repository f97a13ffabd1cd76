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

// What the need still lacks once everything under way has arrived.
Amounts Cycle::Residual(NeedId n, SpreadCounts* counts) {
  const NeedRow& row = need(n);
  const Fit& classes = fit(n);
  const Outcome& outcome = outcomes_[n];
  Amounts residual = outcome.shortage;
  if (row.is_gang) {
    residual = gangs_[outcome.gang].rest;
    for (ClaimId c = outcome.first_claim; c != kNoId; c = claims_[c].next_of_need) {
      const MachineState state = inventory_.group(claims_[c].group).state;
      const bool acquired = state == MachineState::kIdle || state == MachineState::kSpeculative;
      if (acquired) Subtract(residual, each(claims_[c].group), claims_[c].count, dims());
    }
    for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
      planners_[0]->Offerers(n, state, gangs_[outcome.gang].domain, offerers_);
      for (const Offerer& offerer : offerers_) {
        const uint32_t held = inventory_.Open(offerer.group).held;
        Subtract(residual, each(offerer.group), inventory_.Remaining(offerer.group) - held, dims());
      }
    }
  }
  if (!inventory_.key_state(row.key).has_pledges) return residual;
  merge_.Clear();
  std::vector<GroupId> groups;
  inventory_.key(row.key).ForEachPledged([&](GroupId g) {
    const Group& group = inventory_.Open(g);
    if (group.pledge_ended || !classes.Has(group.cls) || (group.held_for != kNoId && group.held_for != n)) return;
    if (row.is_gang && DomainOf(classes, group.cls) != gangs_[outcome.gang].domain) return;
    merge_.Add(g);
    groups.push_back(g);
  });
  for (; !merge_.empty(); merge_.Step()) {
    Group& group = inventory_.group(groups[merge_.source()]);
    const auto held = held_.find(merge_.machine());
    if (held != held_.end() && held->second != n) continue;
    if (!IsUseful(inventory_.each(group), residual, dims())) continue;
    if (counts != nullptr && !counts->Allows(DomainOf(classes, group.cls))) continue;
    if (held_.emplace(merge_.machine(), n).second) ++group.held;
    if (counts != nullptr) counts->Add(DomainOf(classes, group.cls), 1);
    Subtract(residual, inventory_.each(group), 1, dims());
  }
  return residual;
}

uint32_t Cycle::OffersFor(NeedId n) {
  const auto priority = static_cast<uint32_t>(demand_.info(need(n).profile).profile.priority());
  const auto [it, is_new] = offers_of_.emplace(uint64_t{need(n).fit.value()} << 32 | priority, offers_of_.size());
  if (is_new && offers_of_.size() > offers_.size()) offers_.emplace_back();
  if (!offers_[it->second].valid) FillOffers(n, offers_[it->second]);
  return it->second;
}

void Cycle::FillOffers(NeedId n, Offers& offers) {
  offers.valid = true;
  offers.runs.clear();
  const int64_t priority = demand_.info(need(n).profile).profile.priority();
  const auto add = [&](GroupId g, const ClaimRow& claim, const Stamp& stamp, bool surplus) {
    const Class& c = catalogue().cls(inventory_.group(g).cls);
    const int64_t gap = priority - stamp.priority;
    if (!surplus && gap <= 0) return;
    OfferRun run{.group = g, .claim = claim, .each = &each(g), .left = claim.count};
    if (surplus) {
      run.kind = gap > 0 ? ActionKind::kPreempt : ActionKind::kReclaim;
      run.reason = gap > 0 ? Reason::kPreemptSurplus : Reason::kReclaimForNeed;
    }
    run.grace_seconds = static_cast<int32_t>((gap > 0 ? PreemptGrace(gap) : kReclaimGrace).count());
    run.score = VictimScore(policy_.victim_weights, gap, MeanDrainMillis(inventory_.drains()[c.type]),
                            stamp.interruption, stamp.reclamation);
    offers.runs.push_back(run);
  };
  for (const ClassId c : fit(n).classes) {
    for (const GroupId g : catalogue().cls(c).bound) {
      const Group& group = inventory_.Open(g);
      const ClusterState& cluster = inventory_.cluster(group.cluster).state;
      if (!cluster.session) continue;
      if (const uint32_t settled = inventory_.SettledClaim(group); settled > 0) {
        const NeedId owner = FirstOfKey(group.owner);
        add(g, {.need = owner, .group = g, .count = settled}, inventory_.stamp(need(owner).stamp), false);
      }
      for (ClaimId at = group.first_claim; at != kNoId; at = claims_[at].next_of_group) {
        add(g, claims_[at], inventory_.stamp(need(claims_[at].need).stamp), false);
      }
      const uint32_t rest = inventory_.Remaining(g);
      if (rest == 0) continue;
      add(g, {.need = kNoId, .group = g, .first = group.claimed, .count = rest}, inventory_.stamp(group.stamp),
          cluster.gate_open);
    }
  }
  const auto tier = [](const OfferRun& run) {
    return run.reason == Reason::kPreemptSurplus ? 0 : run.reason == Reason::kReclaimForNeed ? 1 : 2;
  };
  // Reclaims go by cluster and keep order, all else by score.
  const auto compare = [&](const OfferRun& a, const OfferRun& b) {
    if (tier(a) != tier(b)) return tier(a) <=> tier(b);
    if (tier(a) != 1)
      return b.score < a.score   ? std::strong_ordering::less
             : b.score > a.score ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
    const Group& x = inventory_.group(a.group);
    const Group& y = inventory_.group(b.group);
    const auto by_cluster = inventory_.cluster_rank(x.cluster) <=> inventory_.cluster_rank(y.cluster);
    if (by_cluster != 0) return by_cluster;
    const auto by_price = catalogue().cls(x.cls).price <=> catalogue().cls(y.cls).price;
    if (by_price != 0) return by_price;
    return inventory_.stamp(y.stamp).reclamation <=> inventory_.stamp(x.stamp).reclamation;
  };
  std::ranges::stable_sort(offers.runs, [&](const OfferRun& a, const OfferRun& b) { return compare(a, b) < 0; });
  for (size_t i = 1; i < offers.runs.size(); ++i) {
    offers.runs[i].tie = offers.runs[i - 1].tie + (compare(offers.runs[i - 1], offers.runs[i]) == 0 ? 0 : 1);
  }
}

// The run's next machine that is not taken yet.
MachineId Cycle::HeadOf(OfferRun& run) {
  if (run.head == kNoMachine && run.left == run.claim.count) {
    run.cursor = inventory_.group(run.group).members.Begin();
    inventory_.Skip(run.group, run.cursor, run.claim.first);
  }
  while (run.left > 0) {
    if (run.head == kNoMachine) {
      run.passed = run.cursor;
      run.head = inventory_.Next(run.group, run.cursor);
    }
    if (!IsTaken(run.head)) return run.head;
    run.head = kNoMachine;
    --run.left;
  }
  return kNoMachine;
}

// Whether the need may take machines of the run at all, and there is one.
bool Cycle::MayTake(NeedId n, OfferRun& run) {
  const Group& group = inventory_.group(run.group);
  if (run.left == 0 || group.cluster == need(n).cluster) return false;
  if (need(n).is_gang && DomainOf(fit(n), group.cls) != gangs_[outcomes_[n].gang].domain) return false;
  return !IsLimited(run) && HeadOf(run) != kNoMachine;
}

bool Cycle::IsLimited(const OfferRun& run) const {
  return run.kind == ActionKind::kReclaim && reclaims_left_[inventory_.group(run.group).cluster] <= 0;
}

void Cycle::TakeHead(Offers& offers, uint32_t at) {
  const OfferRun& run = offers.runs[at];
  if (taken_in_ != inventory_.cycle()) taken_.assign(inventory_.rows(), false);
  taken_in_ = inventory_.cycle();
  taken_[run.head] = true;
  chosen_.push_back({.run = at, .machine = run.head});
  if (run.kind == ActionKind::kReclaim && !MUTANT("fast.reclaims_uncounted"))
    --reclaims_left_[inventory_.group(run.group).cluster];
}

void Cycle::GiveBack(const Offers& offers, const Offer& offer) {
  const OfferRun& run = offers.runs[offer.run];
  taken_[offer.machine] = false;
  if (run.kind == ActionKind::kReclaim) ++reclaims_left_[inventory_.group(run.group).cluster];
  if (MUTANT("fast.stale_offers")) return;
  for (Offers& other : offers_) other.valid = false;  // their cursors have passed it
}

// Runs that tie go by id together. What is passed over once stays out of reach.
void Cycle::Choose(NeedId n, Offers& offers, Amounts& residual) {
  const auto later = [](const Offered& a, const Offered& b) { return a.label > b.label; };
  std::vector<OfferRun>& runs = offers.runs;
  for (uint32_t i = 0; i < runs.size() && !IsZero(residual, dims());) {
    const uint32_t first = i;
    bool equal = true;  // all machines have the same
    offered_.clear();
    for (; i < runs.size() && runs[i].tie == runs[first].tie; ++i) {
      if (!MayTake(n, runs[i])) continue;
      offered_.push_back({.label = inventory_.label(runs[i].head), .run = i});
      equal = equal && runs[i].each == runs[offered_.front().run].each;
    }
    std::ranges::make_heap(offered_, later);
    while (!offered_.empty() && !IsZero(residual, dims())) {
      const Amounts& each = *runs[offered_.front().run].each;
      const int64_t useful = UsefulCount(each, residual, dims());
      const size_t before = chosen_.size();
      const size_t most = before + static_cast<size_t>(equal ? useful : std::min<int64_t>(useful, 1));
      do {
        const uint32_t run = offered_.front().run;
        const bool takes = chosen_.size() < most && !IsLimited(runs[run]);
        if (takes) TakeHead(offers, run);
        if (takes && HeadOf(runs[run]) != kNoMachine) {
          offered_.front().label = inventory_.label(runs[run].head);
          SinkFirst(offered_, later);
        } else {
          std::ranges::pop_heap(offered_, later);
          offered_.pop_back();
        }
      } while (equal && !offered_.empty() && chosen_.size() < most);
      Subtract(residual, each, static_cast<int64_t>(chosen_.size() - before), dims());
    }
  }
}

// A skew may ease, so every run is looked at again: the first that will do, and of those that tie the smallest id.
void Cycle::ChooseSpread(NeedId n, Offers& offers, Amounts& residual, SpreadCounts& counts) {
  const auto domain = [&](const OfferRun& run) { return DomainOf(fit(n), inventory_.group(run.group).cls); };
  while (!IsZero(residual, dims())) {
    OfferRun* best = nullptr;
    for (OfferRun& run : offers.runs) {
      if (best != nullptr && run.tie != best->tie) break;
      if (!IsUseful(*run.each, residual, dims()) || !counts.Allows(domain(run)) || !MayTake(n, run)) continue;
      if (best == nullptr || inventory_.label(run.head) < inventory_.label(best->head)) best = &run;
    }
    if (best == nullptr) return;
    TakeHead(offers, static_cast<uint32_t>(best - offers.runs.data()));
    Subtract(residual, *best->each, 1, dims());
    counts.Add(domain(*best), 1);
  }
}

// Leaves out what the rest makes redundant, the last taken first.
void Cycle::PruneOffers(NeedId n, const Offers& offers, const Amounts& wanted, SpreadCounts* counts) {
  // Of equal machines each was useful in its turn, and so is any other.
  const auto each_of = [&](const Offer& offer) { return offers.runs[offer.run].each; };
  if (std::ranges::adjacent_find(chosen_, std::not_equal_to{}, each_of) == chosen_.end()) return;
  Totals taken{};
  for (const Offer& offer : chosen_) Add(taken, *each_of(offer), 1, dims());
  for (size_t i = chosen_.size(); i-- > 0;) {
    const Amounts& each = *each_of(chosen_[i]);
    if (Redundant(taken, each, wanted, 1, dims()) == 0) continue;
    const ClassId cls = inventory_.group(offers.runs[chosen_[i].run].group).cls;
    if (counts != nullptr && !counts->Remove(DomainOf(fit(n), cls))) continue;
    Add(taken, each, -1, dims());
    GiveBack(offers, chosen_[i]);
    chosen_.erase(chosen_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Cycle::Commit(NeedId n, const Offers& offers) {
  outcomes_[n].victims += static_cast<uint32_t>(chosen_.size());
  for (const Offer& offer : chosen_) {
    const OfferRun& run = offers.runs[offer.run];
    if (run.claim.need != kNoId && !MUTANT("fast.lost_uncounted")) ++outcomes_[run.claim.need].lost;
    actions_.push_back({.kind = run.kind,
                        .reason = run.reason,
                        .grace_seconds = run.grace_seconds,
                        .machine = offer.machine,
                        .need = n});
  }
}

void Cycle::Phase2() {
  for (Offers& offers : offers_) offers.valid = false;
  offers_of_.clear();
  for (const NeedId n : short_) {
    Outcome& outcome = outcomes_[n];
    if (outcome.parked || !HasSession(n)) continue;
    const NeedRow& row = need(n);
    if (row.is_gang && gangs_[outcome.gang].domain == kNoId) continue;
    std::optional<SpreadCounts> counts;
    if (row.spreads) counts.emplace(CountClaims(n));
    SpreadCounts* skew = counts ? &*counts : nullptr;
    Amounts residual = Residual(n, skew);
    if (IsZero(residual, dims())) {
      outcome.on_its_way = true;
      continue;
    }
    Offers& offers = offers_[OffersFor(n)];
    if (offers.runs.empty()) continue;
    chosen_.clear();
    const Amounts wanted = residual;
    if (counts) {
      ChooseSpread(n, offers, residual, *counts);
    } else {
      Choose(n, offers, residual);
    }
    PruneOffers(n, offers, wanted, skew);
    if (row.is_gang && !IsZero(residual, dims())) {
      for (const Offer& offer : chosen_) GiveBack(offers, offer);
      continue;
    }
    outcome.on_its_way = IsZero(residual, dims());
    Commit(n, offers);
  }
  PassTaken();
}

// Of what is left of a group the first machines were taken: phase 3 begins behind them.
void Cycle::PassTaken() {
  for (const Offers& offers : offers_) {
    if (!offers.valid) continue;
    for (const OfferRun& run : offers.runs) {
      if (run.claim.need != kNoId || run.left == run.claim.count) continue;
      Group& group = inventory_.group(run.group);
      const uint32_t at = run.claim.first + run.claim.count - run.left;
      if (group.cursor_cycle == inventory_.cycle() && group.cursor_at >= at) continue;
      group.cursor_cycle = inventory_.cycle();
      group.cursor_at = at;
      group.cursor = run.head == kNoMachine ? run.cursor : run.passed;
    }
  }
}

}  // namespace muster::engine::fast
