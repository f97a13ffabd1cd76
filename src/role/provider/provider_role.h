// ProviderRole: `muster provider`, a capacity provider as a server: the gRPC service CapacityProvider in front of a
// LocalProvider, with the operator's endpoints beside it.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/provider.h"
#include "host/address.h"
#include "host/role.h"
#include "host/settings.h"
#include "host/system_clock.h"
#include "provider/catalogue.h"
#include "provider/local_backend.h"
#include "role/provider/local_provider.h"
#include "rpc/role_server.h"

namespace muster::provider {

enum class BackendKind : uint8_t { kSim, kLocal };

struct RoleOptions {
  rpc::RoleServerOptions server = {};
  BackendKind backend = BackendKind::kSim;
  bool retire = false;  // of the local backend: agents end when the provider stops
  std::string name = {};
  Catalogue catalogue = {};
  uint64_t machines = 0;
  uint64_t seed = 0;
  Config config = {};  // its name is `name`

  // How long the process may take to stop: agents and workloads have their own time to end.
  Duration stop_patience() const;
};

// Everything that an operator can set of a provider. `options` outlives `settings`.
void DeclareSettings(host::Settings& settings, RoleOptions& options);

struct ProviderMetrics {
  explicit ProviderMetrics(metrics::Declarations& in);
  metrics::Gauges<1> machines;
  metrics::Counters<2> requests;
  metrics::Histograms<1> request_seconds;
  metrics::Gauges<0> operations_open;
  metrics::Gauges<0> fenced;
};

class ProviderRole final : public host::Role, private contract::ProviderPort {
 public:
  explicit ProviderRole(RoleOptions options);
  ~ProviderRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return server_.listen_address(); }
  host::Address metrics_address() const { return server_.metrics_address(); }

 private:
  // Counts and measures on the way to the provider.
  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override;
  void UpdateGauges();
  Result<std::unique_ptr<Backend>> OpenBackend();

  const RoleOptions options_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  const ProviderMetrics metrics_;
  std::unique_ptr<LocalProvider> provider_;
  LocalBackend* local_ = nullptr;  // of provider_, if that is its backend
};

}  // namespace muster::provider
