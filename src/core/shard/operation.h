// Operation: one action on its way, from the decision to the provider's acknowledgement. An operation is a row that
// moves on with the answers of the cluster and the provider; its machine's end state is seen by reconcile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/time.h"
#include "contract/effects.h"
#include "contract/shard.h"
#include "engine/types.h"
#include "model/machine.h"
#include "model/profile.h"
#include "model/reason.h"

namespace muster::shard {

// Stored in journals: numbers stay.
enum class OperationKind : uint8_t {
  kBootstrap = 0,
  kProvision = 1,
  kPreempt = 2,
  kReclaim = 3,
  kDelete = 4,
  kRepair = 5,    // Delete of a Failed machine
  kRecreate = 6,  // Create of owned hardware that was repaired
};
std::string_view OperationKindName(OperationKind kind);  // "Bootstrap", ... "Repair", "Recreate"
OperationKind OperationKindOf(engine::ActionKind kind);
constexpr bool IsRepair(OperationKind kind) { return kind >= OperationKind::kRepair; }
// Whether the operation takes the machine from its cluster.
constexpr bool IsWithdrawal(OperationKind kind) {
  return kind == OperationKind::kPreempt || kind == OperationKind::kReclaim;
}

// What became of an action. The names are those of the audit log, the metrics and the wire.
enum class Outcome : uint8_t {
  kPending,        // under way
  kSuccess,        // the provider acknowledged the transition
  kSuppressed,     // the shard or the cluster is paused
  kDryRun,         // the shard or the cluster is in dry run
  kStaleState,     // the machine is no longer in the state where the operation starts
  kInventoryMiss,  // the machine is no longer tracked
  kNoSession,      // the cluster's session ended
  kBlobTimeout,    // the cluster did not send its blob in time
  kBlobError,      // the cluster refused the blob
  kFenced,         // a newer epoch of this shard is at work
  kUnimplemented,  // the provider does not know the transition
  kProviderError,  // the provider refused or did not answer
  kOnHold,         // calls like it failed meanwhile: it is left for later
  kFailed,         // after kSuccess: the transition ended in Failed
  kCeiling,        // the cluster may not have more
};
std::string_view OutcomeName(Outcome outcome);  // "pending", "success", "stale_state", ...

// Stored in journals: numbers stay.
enum class Stage : uint8_t {
  kAsking = 0,      // Bootstrap: the cluster is asked for its blob
  kInstructed = 1,  // Preempt, Reclaim: the cluster is told
  kQueued = 2,      // ready; waits for a free call to the provider
  kCalling = 3,     // the provider was called
};

struct Operation {
  OperationKind kind = OperationKind::kBootstrap;
  Stage stage = Stage::kQueued;
  std::string cluster;                    // that gets or loses the machine
  std::optional<engine::NeedKey> need;    // that the machine is for
  std::optional<model::Profile> profile;  // of that need
  model::Reason reason = model::Reason::kNone;
  int64_t grace_seconds = 0;
  int64_t cycle = 0;
  Now decided;
  std::string token;  // of the blob request or the instruction
  std::string blob;
  std::optional<MonoTime> blob_until;  // no longer valid then
  std::optional<MonoTime> deadline;    // of the stage
  contract::CallId call = 0;           // kCalling
  uint64_t line = 0;                   // its number in the action log

  MUSTER_FIELDS(Operation, kind, stage, cluster, need, profile, reason, grace_seconds, cycle, decided, token, blob,
                blob_until, deadline, call, line)
};

// The state an operation starts from, and the state of the machine while it is under way.
model::MachineState StartOf(OperationKind kind);
model::MachineState DuringOf(OperationKind kind);

// The metadata a machine is bound with: the need it serves, and the shard and epoch that bound it.
std::map<std::string, std::string> StampOf(const Operation& operation, const std::string& shard, int64_t epoch);
// The shard that bound the machine, and in which of its epochs; none if its metadata does not say.
struct Binder {
  std::string shard;
  int64_t epoch = 0;
};
std::optional<Binder> BoundBy(const model::Machine& machine);

// The operation as a line of the action log, pending.
contract::ActionView ViewOf(const std::string& machine, const Operation& operation);
// Whom the operation is for: the cluster of its need, or the one it takes the machine from; empty for repairs.
const std::string& BeneficiaryOf(const Operation& operation);
const std::string& BeneficiaryOf(const engine::Action& action);
// A decided action as a line of the action log.
contract::ActionView ViewOf(const engine::Action& action, int64_t cycle, WallTime decided, Outcome outcome);

}  // namespace muster::shard
