#include "runtime/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <deque>
#include <utility>

#include "shim/launch.h"

namespace muster::runtime {
namespace {

constexpr int kOldestAge = 16;  // more files than any shim keeps

std::optional<int64_t> Digits(std::string_view text, size_t at, size_t count) {
  if (text.size() < at + count) return std::nullopt;
  int64_t value = 0;
  const char* const begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + count, value);
  if (error != std::errc() || end != begin + count) return std::nullopt;
  return value;
}

// "2026-11-17T08:30:00.123456789Z"
std::optional<WallTime> ParseTime(std::string_view text) {
  constexpr size_t kLength = 30;
  if (text.size() != kLength || text[10] != 'T' || text[19] != '.' || text[29] != 'Z') return std::nullopt;
  const auto year = Digits(text, 0, 4);
  const auto month = Digits(text, 5, 2);
  const auto day = Digits(text, 8, 2);
  const auto hour = Digits(text, 11, 2);
  const auto minute = Digits(text, 14, 2);
  const auto second = Digits(text, 17, 2);
  const auto nanos = Digits(text, 20, 9);
  if (!year || !month || !day || !hour || !minute || !second || !nanos) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const Duration since = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                         std::chrono::minutes(*minute) + std::chrono::seconds(*second) + Duration(*nanos);
  return WallTime(since);
}

}  // namespace

std::optional<contract::LogChunk> ParseLogEntry(std::string_view line) {
  const size_t stream_at = line.find(' ');
  const size_t tag_at = stream_at == std::string_view::npos ? stream_at : line.find(' ', stream_at + 1);
  if (tag_at == std::string_view::npos || line.size() < tag_at + 3 || line[tag_at + 2] != ' ') return std::nullopt;
  const auto at = ParseTime(line.substr(0, stream_at));
  if (!at) return std::nullopt;
  const bool whole = line[tag_at + 1] == 'F';
  const bool out = line.substr(stream_at + 1, tag_at - stream_at - 1) == "stdout";
  contract::LogChunk chunk{.stream = out ? contract::LogStream::kStdout : contract::LogStream::kStderr,
                           .data = std::string(line.substr(tag_at + 3)),
                           .at = *at};
  if (whole) chunk.data += '\n';
  return chunk;
}

LogReader::LogReader(std::string directory) : directory_(std::move(directory)) {}

LogReader::~LogReader() {
  if (fd_ >= 0) close(fd_);
}

std::string LogReader::FileName(int age) const {
  std::string name = directory_ + "/" + std::string(shim::kLogFile);
  if (age > 0) name += "." + std::to_string(age);
  return name;
}

bool LogReader::OpenFile(int age) {
  const int fd = open(FileName(age).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  struct stat status = {};
  fstat(fd, &status);
  if (fd_ >= 0 && status.st_ino == inode_) {
    close(fd);
    return false;
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  inode_ = status.st_ino;
  partial_.clear();
  return true;
}

bool LogReader::OpenOldest() {
  for (int age = kOldestAge; age >= 0; --age) {
    if (OpenFile(age)) return true;
  }
  return false;
}

// Goes on to the file that was begun after the one that is read; false if there is nothing to read at this moment.
bool LogReader::OpenNext() {
  struct stat status = {};
  for (int age = 0; age <= kOldestAge; ++age) {
    if (stat(FileName(age).c_str(), &status) != 0 || status.st_ino != inode_) continue;
    if (age == 0) return false;
    // What was written between the last read and the rotation comes first.
    if (lseek(fd_, 0, SEEK_CUR) < status.st_size) return true;
    return OpenFile(age - 1);
  }
  return OpenOldest();
}

std::vector<contract::LogChunk> LogReader::Read(size_t limit) {
  std::vector<contract::LogChunk> chunks;
  size_t taken = 0;
  if (fd_ < 0 && !OpenOldest()) return chunks;
  std::array<char, 32 << 10> buffer;
  while (taken < limit) {
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (!OpenNext()) return chunks;
      continue;
    }
    taken += static_cast<size_t>(got);
    partial_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (auto chunk = ParseLogEntry(std::string_view(partial_).substr(begin, end - begin))) {
        chunks.push_back(*std::move(chunk));
      }
    }
    partial_.erase(0, begin);
  }
  return chunks;
}

std::string LastOutput(const std::string& directory, size_t lines, size_t bytes) {
  LogReader reader(directory);
  std::deque<std::string> last;
  for (auto chunks = reader.Read(); !chunks.empty(); chunks = reader.Read()) {
    for (contract::LogChunk& chunk : chunks) {
      last.push_back(std::move(chunk.data));
      if (last.size() > lines) last.pop_front();
    }
  }
  std::string text;
  for (const std::string& line : last) text += line;
  if (text.size() > bytes) text.erase(0, text.size() - bytes);
  return text;
}

}  // namespace muster::runtime
