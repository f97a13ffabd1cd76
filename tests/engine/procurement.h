// What a good buyer pays for a procurement instance, to judge the engine by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/shapes/procurement.h"
#include "engine/types.h"

namespace muster::engine {

// What the machines named by these ids cost an hour. Checked: the ids are of this world.
int64_t CostOf(const World& world, const std::vector<std::string>& machines);

// The least cost of a cover, by an integer program. Checked: one exists.
int64_t ExactOptimum(const Procurement& procurement);

// The same from a table of the least cost of every part of the demand: simple, and slow where the demand is large.
int64_t TabulatedOptimum(const Procurement& procurement);

// Cover A alone: in order of price, then size, whatever still adds something; then what the rest makes redundant is
// dropped, dearest first.
int64_t PriceOrderCost(const Procurement& procurement);

}  // namespace muster::engine
