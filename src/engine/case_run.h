// Runs a case: applies its steps, lets an engine decide each cycle, and carries the decisions out on the case's world.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/case_file.h"
#include "engine/types.h"
#include "model/money.h"

namespace muster::engine {

using DecideFunction = std::function<Decision(const World&, Memory&, MonoTime, const Policy&)>;

// One decided cycle, before it is carried out. References are good during the call that hands it over.
struct CaseCycle {
  int32_t number = 1;
  Duration at{};                              // since the case began
  const World& world;                         // as the engine saw it
  const std::vector<std::string>& row_names;  // of World::needs, position by position
  const Decision& decision;
  model::Money cost_before;  // an hour: all machines that exist; neither Speculative nor Failed
  model::Money cost_after;   // once what is bought has come and what is released has gone
};

// Calls `see` for cycles 1 to `cycles`.
void RunCase(const Case& input, const DecideFunction& decide, int32_t cycles,
             const std::function<void(const CaseCycle&)>& see);

}  // namespace muster::engine
