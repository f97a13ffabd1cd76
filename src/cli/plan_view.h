// A plan for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "cli/document.h"
#include "cli/plan_files.h"
#include "planner/plan.h"

namespace muster::cli {

// What the fleet costs before and after, with the nodes that the plan leaves alone; nothing where a node is unpriced.
struct PlanCosts {
  std::optional<model::Money> before;
  std::optional<model::Money> after;
};
PlanCosts CostsOf(const PlanQuestion& question, const planner::Plan& plan);

// Whether there is something to do: machines to buy, units without a place, or, for the ideal fleet, money to save.
bool HasChanges(const PlanQuestion& question, const planner::Plan& plan);

std::string PlanTable(const PlanQuestion& question, const planner::Plan& plan);
Document PlanDocument(const PlanQuestion& question, const planner::Plan& plan);

// "$0.768": three decimals where they matter, thousands apart.
std::string FormatPrice(model::Money money);

}  // namespace muster::cli
