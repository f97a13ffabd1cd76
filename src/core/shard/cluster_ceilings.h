// ClusterCeilings: the most that single clusters may ask for and have, set by an operator's file: a highest priority,
// most machines, most money per hour. Off unless set, and never a throttle: below its ceiling a cluster is limited by
// priority alone.
//
//   priority       a roll-up with a row above it is refused whole, by name. A demand that was in force when the ceiling
//                  was lowered stays, and acquires nothing until a roll-up within the ceiling has come
//   machines, $/h  what is bound to the cluster and what is on its way to it counts. An action that would exceed either
//                  is not begun; the first is logged, all are counted. From the next decision on the cluster acquires
//                  nothing, so that others get what it may not have, and is tried again when it has less, when its
//                  ceiling or its demand changes, and now and then. Nothing is taken from a cluster that is above
//   for now        a cluster that lacks machines since the shard was last up may have as many as it had without those
//                  that it lacks and that are not given up (losses.h). That is no ceiling of an operator, and not
//                  logged as one
//
// What is begun counts, not what the engine decided and a rail kept back.
// A cluster that waits for machines bought or taken for it is not barred meanwhile: it could not take them.
//
// Invariant: no action begins that makes a cluster exceed its ceiling, as the machines were shown when it began.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/session.h"
#include "contract/shard.h"
#include "core/shard/clusters.h"
#include "core/shard/machines.h"
#include "core/shard/operation.h"
#include "core/shard/step_context.h"
#include "engine/fast/engine.h"
#include "engine/types.h"
#include "model/money.h"

namespace muster::shard {

class ClusterCeilings {
 public:
  // What a cluster had when an action for it was last refused.
  struct Reached {
    int64_t machines = 0;
    model::Money per_hour;
    MonoTime retry;  // no decision gives it anything before

    MUSTER_FIELDS(Reached, machines, per_hour, retry)
  };
  // A machine that is being bought or taken for a cluster, or was and waits for it. The engine pledges machines to
  // needs when it decides; what counts is what was begun.
  struct Coming {
    std::string cluster;
    bool earlier = false;  // an earlier life pledged it: counts if it turns out to be under way

    MUSTER_FIELDS(Coming, cluster, earlier)
  };
  struct State {
    contract::Ceilings ceilings;
    std::map<std::string, Coming, std::less<>> coming;    // by machine
    std::map<std::string, int32_t, std::less<>> highest;  // by cluster: priority of the demand in force
    std::map<std::string, Reached, std::less<>> reached;  // by cluster

    MUSTER_FIELDS(State, ceilings, coming, highest, reached)
  };
  // What counts toward a ceiling.
  struct Held {
    int64_t machines = 0;
    model::Money per_hour;
    std::set<std::string, std::less<>> coming;  // of them, those that are not bound to it yet
    bool awaits = false;                        // one of them has no operation: the engine must give it to the cluster
    bool ready = false;                         // one of those is Idle
  };

  // Machines on their way to a cluster from others, or from nobody.
  struct Awaited {
    int64_t draining = 0;
    int64_t idle = 0;  // and wait for it
  };

  explicit ClusterCeilings(State state) : state_(std::move(state)) {}

  // In place of all ceilings before; says what changed.
  void Set(contract::Ceilings ceilings, StepContext& ctx);
  // The cluster's own, or that of every other; null: none.
  const contract::Ceiling* Of(const std::string& cluster) const;
  // Which row of the roll-up is above the cluster's highest priority, in words; empty: none.
  std::string AbovePriority(const std::string& cluster, const contract::NeedRows& rows) const;

  // --- what happened
  void OnDemand(const std::string& cluster, const contract::NeedRows& rows);
  // The engine pledges the machine to a need of the cluster; empty: to nobody.
  void OnPledge(const std::string& machine, const std::string& cluster);
  // After a load.
  void Rebuild(const engine::Memory& memory);
  // An earlier life did.
  void OnEarlierPledge(const std::string& machine, const std::string& cluster);
  // The action has begun.
  void OnStarted(const engine::Action& action);

  // Those with a ceiling of their own, and those that machines are on their way to.
  void AddClusters(Clusters::Names& used) const;
  // The cluster has neither.
  void Forget(const std::string& cluster);

  // --- a cycle
  using Most = std::map<std::string, int64_t, std::less<>>;  // machines, by cluster
  // Counts what clusters with a ceiling have; before the engine is told of clusters. `for_now`: how many machines some
  // of them may have, with those that are on their way to them, until the next cycle.
  void Count(const Clusters& clusters, const Machines& machines,
             const std::map<std::string, Operation, std::less<>>& operations, Most for_now, MonoTime now);
  // Whether the cluster acquires nothing in this decision.
  bool Bars(const std::string& cluster) const { return barred_.contains(cluster); }
  // After the decision: machines that are there count for a cluster that may have only so many for now before others
  // are bought for it, in whatever order the actions come.
  void CountBootstraps(const std::vector<engine::fast::NamedAction>& actions);
  // For each action that could begin: whether it may; counts the machine if so.
  enum class Verdict : uint8_t { kWithin, kAbove, kAboveAsBefore, kNotYet };
  Verdict Admit(const engine::Action& action, model::Money price, MonoTime now);

  // As it was when Count was last called, with what began since.
  Awaited AwaitedBy(const std::string& cluster) const;
  // As it was when Count was last called.
  std::optional<contract::CeilingView> ViewOf(const std::string& cluster) const;
  // "at most 3 machines, and it has 3": what keeps the cluster from getting more; empty: nothing.
  std::string Sentence(const std::string& cluster) const;

  const State& state() const { return state_; }

 private:
  bool IsAbove(const std::string& cluster) const;
  bool HasMostForNow(const std::string& cluster) const;

  State state_;
  // Derived from the engine's memory: of `coming`, those that are pledged to another cluster, or to nobody.
  std::set<std::string, std::less<>> passed_on_;
  // Derived, by Count.
  Most for_now_;
  std::map<std::string, Held, std::less<>> held_;
  std::set<std::string, std::less<>> barred_;
  std::map<std::string, Awaited, std::less<>> awaited_;
};

}  // namespace muster::shard
