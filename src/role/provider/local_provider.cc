#include "role/provider/local_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/probe.h"

namespace muster::provider {
namespace {

constexpr size_t kMostSecretBytes = 256 << 20;  // of one shard; Configures under way have them
// After an operation ended it may be asked for once more: the process died before that was stored.
constexpr Duration kStoredBy = 2s;

uint64_t RandomNumber() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

LocalProvider::LocalProvider(LocalOptions options, std::unique_ptr<Backend> backend, const Clock& clock)
    : config_(std::move(options.config)),
      clock_(clock),
      backend_(std::move(backend)),
      runner_({.name = "provider",
               .state_file = options.data_dir / kStateFile,
               .journal = std::move(options.journal),
               .clock = clock},
              *this),
      secrets_({.directory = options.data_dir / kSecretsDirectory, .most_bytes = kMostSecretBytes}) {}

LocalProvider::~LocalProvider() { Stop(); }

Status LocalProvider::Start() {
  MUSTER_RETURN_IF_ERROR(runner_.Open([this](const contract::Recovered& rows) {
    Config config = config_;
    config.new_lineage = RandomNumber();
    auto core = Core::Recover(config, backend_->Slots(), rows);
    if (!core) return core;
    if (Status opened = secrets_.Open(core->Blobs()); !opened.ok()) return Result<Core>(std::unexpected(opened));
    backend_->Adopt(core->Machines(), clock_.Read());
    return core;
  }));
  MUSTER_RETURN_IF_ERROR(runner_.Start());
  backend_thread_ = std::thread([this] { RunBackend(); });
  return {};
}

void LocalProvider::Stop() {
  runner_.Stop();
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  backend_wakes_.notify_all();
  if (backend_thread_.joinable()) backend_thread_.join();
}

void LocalProvider::Ask(contract::ProviderRequest request, Duration, Done done) {
  const bool reads =
      std::holds_alternative<contract::GetRequest>(request) || std::holds_alternative<contract::ListRequest>(request);
  if (const Status stored = runner_.state_status(); !reads && !stored.ok()) {
    return done(Error(Code::kUnavailable, fmt::format("state cannot be stored: {}", stored.message())));
  }
  if (auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
    return AskConfigure(std::move(*configure), std::move(done));
  }
  runner_.Ask(Asked{.request = 0, .body = std::move(request)}, std::move(done));
}

// The data is durable before the core can accept the request. A request that is refused, or changes nothing, leaves
// none.
void LocalProvider::AskConfigure(contract::ConfigureRequest request, Done done) {
  const std::string machine = request.machine_id;
  auto kept = secrets_.Put(request.fence.shard_id, std::move(request.bootstrap_blob));
  if (!kept) return done(std::unexpected(kept.error()));
  const std::string handle = *kept;
  request.bootstrap_blob = *std::move(kept);
  if (!handle.empty()) {
    const std::lock_guard lock(mu_);
    offered_[machine].push_back(handle);
  }
  runner_.Ask(Asked{.request = 0, .body = std::move(request)},
              [this, machine, handle, done = std::move(done)](Result<contract::ProviderReply> result) {
                const auto* ack = result ? std::get_if<contract::TransitionAck>(&*result) : nullptr;
                const bool goes_on = ack != nullptr && ack->machine->state == model::MachineState::kConfiguring;
                // A provider that stops does not know what the core decided.
                const bool unknown = !result && result.error().code() == Code::kUnavailable;
                if (!goes_on && !unknown && !handle.empty()) {
                  secrets_.Drop(handle);
                  const std::lock_guard lock(mu_);
                  const auto offered = offered_.find(machine);
                  if (offered != offered_.end()) {
                    std::erase(offered->second, handle);
                    if (offered->second.empty()) offered_.erase(offered);
                  }
                }
                done(std::move(result));
              });
}

// A transition that is refused has left its mark: were that lost, an older token would pass that came after it.
void LocalProvider::Stepped(std::span<const Core::Effect> effects, Duration /*took*/) {
  const bool stores = std::ranges::any_of(
      effects, [](const Core::Effect& effect) { return std::holds_alternative<contract::Persist>(effect); });
  if (!stores) return;
  for (const Core::Effect& effect : effects) {
    if (const auto* answer = std::get_if<Answer>(&effect)) marked_.insert(answer->request);
  }
}

void LocalProvider::Emit(const Core::Effect& effect) {
  CRASH_POINT("provider.before_answer");
  marked_.erase(std::get<Answer>(effect).request);
  runner_.Give(std::get<Answer>(effect));
  CRASH_POINT("provider.after_answer");
}

// Asked of what may go before it is durable, and goes then.
bool LocalProvider::IsRead(const Core::Effect& effect) const {
  const auto* answer = std::get_if<Answer>(&effect);
  if (answer == nullptr || marked_.contains(answer->request)) return false;
  if (!answer->reply) return true;
  auto* const list = std::get_if<contract::ListReply>(&*answer->reply);
  if (list != nullptr) list->revision.clear();
  return list != nullptr || std::holds_alternative<contract::GetReply>(*answer->reply);
}

void LocalProvider::StartCall(const Core::Call& call) {
  CRASH_POINT("provider.before_start");
  {
    const std::lock_guard lock(mu_);
    to_start_.emplace_back(call.id, call.request);
  }
  backend_wakes_.notify_one();
}

void LocalProvider::RunBackend() {
  std::vector<std::pair<contract::CallId, contract::Operation>> to_start;
  std::vector<Report> reports;
  while (true) {
    {
      std::unique_lock lock(mu_);
      const auto ready = [this] { return stopping_ || !to_start_.empty(); };
      Duration wait = 1h;
      if (const auto next = backend_->NextPoll()) wait = *next - clock_.Read().mono;
      if (!used_.empty()) wait = std::min(wait, kStoredBy);
      if (wait > Duration::zero()) backend_wakes_.wait_for(lock, std::min<Duration>(wait, 1h), ready);
      if (stopping_) return;
      to_start.swap(to_start_);
    }
    const Now now = clock_.Read();
    for (auto& [call, operation] : to_start) StartOperation(call, std::move(operation), now);
    to_start.clear();
    EraseUsed(now);
    backend_->Poll(now, reports);
    for (const Report& report : reports) Tell(report);
    reports.clear();
  }
}

void LocalProvider::StartOperation(contract::CallId call, contract::Operation operation, Now now) {
  if (operation.kind == contract::OperationKind::kConfigure) {
    auto blob = secrets_.Get(operation.bootstrap_blob);
    if (!blob) {
      return runner_.Complete(
          {.id = call, .status = {Code::kDataLoss, "the bootstrap data is gone; configure it again"}, .reply = {}});
    }
    configuring_.emplace(call, operation.machine->id);
    if (!operation.bootstrap_blob.empty()) {
      const std::lock_guard lock(mu_);
      auto& offered = offered_[operation.machine->id];  // one of an earlier process is not there yet
      if (std::ranges::find(offered, operation.bootstrap_blob) == offered.end()) {
        offered.push_back(operation.bootstrap_blob);
      }
    }
    operation.bootstrap_blob = *std::move(blob);
  }
  backend_->Start(call, operation, now);
}

void LocalProvider::EraseUsed(Now now) {
  std::erase_if(used_, [&](const auto& used) {
    if (now.mono - used.first < kStoredBy) return false;
    secrets_.Drop(used.second);
    return true;
  });
}

void LocalProvider::Tell(const Report& report) {
  if (const auto* observed = std::get_if<contract::Observation>(&report)) {
    runner_.Post(Observed{*observed});
    return;
  }
  const auto& ended = std::get<OperationEnded>(report);
  Core::CallDone done{.id = ended.call, .status = ended.status, .reply = {}};
  if (ended.status.ok()) done.reply = ended.done;
  runner_.Complete(std::move(done));
  const auto configured = configuring_.find(ended.call);
  if (configured == configuring_.end()) return;
  const MonoTime now = clock_.Read().mono;
  const std::lock_guard lock(mu_);
  if (const auto offered = offered_.find(configured->second); offered != offered_.end()) {
    for (std::string& handle : offered->second) used_.emplace_back(now, std::move(handle));
    offered_.erase(offered);
  }
  configuring_.erase(configured);
}

}  // namespace muster::provider
