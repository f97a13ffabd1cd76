#include "role/shard/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/probe.h"
#include "base/time.h"

namespace muster::shard {
namespace {

constexpr Duration kRetry = 1s;  // after a disk refused

Status Failure(const std::filesystem::path& path, std::string_view what, int error) {
  return {Code::kFailedPrecondition,
          fmt::format("audit log {}: cannot {}: {}; check the path, its permissions and space", path.string(), what,
                      std::generic_category().message(error))};
}

std::filesystem::path Numbered(const std::filesystem::path& path, int number) {
  return number == 0 ? path : std::filesystem::path(fmt::format("{}.{}", path.string(), number));
}

Result<std::pair<int, uint64_t>> OpenForAppend(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return std::unexpected(Failure(path, "open it", errno));
  struct stat info{};
  if (fstat(fd, &info) != 0) {
    const Status status = Failure(path, "read its size", errno);
    close(fd);
    return std::unexpected(status);
  }
  return std::pair(fd, static_cast<uint64_t>(info.st_size));
}

bool EndsInALine(const std::filesystem::path& path, uint64_t size) {
  if (size == 0) return true;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char last = 0;
  const bool read = pread(fd, &last, 1, static_cast<off_t>(size - 1)) == 1;
  close(fd);
  return read && last == '\n';
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::Open(AuditOptions options) {
  MUSTER_ASSIGN_OR_RETURN(const auto opened, OpenForAppend(options.path));
  const bool ended = EndsInALine(options.path, opened.second);
  auto log = std::unique_ptr<AuditLog>(new AuditLog(std::move(options), opened.first, opened.second));
  if (!ended) log->Append("");
  return log;
}

AuditLog::AuditLog(AuditOptions options, int fd, uint64_t size)
    : options_(std::move(options)), fd_(fd), size_(size), thread_([this] { Run(); }) {}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  wakes_.notify_all();
  thread_.join();
  if (fd_ >= 0) close(fd_);
}

void AuditLog::Append(const std::string& line) {
  const std::lock_guard lock(mu_);
  if (lines_waiting_ >= options_.most_waiting) {
    ++lost_;
    return;
  }
  waiting_ += line;
  waiting_ += '\n';
  ++lines_waiting_;
}

void AuditLog::Sync() {
  {
    const std::lock_guard lock(mu_);
    if (waiting_.empty() && lost_ == 0) return;
    sync_ = true;
  }
  wakes_.notify_one();
}

Status AuditLog::status() const {
  const std::lock_guard lock(mu_);
  return status_;
}

void AuditLog::Run() {
  std::unique_lock lock(mu_);
  while (true) {
    wakes_.wait(lock, [this] { return sync_ || stop_; });
    const bool last = stop_;
    std::string text = std::exchange(waiting_, {});
    const size_t lines = std::exchange(lines_waiting_, 0);
    if (const uint64_t lost = std::exchange(lost_, 0); lost > 0) text += fmt::format("{{\"lost\":{}}}\n", lost);
    sync_ = false;
    lock.unlock();
    Status status = text.empty() ? Status() : WriteOut(text);
    if (!status.ok()) log::Err("audit log cannot be written, trying again", {{"error", status.ToString()}});
    lock.lock();
    status_ = std::move(status);
    if (!status_.ok()) {
      // What was not written comes first, ahead of what came meanwhile.
      waiting_.insert(0, text);
      lines_waiting_ += lines;
      sync_ = true;
    }
    if (last) return;
    if (!status_.ok()) wakes_.wait_for(lock, kRetry, [this] { return stop_; });
  }
}

// All of it or, as far as the file system lets it be undone, nothing.
Status AuditLog::WriteOut(const std::string& text) {
  if (fd_ < 0) MUSTER_RETURN_IF_ERROR(Reopen());
  if (size_ > 0 && size_ + text.size() > options_.rotate_bytes) MUSTER_RETURN_IF_ERROR(Rotate());
  const auto undo = [&](Status status) {
    if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) PROBE("audit.partial_line");
    return status;
  };
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = write(fd_, text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return undo(Failure(options_.path, "write", errno));
    at += static_cast<size_t>(written);
  }
  if (fdatasync(fd_) != 0) return undo(Failure(options_.path, "sync", errno));
  size_ += text.size();
  return {};
}

Status AuditLog::Rotate() {
  for (int number = options_.keep; number > 0; --number) {
    std::error_code error;
    const auto from = Numbered(options_.path, number - 1);
    if (!std::filesystem::exists(from, error)) continue;
    std::filesystem::rename(from, Numbered(options_.path, number), error);
    if (error) return Failure(options_.path, "rotate it", error.value());
  }
  if (options_.keep == 0) {
    std::error_code error;
    std::filesystem::remove(options_.path, error);
    if (error) return Failure(options_.path, "rotate it", error.value());
  }
  close(std::exchange(fd_, -1));
  return Reopen();
}

Status AuditLog::Reopen() {
  const auto opened = OpenForAppend(options_.path);
  if (!opened) return opened.error();
  std::tie(fd_, size_) = *opened;
  return {};
}

}  // namespace muster::shard
