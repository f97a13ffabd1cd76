#include "role/shard/shard_role.h"

#include <fmt/format.h>
#include <malloc.h>

#include <utility>

#include "rpc/provider_client.h"
#include "rpc/shard_services.h"

namespace muster::shard {
namespace {

// The tables of a fleet grow by doubling. Blocks of megabytes come straight from the system and go back to it; by
// default the allocator soon keeps them, and a shard grows a third larger than what it holds.
void GiveLargeBlocksBack() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

}  // namespace

ShardRole::ShardRole(RoleOptions options)
    : options_(std::move(options)),
      server_(options_.server, rpc::kLargeMessageBytes, rpc::kSessionMessageBytes),
      metrics_(server_.metrics()) {}

ShardRole::~ShardRole() { Stop(); }

Status ShardRole::Start(std::stop_token) {
  MUSTER_RETURN_IF_ERROR(server_.OpenDataDir());
  GiveLargeBlocksBack();
  MUSTER_RETURN_IF_ERROR(MakeClients());
  MUSTER_RETURN_IF_ERROR(StartShard());
  server_.SetRefresh([this] { metrics_.Update(*shard_->View()); });
  MUSTER_RETURN_IF_ERROR(server_.Listen(
      {{rpc::kSessionService,
        rpc::MakeSessionService(*shard_, {.identity_rejected = [this] { metrics_.IdentityRejected(); },
                                          .rollup_decoded = [this](Duration took) { metrics_.RollupDecoded(took); },
                                          .rollup_replaced = [this] { metrics_.RollupReplaced(); }})},
       {rpc::kShardReadService, rpc::MakeShardReadService(*shard_)},
       {rpc::kFleetService, rpc::MakeFleetService(*shard_)}}));
  server_.SetReadyCheck("state", [this] { return shard_->state_status(); });
  server_.SetReadyCheck("audit", [this] { return shard_->audit_status(); });
  server_.SetReadyCheck("machines", [this] {
    const auto view = shard_->View();
    if (!view->stopped.ok()) return view->stopped;
    return view->ready ? Status() : Status(Code::kUnavailable, "the provider's machines have not been seen yet");
  });
  server_.Serve({{"shard", options_.config.id}, {"provider", options_.provider_addr}});
  return {};
}

Status ShardRole::MakeClients() {
  auto provider = rpc::MakeProviderClient(options_.provider_addr, options_.server.tls);
  if (!provider) return {provider.error().code(), fmt::format("--provider-addr: {}", provider.error().message())};
  provider_ = *std::move(provider);
  if (options_.coordinator_addr.empty()) return {};
  auto coordinator = rpc::MakeCoordinatorClient(options_.coordinator_addr, options_.server.tls);
  if (!coordinator) {
    return {coordinator.error().code(), fmt::format("--coordinator-addr: {}", coordinator.error().message())};
  }
  coordinator_ = *std::move(coordinator);
  return {};
}

Status ShardRole::StartShard() {
  Config config = options_.config;
  config.coordinator = options_.coordinator_addr;
  config.provider_address = options_.provider_addr;
  if (!options_.cluster_limits.empty()) {
    auto limits = ClusterLimitsFile::Open(
        options_.cluster_limits, [this](contract::Ceilings ceilings) { shard_->SetCeilings(std::move(ceilings)); });
    if (!limits) return {limits.error().code(), fmt::format("--cluster-limits: {}", limits.error().message())};
    limits_ = *std::move(limits);
  }
  shard_ = std::make_unique<LocalShard>(
      LocalOptions{.data_dir = options_.server.data_dir,
                   .journal = options_.server.journal,
                   .journal_options = host::JournalOptions::OfBytes(options_.journal_limit),
                   .audit = options_.audit,
                   .workers = options_.workers,
                   .config = std::move(config),
                   .ceilings = limits_ == nullptr ? contract::Ceilings() : limits_->first()},
      *provider_, coordinator_.get(), clock_,
      LocalEvents{.cycle_ended =
                      [this](Duration took) {
                        metrics_.CycleEnded(took);
                        options_.cycle_ended(took);
                      },
                  .phase_ended = [this](std::string_view phase, Duration took) { metrics_.PhaseEnded(phase, took); },
                  .lasted = [this](const Lasted& lasted) { metrics_.Ended(lasted); },
                  .stopped = [this](const Status& why) { Fail("the shard cannot go on", why); }});
  MUSTER_RETURN_IF_ERROR(shard_->Start());
  if (limits_ != nullptr) limits_->Watch();
  return {};
}

// The clients go after the shard: they bring no answer any more.
void ShardRole::Stop() {
  server_.StopServing();
  limits_.reset();
  if (shard_ != nullptr) shard_->Stop();
  server_.Stop();
  provider_.reset();
  coordinator_.reset();
  shard_.reset();
  server_.CloseDataDir();
}

}  // namespace muster::shard
