// What must hold of every decision, whichever engine made it. Checked after every cycle in tests and simulation, from
// the world and the decision alone, by code of its own.
#pragma once

#include <optional>

#include "base/status.h"
#include "base/time.h"
#include "engine/types.h"

namespace muster::engine {

// OK, or INTERNAL with the first invariant that does not hold and the machine or need it fails on. `before` is the
// memory the decision was made with. Surplus that nobody has claimed since `past_hold` (now - the surplus hold) counts
// as past its hold; without it, none does.
Status CheckDecision(const World& world, const Memory& before, const Decision& decision,
                     std::optional<MonoTime> past_hold = {});

}  // namespace muster::engine
