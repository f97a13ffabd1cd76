#include "runtime/shim_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <system_error>
#include <utility>

#include "shim/launch.h"

namespace muster::runtime {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// What comes through the pipe until its other end is closed; nothing if the patience ends before.
std::optional<std::string> ReadReport(int fd, Duration patience) {
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waits = {fd, POLLIN, 0};
    const int ready = poll(&waits, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 512> buffer;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

// The attributes and descriptors with which a shim is started.
class SpawnSetup {
 public:
  explicit SpawnSetup(int report) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, report, shim::kReportFd);
    posix_spawn_file_actions_addclosefrom_np(&actions_, shim::kReportFd + 1);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    // A stop that comes before the shim is ready for it waits.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, shim::StopSignal());
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<ShimProcess> ShimProcess::Start(const std::string& program, const std::string& directory, Duration patience) {
  std::array<int, 2> report;
  if (pipe2(report.data(), O_CLOEXEC) != 0) {
    return Error(Code::kUnavailable, fmt::format("cannot make a pipe: {}", ErrnoText(errno)));
  }
  // Above the number that the shim gets it under: a duplicate onto itself would keep its close-on-exec flag.
  if (report[1] == shim::kReportFd) {
    const int moved = fcntl(report[1], F_DUPFD_CLOEXEC, shim::kReportFd + 1);
    close(std::exchange(report[1], moved));
  }
  std::array<char*, 3> arguments = {const_cast<char*>(program.c_str()), const_cast<char*>(directory.c_str()), nullptr};
  std::array<char*, 1> environment = {nullptr};
  pid_t pid = 0;
  const SpawnSetup setup(report[1]);
  const int error =
      posix_spawn(&pid, program.c_str(), setup.actions(), setup.attributes(), arguments.data(), environment.data());
  close(report[1]);
  if (error != 0) {
    close(report[0]);
    return Error(Code::kUnavailable, fmt::format("cannot start {}: {}", program, ErrnoText(error)));
  }
  const int fd = OpenPidfd(pid);
  const std::optional<std::string> said = ReadReport(report[0], patience);
  close(report[0]);
  if (said == shim::kStartOk && fd >= 0) return ShimProcess(pid, fd);
  if (fd >= 0) close(fd);
  // One that has closed its end without that word is about to end. One that is silent is watched from its files.
  if (said && said != shim::kStartOk) waitpid(pid, nullptr, 0);
  if (said && !said->empty()) return Error(Code::kUnavailable, *said);
  return Error(Code::kUnavailable, fmt::format("{} does not say how the start went", program));
}

std::optional<ShimProcess> ShimProcess::Find(const ProcessFiles& files) {
  const pid_t pid = files.FindShim();
  if (pid <= 0) return std::nullopt;
  const int fd = OpenPidfd(pid);
  if (fd < 0) return std::nullopt;
  ShimProcess found(pid, fd);
  // Its number may have passed to another process before the descriptor was opened, but not while it holds the lock.
  if (files.FindShim() != pid) return std::nullopt;
  return found;
}

ShimProcess::ShimProcess(ShimProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), fd_(std::exchange(other.fd_, -1)) {}

ShimProcess& ShimProcess::operator=(ShimProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(fd_, other.fd_);
  return *this;
}

ShimProcess::~ShimProcess() {
  if (fd_ >= 0) close(fd_);
}

void ShimProcess::Stop(Duration grace) const {
  const int64_t ms = std::chrono::ceil<std::chrono::milliseconds>(grace).count();
  siginfo_t info = {};
  info.si_signo = shim::StopSignal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = static_cast<int>(std::clamp<int64_t>(ms, 0, INT_MAX));
  syscall(SYS_pidfd_send_signal, fd_, shim::StopSignal(), &info, 0);
}

void ShimProcess::Reap() const { waitpid(pid_, nullptr, WNOHANG); }

}  // namespace muster::runtime
