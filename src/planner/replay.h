// Replay: what a default Kubernetes scheduler would make of the planned machines.
//
// The scheduler sees one unit at a time, in an order drawn from a seed, and does not pack: of the feasible nodes it
// takes the one with the highest sum of least-allocated, balanced-allocation and twice the spread score, looks at only
// a share of the nodes of a large fleet, and starts where it stopped. Units that find no node are tried again once all
// others are placed. What stays pending gets
// machines of its own, as an autoscaler would buy them, until nothing stays pending.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.h"
#include "planner/solve.h"

namespace muster::planner {

struct ReplayOutcome {
  int64_t pending_at_first = 0;
  int64_t pending_at_last = 0;
  int64_t rounds = 0;
  std::vector<uint32_t> added;  // choices to buy besides those of the solution
};

ReplayOutcome Replay(const Solution& solution, uint64_t seed);

}  // namespace muster::planner
