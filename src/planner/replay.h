// Replay: what a default Kubernetes scheduler would make of the planned machines.
//
// The scheduler sees one unit at a time, in an order drawn from a seed, and does not pack: of the feasible nodes it
// takes the one with the highest sum of least-allocated, balanced-allocation and twice the spread score, looks at only
// a share of the nodes of a large fleet, and starts where it stopped. Units that find no node are tried again once all
// others are placed. What stays pending gets
// machines of its own, as an autoscaler would buy them, until nothing stays pending or machines do not help: where a
// rule between units keeps a unit out wherever the others went, and where a unit fits no machine but a node that is
// there and full. Machines that helped no unit are not bought.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.h"
#include "planner/solve.h"

namespace muster::planner {

struct ReplayOutcome {
  std::vector<uint32_t>
      first;  // kinds of what found no node on the planned machines, an entry for each; a bundle is one
  std::vector<uint32_t> left;  // of what stays pending with the added machines
  int64_t rounds = 0;
  std::vector<uint32_t> added;  // choices to buy besides those of the solution
};

ReplayOutcome Replay(const Solution& solution, uint64_t seed);

}  // namespace muster::planner
