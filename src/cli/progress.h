// Progress: says on standard error how far something long is, from two seconds on: one line that is rewritten on a
// terminal, a plain line now and then elsewhere.
//
// Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace muster::cli {

class Progress {
 public:
  // `total` 0: unknown.
  Progress(std::string what, uint64_t total);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(uint64_t done);

 private:
  const std::string what_;
  const uint64_t total_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point next_;
  bool shown_ = false;
};

}  // namespace muster::cli
