// The benchmark shapes of placement (docs/benchmarks.md, S1 to S3): clusters and what is pending on them, from
// formulas.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "placement/types.h"

namespace muster::placement::shapes {

struct Filled {
  World world;
  std::vector<Unit> pending;  // in the order in which they are served
  Policy policy;
};

struct Shape {
  std::string_view name;
  std::string_view about;
  // `scale` multiplies nodes and pending units; `unique` makes each unit a kind of its own.
  Filled (*build)(double scale, bool unique);
};

std::span<const Shape> Shapes();

}  // namespace muster::placement::shapes
