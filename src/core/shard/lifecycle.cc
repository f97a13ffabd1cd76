#include "core/shard/lifecycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/probe.h"
#include "core/shard/operation.h"

namespace muster::shard {

void Lifecycle::TakeKnownEpoch(StepContext& ctx) {
  if (state_.epoch_before > 0 || config_.epoch_at_least > 0) TakeEpoch(0, ctx);
}

void Lifecycle::TakeEpoch(int64_t found, StepContext& ctx) {
  const int64_t before = std::max(state_.epoch_before, found);
  if ((before >= kHighestEpoch || config_.epoch_at_least > kHighestEpoch) && !MUTANT("shard.epoch_wraps")) {
    PROBE("shard.epochs_used_up");
    return Stop(Status(Code::kFailedPrecondition,
                       fmt::format("epoch {} is beyond {}, the highest that is taken, and was damaged or given by "
                                   "mistake; restore the data directory, or start with another --id",
                                   std::max(before, config_.epoch_at_least), kHighestEpoch)),
                ctx);
  }
  const int64_t next = before + (MUTANT("shard.epoch_used_twice") ? 0 : 1);
  state_.epoch = std::max<int64_t>({next, config_.epoch_at_least, 1});
  ctx.Write(contract::kFormatRow.Put(kFormat));
  ctx.Write(kEpochRow.Put(state_.epoch));
}

void Lifecycle::FindEpoch(const Machines& machines, StepContext& ctx) {
  Binder own;
  Binder other;
  std::string own_machine;
  std::string other_machine;
  std::string untold_machine;  // the first that is bound, and does not say by whom
  int64_t untold = 0;
  for (const auto& [id, tracked] : machines.tracked()) {
    const std::optional<Binder> binder = BoundBy(*tracked.record);
    if (!binder && !tracked.record->cluster.empty() && ++untold == 1) untold_machine = id;
    if (!binder) continue;
    const bool is_own = binder->shard == config_.id;
    if (binder->epoch < (is_own ? own : other).epoch) continue;
    (is_own ? own : other) = *binder;
    (is_own ? own_machine : other_machine) = id;
  }
  if (!own_machine.empty()) {
    PROBE("shard.state_lost");
    const std::string advice =
        own.epoch < kHighestEpoch - 1000 ? fmt::format("--epoch-at-least {}", own.epoch + 1000) : "another --id";
    return Stop(Status(Code::kFailedPrecondition,
                       fmt::format("machine {} was bound by this shard in epoch {}, but its state is not there; "
                                   "restore the data directory, or start with {}",
                                   own_machine, own.epoch, advice)),
                ctx);
  }
  TakeEpoch(other.epoch, ctx);
  if (!state_.stopped.ok()) return;
  if (!other_machine.empty()) {
    TellTakeover(other_machine,
                 fmt::format("epoch {}: machine {} was bound by {} in epoch {}", state_.epoch, other_machine,
                             other.shard, other.epoch),
                 ctx);
  } else if (untold > 0 && !MUTANT("shard.takeover_untold")) {
    TellTakeover(
        untold_machine,
        fmt::format("epoch {}: {} machines, {} among them, were bound by a shard that does not tell its epoch; "
                    "if that one had this shard's id, start with --epoch-at-least above its epoch",
                    state_.epoch, untold, untold_machine),
        ctx);
  }
}

void Lifecycle::TellTakeover(const std::string& machine, const std::string& detail, StepContext& ctx) const {
  ctx.Note(model::Reason::kEpochFound, config_.id, detail);
  ctx.Emit(Audit{.action = {.decided = ctx.now.wall,
                            .kind = "Takeover",
                            .machine_id = machine,
                            .reason = model::Reason::kEpochFound,
                            .outcome = std::string(OutcomeName(Outcome::kSuccess)),
                            .error = detail}});
}

void Lifecycle::OnFirstSweep(const Machines& machines, StepContext& ctx) {
  if (state_.epoch == 0) FindEpoch(machines, ctx);
  if (!state_.stopped.ok()) return;
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
