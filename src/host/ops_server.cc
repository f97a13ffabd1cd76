#include "host/ops_server.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "host/http_server.h"

namespace muster::host {
namespace {

constexpr const char* kText = "text/plain; charset=utf-8";

}  // namespace

struct OpsServer::Impl {
  Impl(Address where, BuildInfo which, const metrics::Registry& from)
      : build(std::move(which)), registry(from), address(std::move(where)) {}

  HttpResponse Answer(std::string_view path);
  HttpResponse Ready();

  // Set at construction.
  const BuildInfo build;
  const metrics::Registry& registry;
  std::function<void()> refresh;  // set before Start

  mutable std::mutex mu;
  std::map<std::string, std::function<Status()>> checks;  // guarded by mu
  Address address;                                        // guarded by mu

  HttpServer server{[this](std::string_view path) { return Answer(path); }};  // last: its thread uses the rest
};

HttpResponse OpsServer::Impl::Answer(std::string_view path) {
  if (path == "/livez") return {.status = 200, .type = kText, .body = "ok\n"};
  if (path == "/readyz") return Ready();
  if (path == "/metrics") {
    if (refresh) refresh();
    return {.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8", .body = registry.Expose()};
  }
  if (path == "/version") return {.status = 200, .type = "application/json", .body = build.ToJson() + "\n"};
  return {.status = 404, .type = kText, .body = "not found; GET one of /livez /readyz /metrics /version\n"};
}

HttpResponse OpsServer::Impl::Ready() {
  std::map<std::string, std::function<Status()>> current;
  {
    const std::lock_guard lock(mu);
    current = checks;
  }
  std::string reasons;
  for (const auto& [name, check] : current) {
    if (const Status status = check(); !status.ok()) reasons += fmt::format("{}: {}\n", name, status.message());
  }
  return {.status = reasons.empty() ? 200 : 503, .type = kText, .body = reasons.empty() ? "ok\n" : reasons};
}

OpsServer::OpsServer(Address address, BuildInfo build, const metrics::Registry& registry)
    : impl_(std::make_unique<Impl>(std::move(address), std::move(build), registry)) {}

OpsServer::~OpsServer() { Stop(); }

void OpsServer::SetReadyCheck(std::string name, std::function<Status()> check) {
  const std::lock_guard lock(impl_->mu);
  impl_->checks[std::move(name)] = std::move(check);
}

void OpsServer::SetRefresh(std::function<void()> refresh) { impl_->refresh = std::move(refresh); }

Status OpsServer::Start() {
  auto port = impl_->server.Start(address());
  if (!port) return port.error();
  const std::lock_guard lock(impl_->mu);
  impl_->address.port = *port;
  return {};
}

Address OpsServer::address() const {
  const std::lock_guard lock(impl_->mu);
  return impl_->address;
}

void OpsServer::Stop() { impl_->server.Stop(); }

}  // namespace muster::host
