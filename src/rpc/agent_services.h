// The gRPC services of an agent, both in front of one contract::AgentPort: persys.agent.v1.AgentService, which every
// scheduler of that protocol calls, and muster.v1.Agent, which carries all fields, and logs.
//
// A request is converted and validated before the port gets it: what is refused (INVALID_ARGUMENT, naming the field)
// has no effect. What comes through persys.agent.v1 has no stamp, tenant or set, and the grace is the default one. A
// workload that the node does not have is NOT_FOUND, with the text "status not found", which schedulers of that
// protocol look for.
//
// Thread-safety: the ports are asked from gRPC's threads, many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "contract/agent.h"
#include "contract/logs.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

// For Server::SetServing.
constexpr std::string_view kPersysAgentService = "persys.agent.v1.AgentService";
constexpr std::string_view kAgentService = "muster.v1.Agent";

// What HealthCheck of persys.agent.v1 answers.
struct AgentHealth {
  bool healthy = true;
  std::string version;
  std::map<std::string, std::string> runtimes;  // by name: "ok", or why it is absent
  double memory_percent = 0;
  double cpu_percent = 0;
  double disk_percent = 0;
};

// A row of ListActions of persys.agent.v1: one piece of work of the agent.
struct AgentAction {
  std::string id;
  std::string workload;
  std::string type;    // apply_workload, delete_workload, reconcile
  std::string status;  // pending, running, completed, failed
  std::string error;
  WallTime created_at;
  WallTime started_at;  // zero: not yet
  WallTime ended_at;    // zero: not yet
};

// What the agent tells of itself. Called from gRPC's threads; returns at once.
struct AgentFacts {
  std::function<AgentHealth()> health = [] { return AgentHealth(); };
  std::function<std::vector<AgentAction>()> actions = [] { return std::vector<AgentAction>(); };  // oldest first
};

// The ports outlive the service, the service the server it is registered with.
std::shared_ptr<grpc::Service> MakePersysAgentService(contract::AgentPort& agent, AgentFacts facts = {});
std::shared_ptr<grpc::Service> MakeAgentService(contract::AgentPort& agent, contract::LogsPort& logs);

}  // namespace muster::rpc
