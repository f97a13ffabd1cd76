// Search: makes a packing cheaper, step by step.
//
// Again and again it empties one to three bins, those that waste most before others, and puts their units elsewhere:
// into the room of other nodes, onto nodes that grow, or onto nodes bought anew with another mixture of types. That
// merges, splits, retypes and swaps. What does not make the packing dearer is kept. Draws come from a fixed seed and
// effort is counted, so the same packing comes out on every machine; it never ends dearer than it began.
#pragma once

#include <cstdint>
#include <functional>

#include "planner/build.h"
#include "planner/packing.h"

namespace muster::planner {

struct SearchOptions {
  uint64_t steps = 0;  // of the builder
  int64_t bound = 0;   // micro-dollars: it ends when the packing costs no more
  double heat = 0;     // how much dearer a round may make the packing, in what a node wastes on average
  bool vary = false;   // whether values change from the cover's towards even ones, and back (Valuer::Of)
  // Asked now and then; false ends the search.
  std::function<bool(uint64_t done)> go_on;
};

struct SearchReport {
  uint64_t steps = 0;
  bool stopped = false;
};

// Every unit that can be placed is placed.
SearchReport Search(Packing& packing, Builder& builder, const SearchOptions& options);

}  // namespace muster::planner
