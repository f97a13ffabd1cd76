// SchedulerJudge: what a scheduler owes its cluster, checked from outside: against what the store holds, what clients
// were told, what agents were told and what the nodes run. It knows nothing of how the core works.
//
// After every change of the store:
//   1. the requests of the workloads assigned to a node fit its total;
//   2. a workload's assignment sequence never goes down and grows when it moves, and a node's epoch never goes down; no
//      workload moves to a node that is cordoned;
//   3. attempts stay within their limit, have a pause between them, begin anew with a revision, and are neither of
//      waits for a node nor of runtimes that a node lacks; events of a workload stay within their limit;
//   4. an acknowledged apply of a workload or set is there: its revision, or a later one of the same client; what was
//      deleted by an acknowledged order is gone, or going;
//   5. the monitor loses no node before its heartbeats were missing for the timeout under one leader, and a node that
//      could not be called is Ready only after a call was answered;
//   6. what a tenant has asked for is within its quota: its workloads that are to run and have neither ended nor failed
//      for good, and its sets by their counts. Members say nothing of it: a set surges, and gives members up late;
//   7. a member whose rule keeps its set apart by hosts is placed beside no other member.
// At every write: the scheduler that wrote was the leader.
// At every call to an agent: at most as many are open for a node as the configuration says.
// At every registration of a native node: its epoch is a new one.
// At any moment, faults or not, of what native nodes have: it is there by an assignment to that node, and by an epoch
// of that node, which the store had before the agent; one assignment is on one node. A node that cannot be reached
// keeps what was given to another meanwhile, and its epoch stays valid until it registers again: two copies with valid
// epochs are no fault by themselves. Once everything can be reached, the older one is told to go within kTold. At rest:
// desired equals actual on every node, nothing runs twice, nothing that fits waits, nothing is written; nothing is left
// on a node that is dead while another has room; a set has the members that it counts, by its template.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "contract/agent.h"
#include "contract/store.h"
#include "core/scheduler/records.h"
#include "core/scheduler/types.h"
#include "model/node.h"

namespace muster::sim {

// A workload that a native node has, with the stamp that its agent took.
struct LiveCopy {
  std::string workload;
  std::string node;
  bool running = false;
  contract::Stamp stamp;
};

// A node as it is, whatever its scheduler believes.
struct JudgedNode {
  std::string node;
  bool alive = true;  // its agent
  std::vector<model::WorkloadType> types{};
  std::map<std::string, std::string> has{};      // workloads that are there, running or not: their revisions
  std::map<std::string, std::string> running{};  // of them those that run
};

// Whether `other` may be refused where `one` is. Rules with a selector are not looked into.
bool MayExclude(const model::Workload& one, const model::Workload& other);

// The label of a set with the number of its apply. Of a workload it is in the revision: "r17".
inline constexpr std::string_view kApplyLabel = "apply";

class SchedulerJudge {
 public:
  explicit SchedulerJudge(scheduler::Config config) : config_(std::move(config)) {}

  // The store holds these rows now.
  void StoreHolds(const std::vector<contract::KeyValue>& rows, MonoTime now);
  // A scheduler sends this to the store, where it may arrive late, or never: what its rows say was decided now. In a
  // world that does not tell, it was decided when the store holds it.
  void Sent(const contract::Transaction& transaction, MonoTime now);
  // A scheduler's transaction was committed at `revision`; `leader` is the key of the election now.
  void Wrote(const std::string& scheduler, contract::Revision revision, const contract::KeyValue& leader);
  // A client asks for an apply with this number; later requests about that object have larger numbers. They may
  // overtake each other, and each is carried out once at the most.
  void Asked(const std::string& name, int64_t number, contract::ObjectKind kind = contract::ObjectKind::kWorkload);
  // A client asks for the object to go. Without a number that is never acknowledged.
  void AskedToDelete(const std::string& name, int64_t number = kUnanswered,
                     contract::ObjectKind kind = contract::ObjectKind::kWorkload);
  // That was answered: from here on the store has what it asked for, or what another request did that was not answered
  // yet when this one was made.
  void Acknowledged(const std::string& name, int64_t number,
                    contract::ObjectKind kind = contract::ObjectKind::kWorkload);
  // Calls of one scheduler process.
  void CallStarted(size_t process, const scheduler::Call& call, MonoTime now);
  void CallEnded(size_t process, const scheduler::Call& call, const Status& status, MonoTime now);
  // A node was told that it is registered.
  void Registered(const std::string& node, const contract::NodeRegistered& answer);
  // The process died: its calls are gone.
  void CallsForgotten(size_t process);
  // Native nodes have these now. Since `quiet`, agents, schedulers and the store are up and can reach each other, but
  // for single messages that are lost; nothing: they cannot.
  void Live(const std::vector<LiveCopy>& copies, std::optional<MonoTime> quiet, MonoTime now);
  void AtRest(const std::vector<JudgedNode>& nodes);
  const std::map<std::string, scheduler::WorkloadRecord>& workloads() const { return workloads_; }
  const std::map<std::string, scheduler::NodeRecord>& nodes() const { return nodes_; }

  const std::optional<std::string>& failure() const { return failure_; }
  uint64_t checks() const { return checks_; }
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }

 private:
  static constexpr int64_t kAtFirst = 0;  // as it was before the first request
  static constexpr int64_t kUnanswered = -1;
  // Requests about an object, by their numbers.
  struct Promise {
    std::set<int64_t> possible{kAtFirst};  // those that may have been carried out last
    std::set<int64_t> answered{kAtFirst};
    std::set<int64_t> leave_nothing{kAtFirst};
    std::map<int64_t, std::set<int64_t>> before;  // what was answered when one was made
  };
  using Object = std::pair<contract::ObjectKind, std::string>;
  struct Row {
    contract::Revision modified = 0;
    scheduler::RecordKind kind = scheduler::RecordKind::kWorkload;
    std::string id;
    std::string owner;  // of an event of a workload
  };
  void Read(const contract::KeyValue& stored, Row& row);
  void CheckCapacity();
  void CheckPromises();
  std::optional<int64_t> StoredNumber(const Object& object) const;
  Promise& NoteRequest(const Object& object, int64_t number);
  void CheckNeighbours();
  void CheckSet(const std::string& name, const scheduler::SetRecord& set);
  void CheckQuotas();
  struct Sending;
  void CheckNode(const std::string& id, const scheduler::NodeRecord& node, contract::Revision modified,
                 const Sending& sending);
  bool HasRoom(const JudgedNode& candidate, const model::Workload& workload) const;
  // What was seen last of a workload.
  struct Progress {
    uint64_t sequence = 0;  // largest
    std::string node;
    std::string revision;
    int32_t attempts = 0;
    MonoTime counted;      // when it was decided that the number of attempts is this one
    bool evicted = false;  // since then
  };
  void CheckTarget(const std::string& id, const std::string& node);
  void CheckAttempts(const std::string& id, const scheduler::WorkloadRecord& record, bool is_new, MonoTime decided,
                     Progress& progress);
  void CheckProgress(const std::string& id, const scheduler::WorkloadRecord& record, MonoTime decided);
  // When a row was sent, and what was known of the calls to its node then.
  struct Sending {
    MonoTime at;
    std::optional<MonoTime> calls{};  // the first that failed since one was answered, otherwise the last that was
  };
  Sending SendingAt(const std::string& node, MonoTime now) const;
  Sending SendingOf(const contract::KeyValue& stored, const Row& row) const;

  const scheduler::Config config_;
  std::map<std::string, Row, std::less<>> rows_;  // of the store, by key
  std::map<std::string, scheduler::NodeRecord> nodes_;
  std::map<std::string, scheduler::WorkloadRecord> workloads_;
  std::map<std::string, scheduler::SetRecord> sets_;
  std::map<std::string, model::Quota> quotas_;                          // by tenant
  std::map<std::string, Progress> progress_;                            // by workload
  std::map<std::string, std::map<uint64_t, std::string>> assignments_;  // by workload: the node of each sequence
  std::map<std::string, MonoTime> twice_;                  // since when a workload runs twice with valid epochs
  std::map<std::string, uint64_t> epochs_;                 // by node
  std::map<std::string, std::set<uint64_t>> told_epochs_;  // by node: of its registrations
  std::pair<contract::Revision, MonoTime> leads_;          // the key of the election, and when it changed
  std::map<std::string, MonoTime> unreachable_;            // since when, by node
  std::map<std::string, MonoTime> failing_;                // the first call that failed since one was answered, by node
  std::map<std::string, MonoTime> answered_;               // the last call that was, by node
  std::map<std::string, MonoTime> cordoned_;               // since when, by node
  std::map<std::pair<std::string, std::string>, Sending> sent_;  // the latest, by key and value
  MonoTime now_;
  std::map<Object, Promise> promises_;
  std::set<std::string> placed_;  // since the last look at the store
  std::map<std::pair<size_t, std::string>, std::map<contract::CallId, MonoTime>>
      open_;  // deadlines, by process and node
  std::optional<std::string> failure_;
  uint64_t checks_ = 0;
};

}  // namespace muster::sim
