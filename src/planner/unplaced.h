// Why a unit has no place in a plan, and which type comes nearest to taking it.
#pragma once

#include "placement/types.h"
#include "planner/plan.h"

namespace muster::planner {

// `refused`: the rule between units that barred it, if that is known; kNone: find out. The nearest type is the one that
// lacks the fewest things and then the smallest share of what the unit asks for; of equals, the cheapest.
Unplaced ExplainUnplaced(const Request& request, const placement::Unit& unit, placement::Reason refused);

}  // namespace muster::planner
