// Phase 3: what no need claims is given back, after a while.
#include <algorithm>

#include "base/probe.h"
#include "engine/fast/cycle.h"
#include "engine/fast/lanes.h"

namespace muster::engine::fast {

using model::CapacityType;
using model::MachineState;
using model::Reason;

// The cluster's bound groups that may have something unclaimed, in keep order.
std::span<const GroupId> Cycle::Candidates(ClusterId c) {
  Surplus& surplus = surplus_[c];
  const Cluster& cluster = inventory_.cluster(c);
  const bool moved = surplus.version != cluster.version && !MUTANT("fast.surplus_missed");
  const bool all = surplus.shared || moved || surplus.listed != demand_.ListedIn(c);
  surplus.version = cluster.version;
  surplus.listed = demand_.ListedIn(c);
  surplus.shared = false;
  if (all) {
    surplus.again.clear();
    for (uint32_t i = 0; i < cluster.bound.size(); ++i) inventory_.group(cluster.bound[i]).bound_at = i;
    return cluster.bound;
  }
  if (!surplus.again.empty()) {
    surplus.again.insert(surplus.again.end(), surplus.groups.begin(), surplus.groups.end());
    std::ranges::sort(surplus.again, {}, [&](GroupId g) { return inventory_.group(g).bound_at; });
    const auto twice = std::ranges::unique(surplus.again);
    surplus.again.erase(twice.begin(), twice.end());
    std::swap(surplus.again, surplus.groups);
    surplus.again.clear();
  }
  return surplus.groups;
}

void Cycle::Reclaim() {
  for (const NeedId n : served_) {
    if (!inventory_.key_state(need(n).key).has_own) continue;
    const std::vector<GroupId>& own = inventory_.key(need(n).key).own;  // also what it cannot use any more
    std::vector<GroupId>& again = surplus_[need(n).cluster].again;
    again.insert(again.end(), own.begin(), own.end());
  }
  std::vector<GroupId>& found = found_;
  for (const ClusterId c : inventory_.ClustersByName()) {
    const Cluster& cluster = inventory_.cluster(c);
    const bool runs = cluster.state.takes_part() && cluster.state.gate_open;
    const std::span<const GroupId> bound = Candidates(c);
    bool capped = false;
    found.clear();
    for (size_t i = 0; i < bound.size();) {
      const GroupId first = bound[i];
      const Group& group = inventory_.group(first);
      const bool surplus = group.state == MachineState::kConfigured && inventory_.Remaining(first) > 0;
      if (surplus || group.has_clocks) found.push_back(first);
      const bool may_go = runs && surplus && MayReclaimFrom(first);
      capped = capped || (may_go && reclaims_left_[c] <= 0);
      if (!may_go || reclaims_left_[c] <= 0) {
        ++i;
        continue;
      }
      // All that tie with it go by id together; groups before it in the tie have nothing to give.
      merge_.Clear();
      merge_.Add(first);
      for (++i; i < bound.size() && TiesInKeepOrder(inventory_, first, bound[i]); ++i) {
        const GroupId g = bound[i];
        if (inventory_.Remaining(g) > 0 || inventory_.group(g).has_clocks) found.push_back(g);
        if (MayReclaimFrom(g)) merge_.Add(g);
      }
      for (; !merge_.empty(); merge_.Step()) {
        const MachineId m = merge_.machine();
        if (IsTaken(m) || now_ - inventory_.since(m).value_or(now_) < policy_.surplus_hold) continue;
        capped = reclaims_left_[c] <= 0;
        if (capped) break;
        --reclaims_left_[c];
        actions_.push_back({.kind = ActionKind::kReclaim,
                            .reason = Reason::kReclaimSurplus,
                            .grace_seconds = static_cast<int32_t>(kReclaimGrace.count()),
                            .machine = m,
                            .need = kNoId});
      }
    }
    if (capped) ++reclaims_capped_;
    std::swap(surplus_[c].groups, found);
  }
}

// Whether some unclaimed machine of the group may have waited long enough. While nothing changed since its clocks were
// kept, the oldest of them tells.
bool Cycle::MayReclaimFrom(GroupId g) const {
  const Group& group = inventory_.group(g);
  if (group.state != MachineState::kConfigured || inventory_.Remaining(g) == 0) return false;
  if (group.hold == HoldSets::kEveryone) return false;  // [H.kept]
  if (policy_.surplus_hold <= Duration::zero()) return true;
  if (!group.has_clocks) return false;  // their hold begins with this cycle
  const bool known = group.clock_changes == group.changes;
  return !known || now_ - MonoTime(Duration(group.oldest_clock)) >= policy_.surplus_hold;
}

// Idle machines wait in a queue until their hold has passed. One that is then claimed or pledged is looked at again in
// every cycle until it leaves Idle. A machine whose hold changes while it waits stands in the queue twice.
void Cycle::Release() {
  const auto hold = [&](MachineId m) {
    return catalogue().cls(inventory_.cls(m)).capacity_type == CapacityType::kSpot ? policy_.release_hold_spot
                                                                                   : policy_.release_hold_on_demand;
  };
  const auto later = [](const Waiting& a, const Waiting& b) { return a.until > b.until; };
  const auto is_over = [&](const Inventory::Resting& r) { return now_ - r.since >= hold(r.machine); };
  const auto is_current = [&](const Inventory::Resting& resting) {
    const MachineId m = resting.machine;
    if (inventory_.state(m) != MachineState::kIdle || inventory_.since(m) != resting.since) return false;
    const CapacityType type = catalogue().cls(inventory_.cls(m)).capacity_type;
    return type == CapacityType::kOnDemand || type == CapacityType::kSpot;
  };
  std::vector<Inventory::Resting>& fresh = inventory_.resting();
  for (const Inventory::Resting& resting : fresh) {
    if (!is_current(resting)) continue;
    waiting_.push_back({.until = resting.since + hold(resting.machine), .resting = resting});
    std::ranges::push_heap(waiting_, later);
  }
  fresh.clear();
  while (!waiting_.empty() && waiting_.front().until <= now_) {
    due_.push_back(waiting_.front().resting);
    std::ranges::pop_heap(waiting_, later);
    waiting_.pop_back();
  }
  std::erase_if(due_, [&](const Inventory::Resting& r) { return !is_current(r) || !is_over(r); });
  std::ranges::sort(due_, {}, [&](const Inventory::Resting& r) { return inventory_.label(r.machine); });
  const auto again = std::ranges::unique(due_, {}, &Inventory::Resting::machine);
  if (!MUTANT("fast.released_twice")) due_.erase(again.begin(), again.end());
  for (const Inventory::Resting& resting : due_) {
    const MachineId m = resting.machine;
    if (inventory_.IsClaimed(m) || IsHeld(m)) continue;
    actions_.push_back(
        {.kind = ActionKind::kDelete, .reason = Reason::kReleaseIdle, .grace_seconds = 0, .machine = m, .need = kNoId});
  }
}

// Pledged to a need whose cluster may acquire.
bool Cycle::IsHeld(MachineId m) const {
  const Group& group = inventory_.group(inventory_.group_of(m));
  const bool ended = group.cycle == inventory_.cycle() && group.pledge_ended;
  return group.pledge != kNoId && !ended && inventory_.cluster(inventory_.key(group.pledge).cluster).state.acquires();
}

}  // namespace muster::engine::fast
