// Benchmark shapes: fleets with their demand, as exact functions of a scale, for benchmarks and tests.
//
// A shape draws nothing at random: everything follows from running numbers, so that two programs that build it have the
// same world, byte for byte. docs/benchmarks.md says what each is for and what was measured on it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/types.h"

namespace muster::engine {

// A shape's machines and clusters are multiplied by times / parts, rounded down, and are never fewer than one.
struct Scale {
  int64_t times = 1;
  int64_t parts = 1;

  int64_t Of(int64_t count) const;
};

struct Shape {
  std::string_view name;
  std::string_view summary;
  World (*build)(Scale scale);
};

std::span<const Shape> Shapes();                // by name
const Shape* FindShape(std::string_view name);  // null if there is none

// The shapes themselves. Sizes are those of scale 1; every cluster has a session and an open gate.

// 5,000 Idle machines in 4 buckets (type, zone); 100 clusters of 10 needs, each of 4 machines, at priorities 100, 1,000
// and 10,000, for one type, the other or either: a shard's first cycle, with everybody after the same machines.
World ColdMixed(Scale scale);
// 20 clusters with 250 Configured machines each, 1,000 Idle, 12,000 Speculative; 2,580 needs, of which 1,900 gangs fit
// one machine and 640 take five machines of a rack.
World Colocated5k(Scale scale);
// 100,000 Idle machines of one type in 8 racks; 20,000 clusters with a one-machine gang each.
World Gangs100k(Scale scale);
// 60,000 Idle machines of 144 classes; 50 clusters of 1,000 one-machine needs, 15 % of them with Same(rack).
World Realistic50k(Scale scale);
// The same with Same(rack) on every need.
World Realistic50kSame(Scale scale);

}  // namespace muster::engine
