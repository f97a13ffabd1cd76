// What must hold of every decision, whichever engine made it. Checked after every cycle in tests and simulation, from
// the world and the decision alone, by code of its own.
#pragma once

#include "base/status.h"
#include "engine/types.h"

namespace muster::engine {

// OK, or INTERNAL with the first invariant that does not hold and the machine or need it fails on. `before` is the
// memory the decision was made with.
Status CheckDecision(const World& world, const Memory& before, const Decision& decision);

}  // namespace muster::engine
