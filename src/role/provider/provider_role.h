// ProviderRole: `muster provider`, a capacity provider as a server: the gRPC service CapacityProvider in front of a
// LocalProvider, with the operator's endpoints beside it.
//
// Metrics: muster_provider_machines{state}, muster_provider_requests_total{method,code},
// muster_provider_request_seconds{method}, muster_provider_operations_open, muster_provider_fenced.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "contract/provider.h"
#include "host/address.h"
#include "host/build_info.h"
#include "host/data_dir.h"
#include "host/metrics_backend.h"
#include "host/ops_server.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "provider/catalogue.h"
#include "role/provider/local_provider.h"
#include "rpc/server.h"
#include "rpc/tls_files.h"

namespace grpc {
class Service;
}

namespace muster::provider {

struct RoleOptions {
  host::Address listen;        // gRPC
  host::Address metrics_addr;  // HTTP
  rpc::TlsFiles tls;
  std::filesystem::path data_dir;
  std::filesystem::path journal;  // empty: none
  std::string name;
  Catalogue catalogue;
  uint64_t machines = 0;
  uint64_t seed = 0;
  host::BuildInfo build;
};

class ProviderRole final : public host::Role, private contract::ProviderPort {
 public:
  explicit ProviderRole(RoleOptions options);
  ~ProviderRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return rpc_.address(); }
  host::Address metrics_address() const { return ops_.address(); }

 private:
  // Counts and measures on the way to the provider.
  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override;
  void UpdateGauges();

  const RoleOptions options_;
  const host::SystemClock clock_;
  std::unique_ptr<host::DataDir> data_dir_;
  host::PrometheusRegistry metrics_;
  std::array<metrics::Gauge*, 9> gauges_{};  // by state
  metrics::Gauge* operations_open_ = nullptr;
  metrics::Gauge* fenced_ = nullptr;
  std::unique_ptr<LocalProvider> provider_;
  std::shared_ptr<grpc::Service> service_;
  host::OpsServer ops_;
  rpc::Server rpc_;
};

}  // namespace muster::provider
