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
    : options_(std::move(options)), clock_(clock), backend_(std::move(backend)) {}

LocalProvider::~LocalProvider() { Stop(); }

Status LocalProvider::Start() {
  auto persist = host::SqlitePersist::Open(options_.data_dir / kStateFile, std::string(Core::kName));
  if (!persist) return persist.error();
  persist_ = *std::move(persist);
  auto rows = persist_->Recover();
  if (!rows) return rows.error();
  Config config = options_.config;
  config.new_lineage = RandomNumber();
  auto core = Core::Recover(config, backend_->Slots(), *rows);
  if (!core) return core.error();
  rows->clear();
  backend_->Adopt(core->Machines(), clock_.Read());
  if (!options_.journal.empty()) {
    auto journal = host::JournalWriter::Open(options_.journal, std::string(Core::kName));
    if (!journal) return journal.error();
    journal_ = *std::move(journal);
  }
  host::ThreadHost<Core>::Shell& shell = *this;
  host_ = std::make_unique<host::ThreadHost<Core>>(
      *std::move(core), shell,
      host::ThreadHost<Core>::Options{.clock = clock_, .persist = *persist_, .journal = journal_.get()});
  MUSTER_RETURN_IF_ERROR(host_->Start());
  backend_thread_ = std::thread([this] { RunBackend(); });
  return {};
}

void LocalProvider::Stop() {
  if (host_ != nullptr) host_->Stop();
  std::unordered_map<contract::RequestId, Done> left;
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
    left.swap(waiting_);
  }
  backend_wakes_.notify_all();
  if (backend_thread_.joinable()) backend_thread_.join();
  for (auto& [id, done] : left) done(Error(Code::kUnavailable, "the provider is stopping; ask again"));
}

void LocalProvider::Ask(contract::ProviderRequest request, Duration, Done done) {
  if (const Status stored = host_->persist_status(); !stored.ok()) {
    return done(Error(Code::kUnavailable, fmt::format("state cannot be stored: {}", stored.message())));
  }
  contract::RequestId id = 0;
  {
    const std::lock_guard lock(mu_);
    if (!stopping_) {
      id = ++last_request_;
      waiting_.emplace(id, done);
    }
  }
  if (id != 0 && host_->Post(Asked{.request = id, .body = std::move(request)})) return;
  // Whoever takes it out of the table answers: this thread, or Stop.
  bool mine = id == 0;
  if (id != 0) {
    const std::lock_guard lock(mu_);
    mine = waiting_.erase(id) > 0;
  }
  if (mine) done(Error(Code::kUnavailable, "the provider is stopping; ask again"));
}

void LocalProvider::Emit(const Core::Effect& effect) {
  const auto& answer = std::get<Answer>(effect);
  Done done;
  {
    const std::lock_guard lock(mu_);
    const auto waiting = waiting_.find(answer.request);
    if (waiting == waiting_.end()) return;
    done = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  CRASH_POINT("provider.before_answer");
  if (answer.status.ok()) {
    done(*std::move(answer.reply));
  } else {
    done(std::unexpected(answer.status));
  }
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
    host_->Post(Observed{*observed});
    return;
  }
  const auto& ended = std::get<OperationEnded>(report);
  Core::CallDone done{.id = ended.call, .status = ended.status, .reply = {}};
  if (ended.status.ok()) done.reply = ended.done;
  host_->Complete(std::move(done));
}

}  // namespace muster::provider
