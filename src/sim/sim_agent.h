// SimAgent: the agent of a node as its scheduler sees it. It registers, beats, runs what it is told after a while, and
// fails, refuses, hangs, crashes and lies as its faults say. A native one keeps the rules of stamps (contract/agent.h);
// a foreign one does what it is told last.
//
// The node outlives its agent: workloads run on while the agent is down, unless the whole node went down.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "contract/agent.h"
#include "contract/cluster.h"
#include "sim/kernel.h"

namespace muster::sim {

struct AgentFaults {
  uint32_t fails_per_mille = 0;     // a start ends in Failed
  uint32_t refuses_per_mille = 0;   // an apply is answered with RESOURCE_EXHAUSTED
  uint32_t hangs_per_mille = 0;     // a call is never answered
  uint32_t vanishes_per_mille = 0;  // at a heartbeat, a workload is gone
  uint32_t lies_per_mille = 0;      // at a heartbeat, it reports a workload of another node
  std::string always_fails = {};    // every start of this workload ends in Failed
};

class SimAgent {
 public:
  struct Options {
    std::string node;
    int64_t cpu_milli = 4000;
    int64_t memory = 8192;
    std::string zone;
    bool native = true;
    std::vector<model::WorkloadType> types = {model::WorkloadType::kProcess, model::WorkloadType::kContainer};
    std::vector<model::WorkloadType> claims = {};  // types that it says it has besides, and has not
  };
  // What runs on the node.
  struct Running {
    std::string revision;
    contract::ActualState actual = contract::ActualState::kPending;
    std::string message;
    bool run = true;
    contract::Stamp stamp;
    std::optional<int32_t> exit_code;
    bool job = false;
    uint64_t turn = 0;  // of the start under way; an older one changes nothing
  };
  // What the world does for it.
  struct World {
    // Asks the scheduler; `done` may never be called.
    std::function<void(contract::ClusterRequest, std::function<void(Result<contract::ClusterReply>)>)> ask;
  };

  SimAgent(Kernel& kernel, Options options, uint64_t stream, World world);

  void SetFaults(AgentFaults faults) { faults_ = std::move(faults); }
  // The agent comes up: it registers and beats from then on.
  void Start();
  // The agent is gone; with `node_too`, so are its workloads.
  void Crash(bool node_too);
  bool alive() const { return alive_; }

  // A call of the scheduler. `done` is not called by a hung or dead agent.
  void Handle(const contract::AgentRequest& request, std::function<void(Result<contract::AgentReply>)> done);

  const Options& options() const { return options_; }
  const std::string& node() const { return options_.node; }
  const std::map<std::string, Running>& running() const { return running_; }
  // Whether it acts on its workloads: what a dead agent's node runs cannot be stopped by anybody.
  uint64_t epoch() const { return epoch_; }
  uint64_t refused_stamps() const { return refused_stamps_; }

 private:
  bool Chance(uint32_t per_mille) { return rng_.Below(1000) < per_mille; }
  void Register();
  void OnRegistered(const Result<contract::ClusterReply>& reply, uint64_t life);
  void Beat();
  contract::WorkloadStatus StatusOf(const std::string& id) const;
  std::vector<contract::WorkloadStatus> AllStatuses() const;
  Result<contract::AgentReply> Answer(const contract::AgentRequest& request);
  Result<contract::AgentReply> Apply(const contract::ApplyOnAgent& apply);
  Result<contract::AgentReply> Delete(const contract::DeleteOnAgent& gone);
  Status CheckStamp(const std::string& workload, const contract::Stamp& stamp);
  void Launch(const contract::ApplyOnAgent& apply);

  Kernel& kernel_;
  const Options options_;
  Rng rng_;
  const World world_;
  AgentFaults faults_;
  bool alive_ = false;
  uint64_t life_ = 0;
  bool registered_ = false;
  uint64_t epoch_ = 0;
  Duration interval_ = 1s;
  std::map<std::string, Running> running_;              // of the node: survives the agent
  std::map<std::string, contract::Stamp> last_stamps_;  // of the agent's disk: survives it too
  uint64_t turns_ = 0;
  uint64_t refused_stamps_ = 0;
};

}  // namespace muster::sim
