// Ledger: what the simulated cloud has done, one line per operation that ended, so that the cloud survives the process
// it lives in: an operation that is asked for again after a kill ends as it did, and is not done twice.
//
// Lines are written before the provider hears of the end, and left to the operating system, not synced: the ledger
// outlives the process, not the power. A torn last line is cut off when the file is opened, and a file that has grown
// large is written anew with the last operation of each machine.
//
// Thread-safety: one thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/status.h"
#include "provider/backend.h"

namespace muster::provider {

class Ledger {
 public:
  // Adds to `known` the last operation of each machine. DATA_LOSS naming a line that cannot be read.
  static Result<std::unique_ptr<Ledger>> Open(const std::filesystem::path& path, std::vector<OperationEnded>& known);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // All of it or nothing; trying again is safe.
  Status Append(const OperationEnded& ended);

 private:
  Ledger(std::filesystem::path path, int fd, int64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  const std::filesystem::path path_;
  const int fd_;
  int64_t size_;
};

}  // namespace muster::provider
