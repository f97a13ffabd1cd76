// ShardJudge: what shards owe their clusters, their provider and each other, checked from outside: from the calls and
// messages that leave them, from what clusters said and meant, and from what they track after each cycle.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/time.h"
#include "contract/provider.h"
#include "core/shard/shard.h"
#include "sim/sim_cluster.h"

namespace muster::sim {

class ShardJudge {
 public:
  explicit ShardJudge(Duration reclaim_window) : reclaim_window_(reclaim_window) {}

  // One process of a shard, in one of its lives.
  struct Who {
    size_t node = 0;
    uint64_t life = 0;
    bool zombie = false;  // another process has its place

    auto operator<=>(const Who&) const = default;
  };

  // A transition leaves a shard. `session` says when the cluster it concerns had a session with it last.
  void Calls(const Who& who, const contract::ProviderRequest& request, const SimCluster* cluster,
             std::optional<MonoTime> session, MonoTime now);
  // The provider let a token pass, or did not.
  void Passed(const contract::ProviderRequest& request);
  void Fenced(const Who& who, MonoTime now) { fenced_.emplace(who, now); }
  void Audits(const Who& who, const shard::Core& core, const contract::ActionView& action, MonoTime now);
  // A cycle has ended.
  void AfterCycle(const Who& who, const shard::Core& core, const std::map<std::string, SimCluster*>& clusters);
  void Disjoint(const shard::Core& a, const shard::Core& b);
  // Nothing may be done for or to the cluster from now on; empty: the whole shard. Until Resumed.
  void Paused(size_t node, const std::string& cluster, MonoTime now) { paused_[{node, cluster}] = now; }
  void Resumed(size_t node, const std::string& cluster) { paused_.erase({node, cluster}); }

  const std::optional<std::string>& failure() const { return failure_; }
  uint64_t checks() const { return checks_; }
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }

 private:
  const Duration reclaim_window_;
  std::map<std::pair<std::string, int64_t>, Who> epochs_;          // by shard and epoch: whose it is
  std::map<std::pair<std::string, std::string>, int64_t> passed_;  // by shard and machine: the newest epoch
  std::map<Who, MonoTime> fenced_;
  std::map<std::pair<size_t, std::string>, std::deque<MonoTime>> reclaims_;  // by node and cluster
  std::map<std::pair<size_t, std::string>, MonoTime> paused_;
  std::optional<std::string> failure_;
  uint64_t checks_ = 0;
};

}  // namespace muster::sim
