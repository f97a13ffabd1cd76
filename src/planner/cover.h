// Cover: the cheapest fractional set of choices whose summed capacity covers the summed demand, and what one grain of
// each dimension is worth in it.
//
//   minimise price * x  so that  capacity * x >= demand, x >= 0
//
// Its cost is a lower bound of every plan, and its dual values are the price of a request: a node that is filled to its
// last grain is worth its price at the optimum, any other less. Solved on the dual side, where doing nothing is
// feasible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::planner {

struct CoverProblem {
  size_t rows = 0;                 // dimensions
  std::vector<double> demand;      // one for each row
  std::vector<double> prices;      // one for each column
  std::vector<double> capacities;  // column by column
};

struct CoverAnswer {
  std::vector<double> values;  // per unit of each row; not negative; columns of capacity are worth at most their price
  double bound = 0;            // values * demand
};

CoverAnswer SolveCover(const CoverProblem& problem);

}  // namespace muster::planner
