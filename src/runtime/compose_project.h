// A compose workload as an engine has it: one container for each service, a network of its own, and its volumes. Here
// is what the names, labels and addresses are, and what the containers together say of the run; compose_runtime.h acts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/runtime.h"
#include "model/compose.h"
#include "runtime/container_body.h"
#include "runtime/docker_engine.h"

namespace muster::runtime {

// The labels of everything that belongs to a workload, and of everything of an agent.
DockerEngine::Labels ComposeLabels(const std::string& agent, const std::string& workload);
DockerEngine::Labels ComposeLabels(const std::string& agent);

// A network for each launch: what an engine still holds of the one before is of no concern.
std::string ComposeNetwork(const std::string& agent, const std::string& workload, uint64_t launch);
std::string ComposeVolume(const std::string& agent, const std::string& workload, const std::string& volume);
std::string ComposeContainer(const std::string& agent, const std::string& workload, const std::string& service);

// The address of each service in the subnet, by name. INVALID_ARGUMENT if there is no room for them.
Result<std::map<std::string, std::string>> ComposeAddresses(const model::ComposeFile& file, std::string_view subnet);

// What the engine is asked to make of a service. `addresses`: of all services.
ContainerSpec ComposeSpec(const contract::StartRun& start, const model::ComposeFile& file,
                          const model::ComposeService& service, const std::string& agent,
                          const std::map<std::string, std::string>& addresses);

// The container of a service.
struct ServiceState {
  std::string name;
  uint64_t launch = 0;
  int32_t depth = 0;  // as in the file
  Duration grace{};   // of the workload
  ContainerState state;
};
// From the labels; a container that is none of ours has launch 0.
ServiceState ServiceOf(ContainerState state);

// What the containers of one launch are together.
struct ComposeView {
  contract::Run run;    // without the last lines of the output
  bool begun = false;   // every service was started
  bool fails = false;   // a service has failed for good; those that still run must be stopped
  std::string culprit;  // id of the container that the end is about; empty: none
};
// `services`: containers of one workload, all of the same launch, at least one. `stopped`: the run was asked to end, so
// what has ended stays ended.
ComposeView ViewOf(const std::vector<ServiceState>& services, bool stopped, WallTime now);

}  // namespace muster::runtime
