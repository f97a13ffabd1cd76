// Drafts: what the scheduler has decided and the store does not hold yet, object by object, and the commits on their
// way.
//
// A decision edits the draft of an object, which begins as its record in the store. Flush() groups all drafts into
// transactions: the keys of an object stay together, and every key that is written is compared with the revision the
// draft was made from, besides the key of the election. From then on the object is busy: nobody edits it until the
// commit has ended.
//   Committed: the draft is what the store holds.
//   Conflict:  another writer was faster. The draft is dropped, and the decision is made again on what the watch shows.
//   Unknown:   it may have happened, or may happen yet. The draft is dropped, and in doubt: the room and the quota that
//              it asked for are not given away. The decision is made again once the store has shown what happened, or
//              after a pause. The same comparison guards it: one of both commits is void.
// An object of a commit that failed is committed alone the next time, so that one conflict does not hold up others.
//
// Where more drafts wait than commits may be under way, those of nodes, quotas and sets go first, for they are few and
// many workloads follow from each; then those of workloads, in the order in which they were opened.
//
// Invariants: (1) an object has one draft at the most, in one commit at the most; (2) a draft in flight has keys, an
// open one has none; (3) no object with an open draft is blocked; (4) every open draft has its turn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/fields.h"
#include "base/probe.h"
#include "contract/cluster.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

// A request that waits for a draft to be durable. The request is kept, for a conflict has it carried out again.
struct Waiter {
  contract::RequestId request = 0;
  contract::ClusterRequest body;
  bool charged = false;  // its tenant's rate
  contract::ApplyResult result = contract::ApplyResult::kUnchanged;
  std::string tenant;  // whose objects it may change; empty: all

  MUSTER_FIELDS(Waiter, request, body, charged, result, tenant)
};

struct WrittenKey {
  RecordKind kind = RecordKind::kWorkload;
  std::string id;
  bool deleted = false;

  MUSTER_FIELDS(WrittenKey, kind, id, deleted)
};

struct Draft {
  bool removes = false;  // the object is to be gone
  Record record;         // what it becomes, or was
  std::optional<ReconciliationRecord> explained;
  std::vector<EventRecord> events;
  std::vector<contract::Decision> decisions;  // published once the draft is durable
  std::vector<Waiter> waiters;
  uint64_t opened = 0;           // the how manieth draft it is
  contract::CallId commit = 0;   // 0: not in flight
  std::vector<WrittenKey> keys;  // of the commit
  contract::Revision base = 0;   // of the record that the commit compares with

  MUSTER_FIELDS(Draft, removes, record, explained, events, decisions, waiters, opened, commit, keys, base)
};

// How the draft of an object ended.
struct Resolved {
  enum class Kind : uint8_t { kCommitted, kAgain, kRefused };
  Kind kind = Kind::kCommitted;
  ObjectId object;
  std::string released;             // the node of a workload that was removed, or may have been; empty: none
  contract::Revision revision = 0;  // of a commit
  Status status;                    // of a refusal
  std::vector<Waiter> waiters;
};

template <class R>
constexpr contract::ObjectKind ObjectKindOf() {
  if constexpr (std::is_same_v<R, WorkloadRecord>) return contract::ObjectKind::kWorkload;
  if constexpr (std::is_same_v<R, SetRecord>) return contract::ObjectKind::kSet;
  if constexpr (std::is_same_v<R, NodeRecord>) return contract::ObjectKind::kNode;
  return contract::ObjectKind::kQuota;
}

class Drafts {
 public:
  struct Block {
    MonoTime until;
    contract::Revision revision = 0;  // of the store at which the object may be decided again; 0: not known

    MUSTER_FIELDS(Block, until, revision)
  };
  // A workload or a set as a commit may have left it, or may leave it yet.
  struct Doubt {
    Record record;
    contract::Revision base = 0;  // of the record it was made from; void once the store has another one
    MonoTime until;               // no commit takes that long

    MUSTER_FIELDS(Doubt, record, base, until)
  };
  struct Row {
    std::vector<ObjectId> objects;
    std::string check;  // of a commit that writes nothing: whose; neither: nothing follows from its outcome

    MUSTER_FIELDS(Row, objects, check)
  };
  // Whether it is a workload's, and when it was opened.
  using Turn = std::pair<bool, uint64_t>;
  struct State {
    std::map<ObjectId, Draft> drafts;
    std::map<Turn, ObjectId> open;  // drafts that are not in flight
    uint64_t opened = 0;            // so far
    std::map<ObjectId, Block> blocked;
    std::map<ObjectId, int32_t> failures;  // since the last commit that succeeded
    std::map<ObjectId, Doubt> doubts;
    std::map<ObjectId, MonoTime> late;  // a commit that makes it may happen until then
    std::map<contract::CallId, Row> commits;
    contract::CallId last = 0;
    std::string leader_key;  // empty: no election
    contract::Revision leader_revision = 0;
    contract::LeaseId event_lease = 0;  // of events that are written

    MUSTER_FIELDS(State, drafts, open, opened, blocked, failures, doubts, late, commits, last, leader_key,
                  leader_revision, event_lease)
  };

  Drafts(const Config& config, StoreCopy& copy, State state);

  // Whether an earlier commit of unknown outcome may make the object yet. It compares with nothing being there: an
  // object that was made again and removed meanwhile would come back.
  bool MayComeYet(const ObjectId& object) const {
    return state_.late.contains(object) && !MUTANT("scheduler.removed_too_soon");
  }
  // The same of a workload whose id begins like that.
  bool AnyMayComeYet(const std::string& prefix) const {
    const auto late = state_.late.lower_bound(WorkloadObject(prefix));
    return late != state_.late.end() && late->first.kind == contract::ObjectKind::kWorkload &&
           late->first.name.starts_with(prefix) && !MUTANT("scheduler.removed_too_soon");
  }

  // --- drafts
  bool Busy(const ObjectId& object) const;
  // The record as it will be if the draft succeeds; null if there is none.
  template <class R>
  const R* Find(std::string_view id) const {
    const auto found = state_.drafts.find(ObjectId{ObjectKindOf<R>(), std::string(id)});
    if (found == state_.drafts.end()) return copy_.Find<R>(id);
    return found->second.removes ? nullptr : &std::get<R>(found->second.record);
  }
  // The workload or set as a commit of unknown outcome may have left it. Null if there is none.
  template <class R>
  const R* FindDoubt(const std::string& name) const {
    const Record* record = DoubtOf({ObjectKindOf<R>(), name});
    return record == nullptr ? nullptr : &std::get<R>(*record);
  }
  // The object must not be busy. It must exist, or its draft.
  template <class R>
  R& Edit(const std::string& id) {
    const ObjectId object{ObjectKindOf<R>(), id};
    Draft& draft = Open(object);
    MUSTER_CHECK(!draft.removes, "{} {} is being removed", contract::ObjectKindName(object.kind), id);
    return std::get<R>(draft.record);
  }
  // The object must not be busy.
  template <class R>
  R& Create(const std::string& id, R record) {
    Draft& draft = Begin({ObjectKindOf<R>(), id});
    draft.removes = false;
    draft.record = std::move(record);
    return std::get<R>(draft.record);
  }
  void Remove(const ObjectId& object);
  // The objects whose drafts were begun or edited since the last call.
  std::set<ObjectId> TakeEdited() { return std::exchange(edited_, {}); }
  // The rest needs a draft that is open.
  void AddEvent(const ObjectId& object, EventType type, const std::string& node, std::string reason, Now now);
  void AddDecision(const ObjectId& object, contract::Decision decision);
  void AddWaiter(const ObjectId& object, Waiter waiter);
  // What the reconciliation of a workload did. Stored if the action is not the one before.
  void Explain(const std::string& workload, Action action, bool success, std::string reason, StepContext& ctx);

  // --- commits
  void SetLeader(std::string key, contract::Revision revision);
  void SetEventLease(contract::LeaseId lease) { state_.event_lease = lease; }
  void Flush(StepContext& ctx);
  // Deletes events of other programs that are too old, or of nothing that is there any more: they go with no lease, and
  // are in no ring. A few thousand at once.
  void PruneForeignEvents(StepContext& ctx);
  // A commit that only compares, on behalf of `subject`.
  void Check(std::vector<contract::Compare> compares, const std::string& subject, StepContext& ctx);
  struct Ended {
    std::vector<Resolved> objects;
    std::string check;  // whose comparison ended
    bool holds = false;
  };
  Ended OnCommitDone(const contract::CommitDone& done, StepContext& ctx);
  // Another store took the place of the one that the commits under way were sent to: whatever comes of them says
  // nothing of this one. Each ends as if its outcome were unknown, and what it is answered then is void.
  std::vector<Ended> Disown(StepContext& ctx);
  // Objects that may be decided again: those whose pause is over, whose revision the copy has reached, and all of
  // `shown`, which the store has just shown; and those that are no longer in doubt.
  std::vector<ObjectId> Release(const std::set<ObjectId>& shown, bool all, MonoTime now);
  // Drops all drafts that are not in flight: their objects, and the requests that waited for them.
  struct Dropped {
    std::set<ObjectId> objects;
    std::vector<Waiter> waiters;
  };
  Dropped DropOpen();

  std::optional<MonoTime> NextWake() const;
  size_t in_flight() const { return state_.commits.size(); }
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  // What a draft adds to a transaction.
  struct Piece {
    std::vector<contract::Compare> compares;
    std::vector<contract::StoreWrite> writes;
    size_t bytes = 0;
  };
  static Turn TurnOf(const ObjectId& object, const Draft& draft) {
    return {object.kind == contract::ObjectKind::kWorkload, draft.opened};
  }
  const Record* DoubtOf(const ObjectId& object) const;
  Draft& Begin(const ObjectId& object);
  Draft& Open(const ObjectId& object);
  Draft& OpenDraft(const ObjectId& object);
  Piece PieceOf(const ObjectId& object, Draft& draft, StepContext& ctx);
  void AddWorkload(const std::string& id, Draft& draft, Piece& piece, StepContext& ctx);
  void AddRemoval(const ObjectId& object, Draft& draft, Piece& piece);
  void AddEvents(const ObjectId& object, Draft& draft, Piece& piece, StepContext& ctx);
  void Write(RecordKind kind, const std::string& id, std::optional<std::string> value, Draft& draft, Piece& piece);
  void Send(contract::Transaction transaction, Row row, StepContext& ctx);
  Ended End(const Row& row, const contract::CommitOutcome& outcome, StepContext& ctx);
  // Takes the record and the events out of the draft.
  void ApplyToCopy(const ObjectId& object, Draft& draft, contract::Revision revision);
  void BlockObject(const ObjectId& object, contract::Revision revision, MonoTime now);

  const Config& config_;
  StoreCopy& copy_;
  State state_;
  std::set<ObjectId> edited_;  // within a step
};

}  // namespace muster::scheduler
