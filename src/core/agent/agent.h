// Agent: what is wanted of the workloads of one node against what runs there (docs/agent.md says it in prose).
//
// A request is checked in this order: its form (INVALID_ARGUMENT), its stamp (FAILED_PRECONDITION), the runtime for its
// type ("runtime not available"), the room on the node (RESOURCE_EXHAUSTED). One that passes is durable before it is
// answered, and answered before the work is done. Work is one call to a runtime at a time for each workload.
//
// Invariants:
//   1. What was answered survives a crash: the rows say what is wanted, and the agent goes on from them.
//   2. The number of a launch is durable before the runtime gets it; a workload has one launch that is not known to
//      have ended. So nothing starts twice, whatever dies when.
//   3. Nothing is started, stopped or removed before the runtime has said what it has: what runs is adopted.
//   4. The stamp of a workload only grows, also across its deletion; the epoch of the agent only grows.
//   5. What the latest full state does not list is removed, unless the scheduler holds that back.
//   6. A launch of a new revision begins after the one before has ended.
// Thread-safety: none, as for every core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/effects.h"
#include "contract/runtime.h"
#include "core/agent/types.h"

namespace muster::agent {

class Core {
 public:
  static constexpr std::string_view kName = "agent";
  using Call = contract::Call<contract::RuntimeRequest>;  // to: the name of the workload type
  using CallDone = contract::CallDone<contract::RuntimeReply>;
  using Event = std::variant<contract::Wake, Asked, CallDone, Joined, RunChanged, Measured>;
  using Effect = std::variant<contract::Persist, Call, Answer, Acted, Notice, StatesChanged, RuntimeCame>;
  using Snapshot = agent::Snapshot;

  // A core with what an earlier life left durable. DATA_LOSS naming a row that cannot be read.
  static Result<Core> Recover(Config config, const contract::Recovered& recovered);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  std::optional<MonoTime> NextWake() const;
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;
  // The handles that the rows name.
  std::set<std::string> Secrets() const;

 private:
  enum class Operation : uint8_t { kNone, kStart, kStop, kRemove };
  struct Workload {
    Row row;
    // Forgotten by a restart.
    std::optional<contract::Run> run;  // the newest that the runtime told of
    Operation operation = Operation::kNone;
    contract::CallId last_call = 0;      // the newest for it, open or not
    bool uncertain = false;              // how its last call ended is not known: the next list tells
    std::optional<MonoTime> restart_at;  // of a run that has ended and is to be started again
    std::optional<contract::WorkloadUsage> usage;
    uint64_t action = 0;  // under way; 0: none
    ActionKind action_kind = ActionKind::kApply;
    contract::ActualState told = contract::ActualState::kMissing;  // at the last StatesChanged

    MUSTER_FIELDS(Workload, row, run, operation, last_call, uncertain, restart_at, usage, action, action_kind, told)
  };
  struct Runtime {
    model::WorkloadType type = model::WorkloadType::kUnspecified;
    bool listed = false;  // it has said what it has, in this life of the agent
    Status status = Status(Code::kUnavailable, "it has not answered yet");
    contract::CallId list_call = 0;  // open; 0: none
    MonoTime list_at;                // when it is asked next
    Duration pause{};                // after the last failure

    MUSTER_FIELDS(Runtime, type, listed, status, list_call, list_at, pause)
  };
  struct State {
    uint64_t layout = 2;
    Config config;
    // Durable: written in the step that changes them.
    uint64_t epoch = 0;
    std::map<std::string, Workload> workloads;  // their rows
    std::map<std::string, Deleted> deleted;
    bool rewrites = false;  // its rows have an earlier form: the next write is one of all
    // Forgotten by a restart.
    bool removes_others = false;                         // the latest full state says that nothing else may be here
    std::vector<Runtime> runtimes;                       // by type
    std::map<contract::CallId, std::string> operations;  // open calls for workloads
    contract::CallId last_call = 0;
    uint64_t last_action = 0;
    std::optional<MonoTime> prune_at;  // when `deleted` is looked through
    uint64_t restarts = 0;
    uint64_t refused = 0;
    uint64_t stale = 0;

    MUSTER_FIELDS(State, layout, config, epoch, workloads, deleted, rewrites, removes_others, runtimes, operations,
                  last_call, last_action, prune_at, restarts, refused, stale)
  };
  // What a step has found out and not yet emitted. Effects leave in the order: writes, answers, the rest.
  struct Context {
    Now now;
    std::set<std::string> touched;  // workloads to advance
    std::set<std::string> changed;  // rows to write
    std::vector<contract::Write> writes;
    struct Applied {
      contract::RequestId request = 0;
      std::string workload;
      bool skipped = false;
    };
    std::vector<Applied> applied;
    std::vector<Effect> answers;
    std::vector<Effect> effects;
  };

  explicit Core(State state) : state_(std::move(state)) {}

  // requests.cc
  void OnApply(contract::RequestId request, const contract::ApplyOnAgent& apply, Context& ctx);
  void OnDelete(contract::RequestId request, const contract::DeleteOnAgent& remove, Context& ctx);
  void OnGetStatus(contract::RequestId request, const contract::GetStatusOnAgent& get, Context& ctx);
  void OnList(contract::RequestId request, Context& ctx);
  void OnJoined(const contract::FullState& full, Context& ctx);
  Status CheckApply(const contract::ApplyOnAgent& apply);
  Status CheckStamp(const std::string& workload, const contract::Stamp& stamp, bool creates);
  bool HoldsRoom(const Workload& workload) const;
  Status CheckRoom(const contract::ApplyOnAgent& apply) const;
  // Takes over what is wanted; false if the workload is as wanted already. `revive`: one that has Failed is not.
  bool Want(const contract::ApplyOnAgent& apply, bool revive, Context& ctx);
  void BeginDelete(const std::string& id, Duration grace, Context& ctx);

  // runs.cc
  void Advance(const std::string& id, Context& ctx);
  void AdvanceRunning(const std::string& id, Workload& workload, Context& ctx);
  void AdvanceDeletion(const std::string& id, Workload& workload, Context& ctx);
  void Launch(const std::string& id, Workload& workload, Context& ctx);
  void CallRuntime(const std::string& id, Workload& workload, Operation operation, contract::RuntimeRequest request,
                   Duration timeout, Context& ctx);
  void ListRuntimes(Context& ctx);
  void OnCallDone(const CallDone& done, Context& ctx);
  void OnOperationDone(const std::string& id, Workload& workload, const CallDone& done, Context& ctx);
  void LookLater(const std::string& id, Workload& workload, const std::string& why, Context& ctx);
  // Its runtime does not have it any more.
  void LoseRun(const std::string& id, Workload& workload, Context& ctx);
  void OnListed(Runtime& runtime, const CallDone& done, Context& ctx);
  void OnRunChanged(const contract::Run& run, Context& ctx);
  // Takes in what a runtime says of a workload's newest run.
  void TakeRun(const std::string& id, Workload& workload, const contract::Run& run, Context& ctx);
  void OnRunEnded(const std::string& id, Workload& workload, Context& ctx);
  void AddStray(const Runtime& runtime, const contract::Run& run, Context& ctx);
  void BeginAction(const std::string& id, Workload& workload, ActionKind kind, Context& ctx);
  void MoveAction(const std::string& id, Workload& workload, ActionState state, std::string error, Context& ctx);

  // agent.cc
  void Emit(Context& ctx, std::vector<Effect>& out);
  // Whether the state of a workload that this step touched differs from what was told.
  bool TellsNewState(const Context& ctx);
  void OnWake(Context& ctx);
  void OnMeasured(const Measured& measured);
  void PruneDeleted(Context& ctx);
  uint64_t epoch() const { return state_.config.joins ? state_.epoch : 0; }
  Workload* Find(const std::string& id);
  const Runtime* FindRuntime(model::WorkloadType type) const;
  contract::ActualState ActualOf(const Workload& workload) const;
  contract::WorkloadStatus StatusOf(const std::string& id, const Workload& workload) const;
  // Whether a run that has ended is to be followed by another one.
  static bool RestartsAfter(const Workload& workload);

  State state_;
  // Derived from state_; made by View, dropped by the step that makes it untrue.
  mutable std::shared_ptr<const std::vector<contract::WorkloadStatus>> statuses_;
};

}  // namespace muster::agent
