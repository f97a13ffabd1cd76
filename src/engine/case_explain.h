// Why: the chain of reasons behind what one cycle of a case did for a need, or with a machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/case_run.h"
#include "model/machine.h"
#include "model/need.h"

namespace muster::engine {

// What stands between a machine and a need, looking at these two alone; nothing if it can serve it.
std::optional<std::string> Obstacle(const model::Machine& machine, const model::Need& need);

// INVALID_ARGUMENT, with the nearest name, when the cycle knows none of this name.
Result<std::string> ExplainNeed(const CaseCycle& cycle, std::string_view name);
Result<std::string> ExplainMachine(const CaseCycle& cycle, std::string_view id);

}  // namespace muster::engine
