// The reference engine: every rule of docs/engine.md in the plainest code.
#pragma once

#include "base/time.h"
#include "engine/types.h"

namespace muster::engine::reference {

// Decides one cycle and brings `memory` up to date for the next.
Decision Decide(const World& world, Memory& memory, MonoTime now, const Policy& policy);

}  // namespace muster::engine::reference
