#include "host/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/log.h"

namespace muster::host {

Signals::Signals() {
  former_pipe_ = std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGTERM);
  sigaddset(&watched_, SIGINT);
  MUSTER_CHECK(pthread_sigmask(SIG_BLOCK, &watched_, &former_mask_) == 0);
  signal_fd_ = signalfd(-1, &watched_, SFD_CLOEXEC);
  quit_fd_ = eventfd(0, EFD_CLOEXEC);
  MUSTER_CHECK(signal_fd_ >= 0 && quit_fd_ >= 0, "no file descriptors left at program start, errno {}", errno);
  thread_ = std::jthread([this] { Watch(); });
}

Signals::~Signals() {
  const uint64_t one = 1;
  MUSTER_CHECK(write(quit_fd_, &one, sizeof one) == sizeof one);
  thread_.join();
  close(signal_fd_);
  close(quit_fd_);
  pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
  std::signal(SIGPIPE, former_pipe_);
}

void Signals::Watch() {
  bool first = true;
  while (true) {
    std::array<pollfd, 2> fds = {pollfd{signal_fd_, POLLIN, 0}, pollfd{quit_fd_, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0) {
      MUSTER_CHECK(errno == EINTR, "poll failed, errno {}", errno);
      continue;
    }
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    MUSTER_CHECK(read(signal_fd_, &info, sizeof info) == sizeof info, "signalfd gave a part of a signal");
    const bool interrupt = info.ssi_signo == SIGINT;
    if (!first) {
      // Destructors could wait for the very thing the person gave up on.
      log::Warn("second signal, exiting at once", {{"signal", interrupt ? "SIGINT" : "SIGTERM"}});
      _exit(interrupt ? 130 : 143);
    }
    first = false;
    RequestStop(interrupt ? "SIGINT" : "SIGTERM");
  }
}

std::string_view Signals::WaitForStop() {
  std::unique_lock lock(mu_);
  stopped_.wait(lock, [this] { return !reason_.empty(); });
  return reason_;
}

void Signals::RequestStop(std::string_view literal_reason) {
  MUSTER_CHECK(!literal_reason.empty(), "a stop needs a reason");
  const std::lock_guard lock(mu_);
  if (reason_.empty()) reason_ = literal_reason;
  stopped_.notify_all();
}

}  // namespace muster::host
