// Rails: they can never change what the engine wants, only how fast it gets it, or whether it gets it at all.
#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/shard.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;

// The share of so many machines, never below one.
int64_t ShareOf(model::Probability share, int64_t machines) {
  return std::max<int64_t>(1, machines * share.millionths / 1'000'000);
}

}  // namespace

// The strictest of what is set for the shard and for the clusters an action touches: the one that gains or loses the
// machine, and the one of the need it is for.
ActuationMode Core::ModeFor(const std::string& cluster, const std::optional<engine::NeedKey>& need) const {
  ActuationMode mode = mode_;
  const auto add = [&](const std::string& name) {
    const auto known = clusters_.find(name);
    if (known == clusters_.end() || MUTANT("shard.cluster_pause_ignored")) return;
    mode = std::max(mode, known->second.mode);
  };
  add(cluster);
  if (need) add(need->cluster);
  return mode;
}

// The cap of one cycle and what the window leaves. What the cluster gave up within the window counts as still its own,
// so that the share is that of the cluster as it was.
int64_t Core::ReclaimsAllowed(const std::string& name, Cluster& cluster, Turn& turn) const {
  while (!cluster.reclaims.empty() && turn.now.mono - cluster.reclaims.front() >= config_.reclaim_window) {
    cluster.reclaims.pop_front();
  }
  if (cluster.reclaims.empty() && std::exchange(cluster.reclaims_stored, false)) {
    Write(turn, std::string(kReclaimsKey) + name, std::nullopt);
  }
  const auto spent = static_cast<int64_t>(cluster.reclaims.size());
  const int64_t cap = ShareOf(config_.reclaim_cap, cluster.configured);
  const int64_t budget = ShareOf(config_.reclaim_budget, cluster.configured + spent) - spent;
  if (MUTANT("shard.no_reclaim_budget")) return cap;
  return std::clamp<int64_t>(budget, 0, cap);
}

void Core::SpendReclaim(const std::string& name, Turn& turn) {
  Cluster& cluster = clusters_.find(name)->second;
  cluster.reclaims.push_back(turn.now.mono);
  cluster.reclaims_stored = true;
  if (MUTANT("shard.budget_forgotten")) return;
  Write(turn, std::string(kReclaimsKey) + name, codec::ToBytes(uint64_t{cluster.reclaims.size()}));
}

void Core::SetMode(const std::string& name, ActuationMode mode, Turn& turn) {
  (name.empty() ? mode_ : clusters_[name].mode) = mode;
  if (MUTANT("shard.pause_forgotten")) return;
  const bool is_default = mode == ActuationMode::kActive;
  Write(turn, std::string(kModeKey) + name, is_default ? std::nullopt : std::optional(codec::ToBytes(mode)));
}

}  // namespace muster::shard
