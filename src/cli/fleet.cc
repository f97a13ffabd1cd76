// `muster fleet`: what a running shard, or a provider, has and does.
#include "cli/fleet.h"

#include "cli/verbs.h"

namespace muster::cli {

void AddFleet(CommandLine& app) {
  Verb fleet = app.AddVerb("fleet", "Look at a running shard's machines, needs, clusters and actions, and give orders");
  fleet.Example("muster fleet needs").Example("muster fleet machines --state Failed");
  AddFleetMachines(fleet);
  AddFleetNeeds(fleet);
  AddFleetClusters(fleet);
  AddFleetActions(fleet);
  AddFleetOrders(fleet);
}

}  // namespace muster::cli
