// Pools and candidates: what a new node of the cluster in a dump would be.
//
// Nodes that agree in their lasting labels and taints form a pool. Lasting is what a node keeps for life and shares
// with others of its make: not its type, zone, hostname, architecture or terms, which a candidate brings itself, and
// not taints that come and go. Of the lasting labels only those count that name the pool or that some unit or DaemonSet
// asks for: a rack or an asset tag would make a pool of every node. A candidate is a type in a zone on terms, made as a
// pool makes its nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/dump.h"
#include "planner/catalogue.h"

namespace muster::kube {

// Labels of nodes, by key.
using LabelKeys = std::set<std::string>;
// Adds what the kind asks for: requirements, terms, and topology keys of hard rules.
void AddLabelsRead(const placement::Kind& kind, LabelKeys& keys);
// Of all pods and DaemonSets of a dump.
LabelKeys LabelsRead(const Dump& dump);

inline constexpr size_t kMostPools = 128;  // that machines are planned in
struct Pools {
  std::vector<planner::Pool> pools;            // by name; at least one, and at most kMostPools, those with most nodes
  std::map<std::string, std::string> of_node;  // name of the pool by node; control planes are in none
  int64_t left_out = 0;                        // pools beyond those
};
Pools FindPools(const Dump& dump, const LabelKeys& read);

// The catalogue in every pool and zone, as nodes of the dump suggest: amounts that nodes of a type report beat the
// catalogue's; labels that depend on zone, type or terms are filled in; what DaemonSets and static pods would take is
// subtracted. GPUs are devices (gpus.h). A type without slots has kDefaultSlots. Types that would have nothing left are
// left out.
inline constexpr int64_t kDefaultSlots = 110;  // as many pods as a kubelet takes by default
std::vector<planner::Candidate> CandidatesFor(const Dump& dump, const Pools& pools,
                                              const planner::Catalogue& catalogue);

// What a node of the dump costs by the catalogue, on its own terms and in its own zone; nothing if that is not listed.
std::optional<model::Money> PriceOf(const DumpNode& node, const planner::Catalogue& catalogue);

}  // namespace muster::kube
