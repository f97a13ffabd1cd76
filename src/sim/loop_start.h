// LoopStart: the state that a whole loop (loop.h) begins with: the machines of a fleet, native clusters with their
// nodes and workloads, and clusters of which only the demand is known. It is made by hand for tests, or from what a
// running scheduler and shard show of themselves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "contract/backend.h"
#include "contract/cluster_views.h"
#include "contract/effects.h"
#include "contract/runtime.h"
#include "contract/shard.h"
#include "contract/store.h"
#include "core/agent/types.h"
#include "core/operators/types.h"
#include "core/scheduler/types.h"
#include "core/shard/config.h"
#include "model/machine.h"
#include "model/need.h"
#include "model/node.h"
#include "model/workload.h"

namespace muster::sim {

// A cluster with a scheduler, an operator and agents.
//
// A node whose id is that of a machine is what the machine has become; its machine is to be Configured for this
// cluster. Other nodes are computers of their own that nobody buys or gives back. A workload with a node is there: one
// that is Running goes on and is not started again.
struct LoopClusterStart {
  std::string id;
  std::vector<contract::NodeView> nodes{};
  std::vector<contract::WorkloadView> workloads{};
  std::vector<contract::SetView> sets{};
  std::vector<model::Quota> quotas{};
  std::vector<model::Need> asked{};  // what its operator said last, if it has said something
};

// A cluster that says its demand and gives its machines up when it is told to. What runs there is not known.
struct LoopDemand {
  std::string cluster;
  std::vector<model::Need> needs{};
};

struct LoopSettings {
  scheduler::Config scheduler{};
  operators::Config operators{};
  shard::Config shard{};
  agent::Config agent{};
  // What the agents of new machines can run.
  std::vector<model::WorkloadType> runtimes = {model::WorkloadType::kProcess, model::WorkloadType::kContainer};
  // How long the provider takes, by contract::OperationKind; Configure then lasts until the agent has joined, Drain
  // until its workloads are gone.
  std::array<Duration, 4> dwell = {1s, 200ms, 200ms, 200ms};
  Duration start_time = 100ms;  // of a workload, on its node
  Duration stop_time = 100ms;   // the same, if its grace allows
};

// As `muster up` has them: machines are given back within a minute.
LoopSettings LivelySettings();

struct LoopStart {
  // Every machine of the provider, those that could be bought too. Speculative, Idle, Configured or Failed: one that is
  // on its way counts as where it comes from. Prices and probabilities are those of the market.
  std::vector<model::Machine> machines{};
  std::vector<LoopClusterStart> clusters{};
  std::vector<LoopDemand> others{};
  contract::Ceilings ceilings{};  // that the shard has from the beginning
  LoopSettings settings{};
  uint64_t seed = 1;
};

// --- for the loop

// Where the machine's transition began.
model::Machine AtRest(model::Machine machine);
// The rows of a store in which a scheduler finds this cluster.
std::vector<contract::StoreWrite> StoreRows(const LoopClusterStart& cluster);
// What the agent of a node knows and what runs there.
struct NodeMemory {
  contract::Recovered rows;
  std::map<std::string, contract::Run> runs;  // by workload
  std::map<std::string, std::string> types;   // of their templates
};
NodeMemory MemoryOf(const contract::NodeView& node, const std::vector<contract::WorkloadView>& workloads, WallTime now);

}  // namespace muster::sim
