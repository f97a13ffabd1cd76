#include "rpc/channel.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "model/names.h"
#include "rpc/grpc_log.h"
#include "rpc/tls_protocol.h"

namespace muster::rpc {
namespace {

// gRPC would take a port that is too large modulo 65536, and one that is no number for 0.
bool IsHostAndPort(std::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view text = target.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

grpc::ChannelArguments Arguments(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(options.max_message_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keep_alive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // A server that comes back is found within seconds, not within gRPC's two minutes.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.longest_reconnect));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, std::min(1'000, Milliseconds(options.longest_reconnect) / 4));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!options.transparent_retries) arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(const TlsFiles& files) {
  constexpr unsigned kLookEverySeconds = 1;
  RequireTls13();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.cert, files.ca, kLookEverySeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

Result<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  RouteGrpcLog();
  if (!IsHostAndPort(options.target)) {
    return InvalidArgument(fmt::format("{} is not the address of a server: write HOST:PORT with a port from 1 to 65535",
                                       model::Quoted(options.target)));
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (options.tls.given()) {
    MUSTER_ASSIGN_OR_RETURN(const TlsMaterial fit, ReadTlsMaterial(options.tls));  // for its error only
    credentials = TlsCredentials(options.tls);
  } else {
    credentials = grpc::InsecureChannelCredentials();
  }
  return grpc::CreateCustomChannel(options.target, credentials, Arguments(options));
}

void SetDeadline(grpc::ClientContext& context, Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout));
}

Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return {};
  const bool unheard_of = status.error_code() == grpc::StatusCode::UNIMPLEMENTED && status.error_message().empty();
  return {static_cast<Code>(status.error_code()),
          unheard_of ? "whoever listens there does not offer this; check the address" : status.error_message()};
}

grpc::Status ToGrpc(const Status& status) {
  return status.ok() ? grpc::Status() : grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message());
}

}  // namespace muster::rpc
