#include "role/provider/local_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/probe.h"

namespace muster::provider {
namespace {

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
              *this) {}

LocalProvider::~LocalProvider() { Stop(); }

Status LocalProvider::Start() {
  MUSTER_RETURN_IF_ERROR(runner_.Open([this](const contract::Recovered& rows) {
    Config config = config_;
    config.new_lineage = RandomNumber();
    auto core = Core::Recover(config, backend_->Slots(), rows);
    if (core) backend_->Adopt(core->Machines(), clock_.Read());
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
  if (const Status stored = runner_.state_status(); !stored.ok()) {
    return done(Error(Code::kUnavailable, fmt::format("state cannot be stored: {}", stored.message())));
  }
  runner_.Ask(Asked{.request = 0, .body = std::move(request)}, std::move(done));
}

void LocalProvider::Emit(const Core::Effect& effect) {
  CRASH_POINT("provider.before_answer");
  runner_.Give(std::get<Answer>(effect));
  CRASH_POINT("provider.after_answer");
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
      if (wait > Duration::zero()) backend_wakes_.wait_for(lock, std::min<Duration>(wait, 1h), ready);
      if (stopping_) return;
      to_start.swap(to_start_);
    }
    const Now now = clock_.Read();
    for (const auto& [call, operation] : to_start) backend_->Start(call, operation, now);
    to_start.clear();
    backend_->Poll(now, reports);
    for (const Report& report : reports) Tell(report);
    reports.clear();
  }
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
}

}  // namespace muster::provider
