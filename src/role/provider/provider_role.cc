#include "role/provider/provider_role.h"

#include <fmt/format.h>

#include <array>
#include <system_error>
#include <utility>
#include <variant>

#include "base/log.h"
#include "model/machine.h"
#include "provider/durable_sim.h"
#include "rpc/channel.h"
#include "rpc/provider_service.h"

namespace muster::provider {
namespace {

constexpr std::array kMethods = {"Create", "Configure", "Drain", "Delete", "Get", "List"};  // as in ProviderRequest

constexpr std::string_view kLedgerFile = "cloud.log";

// A cloud with a history and a provider without a memory: every fence would be forgotten.
Status CheckNotLost(const std::filesystem::path& data_dir) {
  const auto empty = [](const std::filesystem::path& file) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    return error || size == 0;
  };
  if (!empty(data_dir / LocalProvider::kStateFile) || empty(data_dir / kLedgerFile)) return {};
  return {Code::kDataLoss, fmt::format("{} is missing or empty, and {} shows that there was one; restore it from a "
                                       "backup, or move {} away to begin anew, without fences",
                                       (data_dir / LocalProvider::kStateFile).string(), kLedgerFile, kLedgerFile)};
}

}  // namespace

ProviderRole::ProviderRole(RoleOptions options)
    : options_(std::move(options)),
      ops_(options_.metrics_addr, options_.build, metrics_),
      rpc_({.address = options_.listen, .tls = options_.tls, .max_message_bytes = rpc::kLargeMessageBytes}) {
  metrics_
      .AddGauge("muster_build_info", "1, with the build in the labels.",
                {{"version", options_.build.version}, {"commit", options_.build.commit}})
      .Set(1);
  for (size_t state = 0; state < gauges_.size(); ++state) {
    const std::string name(model::StateName(static_cast<model::MachineState>(state)));
    gauges_[state] = &metrics_.AddGauge("muster_provider_machines", "Machines by state.", {{"state", name}});
  }
  operations_open_ = &metrics_.AddGauge("muster_provider_operations_open", "Operations the backend works on.", {});
  fenced_ = &metrics_.AddGauge("muster_provider_fenced", "Calls refused by a fence since the start.", {});
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "not started"); });
}

ProviderRole::~ProviderRole() { Stop(); }

Status ProviderRole::Start(std::stop_token) {
  if (options_.data_dir.empty()) {
    return {Code::kInvalidArgument, "--data-dir is missing; a provider keeps fences and machines there"};
  }
  auto dir = host::DataDir::Open(options_.data_dir, "--data-dir");
  if (!dir) return dir.error();
  data_dir_ = *std::move(dir);
  MUSTER_RETURN_IF_ERROR(CheckNotLost(options_.data_dir));
  auto backend = DurableSim::Open(options_.catalogue,
                                  {.name = options_.name, .machines = options_.machines, .seed = options_.seed},
                                  options_.data_dir / kLedgerFile);
  if (!backend) return backend.error();
  const LocalOptions local{
      .data_dir = options_.data_dir, .journal = options_.journal, .config = {.name = options_.name}};
  provider_ = std::make_unique<LocalProvider>(local, *std::move(backend), clock_);
  MUSTER_RETURN_IF_ERROR(provider_->Start());
  ops_.SetRefresh([this] { UpdateGauges(); });
  contract::ProviderPort& port = *this;
  service_ = rpc::MakeProviderService(port);
  MUSTER_RETURN_IF_ERROR(ops_.Start());
  const std::array<grpc::Service*, 1> services = {service_.get()};
  MUSTER_RETURN_IF_ERROR(rpc_.Start(services));
  ops_.SetReadyCheck("state", [this] { return provider_->status(); });
  log::Info("listening", {{"grpc", rpc_.address().ToString()},
                          {"http", ops_.address().ToString()},
                          {"name", options_.name},
                          {"machines", static_cast<int64_t>(options_.machines)}});
  rpc_.SetServing(true);
  rpc_.SetServing(true, rpc::kProviderService);
  ops_.SetReadyCheck("grpc", [] { return Status(); });
  return {};
}

void ProviderRole::Stop() {
  ops_.SetReadyCheck("grpc", [] { return Status(Code::kUnavailable, "stopping"); });
  rpc_.SetServing(false);
  if (provider_ != nullptr) provider_->Stop();  // first: it refuses what would keep the server waiting
  rpc_.Stop();
  ops_.Stop();
  service_.reset();
  provider_.reset();
  data_dir_.reset();
}

void ProviderRole::Ask(contract::ProviderRequest request, Duration timeout, Done done) {
  const char* method = kMethods[request.index()];
  const MonoTime start = clock_.Read().mono;
  provider_->Ask(std::move(request), timeout, [this, method, start, done = std::move(done)](auto result) {
    const Code code = result ? Code::kOk : result.error().code();
    metrics_
        .AddCounter("muster_provider_requests_total", "Calls answered, by method and code.",
                    {{"method", method}, {"code", CodeName(code)}})
        .Add();
    metrics_
        .AddHistogram("muster_provider_request_seconds", "Time to the answer of a call.",
                      {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}, {{"method", method}})
        .Observe(std::chrono::duration<double>(clock_.Read().mono - start).count());
    done(std::move(result));
  });
}

void ProviderRole::UpdateGauges() {
  const auto view = provider_->View();
  for (const auto& [state, count] : view->machines) {
    gauges_[static_cast<size_t>(state)]->Set(static_cast<double>(count));
  }
  operations_open_->Set(static_cast<double>(view->operations_open));
  fenced_->Set(static_cast<double>(view->fenced));
}

}  // namespace muster::provider
