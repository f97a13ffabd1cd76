#include "engine/fast/inventory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "base/check.h"
#include "base/hash.h"
#include "base/probe.h"
#include "engine/bind_stamp.h"

namespace muster::engine::fast {
namespace {

using model::CapacityType;
using model::MachineDigest;
using model::MachineState;

bool IsBound(MachineState state) {
  return state == MachineState::kConfigured || state == MachineState::kConfiguring || state == MachineState::kDraining;
}

uint64_t HashOf(const Terms& terms) {
  Hasher hasher;
  hasher.Add((uint64_t{terms.cls} << 32) | static_cast<uint64_t>(terms.state));
  hasher.Add((uint64_t{terms.cluster} << 32) | terms.stamp);
  hasher.Add(terms.pledge);
  return hasher.value();
}

uint64_t StampHash(const Stamp& stamp) {
  Hasher hasher;
  hasher.Add(stamp.group);
  hasher.Add((uint64_t{stamp.profile} << 32) | static_cast<uint32_t>(stamp.priority));
  hasher.Add(static_cast<uint64_t>(stamp.interruption.finite.micros) * 2 + (stamp.interruption.pinned ? 1 : 0));
  hasher.Add(static_cast<uint64_t>(stamp.reclamation.finite.micros) * 2 + (stamp.reclamation.pinned ? 1 : 0));
  return hasher.value();
}

uint64_t KeyHash(ClusterId cluster, ProfileId profile, std::string_view group) {
  Hasher hasher;
  hasher.Add((uint64_t{cluster} << 32) | profile);
  hasher.Add(group);
  return hasher.value();
}

}  // namespace

Inventory::Inventory() { stamps_.push_back({}); }

// --- names

ClusterId Inventory::FindCluster(std::string_view name) const {
  return cluster_lookup_.Find(Hash(name), [&](uint32_t i) { return clusters_[i].name == name; });
}

ClusterId Inventory::ClusterOf(std::string_view name) {
  if (last_cluster_ < clusters_.size() && clusters_[last_cluster_].name == name) return last_cluster_;
  const uint64_t hash = Hash(name);
  last_cluster_ = FindCluster(name);
  if (last_cluster_ != kNoId) return last_cluster_;
  const auto id = static_cast<ClusterId>(clusters_.size());
  clusters_.push_back({.name = std::string(name)});
  cluster_lookup_.Insert(hash, id);
  return id;
}

const std::vector<ClusterId>& Inventory::ClustersByName() {
  if (clusters_by_name_.size() == clusters_.size()) return clusters_by_name_;
  for (auto id = static_cast<ClusterId>(clusters_by_name_.size()); id < clusters_.size(); ++id) {
    clusters_by_name_.push_back(id);
  }
  const auto name = [&](ClusterId id) -> const std::string& { return clusters_[id].name; };
  if (!std::ranges::is_sorted(clusters_by_name_, {}, name)) std::ranges::sort(clusters_by_name_, {}, name);
  cluster_rank_.resize(clusters_.size());
  for (uint32_t i = 0; i < clusters_by_name_.size(); ++i) cluster_rank_[clusters_by_name_[i]] = i;
  return clusters_by_name_;
}

ProfileId Inventory::ProfileOf(std::string_view fingerprint) {
  const uint64_t hash = Hash(fingerprint);
  const ProfileId known = fingerprint_lookup_.Find(hash, [&](uint32_t i) { return fingerprints_[i] == fingerprint; });
  if (known != kNoId) return known;
  const auto id = static_cast<ProfileId>(fingerprints_.size());
  fingerprints_.emplace_back(fingerprint);
  fingerprint_lookup_.Insert(hash, id);
  return id;
}

void Inventory::RankProfiles() {
  if (profile_rank_.size() == fingerprints_.size()) return;
  std::vector<ProfileId> by_name(fingerprints_.size());
  for (ProfileId id = 0; id < by_name.size(); ++id) by_name[id] = id;
  std::ranges::sort(by_name, {}, [&](ProfileId id) -> const std::string& { return fingerprints_[id]; });
  profile_rank_.resize(by_name.size());
  for (uint32_t i = 0; i < by_name.size(); ++i) profile_rank_[by_name[i]] = i;
}

KeyId Inventory::KeyOf(ClusterId cluster, ProfileId profile, std::string_view group) {
  const uint64_t hash = KeyHash(cluster, profile, group);
  const KeyId known = key_lookup_.Find(hash, [&](uint32_t i) {
    return keys_[i].cluster == cluster && keys_[i].profile == profile && key_groups_[i] == group;
  });
  if (known != kNoId) return known;
  auto id = static_cast<KeyId>(keys_.size());
  if (spare_keys_.empty()) {
    keys_.Add();
    key_states_.emplace_back();
  } else {
    id = spare_keys_.back();
    spare_keys_.pop_back();
    key_states_[id] = {};
  }
  Key& key = keys_[id];
  key.cluster = cluster;
  key.profile = profile;
  key_groups_.Set(id, group);
  key_lookup_.Insert(hash, id);
  return id;
}

bool Inventory::IsBare(KeyId id) const {
  const Key& key = keys_[id];
  return (key.own.empty() && key.creating.empty() && !key.has_pledges()) || MUTANT("fast.key_in_use");
}

void Inventory::Forget(KeyId id) {
  key_lookup_.Erase(KeyHash(keys_[id].cluster, keys_[id].profile, key_groups_[id]), id);
  spare_keys_.push_back(id);
}

KeyId Inventory::KeyOf(const NeedKey& key) {
  return KeyOf(ClusterOf(key.cluster), ProfileOf(key.fingerprint), key.group);
}

NeedKey Inventory::NameOf(KeyId id) const {
  const Key& key = keys_[id];
  return {.cluster = clusters_[key.cluster].name,
          .fingerprint = fingerprints_[key.profile],
          .group = std::string(key_groups_[id])};
}

StampId Inventory::StampOf(const Stamp& stamp) {
  const uint64_t hash = StampHash(stamp);
  const StampId known = stamp_lookup_.Find(hash, [&](uint32_t i) { return stamps_[i] == stamp; });
  if (known != kNoId) return known;
  auto id = static_cast<StampId>(stamps_.size());
  if (spare_stamps_.empty()) {
    stamps_.push_back(stamp);
  } else {
    id = spare_stamps_.back();
    spare_stamps_.pop_back();
    stamps_[id] = stamp;
  }
  stamp_lookup_.Insert(hash, id);
  return id;
}

void Inventory::SweepStamps() {
  stamp_used_[kNoStamp] = true;
  for (const Row& row : rows_) stamp_used_[row.stamp] = stamp_used_[row.bind_stamp] = true;
  for (const Group& g : groups_) {
    if (!MUTANT("fast.stamp_in_use")) stamp_used_[g.stamp] = true;
  }
  for (const StampId spare : spare_stamps_) stamp_used_[spare] = true;
  for (StampId id = 0; id < stamps_.size(); ++id) {
    if (stamp_used_[id]) continue;
    stamp_lookup_.Erase(StampHash(stamps_[id]), id);
    spare_stamps_.push_back(id);
  }
  last_digest_ = 0;  // its stamp may be among them
  kept_stamps_ = stamps();
}

// --- machines

MachineId Inventory::Find(std::string_view id) const {
  return machine_lookup_.Find(Hash(id), [&](uint32_t m) { return ids_[m] == id; });
}

MachineId Inventory::Make(std::string_view id, uint64_t hash) {
  auto m = static_cast<MachineId>(rows_.size());
  if (!spare_.empty()) {
    m = spare_.back();
    spare_.pop_back();
  } else {
    labels_.push_back(0);
    group_.push_back(kNoId);
    rows_.emplace_back();
  }
  ids_.Set(m, id);
  rows_[m] = {.flags = static_cast<uint8_t>(rows_[m].flags & kRemembered)};
  group_[m] = kNoId;
  machine_lookup_.Insert(hash, m);
  newcomers_.push_back(m);
  ++alive_;
  return m;
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
  MachineId m = machine_lookup_.Find(digest.id, [&](uint32_t i) { return ids_[i] == machine.id; });
  const bool is_new = m == kNoMachine;
  if (is_new) m = Make(machine.id, digest.id);
  const ClassId cls = catalogue_.ClassOf(machine, digest.cls);
  Row& row = rows_[m];
  const bool leaving = (row.flags & kLeaving) != 0;
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
  row.cluster = machine.cluster.empty() ? kNoId : ClusterOf(machine.cluster);
  row.bind_stamp = IsBound(machine.state) && digest.stamp != 0 ? BindStampOf(machine, digest.stamp) : kNoStamp;
  Touch(m);
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

void Inventory::Touch(MachineId m) {
  if ((rows_[m].flags & kDirty) != 0) return;
  rows_[m].flags |= kDirty;
  dirty_.push_back(m);
}

void Inventory::Remove(std::string_view id) {
  const MachineId m = Find(id);
  if (m == kNoMachine || (rows_[m].flags & kLeaving) != 0) return;
  if (rows_[m].state != MachineState::kFailed) catalogue_.CountLive(rows_[m].cls, -1);
  rows_[m].flags |= kLeaving;
  --alive_;
  Touch(m);
}

void Inventory::Restore(const Memory& memory) {
  for (const auto& [id, row] : memory.machines) old_life_[id] = row;
  for (const auto& [type, mean] : memory.drains) {
    const uint32_t row = catalogue_.DrainRow(type);
    if (drains_.size() <= row) drains_.resize(row + 1);
    drains_[row] = mean;
  }
}

StampId Inventory::stamp_of(MachineId m) const {
  const GroupId g = group_[m];
  const bool from_group = g != kNoId && groups_[g].owner != kNoId && (rows_[m].flags & kRestamped) == 0;
  return from_group ? groups_[g].stamp : rows_[m].stamp;
}

void Inventory::SetStamp(MachineId m, StampId stamp) {
  MemoryChanged(m);
  rows_[m].stamp = stamp;
  rows_[m].flags |= kRestamped;
  Touch(m);
}

void Inventory::SetPledge(MachineId m, KeyId pledge) {
  MemoryChanged(m);
  rows_[m].pledge = pledge;
  if (!MUTANT("fast.dirty_missed")) Touch(m);
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
    IdSet::Cursor cursor = groups_[id].members.Begin();
    for (MachineId m = Next(id, cursor); m != kNoMachine; m = Next(id, cursor)) MemoryChanged(m);
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

void Inventory::ReadOldLife(MachineId m) {
  const auto it = old_life_.find(ids_[m]);
  if (it == old_life_.end()) return;
  const MachineMemory& old = it->second;
  if (old.attribution) {
    rows_[m].stamp = StampOf({.profile = ProfileOf(old.attribution->fingerprint),
                              .group = old.attribution->group,
                              .priority = old.attribution->priority,
                              .interruption = old.attribution->interruption,
                              .reclamation = old.attribution->reclamation});
  }
  if (old.pledge) rows_[m].pledge = KeyOf(*old.pledge);
  const auto set = [&](MachineState state, const std::optional<MonoTime>& since) {
    if (!since) return;
    rows_[m].since_state = state;
    rows_[m].since = since->time_since_epoch().count();
  };
  // One clock is kept: that of the state it is in, or of the drain that has just ended.
  switch (rows_[m].state) {
    case MachineState::kConfigured: set(MachineState::kConfigured, old.unclaimed_since); break;
    case MachineState::kDraining: set(MachineState::kDraining, old.draining_since); break;
    case MachineState::kIdle:
      set(MachineState::kIdle, old.idle_since);
      if (old.draining_since) {
        const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - *old.draining_since).count();
        DrainMean& mean = drains_[catalogue_.cls(rows_[m].cls).drain];
        mean.total_millis += millis;
        ++mean.drains;
      }
      break;
    default: break;
  }
  old_life_.erase(it);
}

// What memory still says about the machine in its present state.
void Inventory::Refresh(MachineId m) {
  MemoryChanged(m);
  const MachineState state = rows_[m].state;
  if (!old_life_.empty()) ReadOldLife(m);
  const StampId old_stamp = stamp_of(m);
  if (rows_[m].since_state == MachineState::kDraining && state == MachineState::kIdle &&
      !MUTANT("fast.drain_unlearnt")) {
    DrainMean& mean = drains_[catalogue_.cls(rows_[m].cls).drain];
    const MonoTime began(Duration{rows_[m].since});
    mean.total_millis += std::chrono::duration_cast<std::chrono::milliseconds>(now_ - began).count();
    ++mean.drains;
  }
  if (rows_[m].since_state != state) {
    rows_[m].since_state = MachineState::kUnspecified;
    if (state == MachineState::kDraining || state == MachineState::kIdle) {
      rows_[m].since_state = state;
      rows_[m].since = now_.time_since_epoch().count();
    }
  }
  if (state == MachineState::kIdle) {
    const CapacityType type = catalogue_.cls(rows_[m].cls).capacity_type;
    if (type == CapacityType::kOnDemand || type == CapacityType::kSpot) {
      resting_.push_back({.since = MonoTime(Duration(rows_[m].since)), .machine = m});
    }
  }
  const bool keeps_pledge =
      state == MachineState::kCreating || state == MachineState::kDraining || state == MachineState::kIdle;
  if (!keeps_pledge) rows_[m].pledge = kNoId;
  rows_[m].stamp = !IsBound(state) ? kNoStamp : old_stamp != kNoStamp ? old_stamp : rows_[m].bind_stamp;
}

Terms Inventory::TermsOf(MachineId m) const {
  const Row& row = rows_[m];
  Terms terms{.cls = row.cls, .state = row.state};
  switch (row.state) {
    case MachineState::kConfigured:
    case MachineState::kConfiguring:
      if (row.cluster == kNoId) return {};
      terms.cluster = row.cluster;
      terms.stamp = row.stamp;
      return terms;
    case MachineState::kIdle: terms.pledge = row.pledge; return terms;
    case MachineState::kSpeculative: return terms;
    case MachineState::kCreating:
    case MachineState::kDraining:
      if (row.pledge == kNoId) return {};
      terms.pledge = row.pledge;
      return terms;
    default: return {};
  }
}

GroupId Inventory::FindGroup(const Terms& terms, uint64_t hash) const {
  return group_lookup_.Find(hash, [&](uint32_t i) { return groups_[i].terms() == terms; });
}

GroupId Inventory::FindOrMake(const Terms& terms, uint64_t hash) {
  if (terms.cls == kNoId) return kNoId;
  const GroupId known = FindGroup(terms, hash);
  if (known != kNoId) return known;
  auto id = static_cast<GroupId>(groups_.size());
  if (spare_groups_.empty()) {
    groups_.emplace_back();
  } else {
    id = spare_groups_.back();
    spare_groups_.pop_back();
  }
  Group& g = groups_[id];
  g.cls = terms.cls;
  g.state = terms.state;
  g.cluster = terms.cluster;
  g.stamp = terms.stamp;
  g.pledge = terms.pledge;
  group_lookup_.Insert(hash, id);
  Link(id);
  return id;
}

void Inventory::Link(GroupId id) {
  Group& g = groups_[id];
  switch (g.state) {
    case MachineState::kConfigured:
    case MachineState::kConfiguring: {
      const Stamp& stamp = stamps_[g.stamp];
      // A machine that nobody claimed yet is nobody's own, also where the stamp's defaults would name a need.
      g.owner = KeyOf(g.cluster, stamp.profile, g.stamp == kNoStamp ? std::string_view("\0none", 5) : stamp.group);
      clusters_[g.cluster].bound.push_back(id);
      keys_[g.owner].own.push_back(id);
      if (g.state == MachineState::kConfigured) catalogue_.cls(g.cls).bound.push_back(id);
      break;
    }
    case MachineState::kIdle:
    case MachineState::kSpeculative:
      catalogue_.cls(g.cls).free.push_back(id);
      if (g.pledge != kNoId) {
        keys_[g.pledge].idle.push_back(id);
        pledged_keys_.push_back(g.pledge);
        pledged_idle_.push_back(id);
      }
      if (!MUTANT("fast.stale_pool")) ++supply_version_;
      break;
    case MachineState::kCreating:
      keys_[g.pledge].creating.push_back(id);
      clusters_[keys_[g.pledge].cluster].in_flight.push_back(id);
      break;
    case MachineState::kDraining:
      keys_[g.pledge].draining.push_back(id);
      clusters_[keys_[g.pledge].cluster].in_flight.push_back(id);
      pledged_keys_.push_back(g.pledge);
      break;
    default: break;
  }
  MarkDirty(g);
}

// What lists the group must be looked at again before the cycle: it is new, empty, or changed its place in an order.
void Inventory::MarkDirty(const Group& g) {
  const auto mark = [](auto& row, auto& list, auto id) {
    if (row.is_dirty) return;
    row.is_dirty = true;
    list.push_back(id);
  };
  if (g.cluster != kNoId) mark(clusters_[g.cluster], dirty_clusters_, g.cluster);
  if (g.owner != kNoId) mark(keys_[g.owner], dirty_keys_, g.owner);
  if (g.pledge == kNoId) return;
  mark(keys_[g.pledge], dirty_keys_, g.pledge);
  const ClusterId pledgee = keys_[g.pledge].cluster;
  mark(clusters_[pledgee], dirty_clusters_, pledgee);
}

// A cluster's demand is folded by what it has and what is on its way to it.
void Inventory::CountChange(const Group& g) {
  if (g.cluster != kNoId) ++clusters_[g.cluster].version;
  if (g.pledge != kNoId) ++clusters_[keys_[g.pledge].cluster].version;
}

void Inventory::Move(MachineId m, GroupId to) {
  const GroupId from = group_[m];
  if (from == to) return;
  group_[m] = to;
  const auto count = [&](Group& g) {
    g.size = g.members.size();
    ++g.changes;
    if (g.owner != kNoId && !MUTANT("fast.settled_stale")) key_states_[g.owner].may_settle = false;
    CountChange(g);
  };
  if (from != kNoId) {
    Group& g = groups_[from];
    g.members.Remove(m, labels_, [&](MachineId other) { return group_[other] == from; });
    count(g);
    if (g.size == 0) dirty_groups_.push_back(from);
  }
  if (to != kNoId) {
    Group& g = groups_[to];
    if (g.members.size() == 0 && (g.state == MachineState::kIdle || g.state == MachineState::kSpeculative)) {
      if (!MUTANT("fast.stale_pool")) ++supply_version_;
    }
    g.members.Add(m, labels_, [&](MachineId other) { return group_[other] == to; });
    if (rows_[m].since_state == MachineState::kConfigured && !MUTANT("fast.clocks_forgotten")) g.has_clocks = true;
    count(g);
  }
}

// Configured first, cheap first, then what is dear to reclaim. Whoever walks groups that tie merges them by id.
void Inventory::SortToKeep(std::vector<GroupId>& groups) {
  if (groups.size() < 2) return;
  keep_.clear();
  for (const GroupId id : groups) {
    const Group& g = groups_[id];
    keep_.push_back({.is_binding = g.state != MachineState::kConfigured,
                     .price = catalogue_.cls(g.cls).price,
                     .reclamation = stamps_[g.stamp].reclamation,
                     .group = id});
  }
  std::ranges::sort(keep_, [](const Keep& a, const Keep& b) {
    if (a.is_binding != b.is_binding) return b.is_binding;
    if (a.price != b.price) return a.price < b.price;
    if (a.reclamation != b.reclamation && !MUTANT("fast.keep_order")) return a.reclamation > b.reclamation;
    return a.group < b.group;
  });
  for (size_t i = 0; i < keep_.size(); ++i) groups[i] = keep_[i].group;
}

// The cluster of a key that is dirty is dirty too, and its bound groups are in order.
void Inventory::ListOwn() {
  for (const KeyId id : dirty_keys_) keys_[id].own.clear();
  for (const ClusterId id : dirty_clusters_) {
    for (const GroupId g : clusters_[id].bound) {
      Key& owner = keys_[groups_[g].owner];
      if (owner.is_dirty) owner.own.push_back(g);
    }
  }
}

// Drops empty groups and puts the lists that changed in order.
void Inventory::Tidy() {
  gone_groups_.clear();
  for (const GroupId id : dirty_groups_) {
    Group& g = groups_[id];
    if (g.members.size() > 0 || g.cls == kNoId) continue;
    MarkDirty(g);
    if (g.state == MachineState::kIdle || g.state == MachineState::kSpeculative) ++supply_version_;
    group_lookup_.Erase(HashOf(g.terms()), id);
    const auto is_it = [&](GroupId other) { return other == id; };
    Class& c = catalogue_.cls(g.cls);
    if (g.state == MachineState::kConfigured) std::erase_if(c.bound, is_it);
    if (g.state == MachineState::kIdle || g.state == MachineState::kSpeculative) std::erase_if(c.free, is_it);
    if (g.state == MachineState::kIdle && g.pledge != kNoId) std::erase_if(pledged_idle_, is_it);
    if (g.restamped) std::erase(restamped_, id);
    g.cls = kNoId;
    gone_groups_.push_back(id);
  }
  dirty_groups_.clear();
  const auto is_gone = [&](GroupId id) { return groups_[id].cls == kNoId; };
  for (const ClusterId id : dirty_clusters_) {
    std::erase_if(clusters_[id].bound, is_gone);
    std::erase_if(clusters_[id].in_flight, is_gone);
    SortToKeep(clusters_[id].bound);
    clusters_[id].is_dirty = false;
  }
  ListOwn();
  for (const KeyId id : dirty_keys_) {
    Key& key = keys_[id];
    for (auto* list : {&key.creating, &key.idle, &key.draining}) std::erase_if(*list, is_gone);
    std::ranges::sort(key.creating, {}, [&](GroupId g) { return std::tuple(catalogue_.cls(groups_[g].cls).price, g); });
    key.is_dirty = false;
    KeyState& state = key_states_[id];
    state.may_settle = false;
    state.has_pledges = key.has_pledges();
    state.has_own = !key.own.empty() || !key.creating.empty();
    state.has_creating = !key.creating.empty();
  }
  dirty_clusters_.clear();
  dirty_keys_.clear();
  std::ranges::sort(pledged_keys_);
  const auto again = std::ranges::unique(pledged_keys_);
  pledged_keys_.erase(again.begin(), again.end());
  std::erase_if(pledged_keys_, [&](KeyId id) { return !keys_[id].has_pledges(); });
  for (const GroupId id : gone_groups_) {
    IdSet empty = std::move(groups_[id].members);
    groups_[id] = {};
    groups_[id].members = std::move(empty);  // its memory is the next group's
    spare_groups_.push_back(id);
  }
}

void Inventory::DropGaps() {
  for (GroupId id = 0; id < groups_.size(); ++id) {
    if (groups_[id].cls == kNoId || MUTANT("fast.gaps_stay")) continue;
    groups_[id].members.DropGaps(labels_, [&](MachineId m) { return group_[m] == id; });
  }
}

// Rows of machines that went may be used again once no group has a gap where they were.
void Inventory::CompactSlots() {
  if (retired_.size() < 1024 + rows_.size() / 8) return;
  DropGaps();
  spare_.insert(spare_.end(), retired_.begin(), retired_.end());
  retired_.clear();
}

void Inventory::BeginCycle(MonoTime now) {
  now_ = now;
  ++cycle_;
  drains_.resize(catalogue_.drain_types().size());
  if (kept_stamps_ == 0) kept_stamps_ = stamps();  // what comes first is not gone yet
  AssignLabels();
  Update();
  old_life_.clear();
  ClustersByName();
}

void Inventory::Leave(MachineId m) {
  MemoryChanged(m);
  Move(m, kNoId);
  machine_lookup_.Erase(Hash(ids_[m]), m);
  rows_[m].state = MachineState::kUnspecified;
  rows_[m].stamp = rows_[m].bind_stamp = kNoStamp;
  retired_.push_back(m);
}

// A few machines at a time: while the first are read, memory answers for the groups of the others.
constexpr size_t kAtOnce = 16;

void Inventory::Place(std::span<const MachineId> machines) {
  std::array<Terms, kAtOnce> terms;
  std::array<uint64_t, kAtOnce> hashes{};
  for (size_t i = 0; i < machines.size(); ++i) {
    const MachineId m = machines[i];
    if ((rows_[m].flags & kLeaving) != 0) {
      Leave(m);
      continue;
    }
    Refresh(m);
    rows_[m].flags = static_cast<uint8_t>(rows_[m].flags & kRemembered);
    terms[i] = TermsOf(m);
    hashes[i] = HashOf(terms[i]);
    group_lookup_.Prefetch(hashes[i]);
  }
  for (size_t i = 0; i < machines.size(); ++i) Move(machines[i], FindOrMake(terms[i], hashes[i]));
}

void Inventory::Update() {
  if (dirty_.size() * 4 > by_id_.size()) {
    // In the order of ids, machines that come in bulk are appended to their groups.
    dirty_.clear();
    std::ranges::copy_if(by_id_, std::back_inserter(dirty_),
                         [&](MachineId m) { return (rows_[m].flags & kDirty) != 0; });
    const size_t most = std::min(stamps(), by_id_.size());  // hardly a stamp without a machine
    groups_.reserve(most);
    group_lookup_.Reserve(most);
  } else {
    std::ranges::sort(dirty_, {}, [&](MachineId m) { return labels_[m]; });
  }
  const size_t retired = retired_.size();
  for (std::span<const MachineId> rest(dirty_); !rest.empty();) {
    const std::span<const MachineId> some = rest.first(std::min(rest.size(), kAtOnce));
    Place(some);
    rest = rest.subspan(some.size());
  }
  dirty_.clear();
  if (retired_.size() > retired) {
    std::erase_if(by_id_, [&](MachineId m) { return (rows_[m].flags & kLeaving) != 0; });
  }
  CompactSlots();
  Tidy();
  if (catalogue_.RefreshSizes()) ++supply_version_;
}

// --- groups

void Inventory::Reset(Group& g) {
  g.cycle = cycle_;
  g.claimed = SettledClaim(g);
  if (g.owner != kNoId) key_states_[g.owner].opened = cycle_;
  g.first_claim = kNoId;
  g.last_claim = kNoId;
  if (!MUTANT("fast.held_over")) g.held_for = kNoId;
  g.held = 0;
  g.pledge_ended = false;
}

MachineId Inventory::Next(GroupId id, IdSet::Cursor& cursor) const {
  return groups_[id].members.Next(cursor, labels_, [&](MachineId m) { return group_[m] == id; });
}

void Inventory::Skip(GroupId id, IdSet::Cursor& cursor, uint32_t count) const {
  groups_[id].members.Skip(cursor, count, labels_, [&](MachineId m) { return group_[m] == id; });
}

IdSet::Cursor Inventory::FirstUnclaimed(GroupId id) {
  Group& g = Open(id);
  if (g.cursor_cycle != cycle_) {
    g.cursor_cycle = cycle_;
    g.cursor = g.members.Begin();
    g.cursor_at = 0;
  }
  if (g.cursor_at < g.claimed) {
    Skip(id, g.cursor, g.claimed - g.cursor_at);
    g.cursor_at = g.claimed;
  }
  return g.cursor;
}

bool Inventory::IsClaimed(MachineId m) {
  const GroupId id = group_[m];
  if (id == kNoId) return false;
  if (Remaining(id) == 0) return true;
  IdSet::Cursor cursor = FirstUnclaimed(id);
  const MachineId first = Next(id, cursor);
  return first == kNoMachine || labels_[m] < labels_[first];
}

void Inventory::Restamp(GroupId id, StampId stamp) {
  Group& g = groups_[id];
  const Terms terms{.cls = g.cls, .state = g.state, .cluster = g.cluster, .stamp = stamp};
  if (FindGroup(terms, HashOf(terms)) != kNoId) {
    g.members.Walk(
        labels_, [&](MachineId m) { return group_[m] == id; },
        [&](MachineId m) {
          SetStamp(m, stamp);
          return true;
        });
    return;
  }
  if (!g.restamped) restamped_.push_back(id);
  g.restamped = true;
  MarkDirty(g);
  group_lookup_.Erase(HashOf(g.terms()), id);
  std::erase(keys_[g.owner].own, id);
  g.split_changes = 0xffffffff;
  g.settled = 0;
  g.stamp = stamp;
  group_lookup_.Insert(HashOf(g.terms()), id);
  g.owner = KeyOf(g.cluster, stamps_[stamp].profile, stamps_[stamp].group);
  keys_[g.owner].own.push_back(id);
  MarkDirty(g);
  CountChange(g);
}

size_t Inventory::hot_bytes() const {
  size_t bytes =
      labels_.capacity() * sizeof(uint64_t) + rows_.capacity() * sizeof(Row) + group_.capacity() * sizeof(GroupId);
  for (const Group& g : groups_) {
    if (g.size > 0) bytes += sizeof(Group) + g.members.bytes();
  }
  return bytes;
}

}  // namespace muster::engine::fast
