#include "placement/types.h"

#include <fmt/format.h>

#include <set>
#include <span>

#include "base/codec.h"
#include "model/names.h"

namespace muster::placement {
namespace {

using model::NameRow;

constexpr auto kEffects = std::to_array<NameRow<TaintEffect>>({{TaintEffect::kNoSchedule, "NoSchedule"},
                                                               {TaintEffect::kPreferNoSchedule, "PreferNoSchedule"},
                                                               {TaintEffect::kNoExecute, "NoExecute"}});
constexpr auto kInclusions =
    std::to_array<NameRow<NodeInclusion>>({{NodeInclusion::kHonor, "Honor"}, {NodeInclusion::kIgnore, "Ignore"}});
constexpr auto kStrategies =
    std::to_array<NameRow<Strategy>>({{Strategy::kSpread, "spread"}, {Strategy::kPack, "pack"}});

Status Bad(std::string text) { return {Code::kInvalidArgument, std::move(text)}; }

Status CheckAll(std::span<const model::Requirement> requirements, std::string_view where) {
  for (size_t i = 0; i < requirements.size(); ++i) {
    if (Status status = model::Validate(requirements[i]); !status.ok()) {
      return Bad(fmt::format("{}[{}].{}", where, i, status.message()));
    }
  }
  return {};
}

Status Check(const NodeTerm& term, std::string_view where) {
  MUSTER_RETURN_IF_ERROR(CheckAll(term.labels, fmt::format("{}.labels", where)));
  return CheckAll(term.fields, fmt::format("{}.fields", where));
}

Status Check(const UnitTerm& term, std::string_view where) {
  if (term.topology_key.empty()) return Bad(fmt::format("{}.topologyKey: missing", where));
  MUSTER_RETURN_IF_ERROR(CheckAll(term.selector.all, fmt::format("{}.selector", where)));
  return CheckAll(term.namespace_selector.all, fmt::format("{}.namespaceSelector", where));
}

Status CheckIds(const World& world) {
  std::set<std::string_view> ids;
  for (const Node& node : world.nodes) {
    if (node.id.empty()) return Bad("a node has no id");
    if (!ids.insert(node.id).second) return Bad(fmt::format("node {}: the id is there twice", node.id));
  }
  std::set<std::string_view> units;
  for (const PlacedUnit& placed : world.placed) {
    const Unit& unit = placed.unit;
    if (unit.id.empty()) return Bad("a placed unit has no id");
    if (!units.insert(unit.id).second) return Bad(fmt::format("unit {}: the id is there twice", unit.id));
    if (!ids.contains(placed.node)) {
      return Bad(fmt::format("unit {}: there is no node {}", unit.id, placed.node));
    }
    if (unit.kind.value() >= world.kinds.size()) return Bad(fmt::format("unit {}: its kind is out of range", unit.id));
  }
  return {};
}

}  // namespace

std::string_view TaintEffectName(TaintEffect effect) { return NameOf(kEffects, effect); }
Result<TaintEffect> ParseTaintEffect(std::string_view name) { return ParseName(kEffects, "taint effect", name); }
std::string_view NodeInclusionName(NodeInclusion inclusion) { return NameOf(kInclusions, inclusion); }
Result<NodeInclusion> ParseNodeInclusion(std::string_view name) {
  return ParseName(kInclusions, "node inclusion policy", name);
}
std::string_view StrategyName(Strategy strategy) { return NameOf(kStrategies, strategy); }
Result<Strategy> ParseStrategy(std::string_view name) { return ParseName(kStrategies, "strategy", name); }

uint64_t Digest(const std::vector<Outcome>& outcomes) {
  Hasher hasher;
  for (const Outcome& outcome : outcomes) {
    hasher.Add(outcome.unit);
    hasher.Add(outcome.node);
    for (const int32_t device : outcome.devices) hasher.Add(static_cast<uint64_t>(device));
    for (const std::string& victim : outcome.victims) hasher.Add(victim);
  }
  return hasher.value();
}

KindTable::KindTable(std::vector<Kind> kinds) : kinds_(std::move(kinds)) {
  for (size_t i = 0; i < kinds_.size(); ++i) index_of_.emplace(codec::ToBytes(kinds_[i]), KindIndex::Of(i));
}

KindIndex KindTable::Add(const Kind& kind) {
  const auto [it, added] = index_of_.emplace(codec::ToBytes(kind), KindIndex::Of(kinds_.size()));
  if (added) kinds_.push_back(kind);
  return it->second;
}

Status CheckStructure(const Kind& kind) {
  if (kind.devices.whole < 0 || kind.devices.milli < 0) return Bad("devices: must not be negative");
  if (kind.devices.whole > 0 && kind.devices.milli > 0) return Bad("devices: ask for whole ones or a part, not both");
  MUSTER_RETURN_IF_ERROR(CheckAll(kind.requirements, "requirements"));
  for (const NodeTerm& term : kind.node_terms) MUSTER_RETURN_IF_ERROR(Check(term, "nodeTerms"));
  for (const PreferredNodeTerm& preferred : kind.preferred_nodes) {
    MUSTER_RETURN_IF_ERROR(Check(preferred.term, "preferredNodes"));
  }
  for (const SpreadConstraint& constraint : kind.spread) {
    if (constraint.topology_key.empty()) return Bad("spread.topologyKey: missing");
    MUSTER_RETURN_IF_ERROR(CheckAll(constraint.selector.all, "spread.selector"));
  }
  for (const UnitTerm& term : kind.colocate) MUSTER_RETURN_IF_ERROR(Check(term, "colocate"));
  for (const UnitTerm& term : kind.exclude) MUSTER_RETURN_IF_ERROR(Check(term, "exclude"));
  for (const PreferredUnitTerm& term : kind.preferred_colocate) {
    MUSTER_RETURN_IF_ERROR(Check(term.term, "preferredColocate"));
  }
  for (const PreferredUnitTerm& term : kind.preferred_exclude) {
    MUSTER_RETURN_IF_ERROR(Check(term.term, "preferredExclude"));
  }
  return {};
}

Status CheckStructure(const World& world) {
  for (size_t i = 0; i < world.kinds.size(); ++i) {
    if (Status status = CheckStructure(world.kinds[i]); !status.ok()) {
      return Bad(fmt::format("kind {}: {}", i, status.message()));
    }
  }
  return CheckIds(world);
}

}  // namespace muster::placement
