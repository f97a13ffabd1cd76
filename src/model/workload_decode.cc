#include "model/workload_decode.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "model/decode.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/text_value.h"
#include "model/workload_bounds.h"
#include "model/yaml_reader.h"

namespace muster::model {
namespace {

// A map of labels that must be equal, or a list of requirements on labels.
std::optional<std::vector<Requirement>> ReadSelector(TextReader reader) {
  if (!reader.present()) return std::nullopt;
  std::vector<Requirement> selector;
  if (reader.is_map()) {
    std::map<std::string, std::string> labels;
    reader.Read(labels);
    for (const auto& [key, value] : labels) selector.push_back({key, Operator::kIn, {value}});
  } else {
    for (TextReader& item : reader.List()) selector.push_back(ReadRequirement(item));
  }
  if (reader.ok() && selector.empty()) reader.Fail("an empty selector selects nothing; leave it out for the own set");
  return selector;
}

// A list of requirements, or a list of such lists, of which any may hold.
std::vector<std::vector<Requirement>> ReadRequirements(TextReader reader) {
  std::vector<std::vector<Requirement>> terms;
  std::vector<Requirement> all;
  for (TextReader& item : reader.List()) {
    if (item.is_map()) {
      all.push_back(ReadRequirement(item));
      continue;
    }
    std::vector<Requirement>& term = terms.emplace_back();
    for (TextReader& requirement : item.List()) term.push_back(ReadRequirement(requirement));
  }
  if (!all.empty() && !terms.empty()) reader.Fail("write requirements, or lists of them, but not both");
  if (!all.empty()) terms.push_back(std::move(all));
  return terms;
}

Port ReadPort(TextReader& reader) {
  Port port;
  reader.Field("container").Read(port.container);
  reader.Field("host").Read(port.host);
  reader.Field("protocol").Read(port.protocol, ParsePortProtocol);
  reader.Field("hostIP").Read(port.host_ip);
  reader.RefuseUnknown();
  return port;
}

VolumeMount ReadVolume(TextReader& reader) {
  VolumeMount volume;
  reader.Field("source").Require().Read(volume.source);
  reader.Field("target").Require().Read(volume.target);
  reader.Field("readOnly").Read(volume.read_only);
  reader.RefuseUnknown();
  return volume;
}

Result<bool> ParseTolerationOperator(std::string_view name) {
  static constexpr auto kNames = std::to_array<NameRow<bool>>({{false, "Equal"}, {true, "Exists"}});
  return ParseName(kNames, "toleration operator", name);
}

TolerationRule ReadToleration(TextReader& reader) {
  TolerationRule rule;
  reader.Field("key").Read(rule.key);
  reader.Field("operator").Read(rule.any_value, ParseTolerationOperator);
  reader.Field("value").Read(rule.value);
  reader.Field("effect").Read(rule.effect);
  reader.RefuseUnknown();
  return rule;
}

Result<bool> ParseInclusion(std::string_view name) {
  static constexpr auto kNames = std::to_array<NameRow<bool>>({{true, "Honor"}, {false, "Ignore"}});
  return ParseName(kNames, "policy", name);
}

SpreadRule ReadSpreadRule(TextReader& reader) {
  SpreadRule rule;
  reader.Field("topologyKey").Require().Read(rule.spread.topology_key);
  TextReader skew = reader.Field("maxSkew");
  skew.Read(rule.spread.max_skew);
  if (skew.present() && rule.spread.max_skew < 1) skew.Fail("expected a whole number of at least 1");
  reader.Field("whenUnsatisfiable").Read(rule.spread.when, ParseWhenUnsatisfiable);
  TextReader domains = reader.Field("minDomains");
  domains.Read(rule.min_domains);
  if (domains.present() && rule.min_domains < 1) domains.Fail("expected a whole number of at least 1");
  rule.selector = ReadSelector(reader.Field("selector"));
  reader.Field("matchLabelKeys").Read(rule.match_label_keys);
  reader.Field("nodeAffinityPolicy").Read(rule.honor_requirements, ParseInclusion);
  reader.Field("nodeTaintsPolicy").Read(rule.honor_taints, ParseInclusion);
  reader.RefuseUnknown();
  return rule;
}

NeighbourRule ReadNeighbour(TextReader& reader) {
  NeighbourRule rule;
  reader.Field("topologyKey").Require().Read(rule.topology_key);
  rule.selector = ReadSelector(reader.Field("selector"));
  TextReader weight = reader.Field("weight");
  weight.Read(rule.weight);
  if (weight.present() && rule.weight < 1) weight.Fail("expected a whole number from 1 to 100");
  reader.RefuseUnknown();
  return rule;
}

void ReadCount(TextReader reader, MemberCount& count) { reader.Read(count, ParseMemberCount); }

void ReadReplicas(TextReader& reader, WorkloadSpec& spec) {
  TextReader replicas = reader.Field("replicas");
  TextReader update = reader.Field("update");
  TextReader min_available = reader.Field("minAvailable");
  if (spec.kind == WorkloadKind::kWorkload) {
    for (TextReader* field : {&replicas, &update, &min_available}) {
      if (field->present()) field->Fail("a Workload is one; use kind: Set for several");
    }
    return;
  }
  replicas.Require().Read(spec.replicas);
  const int32_t fewest = spec.kind == WorkloadKind::kJob ? 1 : 0;
  if (spec.replicas < fewest || spec.replicas > kMostReplicas) {
    replicas.Fail(fmt::format("expected a whole number from {} to {}", fewest, kMostReplicas));
  }
  if (update.present() && spec.kind == WorkloadKind::kJob) update.Fail("a Job is not rolled; only a Set has an update");
  ReadCount(update.Field("maxUnavailable"), spec.max_unavailable);
  ReadCount(update.Field("maxSurge"), spec.max_surge);
  if (update.present()) update.RefuseUnknown();
  if (spec.max_unavailable.amount == 0 && spec.max_surge.amount == 0) {
    update.Fail("maxUnavailable and maxSurge are both 0: nothing could be replaced");
  }
  ReadCount(min_available, spec.min_available);
}

void ReadId(TextReader reader, std::string& id) {
  reader.Require().Read(id);
  if (reader.ok() && !IsWorkloadId(id)) {
    reader.Fail("write letters, digits, '.', '_' and '-', a letter or digit first, at most 253");
  }
}

// As where it is applied, so that a plan or a diff of the file refuses what an apply would.
void CheckBounds(TextReader& reader, TextReader& body, const WorkloadSpec& spec) {
  if (!reader.ok()) return;
  std::string problem = TextsProblem("labels", spec.labels);
  const bool is_set = spec.kind != WorkloadKind::kWorkload;
  if (problem.empty() && is_set) problem = CountsProblem(spec);
  if (problem.empty() && is_set) problem = MembersProblem(spec);
  if (!problem.empty()) return reader.Fail(problem);
  if (problem = SizeProblem(spec.spec); !problem.empty()) body.Fail(problem);
}

WorkloadSpec ReadSpec(TextReader& reader, WorkloadKind kind) {
  WorkloadSpec spec;
  spec.kind = kind;
  ReadId(reader.Field("name"), spec.name);
  reader.Field("tenant").Read(spec.tenant);
  reader.Field("labels").Read(spec.labels);
  ReadReplicas(reader, spec);
  TextReader body = reader.Field("template");
  body.Require();
  spec.spec = ReadWorkloadTemplate(body, kind);
  CheckBounds(reader, body, spec);
  reader.RefuseUnknown();
  return spec;
}

Quota ReadQuota(TextReader& reader) {
  Quota quota;
  ReadId(reader.Field("tenant"), quota.tenant);
  TextReader limits = reader.Field("limits");
  for (const auto& [name, value] : limits.Entries()) {
    TextReader amount = limits.Field(name);
    if (name == "workloads") {
      amount.Read(quota.workloads);
      if (quota.workloads < 0) amount.Fail("expected a whole number of at least 0");
    } else if (name == "cpu" || name == "memory" || name == "disk" || name == "gpu") {
      const auto milli = [&](std::string_view text) { return ParseQuantity(text); };
      int64_t parsed = 0;
      amount.Read(parsed, milli);
      if (parsed < 1 && amount.ok()) amount.Fail("expected an amount above 0; leave the limit out for none");
      if (parsed > 0) quota.limits.Set(name, parsed);
    } else {
      amount.Fail("unknown limit; use one of cpu, memory, disk, gpu, workloads");
    }
  }
  TextReader rate = reader.Field("rate");
  TextReader per_second = rate.Field("appliesPerSecond");
  if (rate.present()) per_second.Require();
  per_second.Read(quota.applies_milli_hz, ParseQuantity);
  if (per_second.present() && quota.applies_milli_hz < 1) per_second.Fail("expected a rate above 0");
  TextReader burst = rate.Field("burst");
  burst.Read(quota.burst);
  if (burst.present() && quota.burst < 1) burst.Fail("expected a whole number of at least 1");
  if (rate.present()) rate.RefuseUnknown();
  if (!limits.present() && !rate.present()) reader.Fail("a quota without limits and rate limits nothing");
  reader.RefuseUnknown();
  return quota;
}

// The names declared so far, and who would own the same workload id. The only ids that can meet are a plain workload
// `a-3` and a member of a set or job `a`.
class Owners {
 public:
  void Add(TextReader& reader, const WorkloadSpec& spec) {
    const auto [at, is_new] = specs_.emplace(spec.name, Owner{spec.kind, spec.replicas});
    if (!is_new) {
      reader.Fail(fmt::format("{} is the name of a {} already; keep one of them", Quoted(spec.name),
                              WorkloadKindName(at->second.kind)));
      return;
    }
    if (spec.kind == WorkloadKind::kWorkload) {
      const size_t dash = spec.name.rfind('-');
      if (dash == std::string::npos) return;
      const auto set = specs_.find(spec.name.substr(0, dash));
      if (set != specs_.end()) CheckMember(reader, set->first, set->second, spec.name);
      return;
    }
    const std::string prefix = spec.name + "-";
    for (auto other = specs_.lower_bound(prefix); other != specs_.end() && other->first.starts_with(prefix); ++other) {
      if (other->second.kind == WorkloadKind::kWorkload) CheckMember(reader, spec.name, at->second, other->first);
    }
  }
  void Add(TextReader& reader, const Quota& quota) {
    if (tenants_.insert(quota.tenant).second) return;
    reader.Fail(fmt::format("tenant {} has a quota already; keep one of them", Quoted(quota.tenant)));
  }

 private:
  struct Owner {
    WorkloadKind kind;
    int32_t replicas;
  };
  static void CheckMember(TextReader& reader, std::string_view set, const Owner& owner, std::string_view id) {
    if (owner.kind == WorkloadKind::kWorkload) return;
    const std::string_view digits = id.substr(set.size() + 1);
    int32_t index = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool is_member = error == std::errc() && end == digits.data() + digits.size() &&
                           digits == fmt::to_string(index) && index >= 0 && index < owner.replicas;
    if (!is_member) return;
    reader.Fail(fmt::format("{} is a Workload and also a member of {} {}; rename one of them", Quoted(id),
                            WorkloadKindName(owner.kind), Quoted(set)));
  }

  std::map<std::string, Owner> specs_;
  std::set<std::string> tenants_;
};

// Reports a problem "ports[1].host: ..." of the value at `reader` where it stands.
void FailAt(TextReader reader, std::string_view problem) {
  while (!problem.starts_with(": ")) {
    if (problem.starts_with('[')) {
      size_t index = 0;
      const auto end = std::from_chars(problem.data() + 1, problem.data() + problem.size(), index).ptr;
      problem.remove_prefix(static_cast<size_t>(end - problem.data()) + 1);
      std::vector<TextReader> items = reader.List();
      if (index >= items.size()) break;
      reader = items[index];
      continue;
    }
    if (problem.starts_with('.')) problem.remove_prefix(1);
    const size_t end = problem.find_first_of(".[:");
    reader = reader.Field(problem.substr(0, end));
    problem.remove_prefix(end);
  }
  problem.remove_prefix(2);
  reader.Fail(problem);
}

enum class DocumentKind : uint8_t { kWorkload, kSet, kJob, kQuota };

Result<DocumentKind> ParseKind(std::string_view name) {
  static constexpr auto kNames = std::to_array<NameRow<DocumentKind>>({{DocumentKind::kWorkload, "Workload"},
                                                                       {DocumentKind::kSet, "Set"},
                                                                       {DocumentKind::kJob, "Job"},
                                                                       {DocumentKind::kQuota, "Quota"}});
  return ParseName(kNames, "kind", name);
}

void ReadDocument(TextReader& root, WorkloadFile& file, Owners& owners) {
  DocumentKind kind = DocumentKind::kWorkload;
  root.Field("kind").Require().Read(kind, ParseKind);
  if (!root.ok()) return;
  if (kind == DocumentKind::kQuota) {
    file.quotas.push_back(ReadQuota(root));
    if (root.ok()) owners.Add(root, file.quotas.back());
    return;
  }
  const auto workload_kind = kind == DocumentKind::kSet   ? WorkloadKind::kSet
                             : kind == DocumentKind::kJob ? WorkloadKind::kJob
                                                          : WorkloadKind::kWorkload;
  file.workloads.push_back(ReadSpec(root, workload_kind));
  if (root.ok()) owners.Add(root, file.workloads.back());
}

}  // namespace

WorkloadTemplate ReadWorkloadTemplate(TextReader& reader, WorkloadKind kind) {
  WorkloadTemplate spec;
  reader.Field("type").Require().Read(spec.type, ParseWorkloadType);
  reader.Field("command").Read(spec.command);
  reader.Field("image").Read(spec.image);
  reader.Field("compose").Read(spec.compose);
  reader.Field("env").Read(spec.env);
  reader.Field("secretEnv").Read(spec.secret_env);
  for (TextReader& item : reader.Field("ports").List()) spec.ports.push_back(ReadPort(item));
  for (TextReader& item : reader.Field("volumes").List()) spec.volumes.push_back(ReadVolume(item));
  reader.Field("resources").Read(spec.resources);
  spec.requirements = ReadRequirements(reader.Field("requirements"));
  for (TextReader& item : reader.Field("tolerations").List()) spec.tolerations.push_back(ReadToleration(item));
  for (TextReader& item : reader.Field("spread").List()) spec.spread.push_back(ReadSpreadRule(item));
  for (TextReader& item : reader.Field("colocate").List()) spec.colocate.push_back(ReadNeighbour(item));
  for (TextReader& item : reader.Field("exclude").List()) spec.exclude.push_back(ReadNeighbour(item));
  reader.Field("priority").Read(spec.priority);
  TextReader penalties = reader.Field("penalties");
  penalties.Field("interruption").Read(spec.interruption, ParseBucket);
  penalties.Field("reclamation").Read(spec.reclamation, ParseBucket);
  if (penalties.present()) penalties.RefuseUnknown();
  if (kind == WorkloadKind::kJob) spec.restart = RestartPolicy::kOnFailure;
  TextReader restart = reader.Field("restart");
  restart.Read(spec.restart, ParseRestartPolicy);
  if (restart.present() && kind == WorkloadKind::kJob && spec.restart == RestartPolicy::kAlways) {
    restart.Fail("a Job that always restarts never completes: use on-failure or never");
  }
  reader.Field("grace").Read(spec.grace);
  reader.RefuseUnknown();
  if (reader.ok() && reader.present()) {
    if (const std::string problem = TemplateProblem(spec); !problem.empty()) FailAt(reader, problem);
  }
  return spec;
}

Result<WorkloadFile> ReadWorkloadFile(std::string_view text, std::string_view source) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<TextValue> documents, ReadYaml(text, source));
  TextErrors errors{std::string(source)};
  WorkloadFile file;
  Owners owners;
  for (const TextValue& document : documents) {
    TextReader root(errors, document);
    ReadDocument(root, file, owners);
    if (!errors.ok()) return std::unexpected(errors.status());
  }
  if (documents.empty())
    return std::unexpected(TextError(source, {}, "", "the file is empty; docs/workloads.md shows one"));
  return file;
}

}  // namespace muster::model
