// The rules of docs/placement.md as functions of a world, for the reference placer. Each looks at every node and every
// placed unit it has to; nothing is kept. Rule ids in brackets ([F.port]) are those of docs/placement.md.
//
// Read in this order: filters.cc with domains.cc, score.cc, preempt.cc, place.cc.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/match.h"
#include "placement/types.h"

namespace muster::placement::reference {

const Kind& KindOf(const World& world, const Unit& unit);
// The node's value of a label; nullptr if it lacks it.
const std::string* LabelOf(const Node& node, const std::string& key);
const Node* FindNode(const World& world, const std::string& id);

// --- filters.cc
struct Verdict {
  Reason reason = Reason::kNone;  // the first filter that refuses
  std::string detail;
};
Verdict Check(const World& world, const Kind& kind, const Node& node);
// [F.quota] The same for every node.
Verdict CheckQuota(const World& world, const Kind& kind);
// What the placed units and the node itself take of a resource.
int64_t Reserved(const World& world, const Node& node, const std::string& resource);
std::vector<int32_t> FreeDevices(const World& world, const Node& node);

// --- domains.cc
// The units that a spread constraint counts in each value of its key, over the nodes it counts as domains.
std::map<std::string, int64_t> SpreadCounts(const World& world, const Kind& kind, const SpreadConstraint& constraint,
                                            const std::vector<std::string>& keys);
// Topology keys of the constraints that bind.
std::vector<std::string> HardKeys(const Kind& kind);
Verdict CheckSpread(const World& world, const Kind& kind, const Node& node);
Verdict CheckColocate(const World& world, const Kind& kind, const Node& node);
Verdict CheckExclude(const World& world, const Kind& kind, const Node& node);
// Whether a placed unit that matches lies in the node's domain of the key.
bool HasMatch(const World& world, const UnitSelector& selector, const std::string& key, const Node& node);

// --- score.cc
// Lower is better, member by member.
struct Score {
  int64_t avoided_taints = 0;
  int64_t minus_weight = 0;
  int64_t soft_spread = 0;
  int64_t device_cost = 0;
  int64_t utilisation = 0;
  std::string node;

  auto operator<=>(const Score&) const = default;
};
Score ScoreOf(const World& world, const Kind& kind, const Node& node, const Policy& policy);

// --- preempt.cc
struct Preemption {
  std::string node;
  std::vector<std::string> victims;  // by id
};
std::optional<Preemption> FindPreemption(const World& world, const Kind& kind);
World Without(const World& world, const std::vector<std::string>& units);

}  // namespace muster::placement::reference
