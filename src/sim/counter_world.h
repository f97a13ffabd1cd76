// The counter's world: two counters that mirror each other, clients that retry until answered, and every fault the
// kernel has. Shows how a scenario is built, and proves the loop's promises: what was answered is durable, nothing is
// counted twice, a mirror never runs ahead of what it mirrors.
#pragma once

#include <cstdint>
#include <string>

#include "sim/campaign.h"

namespace muster::sim {

struct CounterWorldOptions {
  std::string journal_directory;  // if given, the steps of each counter are written to <directory>/<name>
};

// Runs one seed to its end: a time of faults, then a time of calm in which everything must come to rest.
RunResult RunCounterWorld(uint64_t seed, const CounterWorldOptions& options = {});

}  // namespace muster::sim
