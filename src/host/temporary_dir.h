// TemporaryDir: a directory for files that are needed for a while, private to its user. It goes with the object.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "base/status.h"

namespace muster::host {

class TemporaryDir {
 public:
  // Below the directory that TMPDIR names, else /tmp. FAILED_PRECONDITION if it cannot be made.
  static Result<std::unique_ptr<TemporaryDir>> Make();
  ~TemporaryDir();
  TemporaryDir(const TemporaryDir&) = delete;
  TemporaryDir& operator=(const TemporaryDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryDir(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
};

}  // namespace muster::host
