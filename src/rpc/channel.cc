#include "rpc/channel.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "host/address.h"
#include "model/names.h"
#include "rpc/certificate_check.h"
#include "rpc/grpc_log.h"
#include "rpc/tls_protocol.h"

namespace muster::rpc {
namespace {

constexpr size_t kReceiveReserve = 8 << 20;  // for connections and small messages

// gRPC would take a port that is too large modulo 65536, and one that is no number for 0.
bool IsHostAndPort(std::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view text = target.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

// "[::1]:7000" and "host:7000" without the port and the brackets.
std::string HostOf(std::string_view target) {
  std::string_view host = target.substr(0, target.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

grpc::ChannelArguments Arguments(const ChannelOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  arguments.SetMaxSendMessageSize(kLargeMessageBytes);  // what is too large is for the server to refuse
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keep_alive));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  // A server that comes back is found within seconds, not within gRPC's two minutes.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.longest_reconnect));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, std::min(1'000, Milliseconds(options.longest_reconnect) / 4));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A server must not make a client unpack either.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  if (!options.transparent_retries) arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  if (options.idle_timeout > 0s) {
    arguments.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, Milliseconds(options.idle_timeout));
  }
  // gRPC looks at the size of a message when all of it has come: without a quota a server fills its caller's memory
  // with one. A message within the bounds fits, while another one comes.
  grpc::ResourceQuota quota("client");
  quota.Resize(2 * static_cast<size_t>(options.max_message_bytes) + kReceiveReserve);
  arguments.SetResourceQuota(quota);
  if (options.own_connection) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// After the handshake: the host that was dialled, who the peer is, and that the certificate still holds.
class PeerVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  PeerVerifier(std::shared_ptr<CertificateCheck> certificates, ExpectedServer expected)
      : expected_(std::move(expected)), certificates_(std::move(certificates)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* sync_status) override {
    host_name_.Verify(request, nullptr, sync_status);  // answers at once
    if (!sync_status->ok()) return true;
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names()) uris.emplace_back(uri.data(), uri.size());
    Status status = CheckServer(uris, expected_);
    const grpc::string_ref certificate = request->peer_cert();
    if (status.ok()) status = certificates_->Check({certificate.data(), certificate.size()});
    if (!status.ok())
      log::Warn("server refused", {{"server", request->target_name().data()}, {"why", status.message()}});
    *sync_status = ToGrpc(status);
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const ExpectedServer expected_;
  const std::shared_ptr<CertificateCheck> certificates_;
  grpc::experimental::HostNameCertificateVerifier host_name_;
};

// One for all channels with the same files: each has a thread that looks at them.
std::shared_ptr<grpc::experimental::CertificateProviderInterface> WatcherOf(const TlsFiles& files) {
  constexpr unsigned kLookEverySeconds = 1;
  static std::mutex mu;
  static std::map<std::array<std::string, 3>, std::weak_ptr<grpc::experimental::CertificateProviderInterface>> watchers;
  const std::lock_guard lock(mu);
  std::erase_if(watchers, [](const auto& watcher) { return watcher.second.expired(); });
  auto& known = watchers[{files.key, files.cert, files.ca}];
  auto watcher = known.lock();
  if (watcher == nullptr) {
    watcher = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(files.key, files.cert, files.ca,
                                                                                   kLookEverySeconds);
    known = watcher;
  }
  return watcher;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials(const TlsFiles& files, const ExpectedServer& expected,
                                                         std::shared_ptr<CertificateCheck> certificates) {
  RequireTls13();
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(WatcherOf(files));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<PeerVerifier>(std::move(certificates), expected));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

Result<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  RouteGrpcLog();
  const bool socket = options.target.starts_with("unix:/");
  if (!socket && !IsHostAndPort(options.target)) {
    return InvalidArgument(
        fmt::format("{} is not the address of a server: write HOST:PORT with a port from 1 to 65535, or unix:/PATH",
                    model::Quoted(options.target)));
  }
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (options.tls.given() && !socket) {
    MUSTER_ASSIGN_OR_RETURN(const TlsMaterial fit, ReadTlsMaterial(options.tls));  // for its error only
    auto certificates =
        options.certificates != nullptr ? options.certificates : std::make_shared<CertificateCheck>(options.tls);
    if (Status fit_too = certificates->Fit(); !fit_too.ok()) return std::unexpected(std::move(fit_too));
    credentials = TlsCredentials(options.tls, options.serves, std::move(certificates));
  } else {
    if (!socket && !options.tls.insecure && !host::IsLoopback(HostOf(options.target))) {
      return InvalidArgument(
          fmt::format("{} is another machine, and without TLS the server there is not known: give "
                      "--tls-cert, --tls-key and --tls-ca, or --insecure if the network is trusted",
                      model::Quoted(options.target)));
    }
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
  std::string text = status.error_message();
  if (text.empty() && status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    text = "the server there does not offer this; check the address";
  } else if (text == "Buffers full") {  // gRPC's words for a quota that is used up
    text = "a message is larger than the memory for messages that are not read yet";
  }
  return {static_cast<Code>(status.error_code()), std::move(text)};
}

grpc::Status ToGrpc(const Status& status) {
  return status.ok() ? grpc::Status() : grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message());
}

}  // namespace muster::rpc
