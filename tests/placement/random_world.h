// Random worlds and changes for the comparison of the placers. Small alphabets make ties, contention and every filter
// likely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "placement/types.h"

namespace muster::placement {

struct Scene {
  World world;
  Policy policy;
  std::vector<Unit> batch;
};

Scene RandomScene(Rng& rng);
// From 60 to 200 nodes.
Scene WideScene(Rng& rng);
// Nodes full of units, and a batch of one kind that may preempt them all.
Scene CrowdedScene(Rng& rng);
Kind RandomKind(Rng& rng);
Node RandomNode(Rng& rng, int number);
// Units of kinds of the world that are not placed yet, numbered from `next`.
std::vector<Unit> RandomBatch(Rng& rng, const World& world, int& next, int64_t most);
PlacedUnit RandomPlaced(Rng& rng, const World& world, int& next);

// The environment's MUSTER_SEARCH_SCALE, 1 unless set: 10 makes a test ten times as long.
uint64_t SearchScale();

}  // namespace muster::placement
