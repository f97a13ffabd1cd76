#include "rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/support/server_interceptor.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "host/system_clock.h"
#include "rpc/grpc_log.h"
#include "rpc/server_credentials.h"

namespace muster::rpc {
namespace {

// Finds dead clients behind a silent network within a minute, and tolerates clients that do the same.
void SetKeepAlive(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
}

using CallEnded = decltype(ServerOptions::call_ended);

// One call, from its begin to the status that it ends with.
class CallTimer final : public grpc::experimental::Interceptor {
 public:
  CallTimer(const char* method, const CallEnded& ended)
      : method_(method), began_(host::SystemClock().Read().mono), ended_(ended) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const auto code = static_cast<Code>(methods->GetSendStatus().error_code());
      ended_(method_, code, host::SystemClock().Read().mono - began_);
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  const MonoTime began_;
  const CallEnded& ended_;
};

class CallTimers final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit CallTimers(CallEnded ended) : ended_(std::move(ended)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new CallTimer(info->method(), ended_);  // gRPC frees it
  }

 private:
  const CallEnded ended_;
};

// Both plugins are switches of the whole process in gRPC.
void EnablePluginsOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    RouteGrpcLog();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions given) : options(std::move(given)), address(options.address) {}

  const ServerOptions options;
  mutable std::mutex mu;
  host::Address address;                 // guarded by mu
  std::unique_ptr<grpc::Server> server;  // guarded by mu: set by Start, emptied by Stop
};

Server::Server(ServerOptions options) : impl_(new Impl(std::move(options))) {}

Server::~Server() { Stop(); }

Status Server::Start(std::span<grpc::Service* const> services) {
  EnablePluginsOnce();
  const ServerOptions& options = impl_->options;
  const auto credentials = MakeServerCredentials(options.tls, options.foreign_nodes);
  if (!credentials) return credentials.error();
  grpc::ServerBuilder builder;
  SetKeepAlive(builder);
  // gRPC shares a port between processes unless told otherwise; a taken port must be an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  int port = 0;
  builder.AddListeningPort(options.address.ToString(), *credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  if (options.call_ended) {
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
    factories.push_back(std::make_unique<CallTimers>(options.call_ended));
    builder.experimental().SetInterceptorCreators(std::move(factories));
  }

  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server || port == 0) return host::ExplainListenFailure(options.address);
  // gRPC begins with SERVING; nobody knows the address yet, so the moment before this line does no harm.
  server->GetHealthCheckService()->SetServingStatus(false);
  const std::lock_guard lock(impl_->mu);
  MUSTER_CHECK(!impl_->server, "Start was called twice");
  impl_->address.port = static_cast<uint16_t>(port);
  impl_->server = std::move(server);
  return {};
}

host::Address Server::address() const {
  const std::lock_guard lock(impl_->mu);
  return impl_->address;
}

void Server::SetServing(bool serving, std::string_view service) {
  const std::lock_guard lock(impl_->mu);
  if (!impl_->server) return;
  impl_->server->GetHealthCheckService()->SetServingStatus(std::string(service), serving);
}

void Server::Stop() {
  std::unique_ptr<grpc::Server> server;
  {
    const std::lock_guard lock(impl_->mu);
    server = std::move(impl_->server);
  }
  if (!server) return;
  server->GetHealthCheckService()->Shutdown();
  server->Shutdown(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(impl_->options.stop_grace));
  server->Wait();
}

}  // namespace muster::rpc
