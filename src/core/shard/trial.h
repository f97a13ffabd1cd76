// Trial: what clusters that are paused or in dry run would have done: a second decision, with them taking part and
// without reclaim limits for them, which is not carried out. Surplus counts as if it had been held long enough: the
// clocks of a cluster that takes no part do not run.
//
// It is made by an engine of its own, built anew from what the shard's engine was told and remembers, so that nothing
// it decides is remembered. That costs about what the first decision after a start costs, so it is made only while
// some cluster is kept back, and at most every Config::trial_interval; large fleets wait longer.
#pragma once

#include <vector>

#include "base/fields.h"
#include "base/parallel.h"
#include "base/time.h"
#include "core/shard/clusters.h"
#include "core/shard/config.h"
#include "core/shard/demand.h"
#include "core/shard/engine_view.h"
#include "core/shard/ledger.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "engine/types.h"

namespace muster::shard {

class Trial {
 public:
  struct State {
    MonoTime next;  // no trial before

    MUSTER_FIELDS(State, next)
  };
  // The parts it reads; all outlive it, and `parallel` may be null.
  struct Deps {
    const Config& config;
    Parallel* parallel;
    const EngineView& engine;
    const Clusters& clusters;
    const Machines& machines;
    const Demand& demand;
    const Ledger& ledger;
    const Rails& rails;
  };

  explicit Trial(const Deps& deps, State state) : deps_(deps), state_(state) {}

  // A mode was set: the next cycle shows what follows.
  void Request() { state_.next = {}; }
  bool Due(MonoTime now) const { return deps_.rails.modes().AnyKeptBack() && now >= state_.next; }
  // After the engine was told all that this cycle's decision depends on, and before it decides.
  std::vector<engine::Action> Run(MonoTime now, bool counts_ages);

  const State& state() const { return state_; }

 private:
  const Deps deps_;
  State state_;
};

}  // namespace muster::shard
