#include "cli/plan_live.h"

#include <fmt/format.h>

#include <algorithm>
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
#include "cli/up_tree.h"

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

// The apply of what was planned, by this program, of the same scheduler and shard. What the environment says of them
// need not be given.
std::string ApplyCommand(const std::string& id, const LivePlanFlags& flags) {
  std::string command = fmt::format("{} apply --plan-id {}", ShellWord(ThisProgram().string()), id);
  const auto add = [&command](std::string_view flag, const std::string& value, const std::string& fallback = "") {
    if (!value.empty() && value != fallback) command += fmt::format(" {} {}", flag, ShellWord(value));
  };
  add("--scheduler", flags.halves.cluster.scheduler, DefaultScheduler());
  add("--shard", flags.halves.shard.shard, DefaultShard());
  const TlsFlags& tls = flags.halves.cluster.tls;
  add("--tls-cert", tls.cert);
  add("--tls-key", tls.key);
  add("--tls-ca", tls.ca);
  add("--tls-crl", tls.crl);
  if (tls.insecure) command += " --insecure";
  add("--cluster", flags.cluster);
  for (const std::string& file : flags.files) command += " -f " + ShellWord(file);
  return command;
}

}  // namespace

Result<int> PlanLive(Halves& halves, const LivePlanFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const model::WorkloadFile file, ReadWorkloadFiles(flags.files));
  MUSTER_ASSIGN_OR_RETURN(const LiveWorld world, ReadLiveWorld(halves, flags.cluster));
  MUSTER_ASSIGN_OR_RETURN(const std::vector<ObjectDiff> diffs, DiffsOf(halves, file));
  LiveOutcome outcome;
  Result<CheapestFleet> cheapest;
  {
    Progress progress("running a copy of the cluster and the fleet", 0, flags.clock);
    const Alive alive = [&progress] { progress.Update(0); };
    MUSTER_ASSIGN_OR_RETURN(outcome, RunApply(world, file, alive));
    cheapest = FindCheapestFleet(world, outcome.after, alive);
  }
  const std::string id = FormatPlanId(PlanIdOf(world, file));
  if (flags.output == "table") {
    std::string text;
    for (const ObjectDiff& diff : diffs) text += DiffText(diff);
    text += "\n" + OutcomeText(outcome);
    text +=
        "\n" + (cheapest ? CheapestText(*cheapest, outcome, world.cluster)
                         : fmt::format("The cheapest fleet is not known: {}\n", Printable(cheapest.error().message())));
    for (const std::string& note : world.notes) text += fmt::format("* {}\n", Printable(note));
    text += fmt::format(
        "* a copy of the cluster and the fleet was run{}, with the settings of muster up; nothing was changed\n",
        outcome.settled.settled ? " until it came to rest" : "");
    text += fmt::format("To do it, as long as nothing else moves: {}\n", Printable(ApplyCommand(id, flags)));
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
