#include "rpc/server.h"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/support/server_interceptor.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "host/system_clock.h"
#include "rpc/bounded_service.h"
#include "rpc/call_subject.h"
#include "rpc/grpc_log.h"
#include "rpc/health_service.h"
#include "rpc/server_credentials.h"
#include "rpc/standard_streams.h"

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

constexpr int kMostStreams = 256;        // of a connection; more than a caller may have that say nothing
constexpr int kHandshakeMillis = 8'000;  // a stranger holds a connection no longer
constexpr int kAgeGraceMillis = 5'000;   // for calls of a connection that is too old
constexpr int kMostThreads = 64;         // of reflection, whose streams hold a thread each
constexpr int kMostMetadata = 16 << 10;
constexpr int kReadBytes = 64 << 10;  // at once from a connection; gRPC's own bound is 4 MiB for each

void SetLimits(grpc::ServerBuilder& builder, const ServerOptions& options) {
  // A message of a kilobyte can be a gigabyte unpacked. A call that announces one is refused (UNIMPLEMENTED).
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetMaxReceiveMessageSize(options.max_request_bytes);
  builder.SetMaxSendMessageSize(options.max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadata);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  // Windows stay as they are: a hundred peers that send fast would else be given megabytes each, and every message of
  // a peer that sends seldom costs a ping.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto millis = [](Duration duration) {
    const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    return static_cast<int>(std::min<int64_t>(count, INT_MAX));
  };
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, millis(options.connection_idle));
  if (options.connection_age > 0s) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, millis(options.connection_age));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kAgeGraceMillis);
  }
  grpc::ResourceQuota quota("server");
  quota.Resize(options.receive_memory);
  quota.SetMaxThreads(kMostThreads);
  builder.SetResourceQuota(quota);
}

// Whether the method, by its path, takes more than one message. All are registered as streams (awaited_request.h).
bool ReadsStream(std::string_view path) {
  std::string name(path.substr(path.starts_with('/') ? 1 : 0));
  std::ranges::replace(name, '/', '.');
  const auto* method = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  return method != nullptr && method->client_streaming();
}

using CallEnded = decltype(ServerOptions::call_ended);

// One call, from its begin to the status that it ends with.
class CallWatch final : public grpc::experimental::Interceptor {
 public:
  CallWatch(grpc::experimental::ServerRpcInfo& info, const CallEnded& ended, const Refused& refused,
            StandardStreams& streams, bool on_socket)
      : info_(info),
        began_(host::SystemClock().Read().mono),
        ended_(ended),
        refused_(refused),
        streams_(streams),
        on_socket_(on_socket) {
    // Who calls is looked at when the call ends; for some methods it decides.
    if (IsOrder(info_.method(), Identity{.kind = Identity::Kind::kAdmin, .id = {}}, on_socket_)) {
      AwaitSubject(*info_.server_context());
    }
  }
  ~CallWatch() override { static_cast<void>(TakeSubject(*info_.server_context())); }
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA) &&
        StandardStreams::Has(info_.method())) {
      stream_ = streams_.Begin(*info_.server_context(), info_.method());
    }
    if (stream_ != nullptr && methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) &&
        methods->GetRecvMessage() != nullptr) {
      stream_->Heard();
    }
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      End(FromGrpc(methods->GetSendStatus()));
    }
    methods->Proceed();
  }

 private:
  void End(const Status& status) const {
    const std::string_view method = info_.method();
    if (ended_) ended_(method, status.code(), host::SystemClock().Read().mono - began_);
    // What the table of callers refuses never comes this far; this is what a service found in the request.
    if (status.code() == Code::kPermissionDenied && refused_) {
      refused_({kDenied, CallerName(*info_.server_context()), std::string(method), status.message()});
    }
    if (status.code() == Code::kDeadlineExceeded && ReadsStream(method) && refused_) {
      refused_({kSilent, CallerName(*info_.server_context()), std::string(method), status.message()});
    }
    if (IsOrder(method, CallerOf(*info_.server_context()), on_socket_)) WriteOrder(method, status);
  }

  // Lines are limited by their message, those of operators are not: what others send as fast as they can neither pushes
  // these out nor fills the disk. An operator is who shows it, or owns the directory of the socket.
  void WriteOrder(std::string_view method, const Status& status) const {
    const std::optional<Identity> caller = CallerOf(*info_.server_context());
    const bool of_operator = on_socket_ || (caller && caller->kind == Identity::Kind::kAdmin);
    const CallSubject subject = TakeSubject(*info_.server_context());
    const std::initializer_list<log::KeyValue> fields = {{"who", CallerName(*info_.server_context())},
                                                         {"what", method},
                                                         {"object", subject.object},
                                                         {"reason", subject.reason},
                                                         {"code", CodeName(status.code())},
                                                         {"why", status.message()}};
    if (of_operator) return log::Info("order", fields);
    if (caller) return log::Info("order of a client", fields);
    log::Info("order without a certificate", fields);
  }

  grpc::experimental::ServerRpcInfo& info_;  // of the call, which outlives this
  const MonoTime began_;
  const CallEnded& ended_;
  const Refused& refused_;
  StandardStreams& streams_;
  const bool on_socket_;
  std::unique_ptr<StandardStreams::Stream> stream_;
};

class CallWatches final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  CallWatches(CallEnded ended, const Refused& refused, bool on_socket)
      : ended_(std::move(ended)), refused_(refused), on_socket_(on_socket), streams_(refused) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    return new CallWatch(*info, ended_, refused_, streams_, on_socket_);  // gRPC frees it
  }

 private:
  const CallEnded ended_;
  const Refused refused_;
  const bool on_socket_;
  StandardStreams streams_;
};

// A switch of the whole process in gRPC.
void EnableReflectionOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    RouteGrpcLog();
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions given)
      : options(std::move(given)),
        bounded_health(
            HealthService::kName, health, watches, budgets, options.refused ? options.refused : [](const Refusal&) {}),
        address(options.address) {}

  const ServerOptions options;
  HealthService health;
  OpenStreams watches{{.of_identity = 16, .of_address = 128, .of_all = 1'024}};
  CallBudgets budgets;
  BoundedService bounded_health;
  mutable std::mutex mu;
  host::Address address;                 // guarded by mu
  std::unique_ptr<grpc::Server> server;  // guarded by mu: set by Start, emptied by Stop
};

Server::Server(ServerOptions options) : impl_(new Impl(std::move(options))) {}

Server::~Server() { Stop(); }

Status Server::Start(std::span<grpc::Service* const> services) {
  // The distribution's library looks for deadlocks at every lock that gRPC takes: a sixth of what a heartbeat costs.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  EnableReflectionOnce();
  const ServerOptions& options = impl_->options;
  const auto credentials =
      MakeServerCredentials(options.tls, options.foreign_nodes, options.cluster, options.refused, options.callers);
  if (!credentials) return credentials.error();
  grpc::ServerBuilder builder;
  SetKeepAlive(builder);
  // gRPC shares a port between processes unless told otherwise; a taken port must be an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  SetLimits(builder, options);
  const bool network = !options.address.host.empty();
  int port = 0;
  if (network) builder.AddListeningPort(options.address.ToString(), *credentials, &port);
  int socket_open = 0;
  if (!options.socket.empty()) {
    builder.AddListeningPort("unix:" + options.socket, grpc::InsecureServerCredentials(), &socket_open);
  }
  builder.RegisterService(&impl_->bounded_health);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<CallWatches>(options.call_ended, options.refused, !network));
  builder.experimental().SetInterceptorCreators(std::move(factories));

  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (network && (!server || port == 0)) return host::ExplainListenFailure(options.address);
  if (!options.socket.empty() &&
      (!server || socket_open == 0 || chmod(options.socket.c_str(), S_IRUSR | S_IWUSR) != 0)) {
    return {Code::kUnavailable, fmt::format("cannot listen on the socket {}", options.socket)};
  }
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
  impl_->health.Set(service, serving);
}

void Server::Stop() {
  std::unique_ptr<grpc::Server> server;
  {
    const std::lock_guard lock(impl_->mu);
    server = std::move(impl_->server);
  }
  if (!server) return;
  impl_->health.Stop();
  server->Shutdown(std::chrono::system_clock::now() +
                   std::chrono::duration_cast<std::chrono::system_clock::duration>(impl_->options.stop_grace));
  server->Wait();
}

}  // namespace muster::rpc
