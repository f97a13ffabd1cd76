// Diagnostic: the role behind `muster serve`, a server with nothing but what every role has: gRPC health and
// reflection, the operator's endpoints, a data directory of its own, a clean stop. The pattern the other roles follow:
//
//   Start   takes what can fail first (directory, ports), then says that it serves
//   Stop    says that it no longer serves, then lets go in reverse order
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <filesystem>
#include <memory>

#include "base/status.h"
#include "host/address.h"
#include "host/build_info.h"
#include "host/data_dir.h"
#include "host/metrics_backend.h"
#include "host/ops_server.h"
#include "host/role.h"
#include "rpc/server.h"

namespace muster::diagnostic {

struct Options {
  host::Address listen;            // gRPC
  host::Address metrics_addr;      // HTTP: /livez /readyz /metrics /version
  std::filesystem::path data_dir;  // empty: nothing is stored
  host::BuildInfo build;
};

class Diagnostic final : public host::Role {
 public:
  explicit Diagnostic(Options options);
  ~Diagnostic() override;  // stops

  Status Start() override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return rpc_.address(); }
  host::Address metrics_address() const { return ops_.address(); }

 private:
  const Options options_;
  std::unique_ptr<host::DataDir> data_dir_;
  host::PrometheusRegistry metrics_;
  host::OpsServer ops_;
  rpc::Server rpc_;
};

}  // namespace muster::diagnostic
