#include "planner/node_classes.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/probe.h"
#include "placement/match.h"
#include "planner/problem.h"

namespace muster::planner {
namespace {

// What of a kind decides which classes it may use.
std::string Signature(const placement::Kind& kind, const std::vector<std::string>& needed_keys) {
  std::string bytes;
  codec::Writer writer(bytes);
  writer.Bytes(codec::ToBytes(kind.requirements));
  writer.Bytes(codec::ToBytes(kind.node_terms));
  writer.Bytes(codec::ToBytes(kind.tolerations));
  writer.Varint(static_cast<uint64_t>(kind.type));
  for (const std::string& key : needed_keys) writer.Bytes(key);
  return bytes;
}

// Topology keys without which a node takes no unit of the kind.
std::vector<std::string> NeededKeys(const placement::Kind& kind) {
  std::vector<std::string> keys;
  for (const placement::SpreadConstraint& spread : kind.spread) {
    if (spread.when == model::WhenUnsatisfiable::kDoNotSchedule) keys.push_back(spread.topology_key);
  }
  for (const placement::UnitTerm& term : kind.colocate) keys.push_back(term.topology_key);
  std::erase(keys, kHostnameKey);
  std::ranges::sort(keys);
  keys.erase(std::ranges::unique(keys).begin(), keys.end());
  return keys;
}

bool MayUse(const placement::Kind& kind, const std::vector<std::string>& needed_keys, const placement::Node& node) {
  return node.ready && node.fresh && placement::MatchesLabels(kind, node) && placement::SupportsType(node, kind.type) &&
         placement::PassesCordon(kind, node) &&
         (placement::UntoleratedTaint(kind, node) == nullptr || MUTANT("planner.taints_ignored")) &&
         std::ranges::all_of(needed_keys, [&](const std::string& key) { return node.labels.contains(key); });
}

}  // namespace

NodeClasses::NodeClasses(const placement::World& world, const std::vector<uint32_t>& kinds)
    : world_(&world), kinds_(kinds) {
  for (const uint32_t k : kinds_) AskFor(world.kinds[k]);
}

void NodeClasses::AskFor(const placement::Kind& kind) {
  for (const model::Requirement& requirement : kind.requirements) keys_.insert(requirement.key);
  for (const placement::NodeTerm& term : kind.node_terms) {
    for (const model::Requirement& requirement : term.labels) keys_.insert(requirement.key);
    names_ = names_ || !term.fields.empty();
  }
  for (std::string& key : NeededKeys(kind)) keys_.insert(std::move(key));
}

uint32_t NodeClasses::Intern(placement::Node projected) {
  const auto [at, inserted] = class_of_.try_emplace(codec::ToBytes(projected), static_cast<uint32_t>(examples_.size()));
  if (inserted) examples_.push_back(std::move(projected));
  return at->second;
}

uint32_t NodeClasses::ClassOf(const Candidate& candidate) {
  placement::Node projected;
  for (const auto& label : candidate.labels) {
    if (keys_.contains(label.first)) projected.labels.emplace(label.first, label.second);
  }
  projected.taints = candidate.taints;
  return Intern(std::move(projected));
}

uint32_t NodeClasses::ClassOf(const placement::Node& node) {
  placement::Node projected;
  for (const auto& label : node.labels) {
    if (keys_.contains(label.first)) projected.labels.emplace(label.first, label.second);
  }
  if (names_) projected.id = node.id;
  projected.taints = node.taints;
  projected.ready = node.ready;
  projected.fresh = node.fresh;
  projected.cordoned = node.cordoned;
  projected.supported_types = node.supported_types;
  return Intern(std::move(projected));
}

void NodeClasses::MakeMasks() {
  std::map<std::string, uint32_t> mask_by_signature;
  std::map<std::vector<bool>, uint32_t> mask_by_row;
  for (const uint32_t k : kinds_) {
    const placement::Kind& kind = world_->kinds[k];
    const std::vector<std::string> needed = NeededKeys(kind);
    const auto [at, inserted] = mask_by_signature.try_emplace(Signature(kind, needed), 0);
    if (inserted) {
      std::vector<bool> row;
      for (const placement::Node& example : examples_) row.push_back(MayUse(kind, needed, example));
      const auto [row_at, fresh] = mask_by_row.try_emplace(row, static_cast<uint32_t>(masks_.size()));
      if (fresh) masks_.push_back(std::move(row));
      at->second = row_at->second;
    }
    mask_of_[k] = at->second;
  }
}

bool NodeClasses::Eligible(const placement::Kind& kind, const placement::SpreadConstraint& constraint,
                           uint32_t node_class) const {
  const placement::Node& node = examples_[node_class];
  const auto needed = NeededKeys(kind);
  if (!std::ranges::all_of(needed, [&](const std::string& key) { return node.labels.contains(key); })) return false;
  if (constraint.node_affinity == placement::NodeInclusion::kHonor && !placement::MatchesLabels(kind, node)) {
    return false;
  }
  return constraint.node_taints == placement::NodeInclusion::kIgnore ||
         placement::UntoleratedTaint(kind, node) == nullptr;
}

}  // namespace muster::planner
