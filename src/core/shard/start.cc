// From the first moment until the shard may decide: its epoch, its machines, the clusters it knew.
#include <fmt/format.h>

#include <algorithm>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {

void Core::Start(Turn& turn) {
  started_ = true;
  const Now now = turn.now;
  next_list_ = next_sweep_ = next_look_ = next_hints_ = next_report_ = now.mono;
  last_cycle_ = now.mono - config_.cycle_interval;
  restored_.drains = drain_rows_;
  const auto to_mono = [&](const std::optional<WallTime>& since) {
    return since ? std::optional(now.mono - std::max(now.wall - *since, Duration::zero())) : std::nullopt;
  };
  for (const auto& [id, row] : machine_rows_) {
    on_disk_[id] = 0;
    restored_.machines.emplace(id, engine::MachineMemory{.attribution = row.attribution,
                                                         .pledge = row.pledge,
                                                         .unclaimed_since = to_mono(row.unclaimed_since),
                                                         .draining_since = to_mono(row.draining_since)});
  }
  drains_on_disk_ = drain_rows_;
  engine_->Restore(restored_);
  // How long ago they were is not known for certain: they count from now, so that no restart widens the budget.
  for (auto& [name, cluster] : clusters_) std::ranges::fill(cluster.reclaims, now.mono);
  if (config_.mode != contract::ActuationMode::kUnspecified) SetMode("", config_.mode, turn);
  if (epoch_before_ > 0 || config_.epoch_at_least > 0) TakeEpoch(turn);
}

void Core::TakeEpoch(Turn& turn) {
  epoch_ = std::max(epoch_before_ + (MUTANT("shard.epoch_used_twice") ? 0 : 1), config_.epoch_at_least);
  epoch_ = std::max<int64_t>(epoch_, 1);
  Write(turn, std::string(kFormatKey), codec::ToBytes(kFormat));
  Write(turn, std::string(kEpochKey), codec::ToBytes(epoch_));
}

void Core::FirstSweepDone(Turn& turn) {
  if (epoch_ == 0) {
    int64_t highest = 0;
    std::string whose;
    for (const auto& [id, tracked] : machines_) {
      const auto epoch = BoundBy(*tracked.record, config_.id);
      if (!epoch || *epoch < highest) continue;
      highest = *epoch;
      whose = id;
    }
    if (!whose.empty()) {
      PROBE("shard.state_lost");
      return StopNow(Status(Code::kFailedPrecondition,
                            fmt::format("machine {} was bound by this shard in epoch {}, but its state is not there; "
                                        "restore the data directory, or start with --epoch-at-least {}",
                                        whose, highest, highest + 1000)),
                     turn);
    }
    TakeEpoch(turn);
  }
  ready_ = true;
  warm_until_ = turn.now.mono + config_.restart_grace;
  MakeDue();
}

// A restarted shard hears first from the clusters it knew: before that, what they hold or were promised would look
// free.
bool Core::MayDecide(MonoTime now) const {
  return ready_ && stopped_.ok() && (awaited_.empty() || now >= warm_until_ || MUTANT("shard.no_warm_up"));
}

void Core::StopNow(Status why, Turn& turn) {
  stopped_ = std::move(why);
  turn.out.push_back(Stop{stopped_});
}

}  // namespace muster::shard
