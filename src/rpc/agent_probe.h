// AgentProbe: one agent, ours or anybody's, asked by the service that is named, with the agent's own codes and words.
// For checks of an agent; a scheduler calls agents through agent_client.h, which makes up for their differences.
//
// Thread-safety: one thread. Every call blocks for ten seconds at the most.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/agent.h"
#include "contract/logs.h"
#include "model/node.h"
#include "rpc/agent_services.h"
#include "rpc/tls_files.h"

namespace muster::rpc {

struct ActionFilter {
  std::string workload;
  int32_t limit = 0;  // 0: all
  bool newest_first = false;
};

class AgentProbe {
 public:
  enum class Service : uint8_t { kPersys, kNative };

  virtual ~AgentProbe() = default;
  // UNIMPLEMENTED if the agent does not serve it.
  virtual Result<contract::AgentReply> Ask(Service service, const contract::AgentRequest& request) = 0;
  // What it wrote so far, through muster.v1.Agent.
  virtual Result<std::string> Logs(const std::string& workload) = 0;

  // Through persys.agent.v1 alone.
  virtual Result<contract::ListedOnAgent> ListOfType(model::WorkloadType type) = 0;
  virtual Result<AgentHealth> Health() = 0;
  virtual Result<std::vector<AgentAction>> Actions(const ActionFilter& filter) = 0;
  // An apply that does not say what is to run.
  virtual Result<contract::AppliedOnAgent> ApplyWithoutSpec(const std::string& workload) = 0;
};

// INVALID_ARGUMENT if the address is no HOST:PORT; the error of the TLS files.
Result<std::unique_ptr<AgentProbe>> MakeAgentProbe(const std::string& address, const TlsFiles& tls = {});

}  // namespace muster::rpc
