#include "role/agent/local_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <ranges>
#include <utility>

#include "base/log.h"
#include "base/probe.h"

namespace muster::agent {
namespace {

// Until then a row that no longer names a secret is certainly stored.
constexpr Duration kStoredBy = 2s;

// A runtime may quote what it was given: the name of an image, the path of a volume.
std::string Hiding(std::string text, const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "(secret)");
      at += 8;
    }
  }
  return text;
}

}  // namespace

LocalAgent::LocalAgent(LocalOptions options, const Clock& clock, LocalHooks hooks)
    : options_(std::move(options)),
      clock_(clock),
      hooks_(std::move(hooks)),
      runner_(
          {.name = "agent", .state_file = options_.data_dir / kStateFile, .journal = options_.journal, .clock = clock},
          *this),
      // Unused ones are erased below; a bound of the vault's would erase those in use first, which are the oldest.
      secrets_({.directory = options_.data_dir / kSecretsDirectory, .most_bytes = std::numeric_limits<size_t>::max()}),
      meter_(options_.data_dir) {}

LocalAgent::~LocalAgent() { Stop(); }

Status LocalAgent::Start(const std::stop_token& stop) {
  OpenRuntimes();
  MUSTER_RETURN_IF_ERROR(runner_.Open([this](const contract::Recovered& rows) {
    Config config = options_.config;
    config.runtimes.clear();
    for (const auto& [name, runtime] : runtimes_) config.runtimes.push_back(runtime->type());
    auto core = Core::Recover(std::move(config), rows);
    if (!core) return core;
    const std::set<std::string> used = core->Secrets();
    if (Status opened = secrets_.Open(used); !opened.ok()) return Result<Core>(std::unexpected(opened));
    for (const std::string& handle : used) kept_[handle];
    return core;
  }));
  MUSTER_RETURN_IF_ERROR(runner_.Start());
  measures_ = std::thread([this] { MeasureUntilStopped(); });
  if (!WaitForRuntimes(stop)) return {Code::kCancelled, "stopped before every runtime had answered"};
  return {};
}

void LocalAgent::OpenRuntimes() {
  for (const auto& [name, make] : options_.runtimes) {
    auto runtime = make([this](contract::Run run) {
      CRASH_POINT("agent.before_report");
      runner_.Post(RunChanged{std::move(run)});
    });
    if (!runtime) {
      log::Warn("a runtime is not available", {{"runtime", name}, {"reason", runtime.error().message()}});
      absent_[name] = runtime.error().message();
      continue;
    }
    for (const std::string& missing : (*runtime)->Missing()) {
      log::Warn("a runtime cannot give everything", {{"runtime", name}, {"missing", missing}});
    }
    runtimes_[name] = *std::move(runtime);
  }
}

bool LocalAgent::WaitForRuntimes(const std::stop_token& stop) {
  const auto answered = [this] { return std::ranges::all_of(runner_.View()->runtimes, &RuntimeView::answered); };
  while (!answered()) {
    if (stop.stop_requested()) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

void LocalAgent::Stop() {
  runner_.Stop();
  {
    const std::lock_guard lock(mu_);
    stopping_ = true;
  }
  wakes_.notify_all();
  if (measures_.joinable()) measures_.join();
  // Readers of logs end with their runtimes, which must live until then: the runtimes are told first.
  for (auto& [name, runtime] : runtimes_) runtime->Close();
  ReapReaders(true);
  runtimes_.clear();
}

void LocalAgent::Ask(contract::AgentRequest request, Done done) {
  const bool changes = std::holds_alternative<contract::ApplyOnAgent>(request) ||
                       std::holds_alternative<contract::DeleteOnAgent>(request);
  if (const Status stored = runner_.state_status(); changes && !stored.ok()) {
    return done(Error(Code::kResourceExhausted, fmt::format("state cannot be stored: {}", stored.message())));
  }
  auto* const apply = std::get_if<contract::ApplyOnAgent>(&request);
  if (apply == nullptr || apply->spec.secret_env.empty()) {
    return runner_.Ask(Asked{.request = 0, .body = std::move(request)}, std::move(done));
  }
  auto handles = KeepSecrets(*apply);
  if (!handles) return done(Error(Code::kResourceExhausted, handles.error().message()));
  runner_.Ask(Asked{.request = 0, .body = std::move(request)},
              [this, handles = *std::move(handles), done = std::move(done)](Result<contract::AgentReply> reply) {
                Stepped(handles);
                done(std::move(reply));
              });
}

void LocalAgent::Join(contract::FullState state) {
  std::vector<std::string> handles;
  for (contract::ApplyOnAgent& apply : state.workloads) {
    if (apply.spec.secret_env.empty()) continue;
    if (auto kept = KeepSecrets(apply)) {
      handles.insert(handles.end(), kept->begin(), kept->end());
    } else {
      log::Err("a secret cannot be kept", {{"workload", apply.workload}, {"why", kept.error().message()}});
    }
  }
  runner_.Post(Joined{std::move(state)});
  if (handles.empty()) return;
  // Answered after that.
  runner_.Ask(Asked{.request = 0, .body = contract::ListOnAgent{}},
              [this, handles = std::move(handles)](const Result<contract::AgentReply>&) { Stepped(handles); });
}

// What cannot be kept is left empty: the workload runs on, and cannot be started anew.
Result<std::vector<std::string>> LocalAgent::KeepSecrets(contract::ApplyOnAgent& apply) {
  std::vector<std::string> handles;
  Status first;
  for (auto& [name, value] : apply.spec.secret_env) {
    auto handle = secrets_.Put(apply.workload, std::exchange(value, {}));
    if (!handle) {
      if (first.ok()) first = handle.error();
      continue;
    }
    value = *handle;
    if (!handle->empty()) handles.push_back(*std::move(handle));
  }
  {
    const std::lock_guard lock(mu_);
    for (const std::string& handle : handles) kept_[handle].stepped = false;
  }
  if (first.ok()) return handles;
  Stepped(handles);
  return std::unexpected(std::move(first));
}

void LocalAgent::Stepped(const std::vector<std::string>& handles) {
  const std::lock_guard lock(mu_);
  for (const std::string& handle : handles) kept_[handle].stepped = true;
}

Status LocalAgent::UseSecrets(contract::StartRun& start) const {
  for (auto& [name, handle] : start.spec.secret_env) {
    auto value = secrets_.Get(handle);
    if (handle.empty() || !value) {
      return {Code::kFailedPrecondition,
              fmt::format("secretEnv.{}: this node does not have its value; apply the workload again", name)};
    }
    start.spec.env[name] = *std::move(value);
    handle.clear();
  }
  return {};
}

void LocalAgent::EraseUnusedSecrets() {
  const auto view = runner_.View();
  const MonoTime now = clock_.Read().mono;
  const std::lock_guard lock(mu_);
  for (auto& [handle, kept] : kept_) {
    const bool used = !kept.stepped || view->secrets.contains(handle);
    if (used) kept.unused_since.reset();
    if (!used && !kept.unused_since) kept.unused_since = now;
  }
  std::erase_if(kept_, [&](const auto& entry) {
    const auto& [handle, kept] = entry;
    if (!kept.unused_since || now - *kept.unused_since < kStoredBy) return false;
    secrets_.Drop(handle);
    return true;
  });
}

void LocalAgent::StartCall(const Core::Call& call) {
  CRASH_POINT("agent.before_operation");
  const auto runtime = runtimes_.find(call.to);
  if (runtime == runtimes_.end()) {
    runner_.Complete({.id = call.id, .status = Status(Code::kUnavailable, "the runtime is closed")});
    return;
  }
  contract::RuntimeRequest request = call.request;
  std::vector<std::string> hidden;  // from what the runtime says
  if (auto* const start = std::get_if<contract::StartRun>(&request)) {
    if (Status used = UseSecrets(*start); !used.ok()) {
      return runner_.Complete({.id = call.id, .status = std::move(used)});
    }
    for (const auto& name : start->spec.secret_env | std::views::keys) hidden.push_back(start->spec.env.at(name));
  }
  runtime->second->Ask(std::move(request),
                       [this, id = call.id, hidden = std::move(hidden)](Result<contract::RuntimeReply> reply) {
                         CRASH_POINT("agent.after_operation");
                         Core::CallDone done{.id = id};
                         if (reply) {
                           for (contract::Run& run : reply->runs) run.message = Hiding(std::move(run.message), hidden);
                           done.reply = *std::move(reply);
                         } else {
                           done.status = Status(reply.error().code(), Hiding(reply.error().message(), hidden));
                         }
                         runner_.Complete(std::move(done));
                       });
}

void LocalAgent::Emit(const Core::Effect& effect) {
  if (const auto* answer = std::get_if<Answer>(&effect)) {
    CRASH_POINT("agent.before_answer");
    runner_.Give(*answer);
  } else if (const auto* acted = std::get_if<Acted>(&effect)) {
    actions_.Record(*acted, clock_.Read().wall);
  } else if (const auto* notice = std::get_if<Notice>(&effect)) {
    log::Warn("workload", {{"what", notice->what}, {"workload", notice->workload}, {"detail", notice->detail}});
  } else if (std::holds_alternative<StatesChanged>(effect)) {
    hooks_.states_changed();
  } else if (const auto* came = std::get_if<RuntimeCame>(&effect)) {
    log::Info("a runtime is available", {{"runtime", model::WorkloadTypeName(came->type)}});
    hooks_.runtime_came();
  }
}

// A status that is not durable yet is what heartbeats tell as well.
bool LocalAgent::IsRead(const Core::Effect& effect) const {
  const auto* answer = std::get_if<Answer>(&effect);
  if (answer == nullptr) return false;
  return !answer->reply || std::holds_alternative<contract::WorkloadStatus>(*answer->reply) ||
         std::holds_alternative<contract::ListedOnAgent>(*answer->reply);
}

void LocalAgent::MeasureUntilStopped() {
  std::unique_lock lock(mu_);
  while (!stopping_) {
    lock.unlock();
    Measured measured;
    for (const auto& [name, runtime] : runtimes_) {
      for (runtime::Usage& usage : runtime->Measure()) measured.usage.push_back(std::move(usage));
    }
    NodeUsage usage = meter_.Measure();
    EraseUnusedSecrets();
    if (!measured.usage.empty()) runner_.Post(std::move(measured));
    lock.lock();
    usage_ = std::move(usage);
    wakes_.wait_for(lock, options_.usage_interval, [this] { return stopping_; });
  }
}

NodeUsage LocalAgent::usage() const {
  const std::lock_guard lock(mu_);
  return usage_;
}

std::map<std::string, std::string> LocalAgent::RuntimeStatus() const {
  std::map<std::string, std::string> status = absent_;
  for (const RuntimeView& one : runner_.View()->runtimes) {
    status[std::string(model::WorkloadTypeName(one.type))] = one.status.ok() ? "ok" : one.status.message();
  }
  return status;
}

runtime::Runtime* LocalAgent::RuntimeOf(const std::string& workload) const {
  const auto view = runner_.View();
  const auto status = std::ranges::lower_bound(*view->statuses, workload, {}, &contract::WorkloadStatus::workload);
  if (status == view->statuses->end() || status->workload != workload) return nullptr;
  const auto runtime = runtimes_.find(std::string(model::WorkloadTypeName(status->type)));
  return runtime == runtimes_.end() ? nullptr : runtime->second.get();
}

// Each reader has a thread: a file that is followed has nothing to wait for.
void LocalAgent::Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) {
  ReapReaders(false);
  runtime::Runtime* const runtime = RuntimeOf(request.workload);
  if (runtime == nullptr) {
    return sink->End(Status(Code::kNotFound, fmt::format("the node has no workload {}", request.workload)));
  }
  std::unique_lock lock(mu_);
  if (stopping_ || readers_.size() >= options_.log_readers) {
    const bool stopping = stopping_;
    lock.unlock();
    return sink->End(stopping ? Status(Code::kUnavailable, "the agent is stopping")
                              : Status(Code::kResourceExhausted,
                                       fmt::format("{} logs are being read; end one of them", options_.log_readers)));
  }
  auto ended = std::make_shared<std::atomic<bool>>(false);
  readers_.push_back({.thread = std::thread([runtime, ended, request = std::move(request), sink = std::move(sink)] {
                        runtime->ReadLogs(request, *sink);
                        *ended = true;
                      }),
                      .ended = ended});
}

void LocalAgent::ReapReaders(bool all) {
  std::vector<Reader> done;
  {
    const std::lock_guard lock(mu_);
    const auto first = std::partition(readers_.begin(), readers_.end(),
                                      [all](const Reader& reader) { return !all && !reader.ended->load(); });
    std::move(first, readers_.end(), std::back_inserter(done));
    readers_.erase(first, readers_.end());
  }
  for (Reader& reader : done) reader.thread.join();
}

}  // namespace muster::agent
