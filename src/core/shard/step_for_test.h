// StepForTest: a StepContext with everything it refers to, for tests of one part alone.
#pragma once

#include <string>
#include <vector>

#include "core/shard/step_context.h"

namespace muster::shard {

struct StepForTest {
  explicit StepForTest(const Config& config, Duration since_start = 0s)
      : cycle(config, {}),
        ctx{.now = {.mono = MonoTime(1h) + since_start, .wall = WallTime(1000000s) + since_start},
            .effects = effects,
            .cycle = cycle,
            .counters = counters} {}

  // "put KEY" or "erase KEY" for each durable write.
  std::vector<std::string> Writes() const {
    std::vector<std::string> keys;
    for (const contract::Write& write : ctx.writes) keys.push_back((write.value ? "put " : "erase ") + write.key);
    return keys;
  }
  template <class Kind>
  std::vector<Kind> Emitted() const {
    std::vector<Kind> kinds;
    for (const Effect& effect : effects) {
      if (const auto* one = std::get_if<Kind>(&effect)) kinds.push_back(*one);
    }
    return kinds;
  }

  std::vector<Effect> effects;
  CycleTimer cycle;
  Counters counters;
  StepContext ctx;
};

}  // namespace muster::shard
