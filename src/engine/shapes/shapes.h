// Benchmark shapes: fleets with their demand, as exact functions of a scale, for benchmarks and tests.
//
// Everything follows from running numbers, or from a generator that is part of the shape, so that two programs that
// build it have the same world, byte for byte. docs/benchmarks.md says what each is for and what was measured on it.
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

// The shapes themselves. Sizes are those of scale 1; every cluster has a session and, unless said, an open gate.

// 500,000 Idle machines of five types; 50 clusters of 16 needs of 62 or 63 machines.
World Aggregated500k(Scale scale);
// 5,000 Idle machines in 4 buckets (type, zone); 100 clusters of 10 needs, each of 4 machines, at priorities 100, 1,000
// and 10,000, for one type, the other or either: a shard's first cycle, with everybody after the same machines.
World ColdMixed(Scale scale);
// 20 clusters with 250 Configured machines each, 1,000 Idle, 12,000 Speculative; 2,580 needs, of which 1,900 gangs fit
// one machine and 640 take five machines of a rack.
World Colocated5k(Scale scale);
// 100,000 machines, each with its own price and rack; 50 clusters of 100 needs, each with its own profile: 20 racks, or
// a mixture of pools, zones and types.
World Degenerate100k(Scale scale);
// 100,000 Idle machines of one type in 8 racks; 20,000 clusters with a one-machine gang each.
World Gangs100k(Scale scale);
// A provider's list and no demand: 50 clusters with 800 Idle and 400 Configured machines each, no two of these bound at
// the same terms.
World Inventory60k(Scale scale);
// The same with 6,667 and 3,333.
World Inventory500k(Scale scale);
// 500,000 Configured machines of 10 clusters, gates shut; 100 needs of higher priority from clusters that have none.
World Inversions500k(Scale scale);
// 50 clusters with 9,000 Configured machines each, and a need for 10,000.
World Keep450k(Scale scale);
// 450,000 Configured machines of 50 clusters, gates shut; 100 needs of lower priority from clusters that have none.
World NoVictims450k(Scale scale);
// 500,000 Idle machines of five types; 50 clusters of 16 needs of 625 machines: all of them.
World OneToOne500k(Scale scale);
// The same machines; 50 clusters of 10,000 needs of one machine.
World OneToOne500kSingle(Scale scale);
// 500 clusters, each with one need and the choice of 4 to 12 kinds of Speculative machines (procurement.h, ample).
World ProcurementFleet(Scale scale);
// 60,000 Idle machines of 144 classes; 50 clusters of 1,000 one-machine needs, 15 % of them with Same(rack).
World Realistic50k(Scale scale);
// The same with Same(rack) on every need.
World Realistic50kSame(Scale scale);
// 500,000 Configured machines of 50 clusters, each of one type; 150 needs, of which 50 are of the cluster's type.
World Reclaim500k(Scale scale);
// 20 clusters of 326 Configured machines and some 232 needs, 223 of them gangs; 1,006 Idle, 15,000 Speculative.
World Uber5k(Scale scale);
// Ten times the clusters, 10,000 Idle, 150,000 Speculative.
World Uber50k(Scale scale);
// Ten times that.
World Uber500k(Scale scale);

}  // namespace muster::engine
