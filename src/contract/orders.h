// What operators may order a running shard to do, as plain values. Every order says who gives it and why; the shard
// writes that into its audit log, with the time, and remembers the last order of each cluster over restarts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/time.h"

namespace muster::contract {

// The last two fields of every order: `reason` is the operator's own words. `who` is not on the wire: the service that
// takes the order fills it with the identity of the caller's certificate, or, where there is no TLS, with "local" or
// the caller's address.

// Numbers are the wire's. Decisions are made in every mode; only kActive carries them out.
enum class ActuationMode : uint8_t { kUnspecified = 0, kActive = 1, kDryRun = 2, kPaused = 3 };
constexpr std::string_view ActuationModeName(ActuationMode mode) {
  constexpr std::string_view kNames[] = {"unspecified", "active", "dry-run", "paused"};
  return kNames[static_cast<size_t>(mode) % 4];
}

// No cluster: the whole shard. Sticks over restarts.
struct SetActuation {
  std::string cluster_id;
  ActuationMode mode = ActuationMode::kUnspecified;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(SetActuation, cluster_id, mode, reason, who)
};

// Gives a Failed machine back and gets it again, without waiting for the policy.
struct RepairMachine {
  std::string machine_id;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(RepairMachine, machine_id, reason, who)
};

// Drops a Failed machine from the inventory until the provider reports another state of it.
struct ForgetMachine {
  std::string machine_id;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(ForgetMachine, machine_id, reason, who)
};

// Takes a forgotten machine into the inventory again.
struct RecallMachine {
  std::string machine_id;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(RecallMachine, machine_id, reason, who)
};

// Machines that vanished from the provider's lists, or turned Failed, in such numbers that the shard waits for a
// person: they are lost indeed, and are replaced and repaired without the limits on that. No cluster: all of them.
struct AcceptLosses {
  std::string cluster_id;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(AcceptLosses, cluster_id, reason, who)
};

// The cluster is gone: its demand ends, and its machines are reclaimed within the rails.
struct DecommissionCluster {
  std::string cluster_id;
  std::string reason;
  std::string who;

  MUSTER_FIELDS(DecommissionCluster, cluster_id, reason, who)
};

// --- answers

struct ActuationSet {
  ActuationMode previous = ActuationMode::kUnspecified;

  MUSTER_FIELDS(ActuationSet, previous)
};

struct LossesAccepted {
  int32_t missing = 0;  // machines given up
  int32_t failed = 0;   // machines that may be repaired

  MUSTER_FIELDS(LossesAccepted, missing, failed)
};

// The order was taken, and there is nothing more to say.
struct OrderTaken {
  MUSTER_FIELDS(OrderTaken)
};

// An order that was taken. The value of a durable row of the shard (order_log.h): it cannot gain a field.
struct OrderView {
  std::string kind;        // pause, dry-run, resume, repair, forget, recall, accept or decommission
  std::string cluster_id;  // empty: it is about the whole shard, or a machine that serves no cluster
  std::string machine_id;
  std::string who;
  std::string reason;
  WallTime at;

  bool operator==(const OrderView&) const = default;
  MUSTER_FIELDS(OrderView, kind, cluster_id, machine_id, who, reason, at)
};

}  // namespace muster::contract
