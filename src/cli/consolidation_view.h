// A consolidation for people and for programs.
#pragma once

#include <string>

#include "cli/document.h"
#include "cli/plan_files.h"
#include "planner/consolidate.h"

namespace muster::cli {

std::string ConsolidationTable(const PlanQuestion& question, const planner::Consolidation& consolidation);
Document ConsolidationDocument(const PlanQuestion& question, const planner::Consolidation& consolidation);

}  // namespace muster::cli
