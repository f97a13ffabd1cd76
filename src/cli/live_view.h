// What would happen, for people and for programs: a live plan and a what-if.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/document.h"
#include "cli/live_run.h"

namespace muster::cli {

// Cost, machines by class, moves, what is left without a node, shortfalls. Ends with a newline.
std::string OutcomeText(const LiveOutcome& outcome);
// The same as keys of a map that there is already.
void AddOutcome(const LiveOutcome& outcome, const std::string& cluster, Document& map);

// How many of each class there are before and afterwards, and the price of one.
Document MachinesDocument(const std::map<MachineClass, MachineCount>& machines);

// "The cheapest fleet for these workloads: ..." `cluster` pays for the machines that are bound to it.
std::string CheapestText(const CheapestFleet& fleet, const LiveOutcome& outcome, const std::string& cluster);
Document CheapestDocument(const CheapestFleet& fleet);

// "$0.39/h, $0.20/h more"
std::string CostChange(model::Money before, model::Money after);

}  // namespace muster::cli
