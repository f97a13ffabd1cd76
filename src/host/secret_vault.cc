#include "host/secret_vault.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace muster::host {
namespace {

constexpr std::string_view kPrefix = "secret:";

std::string NewHandle() {
  std::array<unsigned char, 16> random = {};
  MUSTER_CHECK(getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()), "no random numbers");
  return fmt::format("{}{:02x}", kPrefix, fmt::join(random, ""));
}

bool IsHandle(std::string_view text) {
  return text.starts_with(kPrefix) && text.size() == kPrefix.size() + 32 &&
         text.find_first_not_of("0123456789abcdef", kPrefix.size()) == std::string_view::npos;
}

Status CannotKeep(const std::filesystem::path& file, int error) {
  const std::string why = error == ENOSPC || error == EDQUOT ? "it is full; free space on its disk"
                                                             : std::generic_category().message(error);
  return {Code::kUnavailable, fmt::format("state cannot be stored: a secret in {}: {}", file.string(), why)};
}

Status SyncDirectory(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  return synced ? Status() : CannotKeep(directory, error);
}

Status WriteFile(const std::filesystem::path& file, std::string_view bytes) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return CannotKeep(file, errno);
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  const bool whole = bytes.empty() && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (whole) return SyncDirectory(file.parent_path());
  unlink(file.c_str());
  return CannotKeep(file, error);
}

}  // namespace

Status SecretVault::Open(const std::set<std::string>& used) {
  const std::filesystem::path& directory = options_.directory;
  if (directory.empty()) return {};
  if (mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) return CannotKeep(directory, errno);
  if (chmod(directory.c_str(), S_IRWXU) != 0) return CannotKeep(directory, errno);
  std::set<std::string> names;
  for (const std::string& handle : used) {
    if (IsHandle(handle)) names.insert(FileOf(handle).filename().string());
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!names.contains(entry.path().filename().string())) std::filesystem::remove(entry.path(), error);
  }
  return error ? CannotKeep(directory, error.value()) : Status();
}

Result<std::string> SecretVault::Put(const std::string& owner, std::string secret) {
  if (secret.empty()) return std::string();
  std::string handle = NewHandle();
  const size_t bytes = secret.size();
  if (!options_.directory.empty()) {
    if (Status written = WriteFile(FileOf(handle), secret); !written.ok()) return std::unexpected(std::move(written));
    secret.clear();
  }
  const std::lock_guard lock(mu_);
  kept_.emplace(handle, Kept{.owner = owner, .secret = std::move(secret), .bytes = bytes});
  Owner& of = owners_[owner];
  of.handles.push_back(handle);
  of.bytes += bytes;
  bytes_ += bytes;
  while (of.bytes > options_.most_bytes && of.handles.size() > 1) DropOldest(of);
  while (bytes_ > options_.most_of_all && kept_.size() > 1) {
    DropOldest(std::ranges::max_element(owners_, {}, [](const auto& entry) { return entry.second.bytes; })->second);
  }
  return handle;
}

// May end the life of the owner.
void SecretVault::DropOldest(Owner& owner) {
  const std::string oldest = owner.handles.front();
  owner.handles.pop_front();
  DropLocked(oldest);
}

Result<std::string> SecretVault::Get(std::string_view handle) const {
  if (!IsHandle(handle)) return std::string(handle);
  if (!options_.directory.empty()) {
    std::ifstream file(FileOf(handle), std::ios::binary);
    if (!file) return Error(Code::kNotFound, "the secret is no longer kept");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }
  const std::lock_guard lock(mu_);
  const auto found = kept_.find(handle);
  if (found == kept_.end()) return Error(Code::kNotFound, "the secret is no longer kept");
  return found->second.secret;
}

void SecretVault::Drop(const std::string& handle) {
  const std::lock_guard lock(mu_);
  DropLocked(handle);
}

// Whatever this process knows of it: a file may be of an earlier one.
void SecretVault::DropLocked(const std::string& handle) {
  if (!IsHandle(handle)) return;
  if (!options_.directory.empty()) unlink(FileOf(handle).c_str());
  const auto found = kept_.find(handle);
  if (found == kept_.end()) return;
  const auto owner = owners_.find(found->second.owner);
  owner->second.bytes -= found->second.bytes;
  bytes_ -= found->second.bytes;
  std::erase(owner->second.handles, handle);
  if (owner->second.bytes == 0) owners_.erase(owner);
  kept_.erase(found);
}

size_t SecretVault::size() const {
  const std::lock_guard lock(mu_);
  return kept_.size();
}

std::filesystem::path SecretVault::FileOf(std::string_view handle) const {
  return options_.directory / handle.substr(kPrefix.size());
}

}  // namespace muster::host
