// Random running clusters: nodes with units that a scheduler put there, some of which have left since.
#pragma once

#include <cstdint>

#include "planner/plan.h"

namespace muster::planner {

// The same for the same seed. Units have every rule between units that a scheduler knows, budgets, and terminate now
// and then; nodes have zones, racks and pools.
Request RandomCluster(uint64_t seed);

}  // namespace muster::planner
