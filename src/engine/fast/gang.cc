// Gangs: one domain, whole or nothing. Domains are ranked by totals of groups.
#include <algorithm>

#include "engine/fast/cycle.h"
#include "engine/fast/lanes.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

void AddTo(Totals& totals, const Amounts& each, int64_t count, size_t n) {
  for (size_t d = 0; d < n; ++d) totals[d] += Wide{each[d]} * count;
}

Wide Score(const Totals& totals, const Amounts& deficit, bool capped, size_t n) {
  Wide score = 0;
  for (size_t d = 0; d < n; ++d) {
    if (deficit[d] == 0) continue;
    const Wide ratio = Ratio(totals[d], deficit[d]);
    score += capped ? std::min<Wide>(ratio, kOne) : ratio;
  }
  return score;
}

bool Covers(const Totals& totals, const Amounts& deficit, size_t n) {
  for (size_t d = 0; d < n; ++d) {
    if (totals[d] < deficit[d]) return false;
  }
  return true;
}

std::string DomainText(const std::vector<std::string>& domain) {
  std::string text;
  for (const std::string& value : domain) text += (text.empty() ? "" : "/") + value;
  return text;
}

}  // namespace

struct Cycle::Rank {
  uint32_t domain = kNoId;
  bool satisfiable = false;
  bool satisfiable_later = false;
  int64_t pledged = 0;
  Wide kept = 0;
  Wide capped_total = 0;
  Wide capped_creditable = 0;
  Wide capped_own = 0;
  Wide tightness = 0;
  int64_t count = 0;

  bool operator<(const Rank& b) const {  // better
    if (satisfiable != b.satisfiable) return satisfiable;
    if (satisfiable) {
      if (capped_creditable != b.capped_creditable) return capped_creditable > b.capped_creditable;
      if (capped_own != b.capped_own) return capped_own > b.capped_own;
      if (tightness != b.tightness) return tightness < b.tightness;
    } else {
      if (kept != b.kept) return kept > b.kept;
      if (capped_total != b.capped_total) return capped_total > b.capped_total;
      if (capped_creditable != b.capped_creditable) return capped_creditable > b.capped_creditable;
    }
    if (count != b.count) return count > b.count;
    return domain < b.domain;
  }
};

// Domains with anything for the gang, in the order of their names.
void Cycle::CollectSupply(NeedId n, const Fit& fit, bool with_free, std::vector<DomainSupply>& supply) {
  supply.clear();
  const size_t dimensions = dims();
  std::vector<uint32_t>& slot = slot_of_domain_;
  slot.assign(fit.domains.size(), kNoId);
  const auto in = [&](ClassId c) -> DomainSupply& {
    const uint32_t domain = DomainOf(fit, c);
    if (slot[domain] == kNoId) {
      slot[domain] = static_cast<uint32_t>(supply.size());
      supply.push_back({.domain = domain});
    }
    return supply[slot[domain]];
  };
  const auto add = [&](GroupId g, std::initializer_list<Totals DomainSupply::*> to) -> DomainSupply& {
    const Group& group = inventory_.group(g);
    DomainSupply& domain = in(group.cls);
    for (const auto member : to) AddTo(domain.*member, inventory_.each(group), inventory_.Remaining(g), dimensions);
    domain.count += inventory_.Remaining(g);
    return domain;
  };
  using D = DomainSupply;
  const auto creditable = [&](const std::vector<GroupId>& lane, bool own) {
    for (const GroupId g : lane) {
      D& domain = own ? add(g, {&D::own, &D::creditable, &D::total, &D::later})
                      : add(g, {&D::creditable, &D::total, &D::later});
      domain.creditable_count += inventory_.Remaining(g);
    }
  };
  OwnLane(n, fit, kNoId, lane_);
  creditable(lane_, true);
  RestLane(n, fit, kNoId, lane_);
  creditable(lane_, false);
  CreatingLane(n, fit, kNoId, lane_);
  creditable(lane_, true);
  const Key& key = inventory_.key(need(n).key);
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.Open(g);
      if (inventory_.Remaining(g) == 0 || group.pledge_ended || !fit.Has(group.cls)) continue;
      if (group.held_for != kNoId && group.held_for != n) continue;
      D& domain = in(group.cls);
      domain.pledged += inventory_.Remaining(g);
      if (group.state == MachineState::kDraining) {
        AddTo(domain.later, inventory_.each(group), inventory_.Remaining(g), dimensions);
      } else if (with_free) {
        add(g, {&D::total, &D::later});
      }
    }
  }
  if (with_free) {
    for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
      Offerers(n, state, kNoId, offerers_);
      for (const Offerer& offerer : offerers_) {
        if (inventory_.Remaining(offerer.group) > 0) add(offerer.group, {&D::total, &D::later});
      }
    }
  }
  std::ranges::sort(supply, {}, &D::domain);
}

bool Cycle::IsParked(NeedId n, int64_t supply_now) const {
  const NeedMemory memory = MemoryOf(need(n).key);
  if (memory.hopeless < policy_.park_after || !HasSession(n)) return false;
  // A pledge it can use keeps it looking.
  const Key& key = inventory_.key(need(n).key);
  const Fit& fit = inventory_.catalogue().fit_as_is(need(n).fit);
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      const Group& group = inventory_.group(g);
      const bool of_another =
          group.cycle == inventory_.cycle() && (group.pledge_ended || (group.held_for != kNoId && group.held_for != n));
      if (inventory_.Remaining(g) > 0 && !of_another && fit.Has(group.cls)) return false;
    }
  }
  if (supply_now > memory.supply_seen) return false;
  const int32_t every = std::max(1, policy_.reprobe_every);
  return (memory.hopeless - policy_.park_after + 1) % every != 0;
}

void Cycle::ChooseDomain(NeedId n, const Fit& fit, const std::vector<DomainSupply>& supply, bool looks) {
  const Amounts& aggregate = need(n).aggregate;
  const size_t dimensions = dims();
  Outcome& outcome = outcomes_[n];
  std::vector<Rank> ranks;
  for (const DomainSupply& s : supply) {
    Rank rank{.domain = s.domain,
              .satisfiable = Covers(s.total, aggregate, dimensions),
              .satisfiable_later = Covers(s.later, aggregate, dimensions),
              .pledged = s.pledged,
              .capped_total = Score(s.total, aggregate, true, dimensions),
              .capped_creditable = Score(s.creditable, aggregate, true, dimensions),
              .capped_own = Score(s.own, aggregate, true, dimensions)};
    if (!looks) rank.kept = rank.capped_own;
    const bool settled = Covers(s.creditable, aggregate, dimensions);
    rank.tightness = Score(settled ? s.creditable : s.total, aggregate, false, dimensions);
    rank.count = settled ? s.creditable_count : s.count;
    ranks.push_back(rank);
  }
  if (ranks.empty()) return;
  if (explain_) {
    std::ranges::sort(ranks, [](const Rank& a, const Rank& b) { return a < b; });
    const auto demanded = std::ranges::count_if(aggregate.v, [](int64_t amount) { return amount > 0; });
    for (const Rank& rank : ranks) {
      if (gangs_[outcome.gang].domains.size() == 6) break;
      gangs_[outcome.gang].domains.push_back(
          {.domain = DomainText(fit.domains[rank.domain]),
           .coverage_per_mille = static_cast<int64_t>(rank.capped_total * 1000 / (demanded * kOne)),
           .satisfiable = rank.satisfiable});
    }
  }
  const Rank* choice = &*std::min_element(ranks.begin(), ranks.end());
  const Rank* tied = nullptr;
  for (const Rank& rank : ranks) {
    if (rank.pledged == 0) continue;
    const bool better = tied == nullptr || (rank.satisfiable_later != tied->satisfiable_later ? rank.satisfiable_later
                                            : rank.pledged != tied->pledged ? rank.pledged > tied->pledged
                                                                            : rank.domain < tied->domain);
    if (better) tied = &rank;
  }
  if (tied != nullptr && (tied->satisfiable_later || !choice->satisfiable)) choice = tied;
  outcome.domain = choice->domain;
  outcome.satisfiable = choice->satisfiable;
}

// A gang that its cluster covers in some domain chooses among such domains, whatever is free elsewhere: the common case
// of a fleet at rest. False: it must look further.
bool Cycle::ServeSettledGang(NeedId n, const Fit& fit) {
  if (explain_ || inventory_.key(need(n).key).has_pledges() || MemoryOf(need(n).key).hopeless > 0) return false;
  std::vector<DomainSupply>& supply = supply_;
  CollectSupply(n, fit, false, supply);
  const Amounts& aggregate = need(n).aggregate;
  std::erase_if(supply, [&](const DomainSupply& s) { return !Covers(s.creditable, aggregate, dims()); });
  if (supply.empty()) return false;
  ChooseDomain(n, fit, supply, true);
  return true;
}

void Cycle::ServeGang(NeedId n) {
  Outcome& outcome = outcomes_[n];
  const NeedRow& gang = need(n);
  if (IsZero(gang.aggregate, dims())) return;
  const Fit& fit = catalogue().FitWithDomains(gang.fit);
  outcome.gang = static_cast<uint32_t>(gangs_.size());
  gangs_.push_back({.rest = gang.aggregate, .supply_now = 0, .domains = {}});
  bool may_acquire = HasSession(n);
  if (!ServeSettledGang(n, fit)) {
    CollectSupply(n, fit, true, supply_);
    int64_t& supply_now = gangs_[outcome.gang].supply_now;
    for (const DomainSupply& s : supply_) supply_now += s.count;
    outcome.parked = IsParked(n, supply_now);
    may_acquire = may_acquire && !outcome.parked;
    if (!may_acquire) CollectSupply(n, fit, false, supply_);
    ChooseDomain(n, fit, supply_, may_acquire);
  }
  if (outcome.domain == kNoId) return;

  const uint32_t domain = outcome.domain;
  std::vector<GroupId> own;
  std::vector<GroupId> creating;
  std::vector<Take> credits;
  Amounts shortage = gang.aggregate;
  Amounts& rest = gangs_[outcome.gang].rest;
  const auto leave_out = [&](const std::vector<GroupId>& lane) {
    for (const GroupId g : lane) Subtract(rest, inventory_.each(inventory_.group(g)), inventory_.Remaining(g), dims());
  };
  OwnLane(n, fit, domain, own);
  TakeLane(own, TiesInKeepOrder, shortage, credits, nullptr);
  leave_out(own);
  RestLane(n, fit, domain, lane_);
  TakeLane(lane_, TiesInKeepOrder, shortage, credits, nullptr);
  leave_out(lane_);
  CreatingLane(n, fit, domain, creating);
  TakeLane(creating, TiesInPrice, shortage, credits, nullptr);
  leave_out(creating);

  Acquisition plan;
  if (may_acquire && !IsZero(shortage, dims())) plan = PlanAcquisition(n, shortage, domain);
  const Key& key = inventory_.key(gang.key);
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      Group& group = inventory_.Open(g);
      if (inventory_.Remaining(g) == 0 || group.pledge_ended || !fit.Has(group.cls)) continue;
      if ((group.held_for != kNoId && group.held_for != n) || DomainOf(fit, group.cls) != domain) continue;
      group.held_for = n;
      if (group.state == MachineState::kDraining) {
        Subtract(shortage, inventory_.each(group), inventory_.Remaining(g), dims());
      }
    }
  }
  const bool whole = IsZero(shortage, dims());
  outcome.satisfiable = outcome.satisfiable || whole;
  const auto apply = [&](const std::vector<Take>& takes) {
    for (const Take& take : takes) {
      Subtract(outcome.shortage, inventory_.each(inventory_.group(take.group)), take.count, dims());
    }
  };
  if (whole) {
    apply(credits);
    apply(plan.takes);
    Credit(n, credits);
    Acquire(n, plan);
    return;
  }
  credits.clear();
  TakeLane(own, TiesInKeepOrder, outcome.shortage, credits, nullptr);
  TakeLane(creating, TiesInPrice, outcome.shortage, credits, nullptr);
  Credit(n, credits);
}

}  // namespace muster::engine::fast
