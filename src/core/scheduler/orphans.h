// Orphans: workloads that a node has and that are not its own: the store does not hold them, or holds them for another
// node. They are deleted on the node, after a comparison in the store has shown that the copy is not behind.
//
// The rail: an empty or restored store must not stop a cluster. What the store does not know is held, and nothing of it
// is deleted, if
//   - it is more than half of what the node has, and more than five;
//   - or the store holds no workload at all;
//   - or it is more than half of what all nodes have, and more than five, counting what was let through lately.
// Reports and what was let through count for a node timeout: every node that lives reports within that. For as long
// after the scheduler began to decide, and after the store last held no workload, the count is not complete, and what
// is unknown waits for it.
//
// The store does not know a workload that it does not hold at all, nor an assignment whose sequence is above that of
// the one that the record replaced: the store was behind, whatever was assigned since. Foreign nodes report no
// sequences: there, a record that names another node is the later one if it says that the workload came from this node;
// otherwise the workload counts as unknown. What was unknown stays so as long as the node reports it: an assignment to
// another node is not what it was waiting for. The alert stays until an operator accepts the node, or a complete report
// of the node no longer has them. Workloads that another node owns by a later assignment, and those that this scheduler
// released itself while the node was away, do not count.
//
// A foreign node that registers under another id at the address of one that is not heard any more is that one: what the
// record gives to the id that it had is neither unknown nor moved, until that id's heartbeats have expired and the
// workload has a node again.
//
// Reports that are not complete add to what is held: at most 10,000 workloads of a node are noted so. Once these are
// there, all that the node has beyond what is its own counts as unknown, and the alert stays as it is.
//
// Invariants: what is held is neither accepted nor about to be deleted; what is released is so by a node that is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/agent.h"
#include "core/scheduler/agent_calls.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/reasons.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/store_copy.h"

namespace muster::scheduler {

class Orphans {
 public:
  struct Node {
    std::set<std::string> held;
    std::set<std::string> accepted;
    std::map<std::string, uint64_t> checking;  // with the sequence that the agent knows

    MUSTER_FIELDS(Node, held, accepted, checking)
  };
  // What a node has said last, for the count over all nodes.
  struct Report {
    MonoTime at;
    uint64_t workloads = 0;         // but for those that were let through
    std::set<std::string> unknown;  // of them, and not accepted

    MUSTER_FIELDS(Report, at, workloads, unknown)
  };
  using OnNode = std::pair<std::string, std::string>;  // node and workload
  struct State {
    std::map<std::string, Node, std::less<>> nodes;
    std::set<OnNode> released;                           // until the node has said that it is gone, or owns it again
    std::map<std::string, Report, std::less<>> reports;  // by node
    std::map<OnNode, MonoTime> passed;                   // what was unknown and let through, and when
    std::optional<MonoTime> counted_from;                // since when reports are counted

    MUSTER_FIELDS(State, nodes, released, reports, passed, counted_from)
  };

  Orphans(const Config& config, const StoreCopy& copy, const NodeHealth& health, Drafts& drafts, AgentCalls& calls,
          State state);

  // The count over all nodes begins here: whatever the store held before, it may be another one now.
  void CountFrom(MonoTime now) { state_.counted_from = now; }
  // Another store took the place of the one before: what was released or accepted was so in that one's name.
  void StartOver();
  // What a node says it has; `complete`: that is everything. False: some of it is unknown, and is not deleted now.
  bool OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses, bool complete,
                  StepContext& ctx);
  // The comparison for the node ended.
  void OnChecked(const std::string& node, bool holds, StepContext& ctx);
  void OnDeleted(const AgentCall& call, const CallDone& done, StepContext& ctx);
  // The workload's record is gone, or may be, though the node may have it. Without a node that is known: nothing.
  void Release(const std::string& node, const std::string& workload);
  // What is held may be deleted; how many that are.
  size_t Accept(const std::string& node);
  void Forget(const std::string& node);

  size_t Held(std::string_view node) const;
  size_t held() const;
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  using Stamped = std::map<std::string, uint64_t>;  // workloads, with the sequence that the agent knows
  struct Found {
    Stamped moved;    // another node's, or released
    Stamped unknown;  // to the store
  };
  struct Count {
    size_t unknown = 0;
    size_t all = 0;
  };

  bool IsOrphan(const std::string& node, const std::string& workload) const;
  bool IsCounting(MonoTime now) const;
  // Whether the record is not that of the workload which the node has, or of a later one: the store did not know it.
  bool IsBehind(const WorkloadRecord& stored, const std::string& node, const contract::WorkloadStatus& status) const;
  bool WasUnknown(const std::string& node, const std::string& workload) const;
  Found Sort(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses, MonoTime now) const;
  void NoteReport(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses,
                  const Stamped& unknown, bool complete, MonoTime now);
  // Over all nodes that reported lately.
  Count CountAll(MonoTime now);
  // Why none of these may be deleted. Nothing: they may.
  struct Hold {
    Reason reason = Reason::kNone;
    std::string detail;
  };
  Hold WhyHeld(const Stamped& unknown, size_t reported, MonoTime now);
  void Check(const std::string& node, Node& here, const Stamped& orphans, StepContext& ctx);

  const Config& config_;
  const StoreCopy& copy_;
  const NodeHealth& health_;
  Drafts& drafts_;
  AgentCalls& calls_;
  State state_;
};

}  // namespace muster::scheduler
