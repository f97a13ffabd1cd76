// What the cycle leaves behind for the next: stamps, pledges, clocks, ages.
#include <algorithm>

#include "base/probe.h"
#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::Reason;

void Cycle::Finish() {
  for (const FastAction& action : actions_) {
    if (action.need == kNoId) continue;
    const MachineId m = action.machine;
    inventory_.SetPledge(m, need(action.need).key);
    if (action.kind == ActionKind::kBootstrap) inventory_.SetStamp(m, need(action.need).stamp);
    // Surplus: its clock starts like that of the rest (KeepClocks), as long as its row is at hand.
    if (action.reason == Reason::kReclaimInstead) inventory_.SetInstead(m);
    const bool surplus = action.reason == Reason::kPreemptSurplus || action.reason == Reason::kReclaimForNeed ||
                         action.reason == Reason::kReclaimInstead;
    if (surplus && !inventory_.since(m)) inventory_.SetSince(m, now_);
  }
  for (const GroupId g : ended_) {
    inventory_.ForEachUnclaimed(g, [&](MachineId m) { inventory_.SetPledge(m, kNoId); });
  }
  KeepClocks();
  KeepStamps();
  Remember();
}

// The clock of a Configured machine runs while it could be reclaimed. Groups that are claimed whole and had no clock
// running are not looked at.
void Cycle::KeepClocks() {
  for (const Surplus& surplus : surplus_) {
    for (const GroupId g : surplus.groups) KeepClocks(g);
  }
}

void Cycle::KeepClocks(GroupId g) {
  Group& group = inventory_.group(g);
  const ClusterState& cluster = inventory_.cluster(group.cluster).state;
  const bool runs = cluster.takes_part() && cluster.gate_open;
  const uint32_t unclaimed = runs ? inventory_.Remaining(g) : 0;
  if (unclaimed == 0 && !group.has_clocks) return;
  const uint32_t claimed = group.size - unclaimed;
  if (group.clock_changes == group.changes && group.clock_claimed == claimed) return;
  // Where no clock ran, those of what phase 2 took have just been started, and there are none to be stopped.
  const IdSet::Cursor first = group.has_clocks ? group.members.Begin() : inventory_.FirstUnclaimed(g);
  uint32_t at = group.has_clocks ? 0 : claimed;
  group.oldest_clock = now_.time_since_epoch().count();
  inventory_.ForEachFrom(g, first, [&](MachineId m) {
    if (at++ < claimed) return inventory_.SetSince(m, std::nullopt);
    if (!inventory_.since(m)) inventory_.SetSince(m, now_);
    group.oldest_clock = std::min<int64_t>(group.oldest_clock, inventory_.since(m)->time_since_epoch().count());
  });
  group.has_clocks = unclaimed > 0;
  group.clock_changes = group.changes;
  group.clock_claimed = claimed;
}

// A machine belongs to the need that claimed it last.
void Cycle::KeepStamps() {
  for (const auto& shelf : restamps_) {
    for (const ClaimId row : shelf) {
      const ClaimRow& claim = claims_[row];
      const StampId stamp = need(claim.need).stamp;
      if (claim.count == inventory_.group(claim.group).size) {
        inventory_.Restamp(claim.group, stamp);
        continue;
      }
      if (MUTANT("fast.part_unstamped")) continue;
      IdSet::Cursor cursor = inventory_.group(claim.group).members.Begin();
      inventory_.Skip(claim.group, cursor, claim.first);
      for (uint32_t i = 0; i < claim.count; ++i) inventory_.SetStamp(inventory_.Next(claim.group, cursor), stamp);
    }
  }
}

int32_t Cycle::AgeAfter(const Outcome& outcome, int32_t before) const {
  return outcome.pending() ? 0 : std::max(1, before + (counts_ages_ ? 1 : 0));
}

void Cycle::Remember() {
  if (need_memory_.size() < inventory_.keys()) need_memory_.resize(inventory_.keys());
  next_memory_.clear();
  for (const NeedId n : short_) {
    const Outcome& outcome = outcomes_[n];
    const NeedMemory& old = need_memory_[need(n).key];
    NeedMemory memory{.age_unmet = AgeAfter(outcome, old.age_unmet)};
    const bool in_vain = outcome.bootstraps == 0 && outcome.provisions == 0 && !outcome.satisfiable &&
                         !outcome.hopeful && outcome.victims == 0;
    if (need(n).is_gang && Acquires(n) && in_vain) {
      const int64_t supply_now = outcome.gang == kNoId ? 0 : gangs_[outcome.gang].supply_now;
      const bool more_supply = !outcome.parked && old.hopeless >= policy_.park_after && supply_now > old.supply_seen;
      memory.hopeless = (more_supply ? 0 : old.hopeless) + 1;
      memory.supply_seen = outcome.parked ? old.supply_seen : supply_now;
    }
    if (memory != NeedMemory{}) next_memory_.emplace_back(need(n).key, memory);
  }
  for (const KeyId key : remembered_) need_memory_[key] = {};
  remembered_.clear();
  for (const auto& [key, memory] : next_memory_) {  // equal rows share one: it remembers the worse of them
    NeedMemory& kept = need_memory_[key];
    if (kept == NeedMemory{}) remembered_.push_back(key);
    kept.age_unmet = std::max(kept.age_unmet, memory.age_unmet);
    kept.hopeless = std::max(kept.hopeless, memory.hopeless);
    kept.supply_seen = std::max(kept.supply_seen, memory.supply_seen);
  }
}

void Cycle::RestoreNeed(KeyId key, const NeedMemory& memory) {
  need_memory_.Cover(key);
  need_memory_[key] = memory;
  remembered_.push_back(key);
  told_short_.push_back(key);
  if (told_.Has(key)) told_[key] = {};
}

ShortChanges Cycle::TakeShortChanges(const ShortVisitor& visit) {
  ShortChanges changes;
  const uint32_t cycle = inventory_.cycle();
  told_.resize(std::max(told_.size(), inventory_.keys()));
  for (const KeyId key : remembered_) {
    const NeedMemory& memory = need_memory_[key];
    Told& told = told_[key];
    const auto more = [](int32_t before, int32_t now, uint32_t passed) {
      return before == 0 ? now == 0 : now == before + static_cast<int32_t>(passed);
    };
    const bool same = told.cycle != 0 && more(told.memory.age_unmet, memory.age_unmet, counted_ - told.counted) &&
                      more(told.memory.hopeless, memory.hopeless, cycle - told.cycle) &&
                      memory.supply_seen == told.memory.supply_seen;
    if (!same) {
      told.priority = demand_.info(inventory_.key(key).profile).profile.priority();
      changes.changed.push_back({.key = inventory_.NameOf(key), .priority = told.priority, .memory = memory});
    }
    told.memory = memory;
    told.cycle = cycle;
    told.counted = counted_;
    visit(told.priority, memory.age_unmet);
  }
  for (const KeyId key : told_short_) {
    if (told_[key].cycle == cycle) continue;
    told_[key] = {};
    changes.ended.push_back(inventory_.NameOf(key));
  }
  std::ranges::sort(changes.ended);
  const auto again = std::ranges::unique(changes.ended);
  changes.ended.erase(again.begin(), again.end());
  told_short_ = remembered_;
  return changes;
}

}  // namespace muster::engine::fast
