#include "role/scheduler/scheduler_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "rpc/agent_client.h"
#include "rpc/cluster_services.h"
#include "rpc/enrol_service.h"
#include "rpc/node_ca.h"
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

// Its calls are measured, and certificates of other clusters are refused.
rpc::RoleServerOptions ServerOptionsOf(const RoleOptions& options,
                                       std::function<void(std::string_view, Code, Duration)> f) {
  rpc::RoleServerOptions server = options.server;
  server.call_ended = std::move(f);
  server.cluster = options.config.cluster;
  return server;
}

}  // namespace

SchedulerRole::SchedulerRole(RoleOptions options)
    : options_(std::move(options)),
      server_(ServerOptionsOf(options_, [this](std::string_view method, Code code,
                                               Duration took) { metrics_.CallServed(method, code, took); })),
      metrics_(server_.metrics()) {}

SchedulerRole::~SchedulerRole() { Stop(); }

Status SchedulerRole::Start(std::stop_token) {
  MUSTER_RETURN_IF_ERROR(MakeScheduler());
  MUSTER_RETURN_IF_ERROR(MakeEnrolment());
  MUSTER_RETURN_IF_ERROR(scheduler_->Start());
  server_.SetRefresh(
      [this] { metrics_.Update(*scheduler_->View(), scheduler_->watchers(), scheduler_->store_status().ok()); });
  std::vector<rpc::RoleServer::Service> services = {
      {rpc::kControlService, rpc::MakeControlService(*scheduler_, scheduler_->streams(), *scheduler_)},
      {rpc::kClusterService, rpc::MakeClusterService(*scheduler_, scheduler_->watches(), *scheduler_, *scheduler_)}};
  if (enrolment_ != nullptr) services.push_back({rpc::kEnrolService, rpc::MakeEnrolService(*enrolment_)});
  MUSTER_RETURN_IF_ERROR(server_.Listen(std::move(services)));
  server_.SetReadyCheck("store", [this] { return scheduler_->store_status(); });
  server_.SetReadyCheck("leadership", [this] {
    return scheduler_->View()->leader_known ? Status() : Status(Code::kUnavailable, "no leader is known yet");
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
  auto seal = MakeSeal(*url);
  if (!seal) return seal.error();
  auto agents = rpc::MakeAgentClient(options_.server.tls, options_.config.cluster);
  if (!agents) return agents.error();
  scheduler_ = std::make_unique<LocalScheduler>(
      LocalOptions{.config = options_.config,
                   .journal = options_.server.journal,
                   .journal_options = host::JournalOptions::OfBytes(options_.journal_limit),
                   .election = url->kind == store::StoreUrl::Kind::kEtcd,
                   .store_lost_after = options_.store_lost_after,
                   .store_compact_every = options_.store_compact_every,
                   .seal = *std::move(seal)},
      *std::move(store), *std::move(agents), clock_,
      LocalEvents{.reconciled = [this](const Reconciled& ended) { metrics_.Ended(ended); },
                  .cycle_ended = [this](bool success, Duration took) { metrics_.CycleEnded(success, took); },
                  .agent_called = [this](const contract::AgentRequest& request, Code code,
                                         Duration took) { metrics_.AgentCalled(request, code, took); }});
  return {};
}

Status SchedulerRole::MakeEnrolment() {
  if (options_.join_ca.empty()) return {};
  const rpc::NodeCa::Files files = {
      .cert = options_.join_ca.string(), .key = options_.join_ca_key.string(), .trusted = options_.server.tls.ca};
  if (const auto fit = rpc::NodeCa::Read(files); !fit) {
    return {fit.error().code(), fmt::format("--join-ca: {}", fit.error().message())};
  }
  enrolment_ = std::make_unique<Enrolment>(EnrolmentOptions{.ca = files,
                                                            .cluster = options_.config.cluster,
                                                            .prefix = options_.config.prefix,
                                                            .node_life = options_.node_certificate_life},
                                           scheduler_->store(), *scheduler_, clock_);
  return {};
}

// A store in a directory has its key beside it; whoever shares a store must be given the key that all have.
Result<std::shared_ptr<const rpc::SecretSeal>> SchedulerRole::MakeSeal(const store::StoreUrl& url) const {
  const auto shared = [](Result<rpc::SecretSeal> seal) -> Result<std::shared_ptr<const rpc::SecretSeal>> {
    if (!seal) return Error(seal.error().code(), fmt::format("--secret-key: {}", seal.error().message()));
    return std::make_shared<const rpc::SecretSeal>(*std::move(seal));
  };
  if (!options_.secret_key.empty()) return shared(rpc::SecretSeal::Read(options_.secret_key));
  switch (url.kind) {
    case store::StoreUrl::Kind::kMemory: return shared(rpc::SecretSeal::Random());
    case store::StoreUrl::Kind::kSqlite:
      return shared(rpc::SecretSeal::ReadOrMake(std::filesystem::path(url.directory) / kSecretKeyFile));
    case store::StoreUrl::Kind::kEtcd: break;
  }
  return nullptr;
}

void SchedulerRole::Stop() {
  server_.StopServing();
  if (enrolment_ != nullptr) enrolment_->Stop();
  if (scheduler_ != nullptr) scheduler_->Stop();
  server_.Stop();
  enrolment_.reset();
  scheduler_.reset();
}

}  // namespace muster::scheduler
