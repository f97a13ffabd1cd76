#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "cli/tls_flags.h"
#include "cli/verbs.h"
#include "contract/provider.h"
#include "host/json_object.h"
#include "model/machine.h"
#include "model/money.h"
#include "rpc/provider_client.h"

namespace muster::cli {
namespace {

struct Flags {
  std::string provider = "127.0.0.1:9100";
  std::vector<std::string> states;
  std::string cluster;
  uint64_t limit = 0;
  TlsFlags tls;
  std::string output = "table";
};

Result<contract::ListReply> AskList(contract::ProviderPort& port, contract::ListRequest request) {
  std::mutex mu;
  std::condition_variable answered;
  std::optional<Result<contract::ProviderReply>> result;
  port.Ask(std::move(request), contract::kProviderListTimeout, [&](Result<contract::ProviderReply> reply) {
    const std::lock_guard lock(mu);
    result = std::move(reply);
    answered.notify_all();
  });
  std::unique_lock lock(mu);
  answered.wait(lock, [&] { return result.has_value(); });
  if (!*result) return std::unexpected(result->error());
  return std::get<contract::ListReply>(**std::move(result));
}

std::string TableOf(const std::vector<contract::MachineRecord>& machines, bool wide) {
  std::vector<std::vector<std::string>> rows = {{"ID", "STATE", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "CLUSTER"}};
  if (wide) rows[0].insert(rows[0].end(), {"HOST", "RESOURCES", "INTERRUPTION", "ERROR"});
  for (const contract::MachineRecord& record : machines) {
    const model::Machine& m = *record;
    const auto or_dash = [](std::string text) { return text.empty() ? std::string("-") : text; };
    rows.push_back({m.id, std::string(model::StateName(m.state)), or_dash(m.instance_type), or_dash(m.zone),
                    std::string(model::CapacityTypeName(m.capacity_type)), model::FormatMoney(m.price_per_hour),
                    or_dash(m.cluster)});
    if (!wide) continue;
    rows.back().insert(rows.back().end(),
                       {or_dash(m.host.ref), m.resources.ToString(),
                        fmt::format("{:.4f}", m.interruption_probability.millionths / 1e6), or_dash(m.last_error)});
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

std::string JsonOf(const model::Machine& m) {
  host::JsonObject json;
  json.Add("id", m.id)
      .Add("state", std::string(model::StateName(m.state)))
      .Add("instanceType", m.instance_type)
      .Add("zone", m.zone)
      .Add("capacityType", std::string(model::CapacityTypeName(m.capacity_type)))
      .Add("pricePerHour", model::ToDollars(m.price_per_hour))
      .Add("interruptionProbability", m.interruption_probability.millionths / 1e6)
      .Add("host", m.host.ref)
      .Add("resources", m.resources.ToString())
      .Add("cluster", m.cluster)
      .Add("lastError", m.last_error);
  return json.Take() + "\n";
}

Result<int> Machines(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const rpc::TlsFiles tls, flags.tls.Files());
  contract::ListRequest request;
  for (const std::string& name : flags.states) {
    auto state = model::ParseState(name);
    if (!state) return InvalidArgument(fmt::format("--state: {}", state.error().message()));
    request.states.push_back(*state);
  }
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<contract::ProviderPort> port,
                          rpc::MakeProviderClient(flags.provider, tls));
  MUSTER_ASSIGN_OR_RETURN(contract::ListReply list, AskList(*port, std::move(request)));
  std::erase_if(list.machines,
                [&](const auto& machine) { return !flags.cluster.empty() && machine->cluster != flags.cluster; });
  std::ranges::sort(list.machines, {}, [](const auto& machine) -> const std::string& { return machine->id; });
  const size_t all = list.machines.size();
  if (flags.limit > 0 && all > flags.limit) list.machines.resize(flags.limit);
  if (flags.output == "json") {
    for (const contract::MachineRecord& machine : list.machines) Print(JsonOf(*machine));
  } else {
    Print(TableOf(list.machines, flags.output == "wide"));
  }
  if (list.machines.size() < all) fmt::print(stderr, "{} more; --limit 0 shows all\n", all - list.machines.size());
  for (const contract::RejectedMachine& rejected : list.rejected) {
    fmt::print(stderr, "not shown: {}: {}\n", rejected.id, rejected.reason);
  }
  return kOk;
}

}  // namespace

void AddFleet(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb fleet = app.AddVerb("fleet", "Look at the fleet: machines").Example("muster fleet machines");
  Verb verb = fleet.AddVerb("machines", "List the machines of a provider");
  verb.Option("--provider", flags->provider, "HOST:PORT of the provider")
      .Option("--state", flags->states, "Only machines in this state; may be repeated")
      .Option("--cluster", flags->cluster, "Only machines bound to this cluster")
      .Option("--limit", flags->limit, "Show at most so many; 0 shows all")
      .Choice("-o,--output", flags->output, {"table", "wide", "json"}, "Form; json is one line per machine");
  AddClientTlsFlags(verb, flags->tls);
  verb.Example("muster fleet machines --provider 127.0.0.1:9100")
      .Example("muster fleet machines --state Failed -o wide")
      .Run([flags] { return Machines(*flags); });
}

}  // namespace muster::cli
