#include "host/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

namespace muster::host {
namespace {

constexpr int kLookForStopMillis = 100;

}  // namespace

// The flag that makes writes return at once belongs to the open file, which other processes may share: a shell would
// find its terminal changed. So the file is opened once more.
LogWriter::LogWriter(int fd, LostLine lost_line, size_t most_kept)
    : lost_line_(std::move(lost_line)), most_kept_(most_kept), fd_(fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode)) return;
  if (S_ISSOCK(status.st_mode)) {
    way_ = Way::kSocket;
    return;
  }
  const int again =
      open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_APPEND);
  if (again < 0) {
    way_ = Way::kAfterPoll;
    return;
  }
  fd_ = again;
  owns_fd_ = true;
}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard lock(mu_);
    Drain();
  }
  if (owns_fd_) close(fd_);
}

void LogWriter::Write(std::string line) {
  line += '\n';
  const std::lock_guard lock(mu_);
  if (kept_bytes_ + line.size() > most_kept_) {
    ++lost_;
    return;
  }
  if (lost_ > 0) Push(lost_line_(std::exchange(lost_, 0)) + '\n');
  Push(std::move(line));
  Drain();
  if (kept_.empty()) return;
  if (!thread_.joinable()) StartThread();
  wakes_.notify_one();
}

void LogWriter::Push(std::string line) {
  kept_bytes_ += line.size();
  kept_.push_back(std::move(line));
}

void LogWriter::Drain() {
  while (!kept_.empty()) {
    const ssize_t wrote = WriteNow(std::string_view(kept_.front()).substr(written_));
    if (wrote < 0) return LoseAll();
    if (wrote == 0) return;
    written_ += static_cast<size_t>(wrote);
    kept_bytes_ -= static_cast<size_t>(wrote);
    if (written_ < kept_.front().size()) continue;
    kept_.pop_front();
    written_ = 0;
    if (kept_.empty() && lost_ > 0) Push(lost_line_(std::exchange(lost_, 0)) + '\n');
  }
}

// The reader is gone, or the disk is full.
void LogWriter::LoseAll() {
  lost_ += kept_.size();
  kept_.clear();
  kept_bytes_ = 0;
  written_ = 0;
}

ssize_t LogWriter::WriteNow(std::string_view bytes) const {
  ssize_t wrote = 0;
  switch (way_) {
    case Way::kPlain: wrote = write(fd_, bytes.data(), bytes.size()); break;
    case Way::kSocket: wrote = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); break;
    case Way::kAfterPoll: {
      pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
      if (poll(&room, 1, 0) <= 0) return 0;
      wrote = write(fd_, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
      break;
    }
  }
  if (wrote >= 0) return wrote;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

// It takes no signals: they are for the thread that waits for them.
void LogWriter::StartThread() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void LogWriter::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    wakes_.wait(lock, [this] { return stop_ || !kept_.empty(); });
    if (stop_) return;
    lock.unlock();
    pollfd room{.fd = fd_, .events = POLLOUT, .revents = 0};
    poll(&room, 1, kLookForStopMillis);
    lock.lock();
    Drain();
  }
}

}  // namespace muster::host
