#include <fmt/format.h>

#include <memory>

#include "cli/ask.h"
#include "cli/fleet.h"
#include "cli/table.h"
#include "contract/shard.h"
#include "host/json_object.h"

namespace muster::cli {
namespace {

std::string JsonOf(const contract::ClusterView& view) {
  host::JsonObject json;
  json.Add("cluster", view.cluster_id)
      .Add("session", view.session)
      .Add("gateOpen", view.gate_open)
      .Add("mode", contract::ActuationModeName(view.mode))
      .Add("needs", view.needs)
      .Add("configured", view.configured)
      .Add("heldRollups", view.held_rollups)
      .Add("reclaimsInWindow", view.reclaims_in_window)
      .Add("lastRefusal", view.last_refusal);
  return json.Take() + "\n";
}

Result<int> Show(const ShardFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const contract::ClustersListed reply,
                          AskShardFor<contract::ClustersListed>(flags, contract::ListClusters{}));
  if (flags.output == "json") {
    for (const contract::ClusterView& view : reply.clusters) Print(JsonOf(view));
    return kOk;
  }
  Rows rows = {
      {"CLUSTER", "SESSION", "MODE", "NEEDS", "MACHINES", "GATE", "HELD", "RECLAIMED", "LAST ROLL-UP REFUSED"}};
  for (const contract::ClusterView& view : reply.clusters) {
    rows.push_back({view.cluster_id, view.session ? "yes" : "no", std::string(contract::ActuationModeName(view.mode)),
                    std::to_string(view.needs), std::to_string(view.configured), view.gate_open ? "open" : "shut",
                    std::to_string(view.held_rollups), std::to_string(view.reclaims_in_window),
                    OrDash(view.last_refusal)});
  }
  Print(FormatTable(rows));
  return kOk;
}

}  // namespace

void AddFleetClusters(Verb& fleet) {
  const auto flags = std::make_shared<ShardFlags>();
  Verb verb = fleet.AddVerb("clusters", "List clusters: sessions, pauses, roll-ups that were held or refused");
  AddShardFlags(verb, *flags);
  verb.Example("muster fleet clusters").Run([flags] { return Show(*flags); });
}

}  // namespace muster::cli
