// AgentClient: the agents of a cluster's nodes, each at its address, as the scheduler calls them.
//
// One connection for each node and address, made with its first call, used by all calls and made again by itself, at
// most a second after a failure. A connection without a call for ten minutes is closed. Which service an agent is
// called by: muster.v1.Agent if the request has a stamp; else that of the two which the agent was found to serve,
// muster.v1.Agent first. An agent that serves the other one only is then called by persys.agent.v1.AgentService.
//
// Every call ends within its timeout, with DEADLINE_EXCEEDED at the latest. Codes of the agent come through, with two
// corrections: a GetWorkloadStatus that fails with a text such as "status not found" is NOT_FOUND, whatever its code;
// and a refusal for want of room at the agent (a text of its admission) is RESOURCE_EXHAUSTED. UNAVAILABLE and
// DEADLINE_EXCEEDED name the address. What an agent answers is validated: a bad answer is INTERNAL, by its field. An
// answer is parsed once it is known to be small enough (kAgentReplyBounds); beyond 8 MiB it is RESOURCE_EXHAUSTED.
//
// Thread-safety: any thread may ask. Answers run on gRPC's threads, also while the client is destroyed, which cancels
// what is open and waits for it; so no answer may destroy the client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/logs.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

// Which agent is meant.
struct AgentTarget {
  std::string address;    // HOST:PORT
  std::string node = {};  // with TLS the agent's certificate must name this node, if it names one; empty: any
};

class AgentClient {
 public:
  using Done = contract::AgentPort::Done;

  virtual ~AgentClient() = default;
  // INVALID_ARGUMENT through `done` if the address is none.
  virtual void Ask(const AgentTarget& agent, contract::AgentRequest request, Duration timeout, Done done) = 0;
  // Logs of a workload there; UNIMPLEMENTED if the agent does not serve muster.v1.Agent. The sink is written and ended
  // on gRPC's threads.
  virtual void ReadLogs(const AgentTarget& agent, const contract::ReadLogs& request,
                        std::shared_ptr<contract::LogsSink> sink) = 0;
};

// The error is that of the TLS files. `cluster` is as in MakeClusterClient.
Result<std::unique_ptr<AgentClient>> MakeAgentClient(const TlsFiles& tls = {}, const std::string& cluster = {});

// One agent as a port, every call with the same timeout. The client outlives the port.
std::unique_ptr<contract::AgentPort> MakeAgentPort(AgentClient& client, AgentTarget agent, Duration timeout);

}  // namespace muster::rpc
