// ShardRole: `muster shard`, a shard as a server: sessions of clusters, inspection and operators' orders over gRPC in
// front of a LocalShard, with the operator's endpoints beside it.
//
// /readyz is 200 once the machines have been seen, and as long as state can be stored.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "contract/provider.h"
#include "core/shard/types.h"
#include "host/address.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "role/shard/audit_log.h"
#include "role/shard/cluster_limits_file.h"
#include "role/shard/local_shard.h"
#include "role/shard/shard_metrics.h"
#include "rpc/coordinator_client.h"
#include "rpc/role_server.h"

namespace muster::shard {

struct RoleOptions {
  rpc::RoleServerOptions server = {};
  uint64_t journal_limit = 512u << 20;  // bytes of all its segments
  AuditOptions audit = {};              // no path: none
  std::string provider_addr = {};
  std::string coordinator_addr = {};  // empty: none
  std::string cluster_limits = {};    // a file; empty: clusters have no ceilings
  size_t workers = 1;
  Config config = {};
  std::function<void(Duration)> cycle_ended = [](Duration) {};  // as LocalEvents
};

// Calls Fail if it must not go on: another shard has its name, or its state is lost.
class ShardRole final : public host::Role {
 public:
  explicit ShardRole(RoleOptions options);
  ~ShardRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return server_.listen_address(); }
  host::Address metrics_address() const { return server_.metrics_address(); }
  std::shared_ptr<const Snapshot> View() const { return shard_->View(); }

 private:
  Status MakeClients();
  Status StartShard();

  const RoleOptions options_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  ShardMetrics metrics_;
  std::unique_ptr<contract::ProviderPort> provider_;
  std::unique_ptr<rpc::CoordinatorClient> coordinator_;
  std::unique_ptr<LocalShard> shard_;
  std::unique_ptr<ClusterLimitsFile> limits_;  // tells the shard
};

}  // namespace muster::shard
