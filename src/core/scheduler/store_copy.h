// StoreCopy: what the cluster's store holds below the prefix, in memory: the records, and the revision of every key.
//
// Three things tell it of changes: lists, the watch, and the commits of this scheduler, which are known before the
// watch shows them. Whatever comes later about a key than a revision that is already known for it is older news, and
// ignored; a key that a commit deleted is remembered until the watch has passed that revision. Revisions do not go back
// but with the store itself: a list below what is known is of another store, or of an older backup, and all that
// counts.
//
// Thread-safety: none, as for every part. Invariants: (1) the indexes by node and by set, and the counts, are those of
// the records; (2) every record has a key with a revision; (3) no key is both there and deleted.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "contract/cluster_views.h"
#include "contract/store.h"
#include "core/scheduler/records.h"
#include "core/scheduler/snapshot.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

struct ObjectId {
  contract::ObjectKind kind = contract::ObjectKind::kWorkload;
  std::string name;

  auto operator<=>(const ObjectId&) const = default;
  MUSTER_FIELDS(ObjectId, kind, name)
};
inline ObjectId WorkloadObject(std::string id) { return {contract::ObjectKind::kWorkload, std::move(id)}; }
inline ObjectId NodeObject(std::string id) { return {contract::ObjectKind::kNode, std::move(id)}; }
inline ObjectId SetObject(std::string name) { return {contract::ObjectKind::kSet, std::move(name)}; }
inline ObjectId QuotaObject(std::string tenant) { return {contract::ObjectKind::kQuota, std::move(tenant)}; }

// The record of an object. Its key is that of RecordKindOf.
using Record = std::variant<WorkloadRecord, SetRecord, model::Quota, NodeRecord>;
RecordKind RecordKindOf(contract::ObjectKind kind);

// Events of a workload have its id as their owner; those of a node "_node.<id>", which is no id of a workload.
std::string EventOwner(const EventRecord& event);
std::string NodeEventOwner(std::string_view node);
// "<owner>.<sequence>".
std::string EventId(std::string_view owner, uint64_t sequence);

class StoreCopy {
 public:
  using Events = std::map<uint64_t, EventRecord>;  // by sequence
  template <class R>
  using ById = std::map<std::string, R, std::less<>>;
  struct State {
    contract::Revision revision = 0;  // up to which the watch or a list has told
    bool listed = false;
    ById<contract::Revision> revisions;  // of every key
    ById<contract::Revision> deleted;    // keys that commits deleted ahead of the watch
    ById<contract::Revision> ahead;      // keys that commits wrote ahead of the watch
    ById<WorkloadRecord> workloads;
    ById<SetRecord> sets;
    ById<model::Quota> quotas;
    ById<NodeRecord> nodes;
    ById<ReconciliationRecord> reconciliations;  // by workload
    ById<Events> events;                         // by owner
    ById<EventRecord> foreign_events;            // by id: those of other programs, whose ids have no sequence

    MUSTER_FIELDS(State, revision, listed, revisions, deleted, ahead, workloads, sets, quotas, nodes, reconciliations,
                  events, foreign_events)
  };

  StoreCopy(const Config& config, State state);

  // --- what is known
  const State& state() const { return state_; }
  template <class R>
  const R* Find(std::string_view id) const {
    const auto& all = All<R>();
    const auto found = all.find(id);
    return found == all.end() ? nullptr : &found->second;
  }
  template <class R>
  const ById<R>& All() const {
    if constexpr (std::is_same_v<R, WorkloadRecord>) {
      return state_.workloads;
    } else if constexpr (std::is_same_v<R, SetRecord>) {
      return state_.sets;
    } else if constexpr (std::is_same_v<R, NodeRecord>) {
      return state_.nodes;
    } else if constexpr (std::is_same_v<R, ReconciliationRecord>) {
      return state_.reconciliations;
    } else {
      return state_.quotas;
    }
  }
  // The ring of the owner: its events that this program wrote.
  const Events& EventsOf(std::string_view owner) const;
  std::string Key(RecordKind kind, std::string_view id) const { return KeyOf(config_.prefix, kind, id); }
  // 0: there is no such key.
  contract::Revision RevisionOf(const std::string& key) const;
  contract::Revision RevisionOf(const ObjectId& object) const {
    return RevisionOf(Key(RecordKindOf(object.kind), object.name));
  }
  // Of an object that is not there: the revision of its deletion, or one that the watch has told since.
  contract::Revision DeletedAt(const ObjectId& object) const;
  // The highest revision that is known: this scheduler's own commits to the object may be ahead of the watch. Above it
  // is above whatever an earlier object of this name was given.
  uint64_t LatestFor(const ObjectId& object) const {
    return static_cast<uint64_t>(std::max(DeletedAt(object), RevisionOf(object)));
  }
  contract::Compare Unchanged(const std::string& key) const;
  // Assigned to the node; members of the set. By id.
  const std::set<std::string>& OnNode(std::string_view node) const;
  const std::set<std::string>& MembersOf(std::string_view set) const;
  const std::array<int64_t, kPhases>& phases() const { return indexes_.phases; }
  const std::array<int64_t, kDesiredStates>& desired() const { return indexes_.desired; }
  const std::array<int64_t, kNodeStatuses>& node_statuses() const { return indexes_.node_statuses; }

  // --- what is told
  void List(const StoreListed& listed, StepContext& ctx);
  // Whether the list is of another store than the one that is known.
  bool IsOfAnother(const StoreListed& listed) const { return listed.revision < state_.revision; }
  void Apply(const StoreChanged& changed, StepContext& ctx);
  // A commit of this scheduler left the key so. Ignored if the key is known at that revision or later.
  void Put(RecordKind kind, const std::string& id, Record record, contract::Revision revision);
  void Put(const ReconciliationRecord& record, contract::Revision revision);
  void Put(EventRecord event, contract::Revision revision);
  // A key whose value is not read: a status, an assignment, a retry.
  void PutShadow(RecordKind kind, const std::string& id, contract::Revision revision);
  void Delete(RecordKind kind, const std::string& id, contract::Revision revision);
  // The objects whose records changed, came or went since the last call.
  std::set<ObjectId> TakeChanged() { return std::exchange(changed_, {}); }

  void CheckInvariants() const;

 private:
  // Derived from the records.
  struct Indexes {
    ById<std::set<std::string>> by_node;
    ById<std::set<std::string>> by_set;
    std::array<int64_t, kPhases> phases{};
    std::array<int64_t, kDesiredStates> desired{};
    std::array<int64_t, kNodeStatuses> node_statuses{};

    static Indexes Of(const State& state);
    void Add(const std::string& id, const WorkloadRecord& record);
    void Remove(const std::string& id, const WorkloadRecord& record);
    void Add(const NodeRecord& record) { ++node_statuses.at(static_cast<size_t>(record.status)); }
    void Remove(const NodeRecord& record) { --node_statuses.at(static_cast<size_t>(record.status)); }
  };

  bool Newer(const std::string& key, contract::Revision revision) const;
  void Note(const std::string& key, contract::Revision revision);
  bool IsAhead(const std::string& key, contract::Revision revision) const;
  void StartOver();
  void NoteOwn(const std::string& key, contract::Revision revision);
  void TakeUnshown(const StoreChanged& changed);
  void Read(const ParsedKey& key, const contract::KeyValue& row, StepContext& ctx);
  void Remove(const ParsedKey& key);
  void Set(const std::string& id, WorkloadRecord record);
  void Set(const std::string& id, NodeRecord record);

  const Config& config_;
  State state_;
  Indexes indexes_;
  // Within a step.
  std::set<ObjectId> changed_;
};

}  // namespace muster::scheduler
