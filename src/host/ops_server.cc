#include "host/ops_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace muster::host {
namespace {

constexpr size_t kThreads = 64;
constexpr const char* kText = "text/plain; charset=utf-8";

}  // namespace

struct OpsServer::Impl {
  Impl(Address where, BuildInfo which, const metrics::Registry& from)
      : build(std::move(which)), registry(from), address(std::move(where)) {}

  void Configure();
  void AnswerReady(httplib::Response& response);

  // Set at construction.
  const BuildInfo build;
  const metrics::Registry& registry;
  std::function<void()> refresh;  // set before Start

  mutable std::mutex mu;
  std::map<std::string, std::function<Status()>> checks;  // guarded by mu
  Address address;                                        // guarded by mu

  httplib::Server server;
  std::jthread thread;
};

void OpsServer::Impl::Configure() {
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // The library's default shares the port with any other process that asks for it; a taken port must be an error.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // Short, because Stop waits for connections to come to their end.
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(2);
  server.set_write_timeout(2);
  server.set_payload_max_length(1 << 16);

  server.Get("/livez",
             [](const httplib::Request&, httplib::Response& response) { response.set_content("ok\n", kText); });
  server.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) { AnswerReady(response); });
  server.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    if (refresh) refresh();
    response.set_content(registry.Expose(), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/version", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(build.ToJson() + "\n", "application/json");
  });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.status == 404) {
      response.set_content("not found; GET one of /livez /readyz /metrics /version\n", kText);
    }
  });
}

void OpsServer::Impl::AnswerReady(httplib::Response& response) {
  std::map<std::string, std::function<Status()>> current;
  {
    const std::lock_guard lock(mu);
    current = checks;
  }
  std::string reasons;
  for (const auto& [name, check] : current) {
    if (const Status status = check(); !status.ok()) reasons += fmt::format("{}: {}\n", name, status.message());
  }
  response.status = reasons.empty() ? 200 : 503;
  response.set_content(reasons.empty() ? "ok\n" : reasons, kText);
}

OpsServer::OpsServer(Address address, BuildInfo build, const metrics::Registry& registry)
    : impl_(std::make_unique<Impl>(std::move(address), std::move(build), registry)) {
  impl_->Configure();
}

OpsServer::~OpsServer() { Stop(); }

void OpsServer::SetReadyCheck(std::string name, std::function<Status()> check) {
  const std::lock_guard lock(impl_->mu);
  impl_->checks[std::move(name)] = std::move(check);
}

void OpsServer::SetRefresh(std::function<void()> refresh) { impl_->refresh = std::move(refresh); }

Status OpsServer::Start() {
  const Address wanted = address();
  const int port = wanted.port != 0 ? (impl_->server.bind_to_port(wanted.host, wanted.port) ? wanted.port : -1)
                                    : impl_->server.bind_to_any_port(wanted.host);
  if (port < 0) return ExplainListenFailure(wanted);
  {
    const std::lock_guard lock(impl_->mu);
    impl_->address.port = static_cast<uint16_t>(port);
  }
  impl_->thread = std::jthread([this] { impl_->server.listen_after_bind(); });
  // The library forgets a stop() that comes before its loop runs.
  while (!impl_->server.is_running()) std::this_thread::yield();
  return {};
}

Address OpsServer::address() const {
  const std::lock_guard lock(impl_->mu);
  return impl_->address;
}

void OpsServer::Stop() {
  impl_->server.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace muster::host
