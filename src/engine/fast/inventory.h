// Inventory: the machines, counted in groups, kept up to date on every change.
//
// A group is the machines of one class in one state that a decision need not tell apart: unbound ones by whom they are
// pledged to, bound ones by cluster and by the need that claimed them last. The engine decides over groups; a machine
// is named when an action needs its id. Inside a group machines are taken in the order of their ids, so what is claimed
// of a group in a cycle is always its first `claimed` machines.
//
// Changes are noted at once and take effect in BeginCycle: several between two cycles count as one.
//
// Invariants (Verify), from BeginCycle on: 1. names, keys, stamps, machines and groups are found by what they are, and
// no row in use is spare. 2. Machines are in the order of ids, and so are their labels. 3. A machine that did not
// change since is in the group of its terms; a group counts its members and is not empty. 4. A group stands exactly
// once in each list that its state calls for, and no list has another. 5. Live machines are counted by class.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "engine/fast/catalogue.h"
#include "engine/fast/group.h"
#include "engine/fast/hold_sets.h"
#include "engine/fast/id_texts.h"
#include "engine/fast/lookup.h"
#include "engine/fast/names.h"
#include "engine/types.h"
#include "model/machine_digest.h"

namespace muster::engine::fast {

class Inventory : public Names {
 public:
  Catalogue& catalogue() { return catalogue_; }
  const Catalogue& catalogue() const { return catalogue_; }

  // --- stamps
  // Whether so many stamps came that it is worth a search for those that are not in use any more.
  bool HasManyStamps() const { return stamps() > 2 * kept_stamps_ + 64 + rows_.size() / 16; }
  // Their rows will be others'. `of_needs` calls what it is given with every stamp that a need has.
  template <class OfNeeds>
  void SweepStamps(const OfNeeds& of_needs) {
    stamp_used_.assign(stamps_.size(), false);
    of_needs([&](StampId stamp) { stamp_used_[stamp] = true; });
    ForgetUnusedStamps();
  }

  // --- changes
  void Upsert(const model::Machine& machine, const model::MachineDigest& digest);
  void Upsert(std::span<const model::Machine> machines, std::span<const model::MachineDigest> digests);
  void Remove(std::string_view id);
  // Memory of an earlier life. A machine's row is read when the machine comes.
  void Restore(const Memory& memory);
  // In place of all holds before; costs what changed, and a walk over both.
  void SetHolds(const Holds& holds);
  // Strikes out the clusters that a machine is bound or pledged to, or that a hold names. Costs a walk over machines.
  void KeepUsed(Rows<ClusterId, bool>& unused) const;
  // Between cycles: marks a machine whose memory says something that ends with the next cycle.
  void MarkChanged(MachineId machine);

  // Brings groups and memory up to date with what changed.
  void BeginCycle(MonoTime now);
  // Brings groups up to date with what changed since, inside a cycle that has claimed nothing yet.
  void Update();
  uint32_t cycle() const { return cycle_; }

  // --- machines
  size_t machines() const { return alive_; }
  size_t rows() const { return rows_.size(); }
  MachineId Find(std::string_view id) const;
  ClassId ClassOfMachine(std::string_view id) const;          // kNoId: there is no such machine
  std::string_view id(MachineId m) const { return ids_[m]; }  // good until the next Upsert
  model::MachineState state(MachineId m) const { return rows_[m].state; }
  ClassId cls(MachineId m) const { return rows_[m].cls; }
  ClusterId cluster_of(MachineId m) const { return rows_[m].cluster; }
  GroupId group_of(MachineId m) const { return group_[m]; }
  uint64_t label(MachineId m) const { return labels_[m]; }
  StampId stamp_of(MachineId m) const {
    const GroupId g = group_[m];
    const bool from_group = g != kNoId && groups_[g].owner != kNoId && (rows_[m].flags & kRestamped) == 0;
    return from_group ? groups_[g].stamp : rows_[m].stamp;
  }
  KeyId pledge_of(MachineId m) const { return rows_[m].pledge; }
  void SetStamp(MachineId m, StampId stamp);
  void SetPledge(MachineId m, KeyId pledge);
  // It drains, or will, instead of a machine that serves a need (MachineMemory::instead).
  bool is_instead(MachineId m) const { return (rows_[m].flags & kInstead) != 0; }
  void SetInstead(MachineId m) {
    MemoryChanged(m);
    rows_[m].flags |= kInstead;
  }
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
  // The key's need takes of its own groups what it took before, if nothing changed and no need has read them in
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
  // Calls visit(machine) for members by id: from the cursor on, all of them, or the unclaimed.
  template <class Visit>
  void ForEachFrom(GroupId id, IdSet::Cursor cursor, const Visit& visit) const {
    for (MachineId m = Next(id, cursor); m != kNoMachine; m = Next(id, cursor)) visit(m);
  }
  template <class Visit>
  void ForEachMember(GroupId id, const Visit& visit) const {
    ForEachFrom(id, groups_[id].members.Begin(), visit);
  }
  template <class Visit>
  void ForEachUnclaimed(GroupId id, const Visit& visit) {
    ForEachFrom(id, FirstUnclaimed(id), visit);
  }
  bool IsClaimed(MachineId m);
  // All of a bound group was claimed by one need: the stamp changes, the machines stay together.
  void Restamp(GroupId id, StampId stamp);

  // Counts changes to which free groups exist, and to the sizes that order them.
  uint64_t supply_version() const { return supply_version_; }
  // Keys that have, or lately had, Idle or Draining machines pledged to them.
  const std::vector<KeyId>& pledged_keys() const { return pledged_keys_; }
  // Idle groups that are pledged.
  const std::vector<GroupId>& pledged_idle() const { return pledged_idle_; }
  // Idle and Speculative groups of machines that are on hold for some cluster.
  const std::vector<GroupId>& held_free() const { return held_free_; }
  bool IsOnHold(const Group& group, ClusterId cluster) const {
    return group.hold != HoldSets::kNone && hold_sets_.Holds(group.hold, cluster);
  }
  const Holds& holds() const { return holds_; }

  const Rows<TypeId, DrainMean>& drains() const { return drains_; }
  // Types whose mean changed since the last call, ascending.
  std::vector<TypeId> TakeDrained();
  MonoTime now() const { return now_; }
  // Idle machines that may be released one day and have been idle since: pushed as they become Idle.
  struct Resting {
    MonoTime since;
    MachineId machine;
  };
  std::vector<Resting>& resting() { return resting_; }

  // What a cycle reads and writes in which few machines change, and none comes: machines, and groups that have some.
  size_t hot_bytes() const;

  // The first invariant that does not hold; empty if all do. After a cycle.
  std::string Verify() const;

 private:
  static constexpr uint8_t kDirty = 1;
  static constexpr uint8_t kRestamped = 2;   // stamp_ is newer than the group's
  static constexpr uint8_t kLeaving = 4;     // removed: gone with the next cycle
  static constexpr uint8_t kRemembered = 8;  // in remembered_
  static constexpr uint8_t kInstead = 16;
  static constexpr uint8_t kHeld = 32;  // in hold_of_

  std::string VerifyReferences() const;
  std::string VerifyMachines() const;
  std::string VerifyGroups() const;
  std::string VerifyLists() const;
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
  void ReadRestored(MachineId m);
  void HoldAsTold(MachineId m);
  void CountDrain(MachineId m, MonoTime began);
  void ForgetUnusedStamps();
  void Leave(MachineId m);
  void Place(std::span<const MachineId> machines);
  void Move(MachineId m, GroupId to);
  Terms TermsOf(MachineId m) const;
  uint16_t hold_of(MachineId m) const { return (rows_[m].flags & kHeld) == 0 ? HoldSets::kNone : hold_of_.at(m); }
  GroupId FindGroup(const Terms& terms, uint64_t hash) const;
  GroupId FindOrMake(const Terms& terms, uint64_t hash);
  void Link(GroupId id);
  void MarkDirty(const Group& group);
  void CountChange(const Group& group);
  void Tidy();
  void ListOwn();
  void SortToKeep(std::vector<GroupId>& groups);
  void SweepClasses();
  void DropGaps();
  void CompactSlots();

  Catalogue catalogue_;
  Rows<StampId, bool> stamp_used_;  // scratch of a sweep
  uint64_t last_digest_ = 0;        // of what was decoded last
  StampId last_stamp_ = kNoStamp;
  Stamp stamp_;  // scratch

  // Machines, by row.
  IdTexts<MachineId> ids_;
  Labels labels_;
  Rows<MachineId, GroupId> group_;
  struct Row {
    int64_t since = 0;
    ClassId cls = kNoId;
    ClusterId cluster = kNoId;
    StampId stamp = kNoStamp;       // of machines that are in no bound group
    StampId bind_stamp = kNoStamp;  // what the provider's record says
    KeyId pledge = kNoId;
    model::MachineState state = model::MachineState::kUnspecified;
    model::MachineState since_state = model::MachineState::kUnspecified;  // whose clock `since` is; none: it stands
    uint8_t flags = 0;                                                    // kDirty, kRestamped, ...
  };
  Rows<MachineId, Row> rows_;
  Lookup<MachineId> machine_lookup_;
  size_t alive_ = 0;
  std::vector<MachineId> by_id_;
  std::vector<MachineId> newcomers_;
  std::vector<MachineId> dirty_;
  std::vector<MachineId> remembered_;  // their memory may have changed
  std::vector<MachineId> retired_;     // rows whose gaps may still lie in some group
  std::vector<MachineId> spare_;
  std::map<std::string, MachineMemory, std::less<>> restored_;

  Rows<GroupId, Group> groups_;
  Lookup<GroupId> group_lookup_;
  std::vector<GroupId> spare_groups_;
  std::vector<ClusterId> dirty_clusters_;
  std::vector<KeyId> dirty_keys_;
  std::vector<GroupId> dirty_groups_;  // may have become empty
  std::vector<GroupId> gone_groups_;   // scratch
  std::vector<GroupId> restamped_;     // the memory of all members changed; those that left are in remembered_
  std::vector<KeyId> pledged_keys_;
  std::vector<GroupId> pledged_idle_;
  std::vector<GroupId> held_free_;
  Holds holds_;
  HoldSets hold_sets_;
  std::unordered_map<MachineId, uint16_t, IdHash> hold_of_;  // machines on hold; never iterated
  struct Keep {                                              // what decides the keep order
    bool is_binding = false;
    int64_t price = 0;
    model::Penalty reclamation;
    GroupId group = kNoId;
  };
  std::vector<Keep> keep_;  // scratch

  Rows<TypeId, DrainMean> drains_;
  Rows<TypeId, bool> is_drained_;  // parallel: changed since TakeDrained
  std::vector<Resting> resting_;
  MonoTime now_{};
  uint32_t cycle_ = 0;
  uint64_t supply_version_ = 1;
};

}  // namespace muster::engine::fast
