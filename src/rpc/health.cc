#include "rpc/health.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "rpc/channel.h"

namespace muster::rpc {

Status CheckHealth(const host::Address& server, std::string_view service, Duration timeout, const TlsFiles& tls) {
  const std::string target = server.ToString();
  // A connection of its own, so that the answer is about the server as it is, not about a shared connection's backoff.
  const auto channel = MakeChannel({.target = target, .tls = tls, .own_connection = true});
  if (!channel) return channel.error();
  const auto stub = grpc::health::v1::Health::NewStub(*channel);

  grpc::ClientContext context;
  SetDeadline(context, timeout);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(std::string(service));
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) {
    return Status(static_cast<Code>(status.error_code()),
                  fmt::format("{} does not answer the health check: {}", target, status.error_message()));
  }
  if (response.status() != grpc::health::v1::HealthCheckResponse::SERVING) {
    return Status(Code::kFailedPrecondition,
                  fmt::format("{} answers {}", target,
                              grpc::health::v1::HealthCheckResponse::ServingStatus_Name(response.status())));
  }
  return {};
}

}  // namespace muster::rpc
