// Random requests for the planner: small catalogues, and units with every rule that it carries out.
#pragma once

#include <cstdint>

#include "planner/plan.h"

namespace muster::planner {

// The same for the same seed. About one in three keeps nodes with units on them.
Request RandomRequest(uint64_t seed);

}  // namespace muster::planner
