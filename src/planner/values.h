// Values: what one grain of each dimension and one exclusive place on a node are worth, by the fractional cover.
//
// Units that may share a node with only so many of their own selector need that many nodes however small they are, so a
// place for one is a dimension of the cover too: every node has `most` of them. Without it the cover of 1,000 exclusive
// units would be a few large nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/cover.h"
#include "planner/problem.h"

namespace muster::planner {

struct Values {
  std::vector<double> grain;  // by dimension
  std::vector<double> worth;  // of one unit of each kind, always above zero
  double bound = 0;           // micro-dollars: no plan for these units costs less
  bool exclusive = false;     // whether units of `selector` force more nodes than the amounts do
  uint32_t selector = 0;
  int64_t most = 1;  // of the selector on a node
  double place = 0;  // what one of its places is worth
};

// Thread-safety: none needed; const.
class Valuer {
 public:
  // The problem outlives the valuer.
  explicit Valuer(const Problem& problem);

  // With so many units of each kind. `with_fixed`: nodes that are there cover first, and cost nothing. `even`: how far,
  // from 0 to 1, the values are drawn from the cover's towards those at which every resource that is nearly short is
  // worth as much as any other. The bound is the cover's in any case.
  Values Of(const std::vector<int64_t>& counts, bool with_fixed, double even = 0) const;
  // All units of the problem.
  Values OfAll(double even = 0) const;
  // By cell: the least price of what is worth one micro-dollar by these values.
  std::vector<double> LevelsOf(const Values& values) const;

 private:
  struct Places {
    uint32_t selector = 0;
    int64_t most = 1;
    std::vector<uint32_t> kinds;
  };

  void AddPlaces();
  double LeastWorth(const DenseKind& kind) const;
  void Even(const CoverProblem& cover, double bound, double even, std::vector<double>& grain) const;

  const Problem& problem_;
  std::vector<bool> placeable_;  // by kind
  std::vector<Places> places_;   // those that force the most nodes, in that order
  CoverProblem columns_;         // without demand
  std::vector<int64_t> largest_;
  double cheapest_ = 1;
};

// Whether a unit of the kind takes one of the selector's places on a node.
bool TakesPlace(const DenseKind& kind, uint32_t selector);

}  // namespace muster::planner
