// `muster apply`: what a cluster is to run, from files.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/cluster.h"
#include "cli/cluster_files.h"
#include "cli/halves.h"
#include "cli/live_world.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

bool IsSet(const model::WorkloadSpec& spec) { return spec.kind != model::WorkloadKind::kWorkload; }

struct ApplyFlags {
  HalvesFlags halves;
  std::string cluster;  // as the shard names it
  std::string plan_id;
  std::vector<std::string> files;
  bool dry_run = false;
};

void PrintApplied(const std::string& object, const contract::Applied& applied, bool dry_run) {
  std::string line = fmt::format("{} {}", object, contract::ApplyResultName(applied.result));
  if (dry_run) line += " (dry run)";
  if (!applied.refusal.empty()) line += fmt::format("; no node takes it yet: {}", applied.refusal);
  Print(Printable(line) + "\n");
}

// What each object was when the plan was checked, so that the store refuses one that changed since.
struct Expected {
  std::map<std::string, contract::Revision> revisions;  // "set/web", "workload/db"; none: it must not exist

  std::optional<contract::Revision> Of(const model::WorkloadSpec& spec) const {
    const auto at = revisions.find(fmt::format("{}/{}", IsSet(spec) ? "set" : "workload", spec.name));
    return at == revisions.end() ? 0 : at->second;
  }
};

// The world must be the one that the plan was made for.
Result<Expected> CheckPlan(Halves& halves, const ApplyFlags& flags, const model::WorkloadFile& file) {
  MUSTER_ASSIGN_OR_RETURN(const PlanId planned, ParsePlanId(flags.plan_id));
  MUSTER_ASSIGN_OR_RETURN(const LiveWorld world, ReadLiveWorld(halves, flags.cluster));
  if (Status same = CheckPlanId(planned, PlanIdOf(world, file)); !same.ok()) return std::unexpected(std::move(same));
  Expected expected;
  for (const sim::LoopClusterStart& cluster : world.start.clusters) {
    for (const auto& view : cluster.sets) expected.revisions["set/" + view.spec.name] = view.store_revision;
    for (const auto& view : cluster.workloads) expected.revisions["workload/" + view.workload] = view.store_revision;
  }
  return expected;
}

Status ApplyOne(Halves& halves, const model::WorkloadSpec& spec, const std::optional<Expected>& expected,
                bool dry_run) {
  const auto applied = halves.OfCluster<contract::Applied>(
      contract::ApplySpec{.spec = spec, .expect = expected ? expected->Of(spec) : std::nullopt, .dry_run = dry_run});
  if (!applied) return About(applied.error(), ObjectName(spec));
  PrintApplied(ObjectName(spec), *applied, dry_run);
  return {};
}

Status ApplyOne(Halves& halves, const model::Quota& quota, const std::optional<Expected>&, bool dry_run) {
  const std::string object = fmt::format("quota/{}", quota.tenant);
  if (dry_run) {
    Print(Printable(object) + " valid (dry run)\n");
    return {};
  }
  const auto applied = halves.OfCluster<contract::Applied>(contract::ApplyQuota{.quota = quota});
  if (!applied) return About(applied.error(), object);
  PrintApplied(object, *applied, false);
  return {};
}

Result<int> Apply(const ClusterAccess& access, const ApplyFlags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const model::WorkloadFile file, ReadWorkloadFiles(flags.files));
  RunningHalves halves(access, flags.halves);
  std::optional<Expected> expected;
  if (!flags.plan_id.empty()) {
    MUSTER_ASSIGN_OR_RETURN(expected, CheckPlan(halves, flags, file));
  }
  // Quotas first: they hold for what comes with them.
  using Object = std::variant<model::Quota, model::WorkloadSpec>;
  std::vector<Object> objects(file.quotas.begin(), file.quotas.end());
  objects.insert(objects.end(), file.workloads.begin(), file.workloads.end());
  return ForEachObject(objects, [&](const Object& object) {
    return std::visit([&](const auto& one) { return ApplyOne(halves, one, expected, flags.dry_run); }, object);
  });
}

}  // namespace

void AddApply(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<ApplyFlags>();
  Verb verb = app.AddVerb("apply", "Declare workloads, sets, jobs and quotas: what is not as in the file is changed");
  verb.Option("-f,--filename", flags->files,
              "Workload file, a directory of them, or - for standard input; may be repeated")
      .Flag("--dry-run", flags->dry_run, "Validate and admit, and change nothing")
      .Option("--plan-id", flags->plan_id, "Only if nothing has moved since muster plan -f gave this id")
      .Option("--cluster", flags->cluster, "With --plan-id: how the shard names the cluster; found if it can be");
  AddHalvesFlags(verb, flags->halves);
  verb.Example("muster apply -f examples/workloads/shop.yaml")
      .Example("sed s/1.4/1.5/ web.yaml | muster apply -f - --dry-run")
      .Run([access, flags] { return Apply(access, *flags); });
}

}  // namespace muster::cli
