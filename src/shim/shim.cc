#include "shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include "shim/child.h"
#include "shim/descendants.h"
#include "shim/launch.h"
#include "shim/log_file.h"
#include "shim/record_file.h"

namespace muster::shim {
namespace {

int64_t ReadClock(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
int64_t WallNs() { return ReadClock(CLOCK_REALTIME); }
int64_t MonoMs() { return ReadClock(CLOCK_MONOTONIC) / 1'000'000; }

// How often the kernel has killed in the cgroup; 0 if that is not known.
int64_t OomKills(const std::string& file) {
  if (file.empty()) return 0;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 1024> buffer = {};
  const ssize_t got = read(fd, buffer.data(), buffer.size() - 1);
  close(fd);
  if (got <= 0) return 0;
  const std::string_view text(buffer.data(), static_cast<size_t>(got));
  constexpr std::string_view kKey = "oom_kill ";
  const size_t at = text.starts_with(kKey) ? 0 : text.find("\noom_kill ");
  if (at == std::string_view::npos) return 0;
  return strtoll(buffer.data() + at + (at == 0 ? 0 : 1) + kKey.size(), nullptr, 10);
}

// Takes the lock of the directory for the life of this process. False if another shim has it. The lock belongs to the
// process, and the kernel tells others which process that is.
bool TakeLock(const std::string& directory) {
  const std::string path = directory + "/" + std::string(kLockFile);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
}

class Supervisor {
 public:
  Supervisor(std::string directory, Launch launch, int report)
      : directory_(std::move(directory)),
        launch_(std::move(launch)),
        report_(report),
        log_(directory_, launch_.log_bytes, launch_.log_files) {}

  int Run();

 private:
  bool WatchSignals();
  std::expected<Child, StartError> Start();
  void Report(std::string_view text);
  void Follow();
  void OnSignals();
  void BeginStop(int64_t grace_ms);
  void KillIfDue();
  void Reap();
  // Reads what a stream has, and closes it at its end.
  void Drain(int& fd, Stream stream);
  void EndDescendants();
  int PollTimeout() const;
  int WriteExit();

  const std::string directory_;
  const Launch launch_;
  int report_;
  LogFile log_;
  int signals_ = -1;
  Child child_;
  bool main_ended_ = false;
  bool killing_ = false;
  std::optional<int64_t> kill_at_ms_;  // set once a stop was asked for
  Exit exit_;
};

bool Supervisor::WatchSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {StopSignal(), SIGTERM, SIGCHLD, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&watched, number);
  if (sigprocmask(SIG_SETMASK, &watched, nullptr) != 0) return false;
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  return signals_ >= 0;
}

void Supervisor::Report(std::string_view text) {
  // An agent that has died meanwhile reads the records instead.
  if (report_ >= 0 && write(report_, text.data(), text.size()) < 0) log_.Note("the agent is gone", WallNs());
  if (report_ >= 0) close(report_);
  report_ = -1;
}

std::expected<Child, StartError> Supervisor::Start() {
  if (!WatchSignals()) {
    return std::unexpected(StartError{.message = std::string("cannot watch signals: ") + strerror(errno)});
  }
  // An agent that finds no record would start the launch again: the program does not run before there is one.
  return StartChild(directory_, launch_, [this](pid_t process) {
    return WriteRecord(
        directory_, kStartedFile,
        Started{.launch = launch_.number, .shim = getpid(), .process = process, .at_ns = exit_.started_ns});
  });
}

int Supervisor::Run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  exit_.launch = launch_.number;
  exit_.started_ns = WallNs();
  const int64_t kills_before = OomKills(launch_.oom_file);
  std::expected<Child, StartError> child = Start();
  if (!child) {
    exit_.error = child.error().message;
    exit_.code = child.error().code;
    exit_.ended_ns = WallNs();
    log_.Note(exit_.error, exit_.ended_ns);
    const int done = WriteExit();
    Report(exit_.error);
    return done;
  }
  child_ = *child;
  Report(kStartOk);
  Follow();
  EndDescendants();
  Drain(child_.out, Stream::kStdout);
  Drain(child_.err, Stream::kStderr);
  log_.Flush(WallNs());
  exit_.oom_killed = OomKills(launch_.oom_file) > kills_before && exit_.code != 0;
  exit_.ended_ns = WallNs();
  return WriteExit();
}

void Supervisor::Follow() {
  while (!main_ended_) {
    std::array<pollfd, 3> fds = {pollfd{signals_, POLLIN, 0}, pollfd{child_.out, POLLIN, 0},
                                 pollfd{child_.err, POLLIN, 0}};
    const int ready = poll(fds.data(), fds.size(), PollTimeout());
    if (ready < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) Drain(child_.out, Stream::kStdout);
    if (fds[2].revents != 0) Drain(child_.err, Stream::kStderr);
    if (fds[0].revents != 0) OnSignals();
    KillIfDue();
  }
}

void Supervisor::OnSignals() {
  signalfd_siginfo info = {};
  while (read(signals_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo == static_cast<uint32_t>(StopSignal())) BeginStop(info.ssi_int);
    if (info.ssi_signo == SIGTERM) BeginStop(launch_.grace_ms);
  }
  Reap();
}

void Supervisor::BeginStop(int64_t grace_ms) {
  const int64_t due = MonoMs() + std::max<int64_t>(grace_ms, 0);
  const bool first = !kill_at_ms_;
  kill_at_ms_ = first ? due : std::min(*kill_at_ms_, due);
  exit_.stopped = true;
  if (first) {
    kill(-child_.pid, SIGTERM);
    kill(-child_.pid, SIGCONT);  // a stopped process takes no SIGTERM
  }
  KillIfDue();
}

void Supervisor::KillIfDue() {
  if (main_ended_ || !kill_at_ms_ || MonoMs() < *kill_at_ms_) return;
  if (!killing_) log_.Note("killed: it did not end within its grace", WallNs());
  killing_ = true;
  KillDescendants(child_.pid);
}

int Supervisor::PollTimeout() const {
  constexpr int kNever = -1;
  constexpr int64_t kLongest = 60'000;
  if (!kill_at_ms_) return kNever;
  // While killing: again and again, because a process may fork before it dies.
  if (killing_) return 100;
  return static_cast<int>(std::clamp<int64_t>(*kill_at_ms_ - MonoMs(), 0, kLongest));
}

void Supervisor::Reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != child_.pid) continue;
    main_ended_ = true;
    if (WIFEXITED(status)) exit_.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) exit_.signal = WTERMSIG(status);
  }
}

void Supervisor::Drain(int& fd, Stream stream) {
  std::array<char, 16 << 10> buffer;
  while (fd >= 0) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      log_.Append(stream, {buffer.data(), static_cast<size_t>(got)}, WallNs());
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      close(fd);
      fd = -1;
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void Supervisor::EndDescendants() {
  // What was killed becomes a child of the shim together with its own children, until nothing is left.
  while (true) {
    KillDescendants(child_.pid);
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno == ECHILD) return;
    if (ended > 0) continue;
    pollfd waits = {signals_, POLLIN, 0};
    poll(&waits, 1, 100);
    signalfd_siginfo info = {};
    while (read(signals_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) continue;
    Drain(child_.out, Stream::kStdout);
    Drain(child_.err, Stream::kStderr);
  }
}

int Supervisor::WriteExit() {
  // A full disk: the record is worth waiting for. An agent sees a live shim meanwhile.
  while (WriteRecord(directory_, kExitFile, exit_) != 0) {
    if (access(directory_.c_str(), F_OK) != 0) return 1;  // the workload was removed
    poll(nullptr, 0, 1000);
  }
  return 0;
}

// Leaves the report's descriptor, which it returns, -1 if there is none, and the three streams, which lead nowhere.
int CloseInherited() {
  const int report = fcntl(kReportFd, F_SETFD, FD_CLOEXEC) == 0 ? kReportFd : -1;
  close_range(kReportFd + 1, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, stream);
  if (nothing > STDERR_FILENO) close(nothing);
  return report;
}

}  // namespace

int Run(const std::string& directory) {
  const int report = CloseInherited();
  umask(S_IRWXG | S_IRWXO);
  const std::optional<Launch> launch = ReadRecord<Launch>(directory, kLaunchFile);
  if (!launch || !TakeLock(directory)) return 1;
  const auto started = ReadRecord<Started>(directory, kStartedFile);
  const auto ended = ReadRecord<Exit>(directory, kExitFile);
  if ((started && started->launch >= launch->number) || (ended && ended->launch >= launch->number)) return 0;
  return Supervisor(directory, *launch, report).Run();
}

}  // namespace muster::shim
