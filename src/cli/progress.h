// Progress: says on standard error how far something long is, from two seconds on: one line that is rewritten on a
// terminal, a plain line now and then elsewhere.
//
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace muster::cli {

class Progress {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  // `total` 0: unknown. A test gives a clock of its own.
  Progress(std::string what, uint64_t total, Clock clock = std::chrono::steady_clock::now);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done);

 private:
  const std::string what_;
  const uint64_t total_;
  const bool terminal_;
  const Clock clock_;
  const std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace muster::cli
