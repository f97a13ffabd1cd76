// Everything that an operator can set of an agent.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/agent/types.h"
#include "host/settings.h"
#include "model/node.h"
#include "model/resources.h"
#include "rpc/role_server.h"
#include "runtime/docker_engine.h"
#include "runtime/process_launch.h"

namespace muster::agent {

struct RoleOptions {
  rpc::RoleServerOptions server = {};
  std::string node = {};
  std::string cluster = {};
  std::string join_token = {};  // certificate and key in PEM form, which buy the node its own; empty: none
  std::string join_ca = {};
  bool own_certificate = false;  // the node's certificate is in its data directory, or will be
  std::string advertise = {};    // HOST:PORT; empty: where it listens
  std::string schedulers = {};   // HOST:PORT, with commas; empty: none, it is driven by whoever calls it
  model::Resources total = {};
  std::map<std::string, std::string> labels = {};
  std::vector<model::Taint> taints = {};
  std::vector<model::WorkloadType> runtimes = {};
  runtime::ProcessUser process_user = {};
  runtime::ContainerUser container_user = {};
  std::filesystem::path docker_socket = {};
  std::vector<std::filesystem::path> host_paths = {};  // that containers may mount
  bool retire = false;                                 // stop every workload of the data directory, and end
  uint64_t log_bytes = 0;                              // of one log file of a process; there are two
  Duration heartbeat = {};
  Duration usage_interval = {};
  Config config = {};  // restarts
};

// `options` outlives `settings`.
void DeclareSettings(host::Settings& settings, RoleOptions& options);

}  // namespace muster::agent
