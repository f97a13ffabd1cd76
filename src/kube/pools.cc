#include "kube/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "kube/gpus.h"
#include "model/requirement.h"
#include "placement/match.h"

namespace muster::kube {
namespace {

using planner::Candidate;

// Labels that say again what others say, by the label they repeat.
constexpr auto kAliases = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"beta.kubernetes.io/arch", kArchLabel},
     {"beta.kubernetes.io/os", kOsLabel},
     {"beta.kubernetes.io/instance-type", model::kInstanceTypeKey},
     {"failure-domain.beta.kubernetes.io/zone", model::kZoneKey}});

// Labels of one machine, or of its place, type or terms.
constexpr auto kOwnLabels = std::to_array<std::string_view>(
    {kArchLabel, kOsLabel, kHostnameLabel, model::kInstanceTypeKey, model::kZoneKey, kCapacityTypeLabel,
     "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region", "alpha.eksctl.io/instance-id",
     "topology.k8s.aws/zone-id", "karpenter.sh/registered", "karpenter.sh/initialized",
     "node.kubernetes.io/exclude-from-external-load-balancers"});

// Prefixes of labels that depend on the type alone.
constexpr auto kTypePrefixes =
    std::to_array<std::string_view>({"karpenter.k8s.aws/instance-", "feature.node.kubernetes.io/cpu-"});

// Labels that name the pool, best first.
constexpr auto kPoolNames = std::to_array<std::string_view>(
    {"karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
     "kubernetes.azure.com/agentpool", "agentpool", "node.kubernetes.io/pool", "pool"});

// Taints that come and go with a node's state.
bool IsTransient(const placement::Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") || taint.key.starts_with("node.cloudprovider.kubernetes.io/") ||
         taint.key == "ToBeDeletedByClusterAutoscaler" || taint.key == "DeletionCandidateOfClusterAutoscaler" ||
         taint.key == "karpenter.sh/disrupted" || taint.key == "karpenter.sh/unregistered";
}

bool IsTypeLabel(std::string_view key) {
  return std::ranges::any_of(kTypePrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); });
}

// A label that repeats the zone under another name, as CSI drivers add it.
bool IsZoneLabel(std::string_view key, std::string_view value, const DumpNode& node) {
  return !node.zone.empty() && value == node.zone && key.starts_with("topology.");
}

// Whether the label names a pool: one of the known ones, or any whose last word says so, such as example.com/pool.
bool NamesPool(std::string_view key) {
  return std::ranges::find(kPoolNames, key) != kPoolNames.end() || key.ends_with("/pool") ||
         key.ends_with("/nodepool") || key.ends_with("/node-pool");
}

bool IsLasting(std::string_view key, std::string_view value, const DumpNode& node) {
  if (std::ranges::find(kOwnLabels, key) != kOwnLabels.end()) return false;
  if (std::ranges::find(kCapacityTypeLabels, key) != std::end(kCapacityTypeLabels)) return false;
  if (std::ranges::any_of(kAliases, [&](const auto& alias) { return alias.first == key; })) return false;
  return !IsTypeLabel(key) && !IsZoneLabel(key, value, node) && value != node.node.id;
}

planner::Pool PoolOf(const DumpNode& node, const LabelKeys& read) {
  planner::Pool pool;
  model::TextMap::Map labels;
  for (const auto& [key, value] : node.node.labels) {
    if (IsLasting(key, value, node) && (read.contains(key) || NamesPool(key))) labels.emplace(key, value);
  }
  pool.labels = std::move(labels);
  for (const placement::Taint& taint : node.node.taints) {
    if (!IsTransient(taint)) pool.taints.push_back(taint);
  }
  std::ranges::sort(pool.taints);
  pool.name.clear();
  for (const std::string_view key : kPoolNames) {
    const auto at = pool.labels.find(std::string(key));
    if (at == pool.labels.end()) continue;
    pool.name = at->second;
    break;
  }
  if (!pool.name.empty()) return pool;
  for (const auto& [key, value] : pool.labels) {
    if (NamesPool(key)) pool.name = value;
  }
  return pool;
}

// The text of a pool's labels and taints, to find the same one again.
std::string Signature(const planner::Pool& pool) {
  std::string text;
  for (const auto& [key, value] : pool.labels) text += fmt::format("{}={}\n", key, value);
  for (const placement::Taint& taint : pool.taints) {
    text += fmt::format("{}={}:{}\n", taint.key, taint.value, placement::TaintEffectName(taint.effect));
  }
  return text;
}

void KeepLargest(const std::vector<int64_t>& nodes, Pools& found) {
  if (found.pools.size() <= kMostPools) return;
  std::vector<size_t> order(found.pools.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return nodes[i]; });
  found.left_out = static_cast<int64_t>(order.size() - kMostPools);
  order.resize(kMostPools);
  std::vector<planner::Pool> kept;
  for (const size_t i : order) kept.push_back(std::move(found.pools[i]));
  found.pools = std::move(kept);
}

// What nodes of the dump say of types, zones and pools.
class Seen {
 public:
  Seen(const Dump& dump, const Pools& pools) : dump_(dump) {
    for (const DumpNode& node : dump.nodes) Add(node, pools);
    AddStatic(pools);
  }

  const model::Resources* AmountsOf(const Candidate& candidate) const {
    const auto exact = amounts_.find({candidate.pool, candidate.type});
    if (exact != amounts_.end()) return &exact->second;
    const auto any = amounts_.find({"", candidate.type});
    return any == amounts_.end() ? nullptr : &any->second;
  }
  const std::set<std::string>& zones() const { return zones_; }
  // How many volumes of each driver the least of the nodes attaches.
  const std::map<std::string, int64_t>& attachable() const { return attachable_; }

  void AddLabels(Candidate& candidate) const {
    model::TextMap::Map labels = candidate.labels;
    const auto merge = [&](const std::map<std::string, model::TextMap::Map>& from, const std::string& name) {
      const auto at = from.find(name);
      if (at != from.end()) labels.insert(at->second.begin(), at->second.end());
    };
    merge(zone_labels_, candidate.zone);
    merge(type_labels_, candidate.type);
    for (const auto& [alias, key] : kAliases) {
      const auto at = labels.find(std::string(key));
      if (keys_.contains(std::string(alias)) && at != labels.end()) labels.emplace(alias, at->second);
    }
    AddTerms(candidate.capacity == model::CapacityType::kSpot, labels);
    candidate.labels = std::move(labels);
  }

  // What DaemonSets and static pods take of a new node.
  model::Resources Overhead(const Candidate& candidate) const {
    const placement::Node node{.id = "new", .labels = candidate.labels, .taints = candidate.taints};
    model::Resources sum;
    for (const DumpDaemonSet& daemon : dump_.daemon_sets) {
      const bool runs =
          placement::MatchesLabels(daemon.kind, node) && placement::UntoleratedTaint(daemon.kind, node) == nullptr;
      if (runs) AddTo(sum, daemon.kind.request);
    }
    if (const auto at = static_pods_.find(candidate.pool); at != static_pods_.end()) AddTo(sum, at->second);
    return sum;
  }

 private:
  static void AddTo(model::Resources& sum, const model::Resources& more) {
    // A sum beyond all numbers leaves nothing of a node; so does the largest that fits.
    if (const auto added = model::Add(sum, more)) sum = *added;
  }

  void Add(const DumpNode& node, const Pools& pools) {
    const auto pool = pools.of_node.find(node.node.id);
    if (pool == pools.of_node.end()) return;
    if (!node.zone.empty()) zones_.insert(node.zone);
    model::TextMap::Map& zone = zone_labels_[node.zone];
    model::TextMap::Map& type = type_labels_[node.type];
    for (const auto& [key, value] : node.node.labels) {
      keys_.insert(key);
      const bool is_region = key.ends_with("/region");
      if (is_region || IsZoneLabel(key, value, node)) zone.emplace(key, value);
      if (IsTypeLabel(key)) type.emplace(key, value);
    }
    zone.erase(std::string(model::kZoneKey));
    for (const auto& [name, amount] : node.node.total.entries()) {
      if (!name.starts_with("attachable-volumes-")) continue;
      const auto [at, is_new] = attachable_.emplace(name, amount);
      if (!is_new) at->second = std::min(at->second, amount);
    }
    // A node that has not reported yet says nothing about its type.
    if (node.node.total.Get("cpu") == 0 || node.node.total.Get("memory") == 0) return;
    for (const std::string& name : {pool->second, std::string()}) {
      const auto [at, is_new] = amounts_.emplace(std::pair(name, node.type), node.node.total);
      if (!is_new) at->second = Smaller(at->second, node.node.total);
    }
  }

  static model::Resources Smaller(const model::Resources& a, const model::Resources& b) {
    model::Resources smaller;
    for (const auto& [name, amount] : a.entries()) smaller.Set(name, std::min(amount, b.Get(name)));
    return smaller;
  }

  void AddStatic(const Pools& pools) {
    std::map<std::string, model::Resources> by_node;
    for (const DumpPod& pod : dump_.pods) {
      if (pod.is_static && !pod.terminating) AddTo(by_node[pod.node], dump_.kinds[pod.unit.kind.value()].request);
    }
    for (const auto& [node, sum] : by_node) {
      const auto pool = pools.of_node.find(node);
      if (pool != pools.of_node.end()) static_pods_[pool->second] = model::Max(static_pods_[pool->second], sum);
    }
  }

  void AddTerms(bool spot, model::TextMap::Map& labels) const {
    const auto set = [&](std::string_view key, std::string_view value) {
      if (keys_.contains(std::string(key)) && !value.empty()) labels[std::string(key)] = value;
    };
    set("karpenter.sh/capacity-type", spot ? "spot" : "on-demand");
    set("eks.amazonaws.com/capacityType", spot ? "SPOT" : "ON_DEMAND");
    set("cloud.google.com/gke-spot", spot ? "true" : "");
    set("kubernetes.azure.com/scalesetpriority", spot ? "spot" : "");
  }

  const Dump& dump_;
  std::set<std::string> zones_;
  std::set<std::string> keys_;  // every label of any node
  std::map<std::string, model::TextMap::Map> zone_labels_;
  std::map<std::string, model::TextMap::Map> type_labels_;
  std::map<std::pair<std::string, std::string>, model::Resources> amounts_;  // by pool and type; "" is any pool
  std::map<std::string, int64_t> attachable_;
  std::map<std::string, model::Resources> static_pods_;  // by pool, the most of one node
};

// Offers without a zone are made in every zone of the dump.
planner::Catalogue WithZones(planner::Catalogue catalogue, const std::set<std::string>& zones) {
  for (planner::MachineType& type : catalogue.types) {
    std::vector<planner::Offer> offers;
    for (planner::Offer& offer : type.offers) {
      if (!offer.zone.empty() || zones.empty()) {
        offers.push_back(std::move(offer));
        continue;
      }
      for (const std::string& zone : zones) {
        offers.push_back(offer);
        offers.back().zone = zone;
      }
    }
    type.offers = std::move(offers);
  }
  return catalogue;
}

}  // namespace

void AddLabelsRead(const placement::Kind& kind, LabelKeys& keys) {
  for (const model::Requirement& requirement : kind.requirements) keys.insert(requirement.key);
  for (const placement::NodeTerm& term : kind.node_terms) {
    for (const model::Requirement& requirement : term.labels) keys.insert(requirement.key);
  }
  for (const placement::SpreadConstraint& spread : kind.spread) {
    if (spread.when == model::WhenUnsatisfiable::kDoNotSchedule) keys.insert(spread.topology_key);
  }
  for (const placement::UnitTerm& term : kind.colocate) keys.insert(term.topology_key);
  for (const placement::UnitTerm& term : kind.exclude) keys.insert(term.topology_key);
}

LabelKeys LabelsRead(const Dump& dump) {
  LabelKeys keys;
  for (const placement::Kind& kind : dump.kinds) AddLabelsRead(kind, keys);
  for (const DumpDaemonSet& daemon : dump.daemon_sets) AddLabelsRead(daemon.kind, keys);
  return keys;
}

Pools FindPools(const Dump& dump, const LabelKeys& read) {
  Pools found;
  std::vector<int64_t> nodes;  // by pool
  std::map<std::string, size_t> by_signature;
  std::map<std::string, int> names;
  for (const DumpNode& node : dump.nodes) {
    if (node.control_plane) continue;
    planner::Pool pool = PoolOf(node, read);
    const auto [at, is_new] = by_signature.emplace(Signature(pool), found.pools.size());
    if (is_new) {
      if (pool.name.empty()) pool.name = "pool";
      const int count = ++names[pool.name];
      if (count > 1) pool.name = fmt::format("{}-{}", pool.name, count);
      found.pools.push_back(std::move(pool));
      nodes.push_back(0);
    }
    ++nodes[at->second];
    found.of_node[node.node.id] = found.pools[at->second].name;
  }
  if (found.pools.empty()) found.pools.emplace_back();
  KeepLargest(nodes, found);
  std::ranges::sort(found.pools, {}, &planner::Pool::name);
  return found;
}

std::vector<Candidate> CandidatesFor(const Dump& dump, const Pools& pools, const planner::Catalogue& catalogue) {
  const Seen seen(dump, pools);
  std::vector<Candidate> candidates = planner::MakeCandidates(WithZones(catalogue, seen.zones()), pools.pools);
  for (Candidate& candidate : candidates) {
    if (const model::Resources* amounts = seen.AmountsOf(candidate)) candidate.allocatable = *amounts;
    for (const auto& [name, amount] : seen.attachable()) {
      if (candidate.allocatable.Get(name) == 0) candidate.allocatable.Set(name, amount);
    }
    if (candidate.allocatable.Get(planner::kPodsResource) == 0) {
      candidate.allocatable.Set(planner::kPodsResource, kDefaultSlots * 1000);
    }
    seen.AddLabels(candidate);
    candidate.allocatable = model::SubtractSaturating(candidate.allocatable, seen.Overhead(candidate));
    candidate.devices = DevicesOf(candidate.allocatable);
    DropGpus(candidate.allocatable);
  }
  std::erase_if(candidates, [](const Candidate& candidate) {
    return candidate.allocatable.Get("cpu") == 0 || candidate.allocatable.Get("memory") == 0;
  });
  return candidates;
}

std::optional<model::Money> PriceOf(const DumpNode& node, const planner::Catalogue& catalogue) {
  const auto type = std::ranges::find(catalogue.types, node.type, &planner::MachineType::name);
  if (type == catalogue.types.end()) return std::nullopt;
  for (const planner::Offer& offer : type->offers) {
    if (offer.capacity == node.capacity && (offer.zone.empty() || offer.zone == node.zone)) return offer.price;
  }
  return std::nullopt;
}

}  // namespace muster::kube
