#include "smoke/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/check.h"

namespace muster::smoke {

Process::Process(std::vector<std::string> command) {
  std::array<int, 2> out;
  std::array<int, 2> err;
  MUSTER_CHECK(pipe2(out.data(), O_CLOEXEC) == 0 && pipe2(err.data(), O_CLOEXEC) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int spawned = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  MUSTER_CHECK(spawned == 0, "cannot start {}, errno {}", command[0], spawned);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_.fd = out[0];
  err_.fd = err[0];
}

Process::~Process() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_.fd);
  close(err_.fd);
}

void Process::Stream::ReadSome() {
  std::array<char, 4096> buffer;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  if (got == 0) open = false;
}

bool Process::Pump(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if ((!out_.open && !err_.open) || left.count() <= 0) return false;
  std::array<pollfd, 2> fds = {pollfd{out_.open ? out_.fd : -1, POLLIN, 0},
                               pollfd{err_.open ? err_.fd : -1, POLLIN, 0}};
  if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) <= 0) return true;
  if (fds[0].revents != 0) out_.ReadSome();
  if (fds[1].revents != 0) err_.ReadSome();
  return true;
}

std::string Process::WaitForErrorLine(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  do {
    for (size_t end = err_.text.find('\n', searched_); end != std::string::npos;
         end = err_.text.find('\n', searched_)) {
      const std::string line = err_.text.substr(searched_, end - searched_);
      searched_ = end + 1;
      if (line.contains(text)) return line;
    }
  } while (Pump(deadline));
  return "";
}

void Process::Signal(int number) const { kill(pid_, number); }

bool Process::Ended() {
  while (out_.open || err_.open) {
    std::array<pollfd, 2> fds = {pollfd{out_.open ? out_.fd : -1, POLLIN, 0},
                                 pollfd{err_.open ? err_.fd : -1, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), 0) <= 0) return false;
    if (fds[0].revents != 0) out_.ReadSome();
    if (fds[1].revents != 0) err_.ReadSome();
  }
  return true;
}

int Process::Wait() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (Pump(deadline)) continue;
  if (out_.open || err_.open) return -1;
  // Both pipes are closed, so the program has ended or is about to: this does not hang.
  int status = 0;
  MUSTER_CHECK(waitpid(pid_, &status, 0) == pid_);
  reaped_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace muster::smoke
