// `muster plan`: which machines a set of workloads takes, before anything is bought: for a catalogue, or on the running
// system.
#include <memory>

#include "cli/consolidation_view.h"
#include "cli/halves.h"
#include "cli/plan_files.h"
#include "cli/plan_live.h"
#include "cli/plan_view.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

constexpr int kNothingToDo = 0;
constexpr int kChanges = 2;

struct Flags {
  PlanFlags plan;
  HalvesFlags halves;
  std::string cluster;
  std::string output = "table";
  bool consolidate = false;
};

Result<int> Consolidate(const Flags& flags) {
  PlanFlags plan = flags.plan;
  if (!plan.keep.empty() && plan.keep != "nodes")
    return InvalidArgument("--consolidate and --keep none exclude each other");
  plan.keep = "nodes";
  MUSTER_ASSIGN_OR_RETURN(PlanQuestion question, ReadPlanQuestion(plan));
  if (question.input.nodes == 0)
    return InvalidArgument("--consolidate needs nodes: give a Kubernetes dump with -f FILE");
  MUSTER_ASSIGN_OR_RETURN(const planner::Consolidation answer, RunConsolidation(question.input.request));
  if (flags.output == "table") Print(ConsolidationTable(question, answer));
  if (flags.output == "json") Print(ConsolidationDocument(question, answer).ToJson() + "\n");
  if (flags.output == "yaml") Print(ConsolidationDocument(question, answer).ToYaml());
  return answer.waves.empty() ? kNothingToDo : kChanges;
}

Result<int> RunPlanVerb(const Flags& flags) {
  if (flags.consolidate) return Consolidate(flags);
  if (flags.plan.catalogue.empty() && flags.plan.nodes.empty() && !flags.plan.files.empty()) {
    MUSTER_ASSIGN_OR_RETURN(const bool dump, HasDump(flags.plan.files));
    if (!dump) {
      RunningHalves halves(RealCluster(), flags.halves);
      return PlanLive(
          halves,
          {.files = flags.plan.files, .cluster = flags.cluster, .output = flags.output, .halves = flags.halves});
    }
  }
  MUSTER_ASSIGN_OR_RETURN(PlanQuestion question, ReadPlanQuestion(flags.plan));
  MUSTER_ASSIGN_OR_RETURN(const planner::Plan plan, RunPlan(question.input.request));
  if (flags.output == "table") Print(PlanTable(question, plan));
  if (flags.output == "json") Print(PlanDocument(question, plan).ToJson() + "\n");
  if (flags.output == "yaml") Print(PlanDocument(question, plan).ToYaml());
  return HasChanges(question, plan) ? kChanges : kNothingToDo;
}

}  // namespace

void AddPlan(CommandLine& app) {
  const auto flags = std::make_shared<Flags>();
  Verb plan = app.AddVerb(
      "plan",
      "Say what workloads would do to the running fleet, or which machines they would take; nothing is changed");
  AddPlanFlags(plan, flags->plan);
  plan.Choice("-o,--output", flags->output, {"table", "json", "yaml"}, "Form of the answer")
      .Option("--cluster", flags->cluster, "On the running system: how the shard names the cluster; found if it can be")
      .Flag("--consolidate", flags->consolidate, "Say which nodes could go, in which order, and what that saves")
      .UsageCode(kFailed);
  AddHalvesFlags(plan, flags->halves);
  plan.Example("muster plan -f examples/workloads/hello.yaml    (on the running system)")
      .Example("muster plan -f dump.json --catalogue examples/catalogues/ec2.yaml --keep none")
      .Example("muster plan -f dump.json --catalogue examples/catalogues/ec2.yaml --consolidate")
      .Example(
          "kubectl get nodes,pods,pdb,daemonsets,pvc,pv,csinodes,priorityclasses,namespaces -A -o json > dump.json")
      .Example("muster plan -f workloads.yaml --catalogue types.csv -o json | jq .machines")
      .Example("Exit code: 0 nothing to do, 2 changes, 1 error")
      .Run([flags]() -> Result<int> { return RunPlanVerb(*flags); });
}

}  // namespace muster::cli
