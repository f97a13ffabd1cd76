// Memory: what the engine must not forget, as rows that are written when they change.
#include <algorithm>
#include <set>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "engine/fast/cycle.h"

namespace muster::shard {
namespace {

constexpr int64_t kCyclesBetweenRows = 60;  // the cycle's number is stored at least so often

// Which of 1-9, 10-59, 60-299, 300 and more.
size_t AgeClass(int64_t cycles) { return cycles < 10 ? 0 : cycles < 60 ? 1 : cycles < 300 ? 2 : 3; }

WallTime ToWall(MonoTime since, Now now) { return now.wall - (now.mono - since); }

std::optional<WallTime> ToWall(const std::optional<MonoTime>& since, Now now) {
  return since ? std::optional(ToWall(*since, now)) : std::nullopt;
}

}  // namespace

void Core::Write(Turn& turn, std::string key, std::optional<std::string> value) {
  turn.persist.writes.push_back({.key = std::move(key), .value = std::move(value)});
}

void Core::KeepMemory(Turn& turn) {
  for (const auto& [id, memory] : engine_->TakeMemoryChanges()) {
    if (!machines_.contains(id)) continue;  // its row went with it
    const auto stored = on_disk_.find(id);
    if (memory == engine::MachineMemory{}) {
      if (stored == on_disk_.end()) continue;
      on_disk_.erase(stored);
      Write(turn, std::string(kMachineKey) + id, std::nullopt);
      continue;
    }
    const uint64_t digest = codec::Digest(memory);
    if (stored != on_disk_.end() && stored->second == digest) continue;
    on_disk_[id] = digest;
    if (MUTANT("shard.pledges_forgotten")) continue;
    const MachineRow row{.attribution = memory.attribution,
                         .pledge = memory.pledge,
                         .unclaimed_since = ToWall(memory.unclaimed_since, turn.now),
                         .draining_since = ToWall(memory.draining_since, turn.now)};
    Write(turn, std::string(kMachineKey) + id, codec::ToBytes(row));
  }
  // Rows of machines that an earlier life knew and this one never saw.
  for (const auto& [id, row] : machine_rows_) {
    if (machines_.contains(id)) continue;
    on_disk_.erase(id);
    Write(turn, std::string(kMachineKey) + id, std::nullopt);
  }
  machine_rows_.clear();
  const engine::fast::Inventory& inventory = engine_->inventory();
  for (size_t i = 0; i < inventory.drains().size(); ++i) {
    const std::string& type = inventory.catalogue().drain_types()[i];
    engine::DrainMean& known = drains_on_disk_[type];
    if (known == inventory.drains()[i]) continue;
    known = inventory.drains()[i];
    Write(turn, std::string(kDrainKey) + type, codec::ToBytes(known));
  }
}

// Needs that are short: who became so, who no longer is. Most stay as they are from cycle to cycle, so only what
// changed is named.
void Core::KeepShort(Turn& turn) {
  const engine::fast::Cycle& cycle = engine_->cycle();
  short_aged_ = {};
  short_by_priority_.clear();
  for (const engine::fast::KeyId id : cycle.remembered()) {
    const engine::NeedMemory& memory = cycle.need_memory(id);
    if (id >= marks_.size()) marks_.resize(id + 1);
    ShortMark& mark = marks_[id];
    const ShortSince before = mark.since;
    mark.since.cycle = cycle_ - memory.age_unmet + 1;
    mark.since.hopeless = memory.hopeless == 0 ? 0 : cycle_ - memory.hopeless + 1;
    mark.since.supply_seen = memory.supply_seen;
    const bool was_short = std::exchange(mark.seen, cycle_) == cycle_ - 1;
    if (!was_short || mark.since != before) NoteShort(id, mark.since, turn);
    ++short_aged_[AgeClass(cycle_ - mark.since.cycle + 1)];
    ++short_by_priority_[mark.since.priority];
  }
  std::set<engine::NeedKey> over;
  for (const engine::fast::KeyId id : short_ids_) {
    if (id >= marks_.size() || marks_[id].seen != cycle_) over.insert(engine_->inventory().NameOf(id));
  }
  for (const engine::NeedKey& key : over) {
    if (short_.erase(key) > 0) Write(turn, std::string(kShortKey) + codec::ToBytes(key), std::nullopt);
  }
  short_ids_ = cycle.remembered();
  // Of what an earlier life knew, the needs of clusters that have spoken and are not short are settled.
  std::erase_if(short_rows_, [&](const auto& row) {
    const auto cluster = clusters_.find(row.first.cluster);
    if (cluster == clusters_.end() || !cluster->second.accepted) return false;
    Write(turn, std::string(kShortKey) + codec::ToBytes(row.first), std::nullopt);
    return true;
  });
  if (!turn.persist.writes.empty() || cycle_ % kCyclesBetweenRows == 0) {
    Write(turn, std::string(kCycleKey), codec::ToBytes(cycle_));
  }
}

// Completes what is known of a need that became short, or is short in another way.
void Core::NoteShort(engine::fast::KeyId id, ShortSince& now, Turn& turn) {
  const engine::NeedKey key = engine_->inventory().NameOf(id);
  now.since = turn.now.mono;
  now.priority = engine_->demand().info(engine_->inventory().key(id).profile).profile.priority();
  const auto known = short_.find(key);
  const auto earlier = short_rows_.find(key);
  if (known != short_.end()) {
    now.since = known->second.since;
  } else if (earlier != short_rows_.end()) {
    now.since -= std::max(turn.now.wall - earlier->second.since, Duration::zero());
  }
  if (earlier != short_rows_.end()) short_rows_.erase(earlier);
  if (known != short_.end() && known->second == now) return;
  short_.insert_or_assign(key, now);
  const ShortRow row{.since = ToWall(now.since, turn.now),
                     .cycle = now.cycle,
                     .hopeless = now.hopeless,
                     .supply_seen = now.supply_seen};
  Write(turn, std::string(kShortKey) + codec::ToBytes(key), codec::ToBytes(row));
}

// After a load.
void Core::CountShort() {
  short_ids_ = engine_->cycle().remembered();
  for (const auto& [key, since] : short_) {
    ++short_aged_[AgeClass(cycle_ - since.cycle + 1)];
    ++short_by_priority_[since.priority];
  }
}

}  // namespace muster::shard
