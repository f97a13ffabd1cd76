// LoopNode: one computer of a loop: an agent's core with its disk and its runtime, and the stream by which it joins its
// cluster. It is started with what a machine was configured with, dies and is started again, and is wiped when its
// machine is drained.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/cluster.h"
#include "core/agent/agent.h"
#include "sim/disk.h"
#include "sim/findings.h"
#include "sim/kernel.h"
#include "sim/loop_start.h"
#include "sim/sim_host.h"
#include "sim/sim_runtime.h"
#include "sim/stream.h"

namespace muster::sim {

class LoopNode {
 public:
  struct World {
    // A stream to one of the schedulers of the cluster; nothing if nobody listens there. `turn` counts the attempts.
    std::function<std::shared_ptr<Stream>(const std::string& cluster, size_t turn)> dial;
    // Brings a request of the node to the scheduler at the other end of the stream.
    std::function<void(const std::shared_ptr<Stream>&, contract::ClusterRequest,
                       std::function<void(Result<contract::ClusterReply>)>)>
        ask;
    std::function<void()> changed = [] {};  // something of its workloads is different
  };
  // What the agent says of itself in its data directory.
  struct StatusFile {
    bool joined = false;
    size_t workloads = 0;
  };

  LoopNode(Kernel& kernel, std::string id, uint64_t stream, Findings& findings, const LoopSettings& settings,
           std::optional<Duration> job_time, World world);

  const std::string& id() const { return facts_.node; }
  const std::string& cluster() const { return facts_.cluster; }
  // What a start of the world knows of it.
  void Remember(NodeMemory memory);

  // The agent is to be a node with these facts; `endpoint` is filled in.
  void Configure(contract::NodeFacts facts);
  bool configured() const { return !facts_.cluster.empty(); }
  void Start();
  void Kill();      // the agent; what runs goes on
  void PowerCut();  // the computer
  bool alive() const { return host_.alive(); }
  // When its scheduler last answered a heartbeat or took its registration.
  MonoTime heard() const { return heard_; }
  const std::optional<StatusFile>& status_file() const { return status_file_; }
  // Everything that is left of the agent and its workloads goes.
  void Wipe();

  // A call of a scheduler to this address; `done` is not called by an agent that dies.
  void Ask(const std::string& endpoint, const contract::AgentRequest& request,
           std::function<void(Result<contract::AgentReply>)> done);

  const agent::Core& core() const { return host_.core(); }
  const Disk& disk() const { return disk_; }
  Disk& disk() { return disk_; }
  SimRuntime& runtime() { return runtime_; }
  const SimRuntime& runtime() const { return runtime_; }

 private:
  agent::Core MakeCore(const contract::Recovered& rows) const;
  void Emit(uint64_t life, const agent::Core::Effect& effect);
  std::string Endpoint() const;
  void JoinIfReady();
  void Join();
  void JoinLater(bool accepted);
  void Registered(const Result<contract::ClusterReply>& reply);
  void Beat();
  void BeatAt(MonoTime when);
  void WriteStatus();
  // What it offers.
  std::vector<model::WorkloadType> Types() const;

  Kernel& kernel_;
  Rng rng_;
  const LoopSettings& settings_;
  const World world_;
  Disk disk_;
  SimRuntime runtime_;
  SimHost<agent::Core> host_;
  contract::NodeFacts facts_;
  std::optional<StatusFile> status_file_;
  std::map<contract::RequestId, std::function<void(Result<contract::AgentReply>)>> waiting_;
  contract::RequestId last_request_ = 0;
  // The stream of this life.
  std::shared_ptr<Stream> stream_;
  bool began_ = false;  // to join, in this life
  bool accepted_ = false;
  uint64_t epoch_ = 0;
  Duration interval_ = 1s;
  Duration pause_ = 200ms;
  size_t turn_ = 0;
  std::optional<MonoTime> beats_at_;
  MonoTime last_beat_;
  MonoTime heard_;
};

}  // namespace muster::sim
