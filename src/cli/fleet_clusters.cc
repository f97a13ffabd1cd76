#include <fmt/format.h>

#include <memory>

#include "cli/ask.h"
#include "cli/document.h"
#include "cli/fleet.h"
#include "cli/order_text.h"
#include "cli/table.h"
#include "contract/shard.h"
#include "model/money.h"
#include "model/text_scalars.h"

namespace muster::cli {
namespace {

// "3 of 20 machines, $1.20 of $5.00/h, priority up to 100"; empty without a ceiling.
std::string CeilingText(const contract::ClusterView& view) {
  if (!view.ceiling) return "";
  const contract::CeilingView& ceiling = *view.ceiling;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (ceiling.most_machines) add(fmt::format("{} of {} machines", ceiling.machines, *ceiling.most_machines));
  if (ceiling.most_per_hour) {
    add(fmt::format("{} of {}/h", model::FormatMoney(ceiling.per_hour), model::FormatMoney(*ceiling.most_per_hour)));
  }
  if (ceiling.highest_priority) add(fmt::format("priority up to {}", *ceiling.highest_priority));
  return text;
}

Document DocumentOf(const contract::ClusterView& view) {
  return Document::Map()
      .Add("cluster", view.cluster_id)
      .Add("session", view.session)
      .Add("gateOpen", view.gate_open)
      .Add("mode", contract::ActuationModeName(view.mode))
      .Add("needs", int64_t{view.needs})
      .Add("configured", int64_t{view.configured})
      .Add("heldRollups", int64_t{view.held_rollups})
      .Add("reclaimsInWindow", int64_t{view.reclaims_in_window})
      .Add("lastRefusal", view.last_refusal)
      .Add("holdUntil", view.hold_until ? model::FormatWallTime(*view.hold_until) : "")
      .Add("missing", int64_t{view.missing})
      .Add("failing", int64_t{view.failing})
      .Add("lacking", int64_t{view.lacking})
      .Add("lossesFailed", view.losses_failed)
      .Add("lossesVanished", view.losses_vanished)
      .Add("growthWaits", int64_t{view.growth_waits})
      .Add("trialWaits", int64_t{view.trial_waits})
      .Add("decommissioned", view.decommissioned)
      .Add("ceiling", CeilingText(view))
      .Add("atCeiling", view.ceiling && view.ceiling->reached)
      .Add("lastOrder", view.last_order.kind)
      .Add("orderedBy", view.last_order.who)
      .Add("orderReason", view.last_order.reason)
      .Add("orderedAt", view.last_order.kind.empty() ? "" : model::FormatWallTime(view.last_order.at));
}

// "machines failed and vanished in masses: muster fleet accept --cluster a"; empty without an alert.
std::string AlertText(bool failed, bool vanished, const std::string& cluster) {
  if (!failed && !vanished) return "";
  const char* what = failed && vanished ? "failed and vanished" : failed ? "failed" : "vanished";
  return fmt::format("machines {} in masses: muster fleet accept{}", what,
                     cluster.empty() ? "" : " --cluster " + cluster);
}

// What is unusual about the cluster, the most urgent first.
std::string Trouble(const contract::ClusterView& view) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (view.decommissioned) add("decommissioned");
  const std::string alert = AlertText(view.losses_failed, view.losses_vanished, view.cluster_id);
  if (!alert.empty()) add(alert);
  if (view.failing > 0) add(fmt::format("{} called Failed in masses", view.failing));
  if (view.missing > 0) add(fmt::format("{} missing", view.missing));
  if (view.lacking > 0) add(fmt::format("{} lost while the shard was down", view.lacking));
  if (view.hold_until)
    add(fmt::format("its Configures fail; on hold until {}", model::FormatWallTime(*view.hold_until)));
  if (view.growth_waits > 0) {
    add(fmt::format("{} machines wait for those that are being configured", view.growth_waits));
  }
  if (view.trial_waits > 0)
    add(fmt::format("on trial: {} actions wait for a Configure that ends well", view.trial_waits));
  if (view.ceiling && view.ceiling->reached) add("at its ceiling: " + CeilingText(view));
  if (!view.last_refusal.empty()) add(view.last_refusal);
  return text;
}

Result<int> Show(const ShardFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const contract::ClustersListed reply,
                          AskShardFor<contract::ClustersListed>(flags, contract::ListClusters{}));
  if (IsDocument(flags.output)) {
    DocumentStream documents(flags.output == "yaml");
    for (const contract::ClusterView& view : reply.clusters) Print(documents.Add(DocumentOf(view)));
    return kOk;
  }
  Rows rows = {
      {"CLUSTER", "SESSION", "MODE", "NEEDS", "MACHINES", "GATE", "HELD", "RECLAIMED", "LAST ORDER", "TROUBLE"}};
  for (const contract::ClusterView& view : reply.clusters) {
    rows.push_back({view.cluster_id, view.session ? "yes" : "no", std::string(contract::ActuationModeName(view.mode)),
                    std::to_string(view.needs), std::to_string(view.configured), view.gate_open ? "open" : "shut",
                    std::to_string(view.held_rollups), std::to_string(view.reclaims_in_window),
                    OrDash(OrderText(view.last_order)), OrDash(Trouble(view))});
  }
  Print(FormatTable(rows));
  Print(fmt::format("the shard is {}", contract::ActuationModeName(reply.shard_mode)));
  const std::string order = OrderText(reply.last_order);
  Print(order.empty() ? "\n" : fmt::format("; last order: {}\n", Printable(order)));
  const std::string alert = AlertText(reply.losses_failed, reply.losses_vanished, "");
  if (!alert.empty()) Print(fmt::format("of the fleet {}\n", alert));
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
