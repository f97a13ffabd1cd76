// Tests of one unit against one node, and of one unit against another, that need no counting: labels, taints, types,
// selectors, namespaces. Both placers, the planner and explanations use them.
//
// Pure functions of their arguments.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "placement/types.h"

namespace muster::placement {

// --- A unit and a node.

bool MatchesAll(const std::vector<model::Requirement>& requirements, const model::TextMap& labels);
// [F.node-terms] A term without requirements matches no node.
bool MatchesTerm(const NodeTerm& term, const Node& node);
// [F.labels] The unit's requirements and, if it has node terms, one of them.
bool MatchesLabels(const Kind& kind, const Node& node);
// [F.type]
bool SupportsType(const Node& node, model::WorkloadType type);
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
// [F.taint] The first NoSchedule or NoExecute taint that the unit does not tolerate; nullptr: there is none.
const Taint* UntoleratedTaint(const Kind& kind, const Node& node);
// [F.cordon] A cordoned node takes only units that tolerate node.kubernetes.io/unschedulable.
bool PassesCordon(const Kind& kind, const Node& node);
// [S.taints] How many PreferNoSchedule taints the unit does not tolerate.
int64_t AvoidedTaints(const Kind& kind, const Node& node);
// [S.node-terms] Sum of the weights of preferred node terms that match.
int64_t PreferredNodeWeight(const Kind& kind, const Node& node);
// [F.port] Same protocol and port, and the same address or one of them every address.
bool Conflicts(const HostPort& a, const HostPort& b);

// --- A unit and another unit.

// Which units a term or constraint of one kind is about, with its label keys and namespaces filled in.
struct UnitSelector {
  bool nothing = false;                              // matches no unit
  bool every_namespace = false;                      // no need to look at `namespaces`
  std::vector<std::string> namespaces;               // sorted, unique
  std::vector<model::Requirement> namespace_labels;  // or a namespace whose labels match all of these
  bool by_namespace_labels = false;                  // whether namespace_labels is read
  std::vector<model::Requirement> labels;            // all of them

  auto operator<=>(const UnitSelector&) const = default;
};

// [P.selector] [P.match-keys] An empty selector of a spread constraint counts nothing.
UnitSelector SelectorOf(const Kind& kind, const SpreadConstraint& constraint);
// [A.namespaces] [A.match-keys]
UnitSelector SelectorOf(const Kind& kind, const UnitTerm& term);

using Namespaces = std::map<std::string, model::TextMap>;
bool Matches(const UnitSelector& selector, const Kind& unit, const Namespaces& namespaces);

}  // namespace muster::placement
