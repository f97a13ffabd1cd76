// `muster explain`: why a workload is where it is, why a running shard does with a machine or a need what it does, and
// why a plan is as it is.
#include <fmt/format.h>

#include <memory>

#include "cli/ask.h"
#include "cli/cluster.h"
#include "cli/explain_plan.h"
#include "cli/verbs.h"
#include "contract/shard.h"
#include "host/json_object.h"

namespace muster::cli {
namespace {

struct Flags {
  ShardFlags shard;
  std::string machine;
  contract::NeedRef need;
};

Result<int> Show(const ShardFlags& flags, contract::Explain question) {
  MUSTER_ASSIGN_OR_RETURN(const contract::Explained reply,
                          AskShardFor<contract::Explained>(flags, std::move(question)));
  if (flags.output == "json") {
    for (const std::string& line : reply.lines) {
      Print(host::JsonObject().Add("cycle", reply.cycle).Add("line", line).Take() + "\n");
    }
    return kOk;
  }
  Print(fmt::format("cycle {}\n", reply.cycle));
  for (const std::string& line : reply.lines) Print(line + "\n");
  return kOk;
}

}  // namespace

void AddExplain(CommandLine& app) {
  Verb explain =
      app.AddVerb("explain", "Say why a workload or machine is where it is, why a need is short, or a plan as it is");
  const auto plan = std::make_shared<std::pair<PlanFlags, std::string>>();
  explain.Option("--plan", plan->second,
                 "A unit, machine or node of the plan that muster plan would make of these options");
  AddPlanFlags(explain, plan->first);
  explain.Example("muster explain machine sim-m-17")
      .Example(
          "muster explain --plan shop/web-7f9c-x2x4k -f dump.json --catalogue examples/catalogues/ec2.yaml --keep none")
      .Run([plan]() -> Result<int> {
        if (plan->second.empty()) {
          return InvalidArgument(
              "say what to explain: workload NAME, machine ID, need ID, or --plan NAME; see muster explain --help");
        }
        return ExplainPlan(plan->first, plan->second);
      });

  AddExplainWorkload(explain, RealCluster());

  const auto machine = std::make_shared<Flags>();
  Verb of_machine = explain.AddVerb("machine", "Why a machine is where it is");
  of_machine.Argument("ID", machine->machine, "Id of the machine");
  AddShardFlags(of_machine, machine->shard);
  of_machine.Example("muster explain machine sim-m-17").Run([machine] {
    return Show(machine->shard, contract::Explain{.subject = machine->machine});
  });

  const auto need = std::make_shared<Flags>();
  Verb of_need = explain.AddVerb("need", "Why a need is or is not satisfied");
  of_need.Argument("ID", need->need.fingerprint, "Fingerprint of the need, as muster fleet needs -o wide shows it")
      .Option("--cluster", need->need.cluster_id, "Its cluster")
      .Option("--group", need->need.group, "Its group, if it has one");
  AddShardFlags(of_need, need->shard);
  of_need.Example("muster explain need --cluster blue 'p=1000|ipb=1|rpb=1|reqs=|spr='").Run([need]() -> Result<int> {
    if (need->need.cluster_id.empty()) return InvalidArgument("--cluster is missing; name the cluster of the need");
    return Show(need->shard, contract::Explain{.subject = need->need});
  });
}

}  // namespace muster::cli
