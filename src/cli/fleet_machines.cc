#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/ask.h"
#include "cli/document.h"
#include "cli/fleet.h"
#include "cli/order_text.h"
#include "cli/table.h"
#include "contract/provider.h"
#include "contract/shard.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/reason.h"
#include "model/text_scalars.h"
#include "rpc/provider_client.h"

namespace muster::cli {
namespace {

struct Flags {
  ShardFlags shard;
  std::string provider;
  std::vector<std::string> states;
  std::string cluster;
  uint64_t limit = 0;
  bool forgotten = false;
};

// Why the shard leaves the machine alone for now.
std::string HoldOf(const contract::MachineView& view) {
  if (view.fenced) return "fenced";
  if (view.missing) return "missing";
  if (!view.hold_until) return view.hold;
  return fmt::format("{} until {}", view.hold, model::FormatWallTime(*view.hold_until));
}

// A provider knows the machines; a shard also what they are for.
std::string TableOf(const std::vector<contract::MachineView>& machines, bool of_shard, bool wide) {
  Rows rows = {{"ID", "STATE", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "CLUSTER"}};
  if (of_shard) rows[0].insert(rows[0].end(), {"REASON", "HOLD"});
  if (wide) rows[0].insert(rows[0].end(), {"HOST", "RESOURCES", "INTERRUPTION", "NEED", "ERROR"});
  for (const contract::MachineView& view : machines) {
    const model::Machine& m = *view.machine;
    rows.push_back({m.id, std::string(model::StateName(m.state)), OrDash(m.instance_type), OrDash(m.zone),
                    std::string(model::CapacityTypeName(m.capacity_type)), model::FormatMoney(m.price_per_hour),
                    OrDash(m.cluster)});
    if (of_shard) {
      rows.back().push_back(OrDash(std::string(model::ReasonName(view.reason))));
      rows.back().push_back(OrDash(HoldOf(view)));
    }
    if (!wide) continue;
    rows.back().insert(rows.back().end(), {OrDash(m.host.ref), m.resources.ToString(),
                                           fmt::format("{:.4f}", m.interruption_probability.millionths / 1e6),
                                           OrDash(view.need_fingerprint), OrDash(m.last_error)});
  }
  return FormatTable(rows);
}

Document DocumentOf(const contract::MachineView& view) {
  const model::Machine& m = *view.machine;
  return Document::Map()
      .Add("id", m.id)
      .Add("state", std::string(model::StateName(m.state)))
      .Add("instanceType", m.instance_type)
      .Add("zone", m.zone)
      .Add("capacityType", std::string(model::CapacityTypeName(m.capacity_type)))
      .Add("pricePerHour", Document::Dollars(m.price_per_hour))
      .Add("interruptionProbability", Document::Number(m.interruption_probability.millionths / 1e6))
      .Add("host", m.host.ref)
      .Add("resources", m.resources.ToString())
      .Add("cluster", m.cluster)
      .Add("lastError", m.last_error)
      .Add("need", view.need_fingerprint)
      .Add("group", view.need_group)
      .Add("reason", model::ReasonName(view.reason))
      .Add("hold", view.hold)
      .Add("holdUntil", view.hold_until ? model::FormatWallTime(*view.hold_until) : "")
      .Add("missing", view.missing)
      .Add("fenced", view.fenced);
}

Result<std::vector<contract::MachineView>> FromProvider(const Flags& flags, std::vector<model::MachineState> states) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.shard.tls.Files());
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<contract::ProviderPort> port,
                          rpc::MakeProviderClient(flags.provider, tls));
  MUSTER_ASSIGN_OR_RETURN(contract::ProviderReply reply, WaitFor<contract::ProviderReply>([&](auto done) {
                            port->Ask(contract::ListRequest{.states = std::move(states)},
                                      contract::kProviderListTimeout, std::move(done));
                          }));
  auto& list = std::get<contract::ListReply>(reply);
  for (const contract::RejectedMachine& rejected : list.rejected) {
    fmt::print(stderr, "not shown: {}: {}\n", Printable(rejected.id), Printable(rejected.reason));
  }
  std::erase_if(list.machines,
                [&](const auto& machine) { return !flags.cluster.empty() && machine->cluster != flags.cluster; });
  std::vector<contract::MachineView> machines;
  for (contract::MachineRecord& record : list.machines) machines.push_back({.machine = std::move(record)});
  std::ranges::sort(machines, {}, [](const auto& view) -> const std::string& { return view.machine->id; });
  return machines;
}

// "1,204 machines: 900 Idle ..., $12.50/h"
std::string Summary(const std::vector<contract::MachineView>& machines) {
  std::map<model::MachineState, size_t> states;
  model::Money price;
  for (const contract::MachineView& view : machines) {
    ++states[view.machine->state];
    if (!view.machine->host.empty()) price.micros += view.machine->price_per_hour.micros;
  }
  std::string text = fmt::format("{} machines", machines.size());
  const char* separator = ": ";
  for (const auto& [state, count] : states) {
    text += fmt::format("{}{} {}", std::exchange(separator, ", "), count, model::StateName(state));
  }
  return text + fmt::format("; {}/h\n", model::FormatMoney(price));
}

Result<int> Forgotten(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const contract::ForgottenListed reply,
                          AskShardFor<contract::ForgottenListed>(flags.shard, contract::ListForgotten{}));
  Rows rows = {{"ID", "CLUSTER", "FORGOTTEN"}};
  DocumentStream documents(flags.shard.output == "yaml");
  for (const contract::OrderView& order : reply.orders) {
    rows.push_back({order.machine_id, OrDash(order.cluster_id), OrderText(order)});
    if (!IsDocument(flags.shard.output)) continue;
    Print(documents.Add(Document::Map()
                            .Add("id", order.machine_id)
                            .Add("cluster", order.cluster_id)
                            .Add("orderedBy", order.who)
                            .Add("orderReason", order.reason)
                            .Add("orderedAt", model::FormatWallTime(order.at))));
  }
  if (!IsDocument(flags.shard.output)) Print(FormatTable(rows));
  return kOk;
}

Result<int> Machines(const Flags& flags) {
  if (flags.forgotten) return Forgotten(flags);
  std::vector<model::MachineState> states;
  for (const std::string& name : flags.states) {
    auto state = model::ParseState(name);
    if (!state) return InvalidArgument(fmt::format("--state: {}", state.error().message()));
    states.push_back(*state);
  }
  std::vector<contract::MachineView> machines;
  if (!flags.provider.empty()) {
    MUSTER_ASSIGN_OR_RETURN(machines, FromProvider(flags, std::move(states)));
  } else {
    MUSTER_ASSIGN_OR_RETURN(
        contract::MachinesListed listed,
        AskShardFor<contract::MachinesListed>(
            flags.shard, contract::ListMachines{.states = std::move(states), .cluster_id = flags.cluster}));
    machines = std::move(listed.machines);
  }
  const std::string summary = Summary(machines);
  const size_t all = machines.size();
  if (flags.limit > 0 && all > flags.limit) machines.resize(flags.limit);
  if (IsDocument(flags.shard.output)) {
    DocumentStream documents(flags.shard.output == "yaml");
    for (const contract::MachineView& machine : machines) Print(documents.Add(DocumentOf(machine)));
  } else {
    Print(TableOf(machines, flags.provider.empty(), flags.shard.output == "wide"));
    Print(summary);
  }
  if (machines.size() < all) fmt::print(stderr, "{} more; --limit 0 shows all\n", all - machines.size());
  return kOk;
}

}  // namespace

void AddFleetMachines(Verb& fleet) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = fleet.AddVerb("machines", "List the machines of a shard, with why they are where they are");
  AddShardFlags(verb, flags->shard);
  verb.Option("--provider", flags->provider, "Ask this provider instead, HOST:PORT")
      .Option("--state", flags->states, "Only machines in this state; may be repeated")
      .Option("--cluster", flags->cluster, "Only machines bound to this cluster")
      .Option("--limit", flags->limit, "Show at most so many; 0 shows all")
      .Flag("--forgotten", flags->forgotten, "List the machines that were forgotten instead, with who did it and why")
      .Example("muster fleet machines --cluster blue")
      .Example("muster fleet machines --state Failed -o wide")
      .Example("muster fleet machines --provider 127.0.0.1:9100")
      .Run([flags] { return Machines(*flags); });
}

}  // namespace muster::cli
