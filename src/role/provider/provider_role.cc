#include "role/provider/provider_role.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "host/text_file.h"
#include "model/machine.h"
#include "provider/durable_sim.h"
#include "rpc/provider_service.h"

namespace muster::provider {
namespace {

constexpr std::array kMethods = {"Create", "Configure", "Drain", "Delete", "Get", "List"};  // as in ProviderRequest

constexpr std::string_view kLedgerFile = "cloud.log";
constexpr Duration kRetirePatience = 40s;
constexpr Duration kRetireStopPatience = 50s;

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

// The built-in one unless a file is given.
Status LoadCatalogue(const std::filesystem::path& file, Catalogue& into) {
  if (file.empty()) {
    into = DefaultCatalogue();
    return {};
  }
  const auto text = host::ReadTextFile(file);
  if (!text) return text.error();
  auto catalogue = ReadCatalogue(*text, file.string());
  if (!catalogue) return catalogue.error();
  into = *std::move(catalogue);
  return {};
}

}  // namespace

Duration RoleOptions::stop_patience() const {
  return retire ? kRetireStopPatience : host::Signals::Options().stop_patience;
}

void DeclareSettings(host::Settings& settings, RoleOptions& options) {
  rpc::DeclareServerSettings(settings, options.server, ":9100", ":9101");
  const auto catalogue = std::make_shared<std::filesystem::path>();
  settings
      .Require("--data-dir", "name a directory for the provider's state")
      // A name becomes part of machine ids and file lines.
      .Add("--name", options.name, "sim", host::Name("abcdefghijklmnopqrstuvwxyz0123456789-", "of a-z, 0-9 and -"),
           "Name of this provider; machine ids begin with it")
      .Choice("--backend", options.backend, {{"sim", BackendKind::kSim}, {"local", BackendKind::kLocal}}, "sim",
              "Where machines come from: sim is a simulated cloud, local starts agents on this computer")
      .Switch("--retire", options.retire, "With local: when the provider stops, its agents and what they run end too")
      .Add("--machines", options.machines, "100", host::WholeNumber<uint64_t>(1, 1'000'000),
           "How many machines there are at most")
      .Path("--catalogue", *catalogue, "YAML file of machine types; see --print-catalogue")
      .Add("--seed", options.seed, "1", host::WholeNumber<uint64_t>(0), "Seed of everything the simulated cloud draws")
      .Add("--create-timeout", options.config.create_timeout, "30m", host::PositiveDuration(),
           "How long a Create may take before its machine is Failed")
      .Add("--configure-timeout", options.config.configure_timeout, "30m", host::PositiveDuration(),
           "The same of a Configure")
      .Add("--drain-timeout", options.config.drain_timeout, "10m", host::PositiveDuration(),
           "The same of a Drain, after its grace")
      .Add("--delete-timeout", options.config.delete_timeout, "30m", host::PositiveDuration(), "The same of a Delete")
      .Check([catalogue, &options] { return LoadCatalogue(*catalogue, options.catalogue); });
}

ProviderMetrics::ProviderMetrics(metrics::Declarations& in)
    : machines(in, "muster_provider_machines", "Machines by state.", {"state"}),
      requests(in, "muster_provider_requests_total", "Calls answered, by method and code.", {"method", "code"}),
      request_seconds(in, "muster_provider_request_seconds", "Time to the answer of a call.", {"method"},
                      {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}),
      operations_open(in, "muster_provider_operations_open", "Operations the backend works on."),
      fenced(in, "muster_provider_fenced", "Calls refused by a fence since the start.") {}

ProviderRole::ProviderRole(RoleOptions options)
    : options_(std::move(options)), server_(options_.server), metrics_(server_.metrics()) {
  for (int state = 0; state <= 8; ++state) {  // every state is given, also where there is no machine
    metrics_.machines.With(model::StateName(static_cast<model::MachineState>(state))).Set(0);
  }
}

ProviderRole::~ProviderRole() { Stop(); }

Status ProviderRole::Start(std::stop_token) {
  const std::filesystem::path& data_dir = options_.server.data_dir;
  MUSTER_RETURN_IF_ERROR(server_.OpenDataDir());
  MUSTER_RETURN_IF_ERROR(CheckNotLost(data_dir));
  auto backend = OpenBackend();
  if (!backend) return backend.error();
  Config config = options_.config;
  config.name = options_.name;
  const LocalOptions local{.data_dir = data_dir, .journal = options_.server.journal, .config = std::move(config)};
  provider_ = std::make_unique<LocalProvider>(local, *std::move(backend), clock_);
  MUSTER_RETURN_IF_ERROR(provider_->Start());
  server_.SetRefresh([this] { UpdateGauges(); });
  contract::ProviderPort& port = *this;
  MUSTER_RETURN_IF_ERROR(server_.Listen({{rpc::kProviderService, rpc::MakeProviderService(port)}}));
  server_.SetReadyCheck("state", [this] { return provider_->status(); });
  server_.Serve({{"name", options_.name}, {"machines", static_cast<int64_t>(options_.machines)}});
  return {};
}

Result<std::unique_ptr<Backend>> ProviderRole::OpenBackend() {
  const std::filesystem::path& data_dir = options_.server.data_dir;
  if (options_.backend == BackendKind::kLocal) {
    std::error_code error;
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return Error(Code::kFailedPrecondition, "/proc/self/exe: " + error.message());
    auto local = std::make_unique<LocalBackend>(
        options_.catalogue,
        LocalBackendOptions{
            .name = options_.name, .machines = options_.machines, .root = data_dir / "machines", .program = program});
    local_ = local.get();
    return local;
  }
  MUSTER_ASSIGN_OR_RETURN(
      std::unique_ptr<Backend> sim,
      DurableSim::Open(options_.catalogue,
                       {.name = options_.name, .machines = options_.machines, .seed = options_.seed},
                       data_dir / kLedgerFile));
  return sim;
}

void ProviderRole::Stop() {
  server_.StopServing();
  if (provider_ != nullptr) provider_->Stop();
  if (local_ != nullptr && options_.retire) {
    const Status retired = local_->Retire(clock_, kRetirePatience);
    if (!retired.ok()) Fail("agents or workloads are left", retired);
  }
  local_ = nullptr;
  server_.Stop();
  provider_.reset();
  server_.CloseDataDir();
}

void ProviderRole::Ask(contract::ProviderRequest request, Duration timeout, Done done) {
  const char* method = kMethods[request.index()];
  const MonoTime start = clock_.Read().mono;
  provider_->Ask(std::move(request), timeout, [this, method, start, done = std::move(done)](auto result) {
    metrics_.requests.With(method, CodeName(result ? Code::kOk : result.error().code())).Add();
    metrics_.request_seconds.With(method).Observe(std::chrono::duration<double>(clock_.Read().mono - start).count());
    done(std::move(result));
  });
}

void ProviderRole::UpdateGauges() {
  const auto view = provider_->View();
  for (const auto& [state, count] : view->machines) {
    metrics_.machines.With(model::StateName(state)).Set(static_cast<double>(count));
  }
  metrics_.operations_open.With().Set(static_cast<double>(view->operations_open));
  metrics_.fenced.With().Set(static_cast<double>(view->fenced));
}

}  // namespace muster::provider
