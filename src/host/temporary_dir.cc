#include "host/temporary_dir.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace muster::host {

Result<std::unique_ptr<TemporaryDir>> TemporaryDir::Make() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "muster-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr) {
    const std::string why = error ? error.message() : std::generic_category().message(errno);
    return Error(
        Code::kFailedPrecondition,
        fmt::format("cannot make a temporary directory: {}; set TMPDIR to a directory that can be written", why));
  }
  return std::unique_ptr<TemporaryDir>(new TemporaryDir(pattern));
}

TemporaryDir::~TemporaryDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace muster::host
