// ShardJudge: what shards owe their clusters, their provider and each other, checked from outside. Each life is judged
// step by step (shard_life.h); here is what goes beyond one life: epochs, budgets, pauses that stick, who owns what,
// whether the demand in force is one that its cluster meant, and whether what failed is left alone, in the next life
// too.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/time.h"
#include "contract/effects.h"
#include "contract/provider.h"
#include "core/shard/shard.h"
#include "sim/shard_life.h"
#include "sim/sim_cluster.h"

namespace muster::sim {

class ShardJudge {
 public:
  // One process of a shard, in one of its lives.
  struct Who {
    size_t node = 0;
    uint64_t life = 0;
    bool zombie = false;  // another process has its place
  };

  void Begins(const Who& who, const shard::Config& config, const contract::Recovered& rows, MonoTime now);
  void Stepped(const Who& who, const shard::Core& core, Now now, const shard::Core::Event& event,
               std::span<const shard::Core::Effect> effects);
  // A call leaves a shard on whose disk there is this; the cluster, if it is one's.
  void Calls(const Who& who, const contract::ProviderRequest& request, const SimCluster* cluster,
             const contract::Recovered& durable);
  // The provider let a token pass.
  void Passed(const contract::ProviderRequest& request);
  // What was decided is durable.
  void Audited(const Who& who, const contract::ActionView& action);
  // A cycle has ended.
  void AfterCycle(const Who& who, const shard::Core& core, const std::map<std::string, SimCluster*>& clusters);
  void Disjoint(const shard::Core& a, const shard::Core& b);

  // An operator was told that the mode is set, or wants to resume: until he is told, either may hold.
  void Confirmed(size_t node, const std::string& cluster, contract::ActuationMode mode);
  void Resumes(size_t node, const std::string& cluster) { confirmed_[node].erase(cluster); }
  // The data directory of one process is copied to another; or replaced by an older one, or by nothing.
  void Copied(size_t from, size_t to) { confirmed_[to] = confirmed_[from]; }
  void Lost(size_t node, const std::string& shard);
  // The wall clock was set: how much longer a hold of an earlier life lasts is not known.
  void ClockSet();
  // The highest epoch that this shard was seen with.
  int64_t HighestEpoch(const std::string& shard) const;

  const std::optional<std::string>& failure() const { return failure_; }
  uint64_t checks() const { return checks_; }
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }

 private:
  struct Reclaimed {
    MonoTime when;
    uint64_t life = 0;
    bool durable = false;
  };
  // A Create or a Configure that failed.
  struct Failure {
    contract::ActionView action;  // as it was told
    MonoTime when;
    uint64_t life = 0;
    bool durable = false;
    bool out_of_stock = false;
    bool unsure = false;  // whether the shard counts it, or for how long it holds, is not known
  };
  // By node, and by the stock class or the cluster.
  using Failures = std::map<std::pair<size_t, std::string>, std::deque<Failure>>;
  static std::string ClassOf(const shard::Core& core, const std::string& machine);
  // Machines that serve a cluster since this step: of clusters the count of failures begins anew.
  void FollowSuccesses(const Who& who, const shard::Core& core, MonoTime now);
  void CountFailure(const Who& who, const shard::Core& core, const contract::ActionView& action, MonoTime now);
  // Since when what failed is held for certain; none: it may not be.
  std::optional<MonoTime> HeldSince(const Who& who, const std::string& key);
  void JudgeHolds(const Who& who, const shard::Core& core, const shard::Core::Call& call, MonoTime now);
  void CountReclaim(const Who& who, const shard::Core& core, const contract::ActionView& action, MonoTime now);

  std::map<size_t, std::pair<uint64_t, ShardLife>> lives_;  // by node: the newest life
  shard::Config config_;
  std::map<std::pair<std::string, int64_t>, std::pair<size_t, uint64_t>> epochs_;  // shard and epoch: node and life
  std::map<std::string, int64_t> highest_;                                         // by shard
  std::map<std::pair<std::string, std::string>, int64_t> passed_;             // by shard and machine: the newest epoch
  std::map<std::pair<size_t, std::string>, std::deque<Reclaimed>> reclaims_;  // by node and cluster
  std::map<size_t, ShardLife::Modes> confirmed_;                              // by node
  Failures failures_;
  // By node and class or cluster: since when a life knows a hold that the judge may not know the failures of. One of a
  // life that wrote the hold down, and died before it could tell the failure; of a directory that was copied.
  std::map<std::pair<size_t, std::string>, MonoTime> inherited_;
  std::map<size_t, std::map<std::string, model::MachineState>> seen_;  // by node: machines as its life knows them
  std::optional<std::string> failure_;
  uint64_t checks_ = 0;
};

}  // namespace muster::sim
