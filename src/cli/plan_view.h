// A plan for people and for programs.
#pragma once

#include <string>

#include "cli/document.h"
#include "cli/plan_files.h"
#include "planner/plan.h"

namespace muster::cli {

// Whether there is something to do: machines to buy, units without a place, or, for the ideal fleet, money to save.
bool HasChanges(const PlanQuestion& question, const planner::Plan& plan);

std::string PlanTable(const PlanQuestion& question, const planner::Plan& plan);
Document PlanDocument(const PlanQuestion& question, const planner::Plan& plan);

// What the input is noted for, a line each; of many the first, and how many more there are.
std::string InputNotes(const PlanQuestion& question);
// Whose prices they are.
std::string PriceNote(const PlanQuestion& question);

// "$0.768": three decimals where they matter, thousands apart.
std::string FormatPrice(model::Money money);

}  // namespace muster::cli
