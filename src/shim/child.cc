#include "shim/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::shim {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The step at which a child gave up. The names are for the message.
enum class Step : uint8_t { kCgroup, kSession, kUser, kDirectory, kStreams, kPrivileges, kRecord, kExec };

std::string_view Describe(Step step) {
  switch (step) {
    case Step::kCgroup: return "cannot join its cgroup";
    case Step::kSession: return "cannot make a session";
    case Step::kUser: return "cannot become its user";
    case Step::kDirectory: return "cannot enter its working directory";
    case Step::kStreams: return "cannot connect its streams";
    case Step::kPrivileges: return "cannot give up privileges";
    case Step::kRecord: return "cannot record its start";
    case Step::kExec: return "cannot execute";
  }
  return "cannot start";
}

struct Failure {
  Step step = Step::kExec;
  int error = 0;
};

// The programs to try for a command: itself if it names a path, else that name in each directory of its PATH.
std::vector<std::string> Candidates(const Launch& launch) {
  const std::string& name = launch.command.front();
  if (name.contains('/')) return {name};
  std::string_view path = kDefaultPath;
  for (const std::string& variable : launch.environment) {
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  }
  std::vector<std::string> found;
  while (!path.empty()) {
    const size_t end = path.find(':');
    const std::string_view part = path.substr(0, end);
    // An empty or relative part would mean the working directory, where the workload's own files are.
    if (part.starts_with('/')) found.push_back(std::string(part) + "/" + name);
    path = end == std::string_view::npos ? "" : path.substr(end + 1);
  }
  return found;
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool JoinCgroups(const Launch& launch) {
  for (const std::string& file : launch.cgroup_procs) {
    const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool joined = write(fd, "0", 1) == 1;
    const int error = errno;
    close(fd);
    errno = error;
    if (!joined) return false;
  }
  return true;
}

bool ChangeUser(const Launch& launch) {
  if (!launch.change_user) return true;
  return setgroups(0, nullptr) == 0 && setresgid(launch.group, launch.group, launch.group) == 0 &&
         setresuid(launch.user, launch.user, launch.user) == 0;
}

void ResetSignals() {
  // All of them, also those that the C library keeps for itself and would not touch.
  constexpr std::array<uint64_t, 4> kDefault = {};  // the kernel's sigaction: SIG_DFL, no flags, no mask
  for (int number = 1; number < NSIG; ++number) syscall(SYS_rt_sigaction, number, kDefault.data(), nullptr, 8);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool ConnectStreams(int out, int err) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
         dup2(err, STDERR_FILENO) >= 0;
}

void Close(int fd) {
  if (fd >= 0) close(fd);
}

// The pipes between the shim and its child: output, errors, why the child failed, and the shim's leave to go on.
enum : size_t { kOut, kErr, kWhy, kGo, kPipes };

class Pipes {
 public:
  ~Pipes() {
    for (const auto& ends : pipes_) {
      Close(ends[0]);
      Close(ends[1]);
    }
  }
  bool Open() {
    for (auto& ends : pipes_) {
      if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    }
    return fcntl(read_end(kOut), F_SETFL, O_NONBLOCK) == 0 && fcntl(read_end(kErr), F_SETFL, O_NONBLOCK) == 0;
  }
  int read_end(size_t which) const { return pipes_[which][0]; }
  int write_end(size_t which) const { return pipes_[which][1]; }
  void CloseWriteEnd(size_t which) { Close(std::exchange(pipes_[which][1], -1)); }
  void CloseReadEnd(size_t which) { Close(std::exchange(pipes_[which][0], -1)); }
  int TakeReadEnd(size_t which) { return std::exchange(pipes_[which][0], -1); }

 private:
  std::array<std::array<int, 2>, kPipes> pipes_ = {{{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}};
};

// Waits until the shim lets the child go on; false if the shim has died or does not want it any more.
bool WaitForGo(int fd) {
  char go = 0;
  ssize_t got = 0;
  do {
    got = read(fd, &go, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

// In the child. Returns only if it failed.
Failure Become(const std::string& directory, const Launch& launch, pid_t shim, const Pipes& pipes) {
  if (!JoinCgroups(launch)) return {Step::kCgroup, errno};
  if (setsid() < 0) return {Step::kSession, errno};
  // Entered before the change of user: the directories above it may be closed to the workload.
  const std::string work = directory + "/" + std::string(kWorkDir);
  if (chdir(work.c_str()) != 0) return {Step::kDirectory, errno};
  if (!ChangeUser(launch)) return {Step::kUser, errno};
  if (!ConnectStreams(pipes.write_end(kOut), pipes.write_end(kErr))) return {Step::kStreams, errno};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {Step::kPrivileges, errno};
  // After the change of user, which would undo it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return {Step::kPrivileges, errno};
  if (getppid() != shim) return {Step::kSession, ESRCH};
  umask(S_IWGRP | S_IWOTH | S_IROTH | S_IXOTH);
  ResetSignals();
  if (!WaitForGo(pipes.read_end(kGo))) _exit(126);
  const std::vector<char*> arguments = Pointers(launch.command);
  const std::vector<char*> environment = Pointers(launch.environment);
  int error = ENOENT;
  for (const std::string& program : Candidates(launch)) {
    execve(program.c_str(), arguments.data(), environment.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
  }
  return {Step::kExec, error};
}

StartError ErrorOf(const Failure& failure, const Launch& launch) {
  StartError error{.message = std::string(Describe(failure.step))};
  if (failure.step == Step::kExec) error.message += " " + launch.command.front();
  error.message += std::string(": ") + strerror(failure.error);
  if (failure.step == Step::kExec && failure.error == ENOENT) error.code = 127;
  return error;
}

}  // namespace

std::expected<Child, StartError> StartChild(const std::string& directory, const Launch& launch,
                                            const std::function<int(pid_t)>& before_exec) {
  Pipes pipes;
  if (launch.command.empty()) return std::unexpected(StartError{.message = "it has no command"});
  if (!pipes.Open()) return std::unexpected(ErrorOf({Step::kStreams, errno}, launch));
  const pid_t shim = getpid();
  const pid_t pid = fork();
  if (pid < 0) return std::unexpected(ErrorOf({Step::kSession, errno}, launch));
  if (pid == 0) {
    pipes.CloseWriteEnd(kGo);
    const Failure failure = Become(directory, launch, shim, pipes);
    // A pipe takes so few bytes at once; where it takes none, the shim sees the exit code.
    if (write(pipes.write_end(kWhy), &failure, sizeof(failure)) < 0) _exit(1);
    _exit(126);
  }
  pipes.CloseReadEnd(kGo);
  for (const size_t which : {kOut, kErr, kWhy}) pipes.CloseWriteEnd(which);
  Failure failure{Step::kRecord, before_exec(pid)};
  // A child that has failed already takes no leave; it has said why.
  if (failure.error == 0 && write(pipes.write_end(kGo), "g", 1) != 1) failure.error = errno;
  pipes.CloseWriteEnd(kGo);
  Failure said;
  ssize_t got = 0;
  do {
    got = read(pipes.read_end(kWhy), &said, sizeof(said));
  } while (got < 0 && errno == EINTR);
  const bool failed = got == static_cast<ssize_t>(sizeof(said));
  if (failed || failure.error != 0) {
    waitpid(pid, nullptr, 0);
    return std::unexpected(ErrorOf(failed ? said : failure, launch));
  }
  return Child{.pid = pid, .out = pipes.TakeReadEnd(kOut), .err = pipes.TakeReadEnd(kErr)};
}

}  // namespace muster::shim
