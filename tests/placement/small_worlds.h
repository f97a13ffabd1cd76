// Every world of up to three nodes and up to four units over a small alphabet.
#pragma once

#include <cstdint>
#include <functional>

#include "placement/random_world.h"

namespace muster::placement {

// Shows every world whose number, counted from 1, is 1 more than a multiple of `every`. Returns how many there are.
uint64_t ForEachSmallWorld(uint64_t every, const std::function<void(const Scene& scene, uint64_t number)>& look);

}  // namespace muster::placement
