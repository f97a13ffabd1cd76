// HealthService: grpc.health.v1.Health of a server.
//
// gRPC has one of its own, but registers it itself, so that no BoundedService can stand in front of it: its calls would
// wait for their message for ever, and nobody would count them.
//
// Check: NOT_FOUND for a service of which nothing was said. Watch: what is said of a service and every change of it;
// SERVICE_UNKNOWN until then. A watcher that reads slowly misses changes between, and never the last.
//
// Thread-safety: all functions may be called from any thread. It outlives the server that it is registered with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "grpc/health/v1/health.grpc.pb.h"

namespace muster::rpc {

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  static constexpr std::string_view kName = "grpc.health.v1.Health";

  // The server as a whole, which is the empty name, is NOT_SERVING.
  HealthService();
  ~HealthService() override;

  void Set(std::string_view service, bool serving);
  // Every service is NOT_SERVING from here on; who watches hears that, and UNAVAILABLE as the end of the stream.
  void Stop();

 private:
  class Watcher;
  using Response = grpc::health::v1::HealthCheckResponse;

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request, Response* response) override;
  grpc::ServerWriteReactor<Response>* Watch(grpc::CallbackServerContext* context,
                                            const grpc::health::v1::HealthCheckRequest* request) override;
  // Under mu_. SERVICE_UNKNOWN if nothing was said of it.
  Response::ServingStatus StatusOf(const std::string& service) const;

  std::mutex mu_;
  // Guarded by mu_.
  std::map<std::string, bool> serving_;
  std::set<Watcher*> watchers_;
  bool stopped_ = false;
};

}  // namespace muster::rpc
