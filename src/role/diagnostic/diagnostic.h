// Diagnostic: the role behind `muster serve`, a server with nothing but what every role has: gRPC health and
// reflection, the operator's endpoints, a core of its own with durable state and a journal, a clean stop. Given a data
// directory it counts its starts there, with the example core. The pattern the other roles follow:
//
//   Start   takes what can fail first (directory, ports), then says that it serves
//   Stop    says that it no longer serves, then lets go in reverse order
//
// Thread-safety: one thread calls Start and Stop.
#pragma once

#include <stop_token>

#include "base/metrics.h"
#include "base/status.h"
#include "core/counter/counter.h"
#include "host/core_runner.h"
#include "host/role.h"
#include "host/settings.h"
#include "host/system_clock.h"
#include "rpc/role_server.h"

namespace muster::diagnostic {

// Without a data directory nothing is stored; a journal needs one.
using Options = rpc::RoleServerOptions;

// Everything that an operator can set of it. `options` outlives `settings`.
void DeclareSettings(host::Settings& settings, Options& options);

struct Metrics {
  explicit Metrics(metrics::Declarations& in);
  metrics::Gauges<0> starts;
};

class Diagnostic final : public host::Role, private host::ThreadHost<counter::Core>::Shell {
 public:
  explicit Diagnostic(Options options);
  ~Diagnostic() override;  // stops

  Status Start(std::stop_token stop) override;
  void Stop() override;

  // Where it listens, once started.
  host::Address listen_address() const { return server_.listen_address(); }
  host::Address metrics_address() const { return server_.metrics_address(); }

 private:
  // Returns when this start is durable, or with CANCELLED at the stop.
  Status StartCounter(const std::stop_token& stop);
  // On the loop thread.
  void StartCall(const counter::Core::Call& call) override;
  void Emit(const counter::Core::Effect& effect) override;

  const host::SystemClock clock_;
  rpc::RoleServer server_;
  host::CoreRunner<counter::Core, counter::Answer> counter_;  // opened only with a data directory
};

}  // namespace muster::diagnostic
