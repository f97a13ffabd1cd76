// Groups: machines move between them, and lists of them are kept.
#include <algorithm>
#include <array>
#include <tuple>

#include "base/hash.h"
#include "base/probe.h"
#include "engine/fast/inventory.h"

namespace muster::engine::fast {

using model::CapacityType;
using model::MachineState;

void Inventory::ReadRestored(MachineId m) {
  const auto it = restored_.find(ids_[m]);
  if (it == restored_.end()) return;
  const MachineMemory& old = it->second;
  if (old.attribution) {
    rows_[m].stamp = StampOf({.profile = ProfileOf(old.attribution->fingerprint),
                              .group = old.attribution->group,
                              .priority = old.attribution->priority,
                              .interruption = old.attribution->interruption,
                              .reclamation = old.attribution->reclamation});
  }
  if (old.pledge) rows_[m].pledge = KeyOf(*old.pledge);
  if (old.instead) rows_[m].flags |= kInstead;
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
      if (old.draining_since) CountDrain(m, *old.draining_since);
      break;
    default: break;
  }
  restored_.erase(it);
}

void Inventory::CountDrain(MachineId m, MonoTime began) {
  const TypeId type = catalogue_.cls(rows_[m].cls).type;
  drains_[type].total_millis += std::chrono::duration_cast<std::chrono::milliseconds>(now_ - began).count();
  ++drains_[type].drains;
  is_drained_[type] = true;
}

std::vector<TypeId> Inventory::TakeDrained() {
  std::vector<TypeId> types;
  for (const TypeId type : is_drained_.ids()) {
    if (is_drained_[type]) types.push_back(type);
  }
  is_drained_.assign(is_drained_.size(), false);
  return types;
}

// What memory still says about the machine in its present state.
void Inventory::Refresh(MachineId m) {
  MemoryChanged(m);
  const MachineState state = rows_[m].state;
  if (!restored_.empty()) ReadRestored(m);
  const StampId old_stamp = stamp_of(m);
  if (rows_[m].since_state == MachineState::kDraining && state == MachineState::kIdle &&
      !MUTANT("fast.drain_unlearnt")) {
    CountDrain(m, MonoTime(Duration{rows_[m].since}));
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
  if (state != MachineState::kDraining) rows_[m].flags = static_cast<uint8_t>(rows_[m].flags & ~kInstead);
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
      if (row.state == MachineState::kConfigured) terms.hold = hold_of(m);
      return terms;
    case MachineState::kIdle:
      terms.pledge = row.pledge;
      terms.hold = hold_of(m);
      return terms;
    case MachineState::kSpeculative: terms.hold = hold_of(m); return terms;
    case MachineState::kCreating:
    case MachineState::kDraining:
      if (row.pledge == kNoId) return {};
      terms.pledge = row.pledge;
      return terms;
    default: return {};
  }
}

GroupId Inventory::FindGroup(const Terms& terms, uint64_t hash) const {
  return group_lookup_.Find(hash, [&](GroupId i) { return groups_[i].terms() == terms; });
}

GroupId Inventory::FindOrMake(const Terms& terms, uint64_t hash) {
  if (terms.cls == kNoId) return kNoId;
  const GroupId known = FindGroup(terms, hash);
  if (known != kNoId) return known;
  GroupId id;
  if (spare_groups_.empty()) {
    id = groups_.Add({});
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
  g.hold = terms.hold;
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
      // The key of kNoStamp has no profile: machines that no need claimed yet are no need's own.
      g.owner = KeyOf(g.cluster, stamp.profile, stamp.group);
      clusters_[g.cluster].bound.push_back(id);
      keys_[g.owner].own.push_back(id);
      if (g.state == MachineState::kConfigured) catalogue_.cls(g.cls).bound.push_back(id);
      break;
    }
    case MachineState::kIdle:
    case MachineState::kSpeculative:
      catalogue_.cls(g.cls).free.push_back(id);
      if (g.hold != HoldSets::kNone) held_free_.push_back(id);
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

// Configured first, cheap first, then what is dear to reclaim. A walk over groups that tie merges them by id.
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
    if (g.state != MachineState::kConfigured && g.hold != HoldSets::kNone) std::erase_if(held_free_, is_it);
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
  for (const GroupId id : groups_.ids()) {
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

// Rows of machines that went may name a class that goes: it is none from then on.
void Inventory::SweepClasses() {
  if (!catalogue_.HasManyEmptyClasses(rows_.size()) || MUTANT("fast.classes_stay")) return;
  const Renumbering<ClassId> now = catalogue_.SweepClasses();
  for (Row& row : rows_) row.cls = now(row.cls);
  group_lookup_ = {};
  group_lookup_.Reserve(groups_.size());
  for (const GroupId id : groups_.ids()) {
    Group& g = groups_[id];
    if (g.cls == kNoId) continue;
    g.cls = now(g.cls);
    group_lookup_.Insert(HashOf(g.terms()), id);
  }
}

void Inventory::BeginCycle(MonoTime now) {
  now_ = now;
  ++cycle_;
  drains_.resize(catalogue_.types().size());
  is_drained_.resize(drains_.size());
  if (kept_stamps_ == 0) kept_stamps_ = stamps();  // what comes first is not gone yet
  AssignLabels();
  Update();
  SweepClasses();
  restored_.clear();
  ClustersByName();
}

void Inventory::Leave(MachineId m) {
  MemoryChanged(m);
  Move(m, kNoId);
  machine_lookup_.Erase(Hash(ids_[m]), m);
  rows_[m].state = MachineState::kUnspecified;
  rows_[m].stamp = rows_[m].bind_stamp = kNoStamp;
  rows_[m].cluster = kNoId;
  rows_[m].pledge = kNoId;
  hold_of_.erase(m);
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
    rows_[m].flags = static_cast<uint8_t>(rows_[m].flags & (kRemembered | kInstead | kHeld));
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
    const size_t most = std::min(stamps(), by_id_.size());  // few stamps have no machine
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

void Inventory::Reset(Group& g) {
  g.cycle = cycle_;
  g.claimed = SettledClaim(g);
  if (g.owner != kNoId) key_states_[g.owner].opened = cycle_;
  g.first_claim = kNoId;
  g.last_claim = kNoId;
  if (!MUTANT("fast.held_over")) g.held_for = kNoId;
  g.held = 0;
  g.pledge_ended = false;
  g.kept = false;
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
  const Terms terms{.cls = g.cls, .state = g.state, .cluster = g.cluster, .stamp = stamp, .hold = g.hold};
  if (FindGroup(terms, HashOf(terms)) != kNoId) {
    return ForEachMember(id, [&](MachineId m) { SetStamp(m, stamp); });
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
