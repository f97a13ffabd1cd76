// Findings: what the judges of one run have found: how often they looked, and the first thing that was wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster::sim {

class Findings {
 public:
  // `what` says what is wrong; it is asked only the first time that something is.
  template <class What>
  void Check(bool holds, What&& what) {
    ++checks_;
    if (!holds && !failure_) failure_ = what();
  }

  const std::optional<std::string>& failure() const { return failure_; }
  uint64_t checks() const { return checks_; }

 private:
  std::optional<std::string> failure_;
  uint64_t checks_ = 0;
};

}  // namespace muster::sim
