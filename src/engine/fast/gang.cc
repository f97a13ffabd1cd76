// Gangs: one domain, whole or nothing. Domains are ranked by totals of groups.
#include <algorithm>

#include "base/probe.h"
#include "engine/fast/lanes.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

Wide Score(const Totals& totals, const Amounts& deficit, bool capped, size_t n) {
  Wide score = 0;
  for (size_t d = 0; d < n; ++d) {
    if (deficit[d] == 0) continue;
    const Wide ratio = Ratio(totals[d], deficit[d]);
    score += capped ? std::min<Wide>(ratio, kOne) : ratio;
  }
  return score;
}

}  // namespace

bool Planner::Rank::operator<(const Rank& b) const {
  if (satisfiable_now != b.satisfiable_now) return satisfiable_now;
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

// Domains with anything for the gang, in the order of their names.
void Planner::CollectSupply(NeedId n, bool with_free, std::vector<DomainSupply>& supply) {
  supply.clear();
  const Fit& classes = fit(n);
  const size_t dimensions = dims();
  Rows<DomainId, uint32_t>& slot = slot_of_domain_;
  slot.assign(classes.domains.size(), kNoId);
  const auto in = [&](ClassId c) -> DomainSupply& {
    const DomainId domain = DomainOf(classes, c);
    if (slot[domain] == kNoId) {
      slot[domain] = static_cast<uint32_t>(supply.size());
      supply.push_back({.domain = domain});
    }
    return supply[slot[domain]];
  };
  const auto add = [&](GroupId g, std::initializer_list<Totals DomainSupply::*> to) -> DomainSupply& {
    const Group& group = inventory_.group(g);
    DomainSupply& domain = in(group.cls);
    for (const auto member : to) Add(domain.*member, each(g), view_.Remaining(g), dimensions);
    return domain;
  };
  using D = DomainSupply;
  const auto creditable = [&](const std::vector<GroupId>& lane, bool own) {
    for (const GroupId g : lane) {
      D& domain = own ? add(g, {&D::own, &D::creditable, &D::free, &D::total, &D::all})
                      : add(g, {&D::creditable, &D::free, &D::total, &D::all});
      domain.own_count += own ? view_.Remaining(g) : 0;
      domain.creditable_count += view_.Remaining(g);
      domain.count += view_.Remaining(g);
    }
  };
  OwnLane(n, kNoId, lane_);
  creditable(lane_, true);
  RestLane(n, kNoId, lane_);
  creditable(lane_, false);
  CreatingLane(n, kNoId, lane_);
  creditable(lane_, true);
  inventory_.key(need(n).key).ForEachPledged([&](GroupId g) {
    if (!IsPledgedTo(n, g)) return;
    const Group& group = inventory_.group(g);
    D& domain = in(group.cls);
    domain.pledged += view_.Remaining(g);
    if (group.state == MachineState::kDraining) {
      if (!MUTANT("fast.drains_unseen")) Add(domain.draining, each(g), view_.Remaining(g), dimensions);
    } else if (with_free && !inventory_.IsOnHold(group, need(n).cluster)) {
      add(g, {&D::free, &D::total, &D::all}).count += view_.Remaining(g);
    }
  });
  if (with_free) {
    const auto collect = [&](std::initializer_list<Totals DomainSupply::*> to) {
      for (const Offerer& offerer : offerers_) {
        const uint32_t left = view_.Remaining(offerer.group);
        if (left > 0) add(offerer.group, to).count += left;
      }
    };
    for (const MachineState state : {MachineState::kIdle, MachineState::kSpeculative}) {
      Offerers(n, state, kNoId, offerers_);
      collect({&D::free, &D::total, &D::all});
    }
    OnHold(n, kNoId, offerers_);
    collect({&D::total, &D::all});
    for (const ClassId c : catalogue().out_of_stock()) {
      if (!classes.Has(c)) continue;
      for (const GroupId g : catalogue().cls(c).free) {
        const uint32_t left = view_.Remaining(g);
        if (inventory_.group(g).state == MachineState::kSpeculative && left > 0) add(g, {&D::all}).out_of_stock += left;
      }
    }
  }
  std::ranges::sort(supply, {}, &D::domain);
}

bool Planner::IsParked(NeedId n, int64_t supply_now) const {
  const NeedMemory memory = MemoryOf(need(n).key);
  if (memory.hopeless < policy_.park_after || !Acquires(n)) return false;
  // A pledge it can use keeps it looking.
  bool has_pledge = false;
  inventory_.key(need(n).key).ForEachPledged([&](GroupId g) { has_pledge = has_pledge || IsPledgedTo(n, g); });
  if (has_pledge) return false;
  if (supply_now > memory.supply_seen) return false;
  const int32_t every = std::max(1, policy_.reprobe_every);
  return (memory.hopeless - policy_.park_after + 1) % every != 0;
}

void Planner::ChooseDomain(NeedId n, const std::vector<DomainSupply>& supply, bool looks, GangPlan& gang) {
  const Amounts& aggregate = need(n).aggregate;
  const size_t dimensions = dims();
  ranks_.clear();
  for (const DomainSupply& s : supply) {
    const bool begun = s.own_count > 0 || s.pledged > 0;
    const bool satisfiable_now = Covers(begun ? s.total : s.free, aggregate, dimensions);
    const Totals& total = satisfiable_now && !begun ? s.free : s.total;
    Totals later = total;
    for (size_t d = 0; d < dimensions; ++d) later[d] += s.draining[d];
    gang.hopeful = gang.hopeful || Covers(s.all, aggregate, dimensions);
    Rank rank{.domain = s.domain,
              .satisfiable_now = satisfiable_now,
              .satisfiable = Covers(total, aggregate, dimensions),
              .satisfiable_later = Covers(later, aggregate, dimensions),
              .pledged = s.pledged,
              .capped_total = Score(total, aggregate, true, dimensions),
              .capped_creditable = Score(s.creditable, aggregate, true, dimensions),
              .capped_own = Score(s.own, aggregate, true, dimensions)};
    if (!looks) rank.kept = rank.capped_own;
    const bool settled = Covers(s.creditable, aggregate, dimensions);
    rank.tightness = Score(settled ? s.creditable : total, aggregate, false, dimensions);
    rank.count = settled ? s.creditable_count : s.count;
    ranks_.push_back(rank);
  }
  if (ranks_.empty()) return;
  if (explain_) {
    std::ranges::sort(ranks_, [](const Rank& a, const Rank& b) { return a < b; });
    const int64_t unknown = catalogue().unknown_in(aggregate);
    const int64_t demanded = std::ranges::count_if(aggregate.v, [](int64_t amount) { return amount > 0; }) +
                             (unknown == 0 ? 0 : unknown - 1);
    for (const Rank& rank : ranks_) {
      if (gang.domains.size() == 6) break;
      gang.domains.push_back({.domain = DomainText(fit(n).domains[rank.domain]),
                              .coverage_per_mille = static_cast<int64_t>(rank.capped_total * 1000 / (demanded * kOne)),
                              .satisfiable = rank.satisfiable});
    }
  }
  const Rank* choice = &*std::min_element(ranks_.begin(), ranks_.end());
  const Rank* tied = nullptr;
  for (const Rank& rank : ranks_) {
    if (rank.pledged == 0) continue;
    const bool better = tied == nullptr || (rank.satisfiable_later != tied->satisfiable_later ? rank.satisfiable_later
                                            : rank.pledged != tied->pledged ? rank.pledged > tied->pledged
                                                                            : rank.domain < tied->domain);
    if (better) tied = &rank;
  }
  if (tied != nullptr && (tied->satisfiable_later || !choice->satisfiable)) choice = tied;
  gang.domain = choice->domain;
  gang.satisfiable = choice->satisfiable;
}

// The gang's own bound machines cover it, in one domain and no other: that domain ranks first, whatever else there is,
// and nothing but its own is credited. What a fleet at rest consists of.
bool Planner::CreditOwnGang(NeedId n, Plan& plan) {
  const KeyState& key = inventory_.key_state(need(n).key);
  if (explain_ || key.has_pledges || key.has_creating) return false;
  if (MemoryOf(need(n).key).hopeless > 0) return false;
  DomainId domain = kNoId;
  Amounts rest = need(n).aggregate;
  for (const GroupId g : inventory_.key(need(n).key).own) {
    if (view_.Remaining(g) == 0 || !fit(n).Has(inventory_.group(g).cls)) continue;
    const DomainId here = DomainOf(fit(n), inventory_.group(g).cls);
    if (domain != kNoId && here != domain) return false;
    domain = here;
    Subtract(rest, each(g), view_.Remaining(g), dims());
  }
  if (domain == kNoId || !IsZero(rest, dims())) return false;
  plan.settles = OwnLane(n, kNoId, own_);
  TakeLane(own_, TiesInKeepOrder, plan.shortage, plan.credits, nullptr);
  plan.gang.domain = domain;
  plan.gang.satisfiable = true;
  return true;
}

// A gang that its cluster covers in some domain chooses among such domains, whatever is free elsewhere: the common case
// of a fleet at rest. False: it must look further.
bool Planner::ChooseSettled(NeedId n, GangPlan& gang) {
  if (explain_ || inventory_.key_state(need(n).key).has_pledges || MemoryOf(need(n).key).hopeless > 0) return false;
  CollectSupply(n, false, supply_);
  std::erase_if(supply_, [&](const DomainSupply& s) { return !Covers(s.creditable, need(n).aggregate, dims()); });
  if (supply_.empty()) return false;
  ChooseDomain(n, supply_, true, gang);
  return true;
}

void Planner::PlanGang(NeedId n, Plan& plan) {
  GangPlan& gang = plan.gang;
  CollectSupply(n, true, supply_);
  for (const DomainSupply& s : supply_) gang.supply_now += s.count + s.out_of_stock;
  gang.parked = IsParked(n, gang.supply_now);
  const bool may_acquire = Acquires(n) && !gang.parked;
  if (!may_acquire) CollectSupply(n, false, supply_);
  ChooseDomain(n, supply_, may_acquire, gang);
  if (may_acquire && !gang.satisfiable) NoteParts(n, gang);
  if (gang.domain == kNoId) return;
  CompleteGang(n, may_acquire, plan);
  if (!gang.holds.empty() && !IsZero(plan.shortage, dims())) KeepElsewhere(n, gang);
}

// Where phase 2 may complete it.
void Planner::NoteParts(NeedId n, GangPlan& gang) {
  for (const DomainSupply& s : supply_) {
    if (s.creditable_count == 0) continue;
    GangPlan::Part& part = gang.parts.emplace_back();
    part.domain = s.domain;
    part.own = s.own_count > 0;
    part.rest = need(n).aggregate;
    for (size_t d = 0; d < dims(); ++d) {
      part.rest[d] = s.creditable[d] >= part.rest[d] ? 0 : part.rest[d] - static_cast<int64_t>(s.creditable[d]);
    }
  }
}

// Machines come to the gang in its domain: its own ones elsewhere stay until it is complete.
void Planner::KeepElsewhere(NeedId n, GangPlan& gang) {
  OwnLane(n, kNoId, own_);
  for (const GroupId g : own_) {
    if (DomainOf(fit(n), inventory_.group(g).cls) != gang.domain) gang.keeps.push_back(g);
  }
}

// All of it in the chosen domain, or only what is its own.
void Planner::CompleteGang(NeedId n, bool may_acquire, Plan& plan) {
  GangPlan& gang = plan.gang;
  const NeedRow& row = need(n);
  Amounts shortage = row.aggregate;
  const auto leave_out = [&](const std::vector<GroupId>& lane) {
    for (const GroupId g : lane) Subtract(gang.rest, each(g), view_.Remaining(g), dims());
  };
  OwnLane(n, gang.domain, own_);
  TakeLane(own_, TiesInKeepOrder, shortage, plan.credits, nullptr);
  leave_out(own_);
  RestLane(n, gang.domain, lane_);
  TakeLane(lane_, TiesInKeepOrder, shortage, plan.credits, nullptr);
  leave_out(lane_);
  CreatingLane(n, gang.domain, creating_);
  TakeLane(creating_, TiesInPrice, shortage, plan.credits, nullptr);
  leave_out(creating_);
  if (may_acquire && !IsZero(shortage, dims())) PlanAcquisition(n, shortage, gang.domain, plan.acquired);
  const Amounts claimed = shortage;
  inventory_.key(row.key).ForEachPledged([&](GroupId g) {
    if (!IsPledgedTo(n, g) || DomainOf(fit(n), inventory_.group(g).cls) != gang.domain) return;
    gang.holds.push_back(g);
    if (inventory_.group(g).state == MachineState::kDraining) Subtract(shortage, each(g), view_.Remaining(g), dims());
  });
  const bool whole = IsZero(shortage, dims());
  gang.satisfiable = gang.satisfiable || whole;
  if (whole) {
    plan.shortage = claimed;
    return;
  }
  plan.credits.clear();
  plan.acquired.clear();
  TakeLane(own_, TiesInKeepOrder, plan.shortage, plan.credits, nullptr);
  TakeLane(creating_, TiesInPrice, plan.shortage, plan.credits, nullptr);
}

}  // namespace muster::engine::fast
