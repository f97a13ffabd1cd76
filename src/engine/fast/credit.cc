// What a need gets of its own cluster's machines.
#include <algorithm>
#include <tuple>

#include "base/probe.h"
#include "engine/fast/lanes.h"
#include "engine/fast/planner.h"

namespace muster::engine::fast {

void Plan::Clear(const Amounts& aggregate) {
  credits.clear();
  acquired.clear();
  shortage = aggregate;
  settles = false;
  gang.domain = kNoId;
  gang.parked = false;
  gang.satisfiable = false;
  gang.hopeful = false;
  gang.rest = aggregate;
  gang.supply_now = 0;
  gang.domains.clear();
  gang.holds.clear();
  gang.keeps.clear();
  gang.parts.clear();
}

bool Planner::Credit(NeedId n, Plan& plan) {
  const NeedRow& row = need(n);
  plan.Clear(row.aggregate);
  if (IsZero(row.aggregate, dims())) return true;
  if (row.is_gang) {
    if (CreditOwnGang(n, plan)) return true;
    if (!ChooseSettled(n, plan.gang)) return false;
    CompleteGang(n, false, plan);
    return true;
  }
  const bool whole = OwnLane(n, kNoId, lane_);
  TakeLane(lane_, TiesInKeepOrder, plan.shortage, plan.credits, nullptr);
  if (IsZero(plan.shortage, dims())) {
    plan.settles = whole;
    return true;
  }
  if (row.spreads) {
    CreditSpread(n, plan);
    return true;
  }
  RestLane(n, kNoId, lane_);
  TakeLane(lane_, TiesInKeepOrder, plan.shortage, plan.credits, nullptr);
  CreatingLane(n, kNoId, lane_);
  TakeLane(lane_, TiesInPrice, plan.shortage, plan.credits, nullptr);
  return true;
}

void Planner::Acquire(NeedId n, Plan& plan) {
  if (IsZero(plan.shortage, dims()) || !Acquires(n)) return;
  if (need(n).spreads) {
    AcquireSpread(n, plan);
  } else {
    PlanAcquisition(n, plan.shortage, kNoId, plan.acquired);
  }
}

void Planner::Whole(NeedId n, Plan& plan) {
  if (!need(n).is_gang) {
    Credit(n, plan);
    Acquire(n, plan);
  } else if (!Credit(n, plan)) {
    PlanGang(n, plan);
  }
}

bool Planner::OwnLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const {
  lane.clear();
  bool whole = true;
  if (!inventory_.key_state(need(n).key).has_own) return whole;
  const Fit& classes = fit(n);
  for (const GroupId g : inventory_.key(need(n).key).own) {
    const Group& group = inventory_.group(g);
    if (!classes.Has(group.cls)) continue;
    const uint32_t remaining = view_.Remaining(g);
    whole = whole && remaining == group.size;
    if (remaining == 0) continue;
    if (domain == kNoId || DomainOf(classes, group.cls) == domain) lane.push_back(g);
  }
  return whole;
}

template <class Also>
void Planner::FillLane(NeedId n, std::span<const GroupId> from, DomainId domain, std::vector<GroupId>& lane,
                       const Also& also) const {
  lane.clear();
  const Fit& classes = fit(n);
  for (const GroupId g : from) {
    if (view_.Remaining(g) == 0) continue;
    const Group& group = inventory_.group(g);
    if (!also(group) || !classes.Has(group.cls)) continue;
    if (domain == kNoId || DomainOf(classes, group.cls) == domain) lane.push_back(g);
  }
}

void Planner::RestLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const {
  const KeyId key = need(n).key;
  FillLane(n, inventory_.cluster(need(n).cluster).bound, domain, lane, [&](const Group& g) { return g.owner != key; });
}

void Planner::CreatingLane(NeedId n, DomainId domain, std::vector<GroupId>& lane) const {
  lane.clear();
  if (!inventory_.key_state(need(n).key).has_creating) return;
  FillLane(n, inventory_.key(need(n).key).creating, domain, lane, [](const Group&) { return true; });
}

void Planner::PledgedLane(NeedId n, DomainId domain, std::vector<Offerer>& lane) const {
  lane.clear();
  for (const GroupId g : inventory_.key(need(n).key).idle) {
    const Group& group = inventory_.group(g);
    if (!IsPledgedTo(n, g) || !MayUse(n, group, domain) || inventory_.IsOnHold(group, need(n).cluster)) continue;
    lane.push_back({.group = g, .cost = CostTo(n, group.cls), .size = catalogue().shape_of(group.cls).size});
  }
  std::ranges::sort(lane, {}, [](const Offerer& o) { return std::tuple(o.cost, o.size, o.group); });
}

void Planner::TakeLane(std::span<const GroupId> lane, Tie ties, Amounts& shortage, std::vector<Take>& takes,
                       std::vector<MachineId>* names) {
  for (size_t i = 0; i < lane.size() && !IsZero(shortage, dims());) {
    size_t end = i + 1;
    while (end < lane.size() && ties(inventory_, lane[i], lane[end])) ++end;
    TakeTied(lane.subspan(i, end - i), shortage, takes, names);
    i = end;
  }
}

// In some short dimension to which every machine adds, all but the smallest are not enough: whatever the order, each
// machine is useful when its turn comes, and all are taken.
bool Planner::TakeAllTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes) const {
  for (size_t d = 0; d < dims(); ++d) {
    if (shortage[d] == 0) continue;
    Wide total = 0;
    int64_t smallest = each(tied[0])[d];
    for (const GroupId g : tied) {
      smallest = std::min(smallest, each(g)[d]);
      total += Wide{each(g)[d]} * view_.Remaining(g);
    }
    if (smallest == 0 || total - smallest * (MUTANT("fast.tied_all") ? 2 : 1) >= shortage[d]) continue;
    for (const GroupId g : tied) {
      const uint32_t count = view_.Remaining(g);
      takes.push_back({.group = g, .count = count});
      Subtract(shortage, each(g), count, dims());
    }
    return true;
  }
  return false;
}

// Where the last merge split each group, for the next cycle to try first.
void Planner::NoteSplit(std::span<const Take> takes) {
  for (const Take& take : takes) {
    Group& group = inventory_.Open(take.group);
    if (group.claimed > 0) return;  // not from its first machine on
    IdSet::Cursor cursor = group.members.Begin();
    group.split_changes = group.changes;
    group.split = take.count;
    group.split_last = kNoMachine;
    for (uint32_t i = 0; i < take.count; ++i) group.split_last = inventory_.Next(take.group, cursor);
    group.split_next = inventory_.Next(take.group, cursor);
  }
}

// Demand moves little from cycle to cycle: mostly the same machines are taken again. They are the right ones if they
// are the first by id, cover the shortage, and would not without the last of them; given that every machine adds to
// every short dimension, so that each is useful until all is covered.
bool Planner::TakeAsLastTime(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes) const {
  uint64_t last = 0;
  uint64_t next = ~uint64_t{0};
  const Amounts* last_each = nullptr;
  Totals taken{};
  for (const GroupId g : tied) {
    const Group& group = inventory_.group(g);
    if (group.split_changes != group.changes || view_.Remaining(g) != group.size) return false;
    if (group.split > 0 && inventory_.label(group.split_last) > last) {
      last = inventory_.label(group.split_last);
      last_each = &each(g);
    }
    if (group.split_next != kNoMachine) next = std::min(next, inventory_.label(group.split_next));
    for (size_t d = 0; d < dims(); ++d) {
      if (shortage[d] > 0 && each(g)[d] == 0) return false;
      taken[d] += Wide{each(g)[d]} * group.split;
    }
  }
  if (last_each == nullptr || next < last) return false;
  bool needed = false;
  for (size_t d = 0; d < dims(); ++d) {
    if (taken[d] < shortage[d]) return false;
    needed = needed || taken[d] - (*last_each)[d] < shortage[d];
  }
  if (!needed) return false;
  for (const GroupId g : tied) {
    if (inventory_.group(g).split > 0) takes.push_back({.group = g, .count = inventory_.group(g).split});
  }
  shortage = {};
  return true;
}

// Machines of tied groups go by id. Where that cannot matter, because there is one group or all are taken, no machine
// is looked at.
void Planner::TakeTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes,
                       std::vector<MachineId>* names) {
  const size_t n = dims();
  if (names == nullptr && tied.size() == 1) {
    const int64_t count = std::min<int64_t>(view_.Remaining(tied[0]), UsefulCount(each(tied[0]), shortage, n));
    if (count == 0) return;
    takes.push_back({.group = tied[0], .count = static_cast<uint32_t>(count)});
    Subtract(shortage, each(tied[0]), count, n);
    return;
  }
  if (names == nullptr && (TakeAllTied(tied, shortage, takes) || TakeAsLastTime(tied, shortage, takes))) return;
  merge_.Clear();
  for (const GroupId g : tied) merge_.Add(g);
  const size_t first = takes.size();
  for (const GroupId g : tied) takes.push_back({.group = g, .count = 0});
  while (!IsZero(shortage, n) && !merge_.empty()) {
    const uint32_t which = merge_.source();
    if (!IsUseful(each(tied[which]), shortage, n)) {
      merge_.DropSource();  // nor will it be later
      continue;
    }
    if (names != nullptr) names->push_back(merge_.machine());
    Subtract(shortage, each(tied[which]), 1, n);
    ++takes[first + which].count;
    merge_.Step();
  }
  if (names == nullptr) NoteSplit(std::span(takes).subspan(first));
  std::erase_if(takes, [](const Take& take) { return take.count == 0; });
}

}  // namespace muster::engine::fast
