// ShardRole: `muster shard`, a shard as a server: sessions of clusters, inspection and operators' orders over gRPC in
// front of a LocalShard, with the operator's endpoints beside it.
//
// /readyz is 200 once the machines have been seen, and as long as state can be stored.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/provider.h"
#include "core/shard/types.h"
#include "host/address.h"
#include "host/build_info.h"
#include "host/data_dir.h"
#include "host/metrics_backend.h"
#include "host/ops_server.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "role/shard/audit_log.h"
#include "role/shard/local_shard.h"
#include "role/shard/shard_metrics.h"
#include "rpc/coordinator_client.h"
#include "rpc/server.h"
#include "rpc/tls_files.h"

namespace grpc {
class Service;
}

namespace muster::shard {

struct RoleOptions {
  host::Address listen;        // gRPC
  host::Address metrics_addr;  // HTTP
  rpc::TlsFiles tls;           // to callers, to the provider and to the coordinator
  std::filesystem::path data_dir;
  std::filesystem::path journal;  // empty: none
  AuditOptions audit;             // no path: none
  std::string provider_addr;
  std::string coordinator_addr;  // empty: none
  size_t workers = 1;
  Config config;
  host::BuildInfo build;
  std::function<void(Duration)> cycle_ended = [](Duration) {};  // as LocalEvents
  // The shard must not go on (another one has its name, or its state is lost): called once, on the loop's thread.
  std::function<void(const Status&)> failed = [](const Status&) {};
};

class ShardRole final : public host::Role {
 public:
  explicit ShardRole(RoleOptions options);
  ~ShardRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return rpc_.address(); }
  host::Address metrics_address() const { return ops_.address(); }
  std::shared_ptr<const Snapshot> View() const { return shard_->View(); }

 private:
  Status StartShard();
  Status StartServers();

  const RoleOptions options_;
  const host::SystemClock clock_;
  std::unique_ptr<host::DataDir> data_dir_;
  host::PrometheusRegistry registry_;
  ShardMetrics metrics_;
  std::unique_ptr<contract::ProviderPort> provider_;
  std::unique_ptr<rpc::CoordinatorClient> coordinator_;
  std::unique_ptr<LocalShard> shard_;
  std::vector<std::shared_ptr<grpc::Service>> services_;
  host::OpsServer ops_;
  rpc::Server rpc_;
};

}  // namespace muster::shard
