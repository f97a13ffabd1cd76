// Reasons of the scheduler's decisions, what a reconciliation did, and the types of stored events. One table for each;
// reasons of placement are in placement/reason.h.
//
// A reason has a stable name that programs may rely on and a sentence for people; reasons.cc is the one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace muster::scheduler {

enum class Reason : uint8_t {
  kNone,
  // What an agent said.
  kRunning,
  kStopped,
  kCompleted,
  kLaunched,
  kApplyFailed,
  kWorkloadFailed,
  kRuntimeMissing,
  kAdmission,
  kStampRefused,
  kStatusError,
  kMissing,
  kDeleteFailed,
  // Nodes.
  kNodeUnavailable,
  kNodeUnreachable,
  kHeartbeatExpired,
  kHeartbeat,
  kReachable,
  kRegistered,
  // Moves.
  kFailedOver,
  kAwaitFailover,
  kPreempted,
  kDrained,
  kSpecMoved,
  kLeft,
  // Requests and retries.
  kApplied,
  kStopRequested,
  kDeleteRequested,
  kRetryRequested,
  kRetry,
  kGaveUp,
  kDeleted,
  kDeletedWithNode,
  // Sets.
  kMemberCreated,
  kMemberUpdated,
  kMemberRemoved,
  // Orphans.
  kOrphan,
  kOrphanMoved,
  kOrphansHeld,
  kOrphansOfEmptyStore,
  kOrphansOfCluster,
  // Refusals of requests.
  kQuotaFull,
  kRateExceeded,
};

struct ReasonRow {
  Reason reason;
  std::string_view name;      // "agent.apply_failed"
  std::string_view sentence;  // "the agent refused the workload"
};

// Every reason, in the order of the enum.
std::span<const ReasonRow> ReasonTable();
std::string_view ReasonName(Reason reason);
std::string_view ReasonSentence(Reason reason);
// What an agent says of a failure may be megabytes, and goes into records, events and decisions. More than replies of
// agents are cut to where they come in, so that the note of what was cut stays.
inline constexpr size_t kMostDetail = 5 << 10;
// The sentence, and the detail behind it if there is one, shortened to kMostDetail.
std::string ReasonText(Reason reason, std::string_view detail);

// What a reconciliation of a workload did; the names are those that existing tools know.
enum class Action : uint8_t {
  kNoAction,
  kBackoffWait,
  kFinalizeDelete,
  kAssign,
  kReschedule,
  kAwaitFailover,
  kInvestigate,
  kReapplyRunning,
  kApplyStopped,
  kDelete,
  kReschedulePending,
  kEvict,
};
std::string_view ActionName(Action action);  // "NoAction", ...

enum class EventType : uint8_t {
  kWorkloadScheduled,
  kWorkloadFailed,
  kWorkloadCompleted,
  kWorkloadEvicted,
  kNodeLost,
  kNodeReady,
  kRetryTriggered,
  kRescheduled,
  kDriftDetected,
};
std::string_view EventTypeName(EventType type);  // "WorkloadScheduled", ...

}  // namespace muster::scheduler
