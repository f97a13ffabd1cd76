// LogFile: the output of one workload in bounded files: `log`, and `log.1`, `log.2`, ... the older ones.
//
// One line of output is one line in the file, as container runtimes write it:
//
//   2026-11-17T08:30:00.123456789Z stdout F the text
//
// P instead of F: the line is longer than kLongestPiece and goes on in the next entry of that stream. Bytes are written
// as they came, but for the newline; a last line without one gets one.
//
// Output never waits for the disk to have room: what cannot be written is dropped and counted, and a line of the stream
// "shim" says how many entries are missing once writing works again.
//
// Invariants: (1) a file is at most `bytes` long, or holds one entry; (2) there are at most `files` files.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::shim {

enum class Stream : uint8_t { kStdout, kStderr, kShim };
std::string_view StreamName(Stream stream);  // "stdout", "stderr", "shim"

// "2026-11-17T08:30:00.123456789Z"
std::string FormatTime(int64_t ns_since_1970);

class LogFile {
 public:
  static constexpr size_t kLongestPiece = 16 << 10;

  // Appends to the files of an earlier run.
  LogFile(std::string directory, int64_t bytes, int32_t files);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Output as it was read; lines are put together from parts.
  void Append(Stream stream, std::string_view output, int64_t now_ns);
  // A line of the shim's own.
  void Note(std::string_view text, int64_t now_ns);
  // Writes what has no newline yet. For the end of the workload.
  void Flush(int64_t now_ns);

 private:
  void WriteEntry(Stream stream, bool complete, std::string_view text, int64_t now_ns);
  bool WriteBytes(std::string_view entry);
  bool OpenFile();
  void Rotate();

  const std::string path_;
  const int64_t max_bytes_;
  const int32_t max_files_;
  int fd_ = -1;
  int64_t size_ = 0;
  uint64_t dropped_ = 0;
  std::array<std::string, 2> partial_;  // of stdout and stderr
};

}  // namespace muster::shim
