// Sessions: the stream of each cluster, and what is sent on it. A cluster has at most one session; a newer one takes
// the place of the older.
//
// Invariant: a session and its cluster name each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "contract/session.h"
#include "core/shard/clusters.h"
#include "core/shard/lifecycle.h"
#include "core/shard/machines.h"
#include "core/shard/step_context.h"

namespace muster::shard {

class Sessions {
 public:
  struct State {
    std::map<contract::SessionId, std::string> clusters;                 // by session
    std::map<std::string, contract::SessionId, std::less<>> by_cluster;  // the other way round

    MUSTER_FIELDS(State, clusters, by_cluster)
  };

  // What is referred to outlives this.
  Sessions(const Lifecycle& lifecycle, Clusters& clusters, State state)
      : lifecycle_(lifecycle), clusters_(clusters), state_(std::move(state)) {}

  // Whether the session may be opened; closes it with the reason if not.
  bool Check(const SessionOpened& opened, StepContext& ctx) const;
  // Ends an older session of the cluster. Whether there was one.
  bool CloseOlder(const std::string& cluster, StepContext& ctx);
  // Installs the session, acknowledges it and tells it of the machines bound to its cluster. What is called Failed in
  // masses counts as if it served until it is given up, so the cluster is not told. Until `all_seen`, the shard does
  // not know of how many machines that is.
  void Open(const SessionOpened& opened, const Machines& machines, bool all_seen, StepContext& ctx);
  // The cluster whose session has ended; empty if the session was replaced, or never opened.
  std::string Close(contract::SessionId session, StepContext& ctx);

  // The cluster of the session; empty if it is not open.
  std::string ClusterOf(contract::SessionId session) const;
  bool Has(const std::string& cluster) const { return state_.by_cluster.contains(cluster); }
  size_t size() const { return state_.clusters.size(); }

  // The cluster has a session.
  void Send(const std::string& cluster, contract::ShardMessage message, StepContext& ctx) const;
  // Tells the cluster of the machine's state, if it has a session.
  void SendNodeState(const std::string& cluster, const model::Machine& machine, StepContext& ctx) const;
  void Acknowledge(const std::string& cluster, std::string echo, StepContext& ctx) const;

  const State& state() const { return state_; }
  void CheckInvariants() const;

 private:
  const Lifecycle& lifecycle_;
  Clusters& clusters_;
  State state_;
};

}  // namespace muster::shard
