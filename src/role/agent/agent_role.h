// AgentRole: `muster agent`, the agent of a node as a server: persys.agent.v1.AgentService and muster.v1.Agent in front
// of a LocalAgent, with the operator's endpoints beside it, joined to a scheduler if one is named.
//
// It serves, and says so, once a scheduler has accepted the node; requests are answered from before that on. When it
// stops, workloads run on.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>

#include "base/metrics.h"
#include "base/status.h"
#include "contract/agent.h"
#include "host/address.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "role/agent/agent_settings.h"
#include "role/agent/certificates.h"
#include "role/agent/join_link.h"
#include "role/agent/local_agent.h"
#include "role/agent/status_file.h"
#include "rpc/agent_services.h"
#include "rpc/role_server.h"

namespace muster::agent {

struct AgentMetrics {
  explicit AgentMetrics(metrics::Declarations& in);
  metrics::Gauges<1> workloads;
  metrics::Counters<2> requests;
  metrics::Histograms<1> request_seconds;
  metrics::Gauges<0> operations_open;
  metrics::Gauges<1> runtime_up;
  metrics::Counters<0> restarts;
  metrics::Counters<0> refused;
  metrics::Counters<0> stale;
  metrics::Gauges<0> joined;
  metrics::Gauges<0> epoch;
};

class AgentRole final : public host::Role, private contract::AgentPort {
 public:
  explicit AgentRole(RoleOptions options);
  ~AgentRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return server_.listen_address(); }
  host::Address metrics_address() const { return server_.metrics_address(); }

 private:
  // Counts and measures on the way to the agent.
  void Ask(contract::AgentRequest request, Done done) override;
  LocalOptions MakeLocalOptions() const;
  contract::RegisterNode Registration() const;
  contract::Heartbeat MakeHeartbeat() const;
  rpc::AgentHealth Health() const;
  // Where schedulers reach the agent, without the port, which may not be known yet.
  std::string AdvertisedHost() const;
  Status GetCertificate(std::stop_token stop);
  Status Join(std::stop_token stop);
  Status Retire();
  void WriteStatus();
  void UpdateGauges();

  const RoleOptions options_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  const AgentMetrics metrics_;
  StatusFile status_file_;
  std::unique_ptr<Certificates> certificates_;  // none where flags name them, or without TLS
  std::atomic<bool> joined_ = false;            // a scheduler has accepted the node
  std::unique_ptr<JoinLink> link_;              // none without a scheduler
  std::unique_ptr<LocalAgent> agent_;
};

}  // namespace muster::agent
