// Which shape is measured how.
#pragma once

#include <span>
#include <string_view>

#include "engine/types.h"

namespace muster::bench {

struct Plan {
  std::string_view shape;
  bool warm = false;       // cycles on and on, with demand that breathes and machines that fail
  bool inventory = false;  // no demand: the list, and one change to it
  Duration surplus_hold = engine::Policy{}.surplus_hold;
};

// One for every shape of engine/shapes, in the order of docs/benchmarks.md.
std::span<const Plan> Plans();

}  // namespace muster::bench
