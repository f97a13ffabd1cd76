#include "host/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <ranges>
#include <system_error>
#include <thread>

namespace muster::host {
namespace {

constexpr int kExecFailed = 127;
constexpr std::streamoff kLastBytes = 4096;

std::string Message(int error) { return std::generic_category().message(error); }

std::string EndOf(int status) {
  if (WIFEXITED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
  return fmt::format("signal {}", WTERMSIG(status));
}

}  // namespace

Status Children::Start(ChildOptions options) {
  Child child{.options = std::move(options), .view = {}, .started = {}, .due = std::nullopt};
  child.view.name = child.options.name;
  MUSTER_RETURN_IF_ERROR(Spawn(child));
  children_.push_back(std::move(child));
  return {};
}

Status Children::Spawn(Child& child) {
  const int log = open(child.options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) {
    return {Code::kFailedPrecondition, fmt::format("{}: cannot open its log {}: {}", child.options.name,
                                                   child.options.log.string(), Message(errno))};
  }
  // Everything the child needs is made before the fork: after it, only system calls are safe.
  const std::string program = options_.program.string();
  std::vector<char*> arguments = {const_cast<char*>(program.c_str())};
  for (const std::string& word : child.options.arguments) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(log);
    return {Code::kUnavailable, fmt::format("{}: cannot start it: {}", child.options.name, Message(error))};
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kExecFailed);  // it died before it could be watched
    setpgid(0, 0);                                // Ctrl-C is for the parent, which then ends its children in order
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execv(program.c_str(), arguments.data());
    _exit(kExecFailed);
  }
  close(log);
  child.view.pid = pid;
  child.started = clock_.Read().mono;
  child.due.reset();
  return {};
}

bool Children::Reap(Child& child) {
  if (child.view.pid == 0) return true;
  int status = 0;
  const pid_t ended = waitpid(child.view.pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  child.view.last_end = ended < 0 ? "lost" : EndOf(status);
  child.view.pid = 0;
  ++child.view.deaths;
  return true;
}

void Children::Poll() {
  if (stopped_) return;
  const MonoTime now = clock_.Read().mono;
  for (Child& child : children_) {
    if (child.view.pid != 0 && Reap(child)) {
      child.view.early_deaths = now - child.started < options_.settled ? child.view.early_deaths + 1 : 1;
      Duration pause = options_.first_pause;
      for (int i = 1; i < child.view.early_deaths && pause < options_.longest_pause; ++i) pause *= 2;
      child.due = now + std::min(pause, options_.longest_pause);
    }
    if (child.view.pid != 0 && now - child.started >= options_.settled) child.view.early_deaths = 0;
    if (child.view.pid == 0 && child.due && now >= *child.due) {
      if (const Status status = Spawn(child); !status.ok()) {
        child.view.last_end = status.message();
        child.due = now + options_.longest_pause;
      }
    }
  }
}

void Children::Stop(Duration patience) {
  stopped_ = true;
  for (const Child& child : std::views::reverse(children_)) {
    if (child.view.pid != 0) kill(child.view.pid, SIGTERM);
  }
  const MonoTime deadline = clock_.Read().mono + patience;
  const auto all_ended = [this] {
    bool ended = true;
    for (Child& child : children_) ended = Reap(child) && ended;
    return ended;
  };
  while (!all_ended() && clock_.Read().mono < deadline) std::this_thread::sleep_for(20ms);
  for (Child& child : children_) {
    if (child.view.pid == 0) continue;
    kill(child.view.pid, SIGKILL);
    waitpid(child.view.pid, nullptr, 0);
    child.view.pid = 0;
    child.view.last_end = "killed: it did not end in time";
  }
}

std::vector<ChildView> Children::View() const {
  std::vector<ChildView> views;
  for (const Child& child : children_) views.push_back(child.view);
  return views;
}

std::string Children::LastLine(const std::filesystem::path& log) {
  std::ifstream file(log, std::ios::ate);
  // The log may be large, and a line of it too.
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(0, size - kLastBytes));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = std::move(line);
  }
  return last;
}

}  // namespace muster::host
