#include <algorithm>

#include "placement/detail.h"
#include "placement/reference/rules.h"

namespace muster::placement::reference {
namespace {

bool HasKeys(const Node& node, const std::vector<std::string>& keys) {
  return std::ranges::all_of(keys, [&](const std::string& key) { return LabelOf(node, key) != nullptr; });
}

// [P.inclusion] Whether the constraint counts the node as one of its domain's.
bool IsEligible(const Kind& kind, const SpreadConstraint& constraint, const std::vector<std::string>& keys,
                const Node& node) {
  if (!HasKeys(node, keys)) return false;
  if (constraint.node_affinity == NodeInclusion::kHonor && !MatchesLabels(kind, node)) return false;
  return constraint.node_taints == NodeInclusion::kIgnore || UntoleratedTaint(kind, node) == nullptr;
}

// [A.all-terms] A unit counts for co-location if it matches every term.
bool MatchesEveryTerm(const World& world, const Kind& kind, const Kind& other) {
  return std::ranges::all_of(
      kind.colocate, [&](const UnitTerm& term) { return Matches(SelectorOf(kind, term), other, world.namespaces); });
}

}  // namespace

std::vector<std::string> HardKeys(const Kind& kind) {
  std::vector<std::string> keys;
  for (const SpreadConstraint& constraint : kind.spread) {
    if (constraint.when == model::WhenUnsatisfiable::kDoNotSchedule) keys.push_back(constraint.topology_key);
  }
  return keys;
}

std::map<std::string, int64_t> SpreadCounts(const World& world, const Kind& kind, const SpreadConstraint& constraint,
                                            const std::vector<std::string>& keys) {
  const UnitSelector selector = SelectorOf(kind, constraint);
  std::map<std::string, int64_t> counts;
  for (const Node& node : world.nodes) {
    if (!IsEligible(kind, constraint, keys, node)) continue;
    int64_t& count = counts[*LabelOf(node, constraint.topology_key)];
    for (const PlacedUnit& placed : world.placed) {
      if (placed.node != node.id || placed.terminating) continue;  // [P.terminating]
      count += Matches(selector, KindOf(world, placed.unit), world.namespaces);
    }
  }
  return counts;
}

Verdict CheckSpread(const World& world, const Kind& kind, const Node& node) {
  const std::vector<std::string> keys = HardKeys(kind);
  for (const std::string& key : keys) {  // [P.key]
    if (LabelOf(node, key) == nullptr) return {Reason::kSpreadKey, MissingKeyDetail(key)};
  }
  for (const SpreadConstraint& constraint : kind.spread) {  // [P.several]
    if (constraint.when != model::WhenUnsatisfiable::kDoNotSchedule) continue;
    const std::map<std::string, int64_t> counts = SpreadCounts(world, kind, constraint, keys);
    int64_t least = 0;  // [P.min-domains]
    if (!counts.empty() && static_cast<int64_t>(counts.size()) >= constraint.min_domains) {
      least = std::ranges::min_element(counts, {}, [](const auto& row) { return row.second; })->second;
    }
    const std::string& value = *LabelOf(node, constraint.topology_key);
    const auto it = counts.find(value);
    const int64_t count = it == counts.end() ? 0 : it->second;
    const int64_t self = Matches(SelectorOf(kind, constraint), kind, world.namespaces) ? 1 : 0;  // [P.self]
    const int32_t skew = std::max(1, constraint.max_skew);
    if (count + self - least > skew) {  // [P.skew]
      return {Reason::kSpreadSkew, SkewDetail(constraint.topology_key, value, count, least, skew)};
    }
  }
  return {};
}

Verdict CheckColocate(const World& world, const Kind& kind, const Node& node) {
  for (const UnitTerm& term : kind.colocate) {  // [A.key]
    if (LabelOf(node, term.topology_key) == nullptr) return {Reason::kColocateKey, MissingKeyDetail(term.topology_key)};
  }
  bool anywhere = false;
  const UnitTerm* missing = nullptr;
  for (const UnitTerm& term : kind.colocate) {  // [A.colocate]
    const std::string& value = *LabelOf(node, term.topology_key);
    bool here = false;
    for (const PlacedUnit& placed : world.placed) {
      if (!MatchesEveryTerm(world, kind, KindOf(world, placed.unit))) continue;
      const std::string* there = LabelOf(*FindNode(world, placed.node), term.topology_key);
      anywhere = anywhere || there != nullptr;
      here = here || (there != nullptr && *there == value);
    }
    if (!here && missing == nullptr) missing = &term;
  }
  if (missing == nullptr) return {};
  if (!anywhere && MatchesEveryTerm(world, kind, kind)) return {};  // [A.first]
  return {Reason::kColocateNone, ColocateDetail(*missing, *LabelOf(node, missing->topology_key))};
}

bool HasMatch(const World& world, const UnitSelector& selector, const std::string& key, const Node& node) {
  const std::string* value = LabelOf(node, key);
  if (value == nullptr) return false;
  return std::ranges::any_of(world.placed, [&](const PlacedUnit& placed) {
    const std::string* there = LabelOf(*FindNode(world, placed.node), key);
    return there != nullptr && *there == *value && Matches(selector, KindOf(world, placed.unit), world.namespaces);
  });
}

Verdict CheckExclude(const World& world, const Kind& kind, const Node& node) {
  for (const UnitTerm& term : kind.exclude) {  // [A.exclude]
    if (!HasMatch(world, SelectorOf(kind, term), term.topology_key, node)) continue;
    return {Reason::kExcludes, ExcludeDetail(term, *LabelOf(node, term.topology_key))};
  }
  for (const PlacedUnit& placed : world.placed) {  // [A.symmetric]
    const Kind& other = KindOf(world, placed.unit);
    for (const UnitTerm& term : other.exclude) {
      const std::string* here = LabelOf(node, term.topology_key);
      const std::string* there = LabelOf(*FindNode(world, placed.node), term.topology_key);
      if (here == nullptr || there == nullptr || *here != *there) continue;
      if (Matches(SelectorOf(other, term), kind, world.namespaces)) return {Reason::kExcluded, {}};
    }
  }
  return {};
}

}  // namespace muster::placement::reference
