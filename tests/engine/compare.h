// Comparison: shows the same worlds to the reference engine and to the fast one, afresh and long-lived, and says where
// their answers differ first.
#pragma once

#include <string>

#include "engine/fast/engine.h"
#include "engine/types.h"

namespace muster::engine {

class Comparison {
 public:
  explicit Comparison(const Policy& policy) : policy_(policy), long_lived_(policy), unexplained_(policy) {}

  // The reference's decision; `memory` becomes its memory. The first call must be the first cycle of the history.
  Decision Decide(const World& world, Memory& memory, MonoTime now);
  // Empty while all agreed.
  const std::string& difference() const { return difference_; }

 private:
  void Note(const std::string& who, const Decision& expected, const Memory& expected_memory, const Decision& got,
            const Memory& got_memory);

  Policy policy_;
  fast::Follower long_lived_;
  fast::Follower unexplained_;  // decides without verdicts, as production does
  bool first_ = true;
  int cycle_ = 0;
  std::string difference_;
};

}  // namespace muster::engine
