// Catalogue: the machine types that a plan may buy, with their prices.
//
// Plain values, filled by a reader (YAML, CSV, a dump) and read by the planner. Amounts are milli-units as
// model/resources.h has them, prices are micro-dollars per hour. Slots ("pods") are a resource like any other.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/resources.h"
#include "model/text_map.h"
#include "placement/kind.h"

namespace muster::planner {

// The resource that counts how many units a node may hold.
inline constexpr std::string_view kPodsResource = "pods";

// Where and under which terms a type is sold.
struct Offer {
  std::string zone;
  model::CapacityType capacity = model::CapacityType::kOnDemand;
  model::Money price;  // per hour
  model::Probability interruption;

  bool operator==(const Offer&) const = default;
  MUSTER_FIELDS(Offer, zone, capacity, price, interruption)
};

struct MachineType {
  std::string name;
  std::string arch = "amd64";
  std::string os = "linux";
  model::Resources capacity;     // what the hardware has, slots among it
  model::Resources reserved;     // what the system keeps for itself
  std::vector<int32_t> devices;  // thousandths of each device that units may take: 1000 for a whole one
  model::TextMap labels;         // besides those that every node has: type, arch, os, zone, capacity type
  std::vector<Offer> offers;

  // capacity - reserved.
  model::Resources Allocatable() const { return model::SubtractSaturating(capacity, reserved); }

  bool operator==(const MachineType&) const = default;
  MUSTER_FIELDS(MachineType, name, arch, os, capacity, reserved, devices, labels, offers)
};

struct Catalogue {
  std::string source;  // what a person calls it: a file name, "on-demand list prices, July 2026"
  std::vector<MachineType> types;

  bool operator==(const Catalogue&) const = default;
  MUSTER_FIELDS(Catalogue, source, types)
};

// Names given and unique, cpu and memory above zero after what is reserved, at least one offer, and no two offers of a
// type for the same zone and capacity type. INVALID_ARGUMENT naming the type and the field.
Status CheckStructure(const Catalogue& catalogue);

// Nodes that are made alike: what a machine is besides its type, zone and terms.
struct Pool {
  std::string name = "default";
  model::TextMap labels;
  std::vector<placement::Taint> taints;

  bool operator==(const Pool&) const = default;
};

// One thing that can be bought: a type in a zone on terms, made as a pool makes its nodes.
struct Candidate {
  std::string type;
  std::string zone;
  std::string pool;
  model::CapacityType capacity = model::CapacityType::kOnDemand;
  model::Money price;  // per hour
  model::Probability interruption;
  model::Resources allocatable;  // for units: after the system's share and every DaemonSet that would run on it
  model::TextMap labels;         // as the node would have them; the hostname is left out
  std::vector<placement::Taint> taints;
  std::vector<int32_t> devices;  // thousandths of each device that units may take

  bool operator==(const Candidate&) const = default;
};

// Every offer of every type in every pool, with the well-known labels of Kubernetes (instance type, arch, os, zone) and
// `muster.io/capacity-type`. `overhead` of a candidate is subtracted by the caller, who knows the DaemonSets. The order
// is that of the pools, types and offers. A pool's label wins over a type's.
std::vector<Candidate> MakeCandidates(const Catalogue& catalogue, const std::vector<Pool>& pools);

}  // namespace muster::planner
