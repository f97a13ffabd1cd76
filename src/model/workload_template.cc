#include "model/workload_template.h"

#include <fmt/format.h>

#include "model/names.h"
#include "model/volume_name.h"

namespace muster::model {
namespace {

constexpr auto kRestartPolicies = std::to_array<NameRow<RestartPolicy>>({{RestartPolicy::kAlways, "always"},
                                                                         {RestartPolicy::kOnFailure, "on-failure"},
                                                                         {RestartPolicy::kNever, "never"},
                                                                         {RestartPolicy::kNever, "no"},
                                                                         {RestartPolicy::kAlways, "unless-stopped"}});

constexpr auto kProtocols = std::to_array<NameRow<PortProtocol>>(
    {{PortProtocol::kTcp, "TCP"}, {PortProtocol::kUdp, "UDP"}, {PortProtocol::kSctp, "SCTP"}});

constexpr int32_t kLargestPort = 65535;

// What a type runs, and the other keys it has no use for.
std::string ContentProblem(const WorkloadTemplate& spec) {
  struct Row {
    WorkloadType type;
    std::string_view needs;
    bool command;
    bool image;
    bool compose;
  };
  static constexpr auto kRows = std::to_array<Row>({{WorkloadType::kProcess, "command", true, false, false},
                                                    {WorkloadType::kContainer, "image", true, true, false},
                                                    {WorkloadType::kCompose, "compose", false, false, true},
                                                    {WorkloadType::kVm, "image", false, true, false}});
  for (const Row& row : kRows) {
    if (row.type != spec.type) continue;
    const std::string_view type = WorkloadTypeName(spec.type);
    if (row.needs == "command" && spec.command.empty()) return fmt::format("command: a {} needs one", type);
    if (row.needs == "image" && spec.image.empty()) return fmt::format("image: a {} needs one", type);
    if (row.needs == "compose" && spec.compose.empty()) return fmt::format("compose: a {} needs one", type);
    if (!row.command && !spec.command.empty()) return fmt::format("command: a {} takes none", type);
    if (!row.image && !spec.image.empty()) return fmt::format("image: a {} takes none", type);
    if (!row.compose && !spec.compose.empty()) return fmt::format("compose: a {} takes none", type);
    return "";
  }
  return "type: missing; use one of process, container, compose, vm";
}

std::string PortProblem(const Port& port) {
  const auto outside = [](int32_t number) { return number < 0 || number > kLargestPort; };
  if (outside(port.container)) return fmt::format("container: {} is not from 1 to {}", port.container, kLargestPort);
  if (outside(port.host)) return fmt::format("host: {} is not from 1 to {}", port.host, kLargestPort);
  if (port.container == 0 && port.host == 0) return "container: missing";
  return "";
}

std::string VolumeProblem(const VolumeMount& mount) {
  // Engines write a mount as SOURCE:TARGET.
  const auto unreadable = [](std::string_view path) { return path.contains(':') || path.contains('\0'); };
  if (mount.source.starts_with('/')) {
    if (unreadable(mount.source)) return fmt::format("source: {} must not contain ':' or NUL", Quoted(mount.source));
  } else {
    const VolumeSource source = SplitVolumeSource(mount.source);
    if (!IsVolumeName(source.name) || source.options.contains('/') || unreadable(source.options)) {
      return fmt::format(
          "source: {} is neither an absolute path nor a name of letters, digits, '.', '_' and '-', a letter or digit "
          "first",
          Quoted(mount.source));
    }
  }
  if (!mount.target.starts_with('/') || unreadable(mount.target)) {
    return fmt::format("target: {} is no absolute path without ':' and NUL", Quoted(mount.target));
  }
  return "";
}

std::string RequirementProblem(const Requirement& requirement) {
  if (requirement.op == Operator::kSame) return "operator: Same is for needs; use colocate";
  return Validate(requirement).message();
}

std::string SelectorProblem(const std::optional<std::vector<Requirement>>& selector) {
  if (!selector) return "";
  for (size_t i = 0; i < selector->size(); ++i) {
    if ((*selector)[i].op == Operator::kGt || (*selector)[i].op == Operator::kLt) {
      return fmt::format("selector[{}].operator: Gt and Lt compare labels of nodes, not of workloads", i);
    }
    if (std::string problem = RequirementProblem((*selector)[i]); !problem.empty()) {
      return fmt::format("selector[{}].{}", i, problem);
    }
  }
  return "";
}

std::string SpreadProblem(const SpreadRule& rule) {
  if (std::string problem = Validate(rule.spread).message(); !problem.empty()) return problem;
  if (rule.min_domains < 0) return fmt::format("minDomains: {} is below 1", rule.min_domains);
  if (rule.min_domains > 0 && rule.spread.when != WhenUnsatisfiable::kDoNotSchedule) {
    return "minDomains: goes with whenUnsatisfiable DoNotSchedule only";
  }
  return SelectorProblem(rule.selector);
}

std::string NeighbourProblem(const NeighbourRule& rule) {
  if (rule.topology_key.empty()) return "topologyKey: missing";
  if (rule.weight < 0 || rule.weight > 100) return fmt::format("weight: {} is not from 1 to 100", rule.weight);
  return SelectorProblem(rule.selector);
}

std::string TolerationProblem(const TolerationRule& rule) {
  if (rule.any_value && !rule.value.empty()) return "value: Exists takes none";
  if (!rule.any_value && rule.key.empty()) return "key: missing; only operator Exists goes without";
  if (!rule.effect.empty() && rule.effect != "NoSchedule" && rule.effect != "PreferNoSchedule" &&
      rule.effect != "NoExecute") {
    return fmt::format("effect: unknown effect {}: use one of NoSchedule, PreferNoSchedule, NoExecute",
                       Quoted(rule.effect));
  }
  return "";
}

// The first problem of `items` as "field[i].<problem>".
template <class T, class Problem>
std::string FirstProblem(std::string_view field, const std::vector<T>& items, Problem problem_of) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (std::string problem = problem_of(items[i]); !problem.empty())
      return fmt::format("{}[{}].{}", field, i, problem);
  }
  return "";
}

std::string RequirementsProblem(const std::vector<std::vector<Requirement>>& terms) {
  for (size_t term = 0; term < terms.size(); ++term) {
    const std::string field = terms.size() == 1 ? "requirements" : fmt::format("requirements[{}]", term);
    if (terms[term].empty()) return field + ": an empty list matches nothing";
    if (std::string problem = FirstProblem(field, terms[term], RequirementProblem); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace

std::string_view RestartPolicyName(RestartPolicy policy) { return NameOf(kRestartPolicies, policy); }
Result<RestartPolicy> ParseRestartPolicy(std::string_view name) {
  return ParseName(kRestartPolicies, "restart policy", name);
}

std::string_view PortProtocolName(PortProtocol protocol) { return NameOf(kProtocols, protocol); }
Result<PortProtocol> ParsePortProtocol(std::string_view name) { return ParseName(kProtocols, "protocol", name); }

std::map<std::string, std::string> WholeEnv(const WorkloadTemplate& spec) {
  std::map<std::string, std::string> whole = spec.env;
  whole.insert(spec.secret_env.begin(), spec.secret_env.end());
  return whole;
}

std::string TemplateProblem(const WorkloadTemplate& spec) {
  if (std::string problem = ContentProblem(spec); !problem.empty()) return problem;
  for (const auto& [name, value] : spec.secret_env) {
    if (spec.env.contains(name)) return fmt::format("secretEnv.{}: is in env too; name it once", name);
    if (value.empty()) return fmt::format("secretEnv.{}: is empty; a secret has a value", name);
  }
  if (std::string problem = FirstProblem("ports", spec.ports, PortProblem); !problem.empty()) return problem;
  if (std::string problem = FirstProblem("volumes", spec.volumes, VolumeProblem); !problem.empty()) return problem;
  if (std::string problem = RequirementsProblem(spec.requirements); !problem.empty()) return problem;
  if (std::string problem = FirstProblem("tolerations", spec.tolerations, TolerationProblem); !problem.empty()) {
    return problem;
  }
  if (std::string problem = FirstProblem("spread", spec.spread, SpreadProblem); !problem.empty()) return problem;
  if (std::string problem = FirstProblem("colocate", spec.colocate, NeighbourProblem); !problem.empty()) return problem;
  if (std::string problem = FirstProblem("exclude", spec.exclude, NeighbourProblem); !problem.empty()) return problem;
  if (spec.grace < Duration::zero()) return "grace: is below 0";
  return "";
}

}  // namespace muster::model
