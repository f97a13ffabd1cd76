// Kind: everything about a unit of work but its name and age, as placement reads it.
//
// The words are those of Kubernetes where it has them, and so is the meaning: docs/placement.md names each rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "model/node.h"
#include "model/requirement.h"
#include "model/resources.h"
#include "model/text_map.h"

namespace muster::placement {

// --- What a unit asks of nodes.

struct HostPort {
  std::string protocol = "TCP";
  std::string ip;  // empty and "0.0.0.0" are every address of the node and conflict with all
  int32_t port = 0;

  auto operator<=>(const HostPort&) const = default;
  MUSTER_FIELDS(HostPort, protocol, ip, port)
};

// Devices of the node (Node::devices): `whole` free ones, or `milli` thousandths of a single one. At most one is set.
struct DeviceRequest {
  int32_t whole = 0;
  int32_t milli = 0;

  bool empty() const { return whole == 0 && milli == 0; }
  auto operator<=>(const DeviceRequest&) const = default;
  MUSTER_FIELDS(DeviceRequest, whole, milli)
};

// All of `labels` and all of `fields` hold. A field is tested like a label; the one field there is, is metadata.name,
// the node's id. A term without either matches no node.
inline constexpr std::string_view kNodeNameField = "metadata.name";
struct NodeTerm {
  std::vector<model::Requirement> labels;
  std::vector<model::Requirement> fields;

  auto operator<=>(const NodeTerm&) const = default;
  MUSTER_FIELDS(NodeTerm, labels, fields)
};

struct PreferredNodeTerm {
  int32_t weight = 1;
  NodeTerm term;

  auto operator<=>(const PreferredNodeTerm&) const = default;
  MUSTER_FIELDS(PreferredNodeTerm, weight, term)
};

enum class TaintEffect : uint8_t { kNoSchedule, kPreferNoSchedule, kNoExecute };
std::string_view TaintEffectName(TaintEffect effect);  // "NoSchedule", ...
Result<TaintEffect> ParseTaintEffect(std::string_view name);

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;

  auto operator<=>(const Taint&) const = default;
  MUSTER_FIELDS(Taint, key, value, effect)
};

// `exists`: any value of the key is tolerated, and of every key if `key` is empty. Otherwise the value must be equal.
struct Toleration {
  std::string key;
  bool exists = false;
  std::string value;
  bool every_effect = true;
  TaintEffect effect = TaintEffect::kNoSchedule;  // read unless every_effect

  auto operator<=>(const Toleration&) const = default;
  MUSTER_FIELDS(Toleration, key, exists, value, every_effect, effect)
};

// --- What a unit asks of the units around it.

// A test of units' labels. One that is not given matches no unit; a given one without requirements matches every unit.
struct Selector {
  bool given = false;
  std::vector<model::Requirement> all;

  auto operator<=>(const Selector&) const = default;
  MUSTER_FIELDS(Selector, given, all)
};

// Whether nodes that the unit cannot use count as domains.
enum class NodeInclusion : uint8_t { kHonor, kIgnore };
std::string_view NodeInclusionName(NodeInclusion inclusion);  // "Honor", "Ignore"
Result<NodeInclusion> ParseNodeInclusion(std::string_view name);

// Units of the own namespace that match are spread over the values of a node label. An empty selector counts nothing.
struct SpreadConstraint {
  std::string topology_key;
  int32_t max_skew = 1;  // below 1 is read as 1
  model::WhenUnsatisfiable when = model::WhenUnsatisfiable::kDoNotSchedule;
  Selector selector;
  std::vector<std::string> match_label_keys;  // each adds "key In [the unit's value]" if the unit has the label
  int32_t min_domains = 1;                    // fewer eligible domains than this: the minimum counts as 0
  NodeInclusion node_affinity = NodeInclusion::kHonor;
  NodeInclusion node_taints = NodeInclusion::kIgnore;

  auto operator<=>(const SpreadConstraint&) const = default;
  MUSTER_FIELDS(SpreadConstraint, topology_key, max_skew, when, selector, match_label_keys, min_domains, node_affinity,
                node_taints)
};

// Units that match `selector` in any of the namespaces, on nodes with the same value of the topology key. The
// namespaces are those listed and those whose labels match `namespace_selector`; if neither is given, the unit's own.
struct UnitTerm {
  std::string topology_key;
  Selector selector;
  std::vector<std::string> namespaces;
  Selector namespace_selector;                   // given and without requirements: every namespace
  std::vector<std::string> match_label_keys;     // each adds "key In [the unit's value]" if the unit has the label
  std::vector<std::string> mismatch_label_keys;  // each adds "key NotIn [the unit's value]"

  auto operator<=>(const UnitTerm&) const = default;
  MUSTER_FIELDS(UnitTerm, topology_key, selector, namespaces, namespace_selector, match_label_keys, mismatch_label_keys)
};

struct PreferredUnitTerm {
  int32_t weight = 1;
  UnitTerm term;

  auto operator<=>(const PreferredUnitTerm&) const = default;
  MUSTER_FIELDS(PreferredUnitTerm, weight, term)
};

// Everything about a unit but its name and age.
struct Kind {
  std::string name_space = "default";
  std::string tenant;
  int32_t priority = 0;
  bool may_preempt = true;                                       // false: it waits rather than evict others
  model::WorkloadType type = model::WorkloadType::kUnspecified;  // unspecified runs on every node
  model::TextMap labels;
  model::Resources request;  // any names; slots and attach limits are resources like others
  DeviceRequest devices;
  std::vector<HostPort> ports;
  std::vector<model::Requirement> requirements;  // on the node's labels, all of them
  std::vector<NodeTerm> node_terms;              // and any of these, if there are some
  std::vector<PreferredNodeTerm> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<SpreadConstraint> spread;
  std::vector<UnitTerm> colocate;  // all of them; a unit counts if it matches every one
  std::vector<UnitTerm> exclude;   // none of them; placed units exclude newcomers too
  std::vector<PreferredUnitTerm> preferred_colocate;
  std::vector<PreferredUnitTerm> preferred_exclude;

  bool operator==(const Kind&) const = default;
  MUSTER_FIELDS(Kind, name_space, tenant, priority, may_preempt, type, labels, request, devices, ports, requirements,
                node_terms, preferred_nodes, tolerations, spread, colocate, exclude, preferred_colocate,
                preferred_exclude)
};

}  // namespace muster::placement
