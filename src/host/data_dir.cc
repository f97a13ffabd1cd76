#include "host/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/log.h"

namespace muster::host {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

// Whoever may write in the directory decides what this process believes. Others may pass through it and no more: the
// agent's directory leads to those of its workloads. The group may look.
Status MakePrivate(const std::filesystem::path& path, std::string_view flag) {
  constexpr mode_t kForOthers = S_IWGRP | S_IROTH | S_IWOTH;
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {};  // opening the lock file says why
  if (found.st_uid != geteuid() && geteuid() != 0) {
    return {Code::kFailedPrecondition,
            fmt::format("{} {}: the directory belongs to another user ({}); choose one of your own", flag,
                        path.string(), found.st_uid)};
  }
  if ((found.st_mode & kForOthers) == 0) return {};
  const mode_t mode = found.st_mode & 07777U & ~kForOthers;
  if (chmod(path.c_str(), mode) != 0) {
    return {Code::kFailedPrecondition,
            fmt::format("{} {}: others may use the directory, and that cannot be changed ({}); chmod 700 it", flag,
                        path.string(), ErrnoText(errno))};
  }
  log::Warn("others could use a directory of state; they no longer can",
            {{"directory", path.string()}, {"was", fmt::format("{:04o}", found.st_mode & 07777U)}});
  return {};
}

}  // namespace

Result<std::unique_ptr<DataDir>> DataDir::Open(const std::filesystem::path& path, std::string_view flag,
                                               std::string_view lock_file) {
  std::error_code parents;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), parents);
  if (parents || (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST)) {
    const int error = parents ? parents.value() : errno;
    return Error(Code::kFailedPrecondition, fmt::format("{} {}: cannot make the directory ({}); choose a place you may "
                                                        "write to",
                                                        flag, path.string(), ErrnoText(error)));
  }
  if (Status closed = MakePrivate(path, flag); !closed.ok()) return std::unexpected(std::move(closed));
  const int fd = open((path / lock_file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    return Error(Code::kFailedPrecondition, fmt::format("{} {}: cannot write in it ({}); choose a directory you may "
                                                        "write to",
                                                        flag, path.string(), ErrnoText(errno)));
  }
  // Made before the lock is tried, so that every way out closes the file.
  std::unique_ptr<DataDir> dir(new DataDir(path, fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Error(Code::kFailedPrecondition,
                 fmt::format("{} {}: another process works in it; stop that process or choose another directory", flag,
                             path.string()));
  }
  return dir;
}

DataDir::~DataDir() { close(lock_fd_); }

}  // namespace muster::host
