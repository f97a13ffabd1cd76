// OperatorRole: the operator of a native cluster as a process. It keeps two links up, to the cluster's scheduler (a
// list and a watch) and to the fleet's shard (a session), and feeds the core of core/operators with what they bring. It
// stores nothing: what must survive is in the scheduler's store and in the shard.
//
// The bootstrap data are a file that is read anew for each machine, so that a secret in it can be changed; Start fails
// if it cannot be read. Without a file they name the schedulers and the cluster, and under TLS they have a join token
// of the machine's own, from a scheduler: it buys the machine its certificate. A cluster whose schedulers sign no
// certificates gives them without one.
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/metrics.h"
#include "base/status.h"
#include "core/operators/operators.h"
#include "host/core_runner.h"
#include "host/role.h"
#include "host/settings.h"
#include "host/system_clock.h"
#include "rpc/cluster_client.h"
#include "rpc/enrol_client.h"
#include "rpc/role_server.h"
#include "rpc/session_client.h"

namespace muster::operators {

struct Options {
  rpc::RoleServerOptions server;
  Config config;
  std::string shard;      // HOST:PORT
  std::string scheduler;  // HOST:PORT, or several with commas
  std::filesystem::path bootstrap;
};

// Everything that can be set of it. `options` outlives `settings`.
void DeclareSettings(host::Settings& settings, Options& options);

struct OperatorMetrics {
  explicit OperatorMetrics(metrics::Declarations& in);
  metrics::Gauges<0> session;
  metrics::Gauges<0> scheduler;
  metrics::Gauges<0> needs;
  metrics::Gauges<0> left_out;
  metrics::Gauges<0> corrections;
  metrics::Gauges<0> machines;
  metrics::Gauges<0> reclaims;
  metrics::Counters<0> rollups;
};

// What a machine of the cluster gets, unless a file says it.
std::string DefaultBootstrap(const Options& options);
// The same with a token.
std::string BootstrapWith(const Options& options, const rpc::TokenText& token);

class OperatorRole final : public host::Role, private host::ThreadHost<Core>::Shell, private rpc::SessionHandler {
 public:
  explicit OperatorRole(Options options);
  ~OperatorRole() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  host::Address metrics_address() const { return server_.metrics_address(); }
  std::shared_ptr<const Snapshot> View() const { return runner_.View(); }

 private:
  // On the core's thread.
  void StartCall(const Call& call) override;
  void Emit(const Effect& effect) override;
  // On gRPC's threads.
  void Received(contract::ShardMessage message) override;
  void Unreadable(Status why) override;
  void Ended(Status status) override;

  // The thread that keeps the links.
  void KeepLinks(const std::stop_token& stop);
  void KeepSession(MonoTime now);
  void KeepWatch(const std::stop_token& stop, MonoTime now);
  // Lists everything, then watches from there.
  Status ListAndWatch(const std::stop_token& stop);
  void SendToShard(contract::OperatorMessage message);
  Result<std::string> ReadTemplate() const;
  void GiveBlobFor(const std::string& request_id);
  void GiveTokenFor(const std::string& request_id);
  void UpdateGauges();

  // A link that is up, or when it is tried again.
  struct Retry {
    MonoTime at{};
    Duration pause{};
    void Failed(MonoTime now);
    void Succeeded() { pause = {}; }
  };

  const Options options_;
  const host::SystemClock clock_;
  rpc::RoleServer server_;
  OperatorMetrics metrics_;
  std::unique_ptr<rpc::ClusterClient> cluster_;
  std::unique_ptr<rpc::EnrolClient> enrol_;  // none without TLS, or with bootstrap data from a file
  host::CoreRunner<Core> runner_;

  // Owned by the thread that keeps the links, except as said.
  std::unique_ptr<rpc::OpenStream> watch_;
  Retry session_retry_;
  Retry watch_retry_;

  std::mutex mu_;
  std::condition_variable_any changed_;
  std::shared_ptr<rpc::SessionClient> session_;  // guarded by mu_; made and dropped by the thread of the links
  std::optional<Status> session_ended_;          // guarded by mu_
  std::optional<Status> watch_ended_;            // guarded by mu_
  bool session_open_ = false;                    // guarded by mu_: Hello is acknowledged
  bool watching_ = false;                        // guarded by mu_

  std::jthread links_;
};

}  // namespace muster::operators
