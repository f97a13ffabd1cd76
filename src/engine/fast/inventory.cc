// Machines: what changes about them, and the start of a cycle. Their groups are in groups.cc.
#include "engine/fast/inventory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/probe.h"
#include "engine/bind_stamp.h"

namespace muster::engine::fast {

using model::MachineDigest;
using model::MachineState;

MachineId Inventory::Find(std::string_view id) const {
  return machine_lookup_.Find(Hash(id), [&](MachineId m) { return ids_[m] == id; });
}

ClassId Inventory::ClassOfMachine(std::string_view id) const {
  const MachineId m = Find(id);
  return m == kNoMachine || (rows_[m].flags & kLeaving) != 0 ? ClassId() : rows_[m].cls;
}

MachineId Inventory::Make(std::string_view id, uint64_t hash) {
  MachineId m;
  if (!spare_.empty()) {
    m = spare_.back();
    spare_.pop_back();
  } else {
    m = rows_.Add({});
    labels_.Add(0);
    group_.Add({});
  }
  ids_.Set(m, id);
  rows_[m] = {.flags = static_cast<uint8_t>(rows_[m].flags & kRemembered)};
  group_[m] = kNoId;
  machine_lookup_.Insert(hash, m);
  newcomers_.push_back(m);
  ++alive_;
  HoldAsTold(m);
  return m;
}

// [H.machine] Reads off `holds_` for whom the machine is on hold.
void Inventory::HoldAsTold(MachineId m) {
  uint16_t hold = HoldSets::kNone;
  if (!holds_.machines.empty() && holds_.machines.contains(std::string(ids_[m]))) {
    hold = HoldSets::kEveryone;
  } else if (!holds_.pairs.empty()) {
    std::vector<ClusterId> clusters;
    const std::string id(ids_[m]);
    for (auto it = holds_.pairs.lower_bound({id, ""}); it != holds_.pairs.end() && it->first == id; ++it) {
      clusters.push_back(ClusterOf(it->second));
    }
    std::ranges::sort(clusters);
    hold = hold_sets_.Of(clusters);
  }
  rows_[m].flags = static_cast<uint8_t>(hold == HoldSets::kNone ? rows_[m].flags & ~kHeld : rows_[m].flags | kHeld);
  if (hold == HoldSets::kNone) {
    hold_of_.erase(m);
  } else {
    hold_of_[m] = hold;
  }
}

void Inventory::SetHolds(const Holds& holds) {
  if (holds == holds_) return;
  std::vector<std::string> changed;
  const auto by_id = [](const auto& entry) -> const std::string& { return entry.first; };
  std::ranges::set_symmetric_difference(holds.machines, holds_.machines, std::back_inserter(changed));
  std::vector<std::pair<std::string, std::string>> pairs;
  std::ranges::set_symmetric_difference(holds.pairs, holds_.pairs, std::back_inserter(pairs));
  std::ranges::transform(pairs, std::back_inserter(changed), by_id);
  std::vector<StockClass> classes;
  std::ranges::set_symmetric_difference(holds.classes, holds_.classes, std::back_inserter(classes));
  holds_ = holds;
  if (holds.pairs.empty()) hold_sets_.Clear();
  for (const std::string& id : changed) {
    const MachineId m = Find(id);
    if (m == kNoMachine) continue;
    HoldAsTold(m);
    MarkChanged(m);
  }
  for (const StockClass& stock : classes) catalogue_.SetOutOfStock(stock, holds.classes.contains(stock));
  if (!classes.empty() && !MUTANT("fast.stale_stock")) ++supply_version_;
}

void Inventory::KeepUsed(Rows<ClusterId, bool>& unused) const {
  const auto use = [&](ClusterId id) {
    if (id != kNoId && !MUTANT("fast.cluster_in_use")) unused[id] = false;
  };
  for (const Row& row : rows_) {
    use(row.cluster);
    if (row.pledge != kNoId) use(keys_[row.pledge].cluster);
  }
  for (const ClusterId id : clusters_.ids()) {
    const Cluster& cluster = clusters_[id];
    if (cluster.is_spare || cluster.is_dirty || !cluster.bound.empty() || !cluster.in_flight.empty())
      unused[id] = false;
  }
  for (const auto& [machine, cluster] : holds_.pairs) use(FindCluster(cluster));
}

void Inventory::Upsert(std::span<const model::Machine> machines, std::span<const MachineDigest> digests) {
  MUSTER_CHECK(machines.size() == digests.size(), "{} machines came with {} digests", machines.size(), digests.size());
  constexpr size_t kAhead = 16;  // long enough for memory to answer
  rows_.reserve(machines.size());
  labels_.reserve(machines.size());
  group_.reserve(machines.size());
  ids_.Reserve(machines.size());
  machine_lookup_.Reserve(machines.size());
  for (size_t i = 0; i < machines.size(); ++i) {
    if (i + kAhead < machines.size()) machine_lookup_.Prefetch(digests[i + kAhead].id);
    Upsert(machines[i], digests[i]);
  }
}

void Inventory::Upsert(const model::Machine& machine, const MachineDigest& digest) {
#ifdef MUSTER_FAULTS
  const MachineDigest made = model::DigestOf(machine);
  MUSTER_CHECK(digest.stamp == made.stamp, "machine {} came with another's metadata", machine.id);
  MUSTER_CHECK(digest.cls == made.cls, "machine {} came with the digest of another class", machine.id);
  MUSTER_CHECK(digest.id == made.id, "machine {} came with the digest of another id", machine.id);
#endif
  MachineId m = machine_lookup_.Find(digest.id, [&](MachineId i) { return ids_[i] == machine.id; });
  const bool is_new = m == kNoMachine;
  if (is_new) m = Make(machine.id, digest.id);
  Row& row = rows_[m];
  const bool leaving = (row.flags & kLeaving) != 0;
  const bool present = !is_new && !leaving;
  // What it has no more makes room for what it has now.
  const bool is_same = present && catalogue_.cls(row.cls).digest == digest.cls;
  if (present && !is_same) catalogue_.CountMachine(row.cls, -1);
  const ClassId cls = catalogue_.ClassOf(machine, digest.cls);
  if (!is_same) catalogue_.CountMachine(cls, 1);
  const bool counted = !is_new && !leaving && row.state != MachineState::kFailed;
  const bool counts = machine.state != MachineState::kFailed;
  if (counted && (!counts || cls != row.cls)) catalogue_.CountLive(row.cls, -1);
  if (counts && (!counted || cls != row.cls)) catalogue_.CountLive(cls, 1);
  if (leaving) {
    row.flags = static_cast<uint8_t>(row.flags & ~kLeaving);
    ++alive_;
  }
  row.cls = cls;
  row.state = machine.state;
  row.cluster = machine.cluster.empty() ? ClusterId() : ClusterOf(machine.cluster);
  row.bind_stamp = IsBound(machine.state) && digest.stamp != 0 ? BindStampOf(machine, digest.stamp) : kNoStamp;
  MarkChanged(m);
}

// Machines bound for one need follow each other in a list.
StampId Inventory::BindStampOf(const model::Machine& machine, uint64_t digest) {
  if (digest == last_digest_) return last_stamp_;
  last_digest_ = digest;
  last_stamp_ = kNoStamp;
  if (const auto decoded = ReadBindStamp(machine.shard_metadata)) {
    stamp_.profile = ProfileOf(decoded->fingerprint);
    stamp_.group = decoded->group;
    stamp_.priority = decoded->priority;
    stamp_.interruption = decoded->interruption;
    stamp_.reclamation = decoded->reclamation;
    last_stamp_ = StampOf(stamp_);
  }
  return last_stamp_;
}

void Inventory::MarkChanged(MachineId m) {
  if ((rows_[m].flags & kDirty) != 0) return;
  rows_[m].flags |= kDirty;
  dirty_.push_back(m);
}

void Inventory::Remove(std::string_view id) {
  const MachineId m = Find(id);
  if (m == kNoMachine || (rows_[m].flags & kLeaving) != 0) return;
  if (rows_[m].state != MachineState::kFailed) catalogue_.CountLive(rows_[m].cls, -1);
  catalogue_.CountMachine(rows_[m].cls, -1);
  rows_[m].flags |= kLeaving;
  --alive_;
  MarkChanged(m);
}

void Inventory::Restore(const Memory& memory) {
  for (const auto& [id, row] : memory.machines) restored_[id] = row;
  for (const auto& [type, mean] : memory.drains) {
    const TypeId id = catalogue_.TypeOf(type);
    drains_.Cover(id);
    drains_[id] = mean;
  }
}

void Inventory::SetStamp(MachineId m, StampId stamp) {
  MemoryChanged(m);
  rows_[m].stamp = stamp;
  rows_[m].flags |= kRestamped;
  MarkChanged(m);
}

void Inventory::SetPledge(MachineId m, KeyId pledge) {
  MemoryChanged(m);
  if (pledge == kNoId) rows_[m].flags = static_cast<uint8_t>(rows_[m].flags & ~kInstead);
  rows_[m].pledge = pledge;
  if (!MUTANT("fast.dirty_missed")) MarkChanged(m);
}

std::optional<MonoTime> Inventory::since(MachineId m) const {
  if (rows_[m].since_state == MachineState::kUnspecified) return std::nullopt;
  return MonoTime(Duration(rows_[m].since));
}

MachineMemory Inventory::MemoryOf(MachineId m, bool without_given) const {
  MachineMemory memory;
  const StampId stamp = stamp_of(m);
  if (stamp != kNoStamp && !(without_given && stamp == rows_[m].bind_stamp)) {
    const Stamp& s = stamps_[stamp];
    memory.attribution = model::Attribution{.fingerprint = fingerprints_[s.profile],
                                            .group = s.group,
                                            .priority = s.priority,
                                            .interruption = s.interruption,
                                            .reclamation = s.reclamation};
  }
  if (rows_[m].pledge != kNoId) memory.pledge = NameOf(rows_[m].pledge);
  memory.instead = is_instead(m);
  // The clock may still be that of the state before, until the next cycle has read it.
  switch (rows_[m].since_state) {
    case MachineState::kConfigured: memory.unclaimed_since = since(m); break;
    case MachineState::kDraining: memory.draining_since = since(m); break;
    case MachineState::kIdle:
      if (!without_given) memory.idle_since = since(m);
      break;
    default: break;
  }
  return memory;
}

std::vector<MachineId> Inventory::TakeRemembered() {
  for (const GroupId id : restamped_) {
    groups_[id].restamped = false;
    ForEachMember(id, [&](MachineId m) { MemoryChanged(m); });
  }
  restamped_.clear();
  for (const MachineId m : remembered_) rows_[m].flags = static_cast<uint8_t>(rows_[m].flags & ~kRemembered);
  return std::exchange(remembered_, {});
}

void Inventory::SetSince(MachineId m, std::optional<MonoTime> since) {
  if (since || rows_[m].since_state != MachineState::kUnspecified) MemoryChanged(m);
  rows_[m].since_state = since ? rows_[m].state : MachineState::kUnspecified;
  if (since) rows_[m].since = since->time_since_epoch().count();
}

// --- the start of a cycle

// Ids of one provider begin alike, so the sixteen bytes behind what all of them share decide mostly; those that agree
// in them too are sorted by what follows. They come in a few runs that are in order, which a merge sort makes use of.
void Inventory::SortById(std::span<MachineId> machines) const {
  if (machines.size() < 2) return;
  std::string_view shared = ids_[machines.front()];
  for (const MachineId m : machines) {
    if (ids_[m].starts_with(shared)) continue;
    shared = shared.substr(0, static_cast<size_t>(std::ranges::mismatch(shared, ids_[m]).in1 - shared.begin()));
  }
  struct Entry {
    std::array<uint64_t, 2> begins{};
    MachineId machine = kNoMachine;
  };
  std::vector<Entry> entries;
  entries.reserve(machines.size());
  for (const MachineId m : machines) {
    std::array<uint64_t, 2> begins{};
    const std::string_view rest = ids_[m].substr(shared.size());
    std::memcpy(begins.data(), rest.data(), std::min(rest.size(), sizeof(begins)));
    for (uint64_t& word : begins) word = __builtin_bswap64(word);
    entries.push_back({.begins = begins, .machine = m});
  }
  if (!std::ranges::is_sorted(entries, {}, &Entry::begins)) std::ranges::stable_sort(entries, {}, &Entry::begins);
  for (size_t i = 0; i < entries.size(); ++i) machines[i] = entries[i].machine;
  for (size_t i = 0; i < entries.size();) {
    size_t end = i + 1;
    while (end < entries.size() && entries[end].begins == entries[i].begins) ++end;
    if (end - i == entries.size()) {  // ids that end in zero bytes
      std::ranges::sort(machines, {}, [&](MachineId m) { return ids_[m]; });
    } else if (end - i > 1) {
      SortById(machines.subspan(i, end - i));
    }
    i = end;
  }
}

// Machines that came since get a label between their neighbours'; labels order machines by id.
void Inventory::AssignLabels() {
  if (newcomers_.empty()) return;
  const auto by_id = [&](MachineId a, MachineId b) { return ids_[a] < ids_[b]; };
  SortById(newcomers_);
  const auto middle = static_cast<ptrdiff_t>(by_id_.size());
  by_id_.insert(by_id_.end(), newcomers_.begin(), newcomers_.end());
  if (middle != 0) std::inplace_merge(by_id_.begin(), by_id_.begin() + middle, by_id_.end(), by_id);
  bool room = static_cast<size_t>(middle) > newcomers_.size();
  for (size_t n = 0; room && n < newcomers_.size(); ++n) {
    const auto at = std::ranges::lower_bound(by_id_, ids_[newcomers_[n]], {}, [&](MachineId m) { return ids_[m]; });
    const auto i = static_cast<size_t>(at - by_id_.begin());
    const uint64_t before = i == 0 ? 0 : labels_[by_id_[i - 1]];
    // Newcomers beyond this one have no label yet: the next machine that has one is the upper neighbour.
    size_t j = i + 1;
    while (j < by_id_.size() && n + (j - i) < newcomers_.size() && by_id_[j] == newcomers_[n + (j - i)]) ++j;
    const uint64_t after = j < by_id_.size() ? labels_[by_id_[j]] : before + (uint64_t{1} << 33);
    labels_[newcomers_[n]] = before + (after - before) / 2;
    room = labels_[newcomers_[n]] != before && labels_[newcomers_[n]] != after;
  }
  if (!room && !(MUTANT("fast.labels_kept") && middle != 0)) {
    DropGaps();  // machines that went keep their labels, which no longer fit those of their neighbours
    for (size_t i = 0; i < by_id_.size(); ++i) labels_[by_id_[i]] = (uint64_t{i} + 1) << 32;
  }
  newcomers_ = {};
}

void Inventory::ForgetUnusedStamps() {
  stamp_used_[kNoStamp] = true;
  for (const Row& row : rows_) stamp_used_[row.stamp] = stamp_used_[row.bind_stamp] = true;
  for (const Group& g : groups_) {
    if (!MUTANT("fast.stamp_in_use")) stamp_used_[g.stamp] = true;
  }
  for (const StampId spare : spare_stamps_) stamp_used_[spare] = true;
  ForgetStampsBut(stamp_used_);
  last_digest_ = 0;  // its stamp may be among them
  kept_stamps_ = stamps();
}

}  // namespace muster::engine::fast
