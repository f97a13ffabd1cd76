// What needs that are short may take: surplus and victims, as runs of machines that are worth the same.
#include <algorithm>
#include <functional>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::MachineState;
using model::Reason;

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
  offers.in_domain.clear();
  offers.knows_unused = false;
  const int64_t priority = demand_.info(need(n).profile).profile.priority();
  const auto add = [&](GroupId g, const ClaimRow& claim, const Stamp& stamp, bool surplus) {
    const Class& c = catalogue().cls(inventory_.group(g).cls);
    const int64_t gap = priority - stamp.priority;
    if (!surplus && gap <= 0) return;
    OfferRun run{.group = g, .claim = claim, .each = &each(g), .stamp = &stamp, .left = claim.count};
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
      if (!cluster.takes_part()) continue;
      if (const uint32_t settled = inventory_.SettledClaim(group); settled > 0) {
        const NeedId owner = FirstOfKey(group.owner);
        add(g, {.need = owner, .group = g, .count = settled}, inventory_.stamp(need(owner).stamp), false);
      }
      for (ClaimId at = group.first_claim; at != kNoId; at = claims_[at].next_of_group) {
        add(g, claims_[at], inventory_.stamp(need(claims_[at].need).stamp), false);
      }
      if (group.cycle == inventory_.cycle() && group.kept) {
        const uint32_t first =
            group.last_claim == kNoId ? 0 : claims_[group.last_claim].first + claims_[group.last_claim].count;
        add(g, {.need = kNoId, .group = g, .first = first, .count = group.size - first}, inventory_.stamp(group.stamp),
            false);
        continue;
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

// Whether the need may take machines of the run at all, the budget aside.
bool Cycle::Concerns(NeedId n, DomainId domain, const OfferRun& run) const {
  const Group& group = inventory_.group(run.group);
  if (run.left == 0 || group.cluster == need(n).cluster || inventory_.IsOnHold(group, need(n).cluster)) return false;
  return !need(n).is_gang || DomainOf(fit(n), group.cls) == domain;
}

// And there is one within the budget.
bool Cycle::MayTake(NeedId n, DomainId domain, OfferRun& run) {
  return Concerns(n, domain, run) && !IsLimited(run) && HeadOf(run) != kNoMachine;
}

bool Cycle::IsLimited(const OfferRun& run) const {
  return run.kind == ActionKind::kReclaim && reclaims_left_[inventory_.group(run.group).cluster] <= 0;
}

void Cycle::TakeOffer(Offers& offers, uint32_t at, MachineId machine, Reason reason) {
  const OfferRun& run = offers.runs[at];
  if (taken_in_ != inventory_.cycle()) taken_.assign(inventory_.rows(), false);
  taken_in_ = inventory_.cycle();
  taken_[machine] = true;
  chosen_.push_back({.run = at, .machine = machine, .reason = reason});
  if (reason == Reason::kReclaimForNeed && !MUTANT("fast.reclaims_uncounted")) {
    --reclaims_left_[inventory_.group(run.group).cluster];
  }
}

void Cycle::GiveBack(const Offers& offers, const Offer& offer) {
  taken_[offer.machine] = false;
  if (offer.reason == Reason::kReclaimForNeed) {
    ++reclaims_left_[inventory_.group(offers.runs[offer.run].group).cluster];
  }
  if (trying_ || MUTANT("fast.stale_offers")) return;
  out_of_order_ = true;
  for (Offers& other : offers_) other.valid = false;  // their cursors have passed it
}

// The runs that lie in the domain of a gang, or all of them, in order.
std::span<const uint32_t> Cycle::RunsIn(NeedId n, DomainId domain, Offers& offers) {
  if (offers.in_domain.empty()) {
    offers.in_domain.resize(need(n).is_gang ? fit(n).domains.size() : 1);
    for (uint32_t i = 0; i < offers.runs.size(); ++i) {
      const ClassId c = inventory_.group(offers.runs[i].group).cls;
      offers.in_domain[need(n).is_gang ? DomainOf(fit(n), c).value() : 0].push_back(i);
    }
  }
  return offers.in_domain.empty() ? std::span<const uint32_t>()
                                  : offers.in_domain[need(n).is_gang ? domain.value() : 0];
}

// Calls visit(machine) for machines of the run that are not taken, until it says false.
template <class Visit>
void Cycle::ForEachUntaken(OfferRun& run, const Visit& visit) {
  if (HeadOf(run) == kNoMachine) return;
  IdSet::Cursor cursor = run.passed;
  for (uint32_t left = run.left; left > 0; --left) {
    const MachineId m = inventory_.Next(run.group, cursor);
    if (!IsTaken(m) && !visit(m)) return;
  }
}

// [P2.instead] Surplus past its hold, in order; what is taken by now is among it.
const std::vector<Cycle::Offer>& Cycle::UnusedOf(Offers& offers) {
  if (std::exchange(offers.knows_unused, true)) return offers.unused;
  offers.unused.clear();
  for (uint32_t i = 0; i < offers.runs.size();) {
    const size_t first = offers.unused.size();
    uint32_t end = i;
    for (; end < offers.runs.size() && offers.runs[end].tie == offers.runs[i].tie; ++end) {
      const OfferRun& run = offers.runs[end];
      if (run.kind != ActionKind::kReclaim || !MayReclaimFrom(run.group)) continue;
      IdSet::Cursor cursor = inventory_.group(run.group).members.Begin();
      inventory_.Skip(run.group, cursor, run.claim.first);
      for (uint32_t left = run.claim.count; left > 0; --left) {
        const MachineId m = inventory_.Next(run.group, cursor);
        const bool past = now_ - inventory_.since(m).value_or(now_) >= policy_.surplus_hold;
        if (past) offers.unused.push_back({.run = end, .machine = m, .reason = Reason::kReclaimInstead});
      }
    }
    if (end > i + 1) {
      std::ranges::sort(offers.unused.begin() + static_cast<ptrdiff_t>(first), offers.unused.end(), {},
                        [&](const Offer& offer) { return inventory_.label(offer.machine); });
    }
    i = end;
  }
  return offers.unused;
}

bool Cycle::IsOfUse(NeedId n, const OfferRun& run, const Wanting& wanting) const {
  if (!IsUseful(*run.each, wanting.residual, dims())) return false;
  return wanting.counts == nullptr || wanting.counts->Allows(DomainOf(fit(n), inventory_.group(run.group).cls));
}

// How many victims the need could take; of more than `enough`, only that there are.
int64_t Cycle::CountVictims(NeedId n, Offers& offers, const Wanting& wanting, int64_t enough) {
  int64_t count = 0;
  for (const uint32_t at : RunsIn(n, wanting.domain, offers)) {
    OfferRun& run = offers.runs[at];
    if (run.reason != Reason::kPreempt || !IsOfUse(n, run, wanting) || !MayTake(n, wanting.domain, run)) continue;
    ForEachUntaken(run, [&](MachineId) { return ++count <= enough; });
    if (count > enough) break;
  }
  return count;
}

// What stands in for a victim that has `each`, if anything does.
const Cycle::Offer* Cycle::StandInFor(NeedId n, const Amounts& each, Offers& offers, const Wanting& wanting) {
  for (const Offer& offer : UnusedOf(offers)) {
    const OfferRun& run = offers.runs[offer.run];
    if (IsTaken(offer.machine) || !Concerns(n, wanting.domain, run) || !IsOfUse(n, run, wanting)) continue;
    bool as_much = true;
    for (size_t d = 0; d < dims(); ++d) {
      as_much = as_much && std::min((*run.each)[d], wanting.residual[d]) >= std::min(each[d], wanting.residual[d]);
    }
    if (as_much) return &offer;
  }
  return nullptr;
}

// One victim, or what stands in for it; false when the need may have none. `best` is the victim's run.
bool Cycle::TakeVictim(NeedId n, OfferRun& best, Offers& offers, Wanting& wanting) {
  const bool spent = standing_in_ > 0 && CountVictims(n, offers, wanting, standing_in_) <= standing_in_;
  if (spent && !need(n).is_gang) return false;  // a gang takes what completes it or nothing
  const bool none = spent || MUTANT("fast.instead_missed");
  const Offer* unused = none ? nullptr : StandInFor(n, *best.each, offers, wanting);
  const OfferRun& run = unused != nullptr ? offers.runs[unused->run] : best;
  if (unused != nullptr) {
    ++standing_in_;
    out_of_order_ = true;
    TakeOffer(offers, unused->run, unused->machine, unused->reason);
  } else {
    TakeOffer(offers, static_cast<uint32_t>(&best - offers.runs.data()), best.head, best.reason);
  }
  Subtract(wanting.residual, *run.each, 1, dims());
  if (wanting.counts != nullptr) wanting.counts->Add(DomainOf(fit(n), inventory_.group(run.group).cls), 1);
  return true;
}

// Runs that tie go by id together. What is passed over once stays out of reach.
void Cycle::Choose(NeedId n, Offers& offers, Wanting& wanting) {
  const auto later = [](const Offered& a, const Offered& b) { return a.label > b.label; };
  std::vector<OfferRun>& runs = offers.runs;
  Amounts& residual = wanting.residual;
  const std::span<const uint32_t> which = RunsIn(n, wanting.domain, offers);
  for (size_t i = 0; i < which.size() && !IsZero(residual, dims());) {
    const uint32_t first = which[i];
    if (runs[first].reason == Reason::kPreempt && (standing_in_ > 0 || !UnusedOf(offers).empty())) {
      return ChooseOneByOne(n, offers, wanting);
    }
    bool equal = true;  // all machines have the same
    offered_.clear();
    for (; i < which.size() && runs[which[i]].tie == runs[first].tie; ++i) {
      OfferRun& run = runs[which[i]];
      if (!MayTake(n, wanting.domain, run)) continue;
      offered_.push_back({.label = inventory_.label(run.head), .run = which[i]});
      equal = equal && run.each == runs[offered_.front().run].each;
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
        if (takes) TakeOffer(offers, run, runs[run].head, runs[run].reason);
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

// The same for needs that spread, as a skew may ease, and where surplus may stand in for victims: every run is looked
// at again, the first that will do is taken, and of those that tie the smallest id.
void Cycle::ChooseOneByOne(NeedId n, Offers& offers, Wanting& wanting) {
  while (!IsZero(wanting.residual, dims())) {
    OfferRun* best = nullptr;
    for (const uint32_t at : RunsIn(n, wanting.domain, offers)) {
      OfferRun& run = offers.runs[at];
      if (best != nullptr && run.tie != best->tie) break;
      if (!IsOfUse(n, run, wanting) || !MayTake(n, wanting.domain, run)) continue;
      if (best == nullptr || inventory_.label(run.head) < inventory_.label(best->head)) best = &run;
    }
    if (best == nullptr) return;
    if (best->reason == Reason::kPreempt) {
      if (!TakeVictim(n, *best, offers, wanting)) return;
      continue;
    }
    TakeOffer(offers, static_cast<uint32_t>(best - offers.runs.data()), best->head, best->reason);
    Subtract(wanting.residual, *best->each, 1, dims());
    if (wanting.counts != nullptr) {
      wanting.counts->Add(DomainOf(fit(n), inventory_.group(best->group).cls), 1);
    }
  }
}

// Surplus that the budget bars, and nothing else, would cover the rest.
bool Cycle::LacksBudget(NeedId n, Offers& offers, const Wanting& wanting) {
  Amounts rest = wanting.residual;
  for (const uint32_t at : RunsIn(n, wanting.domain, offers)) {
    OfferRun& run = offers.runs[at];
    if (IsZero(rest, dims())) break;
    if (run.kind != ActionKind::kReclaim || !Concerns(n, wanting.domain, run) || HeadOf(run) == kNoMachine) continue;
    if (!out_of_order_) {
      Subtract(rest, *run.each, run.left, dims());
      continue;
    }
    ForEachUntaken(run, [&](MachineId) {
      Subtract(rest, *run.each, 1, dims());
      return !IsZero(rest, dims());
    });
  }
  return !IsZero(wanting.residual, dims()) && IsZero(rest, dims());
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

}  // namespace muster::engine::fast
