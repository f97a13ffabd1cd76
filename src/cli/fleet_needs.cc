#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/ask.h"
#include "cli/fleet.h"
#include "cli/table.h"
#include "contract/shard.h"
#include "host/json_object.h"
#include "model/reason.h"

namespace muster::cli {
namespace {

struct Flags {
  ShardFlags shard;
  std::string cluster;
  int64_t limit = 0;
};

// What a need is asking for, short enough for a line.
std::string StateOf(const contract::NeedView& view) {
  if (view.satisfied) return "satisfied";
  return view.parked ? "parked" : "short";
}

std::string TableOf(const std::vector<contract::NeedView>& needs, bool wide) {
  Rows rows = {{"CLUSTER", "PRIORITY", "GROUP", "WANTS", "STATE", "SHORT OF", "MACHINES", "COMING", "AGE", "REASON"}};
  if (wide) rows[0].insert(rows[0].end(), {"IDLE", "SPECULATIVE", "CONFIGURED", "VICTIMS", "DOMAIN", "FINGERPRINT"});
  for (const contract::NeedView& view : needs) {
    rows.push_back({view.need.cluster, std::to_string(view.need.profile.priority()), OrDash(view.need.group),
                    view.need.aggregate.ToString(), StateOf(view) + (view.has_session ? "" : " (no session)"),
                    view.satisfied ? "-" : view.residual.ToString(), std::to_string(view.claimed_machines),
                    std::to_string(view.bootstraps + view.provisions), std::to_string(view.age_cycles_unmet),
                    view.satisfied ? "-" : OrDash(std::string(model::ReasonName(view.reason)))});
    if (!wide) continue;
    rows.back().insert(rows.back().end(), {std::to_string(view.supply.idle), std::to_string(view.supply.speculative),
                                           std::to_string(view.supply.configured), std::to_string(view.victims),
                                           OrDash(view.same_domain), view.need.profile.fingerprint()});
  }
  return FormatTable(rows);
}

std::string JsonOf(const contract::NeedView& view) {
  host::JsonObject json;
  json.Add("cluster", view.need.cluster)
      .Add("fingerprint", view.need.profile.fingerprint())
      .Add("group", view.need.group)
      .Add("priority", view.need.profile.priority())
      .Add("aggregate", view.need.aggregate.ToString())
      .Add("minUnit", view.need.min_unit.ToString())
      .Add("satisfied", view.satisfied)
      .Add("parked", view.parked)
      .Add("session", view.has_session)
      .Add("residual", view.residual.ToString())
      .Add("machines", view.claimed_machines)
      .Add("bootstraps", view.bootstraps)
      .Add("provisions", view.provisions)
      .Add("ageCycles", view.age_cycles_unmet)
      .Add("reason", model::ReasonName(view.reason))
      .Add("domain", view.same_domain)
      .Add("supplyIdle", view.supply.idle)
      .Add("supplySpeculative", view.supply.speculative)
      .Add("supplyConfigured", view.supply.configured)
      .Add("victims", view.victims);
  return json.Take() + "\n";
}

Result<int> Show(const Flags& flags, bool only_short) {
  if (flags.limit < 0 || flags.limit > INT32_MAX) return InvalidArgument("--limit must not be below 0; 0 shows all");
  MUSTER_ASSIGN_OR_RETURN(
      contract::NeedsInspected reply,
      AskShardFor<contract::NeedsInspected>(
          flags.shard, contract::InspectNeeds{.cluster_id = flags.cluster,
                                              .limit = only_short ? 0 : static_cast<int32_t>(flags.limit)}));
  const auto total = static_cast<size_t>(reply.total);
  if (only_short) std::erase_if(reply.needs, [](const contract::NeedView& view) { return view.satisfied; });
  const size_t all = only_short ? reply.needs.size() : total;
  if (flags.limit > 0 && reply.needs.size() > static_cast<size_t>(flags.limit)) {
    reply.needs.resize(static_cast<size_t>(flags.limit));
  }
  if (flags.shard.output == "json") {
    for (const contract::NeedView& view : reply.needs) Print(JsonOf(view));
  } else {
    Print(TableOf(reply.needs, flags.shard.output == "wide"));
    Print(only_short ? fmt::format("{} of {} needs are short, cycle {}\n", all, total, reply.cycle)
                     : fmt::format("{} needs, cycle {}\n", total, reply.cycle));
  }
  if (reply.needs.size() < all) fmt::print(stderr, "{} more; --limit 0 shows all\n", all - reply.needs.size());
  return kOk;
}

void AddOne(Verb& fleet, const std::string& name, const std::string& summary, bool only_short) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = fleet.AddVerb(name, summary);
  AddShardFlags(verb, flags->shard);
  verb.Option("--cluster", flags->cluster, "Only needs of this cluster")
      .Option("--limit", flags->limit, "Show at most so many; 0 shows all")
      .Example(fmt::format("muster fleet {}", name))
      .Example(fmt::format("muster fleet {} --cluster blue -o wide", name))
      .Run([flags, only_short] { return Show(*flags, only_short); });
}

}  // namespace

void AddFleetNeeds(Verb& fleet) {
  AddOne(fleet, "needs", "List what clusters want and what they have got, in the order of decision", false);
  AddOne(fleet, "shortfalls", "List the needs that are short, and why", true);
}

}  // namespace muster::cli
