// What placement reads and writes, as plain values: units to place, nodes to place them on, and what became of them.
//
//   reference::Place(world, units, policy) -> one Outcome for each unit     plain loops, the meaning of
//   docs/placement.md fast::Placer                                                            the same answers over
//   indexes
//
// A unit is one thing to place: a pod, a replica of a set, a job. Units that agree in everything but their name and age
// share a Kind; World::kinds holds every kind once (KindTable makes it) and units name it by its index. A burst of
// 10,000 replicas is one kind and 10,000 units.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/index.h"
#include "base/status.h"
#include "model/node.h"
#include "model/resources.h"
#include "model/text_map.h"
#include "placement/kind.h"
#include "placement/reason.h"

namespace muster::placement {

using KindIndex = Index<struct KindTag>;  // into World::kinds

struct Unit {
  std::string id;  // unique among all units of a world, "namespace/name" for pods
  KindIndex kind;
  int64_t order = 0;  // age: the lower is served first

  bool operator==(const Unit&) const = default;
  MUSTER_FIELDS(Unit, id, kind, order)
};

// A unit that has a node.
struct PlacedUnit {
  Unit unit;
  std::string node;
  std::vector<int32_t> devices;  // positions in Node::devices; empty: placement assigns them when it learns of the unit
  bool terminating = false;      // it holds its room and excludes, but no spread counts it and it cannot be evicted
  std::vector<std::string> budgets;  // ids in World::budgets; all must allow its eviction
  bool may_evict = true;             // false: never a victim

  bool operator==(const PlacedUnit&) const = default;
  MUSTER_FIELDS(PlacedUnit, unit, node, devices, terminating, budgets, may_evict)
};

// --- Nodes.

struct Node {
  std::string id;
  bool ready = true;  // status Ready or Active
  bool fresh = true;  // its last heartbeat is recent enough
  bool cordoned = false;
  model::TextMap labels;
  std::vector<Taint> taints;
  std::vector<model::WorkloadType> supported_types;  // empty: every type but vm
  model::Resources total;                            // allocatable
  model::Resources reserved;  // taken besides the placed units' requests: daemons, what the world does not list
  model::Resources used;      // last reported; read by the score, never by fit
  std::vector<std::string> unlimited;  // resources the node does not limit, such as disk where it reports none
  std::vector<int32_t> devices;        // thousandths of each device that units may take: 1000 for a whole one

  bool operator==(const Node&) const = default;
  MUSTER_FIELDS(Node, id, ready, fresh, cordoned, labels, taints, supported_types, total, reserved, used, unlimited,
                devices)
};

// How many more units of a group may be evicted: what minAvailable or a PodDisruptionBudget leaves.
struct Budget {
  std::string id;
  int64_t allowed = 0;

  bool operator==(const Budget&) const = default;
  MUSTER_FIELDS(Budget, id, allowed)
};

struct World {
  std::vector<Kind> kinds;
  std::vector<Node> nodes;                           // ids unique
  std::vector<PlacedUnit> placed;                    // ids unique, on nodes of this world
  std::map<std::string, model::TextMap> namespaces;  // labels by name; one not listed has none
  std::vector<Budget> budgets;                       // ids unique; a unit's budget not listed allows no eviction
  std::map<std::string, model::Resources> quotas;    // limit by tenant; kUnitsQuota limits how many units it has

  bool operator==(const World&) const = default;
  MUSTER_FIELDS(World, kinds, nodes, placed, namespaces, budgets, quotas)
};
inline constexpr std::string_view kUnitsQuota = "workloads";

// --- Answers.

enum class Strategy : uint8_t { kSpread, kPack };
std::string_view StrategyName(Strategy strategy);  // "spread", "pack"
Result<Strategy> ParseStrategy(std::string_view name);

// A shape of device request and how often it comes: what the device score expects of the future.
struct DeviceShape {
  model::Resources request;
  DeviceRequest devices;
  int64_t weight = 1;

  bool operator==(const DeviceShape&) const = default;
  MUSTER_FIELDS(DeviceShape, request, devices, weight)
};

struct Policy {
  Strategy strategy = Strategy::kSpread;
  bool preempt = false;                 // whether a unit that no node fits may evict units of lower priority
  std::vector<DeviceShape> device_mix;  // empty: the device score looks at the request alone

  bool operator==(const Policy&) const = default;
  MUSTER_FIELDS(Policy, strategy, preempt, device_mix)
};

// How many nodes a filter was the first to refuse.
struct RefusalCount {
  Reason reason = Reason::kNone;
  int64_t nodes = 0;

  bool operator==(const RefusalCount&) const = default;
  MUSTER_FIELDS(RefusalCount, reason, nodes)
};

// What became of one unit of a batch.
struct Outcome {
  std::string unit;
  std::string node;                    // empty: none
  std::vector<int32_t> devices;        // of the node, ascending
  Reason reason = Reason::kNone;       // kPlaced, kPlacedByPreemption, kNoNodeFits or kQuota
  std::vector<std::string> victims;    // units to evict first, by id; they leave the world as the batch goes on
  std::vector<RefusalCount> refusals;  // of a unit without a node, in the order of the filters

  bool operator==(const Outcome&) const = default;
  MUSTER_FIELDS(Outcome, unit, node, devices, reason, victims, refusals)
};

// Whether one node could take a unit now.
struct NodeVerdict {
  std::string node;
  Reason reason = Reason::kNone;  // the first filter that refuses; kNone: it fits
  std::string detail;             // the figures: "memory short by 2Gi"; empty if it fits

  bool operator==(const NodeVerdict&) const = default;
  MUSTER_FIELDS(NodeVerdict, node, reason, detail)
};

// Units, nodes, devices and victims of a list of outcomes in one number.
uint64_t Digest(const std::vector<Outcome>& outcomes);

// Gives equal kinds one index. Thread-safety: none.
class KindTable {
 public:
  // Goes on from kinds that are numbered already.
  explicit KindTable(std::vector<Kind> kinds = {});
  KindIndex Add(const Kind& kind);
  const std::vector<Kind>& kinds() const { return kinds_; }
  std::vector<Kind> Take() { return std::move(kinds_); }

 private:
  std::vector<Kind> kinds_;
  std::map<std::string, KindIndex> index_of_;  // by the kind's encoding
};

// What is wrong with a world or a batch: an id that is empty or there twice, a placed unit on an unknown node, a kind
// out of range, a device request of both forms, a selector or requirement that is not valid. INVALID_ARGUMENT naming
// it.
Status CheckStructure(const World& world);
Status CheckStructure(const Kind& kind);

}  // namespace muster::placement
