#include "rpc/role_server.h"

#include <utility>

namespace muster::rpc {
namespace {

// Beyond this machine gRPC is served with TLS or --insecure, HTTP, which has no TLS, with --insecure alone.
Status ReadAddresses(const host::Settings& settings, bool insecure, RoleServerOptions& options) {
  auto tls = TlsFilesFromFlags(options.tls.cert, options.tls.key, options.tls.ca);
  if (!tls) return tls.error();
  auto listen = host::ParseListenAddress(settings.text("--listen"), insecure || options.tls.given(), "--listen");
  if (!listen) return listen.error();
  options.listen = *std::move(listen);
  auto metrics = host::ParseListenAddress(settings.text("--metrics-addr"), insecure, "--metrics-addr");
  if (!metrics) return metrics.error();
  options.metrics_addr = *std::move(metrics);
  return {};
}

}  // namespace

void DeclareServerSettings(host::Settings& settings, RoleServerOptions& options, std::string listen,
                           std::string metrics_addr, DataDirSetting data_dir) {
  const auto insecure = std::make_shared<bool>(false);
  settings
      .Late("--listen", std::move(listen), "HOST:PORT or :PORT",
            "gRPC address; :PORT is loopback, and every interface with TLS; port 0 picks a free one")
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
      .Switch("--insecure", *insecure, "Serve other machines where there is no TLS; :PORT then means every interface")
      .Check([&settings, &options, insecure] { return ReadAddresses(settings, *insecure, options); });
}

RoleServer::RoleServer(RoleServerOptions options, int max_message_bytes)
    : options_(std::move(options)),
      declared_(registry_),
      ops_(options_.metrics_addr, options_.build, registry_),
      rpc_({.address = options_.listen,
            .tls = options_.tls,
            .max_message_bytes = max_message_bytes,
            .foreign_nodes = options_.foreign_nodes,
            .call_ended = options_.call_ended}) {
  const metrics::Gauges<2> build(declared_, "muster_build_info", "1, with the build in the labels.",
                                 {"version", "commit"});
  build.With(options_.build.version, options_.build.commit).Set(1);
  SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
}

RoleServer::~RoleServer() { Stop(); }

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
  std::vector<grpc::Service*> registered;
  for (const Service& service : services_) registered.push_back(service.service.get());
  return rpc_.Start(registered);
}

void RoleServer::Serve(std::vector<log::KeyValue> fields) {
  fields.insert(fields.begin(), {{"grpc", rpc_.address().ToString()}, {"http", ops_.address().ToString()}});
  log::Write(log::Level::kInfo, "listening", fields);
  rpc_.SetServing(true);
  for (const Service& service : services_) rpc_.SetServing(true, service.name);
  SetReadyCheck("grpc", [] { return Status(); });
}

void RoleServer::StopServing() {
  SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  rpc_.SetServing(false);
}

void RoleServer::Stop() {
  rpc_.Stop();
  ops_.Stop();
  services_.clear();
}

}  // namespace muster::rpc
