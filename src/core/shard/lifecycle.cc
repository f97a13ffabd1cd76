#include "core/shard/lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/probe.h"
#include "core/shard/operation.h"

namespace muster::shard {

void Lifecycle::TakeKnownEpoch(StepContext& ctx) {
  if (state_.epoch_before > 0 || config_.epoch_at_least > 0) TakeEpoch(ctx);
}

void Lifecycle::TakeEpoch(StepContext& ctx) {
  const int64_t next = state_.epoch_before + (MUTANT("shard.epoch_used_twice") ? 0 : 1);
  state_.epoch = std::max<int64_t>({next, config_.epoch_at_least, 1});
  ctx.Write(contract::kFormatRow.Put(kFormat));
  ctx.Write(kEpochRow.Put(state_.epoch));
}

void Lifecycle::OnFirstSweep(const Machines& machines, StepContext& ctx) {
  if (state_.epoch == 0) {
    int64_t highest = 0;
    std::string bound;
    for (const auto& [id, tracked] : machines.tracked()) {
      const auto epoch = BoundBy(*tracked.record, config_.id);
      if (!epoch || *epoch < highest) continue;
      highest = *epoch;
      bound = id;
    }
    if (!bound.empty()) {
      PROBE("shard.state_lost");
      return Stop(Status(Code::kFailedPrecondition,
                         fmt::format("machine {} was bound by this shard in epoch {}, but its state is not there; "
                                     "restore the data directory, or start with --epoch-at-least {}",
                                     bound, highest, highest + 1000)),
                  ctx);
    }
    TakeEpoch(ctx);
  }
  state_.ready = true;
  state_.warm_until = ctx.now.mono + config_.restart_grace;
  ctx.cycle.Request();
}

bool Lifecycle::MayDecide(bool all_heard, MonoTime now) const {
  return state_.ready && state_.stopped.ok() && (all_heard || now >= state_.warm_until || MUTANT("shard.no_warm_up"));
}

void Lifecycle::Stop(Status why, StepContext& ctx) {
  state_.stopped = std::move(why);
  ctx.Emit(shard::Stop{state_.stopped});
}

}  // namespace muster::shard
