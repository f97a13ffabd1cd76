// PlainClusters: clusters that do what a shard expects of them. Each connects again when the shard has a new life, says
// its demand every ten seconds, answers questions for its blob and acknowledges instructions. The world says how many
// machines of one core each wants, and may have one answer wrongly, not at all, or say what it does not mean.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "contract/session.h"
#include "core/shard/shard.h"
#include "sim/kernel.h"
#include "sim/sim_host.h"

namespace muster::sim {

class PlainClusters {
 public:
  struct Cluster {
    int32_t priority = 10;
    int64_t wanted = 0;      // machines
    bool silent = false;     // no question for a blob is answered
    std::string blob_error;  // given: the answer to every question for a blob
  };

  // What is referred to outlives this.
  PlainClusters(Kernel& kernel, SimHost<shard::Core>& host) : kernel_(kernel), host_(host) {}

  void Add(const std::string& name, Cluster cluster) { clusters_[name] = std::move(cluster); }
  void Start();
  Cluster& Of(const std::string& name) { return clusters_.at(name); }
  const std::map<std::string, Cluster>& all() const { return clusters_; }

  // The shard says something.
  void Hear(const shard::Send& send);
  // Once, and only if it is connected: a demand for so many machines that it does not mean.
  void SayByMistake(const std::string& name, int64_t machines);

 private:
  struct Session {
    contract::SessionId id = 0;
    uint64_t life = 0;
  };

  void Tick(const std::string& name);
  void Say(contract::SessionId session, contract::OperatorMessage message);
  contract::Rollup RollupOf(const std::string& name, int64_t machines) const;

  Kernel& kernel_;
  SimHost<shard::Core>& host_;
  std::map<std::string, Cluster> clusters_;
  std::map<std::string, Session> sessions_;
  contract::SessionId last_session_ = 0;
};

}  // namespace muster::sim
