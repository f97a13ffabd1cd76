// AuditLog: what a shard decided and what became of it, as lines of JSON in a file that only grows. When the file has
// grown to `rotate_bytes` it is renamed to FILE.1 (that to FILE.2, ...) and a new one begun; `keep` old ones stay.
//
// Lines are written and synced by a thread of its own, so that no disk holds up the loop. Sync marks the end of a
// cycle: what was appended before is durable soon after. A disk that refuses is tried again with the next line or Sync;
// meanwhile status() says why, and lines wait in memory, up to `most_waiting` of them. How many were lost beyond that
// is written into the log when it works again.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"

namespace muster::shard {

struct AuditOptions {
  std::filesystem::path path;
  uint64_t rotate_bytes = 64u << 20;
  int keep = 5;
  size_t most_waiting = 100'000;
};

class AuditLog {
 public:
  // FAILED_PRECONDITION if the file cannot be opened for appending. A line that an earlier process did not finish is
  // ended first.
  static Result<std::unique_ptr<AuditLog>> Open(AuditOptions options);
  ~AuditLog();  // writes what waits, if the disk takes it
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // One line, without its end.
  void Append(const std::string& line);
  void Sync();
  // OK, or why lines cannot be written now.
  Status status() const;

 private:
  AuditLog(AuditOptions options, int fd, uint64_t size);
  void Run();
  Status WriteOut(const std::string& text);
  Status Rotate();
  Status Reopen();

  const AuditOptions options_;
  int fd_;  // of the thread once it runs; -1: to be opened again
  uint64_t size_;

  mutable std::mutex mu_;
  std::condition_variable wakes_;
  std::string waiting_;       // guarded by mu_: whole lines
  size_t lines_waiting_ = 0;  // guarded by mu_
  uint64_t lost_ = 0;         // guarded by mu_
  bool sync_ = false;         // guarded by mu_
  bool stop_ = false;         // guarded by mu_
  Status status_;             // guarded by mu_
  std::thread thread_;
};

}  // namespace muster::shard
