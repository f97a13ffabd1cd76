#include "shim/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/hash.h"

namespace muster::shim {
namespace {

constexpr size_t kDigestBytes = 8;
constexpr size_t kLargestRecord = 4 << 20;

std::array<char, kDigestBytes> DigestOf(std::string_view bytes) {
  const uint64_t digest = Hash(bytes);
  std::array<char, kDigestBytes> out;
  for (size_t i = 0; i < kDigestBytes; ++i) out[i] = static_cast<char>(digest >> (8 * i));
  return out;
}

std::string PathOf(const std::string& directory, std::string_view name) { return directory + "/" + std::string(name); }

// The first error, 0 if all was written and is durable.
int WriteAndSync(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return fsync(fd) == 0 ? 0 : errno;
}

int SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

std::optional<std::string> ReadRecordBytes(const std::string& directory, std::string_view name) {
  const int fd = open(PathOf(directory, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  std::string all;
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while (all.size() <= kLargestRecord) {
    got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  if (got != 0 || all.size() < kDigestBytes) return std::nullopt;
  const std::string_view record = std::string_view(all).substr(kDigestBytes);
  const auto digest = DigestOf(record);
  if (std::memcmp(all.data(), digest.data(), kDigestBytes) != 0) return std::nullopt;
  return std::string(record);
}

int WriteRecordBytes(const std::string& directory, std::string_view name, std::string_view bytes) {
  const std::string path = PathOf(directory, name);
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return errno;
  const auto digest = DigestOf(bytes);
  std::string all(digest.data(), digest.size());
  all += bytes;
  const int written = WriteAndSync(fd, all);
  const int closed = close(fd) == 0 ? 0 : errno;
  if (written != 0) return written;
  if (closed != 0) return closed;
  if (rename(fresh.c_str(), path.c_str()) != 0) return errno;
  return SyncDirectory(directory);
}

}  // namespace muster::shim
