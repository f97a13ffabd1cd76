// What a provider's core and the machinery behind it say to each other. The core keeps the contract with the shards; a
// backend only makes machines, turns them into nodes, empties them and gives them back.
//
// An operation is one Call of the core (effects.h) and ends once: with the reply, with an error (the machine is Failed,
// with the message as its last_error), or by its deadline. It is named by its id: after a crash the core asks again for
// what it had under way, and a backend that knows the id does nothing twice and answers the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/fields.h"
#include "base/time.h"
#include "contract/provider.h"
#include "model/machine.h"
#include "model/money.h"

namespace muster::contract {

enum class OperationKind : uint8_t { kCreate = 0, kConfigure = 1, kDrain = 2, kDelete = 3 };
constexpr std::string_view OperationName(OperationKind kind) {
  constexpr std::string_view kNames[] = {"Create", "Configure", "Drain", "Delete"};
  return kNames[static_cast<size_t>(kind) % 4];
}

struct Operation {
  std::string id;
  OperationKind kind = OperationKind::kCreate;
  MachineRecord machine;       // as it stands, in its transitional state
  std::string bootstrap_blob;  // Configure
  Duration grace{};            // Drain: it ends by then

  MUSTER_FIELDS(Operation, id, kind, machine, bootstrap_blob, grace)
};

struct OperationDone {
  model::HostRef host;  // Create: the hardware that came to be; its ref is never used again

  MUSTER_FIELDS(OperationDone, host)
};

// One machine a backend has or could have, as it is before anybody touched it.
struct Slot {
  model::Machine machine;
  bool deletable = true;  // Delete gives it back; what is owned cannot be

  MUSTER_FIELDS(Slot, machine, deletable)
};

// Machines of one type, zone and capacity type share a price and a rate of interruption.
struct MarketMoved {
  std::string instance_type;
  std::string zone;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;
  model::Money price_per_hour;
  model::Probability interruption_probability;

  MUSTER_FIELDS(MarketMoved, instance_type, zone, capacity_type, price_per_hour, interruption_probability)
};

// Hardware will be taken away soon.
struct InterruptionNoticed {
  std::string machine_id;
  std::string host_ref;

  MUSTER_FIELDS(InterruptionNoticed, machine_id, host_ref)
};

// Hardware is gone though nobody asked for it.
struct MachineLost {
  std::string machine_id;
  std::string host_ref;
  std::string reason;

  MUSTER_FIELDS(MachineLost, machine_id, host_ref, reason)
};

using Observation = std::variant<MarketMoved, InterruptionNoticed, MachineLost>;

}  // namespace muster::contract
