// LoopWorks: the parts of a loop (loop.h), joined, with everything that a world with faults wants to break. Processes
// crash and come back, streams break, the network and the disks fail; the parts do what their shells do then.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/findings.h"
#include "sim/kernel.h"
#include "sim/loop_cloud.h"
#include "sim/loop_cluster.h"
#include "sim/loop_fleet.h"
#include "sim/loop_node.h"
#include "sim/loop_start.h"
#include "sim/loop_view.h"
#include "sim/network.h"
#include "sim/stream.h"

namespace muster::sim {

// What a world with faults adds. Each function may be empty.
struct LoopHooks {
  size_t schedulers = 1;               // of each cluster
  bool has_fleet = true;               // false: no shard, no provider and no operators; nodes are computers alone
  std::optional<Duration> job_time{};  // how long a job runs; nothing: it runs on
  provider::Config provider{};
  std::function<Status(const contract::Operation&)> operation_fails{};
  std::function<Duration()> operation_late{};
  std::function<void(const contract::Operation&, bool in_time)> machine_emptied{};
  LoopFleet::World fleet{};
  // Per cluster.
  std::function<void(const std::string& cluster)> store_seen{};
  std::function<void(const std::string& cluster, size_t scheduler, const contract::Commit&,
                     const contract::CommitDone&)>
      committed{};
  std::function<void(const std::string& cluster, const operators::Effect&)> operator_did{};
  std::function<void(const std::string& cluster, size_t scheduler, const std::string& node, contract::CallId,
                     const Status* answer)>
      agent_called{};
  std::function<void(const std::string& node)> node_changed{};
};

class LoopWorks {
 public:
  static constexpr ProcessId kClient = ProcessId(0);

  LoopWorks(const LoopStart& start, LoopHooks hooks);
  // INVALID_ARGUMENT naming what is wrong with it.
  static Status Check(const LoopStart& start);
  void Start();

  Kernel& kernel() { return kernel_; }
  Network& network() { return network_; }
  Findings& findings() { return findings_; }
  StreamDelays& stream_delays() { return delays_; }
  const LoopSettings& settings() const { return settings_; }
  LoopFleet& fleet() { return *fleet_; }
  LoopCloud& cloud() { return *cloud_; }
  LoopCluster* FindCluster(const std::string& id);
  const std::map<std::string, std::unique_ptr<LoopCluster>>& clusters() const { return clusters_; }
  // Every node that ever was, by id.
  const std::map<std::string, std::unique_ptr<LoopNode>>& nodes() const { return nodes_; }
  ProcessId ProcessOf(const std::string& node);
  // The agent, or the whole computer, dies; it comes back as its keeper has it.
  void KillAgent(const std::string& node, bool computer_too);

  void SetDemand(const std::string& cluster, std::vector<model::Need> needs);
  Duration since_start() const { return kernel_.now().mono - start_; }
  // The last moment at which something of the world became different: a workload, a node, a machine, a demand.
  MonoTime last_change() const { return last_change_; }
  // What is under way, as sentences.
  std::vector<std::string> InFlight() const;
  const std::vector<LoopAction>& actions() const { return actions_; }
  const std::vector<LoopDecision>& decisions() const { return decisions_; }

 private:
  // A cluster of which only the demand is known.
  struct Plain {
    std::vector<model::Need> needs;
    std::shared_ptr<LoopFleet::Session> session;
    bool open = false;
    uint64_t turn = 0;
  };

  LoopNode& NodeOf(const std::string& id);
  void AddCluster(const LoopClusterStart& cluster);
  void Changed() { last_change_ = kernel_.now().mono; }
  void Published(const std::string& cluster, const contract::ClusterChange& change);
  void Audited(const contract::ActionView& action);
  void ConnectPlain(const std::string& cluster);
  void SayDemand(const std::string& cluster, Plain& plain);
  void HearPlain(const std::string& cluster, const contract::ShardMessage& message);
  void RepeatDemand(const std::string& cluster, uint64_t turn);

  const LoopSettings settings_;
  const LoopHooks hooks_;
  const contract::Ceilings ceilings_;
  Kernel kernel_;
  Rng rng_;
  Findings findings_;
  StreamDelays delays_;
  Network network_;
  const MonoTime start_;
  const WallTime start_wall_;
  std::map<std::string, std::unique_ptr<LoopNode>> nodes_;
  std::map<std::string, ProcessId> processes_;  // of nodes
  std::vector<std::string> computers_;          // nodes that are no machines
  LoopCloud* cloud_ = nullptr;                  // the fleet's provider has it
  std::unique_ptr<LoopFleet> fleet_;
  std::map<std::string, std::unique_ptr<LoopCluster>> clusters_;
  std::map<std::string, Plain> plain_;
  MonoTime last_change_;
  std::map<std::string, uint64_t> shapes_;  // of published objects: digests of what counts as a change
  std::vector<LoopAction> actions_;
  std::vector<LoopDecision> decisions_;
};

}  // namespace muster::sim
