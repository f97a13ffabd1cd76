// Phase 1: needs in order, each from what its cluster has and then from what is free.
#include <algorithm>

#include "base/probe.h"
#include "engine/fast/cycle.h"
#include "engine/fast/id_merge.h"
#include "engine/fast/lanes.h"

namespace muster::engine::fast {

using model::MachineState;

void Cycle::Run(MonoTime now, bool explain) {
  now_ = now;
  explain_ = explain;
  inventory_.BeginCycle(now);
  demand_.BeginCycle();
  RefreshPledges();
  const auto& order = demand_.order();
  outcomes_.assign(order.size(), {});
  gangs_.clear();
  claims_.clear();
  actions_.clear();
  ended_.clear();
  held_.clear();
  reclaims_left_.resize(inventory_.clusters());
  for (ClusterId c = 0; c < reclaims_left_.size(); ++c)
    reclaims_left_[c] = inventory_.cluster(c).state.reclaims_allowed;
  for (NeedId n = 0; n < order.size(); ++n) {
    order[n]->id = n;
    outcomes_[n].shortage = order[n]->aggregate;
  }
  age_before_.clear();
  for (NeedId n = 0; explain && n < order.size(); ++n) age_before_.push_back(MemoryOf(order[n]->key).age_unmet);
  for (NeedId n = 0; n < order.size(); ++n) {
    Serve(n);
    const bool last_of_key = n + 1 == order.size() || order[n + 1]->key != order[n]->key;
    if (last_of_key && inventory_.key(order[n]->key).has_pledges()) EndPledges(n);
  }
  Phase2();
  Reclaim();
  Release();
  Finish();
}

void Cycle::RefreshPledges() {
  bool changed = false;
  for (const KeyId id : inventory_.pledged_keys()) {
    if (demand_.IsListed(id)) continue;
    const KeyId called = demand_.NowCalled(id);
    const KeyId pledge = called == id ? kNoId : called;
    const Key& key = inventory_.key(id);
    for (const auto* list : {&key.idle, &key.draining}) {
      for (const GroupId g : *list) {
        IdSet::Cursor cursor = inventory_.group(g).members.Begin();
        for (MachineId m = inventory_.Next(g, cursor); m != kNoMachine; m = inventory_.Next(g, cursor)) {
          inventory_.SetPledge(m, pledge);
          changed = true;
        }
      }
    }
  }
  if (changed) inventory_.Settle();
}

void Cycle::Serve(NeedId n) {
  if (need(n).is_gang) {
    ServeGang(n);
  } else if (need(n).spreads) {
    ServeSpread(n);
  } else {
    ServePlain(n);
  }
}

void Cycle::OwnLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const {
  lane.clear();
  for (const GroupId g : inventory_.key(need(n).key).own) {
    const ClassId c = inventory_.group(g).cls;
    if (inventory_.Remaining(g) > 0 && fit.Has(c) && (domain == kNoId || DomainOf(fit, c) == domain)) lane.push_back(g);
  }
}

void Cycle::RestLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const {
  lane.clear();
  for (const GroupId g : inventory_.cluster(need(n).cluster).bound) {
    const Group& group = inventory_.group(g);
    if (group.owner == need(n).key || inventory_.Remaining(g) == 0 || !fit.Has(group.cls)) continue;
    if (domain == kNoId || DomainOf(fit, group.cls) == domain) lane.push_back(g);
  }
}

void Cycle::CreatingLane(NeedId n, const Fit& fit, uint32_t domain, std::vector<GroupId>& lane) const {
  lane.clear();
  for (const GroupId g : inventory_.key(need(n).key).creating) {
    const ClassId c = inventory_.group(g).cls;
    if (inventory_.Remaining(g) > 0 && fit.Has(c) && (domain == kNoId || DomainOf(fit, c) == domain)) lane.push_back(g);
  }
}

void Cycle::ServePlain(NeedId n) {
  Amounts& shortage = outcomes_[n].shortage;
  if (IsZero(shortage, dims())) return;
  const Fit& fit = catalogue().fit(need(n).fit);
  takes_.clear();
  OwnLane(n, fit, kNoId, lane_);
  TakeLane(lane_, TiesInKeepOrder, shortage, takes_, nullptr);
  if (!IsZero(shortage, dims())) {
    RestLane(n, fit, kNoId, lane_);
    TakeLane(lane_, TiesInKeepOrder, shortage, takes_, nullptr);
    CreatingLane(n, fit, kNoId, lane_);
    TakeLane(lane_, TiesInPrice, shortage, takes_, nullptr);
  }
  Credit(n, takes_);
  if (IsZero(shortage, dims()) || !HasSession(n)) return;
  Acquire(n, PlanAcquisition(n, shortage, kNoId));
}

void Cycle::TakeLane(std::span<const GroupId> lane, Tie ties, Amounts& shortage, std::vector<Take>& takes,
                     std::vector<MachineId>* names) {
  for (size_t i = 0; i < lane.size() && !IsZero(shortage, dims());) {
    size_t end = i + 1;
    while (end < lane.size() && ties(inventory_, lane[i], lane[end])) ++end;
    TakeTied(lane.subspan(i, end - i), shortage, takes, names);
    i = end;
  }
}

// Machines of tied groups go by id. Where that cannot matter, because all of them are taken or there is one group, no
// machine is looked at.
void Cycle::TakeTied(std::span<const GroupId> tied, Amounts& shortage, std::vector<Take>& takes,
                     std::vector<MachineId>* names) {
  const size_t n = dims();
  if (names == nullptr && tied.size() == 1) {
    const Amounts& each = inventory_.each(inventory_.group(tied[0]));
    const int64_t count = std::min<int64_t>(inventory_.Remaining(tied[0]), UsefulCount(each, shortage, n));
    if (count == 0) return;
    takes.push_back({.group = tied[0], .count = static_cast<uint32_t>(count)});
    Subtract(shortage, each, count, n);
    return;
  }
  if (names == nullptr) {
    // In some short dimension to which every machine adds, all but the smallest are not enough: whatever the order,
    // each machine is useful when its turn comes.
    for (size_t d = 0; d < n; ++d) {
      if (shortage[d] == 0) continue;
      Wide total = 0;
      int64_t smallest = inventory_.each(inventory_.group(tied[0]))[d];
      for (const GroupId g : tied) {
        const int64_t each = inventory_.each(inventory_.group(g))[d];
        smallest = std::min(smallest, each);
        total += Wide{each} * inventory_.Remaining(g);
      }
      if (smallest == 0 || total - smallest >= shortage[d]) continue;
      for (const GroupId g : tied) {
        const uint32_t count = inventory_.Remaining(g);
        takes.push_back({.group = g, .count = count});
        Subtract(shortage, inventory_.each(inventory_.group(g)), count, n);
      }
      return;
    }
  }
  IdMerge merge(inventory_);
  for (const GroupId g : tied) merge.Add(g);
  const size_t first = takes.size();
  for (const GroupId g : tied) takes.push_back({.group = g, .count = 0});
  while (!IsZero(shortage, n) && !merge.empty()) {
    const uint32_t which = merge.source();
    const Amounts& each = inventory_.each(inventory_.group(tied[which]));
    if (!IsUseful(each, shortage, n)) {
      merge.DropSource();  // nor will it be later
      continue;
    }
    if (names != nullptr) names->push_back(merge.machine());
    Subtract(shortage, each, 1, n);
    ++takes[first + which].count;
    merge.Step();
  }
  std::erase_if(takes, [](const Take& take) { return take.count == 0; });
}

void Cycle::ClaimGroup(NeedId n, const Take& take) {
  Group& group = inventory_.Open(take.group);
  Outcome& outcome = outcomes_[n];
  const auto row = static_cast<uint32_t>(claims_.size());
  claims_.push_back({.need = n,
                     .group = take.group,
                     .first = group.claimed,
                     .count = take.count,
                     .next_of_need = std::exchange(outcome.first_claim, row)});
  if (group.last_claim == kNoId) {
    group.first_claim = row;
  } else {
    claims_[group.last_claim].next_of_group = row;
  }
  group.last_claim = row;
  group.claimed += take.count;
  switch (group.state) {
    case MachineState::kIdle: outcome.bootstraps += take.count; break;
    case MachineState::kSpeculative: outcome.provisions += take.count; break;
    case MachineState::kCreating: outcome.creating += take.count; break;
    default: outcome.credited += take.count; break;
  }
}

void Cycle::Credit(NeedId n, std::span<const Take> takes) {
  for (const Take& take : takes) ClaimGroup(n, take);
}

// What becomes of the pledges to a key once its last row had its turn. All machines of a group share their fate.
void Cycle::EndPledges(NeedId n) {
  const KeyId id = need(n).key;
  const Key& key = inventory_.key(id);
  bool covered = true;
  bool first = true;
  bool is_gang = false;
  std::vector<FitId> fits;
  for (const NeedRow& row : demand_.NeedsOf(need(n).cluster)) {
    if (row.key != id) continue;
    if (std::exchange(first, false)) is_gang = row.is_gang;
    covered = covered && IsZero(outcomes_[row.id].shortage, dims());
    fits.push_back(row.fit);
  }
  const bool session = HasSession(n);
  for (const auto* list : {&key.idle, &key.draining}) {
    for (const GroupId g : *list) {
      Group& group = inventory_.Open(g);
      if (inventory_.Remaining(g) == 0 || group.pledge_ended) continue;
      bool ends = covered;
      if (is_gang) {
        ends = ends || (session && group.held_for == kNoId);
      } else {
        const bool serves = std::ranges::any_of(fits, [&](FitId fit) { return catalogue().fit(fit).Has(group.cls); });
        ends = ends || !serves || (session && group.state == MachineState::kIdle);
      }
      if (!ends) continue;
      group.pledge_ended = true;
      group.held_for = kNoId;
      ended_.push_back(g);
    }
  }
}

size_t Cycle::unsatisfied() const {
  return static_cast<size_t>(
      std::ranges::count_if(outcomes_, [&](const Outcome& outcome) { return !IsZero(outcome.shortage, dims()); }));
}

NeedMemory Cycle::MemoryOf(KeyId key) const {
  return key < memory_row_.size() && memory_row_[key] != kNoId ? remembered_[memory_row_[key]].second : NeedMemory{};
}

}  // namespace muster::engine::fast
