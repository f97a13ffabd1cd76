#include "core/shard/ledger.h"

#include <algorithm>

#include "base/check.h"
#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/demand.h"

namespace muster::shard {
namespace {

constexpr int64_t kCyclesBetweenRows = 60;  // the cycle's number is stored at least so often

}  // namespace

void Ledger::RegisterRows(contract::RowReader& reader) {
  reader.On(kMachineRows,
            [this](std::string id, MachineRow row) { state_.earlier_machines.emplace(std::move(id), std::move(row)); });
  reader.On(kShortRows,
            [this](const engine::NeedKey& key, const ShortRow& row) { state_.earlier_short.emplace(key, row); });
  reader.On(kDrainRows,
            [this](std::string type, const engine::DrainMean& mean) { state_.drains.emplace(std::move(type), mean); });
}

void Ledger::Start(Now now) {
  state_.restored.drains = state_.drains;
  for (const auto& [id, row] : state_.earlier_machines) {
    state_.machine_digests[id] = 0;
    if (row.pledge) ceilings_.OnEarlierPledge(id, row.pledge->cluster);
    state_.restored.machines.emplace(
        id, engine::MachineMemory{.attribution = row.attribution,
                                  .pledge = row.pledge,
                                  .unclaimed_since = contract::TimeFromStored(row.unclaimed_since, now),
                                  .draining_since = contract::TimeFromStored(row.draining_since, now)});
  }
  engine_.engine().Restore(state_.restored);
}

void Ledger::RestoreAges(const std::string& cluster, const CycleTimer& cycle) {
  engine::Memory memory;
  const auto cycles_since = [](int64_t first, int64_t now) {
    return first == 0 ? 0 : static_cast<int32_t>(std::max<int64_t>(now - first, 0)) + 1;
  };
  for (auto it = state_.earlier_short.lower_bound({.cluster = cluster});
       it != state_.earlier_short.end() && it->first.cluster == cluster; ++it) {
    const ShortCycles& cycles = it->second.cycles;
    memory.needs.emplace(it->first, engine::NeedMemory{.age_unmet = cycles_since(cycles.first, cycle.counted()),
                                                       .hopeless = cycles_since(cycles.hopeless, cycle.number()),
                                                       .supply_seen = cycles.supply_seen});
  }
  if (!memory.needs.empty()) engine_.engine().Restore(memory);
}

void Ledger::Keep(const Machines& machines, const Demand& demand, StepContext& ctx) {
  KeepMachines(machines, ctx);
  KeepDrains(ctx);
  KeepShort(demand, ctx);
  // Ages are stored as numbers of cycles, so the numbers must not fall far behind them.
  const int64_t cycle = ctx.cycle.number();
  if (ctx.writes.empty() && cycle % kCyclesBetweenRows != 0) return;
  ctx.Write(kCycleRow.Put(cycle));
  ctx.Write(kCountedRow.Put(ctx.cycle.counted()));
}

void Ledger::KeepMachines(const Machines& machines, StepContext& ctx) {
  for (const auto& [id, memory] : engine_.engine().TakeMemoryChanges()) {
    if (machines.Find(id) == nullptr) continue;  // its row went with it
    ceilings_.OnPledge(id, memory.pledge ? memory.pledge->cluster : std::string());
    const auto stored = state_.machine_digests.find(id);
    if (memory == engine::MachineMemory{}) {
      if (stored == state_.machine_digests.end()) continue;
      state_.machine_digests.erase(stored);
      ctx.Write(kMachineRows.Erase(id));
      continue;
    }
    const uint64_t digest = codec::Digest(memory);
    if (stored != state_.machine_digests.end() && stored->second == digest) continue;
    state_.machine_digests[id] = digest;
    if (MUTANT("shard.pledges_forgotten")) continue;
    ctx.Write(kMachineRows.Put(id, {.attribution = memory.attribution,
                                    .pledge = memory.pledge,
                                    .unclaimed_since = contract::StoredTime(memory.unclaimed_since, ctx.now),
                                    .draining_since = contract::StoredTime(memory.draining_since, ctx.now)}));
  }
  // Machines that an earlier life knew and this one never saw.
  for (const auto& [id, row] : state_.earlier_machines) {
    if (machines.Find(id) != nullptr) continue;
    ceilings_.OnPledge(id, "");
    state_.machine_digests.erase(id);
    ctx.Write(kMachineRows.Erase(id));
  }
  state_.earlier_machines.clear();
}

void Ledger::KeepDrains(StepContext& ctx) {
  for (const auto& [type, mean] : engine_.engine().TakeDrainChanges()) {
    state_.drains[type] = mean;
    ctx.Write(kDrainRows.Put(type, mean));
  }
}

void Ledger::KeepShort(const Demand& demand, StepContext& ctx) {
  ShortChanges changes = engine_.TakeShortChanges(ctx.cycle.number(), ctx.cycle.counted());
  short_counts_ = std::move(changes.counts);
  for (const ShortChanges::Changed& changed : changes.changed) PutShort(changed, ctx);
  for (const engine::NeedKey& key : changes.ended) {
    if (state_.short_needs.erase(key) > 0) ctx.Write(kShortRows.Erase(key));
  }
  // Needs that an earlier life knew as short, and that their cluster no longer lists or that are covered.
  std::erase_if(state_.earlier_short, [&](const auto& row) {
    if (!demand.HasAccepted(row.first.cluster)) return false;
    ctx.Write(kShortRows.Erase(row.first));
    return true;
  });
}

// A need that is short goes on with the time that this life or an earlier one saw it first.
void Ledger::PutShort(const ShortChanges::Changed& changed, StepContext& ctx) {
  ShortNeed need{.since = ctx.now.mono, .cycles = changed.cycles, .priority = changed.priority};
  const auto known = state_.short_needs.find(changed.key);
  const auto earlier = state_.earlier_short.find(changed.key);
  if (known != state_.short_needs.end()) {
    need.since = known->second.since;
  } else if (earlier != state_.earlier_short.end()) {
    need.since = contract::TimeFromStored(earlier->second.since, ctx.now);
  }
  if (earlier != state_.earlier_short.end()) state_.earlier_short.erase(earlier);
  if (known != state_.short_needs.end() && known->second == need) return;
  state_.short_needs.insert_or_assign(changed.key, need);
  ctx.Write(kShortRows.Put(changed.key, {.since = contract::StoredTime(need.since, ctx.now), .cycles = need.cycles}));
}

void Ledger::OnMachineDropped(const std::string& id, StepContext& ctx) {
  ceilings_.OnPledge(id, "");
  if (state_.machine_digests.erase(id) > 0 || state_.earlier_machines.erase(id) > 0) ctx.Write(kMachineRows.Erase(id));
}

const ShortNeed* Ledger::Find(const engine::NeedKey& key) const {
  const auto found = state_.short_needs.find(key);
  return found == state_.short_needs.end() ? nullptr : &found->second;
}

void Ledger::Rebuild(const CycleTimer& cycle) {
  for (const auto& [key, need] : state_.short_needs) {
    if (need.cycles.first > 0) short_counts_.Add(cycle.counted() - need.cycles.first + 1, need.priority);
  }
}

void Ledger::CheckInvariants() const {
  uint64_t by_age = 0;
  uint64_t by_priority = 0;
  const auto known =
      std::ranges::count_if(state_.short_needs, [](const auto& row) { return row.second.cycles.first > 0; });
  for (const uint64_t count : short_counts_.by_age) by_age += count;
  for (const auto& [priority, count] : short_counts_.by_priority) by_priority += count;
  MUSTER_CHECK(by_age == static_cast<uint64_t>(known) && by_priority == by_age && short_counts_.all == by_age,
               "{} needs are counted as short by age, {} by priority; {} are", by_age, by_priority, known);
}

}  // namespace muster::shard
