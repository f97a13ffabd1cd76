#include "core/shard/operation.h"

#include <fmt/format.h>

#include <charconv>

#include "base/check.h"
#include "engine/bind_stamp.h"
#include "model/penalty.h"

namespace muster::shard {
namespace {

using model::MachineState;

// "<epoch>/<shard id>"
constexpr std::string_view kBoundBy = "muster.v1/bound-by";

}  // namespace

std::string_view OperationKindName(OperationKind kind) {
  switch (kind) {
    case OperationKind::kBootstrap: return "Bootstrap";
    case OperationKind::kProvision: return "Provision";
    case OperationKind::kPreempt: return "Preempt";
    case OperationKind::kReclaim: return "Reclaim";
    case OperationKind::kDelete: return "Delete";
    case OperationKind::kRepair: return "Repair";
    case OperationKind::kRecreate: return "Recreate";
  }
  return "?";
}

OperationKind OperationKindOf(engine::ActionKind kind) {
  switch (kind) {
    case engine::ActionKind::kBootstrap: return OperationKind::kBootstrap;
    case engine::ActionKind::kProvision: return OperationKind::kProvision;
    case engine::ActionKind::kPreempt: return OperationKind::kPreempt;
    case engine::ActionKind::kReclaim: return OperationKind::kReclaim;
    case engine::ActionKind::kDelete: break;
  }
  return OperationKind::kDelete;
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPending: return "pending";
    case Outcome::kSuccess: return "success";
    case Outcome::kSuppressed: return "suppressed";
    case Outcome::kDryRun: return "dryrun";
    case Outcome::kStaleState: return "stale_state";
    case Outcome::kInventoryMiss: return "inventory_miss";
    case Outcome::kNoSession: return "no_session";
    case Outcome::kBlobTimeout: return "blob_timeout";
    case Outcome::kBlobError: return "blob_error";
    case Outcome::kFenced: return "fenced";
    case Outcome::kUnimplemented: return "unimplemented";
    case Outcome::kProviderError: return "provider_error";
    case Outcome::kOnHold: return "on_hold";
    case Outcome::kFailed: return "failed";
    case Outcome::kCeiling: return "ceiling";
  }
  return "?";
}

MachineState StartOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kBootstrap:
    case OperationKind::kDelete: return MachineState::kIdle;
    case OperationKind::kProvision:
    case OperationKind::kRecreate: return MachineState::kSpeculative;
    case OperationKind::kPreempt:
    case OperationKind::kReclaim: return MachineState::kConfigured;
    case OperationKind::kRepair: break;
  }
  return MachineState::kFailed;
}

MachineState DuringOf(OperationKind kind) {
  switch (kind) {
    case OperationKind::kBootstrap: return MachineState::kConfiguring;
    case OperationKind::kProvision:
    case OperationKind::kRecreate: return MachineState::kCreating;
    case OperationKind::kPreempt:
    case OperationKind::kReclaim: return MachineState::kDraining;
    case OperationKind::kDelete:
    case OperationKind::kRepair: break;
  }
  return MachineState::kDeleting;
}

std::map<std::string, std::string> StampOf(const Operation& operation, const std::string& shard, int64_t epoch) {
  MUSTER_CHECK(operation.need && operation.profile, "a binding without a need");
  std::map<std::string, std::string> stamp = engine::BindStampOf(*operation.need, *operation.profile);
  stamp.emplace(kBoundBy, fmt::format("{}/{}", epoch, shard));
  return stamp;
}

std::optional<Binder> BoundBy(const model::Machine& machine) {
  const auto by = machine.shard_metadata.find(std::string(kBoundBy));
  if (by == machine.shard_metadata.end()) return std::nullopt;
  const std::string& text = by->second;
  Binder binder;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), binder.epoch);
  const auto used = static_cast<size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != '/') return std::nullopt;
  binder.shard = text.substr(used + 1);
  return binder;
}

const std::string& BeneficiaryOf(const Operation& operation) {
  return operation.need ? operation.need->cluster : operation.cluster;
}
const std::string& BeneficiaryOf(const engine::Action& action) {
  return action.need ? action.need->cluster : action.cluster;
}

contract::ActionView ViewOf(const std::string& machine, const Operation& operation) {
  return {.cycle = operation.cycle,
          .decided = operation.decided.wall,
          .kind = std::string(OperationKindName(operation.kind)),
          .machine_id = machine,
          .cluster_id = operation.cluster,
          .need_fingerprint = operation.need ? operation.need->fingerprint : "",
          .need_group = operation.need ? operation.need->group : "",
          .reason = operation.reason,
          .grace_seconds = operation.grace_seconds,
          .outcome = std::string(OutcomeName(Outcome::kPending))};
}

contract::ActionView ViewOf(const engine::Action& action, int64_t cycle, WallTime decided, Outcome outcome) {
  return {.cycle = cycle,
          .decided = decided,
          .kind = std::string(engine::ActionKindName(action.kind)),
          .machine_id = action.machine,
          .cluster_id = action.cluster,
          .need_fingerprint = action.need ? action.need->fingerprint : "",
          .need_group = action.need ? action.need->group : "",
          .reason = action.reason,
          .grace_seconds = action.grace.count(),
          .outcome = std::string(OutcomeName(outcome))};
}

}  // namespace muster::shard
