// The GPU trace (docs/benchmarks.md, P5): units arrive one at a time, in random order, until 130 % of all devices are
// asked for; a unit that fits nowhere is dropped. The figure is the share of device capacity that is in use at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "placement/types.h"

namespace muster::bench {

struct GpuTrace {
  placement::World world;                  // nodes, and one kind for each shape of unit
  std::vector<placement::KindIndex> pods;  // the kinds of the trace's units, in the order of the file
  placement::Policy policy;                // knows how often each shape comes
  int64_t capacity = 0;                    // thousandths of devices, all nodes together
};

// Reads gpu-trace-nodes.csv and gpu-trace-pods.csv in `folder`.
Result<GpuTrace> ReadGpuTrace(const std::string& folder);

// The trace shuffled by the seed, then uniform draws from it until enough is asked for.
std::vector<placement::Unit> Arrivals(const GpuTrace& trace, uint64_t seed);

struct TraceResult {
  double allocated = 0;  // percent of the capacity
  size_t placed = 0;
  uint64_t digest = 0;
};
// One unit at a time, by placement.
TraceResult RunTrace(const GpuTrace& trace, const std::vector<placement::Unit>& arrivals);

// The share that fragmentation gradient descent reaches on the same arrivals: each unit goes to the node whose expected
// fragmentation grows least, exact and without truncated scores; ties go to the node with the least free devices. For
// comparison only.
double RunDescent(const GpuTrace& trace, const std::vector<placement::Unit>& arrivals);

}  // namespace muster::bench
