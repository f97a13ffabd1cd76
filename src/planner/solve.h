// Solve: the cheapest machines it finds for the units of a request, in dense form. MakePlan and MakeConsolidation turn
// it into names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "placement/types.h"
#include "planner/domains.h"
#include "planner/packing.h"
#include "planner/plan.h"
#include "planner/problem.h"
#include "planner/values.h"

namespace muster::planner {

struct Solution {
  std::unique_ptr<const Problem> problem;
  std::unique_ptr<const Valuer> valuer;
  std::vector<Refused> refused;  // by rules over domains
  std::optional<Packing> packing;
  int64_t bound = 0;        // micro-dollars
  int64_t greedy_cost = 0;  // before the search
  uint64_t steps = 0;
  bool stopped = false;
};

// `units` are those of UnitsToPlace(request). The request outlives nothing: the solution refers to itself only.
Solution Solve(const Request& request, const std::vector<const placement::Unit*>& units);

// Steps that the search may take.
uint64_t StepsFor(Effort effort, size_t units);

}  // namespace muster::planner
