#include "role/scheduler/scheduler_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "rpc/agent_client.h"
#include "rpc/cluster_services.h"
#include "store/url.h"

namespace muster::scheduler {
namespace {

// Where others reach a scheduler that listens at `listen`: every interface is no address.
std::string Reachable(const host::Address& listen) {
  if (listen.host != "0.0.0.0" && listen.host != "::") return listen.ToString();
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return listen.ToString();
  return fmt::format("{}:{}", name.data(), listen.port);
}

rpc::RoleServerOptions Observed(rpc::RoleServerOptions options,
                                std::function<void(std::string_view, Code, Duration)> f) {
  options.call_ended = std::move(f);
  return options;
}

}  // namespace

SchedulerRole::SchedulerRole(RoleOptions options)
    : options_(std::move(options)),
      server_(Observed(options_.server, [this](std::string_view method, Code code,
                                               Duration took) { metrics_.CallServed(method, code, took); })),
      metrics_(server_.metrics()) {}

SchedulerRole::~SchedulerRole() { Stop(); }

Status SchedulerRole::Start(std::stop_token) {
  MUSTER_RETURN_IF_ERROR(MakeScheduler());
  MUSTER_RETURN_IF_ERROR(scheduler_->Start());
  server_.SetRefresh(
      [this] { metrics_.Update(*scheduler_->View(), scheduler_->watchers(), scheduler_->store_status().ok()); });
  MUSTER_RETURN_IF_ERROR(server_.Listen(
      {{rpc::kControlService, rpc::MakeControlService(*scheduler_, scheduler_->streams(), *scheduler_)},
       {rpc::kClusterService, rpc::MakeClusterService(*scheduler_, scheduler_->watches(), *scheduler_, *scheduler_)}}));
  server_.SetReadyCheck("store", [this] { return scheduler_->store_status(); });
  server_.SetReadyCheck("leadership", [this] {
    const auto view = scheduler_->View();
    return view->ready || view->leading ? Status() : Status(Code::kUnavailable, "no leader is known yet");
  });
  scheduler_->UseStore(Reachable(server_.listen_address()));
  server_.Serve({{"id", options_.config.id}, {"store", options_.store}});
  return {};
}

Status SchedulerRole::MakeScheduler() {
  const auto url = store::ParseStoreUrl(options_.store);
  if (!url) return {url.error().code(), fmt::format("--store: {}", url.error().message())};
  auto store = rpc::OpenStore(options_.store, options_.store_access);
  if (!store) return {store.error().code(), fmt::format("--store: {}", store.error().message())};
  auto agents = rpc::MakeAgentClient(options_.server.tls);
  if (!agents) return agents.error();
  scheduler_ = std::make_unique<LocalScheduler>(
      LocalOptions{.config = options_.config,
                   .journal = options_.server.journal,
                   .election = url->kind == store::StoreUrl::Kind::kEtcd,
                   .store_lost_after = options_.store_lost_after},
      *std::move(store), *std::move(agents), clock_,
      LocalEvents{.reconciled = [this](const Reconciled& ended) { metrics_.Ended(ended); },
                  .cycle_ended = [this](bool success, Duration took) { metrics_.CycleEnded(success, took); },
                  .agent_called = [this](const contract::AgentRequest& request, Code code,
                                         Duration took) { metrics_.AgentCalled(request, code, took); }});
  return {};
}

void SchedulerRole::Stop() {
  server_.StopServing();
  if (scheduler_ != nullptr) scheduler_->Stop();
  server_.Stop();
  scheduler_.reset();
}

}  // namespace muster::scheduler
