// `muster plan -f FILE` without a catalogue: what an apply of the file would do to the running system.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/halves.h"
#include "cli/progress.h"

namespace muster::cli {

struct LivePlanFlags {
  std::vector<std::string> files;
  std::string cluster;                                     // as the shard names it; empty: found
  std::string output;                                      // table, json or yaml
  HalvesFlags halves;                                      // as they were given: the apply needs the same
  Progress::Clock clock = std::chrono::steady_clock::now;  // of how long it takes
};

// 0: nothing would change; 2: something would.
Result<int> PlanLive(Halves& halves, const LivePlanFlags& flags);

}  // namespace muster::cli
