#include "host/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "host/system_clock.h"

namespace muster::host {
namespace {

// For poll(): never short of `left`, and without end if there is none.
int PollTimeout(std::optional<Duration> left) {
  if (!left) return -1;
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(*left).count();
  return static_cast<int>(std::clamp<int64_t>(millis, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Signals::Signals(Options options) : options_(options) {
  former_pipe_ = std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGTERM);
  sigaddset(&watched_, SIGINT);
  struct sigaction hangup{};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&watched_, SIGHUP);
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
  const SystemClock clock;
  std::optional<MonoTime> asked;  // when the first signal came
  while (true) {
    std::optional<Duration> left;
    if (asked) left = *asked + options_.stop_patience - clock.Read().mono;
    if (left && *left <= Duration::zero()) {
      log::Err("the stop takes too long, exiting at once");
      _exit(1);
    }
    std::array<pollfd, 2> fds = {pollfd{signal_fd_, POLLIN, 0}, pollfd{quit_fd_, POLLIN, 0}};
    const int ready = poll(fds.data(), fds.size(), PollTimeout(left));
    MUSTER_CHECK(ready >= 0 || errno == EINTR, "poll failed, errno {}", errno);
    if (ready <= 0) continue;
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    MUSTER_CHECK(read(signal_fd_, &info, sizeof info) == sizeof info, "signalfd gave a part of a signal");
    const bool interrupt = info.ssi_signo == SIGINT;
    const bool hangup = info.ssi_signo == SIGHUP;
    if (asked && clock.Read().mono - *asked < options_.repeat_span) continue;
    if (asked && hangup) continue;
    if (asked) {
      // Destructors could wait for the very thing the person gave up on.
      log::Warn("second signal, exiting at once", {{"signal", interrupt ? "SIGINT" : "SIGTERM"}});
      _exit(interrupt ? 130 : 143);
    }
    asked = clock.Read().mono;
    RequestStop(hangup ? "SIGHUP" : interrupt ? "SIGINT" : "SIGTERM");
  }
}

std::string_view Signals::WaitForStop() {
  std::unique_lock lock(mu_);
  stopped_.wait(lock, [this] { return !reason_.empty(); });
  return reason_;
}

void Signals::RequestStop(std::string_view literal_reason) {
  MUSTER_CHECK(!literal_reason.empty(), "a stop needs a reason");
  {
    const std::lock_guard lock(mu_);
    if (reason_.empty()) reason_ = literal_reason;
  }
  stopped_.notify_all();
  stop_.request_stop();
}

}  // namespace muster::host
