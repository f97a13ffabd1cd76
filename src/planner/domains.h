// Domains: gives every unit that a rule over zones or other large domains touches its cell, before anything is packed.
//
// Machines can be bought in any cell that has choices, so such rules can be carried out by counting alone: a unit goes
// to a domain that its rules allow, the emptiest of its selectors first, and packing then works within the cell. In the
// end every unit could be put where it is with all others in place, so the order in which a scheduler sees them does
// not matter. A domain counts if something could be bought there, whether or not the plan does.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "placement/reason.h"
#include "planner/problem.h"

namespace muster::planner {

struct Refused {
  uint32_t kind = 0;
  int64_t count = 0;  // of its units, the last ones
  placement::Reason reason = placement::Reason::kNone;
};

struct CellAssignment {
  std::vector<Lot> lots;  // by kind, then cell
  std::vector<Refused> refused;
};

struct CellRequest {
  std::vector<int64_t> counts;                        // units of each kind that may be placed; the others are refused
  std::vector<double> worth;                          // of one unit of each kind
  std::vector<double> level;                          // how dear a cell is
  std::set<std::pair<uint32_t, uint32_t>> forbidden;  // kinds and cells that packing found no room in
};
CellAssignment AssignCells(const Problem& problem, const CellRequest& request);

// Cells where something could take one unit of the kind if it were empty.
std::vector<bool> CellsThatFit(const Problem& problem, const DenseKind& kind);

}  // namespace muster::planner
