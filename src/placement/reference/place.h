// The reference placer: every rule of docs/placement.md in the plainest code. It is the meaning of the rules; a faster
// placer agrees with it in every outcome.
#pragma once

#include <span>
#include <vector>

#include "placement/types.h"

namespace muster::placement::reference {

// Places the units, the most important first, and brings `world` up to date: what is placed is in World::placed, what
// is evicted is not. Outcomes are in the order of `units`.
std::vector<Outcome> Place(World& world, std::span<const Unit> units, const Policy& policy);

// For every node, in the order of World::nodes, the first filter that refuses a unit of this kind. `devices` of placed
// units must be assigned, as Place leaves them (AssignDevices).
std::vector<NodeVerdict> Feasible(const World& world, const Kind& kind);

// Gives every placed unit that asks for devices and has none those that the device rule chooses, in the order of
// World::placed.
void AssignDevices(World& world);

}  // namespace muster::placement::reference
