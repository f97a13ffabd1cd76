// The verbs below `muster fleet`, one file each.
#pragma once

#include "cli/command_line.h"

namespace muster::cli {

void AddFleetMachines(Verb& fleet);
void AddFleetNeeds(Verb& fleet);  // needs, shortfalls
void AddFleetClusters(Verb& fleet);
void AddFleetActions(Verb& fleet);
void AddFleetOrders(Verb& fleet);  // pause, resume, repair, forget, recall, accept, decommission

}  // namespace muster::cli
