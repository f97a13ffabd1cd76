// How a case writes what a unit asks for.
#include "placement/case_file.h"

namespace muster::placement {
namespace {

using model::Requirement;
using model::TextReader;

Requirement ReadRequirement(TextReader reader) {
  Requirement requirement;
  reader.Field("key").Require().Read(requirement.key);
  reader.Field("operator").Require().Read(requirement.op, model::ParseOperator);
  reader.Field("values").Read(requirement.values);
  reader.RefuseUnknown();
  if (Status status = model::Validate(requirement); reader.ok() && !status.ok()) reader.Fail(status.message());
  return requirement;
}

// A list of requirements, or a map of labels, each of which becomes "key In [value]".
std::vector<Requirement> ReadRequirements(TextReader reader) {
  std::vector<Requirement> requirements;
  if (reader.is_map()) {
    for (auto& [key, value] : reader.Entries()) {
      std::string text;
      value.Read(text);
      requirements.push_back({.key = key, .op = model::Operator::kIn, .values = {text}});
    }
    return requirements;
  }
  for (TextReader item : reader.List()) requirements.push_back(ReadRequirement(item));
  return requirements;
}

Selector ReadSelector(TextReader reader) { return {.given = reader.present(), .all = ReadRequirements(reader)}; }

NodeTerm ReadNodeTerm(TextReader& reader) {
  return {.labels = ReadRequirements(reader.Field("labels")), .fields = ReadRequirements(reader.Field("fields"))};
}

Toleration ReadToleration(TextReader reader) {
  Toleration toleration;
  reader.Field("key").Read(toleration.key);
  std::string op = "Equal";
  TextReader operator_field = reader.Field("operator");
  operator_field.Read(op);
  toleration.exists = op == "Exists";
  if (op != "Exists" && op != "Equal") operator_field.Fail("write Exists or Equal");
  reader.Field("value").Read(toleration.value);
  TextReader effect = reader.Field("effect");
  toleration.every_effect = !effect.present();
  effect.Read(toleration.effect, ParseTaintEffect);
  reader.RefuseUnknown();
  return toleration;
}

SpreadConstraint ReadSpread(TextReader reader) {
  SpreadConstraint constraint;
  reader.Field("key").Require().Read(constraint.topology_key);
  reader.Field("maxSkew").Read(constraint.max_skew);
  reader.Field("when").Read(constraint.when, model::ParseWhenUnsatisfiable);
  constraint.selector = ReadSelector(reader.Field("selector"));
  reader.Field("matchLabelKeys").Read(constraint.match_label_keys);
  reader.Field("minDomains").Read(constraint.min_domains);
  reader.Field("nodeAffinityPolicy").Read(constraint.node_affinity, ParseNodeInclusion);
  reader.Field("nodeTaintsPolicy").Read(constraint.node_taints, ParseNodeInclusion);
  reader.RefuseUnknown();
  return constraint;
}

UnitTerm ReadUnitTerm(TextReader& reader) {
  UnitTerm term;
  reader.Field("key").Require().Read(term.topology_key);
  term.selector = ReadSelector(reader.Field("selector"));
  reader.Field("namespaces").Read(term.namespaces);
  term.namespace_selector = ReadSelector(reader.Field("namespaceSelector"));
  reader.Field("matchLabelKeys").Read(term.match_label_keys);
  reader.Field("mismatchLabelKeys").Read(term.mismatch_label_keys);
  return term;
}

std::vector<UnitTerm> ReadUnitTerms(TextReader reader) {
  std::vector<UnitTerm> terms;
  for (TextReader item : reader.List()) {
    terms.push_back(ReadUnitTerm(item));
    item.RefuseUnknown();
  }
  return terms;
}

std::vector<PreferredUnitTerm> ReadPreferredUnitTerms(TextReader reader) {
  std::vector<PreferredUnitTerm> terms;
  for (TextReader item : reader.List()) {
    PreferredUnitTerm& preferred = terms.emplace_back();
    item.Field("weight").Read(preferred.weight);
    preferred.term = ReadUnitTerm(item);
    item.RefuseUnknown();
  }
  return terms;
}

void ReadNodeRules(TextReader& reader, Kind& kind) {
  kind.requirements = ReadRequirements(reader.Field("requirements"));
  for (TextReader item : reader.Field("nodeTerms").List()) {
    kind.node_terms.push_back(ReadNodeTerm(item));
    item.RefuseUnknown();
  }
  for (TextReader item : reader.Field("preferredNodes").List()) {
    PreferredNodeTerm& preferred = kind.preferred_nodes.emplace_back();
    item.Field("weight").Read(preferred.weight);
    preferred.term = ReadNodeTerm(item);
    item.RefuseUnknown();
  }
  for (TextReader item : reader.Field("tolerations").List()) kind.tolerations.push_back(ReadToleration(item));
  for (TextReader item : reader.Field("ports").List()) {
    HostPort& port = kind.ports.emplace_back();
    item.Field("port").Require().Read(port.port);
    item.Field("protocol").Read(port.protocol);
    item.Field("ip").Read(port.ip);
    item.RefuseUnknown();
  }
}

}  // namespace

Kind ReadKind(TextReader reader) {
  Kind kind;
  reader.Field("namespace").Read(kind.name_space);
  reader.Field("tenant").Read(kind.tenant);
  reader.Field("priority").Read(kind.priority);
  reader.Field("mayPreempt").Read(kind.may_preempt);
  reader.Field("type").Read(kind.type, model::ParseWorkloadType);
  reader.Field("labels").Read(kind.labels);
  reader.Field("request").Read(kind.request);
  TextReader devices = reader.Field("devices");
  devices.Field("whole").Read(kind.devices.whole);
  devices.Field("milli").Read(kind.devices.milli);
  devices.RefuseUnknown();
  ReadNodeRules(reader, kind);
  for (TextReader item : reader.Field("spread").List()) kind.spread.push_back(ReadSpread(item));
  kind.colocate = ReadUnitTerms(reader.Field("colocate"));
  kind.exclude = ReadUnitTerms(reader.Field("exclude"));
  kind.preferred_colocate = ReadPreferredUnitTerms(reader.Field("preferredColocate"));
  kind.preferred_exclude = ReadPreferredUnitTerms(reader.Field("preferredExclude"));
  reader.RefuseUnknown();
  if (Status status = CheckStructure(kind); reader.ok() && !status.ok()) reader.Fail(status.message());
  return kind;
}

}  // namespace muster::placement
