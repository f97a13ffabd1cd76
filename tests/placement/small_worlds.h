// Every world of up to three nodes and up to four units over a small alphabet: the units in one batch, and one after
// the other, so that later ones find earlier ones placed and may preempt them.
#pragma once

#include <cstdint>
#include <functional>

#include "placement/random_world.h"

namespace muster::placement {

enum class Arrival : uint8_t { kTogether, kOneByOne };

// Three for each choice of nodes and units: spread, pack with preemption, and the latter one by one.
inline constexpr uint64_t kSmallWorlds = 705'600;

// Shows every world whose number, counted from 1, is 1 more than a multiple of `every`. Returns how many there are.
uint64_t ForEachSmallWorld(uint64_t every,
                           const std::function<void(const Scene& scene, Arrival arrival, uint64_t number)>& look);

}  // namespace muster::placement
