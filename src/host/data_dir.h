// DataDir: a directory that one process owns while it runs. Made if missing, private to its user (0700). One that is
// there already must belong to this user, or to root, and what others may do in it is taken away.
//
// Ownership is a lock of the kernel on a file inside: it ends with the process, however that ends, so a killed
// process never blocks its successor. The file itself stays.
//
// Thread-safety: immutable after Open.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/status.h"

namespace muster::host {

class DataDir {
 public:
  // `flag` is the option that named the directory, for the message. FAILED_PRECONDITION if the directory cannot be made
  // or written, is another user's, or if another process owns it. Owners for different purposes use lock files of
  // different names.
  static Result<std::unique_ptr<DataDir>> Open(const std::filesystem::path& path, std::string_view flag,
                                               std::string_view lock_file = "LOCK");
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  DataDir(std::filesystem::path path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}

  const std::filesystem::path path_;
  const int lock_fd_;
};

}  // namespace muster::host
