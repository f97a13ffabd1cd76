// Executor: from a decided action to the provider's acknowledgement.
//
//   Bootstrap          ask the cluster for its blob -> Configure
//   Provision          Create; once it is Idle the engine, to which it is pledged, has it bootstrapped
//   Preempt, Reclaim   tell the cluster -> Drain
//   Delete, Repair     Delete
//   Recreate           Create
//
// Invariants:
//   1. A machine has at most one operation, and rests after one that failed.
//   2. A machine is where its operation starts, when the operation begins and again when the provider is called.
//   3. At most Config::execute_concurrency calls are open, each with its own fence token of an epoch that is durable.
//   4. A machine for which a call was fenced is set aside; the second one halts the shard.
//   5. Nothing begins on a machine that is set aside.
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

// A machine whose operation failed waits before the next one.
struct Retry {
  int32_t failures = 0;
  MonoTime until;

  MUSTER_FIELDS(Retry, failures, until)
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
    std::map<std::string, Retry, std::less<>> retries;
    std::map<std::string, Unanswered> unanswered;  // by instruction id
    std::deque<std::string> queue;                 // machines whose operation is kQueued
    int32_t calling = 0;                           // transition calls that are open
    int64_t sequence = 0;                          // of the last fence token
    uint64_t tokens = 0;
    std::map<std::string, std::string> machine_of_token;  // blob requests

    MUSTER_FIELDS(State, operations, retries, unanswered, queue, calling, sequence, tokens, machine_of_token)
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
  // Whether the action's machine is where the action starts, has no operation, does not rest and is not in doubt.
  bool CanStart(const engine::Action& action, MonoTime now) const;
  void Start(const engine::fast::NamedAction& action, StepContext& ctx);
  void StartOperation(const std::string& id, Operation operation, StepContext& ctx);
  // For repairs: the machine if it is tracked, has no operation and is not in doubt.
  const model::Machine* FreeMachine(const std::string& id) const;
  MonoTime RestsUntil(const std::string& id) const;
  size_t tracked() const { return deps_.machines.tracked().size(); }

  // --- going on
  void OnBlob(const std::string& cluster, const contract::BootstrapResponse& response, StepContext& ctx);
  void OnReclaimAck(const std::string& cluster, const contract::ReclaimAck& ack);
  void OnSessionOpened(const std::string& cluster, StepContext& ctx);
  // Blob requests of the cluster fail; instructions are sent again when it is back.
  void OnSessionEnded(const std::string& cluster, StepContext& ctx);
  void RunDeadlines(StepContext& ctx);
  void CallProvider(StepContext& ctx);
  // The record that the provider acknowledged the transition with; none if the transition failed.
  std::optional<contract::MachineRecord> OnTransitionDone(const CallDone& done, const OpenCall& call, StepContext& ctx);

  // --- ending
  // The machine's state or cluster is another: an operation that has not reached the provider is void.
  void OnMachineMoved(const model::Machine& machine, StepContext& ctx);
  // Instructions about the machine are void: it is no longer its cluster's.
  void VoidInstructions(const std::string& id);
  // The machine is about to be removed, or is missing.
  void OnMachineDropped(const std::string& id, const std::string& detail, StepContext& ctx);
  // An operator resumes the shard: fenced machines are taken up again.
  void OnResumed();

  const Operations& operations() const { return state_.operations; }
  int32_t calling() const { return state_.calling; }
  // When the next deadline is; MonoTime::max() if there is none.
  MonoTime NextWake() const { return deadlines_.empty() ? MonoTime::max() : deadlines_.begin()->first; }
  // What each operation makes of its machine.
  std::map<std::string, InProgress, std::less<>> AllInProgress() const;

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  void AskBlob(const std::string& id, Operation& operation, StepContext& ctx);
  void Instruct(const std::string& id, Operation& operation, StepContext& ctx);
  void Enqueue(const std::string& id, Operation& operation);
  void SetDeadline(const std::string& id, Operation& operation, std::optional<MonoTime> deadline);
  void OnDeadline(const std::string& id, StepContext& ctx);
  // Why an operation that is ready must not be carried out after all, in words too; none if it may.
  std::optional<std::pair<Outcome, std::string>> Obstacle(const Operation& operation, const Tracked& tracked) const;
  PartnerRequest RequestOf(const std::string& id, const Operation& operation);
  void EndOperation(const std::string& id, Outcome outcome, std::string error, StepContext& ctx);
  void BackOff(const std::string& id, bool for_long, MonoTime now);
  void OnFenced(const std::string& id, const Status& status, StepContext& ctx);
  InProgress InProgressOf(const Operation& operation) const;
  std::string NewToken();

  const Deps deps_;
  State state_;
  std::set<std::pair<MonoTime, std::string>> deadlines_;  // derived from operations
};

}  // namespace muster::shard
