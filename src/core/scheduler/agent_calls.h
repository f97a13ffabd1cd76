// AgentCalls: the calls to agents, queued and under way. Each node has a queue of its own and a few calls in flight, so
// that a node which does not answer delays no other.
//
// A call that fails because the agent cannot be reached is made once more; its second failure is reported.
//
// Invariants: (1) a workload has at most one call on a node, queued or under way; (2) a node has no more calls under
// way than it may; (3) nodes with work are those with something queued.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "contract/agent.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/types.h"

namespace muster::scheduler {

enum class CallKind : uint8_t { kStatus, kApply, kDelete, kList, kOrphan };

struct AgentCall {
  CallKind kind = CallKind::kStatus;
  std::string node;
  std::string workload;   // empty for a list
  uint64_t sequence = 0;  // of the assignment it is about
  std::string revision;   // that is applied
  bool run = true;        // that is applied
  int32_t tries = 0;
  bool void_answer = false;  // the answer no longer matters

  MUSTER_FIELDS(AgentCall, kind, node, workload, sequence, revision, run, tries, void_answer)
};

// Whether the agent was not reached, rather than refused.
bool IsUnreachable(const Status& status);

class AgentCalls {
 public:
  struct Lane {
    std::deque<AgentCall> queue;
    int32_t in_flight = 0;

    MUSTER_FIELDS(Lane, queue, in_flight)
  };
  struct State {
    std::map<std::string, Lane, std::less<>> lanes;
    std::map<contract::CallId, AgentCall> open;
    contract::CallId last = 0;
    std::set<std::pair<std::string, std::string>> pairs;  // node and workload with a call
    std::set<std::string> ready;                          // nodes whose next call can go

    MUSTER_FIELDS(State, lanes, open, last, pairs, ready)
  };

  AgentCalls(const Config& config, State state);

  bool Has(const std::string& node, const std::string& workload) const {
    return state_.pairs.contains({node, workload});
  }
  // There must be no call for this node and workload.
  void Enqueue(AgentCall call);
  // The next call that can go, taken from its queue: to be sent, or dropped.
  std::optional<AgentCall> Next();
  void Send(AgentCall call, contract::AgentRequest request, const std::string& endpoint, StepContext& ctx);
  void Drop(const AgentCall& call) { state_.pairs.erase({call.node, call.workload}); }
  // The call that ended; nothing if it is made once more, or its answer no longer matters.
  std::optional<AgentCall> OnDone(const CallDone& done);
  // Forgets what is queued for a node, and the answers of what is under way there.
  void ClearNode(const std::string& node);
  // Forgets everything queued, and the answers of everything under way.
  void ClearAll();

  bool idle() const { return state_.ready.empty(); }
  size_t in_flight() const { return state_.open.size(); }
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void UpdateReady(const std::string& node);

  const Config& config_;
  State state_;
};

}  // namespace muster::scheduler
