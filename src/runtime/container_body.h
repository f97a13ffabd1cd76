// What an engine is asked to make: one container, as JSON of the Docker Engine API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/runtime.h"
#include "model/resources.h"
#include "model/workload_template.h"

namespace muster::runtime {

struct ContainerSpec {
  std::string image;
  std::string user;                     // UID:GID; empty: that of the image
  std::vector<std::string> entrypoint;  // empty: that of the image
  std::vector<std::string> command;     // empty: that of the image
  std::map<std::string, std::string> env;
  std::map<std::string, std::string> labels;
  std::vector<model::Port> ports;
  std::vector<model::VolumeMount> volumes;  // source: a path on the node, or the name of a volume of the engine
  model::Resources limits;                  // cpu as a quota, memory without swap
  // What the engine does by itself when it ends.
  model::RestartPolicy restart = model::RestartPolicy::kNever;
  int32_t max_restarts = 0;  // of on-failure; 0: without end
  // In a network of its own: its name, the address there, and the addresses of others by their names.
  std::string network;  // empty: that of the engine
  std::string address;
  std::map<std::string, std::string> hosts;
};

// Without new privileges, whatever the image says. INVALID_ARGUMENT for what the API's own syntax would read as
// something else.
Result<std::string> ContainerBody(const ContainerSpec& spec);

// The container of a workload of the type `container`, with labels that tell a later agent which launch it is.
ContainerSpec SpecOf(const contract::StartRun& start, const std::string& agent);

// The engine's name of a volume that containers of a tenant name `volume`. No volume of a compose workload has it.
std::string TenantVolume(const std::string& agent, const std::string& tenant, const std::string& volume);

}  // namespace muster::runtime
