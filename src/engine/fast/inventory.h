// Inventory: the machines, counted in groups, kept up to date on every change.
//
// A group is the machines of one class in one state that a decision need not tell apart: unbound ones by whom they are
// pledged to, bound ones by cluster and by the need that claimed them last. The engine decides over groups; a machine
// is named when an action needs its id. Inside a group machines are taken in the order of their ids, so what is claimed
// of a group in a cycle is always its first `claimed` machines.
//
// Changes are noted at once and take effect in BeginCycle: several between two cycles count as one.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "engine/fast/blocks.h"
#include "engine/fast/catalogue.h"
#include "engine/fast/id_set.h"
#include "engine/fast/id_texts.h"
#include "engine/fast/ids.h"
#include "engine/fast/lookup.h"
#include "engine/types.h"
#include "model/machine_digest.h"

namespace muster::engine::fast {

struct Stamp {  // an attribution
  ProfileId profile = kNoId;
  std::string group;
  int32_t priority = 0;
  model::Penalty interruption;
  model::Penalty reclamation;

  bool operator==(const Stamp&) const = default;
};
inline constexpr StampId kNoStamp = 0;  // row 0: nobody, with the defaults that stand for it

struct Key {  // (cluster, fingerprint, group): whom machines, pledges and parking belong to
  ClusterId cluster = kNoId;
  ProfileId profile = kNoId;
  std::vector<GroupId> own;       // bound groups that are its own, in keep order
  std::vector<GroupId> creating;  // being made for it, cheapest first
  std::vector<GroupId> idle;      // pledged to it
  std::vector<GroupId> draining;  // pledged to it
  bool is_dirty = false;

  bool has_pledges() const { return !idle.empty() || !draining.empty(); }
};

// What is read of a key for every need in every cycle, kept apart from its row.
struct KeyState {
  uint32_t opened = 0;      // the cycle in which somebody first looked into one of these groups
  uint32_t settled = 0;     // the cycle in which its need took what it took before (Group::settled)
  bool may_settle = false;  // its need, its groups and their machines are as they were when it took that
  bool has_pledges = false;
  bool has_own = false;  // bound or Creating
  bool has_creating = false;
};

struct Cluster {
  std::string name;
  ClusterState state{.session = false, .gate_open = false};
  std::vector<GroupId> bound;      // Configured and Configuring, in keep order
  std::vector<GroupId> in_flight;  // Creating and Draining, pledged to a need of the cluster
  uint64_t version = 0;            // counts changes to the two
  bool is_dirty = false;
};

// What all machines of a group have in common.
struct Terms {
  ClassId cls = kNoId;  // kNoId: of machines in no group
  model::MachineState state = model::MachineState::kUnspecified;
  ClusterId cluster = kNoId;
  StampId stamp = kNoStamp;
  KeyId pledge = kNoId;

  bool operator==(const Terms&) const = default;
};

struct alignas(64) Group {
  // The first cache line is all that a steady cycle reads.
  ClassId cls = kNoId;
  model::MachineState state = model::MachineState::kUnspecified;
  bool pledge_ended = false;     // the pledge was ended in this cycle
  bool has_clocks = false;       // Configured: the unclaimed clock of some member may run
  bool restamped = false;        // in Inventory::restamped_
  uint32_t size = 0;             // members
  uint32_t cycle = 0;            // for which the fields of a cycle are valid (Inventory::Open)
  uint32_t claimed = 0;          // in this cycle
  uint32_t first_claim = kNoId;  // list of this cycle's claims on it
  uint32_t last_claim = kNoId;
  StampId stamp = kNoStamp;  // bound: whose they are
  KeyId owner = kNoId;       // bound: the key of the stamp
  KeyId pledge = kNoId;      // Idle, Creating, Draining
  ClusterId cluster = kNoId;
  NeedId held_for = kNoId;  // pledged: the gang that counts on all of it
  uint32_t held = 0;        // pledged: machines that single needs count on (phase 2)
  uint32_t changes = 0;     // counts changes of its members
  uint32_t settled = 0;     // bound: what its owner's need takes of it while it is settled
  uint32_t bound_at = 0;    // bound: its place in Cluster::bound when the cycle last walked it

  // Where a merge with tied groups split it last, for as long as `split_changes` equals `changes` (Planner::TakeTied).
  uint32_t split_changes = 0xffffffff;
  uint32_t split = 0;                 // so many were taken
  MachineId split_last = kNoMachine;  // the last taken
  MachineId split_next = kNoMachine;  // the first left
  // Clocks were kept for this many claimed members (Cycle::KeepClocks).
  uint32_t clock_changes = 0xffffffff;
  uint32_t clock_claimed = 0;
  int64_t oldest_clock = 0;  // of its unclaimed members
  IdSet members;
  IdSet::Cursor cursor;       // at or before the first unclaimed machine (after phase 2, that was not taken either)
  uint32_t cursor_at = 0;     // its ordinal
  uint32_t cursor_cycle = 0;  // for which it is valid

  Terms terms() const { return {.cls = cls, .state = state, .cluster = cluster, .stamp = stamp, .pledge = pledge}; }
};
static_assert(sizeof(Group) == 128);

class Inventory {
 public:
  Inventory();

  Catalogue& catalogue() { return catalogue_; }
  const Catalogue& catalogue() const { return catalogue_; }

  // --- names
  ClusterId ClusterOf(std::string_view name);
  ClusterId FindCluster(std::string_view name) const;  // kNoId if nobody has named it
  Cluster& cluster(ClusterId id) { return clusters_[id]; }
  const Cluster& cluster(ClusterId id) const { return clusters_[id]; }
  size_t clusters() const { return clusters_.size(); }
  // Clusters by name; the order is made anew when one came.
  const std::vector<ClusterId>& ClustersByName();
  uint32_t cluster_rank(ClusterId id) const { return cluster_rank_[id]; }

  ProfileId ProfileOf(std::string_view fingerprint);
  const std::string& fingerprint(ProfileId id) const { return fingerprints_[id]; }
  size_t profiles() const { return fingerprints_.size(); }
  // Ranks of fingerprints by name, made anew when one came.
  void RankProfiles();
  uint32_t profile_rank(ProfileId id) const { return profile_rank_[id]; }
  KeyId KeyOf(ClusterId cluster, ProfileId profile, std::string_view group);  // not a key_group()
  KeyId KeyOf(const NeedKey& key);
  Key& key(KeyId id) { return keys_[id]; }
  const Key& key(KeyId id) const { return keys_[id]; }
  std::string_view key_group(KeyId id) const { return key_groups_[id]; }  // good until the next KeyOf
  const KeyState& key_state(KeyId id) const { return key_states_[id]; }
  NeedKey NameOf(KeyId id) const;
  size_t keys() const { return keys_.size(); }
  // Whether no machine is its own, made for it or pledged to it: as of BeginCycle.
  bool IsBare(KeyId id) const;
  // Nobody refers to the key any more: its row will be another's.
  void Forget(KeyId id);
  StampId StampOf(const Stamp& stamp);
  const Stamp& stamp(StampId id) const { return stamps_[id]; }
  size_t stamps() const { return stamps_.size() - spare_stamps_.size(); }
  // Whether so many stamps came that it is worth looking for those that nobody has any more.
  bool HasManyStamps() const { return stamps() > 2 * kept_stamps_ + 64 + rows_.size() / 16; }
  // Their rows will be others'. `of_needs` calls what it is given with every stamp that a need has.
  template <class OfNeeds>
  void SweepStamps(const OfNeeds& of_needs) {
    stamp_used_.assign(stamps_.size(), false);
    of_needs([&](StampId stamp) { stamp_used_[stamp] = true; });
    SweepStamps();
  }

  // --- changes
  void Upsert(const model::Machine& machine, const model::MachineDigest& digest);
  void Upsert(std::span<const model::Machine> machines, std::span<const model::MachineDigest> digests);
  void Remove(std::string_view id);
  // Memory of an earlier life. A machine's row is read when the machine comes.
  void Restore(const Memory& memory);
  // Between cycles: marks a machine whose memory says something that ends with the next cycle.
  void Touch(MachineId machine);

  // Brings groups and memory up to date with what changed.
  void BeginCycle(MonoTime now);
  // Brings groups up to date with what changed since, inside a cycle that has claimed nothing yet.
  void Update();
  uint32_t cycle() const { return cycle_; }

  // --- machines
  size_t machines() const { return alive_; }
  size_t rows() const { return rows_.size(); }
  MachineId Find(std::string_view id) const;
  std::string_view id(MachineId m) const { return ids_[m]; }  // good until the next Upsert
  model::MachineState state(MachineId m) const { return rows_[m].state; }
  ClassId cls(MachineId m) const { return rows_[m].cls; }
  ClusterId cluster_of(MachineId m) const { return rows_[m].cluster; }
  GroupId group_of(MachineId m) const { return group_[m]; }
  uint64_t label(MachineId m) const { return labels_[m]; }
  StampId stamp_of(MachineId m) const;
  KeyId pledge_of(MachineId m) const { return rows_[m].pledge; }
  void SetStamp(MachineId m, StampId stamp);
  void SetPledge(MachineId m, KeyId pledge);
  // The clock of the machine's state: unclaimed, idle or draining since.
  std::optional<MonoTime> since(MachineId m) const;
  void SetSince(MachineId m, std::optional<MonoTime> since);
  const std::vector<MachineId>& by_id() const { return by_id_; }  // as of BeginCycle
  // What must be remembered of the machine: all of it, or without what its record and a restart give anyway (the stamp
  // it was bound with, the idle clock).
  MachineMemory MemoryOf(MachineId m, bool without_given) const;
  // Machines whose memory may have changed since the last call; those that went are among them.
  std::vector<MachineId> TakeRemembered();

  // --- groups
  Group& group(GroupId id) { return groups_[id]; }
  const Group& group(GroupId id) const { return groups_[id]; }
  size_t groups() const { return groups_.size(); }
  const Amounts& each(const Group& group) const { return catalogue_.each(group.cls); }
  // The group with its per-cycle fields valid.
  Group& Open(GroupId id) {
    Group& g = groups_[id];
    if (g.cycle != cycle_) Reset(g);
    return g;
  }
  uint32_t Remaining(GroupId id) const {
    const Group& g = groups_[id];
    return g.size - (g.cycle == cycle_ ? g.claimed : SettledClaim(g));
  }
  // What the owner's need claimed of a bound group by settling: the first machines of it, and no ClaimRow says so.
  uint32_t SettledClaim(const Group& g) const {
    return g.owner != kNoId && key_states_[g.owner].settled == cycle_ ? g.settled : 0;
  }
  // The key's need takes of its own groups what it took before, if nothing changed and nobody has looked into them in
  // this cycle: with that all its claims are made.
  bool Settle(KeyId id) {
    KeyState& key = key_states_[id];
    if (!key.may_settle || (key.opened == cycle_ && !MUTANT("fast.settled_blindly"))) return false;
    key.settled = cycle_;
    return true;
  }
  void AllowSettling(KeyId id, bool may_settle) { key_states_[id].may_settle = may_settle; }
  // Walks a group's members by id, from the first unclaimed or from the first at all.
  IdSet::Cursor FirstUnclaimed(GroupId id);
  MachineId Next(GroupId id, IdSet::Cursor& cursor) const;
  void Skip(GroupId id, IdSet::Cursor& cursor, uint32_t count) const;
  bool IsClaimed(MachineId m);
  // All of a bound group was claimed by one need: the stamp changes, the machines stay together.
  void Restamp(GroupId id, StampId stamp);

  // Counts changes to which free groups exist, and to the sizes that order them.
  uint64_t supply_version() const { return supply_version_; }
  // Keys that have, or lately had, Idle or Draining machines pledged to them.
  const std::vector<KeyId>& pledged_keys() const { return pledged_keys_; }
  // Idle groups that are pledged.
  const std::vector<GroupId>& pledged_idle() const { return pledged_idle_; }

  std::vector<DrainMean>& drains() { return drains_; }
  const std::vector<DrainMean>& drains() const { return drains_; }
  MonoTime now() const { return now_; }
  // Idle machines that may be released one day and have been idle since: pushed as they become Idle.
  struct Resting {
    MonoTime since;
    MachineId machine;
  };
  std::vector<Resting>& resting() { return resting_; }

  // What a cycle reads and writes in which few machines change, and none comes: machines, and groups that have some.
  size_t hot_bytes() const;

 private:
  static constexpr uint8_t kDirty = 1;
  static constexpr uint8_t kRestamped = 2;   // stamp_ is newer than the group's
  static constexpr uint8_t kLeaving = 4;     // removed: gone with the next cycle
  static constexpr uint8_t kRemembered = 8;  // in remembered_

  void Reset(Group& group);
  void MemoryChanged(MachineId m) {
    if ((rows_[m].flags & kRemembered) != 0) return;
    rows_[m].flags |= kRemembered;
    remembered_.push_back(m);
  }
  MachineId Make(std::string_view id, uint64_t hash);
  StampId BindStampOf(const model::Machine& machine, uint64_t digest);
  void AssignLabels();
  void SortById(std::span<MachineId> machines) const;
  void Refresh(MachineId m);
  void ReadOldLife(MachineId m);
  void SweepStamps();
  void Leave(MachineId m);
  void Place(std::span<const MachineId> machines);
  void Move(MachineId m, GroupId to);
  Terms TermsOf(MachineId m) const;
  GroupId FindGroup(const Terms& terms, uint64_t hash) const;
  GroupId FindOrMake(const Terms& terms, uint64_t hash);
  void Link(GroupId id);
  void MarkDirty(const Group& group);
  void CountChange(const Group& group);
  void Tidy();
  void ListOwn();
  void SortToKeep(std::vector<GroupId>& groups);
  void DropGaps();
  void CompactSlots();

  Catalogue catalogue_;
  std::vector<Cluster> clusters_;
  std::vector<ClusterId> clusters_by_name_;
  std::vector<uint32_t> cluster_rank_;
  Lookup cluster_lookup_;
  ClusterId last_cluster_ = kNoId;  // asked for
  std::vector<std::string> fingerprints_;
  std::vector<uint32_t> profile_rank_;
  Lookup fingerprint_lookup_;
  Blocks<Key> keys_;  // rows are large
  std::vector<KeyState> key_states_;
  IdTexts key_groups_;
  Lookup key_lookup_;
  std::vector<KeyId> spare_keys_;
  std::vector<Stamp> stamps_;
  std::vector<StampId> spare_stamps_;
  size_t kept_stamps_ = 0;        // by the last sweep
  std::vector<bool> stamp_used_;  // scratch of a sweep
  Lookup stamp_lookup_;
  uint64_t last_digest_ = 0;  // of what was decoded last
  StampId last_stamp_ = kNoStamp;
  Stamp stamp_;  // scratch

  // Machines, by row.
  IdTexts ids_;
  std::vector<uint64_t> labels_;
  std::vector<GroupId> group_;
  struct Row {
    int64_t since = 0;
    ClassId cls = kNoId;
    ClusterId cluster = kNoId;
    StampId stamp = kNoStamp;       // of machines that are in no bound group
    StampId bind_stamp = kNoStamp;  // what the provider's record says
    KeyId pledge = kNoId;
    model::MachineState state = model::MachineState::kUnspecified;
    model::MachineState since_state = model::MachineState::kUnspecified;  // whose clock `since` is; none: it stands
    uint8_t flags = 0;                                                    // kDirty, kRestamped, kLeaving, kRemembered
  };
  std::vector<Row> rows_;
  Lookup machine_lookup_;
  size_t alive_ = 0;
  std::vector<MachineId> by_id_;
  std::vector<MachineId> newcomers_;
  std::vector<MachineId> dirty_;
  std::vector<MachineId> remembered_;  // their memory may have changed
  std::vector<MachineId> retired_;     // rows whose gaps may still lie in some group
  std::vector<MachineId> spare_;
  std::map<std::string, MachineMemory, std::less<>> old_life_;

  std::vector<Group> groups_;
  Lookup group_lookup_;
  std::vector<GroupId> spare_groups_;
  std::vector<ClusterId> dirty_clusters_;
  std::vector<KeyId> dirty_keys_;
  std::vector<GroupId> dirty_groups_;  // may have become empty
  std::vector<GroupId> gone_groups_;   // scratch
  std::vector<GroupId> restamped_;     // the memory of all members changed; whoever left is in remembered_
  std::vector<KeyId> pledged_keys_;
  std::vector<GroupId> pledged_idle_;
  struct Keep {  // what decides the keep order
    bool is_binding = false;
    int64_t price = 0;
    model::Penalty reclamation;
    GroupId group = kNoId;
  };
  std::vector<Keep> keep_;  // scratch

  std::vector<DrainMean> drains_;  // by Catalogue::DrainRow
  std::vector<Resting> resting_;
  MonoTime now_{};
  uint32_t cycle_ = 0;
  uint64_t supply_version_ = 1;
};

}  // namespace muster::engine::fast
