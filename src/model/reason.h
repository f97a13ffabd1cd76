// Reasons: why a decision was made. One table feeds logs, metric labels, explanations, the audit log and the simulator.
//
// A reason has a number (order of this enum; journals hold it, so a new one goes to the end; never on the wire), a
// stable name that dashboards may rely on, and a sentence for people. Names begin with phaseN. for an action, short.
// for an unmet need, hold. for a machine left alone, repair. for what is done to a failed machine and note. for what a
// shard noticed. Adding a reason means adding a row in reason.cc; the compiler and a test see to it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster::model {

enum class Reason : uint8_t {
  kNone,
  // Actions.
  kAcquireIdle,
  kAcquireSpeculative,
  kPreempt,
  kPreemptSurplus,
  kReclaimForNeed,
  kReclaimSurplus,
  kReleaseIdle,
  // Why a need is short.
  kPriorityStarved,
  kNoMatchingSupply,
  kTopologyUnsatisfiable,
  kPreemptionExhausted,
  kNoSession,
  kDraining,
  // Why a machine is left as it is.
  kClaimed,
  kTransitional,
  kFailed,
  kSurplusHold,
  kGateShut,
  kClusterWithoutSession,
  kReclaimLimit,
  kReleaseHold,
  kNeverReleased,
  kPledged,
  kUnneeded,
  // Actions that no decision asked for.
  kRepair,
  kRepairByHand,
  // What a shard noticed.
  kAdopted,
  kVanished,
  kNotOwned,
  kForgotten,
  kOddEdge,
  kRecordRefused,
  kProviderSilent,
  kRollupHeld,
  kRollupRefused,
  kModeSet,
  // Later ones, of every kind above.
  kReclaimInstead,
  kOutOfStock,
  kClusterPaused,
  kClusterOnHold,
  kNoSuchResource,
  kReclaimsSpent,
  kOnHold,
  kOfPausedCluster,
  kKeptForGang,
  kHeld,
  kMissing,
  kFenced,
  kRepairRefused,
  kReturned,
  kLosses,
  kHalted,
  kEpochFound,
};

struct ReasonRow {
  Reason reason;
  std::string_view name;      // "phase2.inversion"
  std::string_view sentence;  // "a need of higher priority takes this machine"
};

// Every reason, in the order of the enum.
std::span<const ReasonRow> ReasonTable();
std::string_view ReasonName(Reason reason);
std::string_view ReasonSentence(Reason reason);
// Nothing if no reason has that name.
std::optional<Reason> FindReason(std::string_view name);

}  // namespace muster::model
