// LogReader: the log files of one process workload (shim/log_file.h), from the oldest entry on, across rotation.
//
// Entries come in the order in which they were written. A reader that is slower than the rotation loses the files that
// went meanwhile. Entries of the shim itself come as errors.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/logs.h"

namespace muster::runtime {

// One line of a log file; nothing if it is none.
std::optional<contract::LogChunk> ParseLogEntry(std::string_view line);

class LogReader {
 public:
  explicit LogReader(std::string directory);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  // Up to `limit` bytes of entries that were not read yet; empty if there are none at this moment.
  std::vector<contract::LogChunk> Read(size_t limit = 256 << 10);

 private:
  std::string FileName(int age) const;
  bool OpenOldest();
  bool OpenNext();
  bool OpenFile(int age);

  const std::string directory_;
  int fd_ = -1;
  ino_t inode_ = 0;
  std::string partial_;  // of a line
};

// The last `lines` lines that were written, at most `bytes` of them, as text.
std::string LastOutput(const std::string& directory, size_t lines, size_t bytes);

}  // namespace muster::runtime
