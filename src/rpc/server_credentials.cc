#include "rpc/server_credentials.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "rpc/certificate_check.h"
#include "rpc/tls_protocol.h"

namespace muster::rpc {
namespace {

std::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// What gRPC's C layer calls back into. It owns this: handshakes may outlive the server they came to.
struct Callbacks {
  Callbacks(const TlsFiles& files, ForeignNodes foreign_nodes, std::string own_cluster, Refused told, Callers served)
      : foreign(foreign_nodes),
        callers(served),
        cluster(std::move(own_cluster)),
        refused(std::move(told)),
        certificates(files),
        watcher(files) {}

  const ForeignNodes foreign;
  const Callers callers;
  const std::string cluster;  // the server's own
  const Refused refused;
  CertificateCheck certificates;
  std::mutex mu;
  TlsWatcher watcher;  // guarded by mu
};

// Before each handshake. With nothing better to offer, gRPC goes on with what it has.
grpc_ssl_certificate_config_reload_status Fetch(void* state, grpc_ssl_server_certificate_config** config) {
  auto& callbacks = *static_cast<Callbacks*>(state);
  const std::lock_guard lock(callbacks.mu);
  const std::optional<TlsMaterial> material = callbacks.watcher.Changed();
  if (!material) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {.private_key = material->private_key.c_str(),
                                           .cert_chain = material->cert_chain.c_str()};
  *config = grpc_ssl_server_certificate_config_create(material->ca.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::vector<std::string> PropertiesOf(const grpc_auth_context& context, const char* name) {
  std::vector<std::string> values;
  grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(&context, name);
  while (const grpc_auth_property* property = grpc_auth_property_iterator_next(&found)) {
    values.emplace_back(property->value, property->value_length);
  }
  return values;
}

// Before any service sees the call.
void CheckCaller(void* state, grpc_auth_context* context, const grpc_metadata* metadata, size_t size,
                 grpc_process_auth_metadata_done_cb done, void* user_data) {
  std::string_view method;
  for (size_t i = 0; i < size; ++i) {
    if (View(metadata[i].key) == ":path") method = View(metadata[i].value);
  }
  auto& callbacks = *static_cast<Callbacks*>(state);
  const std::vector<std::string> uris = PropertiesOf(*context, GRPC_PEER_URI_PROPERTY_NAME);
  const std::vector<std::string> certificate = PropertiesOf(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  Status status = certificate.empty() ? Status(Code::kPermissionDenied, "the peer shows no certificate")
                                      : callbacks.certificates.Check(certificate.front());
  if (status.ok()) status = Authorise(method, uris, callbacks.foreign, callbacks.cluster, callbacks.callers);
  if (!status.ok() && callbacks.refused) {
    callbacks.refused({kDenied, uris.empty() ? "a certificate without a URI" : fmt::format("{}", fmt::join(uris, ",")),
                       std::string(method), status.message()});
  }
  done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()), status.message().c_str());
}

// gRPC's C++ layer offers no certificates that change; its C layer does.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  ReloadingCredentials(const TlsFiles& files, ForeignNodes foreign, std::string own_cluster, Refused refused,
                       Callers callers) {
    auto* callbacks = new Callbacks(files, foreign, std::move(own_cluster), std::move(refused), callers);
    credentials_ =
        grpc_ssl_server_credentials_create_with_options(grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &Fetch, callbacks));
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = &CheckCaller,
                       .destroy = [](void* state) { delete static_cast<Callbacks*>(state); },
                       .state = callbacks});
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }
  ReloadingCredentials(const ReloadingCredentials&) = delete;
  ReloadingCredentials& operator=(const ReloadingCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {
    MUSTER_CHECK(false, "calls are checked by the table of identity.h");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsFiles& files, ForeignNodes foreign,
                                                                       std::string own_cluster, Refused refused,
                                                                       Callers callers) {
  if (!files.given()) return grpc::InsecureServerCredentials();
  RequireTls13();
  MUSTER_ASSIGN_OR_RETURN(const TlsMaterial fit, ReadTlsMaterial(files));  // for its error; the callback reads again
  if (!files.crl.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const Revoked fit_too, ReadRevoked(files));
  }
  return std::make_shared<ReloadingCredentials>(files, foreign, std::move(own_cluster), std::move(refused), callers);
}

std::optional<Identity> CallerOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (!peer || !peer->IsPeerAuthenticated()) return std::nullopt;
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  Result<Identity> caller = IdentityOf(uris);
  if (!caller) {  // let in as a foreign node, or for what is open to every certificate
    Identity node{.kind = Identity::Kind::kForeignNode, .id = {}};
    for (const grpc::string_ref& name : peer->FindPropertyValues(GRPC_PEER_DNS_PROPERTY_NAME)) {
      node.id += (node.id.empty() ? "" : ",") + std::string(name.data(), name.size());
    }
    return node;
  }
  return *std::move(caller);
}

std::string CallerName(const grpc::ServerContextBase& context) {
  if (const auto caller = CallerOf(context)) return caller->ToString();
  const std::string peer = context.peer();  // "ipv4:127.0.0.1:1234", "ipv6:%5B::1%5D:1234" or "unix:..."
  const std::string address = peer.substr(0, peer.rfind(':'));
  const bool local = peer.starts_with("unix:") || address.starts_with("ipv4:127.") || address == "ipv6:%5B::1%5D" ||
                     address == "ipv6:[::1]";
  return local ? "local" : address;
}

}  // namespace muster::rpc
