#include "rpc/role_server.h"

#include <sys/un.h>

#include <thread>
#include <utility>
#include <vector>

#include "rpc/grpc_log.h"

namespace muster::rpc {
namespace {

// Room for the largest message and a few others on their way.
size_t ReceiveMemory(int max_request_bytes) { return max_request_bytes > kSmallMessageBytes ? 26 << 20 : 10 << 20; }

// Beyond this machine gRPC is served with TLS or --insecure, HTTP, which has no TLS, with --insecure alone.
Status ReadAddresses(const host::Settings& settings, bool insecure, RoleServerOptions& options) {
  auto tls = TlsFilesFromFlags(options.tls.cert, options.tls.key, options.tls.ca, options.tls.crl, insecure);
  if (!tls) return tls.error();
  tls->connection_age = options.tls.connection_age;
  options.tls = *std::move(tls);
  auto listen = host::ParseListenAddress(settings.text("--listen"), insecure || options.tls.given(), "--listen");
  if (!listen) return listen.error();
  options.listen = *std::move(listen);
  if (const std::string& control = settings.text("--control-listen"); !control.empty()) {
    auto address = host::ParseListenAddress(control, insecure || options.tls.given(), "--control-listen");
    if (!address) return address.error();
    options.control_listen = *std::move(address);
  }
  auto metrics = host::ParseListenAddress(settings.text("--metrics-addr"), insecure, "--metrics-addr");
  if (!metrics) return metrics.error();
  options.metrics_addr = *std::move(metrics);
  return {};
}

// For orders of whoever owns the data directory, whatever the certificates. A name that is too long for a socket has
// none.
std::string SocketIn(const std::filesystem::path& data_dir) {
  constexpr size_t kLongestSocket = sizeof(sockaddr_un::sun_path) - 1;
  if (data_dir.empty()) return {};
  std::string path = (std::filesystem::absolute(data_dir) / RoleServer::kSocketFile).string();
  if (path.size() <= kLongestSocket) return path;
  log::Warn("the name of the data directory is too long for a socket in it", {{"directory", data_dir.string()}});
  return {};
}

}  // namespace

void DeclareServerSettings(host::Settings& settings, RoleServerOptions& options, std::string listen,
                           std::string metrics_addr, DataDirSetting data_dir) {
  const auto insecure = std::make_shared<bool>(false);
  settings
      .Late("--listen", std::move(listen), "HOST:PORT or :PORT",
            "gRPC address; :PORT is loopback, and every interface with TLS; port 0 picks a free one")
      .Late("--control-listen", "", "HOST:PORT or :PORT",
            "A second gRPC address, for operators alone, with memory for messages of its own")
      .Late("--metrics-addr", std::move(metrics_addr), "HOST:PORT or :PORT",
            "HTTP address of the operator's endpoints");
  if (data_dir == DataDirSetting::kDeclared) {
    settings.Path("--data-dir", options.data_dir, "Directory for state, made if missing; one process at a time");
  }
  settings.Path("--journal", options.journal, "Directory for what the core saw, for muster replay")
      .Choice("--log-level", options.log_level,
              {{"debug", log::Level::kDebug},
               {"info", log::Level::kInfo},
               {"warn", log::Level::kWarn},
               {"error", log::Level::kError}},
              "info", "Lowest level that is logged")
      .Add("--tls-cert", options.tls.cert, "", host::Text("a file"),
           "Certificate in PEM form, read again when it changes; all three or none")
      .Add("--tls-key", options.tls.key, "", host::Text("a file"), "Its private key")
      .Add("--tls-ca", options.tls.ca, "", host::Text("a file"),
           "The CA that the other side's certificate must come from")
      .Add("--tls-crl", options.tls.crl, "", host::Text("a file"),
           "What the CA has revoked, in PEM form, read again when it changes")
      .Add("--connection-age", options.tls.connection_age, "1h", host::PositiveDuration(),
           "With TLS: how long a connection may last until its certificate is looked at again")
      .Switch("--insecure", *insecure,
              "Serve and call other machines where there is no TLS; :PORT then means every interface")
      .Check([&settings, &options, insecure] { return ReadAddresses(settings, *insecure, options); });
}

RoleServer::RoleServer(RoleServerOptions options, int max_message_bytes, int max_request_bytes)
    : options_(std::move(options)),
      declared_(registry_),
      refused_(declared_, "muster_server_refused_total",
               "Calls turned away before any work was done for them, by reason: denied, too_large, too_many, "
               "no_message, silent, compressed, handshake.",
               {"reason"}),
      ops_(options_.metrics_addr, options_.build, registry_),
      rpc_({.address = options_.listen,
            .tls = options_.tls,
            .max_message_bytes = max_message_bytes,
            .max_request_bytes = max_request_bytes,
            .receive_memory = ReceiveMemory(max_request_bytes),
            .connection_age = options_.tls.given() ? options_.tls.connection_age : 0s,
            .foreign_nodes = options_.foreign_nodes,
            .cluster = options_.cluster,
            .refused = [this](const Refusal& refusal) { CountRefusal(refusal); },
            .call_ended = options_.call_ended}) {
  if (std::string socket = SocketIn(options_.data_dir); !socket.empty()) {
    local_ =
        std::make_unique<Server>(ServerOptions{.address = {.host = "", .port = 0},
                                               .socket = std::move(socket),
                                               .max_message_bytes = max_message_bytes,
                                               .max_request_bytes = max_request_bytes,
                                               .receive_memory = ReceiveMemory(max_request_bytes),
                                               .foreign_nodes = options_.foreign_nodes,
                                               .stop_grace = 1s,
                                               .refused = [this](const Refusal& refusal) { CountRefusal(refusal); },
                                               .call_ended = options_.call_ended});
  }
  if (!options_.control_listen.host.empty()) {
    control_ = std::make_unique<Server>(
        ServerOptions{.address = options_.control_listen,
                      .tls = options_.tls,
                      .max_message_bytes = max_message_bytes,
                      .max_request_bytes = kSmallMessageBytes,
                      .receive_memory = ReceiveMemory(kSmallMessageBytes),
                      .connection_age = options_.tls.given() ? options_.tls.connection_age : 0s,
                      .cluster = options_.cluster,
                      .callers = Callers::kOperators,
                      .stop_grace = 1s,
                      .refused = [this](const Refusal& refusal) { CountRefusal(refusal); },
                      .call_ended = options_.call_ended});
  }
  const metrics::Gauges<2> build(declared_, "muster_build_info", "1, with the build in the labels.",
                                 {"version", "commit"});
  build.With(options_.build.version, options_.build.commit).Set(1);
  SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
  TellOfRefused(this, [this](std::string_view reason) { refused_.With(reason).Add(); });
}

RoleServer::~RoleServer() {
  Stop();
  TellOfRefused(this, {});
}

Status RoleServer::OpenDataDir() {
  if (options_.data_dir.empty()) return {Code::kInvalidArgument, "--data-dir is missing; name a directory for state"};
  auto dir = host::DataDir::Open(options_.data_dir, "--data-dir");
  if (!dir) return dir.error();
  data_dir_ = *std::move(dir);
  return {};
}

void RoleServer::SetReadyCheck(std::string name, std::function<Status()> check) {
  ops_.SetReadyCheck(std::move(name), std::move(check));
}

Status RoleServer::Listen(std::vector<Service> services) {
  services_ = std::move(services);
  MUSTER_RETURN_IF_ERROR(ops_.Start());
  if (local_ != nullptr) MUSTER_RETURN_IF_ERROR(local_->Start(MakeBounded(local_lent_, Callers::kAll)));
  if (control_ != nullptr) {
    MUSTER_RETURN_IF_ERROR(control_->Start(MakeBounded(control_lent_, Callers::kOperators)));
  }
  return rpc_.Start(MakeBounded(lent_, Callers::kAll));
}

std::vector<Server*> RoleServer::Servers() {
  std::vector<Server*> servers = {&rpc_};
  for (const auto& other : {&local_, &control_}) {
    if (*other != nullptr) servers.push_back(other->get());
  }
  return servers;
}

std::vector<grpc::Service*> RoleServer::MakeBounded(Lent& lent, Callers callers) {
  std::vector<grpc::Service*> registered;
  for (const Service& service : services_) {
    bounded_.push_back(std::make_unique<BoundedService>(
        service.name, *service.service, lent.streams, lent.budgets,
        [this](const Refusal& refusal) { CountRefusal(refusal); }, callers));
    registered.push_back(bounded_.back().get());
  }
  return registered;
}

void RoleServer::CountRefusal(const Refusal& refusal) const {
  refused_.With(refusal.reason).Add();
  log::Warn("call refused",
            {{"reason", refusal.reason}, {"who", refusal.who}, {"what", refusal.what}, {"why", refusal.why}});
}

void RoleServer::Serve(std::vector<log::KeyValue> fields) {
  fields.insert(fields.begin(), {{"grpc", rpc_.address().ToString()}, {"http", ops_.address().ToString()}});
  if (control_ != nullptr) fields.insert(fields.begin() + 2, log::KeyValue{"control", control_->address().ToString()});
  log::Write(log::Level::kInfo, "listening", fields);
  for (Server* server : Servers()) {
    server->SetServing(true);
    for (const Service& service : services_) server->SetServing(true, service.name);
  }
  SetReadyCheck("grpc", [] { return Status(); });
}

void RoleServer::StopServing() {
  SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  for (Server* server : Servers()) server->SetServing(false);
}

void RoleServer::Stop() {
  {
    // All at once: each may take its grace until calls that go on have ended.
    std::vector<std::jthread> stopping;
    for (Server* server : Servers()) stopping.emplace_back([server] { server->Stop(); });
  }
  ops_.Stop();
  bounded_.clear();
  services_.clear();
}

}  // namespace muster::rpc
