// `muster explain --plan NAME`: why a unit is where a plan puts it, or what a machine or node of it carries.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/plan_files.h"
#include "planner/plan.h"

namespace muster::cli {

// Plans as `muster plan` would and explains one unit, machine or node of the answer.
Result<int> ExplainPlan(const PlanFlags& flags, const std::string& name);

// The text of it. NOT_FOUND if the plan has nothing of that name, with the nearest name it has.
Result<std::string> ExplainInPlan(const PlanQuestion& question, const planner::Plan& plan, const std::string& name);

}  // namespace muster::cli
