// Machine: a slot that may become hardware, and the life it can lead.
//
//   Speculative -> Creating -> Idle -> Configuring -> Configured -> Draining -> Idle -> Deleting -> Speculative
//
// Every transitional state may also end in Failed; Configuring may roll back to Idle before the provider was touched;
// Failed -> Deleting is our one addition, for repair. State numbers are the wire's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/status.h"
#include "model/money.h"
#include "model/penalty.h"
#include "model/resources.h"
#include "model/text_map.h"

namespace muster::model {

enum class MachineState : uint8_t {
  kUnspecified = 0,
  kSpeculative = 1,
  kCreating = 2,
  kIdle = 3,
  kConfiguring = 4,
  kConfigured = 5,
  kDraining = 6,
  kDeleting = 7,
  kFailed = 8,
};
std::string_view StateName(MachineState state);  // "Speculative", ... "Unspecified"
// Every name but "Unspecified".
Result<MachineState> ParseState(std::string_view name);

// The 13 legal edges and Failed -> Deleting. A state to itself is not an edge.
bool IsLegalEdge(MachineState from, MachineState to);
// Speculative, Idle, Configured: only these may be claimed or be where an action starts.
bool IsStable(MachineState state);

enum class CapacityType : uint8_t { kUnspecified = 0, kBareMetal = 1, kReserved = 2, kOnDemand = 3, kSpot = 4 };
std::string_view CapacityTypeName(CapacityType type);  // "bare-metal", "reserved", "on-demand", "spot", "unspecified"
Result<CapacityType> ParseCapacityType(std::string_view name);

struct HostRef {
  std::string provider;
  std::string ref;

  bool empty() const { return provider.empty() && ref.empty(); }
  bool operator==(const HostRef&) const = default;
  MUSTER_FIELDS(HostRef, provider, ref)
};

// Which need a machine was last claimed for: what makes it that need's own, and what a victim is worth.
struct Attribution {
  std::string fingerprint;
  std::string group;
  int32_t priority = 0;
  Penalty interruption;
  Penalty reclamation;

  bool operator==(const Attribution&) const = default;
  MUSTER_FIELDS(Attribution, fingerprint, group, priority, interruption, reclamation)
};

struct Machine {  // in durable rows of shard and provider: it cannot gain a field
  std::string id;
  MachineState state = MachineState::kUnspecified;
  HostRef host;
  std::string instance_type;
  std::string zone;
  CapacityType capacity_type = CapacityType::kUnspecified;
  Money price_per_hour;
  Probability interruption_probability;
  Resources resources;
  std::optional<Resources> allocatable;
  TextMap labels;
  std::string cluster;
  TextMap shard_metadata;
  std::string last_error;

  // What the machine offers to workloads: `allocatable` if given, else `resources`.
  const Resources& EffectiveAllocatable() const { return allocatable ? *allocatable : resources; }
  // Value of an attribute for matching: instance type, zone or a label; nothing if the machine lacks it. An empty
  // instance type or zone counts as lacking.
  std::optional<std::string_view> Attribute(std::string_view key) const;

  bool operator==(const Machine&) const = default;
  MUSTER_FIELDS(Machine, id, state, host, instance_type, zone, capacity_type, price_per_hour, interruption_probability,
                resources, allocatable, labels, cluster, shard_metadata, last_error)
};

// The structural invariants of one record. INVALID_ARGUMENT naming the machine and the field when one is broken:
// (1) id and state are given; (2) Speculative and Creating have neither host nor cluster, Idle and Deleting a host
// only, Configured and Draining both, Configuring a host and perhaps a cluster; (3) no cluster without a host in any
// state; (4) Failed has last_error; (5) the price is not negative and the probability in [0, 1].
Status CheckStructure(const Machine& machine);
// The same without the machine's name, "host: a machine that is Idle must have one"; empty when all hold.
std::string StructureProblem(const Machine& machine);

}  // namespace muster::model
