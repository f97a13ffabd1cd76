// Values: what one grain of each dimension and one exclusive place on a node are worth, by the fractional cover.
//
// Units that may share a node with only so many of their own selector need that many nodes however small they are, so a
// place for one is a dimension of the cover too: every node has `most` of them. Without it the cover of 1,000 exclusive
// units would be a few large nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace muster::planner {

struct Values {
  std::vector<double> grain;  // by dimension
  std::vector<double> worth;  // of one unit of each kind, always above zero
  std::vector<double> level;  // by cell: price of the cheapest way to buy one dollar's worth; above zero
  double bound = 0;           // micro-dollars: no plan for all units costs less
  bool exclusive = false;     // whether `selector` forces more nodes than the amounts do
  uint32_t selector = 0;
  int64_t most = 1;  // of the selector on a node
};

Values ValuesOf(const Problem& problem);

// Whether a unit of the kind takes one of the selector's places on a node.
bool TakesPlace(const DenseKind& kind, uint32_t selector);

}  // namespace muster::planner
