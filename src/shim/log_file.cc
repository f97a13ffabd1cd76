#include "shim/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "shim/launch.h"

namespace muster::shim {

std::string_view StreamName(Stream stream) {
  switch (stream) {
    case Stream::kStdout: return "stdout";
    case Stream::kStderr: return "stderr";
    case Stream::kShim: return "shim";
  }
  return "shim";
}

std::string FormatTime(int64_t ns_since_1970) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = ns_since_1970 / kSecond;
  int64_t rest = ns_since_1970 % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  const time_t when = seconds;
  tm utc = {};
  gmtime_r(&when, &utc);
  std::array<char, 80> text;
  const int length =
      snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ", utc.tm_year + 1900, utc.tm_mon + 1,
               utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<long long>(rest));
  return {text.data(), static_cast<size_t>(length)};
}

LogFile::LogFile(std::string directory, int64_t bytes, int32_t files)
    : path_(std::move(directory) + "/" + std::string(kLogFile)), max_bytes_(bytes), max_files_(files) {
  OpenFile();
}

LogFile::~LogFile() {
  if (fd_ >= 0) close(fd_);
}

bool LogFile::OpenFile() {
  if (fd_ >= 0) return true;
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat status = {};
  if (fd_ >= 0 && fstat(fd_, &status) == 0) size_ = status.st_size;
  return fd_ >= 0;
}

void LogFile::Append(Stream stream, std::string_view output, int64_t now_ns) {
  std::string& partial = partial_[static_cast<size_t>(stream)];
  while (!output.empty()) {
    const size_t newline = output.find('\n');
    const size_t room = kLongestPiece - partial.size();
    const size_t taken = std::min(newline == std::string_view::npos ? output.size() : newline, room);
    partial += output.substr(0, taken);
    output.remove_prefix(taken);
    const bool ends = !output.empty() && output.front() == '\n';
    if (ends) output.remove_prefix(1);
    if (ends || partial.size() == kLongestPiece) {
      WriteEntry(stream, ends, partial, now_ns);
      partial.clear();
    }
  }
}

void LogFile::Note(std::string_view text, int64_t now_ns) { WriteEntry(Stream::kShim, true, text, now_ns); }

void LogFile::Flush(int64_t now_ns) {
  for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
    std::string& partial = partial_[static_cast<size_t>(stream)];
    if (!partial.empty()) WriteEntry(stream, true, partial, now_ns);
    partial.clear();
  }
}

void LogFile::WriteEntry(Stream stream, bool complete, std::string_view text, int64_t now_ns) {
  const auto entry_of = [now_ns](Stream of, bool whole, std::string_view what) {
    std::string entry = FormatTime(now_ns);
    entry += ' ';
    entry += StreamName(of);
    entry += whole ? " F " : " P ";
    entry += what;
    entry += '\n';
    return entry;
  };
  if (dropped_ > 0) {
    const std::string missing = std::to_string(dropped_) + " entries are missing: they could not be written";
    if (!WriteBytes(entry_of(Stream::kShim, true, missing))) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
  }
  if (!WriteBytes(entry_of(stream, complete, text))) ++dropped_;
}

// All of the entry or nothing: a part of one is cut off again.
bool LogFile::WriteBytes(std::string_view entry) {
  if (!OpenFile()) return false;
  if (size_ > 0 && size_ + static_cast<int64_t>(entry.size()) > max_bytes_) {
    Rotate();
    if (!OpenFile()) return false;
  }
  ssize_t wrote = 0;
  do {
    wrote = write(fd_, entry.data(), entry.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote == static_cast<ssize_t>(entry.size())) {
    size_ += wrote;
    return true;
  }
  if (wrote > 0 && ftruncate(fd_, size_) != 0) size_ += wrote;
  return false;
}

void LogFile::Rotate() {
  close(fd_);
  fd_ = -1;
  size_ = 0;
  const auto name = [this](int32_t age) { return age == 0 ? path_ : path_ + "." + std::to_string(age); };
  if (max_files_ <= 1) {
    unlink(path_.c_str());
    return;
  }
  for (int32_t age = max_files_ - 1; age > 0; --age) rename(name(age - 1).c_str(), name(age).c_str());
}

}  // namespace muster::shim
