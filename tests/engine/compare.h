// Comparison: shows the same worlds to the reference engine and to the fast one, afresh and long-lived, and says where
// their answers differ first.
#pragma once

#include <optional>
#include <string>

#include "base/parallel.h"
#include "engine/fast/follower.h"
#include "engine/search.h"
#include "engine/types.h"

namespace muster::engine {

// Shows `decide` every gang under another name in every other call.
DecideFn UnderNewNames(DecideFn decide);
// Some needs ask for what no machine has, and then some machines have some of it.
DecideFn AskingForTheUnknown(DecideFn decide);
// Every machine has another price in every call, and so have many Failed ones, of ever new kinds.
DecideFn WithPricesThatMove(DecideFn decide);

// Machines with many names that no other has come and go; some needs ask for such names all the time.
DecideFn WithNamesThatPass(DecideFn decide);

class Comparison {
 public:
  // The reference's decision; `memory` becomes its memory. Memory that is not what the last call left behind is a
  // restart: the long-lived engines begin anew from it.
  Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy);
  // Empty while all agreed.
  const std::string& difference() const { return difference_; }
  // The same as a function; good as long as the comparison.
  DecideFn AsFunction() {
    return [this](const World& world, Memory& memory, MonoTime now, const Policy& policy) {
      return Decide(world, memory, now, policy);
    };
  }
  // Cycles compared, up to the one that differs.
  int cycles() const { return cycle_; }

 private:
  void Note(const std::string& who, const Decision& expected, const Memory& expected_memory, const Decision& got,
            const Memory& got_memory);

  std::optional<fast::Follower> long_lived_;
  std::optional<fast::Follower> unexplained_;  // decides without verdicts, as production does
  ShuffledParallel shuffled_{7, 8};
  std::optional<fast::Follower> side_by_side_;  // eight workers, in any order
  std::optional<fast::Follower> unexplained_side_by_side_;
  Memory left_behind_;
  int cycle_ = 0;
  std::string difference_;
};

}  // namespace muster::engine
