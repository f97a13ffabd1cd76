#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/ask.h"
#include "cli/document.h"
#include "cli/explain_offers.h"
#include "cli/fleet.h"
#include "cli/table.h"
#include "contract/shard.h"
#include "model/money.h"
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

// What a need that is short lacks would cost; the machines are those of the shard.
std::string CostOf(const contract::NeedView& view, const std::vector<contract::MachineView>& machines) {
  const auto cost = CheapestFor(view, machines);
  return cost ? model::FormatMoney(cost->price) + "/h" : "-";
}

std::string TableOf(const std::vector<contract::NeedView>& needs, const std::vector<contract::MachineView>& machines,
                    bool wide) {
  Rows rows = {{"CLUSTER", "PRIORITY", "GROUP", "WANTS", "STATE", "SHORT OF", "WOULD COST", "MACHINES", "COMING", "AGE",
                "REASON"}};
  if (wide) rows[0].insert(rows[0].end(), {"IDLE", "SPECULATIVE", "CONFIGURED", "VICTIMS", "DOMAIN", "FINGERPRINT"});
  for (const contract::NeedView& view : needs) {
    rows.push_back({view.need.cluster, std::to_string(view.need.profile.priority()), OrDash(view.need.group),
                    view.need.aggregate.ToString(), StateOf(view) + (view.has_session ? "" : " (no session)"),
                    view.satisfied ? "-" : view.residual.ToString(), CostOf(view, machines),
                    std::to_string(view.claimed_machines), std::to_string(view.bootstraps + view.provisions),
                    std::to_string(view.age_cycles_unmet),
                    view.satisfied ? "-" : OrDash(std::string(model::ReasonName(view.reason)))});
    if (!wide) continue;
    rows.back().insert(rows.back().end(), {std::to_string(view.supply.idle), std::to_string(view.supply.speculative),
                                           std::to_string(view.supply.configured), std::to_string(view.victims),
                                           OrDash(view.same_domain), view.need.profile.fingerprint()});
  }
  return FormatTable(rows);
}

Document DocumentOf(const contract::NeedView& view, const std::vector<contract::MachineView>& machines) {
  const auto cost = CheapestFor(view, machines);
  return Document::Map()
      .Add("cluster", view.need.cluster)
      .Add("fingerprint", view.need.profile.fingerprint())
      .Add("group", view.need.group)
      .Add("priority", int64_t{view.need.profile.priority()})
      .Add("aggregate", view.need.aggregate.ToString())
      .Add("minUnit", view.need.min_unit.ToString())
      .Add("satisfied", view.satisfied)
      .Add("parked", view.parked)
      .Add("session", view.has_session)
      .Add("residual", view.residual.ToString())
      .Add("residualPerHour", cost ? Document::Dollars(cost->price) : Document::Null())
      .Add("machines", int64_t{view.claimed_machines})
      .Add("bootstraps", int64_t{view.bootstraps})
      .Add("provisions", int64_t{view.provisions})
      .Add("ageCycles", int64_t{view.age_cycles_unmet})
      .Add("reason", model::ReasonName(view.reason))
      .Add("domain", view.same_domain)
      .Add("supplyIdle", int64_t{view.supply.idle})
      .Add("supplySpeculative", int64_t{view.supply.speculative})
      .Add("supplyConfigured", int64_t{view.supply.configured})
      .Add("victims", int64_t{view.victims});
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
  // The machines only where they are needed: there may be a hundred thousand. A shard of another make does not list
  // them.
  std::vector<contract::MachineView> machines;
  if (std::ranges::any_of(reply.needs, [](const contract::NeedView& view) { return !view.satisfied; })) {
    const auto listed = AskShardFor<contract::MachinesListed>(flags.shard, contract::ListMachines{});
    if (listed) {
      machines = OneOfEachKind(listed->machines, reply.needs);
    } else {
      fmt::print(stderr, "what would be missing costs is not known: {}\n", Printable(listed.error().message()));
    }
  }
  if (IsDocument(flags.shard.output)) {
    DocumentStream documents(flags.shard.output == "yaml");
    for (const contract::NeedView& view : reply.needs) Print(documents.Add(DocumentOf(view, machines)));
  } else {
    Print(TableOf(reply.needs, machines, flags.shard.output == "wide"));
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
