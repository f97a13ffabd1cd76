// What the cycle leaves behind for the next: stamps, pledges, clocks, ages.
#include <algorithm>

#include "engine/fast/cycle.h"

namespace muster::engine::fast {

using model::MachineState;

void Cycle::Finish() {
  for (const FastAction& action : actions_) {
    if (action.need == kNoId) continue;
    inventory_.SetPledge(action.machine, need(action.need).key);
    if (action.kind == ActionKind::kBootstrap) inventory_.SetStamp(action.machine, need(action.need).stamp);
  }
  for (const GroupId g : ended_) {
    IdSet::Cursor cursor = inventory_.FirstUnclaimed(g);
    for (MachineId m = inventory_.Next(g, cursor); m != kNoMachine; m = inventory_.Next(g, cursor)) {
      inventory_.SetPledge(m, kNoId);
    }
  }
  KeepClocks();
  KeepStamps();
  Remember();
}

// The clock of a Configured machine runs while it could be reclaimed. Groups that are claimed whole and had no clock
// running are not looked at.
void Cycle::KeepClocks() {
  for (ClusterId c = 0; c < inventory_.clusters(); ++c) {
    const Cluster& cluster = inventory_.cluster(c);
    const bool runs = cluster.state.session && cluster.state.gate_open;
    for (const GroupId g : cluster.bound) {
      Group& group = inventory_.Open(g);
      if (group.state != MachineState::kConfigured) continue;
      const uint32_t unclaimed = runs ? inventory_.Remaining(g) : 0;
      if (unclaimed == 0 && !group.has_clocks) continue;
      const uint32_t claimed = runs ? group.claimed : group.members.size();
      IdSet::Cursor cursor = group.members.Begin();
      uint32_t at = 0;
      for (MachineId m = inventory_.Next(g, cursor); m != kNoMachine; m = inventory_.Next(g, cursor), ++at) {
        if (at < claimed) {
          inventory_.SetSince(m, std::nullopt);
        } else if (!inventory_.since(m)) {
          inventory_.SetSince(m, now_);
        }
      }
      group.has_clocks = unclaimed > 0;
    }
  }
}

// A machine belongs to the need that claimed it last.
void Cycle::KeepStamps() {
  for (const ClaimRow& claim : claims_) {
    const Group& group = inventory_.group(claim.group);
    const StampId stamp = need(claim.need).stamp;
    const bool bound = group.owner != kNoId;
    if (!bound || group.stamp == stamp) continue;
    if (claim.count == group.members.size()) {
      inventory_.Restamp(claim.group, stamp);
      continue;
    }
    IdSet::Cursor cursor = group.members.Begin();
    for (uint32_t i = 0; i < claim.first; ++i) inventory_.Next(claim.group, cursor);
    for (uint32_t i = 0; i < claim.count; ++i) inventory_.SetStamp(inventory_.Next(claim.group, cursor), stamp);
  }
}

void Cycle::Remember() {
  std::vector<std::pair<KeyId, NeedMemory>> next;
  for (NeedId n = 0; n < outcomes_.size(); ++n) {
    const Outcome& outcome = outcomes_[n];
    if (IsZero(outcome.shortage, dims())) continue;
    const KeyId key = need(n).key;
    const NeedMemory old = MemoryOf(key);
    auto at = std::ranges::find(next.rbegin(), next.rend(), key, &std::pair<KeyId, NeedMemory>::first);
    NeedMemory& memory = at == next.rend() ? next.emplace_back(key, NeedMemory{}).second : at->second;
    memory.age_unmet = std::max(memory.age_unmet, old.age_unmet + 1);
    if (!need(n).is_gang || !HasSession(n)) continue;
    if (outcome.bootstraps > 0 || outcome.provisions > 0 || outcome.satisfiable) continue;
    const int64_t supply_now = outcome.gang == kNoId ? 0 : gangs_[outcome.gang].supply_now;
    const bool more_supply = !outcome.parked && old.hopeless >= policy_.park_after && supply_now > old.supply_seen;
    memory.hopeless = std::max(memory.hopeless, (more_supply ? 0 : old.hopeless) + 1);
    memory.supply_seen = std::max(memory.supply_seen, outcome.parked ? old.supply_seen : supply_now);
  }
  for (const auto& [key, memory] : remembered_) memory_row_[key] = kNoId;
  remembered_ = std::move(next);
  memory_row_.resize(inventory_.keys(), kNoId);
  for (uint32_t i = 0; i < remembered_.size(); ++i) memory_row_[remembered_[i].first] = i;
}

void Cycle::RestoreNeed(KeyId key, const NeedMemory& memory) {
  memory_row_.resize(std::max<size_t>(inventory_.keys(), memory_row_.size()), kNoId);
  memory_row_[key] = static_cast<uint32_t>(remembered_.size());
  remembered_.emplace_back(key, memory);
}

}  // namespace muster::engine::fast
