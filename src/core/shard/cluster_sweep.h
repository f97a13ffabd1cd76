// ClusterSweep: the shard forgets a cluster that no part has any use for, ten minutes after that began: one without
// session, demand, machine, operation, pause, ceiling of its own, hold, loss and durable row, and without an order
// within the last day: who gave one looks at what came of it. So names that came once do not fill the room that
// kMostClusters leaves, and the engine's tables and the counts by cluster do not grow.
//
// Each part says which clusters it uses (AddClusters), in one place: cluster_sweep.cc. What a part keeps of a cluster
// without using it, it drops in its Forget.
//
// Invariant: unused_since names known clusters alone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"
#include "core/shard/clusters.h"
#include "core/shard/demand.h"
#include "core/shard/engine_view.h"
#include "core/shard/executor.h"
#include "core/shard/ledger.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/order_log.h"
#include "core/shard/rails.h"
#include "core/shard/repairs.h"
#include "core/shard/sessions.h"
#include "core/shard/step_context.h"

namespace muster::shard {

inline constexpr Duration kForgetAfter = 10min;
inline constexpr Duration kOrderKeeps = 24h;  // its cluster
inline constexpr Duration kSweepClustersEvery = 1min;

class ClusterSweep {
 public:
  struct State {
    MonoTime next;
    std::map<std::string, MonoTime, std::less<>> unused_since;  // by cluster, as the sweeps saw it

    MUSTER_FIELDS(State, next, unused_since)
  };
  // The parts it works with; all outlive it.
  struct Deps {
    EngineView& engine;
    Clusters& clusters;
    OrderLog& orders;
    Machines& machines;
    const Losses& losses;
    const Sessions& sessions;
    Rails& rails;
    const Repairs& repairs;
    const Executor& executor;
    const Ledger& ledger;
    Demand& demand;
  };

  explicit ClusterSweep(const Deps& deps, State state) : deps_(deps), state_(std::move(state)) {}

  // A session of the cluster has been opened.
  void OnSessionOpened(const std::string& cluster) { state_.unused_since.erase(cluster); }
  // In a cycle, before the engine is told of clusters: looks for what can be forgotten, if it is time. Costs a walk
  // over clusters, operations, short needs and holds, and over machines and needs if there is something to forget.
  void Run(StepContext& ctx);

  const State& state() const { return state_; }

 private:
  Clusters::Names InUse(WallTime now) const;
  void Forget(const std::string& cluster, StepContext& ctx);

  const Deps deps_;
  State state_;
  // Forgotten, and still in the engine's tables, which decides nothing: the engine needs some cycles. Not saved, for an
  // engine that is built anew does not have them; so nothing that is durable may depend on it.
  Clusters::Names engine_has_;
};

}  // namespace muster::shard
