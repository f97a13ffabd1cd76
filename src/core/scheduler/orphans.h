// Orphans: workloads that a node has and that are not its own: the store does not hold them, or holds them for another
// node. They are deleted on the node, after a comparison in the store has shown that the copy is not behind.
//
// The rail: if a node reports more workloads that the store does not know than half of what it has, and more than five,
// nothing is deleted: an empty or restored store must not stop a cluster. The store does not know a workload that it
// does not hold at all, nor an assignment whose sequence is above that of the record it holds: the store is behind. The
// alert stays until an operator accepts the node, or the node no longer reports them. Workloads that another node owns
// by a later assignment, and those that this scheduler released itself while the node was away, do not count. Foreign
// nodes report no sequences: there, a record that names another node is always taken as the later one.
//
// Invariant: what is held is neither accepted nor about to be deleted.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "contract/agent.h"
#include "core/scheduler/agent_calls.h"
#include "core/scheduler/drafts.h"
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
  struct State {
    std::map<std::string, Node, std::less<>> nodes;
    std::set<std::pair<std::string, std::string>> released;  // node and workload

    MUSTER_FIELDS(State, nodes, released)
  };

  Orphans(const StoreCopy& copy, Drafts& drafts, AgentCalls& calls, State state);

  // Everything that a node says it has. False: too much of it is unknown, and is held.
  bool OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses, StepContext& ctx);
  // The comparison for the node ended.
  void OnChecked(const std::string& node, bool holds, StepContext& ctx);
  void OnDeleted(const AgentCall& call, const CallDone& done, StepContext& ctx);
  // The workload's record is gone though the node may have it.
  void Release(const std::string& node, const std::string& workload);
  // What is held may be deleted; how many that are.
  size_t Accept(const std::string& node);
  void Forget(const std::string& node) { state_.nodes.erase(node); }
  // Comparisons whose outcome is not awaited any more.
  void DropChecks();

  size_t Held(std::string_view node) const;
  size_t held() const;
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  bool IsOrphan(const std::string& node, const std::string& workload) const;

  const StoreCopy& copy_;
  Drafts& drafts_;
  AgentCalls& calls_;
  State state_;
};

}  // namespace muster::scheduler
