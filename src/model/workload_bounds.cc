#include "model/workload_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/compose.h"

namespace muster::model {
namespace {

// Where values are secrets, the core has them sealed, which is longer.
constexpr MostOf kMostSecrets{.entries = kMostParts.entries, .bytes = 2 * kMostParts.bytes};
constexpr MostOf kMostOfCompose{.entries = 0, .bytes = kMostComposeBytes};
constexpr MostOf kMostOfResources{.entries = kMostDimensions, .bytes = 253};
constexpr int32_t kWhole = 100;  // per cent

std::string CountProblem(std::string_view field, MemberCount count) {
  const int32_t most = count.percent ? kWhole : kMostReplicas;
  if (count.amount >= 0 && count.amount <= most) return "";
  return fmt::format("{}: {} is not from 0 to {}{}", field, FormatMemberCount(count), most, count.percent ? "%" : "");
}

template <class T>
const MostOf& MostOfField(const WorkloadTemplate& spec, const T& field) {
  const auto* at = static_cast<const void*>(&field);
  if (at == &spec.compose) return kMostOfCompose;
  if (at == &spec.secret_env) return kMostSecrets;
  if (at == &spec.resources) return kMostOfResources;
  return kMostParts;
}

template <class Rules>
std::string SelectorsProblem(std::string_view field, const Rules& rules) {
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].selector) continue;
    if (std::string problem = SelectorSizeProblem(*rules[i].selector); !problem.empty()) {
      return fmt::format("{}[{}].{}", field, i, problem);
    }
  }
  return "";
}

size_t TextsOf(const std::vector<Requirement>& requirements) {
  constexpr size_t kNumber = 8;  // a length, or an operator
  size_t bytes = 0;
  for (const Requirement& requirement : requirements) {
    bytes += requirement.key.size() + 3 * kNumber;
    for (const std::string& value : requirement.values) bytes += value.size() + kNumber;
  }
  return bytes;
}

std::string NeedProblem(const WorkloadTemplate& spec) {
  size_t bytes = 0;
  for (const auto& term : spec.requirements) bytes = std::max(bytes, TextsOf(term));
  for (const SpreadRule& rule : spec.spread) bytes += TextsOf({{.key = rule.spread.topology_key}});
  for (const NeighbourRule& rule : spec.colocate) {
    bytes += TextsOf({{.key = rule.topology_key}}) + (rule.selector ? TextsOf(*rule.selector) : 0);
  }
  if (bytes <= kMostNeedTexts) return "";
  return fmt::format("requirements: with spread and colocate they take {} bytes; at most {} are taken", bytes,
                     kMostNeedTexts);
}

}  // namespace

std::string CountsProblem(const WorkloadSpec& spec) {
  if (spec.replicas < 0 || spec.replicas > kMostReplicas) {
    return fmt::format("replicas: {} is not from 0 to {}", spec.replicas, kMostReplicas);
  }
  if (std::string problem = CountProblem("update.maxUnavailable", spec.max_unavailable); !problem.empty())
    return problem;
  if (std::string problem = CountProblem("update.maxSurge", spec.max_surge); !problem.empty()) return problem;
  return CountProblem("minAvailable", spec.min_available);
}

std::string MembersProblem(const WorkloadSpec& spec) {
  const int64_t surge = std::min(spec.replicas, spec.max_surge.Of(spec.replicas));
  const auto members = static_cast<uint64_t>(spec.replicas + surge);
  const uint64_t each = WeightOf(spec.spec) + WeightOf(spec.labels);
  if (members * each <= kMostMembersWeight) return "";
  return fmt::format("replicas: {} members of {} KiB each{} take {} MiB; at most {} are taken", members,
                     (each + 1023) >> 10, surge > 0 ? ", maxSurge among them," : "", (members * each) >> 20,
                     kMostMembersWeight >> 20);
}

std::string SizeProblem(const WorkloadTemplate& spec) {
  std::string problem;
  std::string heaviest;
  size_t most = 0;
  size_t weight = 0;
  ForEachField<WorkloadTemplate>(spec, [&](std::string_view name, const auto& field) {
    const std::string written = internal::NameInFiles(name);
    if (problem.empty()) problem = Beyond(MostOfField(spec, field), written, field);
    const size_t part = WeightOf(field);
    weight += part;
    if (part > most) {
      most = part;
      heaviest = written;
    }
  });
  if (!problem.empty()) return problem;
  if (weight > kMostTemplateWeight) {
    return fmt::format("{}: is too large; it takes {} KiB, and a whole template at most {}", heaviest, most >> 10,
                       kMostTemplateWeight >> 10);
  }
  if (problem = SelectorsProblem("spread", spec.spread); !problem.empty()) return problem;
  if (problem = SelectorsProblem("colocate", spec.colocate); !problem.empty()) return problem;
  if (problem = SelectorsProblem("exclude", spec.exclude); !problem.empty()) return problem;
  return NeedProblem(spec);
}

std::string TextsProblem(std::string_view field, const std::map<std::string, std::string>& texts) {
  if (std::string problem = Beyond(kMostParts, field, texts); !problem.empty()) return problem;
  const size_t weight = WeightOf(texts);
  if (weight <= kMostTextsWeight) return "";
  return fmt::format("{}: takes {} KiB; at most {} are taken", field, weight >> 10, kMostTextsWeight >> 10);
}

std::string SelectorSizeProblem(const std::vector<Requirement>& selector) {
  return Beyond(kMostSelector, "selector", selector);
}

}  // namespace muster::model
