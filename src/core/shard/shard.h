// Shard: owns machines, knows every cluster's demand, and each cycle lets the engine decide which machine should do
// what next; then has it done, through the provider and the clusters' sessions. docs/shard.md tells it in prose.
//
// Core joins the parts (parts.h) and holds no state of its own: an event goes to the part that it is about, and then
// every part does what is due. A cycle runs when a roll-up was accepted, when the provider's machines changed, and by
// the clock. It never waits for what it started.
//
// Invariants, each kept by the part in brackets:
//   1. No call to the provider carries an epoch that is not durable, or that an earlier life has used. [lifecycle]
//   2. A machine has at most one operation [executor], and only machines of the owned set are tracked [reconcile].
//   3. A cluster without a session gains nothing and loses nothing; one whose demand is not known loses nothing to
//      surplus. [rails]
//   4. Within a window, a cluster gives up to Reclaim no more than its budget, over restarts too; Preempt is not
//      limited. [rails]
//   5. A record or a roll-up is applied whole or refused with a reason; the last valid one is kept. [reconcile, demand]
//   6. Once calls for two machines were fenced, it calls the provider for no transition until an order. [executor]
//   7. Ages, holds and budgets follow the monotonic clock; the wall clock is for people, the wire and the disk.
//   8. Of machines that vanish or fail in masses, no more are given up or repaired than their share. [losses, repairs]
// Thread-safety: none, as for every core.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parallel.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"
#include "core/shard/config.h"
#include "core/shard/snapshot.h"
#include "core/shard/types.h"
#include "engine/fast/engine.h"

namespace muster::shard {

class Demand;
class Executor;
class Lifecycle;
class Losses;
class Machines;
class Rails;
class Reconcile;
class Repairs;
class Sessions;
struct Parts;
struct StepContext;

class Core {
 public:
  static constexpr std::string_view kName = "shard";
  using Call = shard::Call;
  using CallDone = shard::CallDone;
  using Event = shard::Event;
  using Effect = shard::Effect;
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
  const Machines& machines() const;
  const Executor& executor() const;
  const Demand& demand() const;
  const Rails& rails() const;
  const Sessions& sessions() const;
  const Reconcile& reconcile() const;
  const Lifecycle& lifecycle() const;
  const Losses& losses() const;
  const Repairs& repairs() const;
  // With Config::verify_decisions: the first decision that broke an invariant of the engine.
  const Status& verdict() const;

 private:
  explicit Core(std::unique_ptr<Parts> parts);

  // The step.
  void Handle(const Event& event, StepContext& ctx);
  void Start(StepContext& ctx);
  void RunDue(bool may_decide, StepContext& ctx);
  // The cycle.
  void RunCycle(StepContext& ctx);
  void TellEngine(StepContext& ctx);
  void Decide(StepContext& ctx);
  // Of the last decision.
  void CountPlans(PlanMode mode, StepContext& ctx);
  void StartActions(const std::vector<engine::fast::NamedAction>& actions, StepContext& ctx);
  // Events that more than one part must hear of.
  void OnCallDone(const CallDone& done, StepContext& ctx);
  void OnSessionOpened(const SessionOpened& opened, StepContext& ctx);
  void OnSessionClosed(const SessionClosed& closed, StepContext& ctx);
  void OnReceived(const Received& received, StepContext& ctx);
  // orders.cc: what operators ask and order.
  void OnAsked(const Asked& asked, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::SetActuation& order, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::RepairMachine& order, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::ForgetMachine& order, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::RecallMachine& order, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::AcceptLosses& order, StepContext& ctx);
  Result<contract::ShardReply> Apply(const contract::DecommissionCluster& order, StepContext& ctx);

  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::shard
