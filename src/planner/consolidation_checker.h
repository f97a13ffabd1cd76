// CheckConsolidation: judges a consolidation wave by wave, from the request and the answer alone.
//
// As CheckPlan it shares no code with placement or with the packing. Every state between two waves is judged, not only
// the last: a wave that breaks a rule which a later one mends is a breach.
//
// Checked: (1) every eviction moves a unit that is where it is said to be, may be evicted and moved once at most, to a
// node that never goes or a machine bought by then; (2) no wave evicts more of a budget than it allows; (3) nodes that
// go may go, go once, and are empty; (4) after every wave, on every node that gained a unit: room, devices in sum,
// labels, taints, cordons, types, host ports; (5) after every wave, for every unit that has moved: hard spread,
// co-location, and exclusion both ways; (6) after every wave, for every unit that has not: none of these holds less
// than at the start, spread over the domains of the start; (7) the money saved.
#pragma once

#include <string>
#include <vector>

#include "planner/consolidate.h"

namespace muster::planner {

// A sentence for each breach, at most 20; empty: it holds.
std::vector<std::string> CheckConsolidation(const Request& request, const Consolidation& consolidation);

}  // namespace muster::planner
