// Phase 2: capacity for needs that are still short, from surplus and from victims.
#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::MachineState;
using model::Reason;

void Cycle::MarkTaken(MachineId m) {
  if (taken_.size() <= m) taken_.resize(inventory_.rows(), 0);
  taken_[m] = inventory_.cycle();
}

SpreadCounts Cycle::CountClaims(NeedId n) {
  SpreadCounts counts(fit(n), catalogue().filter(fit(n).filter));
  for (uint32_t c = outcomes_[n].first_claim; c != kNoId; c = claims_[c].next_of_need) {
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
    for (uint32_t c = outcome.first_claim; c != kNoId; c = claims_[c].next_of_need) {
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
  const Key& key = inventory_.key(row.key);
  if (!inventory_.key_state(row.key).has_pledges) return residual;
  merge_.Clear();
  std::vector<GroupId> groups;
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.Open(g);
      if (group.pledge_ended || !classes.Has(group.cls) || (group.held_for != kNoId && group.held_for != n)) continue;
      if (row.is_gang && DomainOf(classes, group.cls) != gangs_[outcome.gang].domain) continue;
      merge_.Add(g);
      groups.push_back(g);
    }
  }
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
  const auto [it, is_new] =
      offers_of_.emplace(uint64_t{need(n).fit} << 32 | priority, static_cast<uint32_t>(offers_.size()));
  if (is_new) offers_.emplace_back();
  if (!offers_[it->second].valid) FillOffers(n, offers_[it->second]);
  return it->second;
}

void Cycle::FillOffers(NeedId n, Offers& offers) {
  offers.valid = true;
  offers.runs.clear();
  const int64_t priority = demand_.info(need(n).profile).profile.priority();
  const auto add = [&](GroupId g, const ClaimRow& claim, const Stamp& stamp, bool surplus) {
    const Class& c = catalogue().cls(inventory_.group(g).cls);
    OfferRun run{.group = g, .claim = claim, .gap = priority - stamp.priority, .left = claim.count};
    if (!surplus && run.gap <= 0) return;
    if (surplus) {
      run.kind = run.gap > 0 ? ActionKind::kPreempt : ActionKind::kReclaim;
      run.reason = run.gap > 0 ? Reason::kPreemptSurplus : Reason::kReclaimForNeed;
    }
    run.score = VictimScore(policy_.victim_weights, run.gap, MeanDrainMillis(inventory_.drains()[c.drain]),
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
      for (uint32_t at = group.first_claim; at != kNoId; at = claims_[at].next_of_group) {
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

// The run's next machine that nobody took yet.
MachineId Cycle::HeadOf(OfferRun& run) {
  if (run.head == kNoMachine && run.left == run.claim.count) {
    run.cursor = inventory_.group(run.group).members.Begin();
    for (uint32_t i = 0; i < run.claim.first; ++i) inventory_.Next(run.group, run.cursor);
  }
  while (run.left > 0) {
    if (run.head == kNoMachine) run.head = inventory_.Next(run.group, run.cursor);
    if (!IsTaken(run.head)) return run.head;
    run.head = kNoMachine;
    --run.left;
  }
  return kNoMachine;
}

std::vector<Cycle::Offer> Cycle::Choose(NeedId n, Offers& offers, Amounts& residual, SpreadCounts* counts) {
  const Amounts wanted = residual;
  const NeedRow& row = need(n);
  const Fit& classes = fit(n);
  std::vector<Offer> chosen;
  std::vector<std::pair<ClusterId, int64_t>> reclaimed;  // by this need
  const auto may_take = [&](OfferRun& run) {
    const Group& group = inventory_.group(run.group);
    if (run.left == 0 || group.cluster == row.cluster || !IsUseful(inventory_.each(group), residual, dims()))
      return false;
    if (row.is_gang && DomainOf(classes, group.cls) != gangs_[outcomes_[n].gang].domain) return false;
    if (counts != nullptr && !counts->Allows(DomainOf(classes, group.cls))) return false;
    if (run.kind == ActionKind::kReclaim) {
      const auto used = std::ranges::find(reclaimed, group.cluster, &std::pair<ClusterId, int64_t>::first);
      if (reclaims_left_[group.cluster] - (used == reclaimed.end() ? 0 : used->second) <= 0) return false;
    }
    return HeadOf(run) != kNoMachine;
  };
  const auto take = [&](OfferRun& run) {
    const Group& group = inventory_.group(run.group);
    MarkTaken(run.head);
    chosen.push_back({.run = static_cast<uint32_t>(&run - offers.runs.data()), .machine = run.head});
    if (run.kind == ActionKind::kReclaim) {
      const auto used = std::ranges::find(reclaimed, group.cluster, &std::pair<ClusterId, int64_t>::first);
      if (used == reclaimed.end()) {
        reclaimed.emplace_back(group.cluster, 1);
      } else {
        ++used->second;
      }
    }
    Subtract(residual, inventory_.each(group), 1, dims());
    if (counts != nullptr) counts->Add(DomainOf(classes, group.cls), 1);
  };
  if (counts == nullptr) {
    // Runs that tie go by id together. What is passed over once stays out of reach.
    const auto later = [](const Offered& a, const Offered& b) { return a.label > b.label; };
    for (size_t i = 0; i < offers.runs.size() && !IsZero(residual, dims());) {
      offered_.clear();
      for (const uint32_t tie = offers.runs[i].tie; i < offers.runs.size() && offers.runs[i].tie == tie; ++i) {
        OfferRun& run = offers.runs[i];
        if (may_take(run)) offered_.push_back({.label = inventory_.label(run.head), .run = static_cast<uint32_t>(i)});
      }
      std::ranges::make_heap(offered_, later);
      while (!offered_.empty() && !IsZero(residual, dims())) {
        std::ranges::pop_heap(offered_, later);
        OfferRun& run = offers.runs[offered_.back().run];
        offered_.pop_back();
        const uint64_t next = offered_.empty() ? ~uint64_t{0} : offered_.front().label;
        bool goes_on = may_take(run);
        for (; goes_on && inventory_.label(run.head) < next; goes_on = may_take(run)) take(run);
        if (!goes_on) continue;
        offered_.push_back(
            {.label = inventory_.label(run.head), .run = static_cast<uint32_t>(&run - offers.runs.data())});
        std::ranges::push_heap(offered_, later);
      }
    }
    return PruneOffers(n, offers, std::move(chosen), wanted, counts);
  }
  for (;;) {
    // A skew may ease, so every run is looked at again: the first that will do, and of those that tie the smallest id.
    OfferRun* best = nullptr;
    for (OfferRun& run : offers.runs) {
      if (IsZero(residual, dims()) || (best != nullptr && run.tie != best->tie)) break;
      if (!may_take(run)) continue;
      if (best == nullptr || inventory_.label(run.head) < inventory_.label(best->head)) best = &run;
    }
    if (best == nullptr) break;
    take(*best);
  }
  return PruneOffers(n, offers, std::move(chosen), wanted, counts);
}

// Leaves out what the rest makes redundant, the last taken first.
std::vector<Cycle::Offer> Cycle::PruneOffers(NeedId n, const Offers& offers, std::vector<Offer> chosen,
                                             const Amounts& wanted, SpreadCounts* counts) {
  const auto group_of = [&](const Offer& offer) -> const Group& {
    return inventory_.group(offers.runs[offer.run].group);
  };
  Totals taken{};
  for (const Offer& offer : chosen) {
    for (size_t d = 0; d < dims(); ++d) taken[d] += inventory_.each(group_of(offer))[d];
  }
  for (size_t i = chosen.size(); i-- > 0;) {
    const Group& group = group_of(chosen[i]);
    const Amounts& each = inventory_.each(group);
    bool redundant = true;
    for (size_t d = 0; d < dims() && redundant; ++d) {
      redundant = std::min<Wide>(taken[d] - each[d], wanted[d]) == std::min<Wide>(taken[d], wanted[d]);
    }
    if (!redundant) continue;
    if (counts != nullptr && !counts->Remove(DomainOf(fit(n), group.cls))) continue;
    for (size_t d = 0; d < dims(); ++d) taken[d] -= each[d];
    taken_[chosen[i].machine] = 0;
    chosen.erase(chosen.begin() + static_cast<ptrdiff_t>(i));
    if (MUTANT("fast.stale_offers")) continue;
    for (Offers& other : offers_) other.valid = false;  // their cursors have passed it
  }
  return chosen;
}

void Cycle::Phase2() {
  offers_.clear();
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
    const std::vector<Offer> chosen = Choose(n, offers, residual, skew);
    if (row.is_gang && !IsZero(residual, dims())) {
      for (const Offer& offer : chosen) taken_[offer.machine] = 0;
      if (!chosen.empty()) {
        for (Offers& other : offers_) other.valid = false;
      }
      continue;
    }
    outcome.on_its_way = IsZero(residual, dims());
    for (const Offer& offer : chosen) {
      const OfferRun& run = offers.runs[offer.run];
      if (run.claim.need != kNoId && !MUTANT("fast.lost_uncounted")) ++outcomes_[run.claim.need].lost;
      if (run.kind == ActionKind::kReclaim && !MUTANT("fast.reclaims_uncounted"))
        --reclaims_left_[inventory_.group(run.group).cluster];
      ++outcome.victims;
      const auto grace = run.kind == ActionKind::kReclaim ? kReclaimGrace : PreemptGrace(run.gap);
      actions_.push_back({.kind = run.kind,
                          .reason = run.reason,
                          .grace_seconds = static_cast<int32_t>(grace.count()),
                          .machine = offer.machine,
                          .need = n});
    }
  }
}

}  // namespace muster::engine::fast
