#include "host/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace muster::host {
namespace {

std::string ErrnoText(int error) { return std::generic_category().message(error); }

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
