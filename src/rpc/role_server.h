// RoleServer: what every role that serves has besides its core: the data directory, the metrics with the build, the
// operator's endpoints with readiness, and one gRPC server; and the order in which these start and stop.
//
//   Start   OpenDataDir, then whatever can fail of the role's own, then Listen, then Serve
//   Stop    StopServing, then the role's core (it refuses what would keep the server waiting), then Stop, then the rest
//           of the role's own, then CloseDataDir
//
// Whatever the role, its services are behind the same limits: bounded_service.h, server.h. What is refused by them, and
// what identity.h denies, is counted and a line in the log.
//
// A role with a data directory also serves on a Unix socket in it, without certificates: whoever owns the directory may
// order, also when the network or the CA is gone. It is a server of its own: what peers fill the memory for messages
// and the bounds of streams with keeps no order on the socket waiting. With --control-listen so does a third server, on
// TCP with the role's TLS: it has the methods of operators and no others, and memory and streams of its own.
//
// /readyz is 200 from Serve to StopServing, as long as every check that was set is OK.
//
// Thread-safety: metrics() and what it returns from any thread; everything else from one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/time.h"
#include "host/address.h"
#include "host/build_info.h"
#include "host/data_dir.h"
#include "host/metrics_backend.h"
#include "host/ops_server.h"
#include "host/settings.h"
#include "rpc/bounded_service.h"
#include "rpc/refusal.h"
#include "rpc/server.h"
#include "rpc/tls_files.h"

namespace grpc {
class Service;
}

namespace muster::rpc {

struct RoleServerOptions {
  host::Address listen = {};          // gRPC
  host::Address control_listen = {};  // gRPC for operators alone; no host: none
  host::Address metrics_addr = {};    // HTTP: /livez /readyz /metrics /version
  TlsFiles tls = {};                  // of gRPC, to callers and to whom the role calls; plaintext unless given
  std::filesystem::path data_dir = {};
  std::filesystem::path journal = {};  // empty: none
  log::Level log_level = log::Level::kInfo;
  host::BuildInfo build = {};
  ForeignNodes foreign_nodes = ForeignNodes::kRefused;
  std::string cluster = {};  // that the role belongs to: others' certificates are refused; empty: any
  decltype(ServerOptions::call_ended) call_ended = {};
};

// A role without state of its own has no --data-dir.
enum class DataDirSetting : uint8_t { kDeclared, kNone };

// Declares the settings that every role has. `listen` and `metrics_addr` are the defaults, ":7780".
void DeclareServerSettings(host::Settings& settings, RoleServerOptions& options, std::string listen,
                           std::string metrics_addr, DataDirSetting data_dir = DataDirSetting::kDeclared);

class RoleServer {
 public:
  // A service by its full name, for the health service.
  struct Service {
    std::string_view name;
    std::shared_ptr<grpc::Service> service;
  };

  static constexpr std::string_view kSocketFile = "control.sock";  // in the data directory

  // Gives the registry muster_build_info and the count of what was refused. `max_request_bytes` is for the messages of
  // sessions; requests are bounded before (message_bounds.h).
  explicit RoleServer(RoleServerOptions options, int max_message_bytes = kLargeMessageBytes,
                      int max_request_bytes = kSmallMessageBytes);
  ~RoleServer();  // stops

  const RoleServerOptions& options() const { return options_; }
  // Where the role declares its metrics.
  metrics::Declarations& metrics() { return declared_; }

  // Makes the directory of --data-dir if it is missing, and owns it. FAILED_PRECONDITION if that cannot be.
  Status OpenDataDir();
  // As OpsServer.
  void SetReadyCheck(std::string name, std::function<Status()> check);
  // Called before each answer of /metrics; set before Listen.
  void SetRefresh(std::function<void()> refresh) { ops_.SetRefresh(std::move(refresh)); }
  // Listens on all addresses. The error names the address that cannot be had.
  Status Listen(std::vector<Service> services = {});
  // Logs "listening" with the addresses and these fields, and says to health and /readyz that the role serves.
  void Serve(std::vector<log::KeyValue> fields = {});

  // Says that the role no longer serves.
  void StopServing();
  // Idempotent: ends all servers, which takes as long as the slowest, and lets the services go.
  void Stop();
  void CloseDataDir() { data_dir_.reset(); }

  // Where it listens, once it does.
  host::Address listen_address() const { return rpc_.address(); }
  host::Address metrics_address() const { return ops_.address(); }
  // No host: there is none.
  host::Address control_address() const { return control_ == nullptr ? host::Address{} : control_->address(); }

 private:
  void CountRefusal(const Refusal& refusal) const;
  // What one of the servers lends to its callers.
  struct Lent {
    OpenStreams streams{{}};
    CallBudgets budgets;
  };
  std::vector<grpc::Service*> MakeBounded(Lent& lent, Callers callers);
  std::vector<Server*> Servers();

  const RoleServerOptions options_;
  std::unique_ptr<host::DataDir> data_dir_;
  host::PrometheusRegistry registry_;
  metrics::Declarations declared_;
  const metrics::Counters<1> refused_;
  Lent lent_;
  Lent local_lent_;
  Lent control_lent_;
  std::vector<Service> services_;
  std::vector<std::unique_ptr<BoundedService>> bounded_;  // in front of these, for each server
  host::OpsServer ops_;
  Server rpc_;
  std::unique_ptr<Server> local_;    // on the socket; null: there is none
  std::unique_ptr<Server> control_;  // for operators; null: there is none
};

}  // namespace muster::rpc
