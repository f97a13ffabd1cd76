#include "cli/cluster_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/cluster_documents.h"
#include "cli/cluster_files.h"
#include "cli/halves.h"
#include "cli/table.h"

namespace muster::cli {
namespace {

using contract::ApplyResult;

constexpr int kChanges = 2;

struct Flags {
  ClusterFlags cluster;
  std::vector<std::string> files;
  std::string output = "table";
};

// What the scheduler answers with is sealed, so that only the names can be compared; values are shown to nobody.
constexpr std::string_view kSecrets = "template.secretEnv.";
std::string Shown(const std::string& field, const std::string& value) {
  return field.starts_with(kSecrets) ? "(secret)" : value;
}

// In the order of the new document, then what only the old one has.
std::vector<FieldChange> Compare(const Document& before, const Document& after) {
  std::map<std::string, std::string> old;
  for (auto& [field, value] : before.Leaves()) old.emplace(field, Shown(field, value));
  std::vector<FieldChange> changes;
  std::set<std::string> seen;
  for (const auto& [field, written] : after.Leaves()) {
    const std::string value = Shown(field, written);
    seen.insert(field);
    const auto at = old.find(field);
    if (at != old.end() && at->second == value) continue;
    changes.push_back({.field = field, .before = at == old.end() ? "" : at->second, .after = value});
  }
  for (const auto& [field, value] : old) {
    if (!seen.contains(field)) changes.push_back({.field = field, .before = value, .after = ""});
  }
  return changes;
}

bool IsSet(const model::WorkloadSpec& spec) { return spec.kind != model::WorkloadKind::kWorkload; }

Result<contract::SetView> SetNamed(Halves& halves, const std::string& name) {
  MUSTER_ASSIGN_OR_RETURN(contract::SetsListed listed,
                          halves.OfCluster<contract::SetsListed>(contract::ListSets{.name = name}));
  const auto at = std::ranges::find(listed.sets, name, [](const contract::SetView& view) { return view.spec.name; });
  if (at == listed.sets.end()) return std::unexpected(NamedNotFound(Status(Code::kNotFound, ""), "set", name));
  return std::move(*at);
}

std::string MembersText(const Members& members) {
  if (members.before == 0) return fmt::format("{} member{}", members.after, members.after == 1 ? "" : "s");
  std::string text;
  if (members.before != members.after) {
    text = fmt::format("{} members -> {}", members.before, members.after);
  } else {
    text = fmt::format("{} members", members.before);
  }
  if (members.replaced > 0) text += fmt::format(", {} of them replaced", members.replaced);
  return text;
}

}  // namespace

model::WorkloadSpec SpecOf(const contract::WorkloadView& view) {
  return {.kind = model::WorkloadKind::kWorkload,
          .name = view.workload,
          .tenant = view.tenant,
          .labels = view.labels,
          .spec = view.spec};
}

Result<ObjectDiff> DiffOf(Halves& halves, const model::WorkloadSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(const contract::Applied applied, halves.OfCluster<contract::Applied>(contract::ApplySpec{
                                                               .spec = spec, .expect = {}, .dry_run = true}));
  ObjectDiff diff{.object = ObjectName(spec), .result = applied.result, .fields = {}, .members = {}};
  if (applied.result == ApplyResult::kCreated) {
    if (IsSet(spec)) diff.members = Members{.before = 0, .after = spec.replicas, .replaced = 0};
    return diff;
  }
  if (applied.result == ApplyResult::kUnchanged) return diff;
  if (!IsSet(spec)) {
    MUSTER_ASSIGN_OR_RETURN(const contract::WorkloadView view,
                            halves.OfCluster<contract::WorkloadView>(contract::GetWorkload{.workload = spec.name}));
    diff.fields = Compare(SpecDocument(SpecOf(view)), SpecDocument(spec));
    // A file declares what runs: applying it starts what was stopped.
    if (view.desired != model::DesiredState::kRunning) {
      diff.fields.push_back({.field = "desired",
                             .before = Document(model::DesiredStateName(view.desired)).ToJson(),
                             .after = Document(model::DesiredStateName(model::DesiredState::kRunning)).ToJson()});
    }
    // A dry run of a plain workload does not look for differences.
    if (diff.fields.empty()) diff.result = ApplyResult::kUnchanged;
    return diff;
  }
  MUSTER_ASSIGN_OR_RETURN(const contract::SetView view, SetNamed(halves, spec.name));
  diff.fields = Compare(SpecDocument(view.spec), SpecDocument(spec));
  const bool rolls = applied.revision != view.revision;
  diff.members = Members{
      .before = view.members, .after = spec.replicas, .replaced = rolls ? std::min(view.members, spec.replicas) : 0};
  return diff;
}

Result<ObjectDiff> DiffOf(Halves& halves, const model::Quota& quota) {
  ObjectDiff diff{.object = "quota/" + quota.tenant, .result = ApplyResult::kCreated, .fields = {}, .members = {}};
  const auto listed = halves.OfCluster<contract::QuotasListed>(contract::ListQuotas{.tenant = quota.tenant});
  if (!listed && listed.error().code() != Code::kNotFound) return std::unexpected(listed.error());
  if (!listed) return diff;
  for (const contract::QuotaView& view : listed->quotas) {
    if (view.quota.tenant != quota.tenant) continue;
    diff.fields = Compare(QuotaSpecDocument(view.quota), QuotaSpecDocument(quota));
    diff.result = view.quota == quota ? ApplyResult::kUnchanged : ApplyResult::kConfigured;
  }
  return diff;
}

std::string DiffText(const ObjectDiff& diff) {
  std::string text = fmt::format("{} {}", Printable(diff.object),
                                 diff.result == ApplyResult::kConfigured ? "changes"
                                 : diff.result == ApplyResult::kCreated  ? "is created"
                                                                         : "is unchanged");
  if (diff.members) text += ": " + MembersText(*diff.members);
  text += "\n";
  for (const FieldChange& change : diff.fields) {
    if (change.before.empty()) {
      text += fmt::format("  + {}: {}\n", Printable(change.field), Printable(change.after));
    } else if (change.after.empty()) {
      text += fmt::format("  - {}: {}\n", Printable(change.field), Printable(change.before));
    } else {
      text +=
          fmt::format("  ~ {}: {} -> {}\n", Printable(change.field), Printable(change.before), Printable(change.after));
    }
  }
  return text;
}

Document DiffDocument(const ObjectDiff& diff) {
  Document fields = Document::List();
  for (const FieldChange& change : diff.fields) {
    Document one = Document::Map();
    one.Add("field", change.field);
    if (!change.before.empty()) one.Add("before", change.before);
    if (!change.after.empty()) one.Add("after", change.after);
    fields.Add(one);
  }
  Document map = Document::Map();
  map.Add("object", diff.object).Add("result", contract::ApplyResultName(diff.result)).Add("fields", fields);
  if (diff.members) {
    map.Add("members", Document::Map()
                           .Add("before", int64_t{diff.members->before})
                           .Add("after", int64_t{diff.members->after})
                           .Add("replaced", int64_t{diff.members->replaced}));
  }
  return map;
}

namespace {

Result<int> Diff(const ClusterAccess& access, const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const model::WorkloadFile file, ReadWorkloadFiles(flags.files));
  RunningHalves halves(access, {.cluster = flags.cluster, .shard = {}});
  using Object = std::variant<model::Quota, model::WorkloadSpec>;
  std::vector<Object> objects(file.quotas.begin(), file.quotas.end());
  objects.insert(objects.end(), file.workloads.begin(), file.workloads.end());
  std::map<ApplyResult, int> counts;
  DocumentStream documents(flags.output == "yaml");
  MUSTER_ASSIGN_OR_RETURN(
      const int code, ForEachObject(objects, [&](const Object& object) -> Status {
        const Result<ObjectDiff> diff = std::visit([&](const auto& one) { return DiffOf(halves, one); }, object);
        if (!diff) {
          const auto* spec = std::get_if<model::WorkloadSpec>(&object);
          return About(diff.error(),
                       spec != nullptr ? ObjectName(*spec) : "quota/" + std::get<model::Quota>(object).tenant);
        }
        ++counts[diff->result];
        Print(flags.output == "table" ? DiffText(*diff) : documents.Add(DiffDocument(*diff)));
        return {};
      }));
  if (code != kOk) return code;
  const bool same = counts[ApplyResult::kCreated] + counts[ApplyResult::kConfigured] == 0;
  if (flags.output == "table") {
    Print(fmt::format("{} created, {} changed, {} unchanged\n", counts[ApplyResult::kCreated],
                      counts[ApplyResult::kConfigured], counts[ApplyResult::kUnchanged]));
  }
  return same ? kOk : kChanges;
}

}  // namespace

void AddDiff(CommandLine& app, const ClusterAccess& access) {
  const auto flags = std::make_shared<Flags>();
  Verb verb = app.AddVerb("diff", "Say what an apply of these files would change, field by field; nothing is changed");
  verb.Option("-f,--filename", flags->files,
              "Workload file, a directory of them, or - for standard input; may be repeated")
      .Choice("-o,--output", flags->output, {"table", "json", "yaml"}, "Form; json is one line for each object");
  AddSchedulerFlags(verb, flags->cluster);
  verb.UsageCode(kFailed)
      .Example("muster diff -f examples/workloads/shop.yaml")
      .Example("sed s/1.4/1.5/ web.yaml | muster diff -f - && echo nothing to do")
      .Example("Exit code: 0 nothing would change, 2 something would, 1 error")
      .Run([access, flags] { return Diff(access, *flags); });
}

}  // namespace muster::cli
