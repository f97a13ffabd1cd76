// OpsServer: what an operator and a monitoring system ask a process, over plain HTTP.
//
//   /livez     200 while the process runs
//   /readyz    200, or 503 with one line "name: reason" for each check that fails
//   /metrics   Prometheus text
//   /version   JSON: which build this is
//
// Anything else is 404 with the list of paths. Slow and many clients keep nobody else from an answer (http_server.h).
//
// Thread-safety: all functions may be called from any thread, except that Start and Stop do not overlap.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/status.h"
#include "host/address.h"
#include "host/build_info.h"

namespace muster::host {

class OpsServer {
 public:
  // `registry` outlives the server.
  OpsServer(Address address, BuildInfo build, const metrics::Registry& registry);
  ~OpsServer();  // stops
  OpsServer(const OpsServer&) = delete;
  OpsServer& operator=(const OpsServer&) = delete;

  // Registers a component that must be fine for the process to be ready; a second check of a name replaces the first.
  // `check` is called from the server's thread and returns at once.
  void SetReadyCheck(std::string name, std::function<Status()> check);

  // Called on the server's thread before each answer of /metrics, to bring gauges up to date; returns at once. Set
  // before Start.
  void SetRefresh(std::function<void()> refresh);

  // Listens when it returns OK; the error says why the address cannot be had.
  Status Start();
  // Where it listens, with the real port; before Start the address as given.
  Address address() const;
  // Idempotent; closes the connections and waits for the thread.
  void Stop();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muster::host
