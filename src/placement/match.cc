#include "placement/match.h"

#include <algorithm>
#include <optional>

namespace muster::placement {
namespace {

std::optional<std::string_view> Label(const model::TextMap& labels, const std::string& key) {
  const auto it = labels.find(key);
  return it == labels.end() ? std::nullopt : std::optional<std::string_view>(it->second);
}

bool MatchesFields(const std::vector<model::Requirement>& fields, const Node& node) {
  return std::ranges::all_of(fields, [&](const model::Requirement& field) {
    return model::Matches(field, field.key == kNodeNameField ? std::optional<std::string_view>(node.id) : std::nullopt);
  });
}

bool IsEveryAddress(std::string_view ip) { return ip.empty() || ip == "0.0.0.0"; }

// The unit's own value of each key, as a requirement on others; keys it lacks say nothing.
void AddOwnValues(const Kind& kind, const std::vector<std::string>& keys, model::Operator op,
                  std::vector<model::Requirement>& out) {
  for (const std::string& key : keys) {
    if (const auto value = Label(kind.labels, key))
      out.push_back({.key = key, .op = op, .values = {std::string(*value)}});
  }
}

}  // namespace

bool MatchesAll(const std::vector<model::Requirement>& requirements, const model::TextMap& labels) {
  return std::ranges::all_of(requirements, [&](const model::Requirement& requirement) {
    return model::Matches(requirement, Label(labels, requirement.key));
  });
}

bool MatchesTerm(const NodeTerm& term, const Node& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  return MatchesAll(term.labels, node.labels) && MatchesFields(term.fields, node);
}

bool MatchesLabels(const Kind& kind, const Node& node) {
  if (!MatchesAll(kind.requirements, node.labels)) return false;
  return kind.node_terms.empty() ||
         std::ranges::any_of(kind.node_terms, [&](const NodeTerm& term) { return MatchesTerm(term, node); });
}

bool SupportsType(const Node& node, model::WorkloadType type) {
  if (type == model::WorkloadType::kUnspecified) return true;
  if (node.supported_types.empty()) return type != model::WorkloadType::kVm;
  return std::ranges::find(node.supported_types, type) != node.supported_types.end();
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (!toleration.every_effect && toleration.effect != taint.effect) return false;
    if (toleration.key.empty()) return toleration.exists;
    if (toleration.key != taint.key) return false;
    return toleration.exists || toleration.value == taint.value;
  });
}

const Taint* UntoleratedTaint(const Kind& kind, const Node& node) {
  for (const Taint& taint : node.taints) {
    if (taint.effect != TaintEffect::kPreferNoSchedule && !Tolerates(kind.tolerations, taint)) return &taint;
  }
  return nullptr;
}

bool PassesCordon(const Kind& kind, const Node& node) {
  if (!node.cordoned) return true;
  return Tolerates(kind.tolerations, {.key = "node.kubernetes.io/unschedulable"});
}

int64_t AvoidedTaints(const Kind& kind, const Node& node) {
  return std::ranges::count_if(node.taints, [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule && !Tolerates(kind.tolerations, taint);
  });
}

int64_t PreferredNodeWeight(const Kind& kind, const Node& node) {
  int64_t sum = 0;
  for (const PreferredNodeTerm& preferred : kind.preferred_nodes) {
    if (MatchesTerm(preferred.term, node)) sum += preferred.weight;
  }
  return sum;
}

bool Conflicts(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || IsEveryAddress(a.ip) || IsEveryAddress(b.ip));
}

UnitSelector SelectorOf(const Kind& kind, const SpreadConstraint& constraint) {
  UnitSelector selector{.namespaces = {kind.name_space}, .labels = constraint.selector.all};
  AddOwnValues(kind, constraint.match_label_keys, model::Operator::kIn, selector.labels);
  selector.nothing = !constraint.selector.given || selector.labels.empty();
  if (selector.nothing) selector = {.nothing = true};
  return selector;
}

UnitSelector SelectorOf(const Kind& kind, const UnitTerm& term) {
  if (!term.selector.given) return {.nothing = true};
  UnitSelector selector{.namespaces = term.namespaces, .labels = term.selector.all};
  AddOwnValues(kind, term.match_label_keys, model::Operator::kIn, selector.labels);
  AddOwnValues(kind, term.mismatch_label_keys, model::Operator::kNotIn, selector.labels);
  if (term.namespace_selector.given) {
    selector.every_namespace = term.namespace_selector.all.empty();
    selector.by_namespace_labels = !selector.every_namespace;
    selector.namespace_labels = term.namespace_selector.all;
  } else if (selector.namespaces.empty()) {
    selector.namespaces = {kind.name_space};
  }
  if (selector.every_namespace) selector.namespaces.clear();
  std::ranges::sort(selector.namespaces);
  const auto [first, last] = std::ranges::unique(selector.namespaces);
  selector.namespaces.erase(first, last);
  return selector;
}

bool Matches(const UnitSelector& selector, const Kind& unit, const Namespaces& namespaces) {
  if (selector.nothing || !MatchesAll(selector.labels, unit.labels)) return false;
  if (selector.every_namespace || std::ranges::binary_search(selector.namespaces, unit.name_space)) return true;
  if (!selector.by_namespace_labels) return false;
  const auto labels = namespaces.find(unit.name_space);
  return MatchesAll(selector.namespace_labels, labels == namespaces.end() ? model::TextMap() : labels->second);
}

}  // namespace muster::placement
