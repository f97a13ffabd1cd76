// Every world of up to three machines, three needs and two clusters over a small alphabet; needs that spread in worlds
// of up to two.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/random_world.h"

namespace muster::engine {

// Shows every world whose number, counted from 1, is 1 more than a multiple of `every`. Returns how many there are.
uint64_t ForEachSmallWorld(uint64_t every, const std::function<void(const Scene& scene, uint64_t number)>& look);

}  // namespace muster::engine
