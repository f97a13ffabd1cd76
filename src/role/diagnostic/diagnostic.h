// Diagnostic: the role behind `muster serve`, a server with nothing but what every role has: gRPC health and
// reflection, the operator's endpoints, a core of its own with durable state and a journal, a clean stop. Given a data
// directory it counts its starts there, with the example core. The pattern the other roles follow:
//
//   Start   takes what can fail first (directory, ports), then says that it serves
//   Stop    says that it no longer serves, then lets go in reverse order
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "base/status.h"
#include "core/counter/counter.h"
#include "host/address.h"
#include "host/build_info.h"
#include "host/data_dir.h"
#include "host/journal.h"
#include "host/metrics_backend.h"
#include "host/ops_server.h"
#include "host/persist.h"
#include "host/role.h"
#include "host/system_clock.h"
#include "host/thread_host.h"
#include "rpc/server.h"
#include "rpc/tls_files.h"

namespace muster::diagnostic {

struct Options {
  host::Address listen;            // gRPC
  host::Address metrics_addr;      // HTTP: /livez /readyz /metrics /version
  rpc::TlsFiles tls;               // of gRPC; plaintext unless given
  std::filesystem::path data_dir;  // empty: nothing is stored
  std::filesystem::path journal;   // empty: no journal; needs a data directory
  host::BuildInfo build;
};

class Diagnostic final : public host::Role, private host::ThreadHost<counter::Core>::Shell {
 public:
  explicit Diagnostic(Options options);
  ~Diagnostic() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return rpc_.address(); }
  host::Address metrics_address() const { return ops_.address(); }

 private:
  // Comes back when this start is durable, or with CANCELLED at the stop.
  Status StartCounter(const std::stop_token& stop);
  // On the loop thread.
  void StartCall(const counter::Core::Call& call) override;
  void Emit(const counter::Core::Effect& effect) override;

  const Options options_;
  const host::SystemClock clock_;
  std::unique_ptr<host::DataDir> data_dir_;
  std::unique_ptr<host::SqlitePersist> persist_;
  std::unique_ptr<host::JournalWriter> journal_;
  host::PrometheusRegistry metrics_;
  host::OpsServer ops_;
  rpc::Server rpc_;

  std::mutex mu_;
  std::condition_variable_any counted_;
  std::optional<counter::Answer> answer_;  // guarded by mu_: set by the loop thread, once

  std::unique_ptr<host::ThreadHost<counter::Core>> counter_;  // last: its threads use the rest
};

}  // namespace muster::diagnostic
