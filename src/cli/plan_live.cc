#include "cli/plan_live.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "cli/cluster_diff.h"
#include "cli/cluster_files.h"
#include "cli/live_run.h"
#include "cli/live_view.h"
#include "cli/live_world.h"
#include "cli/plan_view.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

constexpr int kChanges = 2;

template <class Object>
Status AddDiff(Halves& halves, const Object& object, const std::string& name, std::vector<ObjectDiff>& diffs) {
  auto diff = DiffOf(halves, object);
  if (!diff) return About(diff.error(), name);
  diffs.push_back(*std::move(diff));
  return {};
}

Result<std::vector<ObjectDiff>> DiffsOf(Halves& halves, const model::WorkloadFile& file) {
  std::vector<ObjectDiff> diffs;
  for (const model::Quota& quota : file.quotas) {
    if (Status status = AddDiff(halves, quota, "quota/" + quota.tenant, diffs); !status.ok()) {
      return std::unexpected(std::move(status));
    }
  }
  for (const model::WorkloadSpec& spec : file.workloads) {
    if (Status status = AddDiff(halves, spec, ObjectName(spec), diffs); !status.ok()) {
      return std::unexpected(std::move(status));
    }
  }
  return diffs;
}

}  // namespace

Result<int> PlanLive(Halves& halves, const LivePlanFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const model::WorkloadFile file, ReadWorkloadFiles(flags.files));
  MUSTER_ASSIGN_OR_RETURN(const LiveWorld world, ReadLiveWorld(halves, flags.cluster));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ObjectDiff> diffs, DiffsOf(halves, file));
  MUSTER_ASSIGN_OR_RETURN(const LiveOutcome outcome, RunApply(world, file));
  const Result<CheapestFleet> cheapest = FindCheapestFleet(world, outcome.after);
  const std::string id = FormatPlanId(PlanIdOf(world, file));
  if (flags.output == "table") {
    std::string text;
    for (const ObjectDiff& diff : diffs) text += DiffText(diff);
    text += "\n" + OutcomeText(outcome);
    text +=
        "\n" + (cheapest ? CheapestText(*cheapest, outcome, world.cluster)
                         : fmt::format("The cheapest fleet is not known: {}\n", Printable(cheapest.error().message())));
    for (const std::string& note : world.notes) text += fmt::format("* {}\n", Printable(note));
    text +=
        "* a copy of the cluster and the fleet was run until it came to rest, with the settings of muster up; "
        "nothing was changed\n";
    text += fmt::format("To do it, as long as nothing else moves: muster apply --plan-id {} -f ...\n", id);
    Print(text);
  } else {
    Document document = Document::Map();
    document.Add("planId", id);
    AddOutcome(outcome, world.cluster, document);
    Document objects = Document::List();
    for (const ObjectDiff& diff : diffs) objects.Add(DiffDocument(diff));
    document.Add("objects", objects);
    document.Add("cheapest", cheapest ? CheapestDocument(*cheapest) : Document::Null());
    Document notes = Document::List();
    for (const std::string& note : world.notes) notes.Add(note);
    if (!cheapest) notes.Add(fmt::format("the cheapest fleet is not known: {}", cheapest.error().message()));
    document.Add("notes", notes);
    Print(flags.output == "json" ? document.ToJson() + "\n" : document.ToYaml());
  }
  bool changes = outcome.changes_anything();
  for (const ObjectDiff& diff : diffs) changes = changes || diff.result != contract::ApplyResult::kUnchanged;
  return changes ? kChanges : kOk;
}

}  // namespace muster::cli
