// Executor: from a decided action to the provider's acknowledgement.
//
//   Bootstrap          ask the cluster for its blob -> Configure
//   Provision          Create; once it is Idle the engine, to which it is pledged, has it bootstrapped
//   Preempt, Reclaim   tell the cluster -> Drain
//   Delete, Repair     Delete
//   Recreate           Create
//
// Operations that are ready wait in lanes, one for each cluster they are for, which are served in turns; those of
// Preempt come before all others. What fails is told to the holds (holds.h), which bar the next attempt. A provider
// that is away (UNAVAILABLE, a deadline) is called no more for a while, then by one call at a time until one is
// answered, of the lanes and of Preempt in turns; nothing is held for it. A machine that hangs alone is no outage: its
// call runs into its deadline though others were answered meanwhile.
//
// Invariants:
//   1. A machine has at most one operation.
//   2. A machine is where its operation starts, when the operation begins and again when the provider is called.
//   3. At most Config::execute_concurrency calls are open, each with its own fence token of an epoch that is durable.
//   4. A machine for which a call was fenced is set aside; the second one halts the shard.
//   5. Nothing begins on a machine that is set aside.
//   6. A cluster has at most as many operations open as places of the queue are free when its last one began, Preempts
//      left out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "contract/provider.h"
#include "contract/session.h"
#include "core/shard/action_log.h"
#include "core/shard/calls.h"
#include "core/shard/config.h"
#include "core/shard/gets.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "core/shard/operation.h"
#include "core/shard/rails.h"
#include "core/shard/repairs.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"
#include "engine/fast/engine.h"

namespace muster::shard {

// A Configure that has not ended by then is not waited for. Providers fail theirs after half an hour, or never.
inline constexpr Duration kConfigureIsStuck = 15min;

// A transition that the provider acknowledged and that has not come to its end.
struct Acknowledged {
  contract::ActionView action;
  uint64_t line = 0;  // in the action log
  MonoTime decided;

  MUSTER_FIELDS(Acknowledged, action, line, decided)
};

// The provider is away.
struct Outage {
  int32_t attempts = 0;  // that failed, one after the other; 0: it is there
  MonoTime until;        // no call before

  MUSTER_FIELDS(Outage, attempts, until)
};

// An instruction that the cluster has not acknowledged.
struct Unanswered {
  std::string cluster;
  contract::ReclaimInstruction instruction;

  MUSTER_FIELDS(Unanswered, cluster, instruction)
};

class Executor {
 public:
  using Operations = std::map<std::string, Operation, std::less<>>;  // by machine
  struct State {
    Operations operations;
    std::map<std::string, Acknowledged, std::less<>> acknowledged;  // by machine
    std::map<std::string, Unanswered> unanswered;                   // by instruction id
    std::deque<std::string> preempts;                               // machines whose operation is kQueued
    std::map<std::string, std::deque<std::string>> lanes;           // the same, by the cluster they are for
    std::string last_lane;                                          // whose turn it was
    Outage outage;
    int32_t calling = 0;   // transition calls that are open
    int64_t sequence = 0;  // of the last fence token
    uint64_t tokens = 0;
    std::map<std::string, std::string> machine_of_token;  // blob requests
    // Journals read these last (saved_state.cc).
    std::map<std::string, MonoTime, std::less<>> called;  // by machine of an open call: since when
    MonoTime answered;                                    // the last transition, by whatever but an outage
    MonoTime read;                                        // the last list or get that was answered

    MUSTER_FIELDS(State, operations, acknowledged, unanswered, preempts, lanes, last_lane, outage, calling, sequence,
                  tokens, machine_of_token, called, answered, read)
  };
  // The parts it works with; all outlive it.
  struct Deps {
    const Config& config;
    Lifecycle& lifecycle;
    Calls& calls;
    Machines& machines;
    Gets& gets;
    Sessions& sessions;
    Rails& rails;
    Repairs& repairs;
    ActionLog& log;
  };

  explicit Executor(const Deps& deps, State state);

  // --- starting
  // What the action waits for: nothing if its machine is where the action starts, has no operation, is not in doubt, no
  // hold bars it, and the cluster that gets it may have it now.
  Readiness ReadinessOf(const engine::fast::NamedAction& named, MonoTime now);
  void Start(const engine::fast::NamedAction& action, StepContext& ctx);
  void StartOperation(const std::string& id, Operation operation, StepContext& ctx);
  // For repairs: the machine if it is tracked, has no operation and is not in doubt.
  const model::Machine* FreeMachine(const std::string& id) const;
  MonoTime RestsUntil(const std::string& id) const { return deps_.rails.holds().RestsUntil(id); }
  size_t tracked() const { return deps_.machines.tracked().size(); }

  // --- going on
  void OnBlob(const std::string& cluster, const contract::BootstrapResponse& response, StepContext& ctx);
  void OnReclaimAck(const std::string& cluster, const contract::ReclaimAck& ack);
  void OnSessionOpened(const std::string& cluster, StepContext& ctx);
  // Blob requests of the cluster fail, and so does what waits with its blob, which ends with the session; instructions
  // are sent again when it is back.
  void OnSessionEnded(const std::string& cluster, StepContext& ctx);
  void RunDeadlines(StepContext& ctx);
  void CallProvider(StepContext& ctx);
  // The record that the provider acknowledged the transition with; none if the transition failed.
  std::optional<contract::MachineRecord> OnTransitionDone(const CallDone& done, const OpenCall& call, StepContext& ctx);
  // The provider answered a list or a get.
  void OnRead(MonoTime now) { state_.read = now; }

  // --- ending
  // The machine's state or cluster is another: an operation that has not reached the provider is void, and a transition
  // has come to its end.
  void OnMachineMoved(const model::Machine& before, const model::Machine& machine, StepContext& ctx);
  // Instructions about the machine are void: it is no longer its cluster's.
  void VoidInstructions(const std::string& id);
  // The machine is about to be removed, or is missing.
  void OnMachineDropped(const std::string& id, const std::string& detail, StepContext& ctx);

  // Those that an operation, an instruction or a transition under way is about.
  void AddClusters(Clusters::Names& used) const;
  const Operations& operations() const { return state_.operations; }
  // How full the queue is, as Rails::Admit reads it.
  QueueLoad LoadFor(const std::string& cluster) const;
  int32_t calling() const { return state_.calling; }
  const Outage& outage() const { return state_.outage; }
  // When the next deadline is, or a provider that was away is called again; MonoTime::max() if there is neither.
  MonoTime NextWake() const;
  // What each operation makes of its machine.
  std::map<std::string, InProgress, std::less<>> AllInProgress() const;

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  // How many of the machines being configured for the cluster count toward what may be at once.
  int64_t GrowingIn(const std::string& cluster, MonoTime now);
  void AskBlob(const std::string& id, Operation& operation, StepContext& ctx);
  void Instruct(const std::string& id, Operation& operation, StepContext& ctx);
  void Enqueue(const std::string& id, Operation& operation);
  // The machine whose operation is called next; none if no operation is ready.
  std::optional<std::string> TakeNext();
  bool HasQueued() const { return !state_.preempts.empty() || !state_.lanes.empty(); }
  // Whether the provider may be called now.
  bool MayCall(MonoTime now) const;
  // Whether the call that has run into its deadline says something about its machine and nothing about the provider.
  bool HangsAlone(const std::string& id, const Status& status) const;
  void OnTransitionFailed(const std::string& id, const Operation& operation, const Status& status, bool hangs,
                          StepContext& ctx);
  void OnOutage(const Status& status, StepContext& ctx);
  void SetDeadline(const std::string& id, Operation& operation, std::optional<MonoTime> deadline);
  void OnDeadline(const std::string& id, StepContext& ctx);
  // Why an operation that is ready must not be carried out after all, in words too; none if it may.
  std::optional<std::pair<Outcome, std::string>> Obstacle(const Operation& operation, const Tracked& tracked,
                                                          MonoTime now) const;
  PartnerRequest RequestOf(const std::string& id, const Operation& operation);
  void EndOperation(const std::string& id, Outcome outcome, std::string error, StepContext& ctx);
  void OnFenced(const std::string& id, const Status& status, StepContext& ctx);
  // The transition of the machine has ended in `machine`.
  void OnTransitionEnded(const model::Machine& before, const model::Machine& machine, StepContext& ctx);
  void TellFailed(const model::Machine& before, const model::Machine& machine, StepContext& ctx);
  void Count(const Operation& operation, int64_t by);
  // The instruction is answered or void.
  void EndInstruction(const std::string& token);
  InProgress InProgressOf(const Operation& operation) const;
  std::string NewToken();

  const Deps deps_;
  State state_;
  // Derived from operations.
  std::set<std::pair<MonoTime, std::string>> deadlines_;
  std::map<std::string, size_t> open_for_;  // by the cluster they are for, Preempts left out
  size_t counted_ = 0;                      // all of these
  // Derived from machines, when asked in a cycle: by cluster, those whose Configure seems never to end.
  std::map<std::string, int64_t, std::less<>> stuck_;
  MonoTime stuck_at_;
  // Derived from unanswered: machine and token.
  std::set<std::pair<std::string, std::string>> instructed_;
};

}  // namespace muster::shard
