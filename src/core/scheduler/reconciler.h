// Reconciler: brings every workload from what it is to what it should be, one step at a time.
//
// It is driven by events, for each workload alone: a workload whose record, node or reported state changed is looked at
// once (Decide), and so is one whose timer came. What an agent has is read by GetStatusOnAgent alone; its answer
// decides what is called or written next. Nothing is remembered that a look at the records and at the agent would not
// show again, so a decision that was dropped is made again.
//
// The order of a look: deletion without a node, back-off, a node, the node's availability, the state on the agent.
//
// Invariants: (1) timers are those of the entries; (2) a workload with an entry exists, or is about to be looked at.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "core/scheduler/agent_calls.h"
#include "core/scheduler/drafts.h"
#include "core/scheduler/node_health.h"
#include "core/scheduler/placements.h"
#include "core/scheduler/rooms.h"
#include "core/scheduler/step_context.h"
#include "core/scheduler/transitions.h"

namespace muster::scheduler {

// Nothing is to be done for it unless its agent says otherwise.
bool IsSettled(const WorkloadRecord& record);
// What the scheduler says to the node about the workload.
contract::Stamp StampOf(const WorkloadRecord& record, const NodeRecord& node);
contract::ApplyOnAgent ApplyRequestOf(const WorkloadRecord& record, const NodeRecord& node);

class Reconciler {
 public:
  // A moment that a record states by the wall clock, as it was first read.
  struct Anchor {
    WallTime wall;
    MonoTime mono;

    MUSTER_FIELDS(Anchor, wall, mono)
  };
  struct Entry {
    bool check = false;    // the state on the agent is to be read
    bool try_now = false;  // a wait for a node was ended
    std::optional<MonoTime> timer;
    std::optional<Anchor> launched;  // an accepted launch that is not stored yet
    int32_t launches = 0;            // since it last ran
    std::optional<MonoTime> delete_sent;
    std::optional<contract::WorkloadUsage> usage;
    std::optional<Anchor> retry_at;
    std::optional<Anchor> launched_at;
    std::optional<Anchor> running_since;
    std::string there;  // the node that has it, in whatever revision, as far as that said last

    MUSTER_FIELDS(Entry, check, try_now, timer, launched, launches, delete_sent, usage, retry_at, launched_at,
                  running_since, there)
  };
  struct State {
    std::map<std::string, Entry, std::less<>> entries;
    std::set<std::string> dirty;
    std::set<std::pair<MonoTime, std::string>> timers;

    MUSTER_FIELDS(State, entries, dirty, timers)
  };
  struct Parts {
    const Config& config;
    const StoreCopy& copy;
    Drafts& drafts;
    NodeHealth& health;
    Rooms& rooms;
    Transitions& transitions;
    Placements& placements;
    AgentCalls& calls;
  };

  Reconciler(Parts parts, State state);

  // --- what asks for a look
  void MarkDirty(const std::string& workload) { state_.dirty.insert(workload); }
  // The agent's state is to be read too.
  void MarkForCheck(const std::string& workload);
  void MarkNode(const std::string& node, bool check);
  // What a node reported of its workloads: those that differ from their records are looked at.
  void OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses, bool complete);
  void OnUsage(const std::string& workload, const contract::WorkloadUsage& usage);
  // Every wait for a node ends.
  void EndWaits();
  // A request changed what is wanted: back-offs end, and what is remembered of launches with them.
  void OnRequested(const std::string& workload);
  void Forget(const std::string& workload);
  // The node registered: the waits of what it refused end, for it may take that now.
  void EndWaitsOfRefused(const std::string& node);

  // --- the step
  void Run(StepContext& ctx);
  // Sends the queued calls that may go.
  void Dispatch(StepContext& ctx);
  // The answer of a call of a workload.
  void OnCallDone(const AgentCall& call, const CallDone& done, StepContext& ctx);

  std::optional<MonoTime> NextWake() const;
  const Entry* Find(std::string_view workload) const;
  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  // Deciding.
  void Decide(const std::string& id, StepContext& ctx);
  void DecideWithoutNode(const std::string& id, const WorkloadRecord& record, StepContext& ctx);
  void WantNode(const std::string& id, const WorkloadRecord& record, Now now);
  void LeaveNode(const std::string& id, const WorkloadRecord& record, StepContext& ctx);
  void Finalize(const std::string& id, Reason reason, StepContext& ctx);
  std::optional<MonoTime> RetryAt(const std::string& id, const WorkloadRecord& record, Now now);
  bool InBackoff(const std::string& id, const WorkloadRecord& record, Now now);
  void WatchSettled(const std::string& id, const WorkloadRecord& record, StepContext& ctx);
  void CallAgent(const std::string& id, const WorkloadRecord& record, CallKind kind);
  std::optional<contract::AgentRequest> RequestOf(const AgentCall& call) const;
  // Answers.
  void OnStatus(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void OnApplied(const AgentCall& call, const CallDone& done, StepContext& ctx);
  void OnDeleted(const AgentCall& call, const CallDone& done, StepContext& ctx);
  void CompareGone(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void CompareStopped(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void CompareRunning(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void OnFailed(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void Launch(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx);
  void RefuseChange(const std::string& id, const std::string& node, Action action, Reason reason, std::string_view text,
                    std::optional<Duration> pause, StepContext& ctx);
  void RefuseRuntime(const std::string& id, std::string_view text, StepContext& ctx);
  void LeaveRefusing(const std::string& id, Reason reason, std::string_view text, StepContext& ctx);
  // Time.
  std::optional<MonoTime> LaunchedAt(const std::string& id, const WorkloadRecord& record, Now now);
  bool InGrace(const std::string& id, const WorkloadRecord& record, Now now);
  std::optional<WallTime> TakeLaunch(const std::string& id);
  void Poll(const std::string& id, StepContext& ctx);
  void SetTimer(const std::string& id, MonoTime at);
  void ClearTimer(const std::string& id);
  Entry& At(const std::string& id) { return state_.entries[id]; }

  const Parts p_;
  State state_;
};

}  // namespace muster::scheduler
