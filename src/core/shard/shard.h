// Shard: owns machines, knows every cluster's demand, and each cycle lets the engine decide which machine should do
// what next; then has it done, through the provider and the clusters' sessions. docs/shard.md tells it in prose.
//
// A cycle runs when a roll-up was accepted, when the provider's machines changed, and by the clock; news that come
// together make one cycle. It never waits for what it started: an operation is a row (state.h) that moves on with the
// answers, and its end is seen by reconcile.
//
// Invariants:
//   1. No call to the provider carries an epoch that is not durable, or that an earlier life has used.
//   2. A machine has at most one operation, and only machines of the owned set are tracked.
//   3. A cluster without a session gains nothing and loses nothing; one whose demand is not known loses nothing to
//      surplus.
//   4. Within a window, a cluster gives up to Reclaim no more than its budget, over restarts too; Preempt is not
//   limited.
//   5. What a record or a roll-up says is taken whole or refused with a reason; what was good before stays.
//   6. Once fenced, it does nothing more.
//   7. Ages, holds and budgets follow the monotonic clock; the wall clock is for people, the wire and the disk.
// Thread-safety: none, as for every core.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/parallel.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"
#include "core/shard/kept.h"
#include "core/shard/state.h"
#include "core/shard/types.h"
#include "engine/fast/engine.h"
#include "engine/fast/ids.h"
#include "engine/types.h"

namespace muster::shard {

class Core : private Kept {
 public:
  static constexpr std::string_view kName = "shard";
  using Call = contract::Call<PartnerRequest>;
  using CallDone = contract::CallDone<PartnerReply>;
  using Event = std::variant<contract::Wake, SessionOpened, SessionClosed, Received, RollupUnreadable, Asked, CallDone>;
  using Effect =
      std::variant<contract::Persist, Call, Send, CloseSession, Answer, Audit, Notice, CycleEnded, Stop, Lasted>;
  using Snapshot = shard::Snapshot;

  // A core with what an earlier life left durable. DATA_LOSS naming a row that cannot be read, FAILED_PRECONDITION for
  // the state of a newer build. `parallel`, which must outlive the core, decides on how many workers.
  static Result<Core> Recover(Config config, const contract::Recovered& recovered, Parallel* parallel = nullptr);
  static std::optional<Core> Load(std::string_view saved);
  std::string Save() const;
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;
  ~Core();

  void Step(const Event& event, Now now, std::vector<Effect>& out);
  std::optional<MonoTime> NextWake() const;
  std::shared_ptr<const Snapshot> View() const;
  void CheckInvariants() const;

  // For tests and the simulator.
  const std::map<std::string, Tracked, std::less<>>& machines() const { return machines_; }
  const std::map<std::string, Operation, std::less<>>& operations() const { return operations_; }
  const std::map<std::string, Cluster, std::less<>>& clusters() const { return clusters_; }
  int64_t epoch() const { return epoch_; }
  bool page_waits() const { return page_.has_value(); }
  // With Config::verify_decisions: the first decision that broke an invariant of the engine.
  const Status& verdict() const { return verdict_; }

 private:
  using Turn = TurnOf<Effect>;

  explicit Core(Config config, Parallel* parallel);
  void Work(bool awake, Turn& turn);

  // recover.cc
  Status ReadRow(const std::string& key, const std::string& bytes);

  // save.cc
  void RebuildDerived();

  // start.cc: from the first moment until it may decide
  void Start(Turn& turn);
  void FirstSweepDone(Turn& turn);
  void TakeEpoch(Turn& turn);
  bool MayDecide(MonoTime now) const;
  void StopNow(Status why, Turn& turn);

  // reconcile.cc
  void AskList(Turn& turn);
  void OnListDone(const CallDone& done, const OpenCall& call, Turn& turn);
  void SweepDone(Turn& turn);
  void AskGets(Turn& turn);
  void OnGetDone(const CallDone& done, const OpenCall& call, Turn& turn);
  void OnListed(const contract::ListReply& list, Moment begun, Turn& turn);
  void TakePage(Turn& turn);
  // A record that passed the screen, or why it is refused.
  bool Screen(const model::Machine& machine, Turn& turn);
  void Reject(const std::string& id, const std::string& problem, Turn& turn);
  // `tracked` is the machine of that record, null if it is not tracked.
  void Hear(const contract::MachineRecord& record, Tracked* tracked, Moment begun, Turn& turn);
  void Adopt(const contract::MachineRecord& record, Moment begun, Turn& turn);
  void Change(const std::string& id, Tracked& tracked, const contract::MachineRecord& record, Turn& turn);
  static void Clock(Tracked& tracked, model::MachineState before, Turn& turn);
  void Drop(const std::string& id, model::Reason reason, std::string detail, Turn& turn);
  void Look(const std::string& id);
  void MarkSeen(Tracked& tracked);
  bool Owns(const model::Machine& machine) const;
  void OwnedSetChanged(Turn& turn);
  // What the engine is shown of a machine, and counts that follow from it.
  model::MachineState ShownState(const std::string& id, const Tracked& tracked) const;
  void Show(const std::string& id, const Tracked& tracked);
  void Count(const std::string& id, const Tracked& tracked, int64_t by);

  // sessions.cc
  void OnOpened(const SessionOpened& opened, Turn& turn);
  void OnClosed(contract::SessionId session, Turn& turn);
  void OnReceived(const Received& received, Turn& turn);
  void EndSession(const std::string& cluster, Turn& turn);
  void OnBlob(const std::string& cluster, const contract::BootstrapResponse& response, Turn& turn);
  void OnReclaimAck(const std::string& cluster, const contract::ReclaimAck& ack, Turn& turn);
  void TellNode(const std::string& cluster, const model::Machine& machine, Turn& turn);
  void SendTo(const Cluster& cluster, contract::ShardMessage message, Turn& turn);
  void Acknowledge(const Cluster& cluster, std::string echo, Turn& turn);

  // demand.cc
  void OnRollup(const std::string& name, const contract::Rollup& rollup, Turn& turn);
  void RefuseRollup(const std::string& name, std::string why, Turn& turn);
  std::string Suspicion(const Cluster& cluster, const Baseline& size) const;
  void Accept(const std::string& name, Cluster& cluster, const contract::Rollup& rollup, Baseline size, Turn& turn);
  void StampRows(const std::string& name, Cluster& cluster, const contract::NeedRows& rows, Turn& turn);
  void RestoreAges(const std::string& cluster);

  // rails.cc
  contract::ActuationMode ModeFor(const std::string& cluster, const std::optional<engine::NeedKey>& need) const;
  int64_t ReclaimsAllowed(const std::string& name, Cluster& cluster, Turn& turn) const;
  void SpendReclaim(const std::string& name, Turn& turn);
  void SetMode(const std::string& cluster, contract::ActuationMode mode, Turn& turn);

  // decide.cc
  void RunCycle(Turn& turn);
  void CarryOut(const std::vector<engine::fast::NamedAction>& actions, Turn& turn);
  void CountDemand(MonoTime now);
  void Suppress(const engine::Action& action, contract::ActuationMode mode, Turn& turn);
  engine::World WorldNow() const;
  void MakeDue() { cycle_due_ = true; }
  MonoTime NextCycle() const;

  // execute.cc
  bool MayBegin(const engine::Action& action, MonoTime now) const;
  void Begin(const engine::fast::NamedAction& named, Turn& turn);
  void Enter(const std::string& id, Operation operation, Turn& turn);
  void AskBlob(const std::string& id, Operation& operation, Turn& turn);
  void Instruct(const std::string& id, Operation& operation, Turn& turn);
  void Enqueue(const std::string& id, Operation& operation);
  void SetDeadline(const std::string& id, Operation& operation, std::optional<MonoTime> deadline);
  void CallProvider(Turn& turn);
  // Why an operation that is ready must not be carried out after all: the outcome, and words; empty if it may.
  std::pair<std::string_view, std::string> Obstacle(const Operation& operation, const Tracked& tracked) const;
  PartnerRequest RequestOf(const std::string& id, const Operation& operation);
  void OnTransitionDone(const CallDone& done, const OpenCall& call, Turn& turn);
  void OnDeadline(const std::string& id, Turn& turn);
  void EndOperation(const std::string& id, std::string_view outcome, std::string error, Turn& turn);
  void BackOff(const std::string& id, bool for_long, MonoTime now);
  void RunDeadlines(Turn& turn);
  std::string NewToken();

  // memory.cc: what the engine remembers, kept on disk
  void KeepMemory(Turn& turn);
  void KeepShort(Turn& turn);
  void NoteShort(engine::fast::KeyId id, ShortSince& now, Turn& turn);
  void CountShort();
  static void Write(Turn& turn, std::string key, std::optional<std::string> value);

  // failed.cc
  void OnState(const std::string& id, const model::Machine& before, const model::Machine& machine, Turn& turn);
  void RunRepairs(Turn& turn);
  void SetRepairDue(const std::string& id, Repair& repair, std::optional<MonoTime> due);
  void ForgetRepair(const std::string& id, Turn& turn);
  void BeginRepair(const std::string& id, model::Reason reason, Turn& turn);
  Duration RepairPause(const Repair& repair) const;
  void RepairEnded(const std::string& id, OperationKind kind, std::string_view outcome, Turn& turn);
  void KeepRepair(const std::string& id, Turn& turn);

  // reports.cc: to clusters and to the coordinator
  void SendHints(Turn& turn);
  void Report(Turn& turn);
  void OnReportDone(const CallDone& done, Turn& turn);
  contract::InstructAck Obey(const contract::CoordinatorInstruction& instruction, Turn& turn);
  std::vector<contract::Shortfall> Shortfalls() const;
  contract::ShardSummary Summary() const;

  // inspect.cc: to operators
  void OnAsked(const Asked& asked, Turn& turn);
  void AnswerWaiting(Turn& turn);
  contract::ShardReply Inspect(const contract::InspectNeeds& query, const engine::Decision& decision, Now now) const;
  contract::ShardReply ListMachines(const contract::ListMachines& query, const engine::Decision* decision) const;
  contract::ShardReply ListActions(const contract::ListActions& query) const;
  contract::ShardReply ListClusters() const;
  Result<contract::ShardReply> Explain(const contract::Explain& query, const engine::Decision& decision) const;
  Status Order(const contract::RepairMachine& order, Turn& turn);
  Status Order(const contract::ForgetMachine& order, Turn& turn);
  // Writes a line of the audit log and remembers it for ListActions, under the number it gives.
  uint64_t Log(const contract::ActionView& action, Turn& turn);
  // How the action of that line ended.
  void LogEnd(uint64_t line, const contract::ActionView& action, Duration took, Turn& turn);
  void Note(model::Reason reason, std::string subject, std::string detail, Turn& turn) const;

  contract::CallId OpenACall(OpenCall call);

  Parallel* parallel_;  // may be null
  std::unique_ptr<engine::fast::Engine> engine_;
  Counters counters_;
  Status verdict_;

  // Derived.
  std::set<std::pair<MonoTime, std::string>> deadlines_;    // of operations
  std::set<std::pair<MonoTime, std::string>> repairs_due_;  // of repairs
  // What short_ says, by the engine's number of the need; of use if it was short in the last cycle.
  struct ShortMark {
    ShortSince since;
    int64_t seen = -1;  // the cycle
  };
  std::vector<ShortMark> marks_;
  std::vector<engine::fast::KeyId> short_ids_;  // in the last cycle
  std::array<uint64_t, 4> short_aged_{};        // as Snapshot::shortfalls_aged
  std::map<int32_t, uint64_t> short_by_priority_;
  std::map<MachineKind, uint64_t> counts_;
  std::map<model::PenaltyBucket, uint64_t> demand_;  // as Snapshot::demand
  MonoTime next_demand_count_;
  std::map<std::string, int64_t> types_;  // machines by instance type
  std::map<std::string, int64_t> zones_;  // and by zone
};

}  // namespace muster::shard
