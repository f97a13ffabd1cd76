// Plays a scenario: the shard's core and the provider's core on virtual time, over a cloud and clusters that do what
// the file says; and tells what happened, in words that are the same on every machine.
#pragma once

#include <string>

#include "base/status.h"
#include "sim/scenario_file.h"

namespace muster::sim {

// The story, a line for each thing that happens, and how it ends. INVALID_ARGUMENT for a fleet that no provider could
// have.
Result<std::string> PlayScenario(const ScenarioFile& scenario);

}  // namespace muster::sim
