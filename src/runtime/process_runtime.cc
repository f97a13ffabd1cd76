#include "runtime/process_runtime.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>
#include <variant>

#include "base/log.h"
#include "base/overloaded.h"
#include "model/names.h"
#include "runtime/log_reader.h"
#include "runtime/log_stream.h"
#include "runtime/proc_usage.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWorkers = 4;
constexpr size_t kLastLines = 20;
constexpr size_t kLastBytes = 2 << 10;
constexpr uint64_t kWakeNumber = 0;

contract::RuntimeReply Only(contract::Run run) {
  contract::RuntimeReply reply;
  reply.runs.push_back(std::move(run));
  return reply;
}

// Users are by a hash: whoever names workloads could search for a name that has the user of another's.
Status CheckUserIsFree(const std::filesystem::path& root, const std::string& workload) {
  const uid_t user = OwnUser(root.string(), workload);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string other = entry.path().filename();
    if (other == workload || OwnUser(root.string(), other) != user) continue;
    return {Code::kInvalidArgument,
            fmt::format("its user would be that of {} on this node; give it another name", model::Quoted(other))};
  }
  return {};
}

}  // namespace

Result<fs::path> FindShimProgram() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / "muster-shim";
  if (!error && access(beside.c_str(), X_OK) == 0) return beside;
  return Error(Code::kNotFound, fmt::format("{} is missing; install muster-shim beside muster", beside.string()));
}

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::Open(ProcessOptions options, const Clock& clock, Ended ended) {
  std::error_code error;
  fs::create_directories(options.root, error);
  if (error || chmod(options.root.c_str(), 0711) != 0) {
    return Error(Code::kFailedPrecondition, fmt::format("cannot make {}: {}", options.root.string(),
                                                        error ? error.message() : "it belongs to another user"));
  }
  options.root = fs::canonical(options.root, error);
  if (access(options.shim.c_str(), X_OK) != 0) {
    return Error(Code::kFailedPrecondition, fmt::format("{} cannot be executed", options.shim.string()));
  }
  std::unique_ptr<ProcessRuntime> runtime(new ProcessRuntime(std::move(options), clock, std::move(ended)));
  if (runtime->epoll_ < 0 || runtime->wake_ < 0) {
    return Error(Code::kUnavailable, "cannot watch processes: too many open files");
  }
  return runtime;
}

ProcessRuntime::ProcessRuntime(ProcessOptions options, const Clock& clock, Ended ended)
    : options_(std::move(options)),
      clock_(clock),
      ended_(std::move(ended)),
      cgroups_(Cgroups::Detect(options_.cgroups, options_.name)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      workers_(kWorkers) {
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWakeNumber}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  watcher_ = std::thread([this] { Watch(); });
}

ProcessRuntime::~ProcessRuntime() {
  Close();
  close(epoll_);
  close(wake_);
}

void ProcessRuntime::Close() {
  if (closing_.exchange(true)) return;
  workers_.Stop();
  const uint64_t one = 1;
  if (write(wake_, &one, sizeof(one)) < 0) log::Warn("the watch of processes ends late");
  watcher_.join();
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mu_);
    for (auto& [number, watched] : watched_) {
      for (Done& done : watched.waiting) waiting.push_back(std::move(done));
    }
    watched_.clear();
    newest_.clear();
  }
  for (Done& done : waiting) done(Error(Code::kUnavailable, "the agent is stopping"));
}

void ProcessRuntime::Ask(contract::RuntimeRequest request, Done done) {
  const auto shared = std::make_shared<Done>(std::move(done));
  const bool taken = workers_.Post([this, request = std::move(request), shared] {
    std::visit(Overloaded{
                   [&](const contract::StartRun& start) { (*shared)(Start(start)); },
                   [&](const contract::StopRun& stop) { Stop(stop.workload, stop.grace, std::move(*shared)); },
                   [&](const contract::RemoveRun& remove) { Remove(remove.workload, std::move(*shared)); },
                   [&](const contract::ListRuns&) { (*shared)(List()); },
               },
               request);
  });
  if (!taken) (*shared)(Error(Code::kUnavailable, "the agent is stopping"));
}

ProcessRuntime::Reply ProcessRuntime::Start(const contract::StartRun& start) {
  if (Status checked = CheckProcess(start); !checked.ok()) return std::unexpected(std::move(checked));
  const ProcessFiles files = FilesOf(start.workload);
  const std::optional<FoundProcess> before = files.Find();
  if (before && before->launch.number > start.launch) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("launch {} of {} is old: it has {}", start.launch, start.workload, before->launch.number));
  }
  const bool same = before && before->launch.number == start.launch;
  if (same && (before->shim != 0 || before->started || before->exit)) return StartAgain(start, *before);
  if (before && before->shim != 0) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("launch {} of {} has not ended", before->launch.number, start.workload));
  }
  MUSTER_ASSIGN_OR_RETURN(const shim::Launch launch, Prepare(start, before));
  if (Status written = files.WriteLaunch(launch); !written.ok()) return std::unexpected(std::move(written));
  auto shim = ShimProcess::Start(options_.shim, files.directory(), options_.start_patience);
  const auto found = files.Find();
  if (shim && found) {
    ForgetSecrets(start, *found);
    AddWatch(*found, *std::move(shim));
    return Only(Describe(*found));
  }
  // The files say whether it could not be started, or runs in silence.
  if (found && found->exit) return Only(Describe(*found));
  if (const auto run = Look(start.workload); run && run->running) return Only(*run);
  return Error(Code::kUnavailable, shim ? "its files are gone" : shim.error().message());
}

// A launch that was asked for before: nothing is started.
ProcessRuntime::Reply ProcessRuntime::StartAgain(const contract::StartRun& start, const FoundProcess& found) {
  ForgetSecrets(start, found);
  if (const auto run = Look(start.workload)) return Only(*run);
  return Only(Describe(found));
}

// A launch that has begun is not begun again, so that nothing reads its environment any more.
void ProcessRuntime::ForgetSecrets(const contract::StartRun& start, const FoundProcess& found) const {
  if (start.spec.secret_env.empty() || !(found.started || found.exit)) return;
  shim::Launch launch = found.launch;
  launch.environment.clear();
  if (const Status written = FilesOf(start.workload).WriteLaunch(launch); !written.ok()) {
    log::Warn("secrets stay in a launch file", {{"workload", start.workload}, {"why", written.message()}});
  }
}

Result<shim::Launch> ProcessRuntime::Prepare(const contract::StartRun& start,
                                             const std::optional<FoundProcess>& before) const {
  const ProcessFiles files = FilesOf(start.workload);
  if (before) KillLeftovers(*before);
  shim::Launch launch = LaunchOf(start, files.work());
  launch.log_bytes = options_.log_bytes;
  launch.log_files = options_.log_files;
  launch.change_user = options_.user.mode != ProcessUser::Mode::kAgent;
  launch.user = options_.user.user;
  launch.group = options_.user.group;
  if (options_.user.mode == ProcessUser::Mode::kOwn) {
    launch.user = launch.group = OwnUser(options_.root.string(), start.workload);
    if (Status free = CheckUserIsFree(options_.root, start.workload); !free.ok())
      return std::unexpected(std::move(free));
  }
  if (Status made = files.Make(launch.change_user, launch.user, launch.group); !made.ok()) {
    return std::unexpected(std::move(made));
  }
  MUSTER_ASSIGN_OR_RETURN(CgroupFiles cgroup, cgroups_.Create(start.workload, LimitsOf(start.spec)));
  launch.cgroup_procs = std::move(cgroup.procs);
  launch.oom_file = std::move(cgroup.oom_file);
  return launch;
}

void ProcessRuntime::Stop(const std::string& workload, Duration grace, Done done) {
  const auto run = Look(workload);
  if (!run || !run->running) return done(run ? Reply(Only(*run)) : Reply(contract::RuntimeReply{}));
  {
    const std::lock_guard lock(mu_);
    if (Watched* const watched = FindWatched(workload); watched != nullptr && watched->launch == run->launch) {
      watched->shim.Stop(grace);
      watched->waiting.push_back(std::move(done));
      return;
    }
  }
  // It has ended between the two looks.
  const auto ended = Look(workload);
  done(ended ? Reply(Only(*ended)) : Reply(contract::RuntimeReply{}));
}

void ProcessRuntime::Remove(const std::string& workload, Done done) {
  if (!model::IsWorkloadId(workload)) return done(Error(Code::kInvalidArgument, "workload: it is no id"));
  const ProcessFiles files = FilesOf(workload);
  const auto found = files.Find();
  if (found && found->shim != 0) {
    // Killed first; the rest goes on where its end is seen.
    return Stop(workload, Duration::zero(), [this, workload, done = std::move(done)](Reply stopped) mutable {
      if (!stopped) return done(std::move(stopped));
      Ask(contract::RemoveRun{.workload = workload}, std::move(done));
    });
  }
  if (found) KillLeftovers(*found);
  cgroups_.Remove(workload);
  if (Status removed = files.Remove(); !removed.ok()) return done(std::unexpected(std::move(removed)));
  done(contract::RuntimeReply{});
}

ProcessRuntime::Reply ProcessRuntime::List() {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> workloads, ProcessFiles::List(options_.root));
  contract::RuntimeReply reply;
  for (const std::string& workload : workloads) {
    if (auto run = Look(workload)) reply.runs.push_back(*std::move(run));
  }
  return reply;
}

std::optional<contract::Run> ProcessRuntime::Look(const std::string& workload) {
  const ProcessFiles files = FilesOf(workload);
  auto shim = ShimProcess::Find(files);
  const auto found = files.Find();
  if (!found) return std::nullopt;
  if (shim) AddWatch(*found, *std::move(shim));
  return Describe(*found);
}

void ProcessRuntime::AddWatch(const FoundProcess& found, ShimProcess shim) {
  const std::lock_guard lock(mu_);
  const pid_t process = found.started ? found.started->process : 0;
  if (Watched* const watched = FindWatched(found.launch.workload); watched && watched->launch == found.launch.number) {
    watched->process = process;
    return;
  }
  const uint64_t number = ++last_number_;
  newest_[found.launch.workload] = number;
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = number}};
  const int descriptor = shim.descriptor();
  watched_.emplace(number, Watched{.workload = found.launch.workload,
                                   .shim = std::move(shim),
                                   .launch = found.launch.number,
                                   .process = process});
  epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

ProcessRuntime::Watched* ProcessRuntime::FindWatched(const std::string& workload) {
  const auto number = newest_.find(workload);
  return number == newest_.end() ? nullptr : &watched_.at(number->second);
}

contract::Run ProcessRuntime::Describe(const FoundProcess& found) const {
  contract::Run run = RunOf(found);
  run.metadata["process.user"] = found.launch.change_user ? std::to_string(found.launch.user) : "agent";
  run.metadata["process.limits"] = found.launch.cgroup_procs.empty() ? "none" : "cgroup";
  if (!run.running && run.exit_code != 0) {
    run.output = LastOutput(FilesOf(run.workload).directory(), kLastLines, kLastBytes);
  }
  return run;
}

void ProcessRuntime::Watch() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int ready = epoll_wait(epoll_, events.data(), events.size(), -1);
    if (ready < 0 && errno != EINTR) {
      log::Err("processes cannot be watched", {{"error", std::generic_category().message(errno)}});
      return;
    }
    for (int i = 0; i < ready; ++i) {
      const uint64_t number = events[static_cast<size_t>(i)].data.u64;
      if (number == kWakeNumber) return;
      OnShimEnded(number);
    }
  }
}

void ProcessRuntime::OnShimEnded(uint64_t number) {
  std::optional<Watched> ended;
  {
    const std::lock_guard lock(mu_);
    const auto watched = watched_.find(number);
    if (watched == watched_.end()) return;
    ended = std::move(watched->second);
    watched_.erase(watched);
    if (newest_[ended->workload] == number) newest_.erase(ended->workload);
  }
  ended->shim.Reap();
  const auto found = FilesOf(ended->workload).Find();
  const bool same = found && found->launch.number == ended->launch;
  if (!same) {
    // Removed, or launched again by who has seen its end before.
    for (Done& done : ended->waiting) done(contract::RuntimeReply{});
    return;
  }
  if (!found->exit) KillLeftovers(*found);
  contract::Run run = Describe(*found);
  run.running = false;
  if (!found->exit) run.ended_at = clock_.Read().wall;
  for (Done& done : ended->waiting) done(Only(run));
  ended_(std::move(run));
}

// Of a launch whose shim is gone. The process itself has died with its shim.
void ProcessRuntime::KillLeftovers(const FoundProcess& found) const {
  if (found.exit || !found.started) return;
  cgroups_.Kill(found.launch.workload);
  // The number of a group is not given to another one while a process of it lives. A process of that number is dying,
  // or is another one.
  const pid_t process = found.started->process;
  if (process > 1 && SessionOf(process) < 0) kill(-process, SIGKILL);
}

void ProcessRuntime::ReadLogs(const contract::ReadLogs& request, contract::LogsSink& sink) {
  const ProcessFiles files = FilesOf(request.workload);
  if (!model::IsWorkloadId(request.workload) || !fs::exists(files.directory())) {
    sink.End(Status(Code::kNotFound, fmt::format("the node has no workload {}", request.workload)));
    return;
  }
  StreamLogs(files.directory(), request, sink, [this] { return closing_.load(); });
}

std::vector<Usage> ProcessRuntime::Measure() {
  const Now now = clock_.Read();
  std::vector<Usage> usage;
  const std::lock_guard lock(mu_);
  for (auto& [number, watched] : watched_) usage.emplace_back(watched.workload, UsageOf(watched, now));
  return usage;
}

contract::WorkloadUsage ProcessRuntime::UsageOf(Watched& watched, Now now) const {
  contract::WorkloadUsage usage{.collected_at = now.wall, .source = "cgroup"};
  CgroupUsage measured = cgroups_.Read(watched.workload);
  if (!measured.cpu_ns || !measured.memory_bytes) {
    const CgroupUsage proc = UsageOfSession(watched.process);
    usage.source = measured.cpu_ns || measured.memory_bytes ? "cgroup" : "proc";
    if (!measured.cpu_ns) measured.cpu_ns = proc.cpu_ns;
    if (!measured.memory_bytes) measured.memory_bytes = proc.memory_bytes;
  }
  const int64_t cpu_ns = measured.cpu_ns.value_or(0);
  usage.memory_bytes = measured.memory_bytes.value_or(0);
  if (watched.at && now.mono > *watched.at && cpu_ns >= watched.cpu_ns) {
    usage.cpu_milli = (cpu_ns - watched.cpu_ns) * 1000 / (now.mono - *watched.at).count();
  }
  watched.cpu_ns = cpu_ns;
  watched.at = now.mono;
  return usage;
}

std::vector<std::string> ProcessRuntime::Missing() const {
  std::vector<std::string> missing;
  for (const std::string& one : cgroups_.missing()) missing.push_back(fmt::format("limits of processes: {}", one));
  if (options_.user.mode == ProcessUser::Mode::kAgent) {
    missing.push_back("users of processes: they run as the agent's user and can read what the agent can");
  }
  return missing;
}

}  // namespace muster::runtime
