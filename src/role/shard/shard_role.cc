#include "role/shard/shard_role.h"

#include <fmt/format.h>
#include <malloc.h>

#include <utility>

#include "base/log.h"
#include "rpc/channel.h"
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
      metrics_(registry_),
      ops_(options_.metrics_addr, options_.build, registry_),
      rpc_({.address = options_.listen, .tls = options_.tls, .max_message_bytes = rpc::kLargeMessageBytes}) {
  registry_
      .AddGauge("muster_build_info", "1, with the build in the labels.",
                {{"version", options_.build.version}, {"commit", options_.build.commit}})
      .Set(1);
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
}

ShardRole::~ShardRole() { Stop(); }

Status ShardRole::Start(std::stop_token) {
  if (options_.data_dir.empty()) {
    return {Code::kInvalidArgument, "--data-dir is missing; a shard keeps its epoch and its memory there"};
  }
  auto dir = host::DataDir::Open(options_.data_dir, "--data-dir");
  if (!dir) return dir.error();
  data_dir_ = *std::move(dir);
  GiveLargeBlocksBack();
  MUSTER_RETURN_IF_ERROR(StartShard());
  return StartServers();
}

Status ShardRole::StartShard() {
  auto provider = rpc::MakeProviderClient(options_.provider_addr, options_.tls);
  if (!provider) return {provider.error().code(), fmt::format("--provider-addr: {}", provider.error().message())};
  provider_ = *std::move(provider);
  if (!options_.coordinator_addr.empty()) {
    auto coordinator = rpc::MakeCoordinatorClient(options_.coordinator_addr, options_.tls);
    if (!coordinator) {
      return {coordinator.error().code(), fmt::format("--coordinator-addr: {}", coordinator.error().message())};
    }
    coordinator_ = *std::move(coordinator);
  }
  Config config = options_.config;
  config.coordinator = options_.coordinator_addr;
  config.provider_address = options_.provider_addr;
  shard_ = std::make_unique<LocalShard>(
      LocalOptions{.data_dir = options_.data_dir,
                   .journal = options_.journal,
                   .audit = options_.audit,
                   .workers = options_.workers,
                   .config = std::move(config)},
      *provider_, coordinator_.get(), clock_,
      LocalEvents{.cycle_ended =
                      [this](Duration took) {
                        metrics_.CycleEnded(took);
                        options_.cycle_ended(took);
                      },
                  .phase_ended = [this](std::string_view phase, Duration took) { metrics_.PhaseEnded(phase, took); },
                  .lasted = [this](const Lasted& lasted) { metrics_.Ended(lasted); },
                  .stopped = options_.failed});
  return shard_->Start();
}

Status ShardRole::StartServers() {
  ops_.SetRefresh([this] { metrics_.Update(*shard_->View()); });
  MUSTER_RETURN_IF_ERROR(ops_.Start());
  services_ = {
      rpc::MakeSessionService(*shard_, {.identity_rejected = [this] { metrics_.IdentityRejected(); },
                                        .rollup_decoded = [this](Duration took) { metrics_.RollupDecoded(took); },
                                        .rollup_replaced = [this] { metrics_.RollupReplaced(); }}),
      rpc::MakeShardReadService(*shard_), rpc::MakeFleetService(*shard_)};
  std::vector<grpc::Service*> services;
  for (const auto& service : services_) services.push_back(service.get());
  MUSTER_RETURN_IF_ERROR(rpc_.Start(services));
  ops_.SetReadyCheck("state", [this] { return shard_->state_status(); });
  ops_.SetReadyCheck("audit", [this] { return shard_->audit_status(); });
  ops_.SetReadyCheck("machines", [this] {
    const auto view = shard_->View();
    if (!view->stopped.ok()) return view->stopped;
    return view->ready ? Status() : Status(Code::kUnavailable, "the provider's machines have not been seen yet");
  });
  log::Info("listening", {{"grpc", rpc_.address().ToString()},
                          {"http", ops_.address().ToString()},
                          {"shard", options_.config.id},
                          {"provider", options_.provider_addr}});
  rpc_.SetServing(true);
  for (const std::string_view name : {rpc::kSessionService, rpc::kShardReadService, rpc::kFleetService}) {
    rpc_.SetServing(true, name);
  }
  ops_.SetReadyCheck("grpc", [] { return Status(); });
  return {};
}

// The shard first: it refuses what would keep the server waiting. Then the clients, which bring no answer any more.
void ShardRole::Stop() {
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  rpc_.SetServing(false);
  if (shard_ != nullptr) shard_->Stop();
  rpc_.Stop();
  ops_.Stop();
  provider_.reset();
  coordinator_.reset();
  services_.clear();
  shard_.reset();
  data_dir_.reset();
}

}  // namespace muster::shard
