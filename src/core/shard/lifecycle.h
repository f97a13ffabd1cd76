// Lifecycle: from the first step until the shard may decide, and its end: the epoch, whether the machines have been
// seen, the wait for clusters that an earlier life knew, and why the shard stopped.
//
// Invariants:
//   1. An epoch is above every epoch that an earlier life stored, and is durable before any call carries it.
//   2. No epoch is above kHighestEpoch; the shard stops instead.
//   3. Once stopped, the shard does nothing more.
//   4. The coordinator's term never falls, over restarts either.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/probe.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/tables.h"
#include "core/shard/config.h"
#include "core/shard/machines.h"
#include "core/shard/step_context.h"

namespace muster::shard {

inline constexpr contract::Single<int64_t> kEpochRow{"epoch"};
inline constexpr contract::Single<int64_t> kTermRow{"term"};  // the coordinator's
// Of all rows; 1 knew no holds, losses and orders, 2 no term of the coordinator, 3 not how many machines there are.
inline constexpr uint64_t kFormat = 4;
// Half of what an epoch can be. No shard lives so often: one that is above it was damaged or given by mistake, and the
// rest of the range leaves room to get above it.
inline constexpr int64_t kHighestEpoch = std::numeric_limits<int64_t>::max() / 2;

class Lifecycle {
 public:
  struct State {
    int64_t epoch = 0;         // of this life; 0: not taken yet
    int64_t epoch_before = 0;  // of the life before; 0: there was none
    bool started = false;
    bool ready = false;    // the machines have been seen
    bool decided = false;  // at least once
    MonoTime warm_until;   // until then clusters that an earlier life knew are waited for
    Status stopped;
    int64_t coordinator_term = 0;  // the highest heard of

    MUSTER_FIELDS(State, epoch, epoch_before, started, ready, decided, warm_until, stopped, coordinator_term)
  };

  explicit Lifecycle(const Config& config, State state) : config_(config), state_(std::move(state)) {}

  void RegisterRows(contract::RowReader& reader) {
    reader.Format(kFormat);
    reader.On(kEpochRow, [this](int64_t epoch) { state_.epoch_before = epoch; });
    reader.On(kTermRow, [this](int64_t term) { state_.coordinator_term = term; });
  }
  void SetStarted() { state_.started = true; }
  // Takes the next epoch, if an earlier life stored one or an operator gave one. Without either, the first sweep must
  // show first that no machine was bound in an epoch that is lost.
  void TakeKnownEpoch(StepContext& ctx);
  // The first sweep is done: the shard is ready, or stops because its machines show that its state is lost. A shard
  // without an epoch that takes over machines of others begins above the highest epoch they show, and says so; also if
  // they show none.
  void OnFirstSweep(const Machines& machines, StepContext& ctx);
  void SetDecided() { state_.decided = true; }
  // Durable: a coordinator of an earlier term is ignored also after a restart.
  void SetCoordinatorTerm(int64_t term, StepContext& ctx) {
    if (term == state_.coordinator_term) return;
    state_.coordinator_term = term;
    if (!MUTANT("shard.term_forgotten")) ctx.Write(kTermRow.Put(term));
  }
  void Stop(Status why, StepContext& ctx);

  bool started() const { return state_.started; }
  bool ready() const { return state_.ready; }
  bool decided() const { return state_.decided; }
  bool running() const { return state_.started && state_.stopped.ok(); }
  const Status& stopped() const { return state_.stopped; }
  int64_t epoch() const { return state_.epoch; }
  int64_t coordinator_term() const { return state_.coordinator_term; }
  MonoTime warm_until() const { return state_.warm_until; }
  // Whether cycles may run. A restarted shard waits for the demand of the clusters it knew (`all_heard`), but not for
  // ever: without it, machines that they hold or were promised would look free.
  bool MayDecide(bool all_heard, MonoTime now) const;

  const State& state() const { return state_; }

 private:
  // Above `found` too.
  void TakeEpoch(int64_t found, StepContext& ctx);
  void FindEpoch(const Machines& machines, StepContext& ctx);
  // The shard begins with machines that another has bound.
  void TellTakeover(const std::string& machine, const std::string& detail, StepContext& ctx) const;

  const Config& config_;
  State state_;
};

}  // namespace muster::shard
