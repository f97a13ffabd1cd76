#include "provider/local_backend.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "host/children.h"
#include "host/json_object.h"
#include "host/text_file.h"
#include "model/requirement.h"
#include "model/yaml_reader.h"

namespace muster::provider {
namespace {

namespace fs = std::filesystem;
using contract::OperationDone;
using contract::OperationKind;

constexpr Duration kBusyPoll = 50ms;
constexpr Duration kIdlePoll = 500ms;
constexpr Duration kRestartPause = 1s;
// Time for a program of an earlier life of this provider, which still ends what the agent left, to finish.
constexpr int kRetireTries = 10;
constexpr int kConfigureStarts = 5;
constexpr Duration kJoinUsuallyTakes = 30s;
constexpr int kExecFailed = 127;
constexpr std::string_view kStatusFile = "agent.status";

std::unexpected<Status> Failure(const fs::path& path, const std::error_code& error) {
  return std::unexpected(Status(Code::kInternal, fmt::format("{}: {}", path.string(), error.message())));
}

// Private to its user: the text may hold a join token.
Status WriteSecret(const fs::path& path, std::string_view text) {
  const fs::path draft = path.string() + ".new";
  const int file = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return {Code::kInternal, fmt::format("cannot write {}", draft.string())};
  // Without the fsync a power cut may leave the new name with no text: an agent without its flags joins under the name
  // of the host.
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(file) == 0;
  close(file);
  std::error_code error;
  if (whole) fs::rename(draft, path, error);
  if (whole && !error) return {};
  return {Code::kInternal, fmt::format("cannot write {}; check space and permissions", path.string())};
}

// Whether the process lives and is the agent of the directory by its command line: numbers are used again. What runs
// behind an agent may name its directory too, and so does the program that retires it.
bool IsAgentOf(pid_t pid, const fs::path& data_dir) {
  if (pid <= 0) return false;
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // takes what there is: an iterator would throw for a process that ends meanwhile
  const std::string line = text.str();
  const std::string flag = std::string("--data-dir") + '\0' + data_dir.string() + '\0';
  return line.contains(std::string("\0agent\0", 7)) && line.contains(flag) && !line.contains("--retire");
}

std::string Labels(const model::Machine& machine) {
  std::string text;
  const auto add = [&text](std::string_view key, std::string_view value) {
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  };
  for (const auto& [key, value] : machine.labels) add(key, value);
  add(model::kInstanceTypeKey, machine.instance_type);
  add(model::kZoneKey, machine.zone);
  add("kubernetes.io/hostname", machine.id);
  return text;
}

// Milli-units as a quantity: cpu in millicores, everything else in whole units.
std::string Amount(const model::Resources& resources, std::string_view name) {
  const int64_t milli = resources.Get(name);
  return name == "cpu" ? fmt::format("{}m", milli) : fmt::format("{}", milli / 1000);
}

bool IsSecretOption(std::string_view name) {
  constexpr std::array<std::string_view, 3> kWords = {"token", "secret", "password"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.contains(word); });
}

// What an agent that has joined needs to come back: the options of its configuration as one flat object, which is YAML
// too, without those that are secrets and without what else stands in the text.
Result<std::string> OptionsOf(const std::string& blob) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<model::TextValue> documents, model::ReadYaml(blob, "bootstrap data"));
  host::JsonObject options;
  if (!documents.empty()) {
    for (const model::TextField& field : documents[0].fields) {
      if (IsSecretOption(field.key)) continue;
      std::string value = field.value.scalar;
      for (const model::TextValue& item : field.value.items) value += (value.empty() ? "" : ",") + item.scalar;
      options.Add(field.key, value);
    }
  }
  return options.Take() + "\n";
}

// A file in memory with this text, to be read from its begin; -1 if there is none.
int InMemory(std::string_view text) {
  const int file = memfd_create("bootstrap", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && lseek(file, 0, SEEK_SET) == 0) {
    return file;
  }
  close(file);
  return -1;
}

// One spelling for one directory: agents are found by it.
LocalBackendOptions WithCanonicalRoot(LocalBackendOptions options) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(fs::absolute(options.root, error), error);
  if (!error) options.root = root;
  return options;
}

}  // namespace

LocalBackend::LocalBackend(Catalogue catalogue, LocalBackendOptions options)
    : catalogue_(std::move(catalogue)), options_(WithCanonicalRoot(std::move(options))) {}

std::vector<contract::Slot> LocalBackend::Slots() const {
  return MakeSlots(catalogue_, options_.name, options_.machines);
}

void LocalBackend::Adopt(std::span<const contract::MachineRecord> machines, Now now) {
  for (const contract::MachineRecord& machine : machines) {
    const bool serves = machine->state == model::MachineState::kConfigured;
    if (serves) configured_.insert(machine->id);
  }
  next_poll_ = now.mono;
}

void LocalBackend::Start(contract::CallId call, const contract::Operation& operation, Now now) {
  const std::string& machine = operation.machine->id;
  const auto at = running_.find(machine);
  if (at != running_.end() && at->second.operation.id == operation.id) {
    at->second.call = call;
  } else {
    Running running{.call = call, .operation = operation, .began = now.mono, .deadline = now.mono + operation.grace};
    if (at != running_.end()) running.retirement.pid = at->second.retirement.pid;  // it still runs, and is waited for
    running_.insert_or_assign(machine, std::move(running));
  }
  // From here on the machine is what its operation says; its agent lives only by that.
  configured_.erase(machine);
  next_poll_ = now.mono;
}

void LocalBackend::Poll(Now now, std::vector<Report>& out) {
  ReapAgents();
  for (auto at = running_.begin(); at != running_.end();) {
    Running& running = at->second;
    auto end = Advance(running, now);
    if (!end) {
      ++at;
      continue;
    }
    OperationEnded ended{.call = running.call,
                         .operation_id = running.operation.id,
                         .machine_id = at->first,
                         .kind = running.operation.kind};
    if (*end) {
      ended.done = **std::move(end);
      if (ended.kind == OperationKind::kConfigure) configured_.insert(at->first);
    } else {
      ended.status = end->error();
    }
    out.emplace_back(std::move(ended));
    at = running_.erase(at);
  }
  KeepAgents(now);
  next_poll_ = !running_.empty()      ? std::optional(now.mono + kBusyPoll)
               : !configured_.empty() ? std::optional(now.mono + kIdlePoll)
                                      : std::nullopt;
}

std::optional<Result<OperationDone>> LocalBackend::Advance(Running& running, Now now) {
  switch (running.operation.kind) {
    case OperationKind::kCreate: return AdvanceCreate(running);
    case OperationKind::kConfigure: return AdvanceConfigure(running, now);
    case OperationKind::kDrain: return AdvanceDrain(running, now);
    case OperationKind::kDelete: return AdvanceDelete(running, now);
  }
  return std::nullopt;
}

std::optional<Result<OperationDone>> LocalBackend::AdvanceCreate(const Running& running) {
  const fs::path dir = Dir(running.operation.machine->id);
  std::string ref = "host-" + running.operation.id;
  if (auto known = host::ReadTextFile((dir / "host").string())) {
    ref = *std::move(known);
  } else {
    std::error_code error;
    fs::create_directories(dir, error);
    if (error) return Failure(dir, error);
    fs::permissions(dir, fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec, error);
    if (Status status = WriteSecret(dir / "host", ref); !status.ok()) return std::unexpected(std::move(status));
  }
  return OperationDone{.host = {.provider = options_.name, .ref = ref}};
}

// What the machine adds to the bootstrap data are flags, which come before a configuration.
Status LocalBackend::WriteFlags(const contract::Operation& operation) const {
  const model::Machine& slot = *operation.machine;
  const model::Resources& has = slot.allocatable ? *slot.allocatable : slot.resources;
  std::string flags = fmt::format("--node-id\n{}\n--cpu\n{}\n--memory\n{}\n--labels\n{}\n", slot.id, Amount(has, "cpu"),
                                  Amount(has, "memory"), Labels(slot));
  if (has.Get("disk") > 0) flags += fmt::format("--disk\n{}\n", Amount(has, "disk"));
  return WriteSecret(Dir(slot.id) / "flags", flags);
}

std::optional<Result<OperationDone>> LocalBackend::AdvanceConfigure(Running& running, Now now) {
  const std::string& machine = running.operation.machine->id;
  const std::string& blob = running.operation.bootstrap_blob;
  if (!fs::exists(Dir(machine) / "flags")) {
    if (Status status = WriteFlags(running.operation); !status.ok()) return std::unexpected(std::move(status));
  }
  if (running.starts >= kConfigureStarts && IsStartDue(machine, now.mono)) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("the agent was started {} times and ended before it had joined; "
                             "it said: {}",
                             running.starts, LastWords(machine)));
  }
  const auto started = KeepAgent(machine, now, &blob);
  if (!started) return std::unexpected(started.error());
  if (*started) ++running.starts;
  const auto state = ReadState(machine);
  if (!state || !state->joined) {
    if (!running.warned && now.mono - running.began >= kJoinUsuallyTakes) {
      running.warned = true;
      log::Warn("the agent of a machine has not joined yet", {{"machine", machine}, {"it_said", LastWords(machine)}});
    }
    return std::nullopt;
  }
  auto options = OptionsOf(blob);
  if (!options) return std::unexpected(options.error());
  if (Status status = WriteSecret(Dir(machine) / "agent.yaml", *options); !status.ok()) {
    return std::unexpected(std::move(status));
  }
  return OperationDone{};
}

// An agent that is starting has said nothing yet, and may have work from before; only one that has never joined has
// none for certain.
bool LocalBackend::IsEmpty(const std::string& machine) const {
  if (const auto state = ReadState(machine)) return state->workloads == 0;
  return !fs::exists(Dir(machine) / "agent") || !fs::exists(Dir(machine) / "agent.yaml");
}

std::optional<Result<OperationDone>> LocalBackend::AdvanceDrain(Running& running, Now now) {
  const std::string& machine = running.operation.machine->id;
  const bool ending = running.retirement.told.has_value() || running.retirement.pid != 0;
  if (!ending && now.mono < running.deadline && !IsEmpty(machine)) {
    // One that died cannot stop what it runs: the whole grace would pass.
    if (const auto kept = KeepAgent(machine, now); !kept) return std::unexpected(kept.error());
    return std::nullopt;
  }
  const auto ended = EndAgent(machine, running.retirement, now.mono);
  if (!ended) return std::nullopt;
  if (!ended->ok() && ++running.retirement.failures < kRetireTries) return std::nullopt;
  if (!ended->ok()) return std::unexpected(*ended);
  const fs::path data = Dir(machine) / "agent";
  std::error_code error;
  fs::remove_all(data, error);
  if (error) return Failure(data, error);
  fs::remove(Dir(machine) / "agent.yaml", error);
  fs::remove(Dir(machine) / "flags", error);
  return OperationDone{};
}

std::optional<Result<OperationDone>> LocalBackend::AdvanceDelete(Running& running, Now now) {
  const std::string& machine = running.operation.machine->id;
  // A machine that failed may still have its agent and what that ran.
  running.deadline = {};
  if (auto drained = AdvanceDrain(running, now); !drained || !*drained) return drained;
  std::error_code error;
  fs::remove_all(Dir(machine), error);
  if (error) return Failure(Dir(machine), error);
  return OperationDone{};
}

// --- agents

std::optional<LocalBackend::AgentState> LocalBackend::ReadState(const std::string& machine) const {
  std::ifstream file(Dir(machine) / "agent" / kStatusFile);
  if (!file) return std::nullopt;
  AgentState state;
  bool whole = false;  // a power cut may leave the file empty: it says nothing then
  for (std::string key, value; file >> key >> value;) {
    const int64_t number = std::atoll(value.c_str());
    if (key == "pid") state.pid = static_cast<pid_t>(number);
    if (key == "joined") state.joined = number != 0;
    if (key == "workloads") {
      state.workloads = number;
      whole = true;
    }
  }
  if (!whole) return std::nullopt;
  return state;
}

pid_t LocalBackend::LiveAgent(const std::string& machine) const {
  const fs::path data = Dir(machine) / "agent";
  if (const auto state = ReadState(machine); state && IsAgentOf(state->pid, data)) return state->pid;
  // One that has just been started has not said so yet.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (IsAgentOf(pid, data)) return pid;
  }
  return 0;
}

bool LocalBackend::IsStartDue(const std::string& machine, MonoTime now) const {
  const auto last = started_.find(machine);
  return LiveAgent(machine) == 0 && (last == started_.end() || now - last->second >= kRestartPause);
}

Result<bool> LocalBackend::KeepAgent(const std::string& machine, Now now, const std::string* blob) {
  if (!IsStartDue(machine, now.mono)) return false;
  started_[machine] = now.mono;
  std::error_code error;
  fs::remove(Dir(machine) / "agent" / kStatusFile, error);
  const auto flags = host::ReadTextFile((Dir(machine) / "flags").string());
  if (!flags) return Error(Code::kInternal, fmt::format("machine {}: {}", machine, flags.error().message()));
  const std::string config = blob != nullptr ? "-" : (Dir(machine) / "agent.yaml").string();
  std::vector<std::string> arguments = {"agent",       "--config",    config,
                                        "--listen",    "127.0.0.1:0", "--metrics-addr",
                                        "127.0.0.1:0", "--data-dir",  (Dir(machine) / "agent").string()};
  for (size_t begin = 0; begin < flags->size();) {
    const size_t end = flags->find('\n', begin);
    arguments.push_back(flags->substr(begin, end - begin));
    begin = end == std::string::npos ? flags->size() : end + 1;
  }
  const auto pid = Spawn(machine, arguments, blob != nullptr ? *blob : std::string_view());
  if (!pid) return std::unexpected(pid.error());
  agents_.push_back(*pid);
  return true;
}

void LocalBackend::KeepAgents(Now now) {
  for (const std::string& machine : configured_) {
    if (const auto kept = KeepAgent(machine, now); !kept) {
      log::Err("the agent of a machine cannot be started", {{"machine", machine}, {"why", kept.error().message()}});
    }
  }
}

Result<pid_t> LocalBackend::Spawn(const std::string& machine, const std::vector<std::string>& arguments,
                                  std::string_view input) {
  const fs::path log_path = Dir(machine) / "agent.log";
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return std::unexpected(Status(Code::kInternal, fmt::format("cannot open {}", log_path.string())));
  const int given = input.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC) : InMemory(input);
  if (given < 0) {
    close(log);
    return std::unexpected(Status(Code::kUnavailable, "cannot open a file in memory"));
  }
  // Everything the child needs is made before the fork: after it, only system calls are safe.
  const std::string program = options_.program.string();
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();  // it outlives this process, and signals of a terminal are not for it
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    dup2(given, STDIN_FILENO);
    execv(program.c_str(), words.data());
    _exit(kExecFailed);
  }
  close(log);
  close(given);
  if (pid < 0) return std::unexpected(Status(Code::kUnavailable, fmt::format("cannot start {}", program)));
  return pid;
}

// Without an agent first: one that lives would start again what is ended.
std::optional<Status> LocalBackend::EndAgent(const std::string& machine, Retirement& retirement, MonoTime now) {
  if (retirement.pid == 0) {
    if (const pid_t agent = LiveAgent(machine)) {
      // Told once: a second signal would cut its stop short.
      if (!retirement.told) kill(agent, SIGTERM);
      if (!retirement.told) retirement.told = now;
      if (now - *retirement.told >= options_.agent_stop_patience) kill(agent, SIGKILL);
      return std::nullopt;
    }
    const fs::path data = Dir(machine) / "agent";
    if (!fs::exists(data)) return Status();
    if (now < retirement.next_try) return std::nullopt;
    retirement.next_try = now + kRestartPause;
    auto pid = Spawn(machine, {"agent", "--retire", "--data-dir", data.string()});
    if (!pid) return pid.error();
    retirement.pid = *pid;
  }
  int status = 0;
  const pid_t ended = waitpid(retirement.pid, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  const bool done = ended == retirement.pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  retirement.pid = 0;
  if (done) return Status();
  return Status(Code::kInternal,
                fmt::format("machine {}: what its agent ran may run on; muster agent --retire said: {}", machine,
                            LastWords(machine)));
}

std::string LocalBackend::LastWords(const std::string& machine) const {
  return host::Children::LastLine(Dir(machine) / "agent.log");
}

void LocalBackend::ReapAgents() {
  std::erase_if(agents_, [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; });
}

Status LocalBackend::Retire(const Clock& clock, Duration patience) {
  const MonoTime end = clock.Read().mono + patience;
  // One that was forked a moment ago cannot be found by its command line yet.
  for (const pid_t agent : agents_) kill(agent, SIGTERM);
  std::error_code error;
  std::map<std::string, Retirement> left;
  std::map<std::string, std::string> why;
  for (const auto& entry : fs::directory_iterator(options_.root, error)) {
    const std::string machine = entry.path().filename().string();
    if (!fs::exists(entry.path() / "agent")) continue;
    const auto running = running_.find(machine);
    left[machine] = running == running_.end() ? Retirement{} : running->second.retirement;
  }
  while (true) {
    ReapAgents();
    const MonoTime now = clock.Read().mono;
    for (auto one = left.begin(); one != left.end();) {
      const auto ended = EndAgent(one->first, one->second, now);
      if (ended && !ended->ok()) why[one->first] = ended->message();
      one = ended && ended->ok() ? left.erase(one) : std::next(one);
    }
    if (left.empty()) return {};
    if (now >= end) break;
    std::this_thread::sleep_for(kBusyPoll);
  }
  for (const auto& [machine, retirement] : left) {
    log::Err("the agent of a machine, or what it ran, was not ended",
             {{"machine", machine}, {"why", why.contains(machine) ? why[machine] : "it takes too long"}});
  }
  return {Code::kDeadlineExceeded, fmt::format("the agents of {} machines, or what they ran, were not ended: {}",
                                               left.size(), left.begin()->first)};
}

}  // namespace muster::provider
