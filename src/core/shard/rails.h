// Rails: everything that limits what the engine's decisions may do, and which roll-ups count. A rail changes how fast a
// decision is carried out, or whether it is carried out at all; it never changes what the engine wants.
//
//   pause, dry run       of the shard: decisions are made and logged, not carried out. Of a cluster: it takes no part
//                        in decisions, and what it would have done is decided apart (trial.h) and logged. Durable
//   reclaim cap, budget  how many machines a cluster may lose to Reclaim in a cycle, and within a window; missing
//                        machines that are given up and repairs share the budget. Durable. They do not bind what is
//                        only logged: a trial shows all that going live would do
//   holds                what failed is left alone for a while (holds.h); durable
//   session, gate        a cluster without a session gains and loses nothing; one whose demand is not known loses
//                        nothing to surplus
//   volume               how many actions start in a cycle, how many operations are open, and of one cluster
//   growth               a cluster has three machines configured at once, or as many as are Configured: it doubles
//   trial                no more are drained by priority for a cluster on trial, and none while it waits for the probe
//                        of its hold. On trial is one that has nothing Configured, or whose last Configure failed
//   quarantine           a roll-up far below the accepted demand is held until it was repeated; baseline durable
//   repairs              none while the shard is paused or in dry run; they count among the actions of a cycle
//   ceilings             what an operator's file allows a cluster at most (cluster_ceilings.h); off unless set. In the
//                        same place: what a cluster that lacks machines since the start may acquire for now (losses.h)
//   halt                 nothing is carried out after calls for two machines were fenced, until an order or a restart
//
// Preempt is how priority is kept: nothing of who loses the machine limits it, and no volume does. Holds, the trial and
// the ceiling of the cluster that gets it do.
//
// Invariant: a Preempt that can start, of a cluster that is not on trial, is admitted unless the shard is paused or in
// dry run, or that cluster is at its ceiling.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/shard.h"
#include "contract/tables.h"
#include "core/shard/action_log.h"
#include "core/shard/cluster_ceilings.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/holds.h"
#include "core/shard/operation.h"
#include "core/shard/snapshot.h"
#include "core/shard/step_context.h"
#include "engine/types.h"

namespace muster::shard {

// The size of a demand: what a suspicious roll-up is told by.
struct Baseline {
  uint64_t rows = 0;
  std::map<std::string, int64_t> totals;  // by dimension

  bool operator==(const Baseline&) const = default;
  MUSTER_FIELDS(Baseline, rows, totals)
};

inline constexpr contract::Table<std::string, contract::ActuationMode> kModeRows{"mode/"};  // cluster; empty: the shard
inline constexpr contract::Table<std::string, uint64_t> kChangeRows{"reclaims/"};    // cluster: within the window
inline constexpr contract::Table<std::string, Baseline> kBaselineRows{"baseline/"};  // cluster

// Pause and dry run.
class ActuationModes {
 public:
  struct State {
    contract::ActuationMode shard = contract::ActuationMode::kActive;
    std::map<std::string, contract::ActuationMode, std::less<>> clusters;
    bool halted = false;  // as good as a pause of the shard; not durable

    MUSTER_FIELDS(State, shard, clusters, halted)
  };

  explicit ActuationModes(State state) : state_(std::move(state)) {}

  contract::ActuationMode shard() const { return state_.halted ? contract::ActuationMode::kPaused : state_.shard; }
  // Until the shard's mode is set.
  void Halt() { state_.halted = true; }
  bool halted() const { return state_.halted; }
  // What is set for the cluster alone, or for the shard if the name is empty.
  contract::ActuationMode Get(const std::string& cluster) const;
  void Set(const std::string& cluster, contract::ActuationMode mode, StepContext& ctx);
  void Restore(const std::string& cluster, contract::ActuationMode mode);
  // Nothing is set for the cluster.
  void Forget(const std::string& cluster) { state_.clusters.erase(cluster); }
  // Whether the cluster itself is paused or in dry run.
  bool IsKeptBack(const std::string& cluster) const {
    return !cluster.empty() && Get(cluster) != contract::ActuationMode::kActive;
  }
  // Whether any cluster is.
  bool AnyKeptBack() const;
  // The strictest of what is set for the shard and for the clusters an action touches: the one that gains or loses the
  // machine, and the one of the need it is for.
  contract::ActuationMode For(const std::string& cluster, const std::optional<engine::NeedKey>& need) const;

  const State& state() const { return state_; }

 private:
  State state_;
};

// How many machines the shard took from a cluster within the window, neither by priority nor by an order: Reclaims,
// missing machines that were given up, repairs of machines that served.
class ChangeBudget {
 public:
  struct Spent {
    std::deque<MonoTime> times;
    bool stored = false;  // the row is on disk

    MUSTER_FIELDS(Spent, times, stored)
  };
  using State = std::map<std::string, Spent, std::less<>>;

  explicit ChangeBudget(const Config& config, State state) : config_(config), state_(std::move(state)) {}

  void Restore(const std::string& cluster, uint64_t spent);
  // How long ago the changes of an earlier life were is not known for certain: they count from now, so that no restart
  // widens the budget.
  void Start(MonoTime now);
  // How many more the cluster may lose to Reclaim in this cycle: its cap, or what the window leaves.
  int64_t Allowed(const std::string& cluster, int64_t configured, StepContext& ctx);
  // How many it has lost within the window.
  int64_t InWindow(const std::string& cluster, StepContext& ctx);
  void Spend(const std::string& cluster, StepContext& ctx);
  int64_t SpentBy(const std::string& cluster) const;
  // Nothing was spent within the window.
  void Forget(const std::string& cluster) { state_.erase(cluster); }

  const State& state() const { return state_; }

 private:
  const Config& config_;
  State state_;
};

// A demand that was in force.
struct PastDemand {
  Baseline size;
  MonoTime until;

  MUSTER_FIELDS(PastDemand, size, until)
};

// Roll-ups that look like a mistake are held: those far below the largest demand that was in force of late, so that one
// that shrinks in steps is seen too. The third in a row is accepted, if the first came long enough ago.
class RollupQuarantine {
 public:
  struct Watched {
    std::optional<Baseline> baseline;  // of the accepted demand
    int32_t held = 0;                  // roll-ups in a row
    MonoTime held_since;               // the first of them
    std::vector<PastDemand> earlier;   // the oldest first

    MUSTER_FIELDS(Watched, baseline, held, held_since, earlier)
  };
  using State = std::map<std::string, Watched, std::less<>>;

  explicit RollupQuarantine(const Config& config, State state) : config_(config), state_(std::move(state)) {}

  void Restore(const std::string& cluster, Baseline baseline) { state_[cluster].baseline = std::move(baseline); }
  // Why the roll-up is held; empty if it may be accepted.
  std::string Hold(const std::string& cluster, const Baseline& size, MonoTime now);
  // The cluster repeated the demand in force.
  void Clear(const std::string& cluster) { state_[cluster].held = 0; }
  void Accept(const std::string& cluster, Baseline size, StepContext& ctx);
  // The cluster is gone: nothing is compared with its demand any more.
  void Forget(const std::string& cluster, StepContext& ctx);
  int32_t held(const std::string& cluster) const;

  const State& state() const { return state_; }

 private:
  // What roll-ups are compared with: the largest of each measure.
  static std::optional<Baseline> Largest(const Watched& watched);
  std::string Suspicion(const Watched& watched, const Baseline& size) const;

  const Config& config_;
  State state_;
};

// Operations that are open, Preempts left out.
struct QueueLoad {
  size_t all = 0;
  size_t of_cluster = 0;  // of the cluster that an action is for
};

// What an action that was decided waits for, pauses apart.
enum class Readiness : uint8_t {
  kReady = 0,
  kBusy = 1,     // its machine is not free, or on hold
  kGrows = 2,    // machines that are being configured for its cluster
  kOnTrial = 3,  // a Configure of its cluster that ends well
};

class Rails {
 public:
  using PutOffs = std::map<std::string, PutOff, std::less<>>;  // by cluster
  using Suppressed = std::set<std::pair<std::string, engine::ActionKind>>;
  struct State {
    ActuationModes::State modes;
    ChangeBudget::State budget;
    RollupQuarantine::State quarantine;
    Suppressed suppressed;  // in the last cycle
    Suppressed tried;       // in the last trial
    Holds::State holds;
    ClusterCeilings::State ceilings;

    MUSTER_FIELDS(State, modes, budget, quarantine, suppressed, tried, holds, ceilings)
  };

  // What is referred to outlives this.
  Rails(const Config& config, Clusters& clusters, ActionLog& log, State state);

  void RegisterRows(contract::RowReader& reader);
  void Start(StepContext& ctx);

  void SetMode(const std::string& cluster, contract::ActuationMode mode, StepContext& ctx);
  const ActuationModes& modes() const { return modes_; }
  ChangeBudget& budget() { return budget_; }
  const ChangeBudget& budget() const { return budget_; }
  RollupQuarantine& quarantine() { return quarantine_; }
  const RollupQuarantine& quarantine() const { return quarantine_; }
  Holds& holds() { return holds_; }
  const Holds& holds() const { return holds_; }
  ClusterCeilings& ceilings() { return ceilings_; }
  const ClusterCeilings& ceilings() const { return ceilings_; }

  // Those of which a rail must remember something.
  void AddClusters(Clusters::Names& used) const;
  void Forget(const std::string& cluster, StepContext& ctx);

  // Before a decision: what the engine is told of the cluster.
  engine::ClusterState ClusterInput(const std::string& cluster, bool session, bool gate_open, int64_t configured,
                                    StepContext& ctx);
  // A roll-up that is held opens the gate only if an accepted demand is in force: nothing else would stand between the
  // cluster's machines and an empty demand.
  static bool HeldOpensGate(bool accepted);

  // After a decision: BeginCycle, then Admit for each action in the order of decision.
  void BeginCycle();
  // Whether the action starts. `price` is that of its machine for an hour.
  bool Admit(const engine::Action& action, Readiness readiness, const QueueLoad& load, model::Money price,
             StepContext& ctx);
  // Whether one more machine may be configured for a cluster that has so many Configured and Configuring ones: a bad
  // template shows itself by the first few, and never costs more than the cluster has.
  bool MayBootstrap(int64_t configured, int64_t configuring) const;
  // Whether one more machine may be taken from others for a cluster that has so many: while it is on trial no more than
  // it could configure now. A gang configures nothing before it is whole: what it has gathered counts as if it served,
  // and it has no probe.
  bool MayTake(const std::string& cluster, bool gang, int64_t configured, int64_t configuring, MonoTime now) const;
  // In the last cycle.
  const PutOffs& put_off() const { return put_off_; }
  // What a trial decided: actions that touch a cluster which takes no part are logged.
  void LogTrial(const std::vector<engine::Action>& actions, StepContext& ctx);
  // Why an operation that is ready must not be carried out after all; none if it may.
  std::optional<Outcome> Obstacle(const Operation& operation, bool session) const;
  // Whether machines of the cluster may be repaired, and whether one more repair may begin in this cycle; counts it if
  // so.
  bool MayRepair(const std::string& cluster) const;
  bool AdmitRepair(size_t operations);
  // A call for a second machine was fenced.
  void Halt() { modes_.Halt(); }

  State state() const;

 private:
  // Counts an action that a mode keeps back. Says so in the audit log once for as long as it lasts: the same action is
  // decided again in every cycle. `before` are those of the decision before.
  void Suppress(const engine::Action& action, contract::ActuationMode mode, const Suppressed& before, Suppressed& now,
                StepContext& ctx);
  // Counts an action that a ceiling does not allow. Says so in the audit log when the cluster has just reached it.
  void RefuseAboveCeiling(const engine::Action& action, bool is_news, StepContext& ctx);
  bool IsQueueFull(const engine::Action& action, const QueueLoad& load) const;

  const Config& config_;
  Clusters& clusters_;
  ActionLog& log_;
  ActuationModes modes_;
  ChangeBudget budget_;
  RollupQuarantine quarantine_;
  Holds holds_;
  ClusterCeilings ceilings_;
  Suppressed suppressed_;         // in this cycle
  Suppressed suppressed_before_;  // in the cycle before
  Suppressed tried_;              // in the last trial
  int64_t started_ = 0;           // in this cycle, of those that are limited
  PutOffs put_off_;               // in this cycle
};

}  // namespace muster::shard
