// Checker: judges a plan on its final state, from the request and the plan alone.
//
// It shares no code with placement or with the packing: it reads labels, taints, terms and selectors with tests of its
// own, in strings and plain sums, so that a mistake there cannot hide here. A rule between units holds if each planned
// unit could be put where it is with all others in place.
//
// Checked: (1) every unit that was asked for is assigned once or unplaced once, and nothing else is; (2) machines have
// ids of their own and candidates that exist, and none but those of the replay is empty; (3) no node holds more than it
// has of any resource, and no device more than itself; (4) labels, node terms, taints, cordons, types; (5) host ports;
// (6) hard spread; (7) co-location; (8) exclusion, both ways; (9) prices, sums and the bound; (10) utilisation.
#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace muster::planner {

// A sentence for each breach, at most 20; empty: the plan holds.
std::vector<std::string> CheckPlan(const Request& request, const Plan& plan);

}  // namespace muster::planner
