#include "rpc/health.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "rpc/grpc_log.h"

namespace muster::rpc {

Status CheckHealth(const host::Address& server, std::string_view service, Duration timeout) {
  RouteGrpcLog();
  const std::string target = server.ToString();
  // A channel of its own, so that the answer is about the server as it is, not about a shared connection's backoff.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
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
