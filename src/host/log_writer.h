// LogWriter: lines on their way to a file descriptor whose reader may be slow or have stopped, such as a pipe.
//
// A program that waits for the reader of its log stops with it: a pipe holds 64 KiB, and a loop that logs a line more
// never comes back. So the thread that logs never waits. A line is written at once as long as the descriptor takes it;
// what it does not take is kept for a thread that waits, up to a limit; lines beyond that are lost, and a line in their
// place says how many.
//
// Invariants:
//   1. Lines are written whole, in the order they came.
//   2. Write returns without waiting for the reader. A regular file, which has none, is written as usual.
//   3. Every line is written, kept, or counted as lost.
//
// Thread-safety: Write may be called from any thread.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace muster::host {

class LogWriter {
 public:
  using LostLine = std::function<std::string(uint64_t lost)>;  // says that so many lines are lost; without a line end
  static constexpr size_t kMostKept = 4 << 20;

  // `fd` outlives this and is not closed.
  LogWriter(int fd, LostLine lost_line, size_t most_kept = kMostKept);
  ~LogWriter();  // drops what the descriptor does not take at once
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // `line` has no line end.
  void Write(std::string line);

 private:
  // How bytes are written without waiting.
  enum class Way : uint8_t {
    kPlain,     // a regular file, or a pipe or terminal that was opened once more for that
    kSocket,    // by a flag of each call
    kAfterPoll  // a little at a time, after poll said that there is room
  };

  // The number of bytes taken; none taken now, or never: 0 or -1.
  ssize_t WriteNow(std::string_view bytes) const;
  // Under mu_.
  void Push(std::string line);
  void Drain();
  void LoseAll();
  void StartThread();
  void Run();

  const LostLine lost_line_;
  const size_t most_kept_;
  int fd_;
  bool owns_fd_ = false;
  Way way_ = Way::kPlain;

  std::mutex mu_;
  std::condition_variable wakes_;
  // Guarded by mu_.
  std::deque<std::string> kept_;  // each with its line end
  size_t kept_bytes_ = 0;
  size_t written_ = 0;  // bytes of the first line that are written
  uint64_t lost_ = 0;   // lines that no line has told of yet
  bool stop_ = false;
  std::thread thread_;  // started when a line is kept for the first time
};

}  // namespace muster::host
