#include "core/scheduler/reasons.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "model/utf8.h"

namespace muster::scheduler {
namespace {

// A switch, so that the compiler refuses a reason without a row.
constexpr ReasonRow Row(Reason reason) {
  switch (reason) {
    case Reason::kNone: return {reason, "", ""};
    case Reason::kRunning: return {reason, "agent.running", "the workload runs"};
    case Reason::kStopped: return {reason, "agent.stopped", "the workload is stopped"};
    case Reason::kCompleted: return {reason, "agent.completed", "the workload ended with exit code 0"};
    case Reason::kLaunched: return {reason, "agent.launched", "the agent accepted the workload"};
    case Reason::kApplyFailed: return {reason, "agent.apply_failed", "the agent refused the workload"};
    case Reason::kWorkloadFailed: return {reason, "agent.workload_failed", "the workload failed on its node"};
    case Reason::kRuntimeMissing:
      return {reason, "agent.runtime_missing", "the node has no runtime for this type of workload"};
    case Reason::kAdmission: return {reason, "agent.admission", "the node is too busy to take the workload"};
    case Reason::kStampRefused:
      return {reason, "agent.stamp_refused", "the agent does not take this assignment of the workload"};
    case Reason::kStatusError: return {reason, "agent.status_error", "the agent could not tell the workload's state"};
    case Reason::kMissing: return {reason, "agent.missing", "the node does not have the workload"};
    case Reason::kDeleteFailed: return {reason, "agent.delete_failed", "the agent could not delete the workload"};
    case Reason::kNodeUnavailable: return {reason, "node.unavailable", "the workload's node is not available"};
    case Reason::kNodeUnreachable: return {reason, "node.unreachable", "the node's agent cannot be reached"};
    case Reason::kHeartbeatExpired: return {reason, "node.heartbeat_expired", "the node's heartbeats stopped"};
    case Reason::kHeartbeat: return {reason, "node.heartbeat", "the node sends heartbeats again"};
    case Reason::kReachable: return {reason, "node.reachable", "the node's agent can be reached again"};
    case Reason::kRegistered: return {reason, "node.registered", "the node registered"};
    case Reason::kFailedOver: return {reason, "failover.moved", "the workload moved to another node"};
    case Reason::kAwaitFailover: return {reason, "failover.no_node", "no other node can take the workload"};
    case Reason::kPreempted: return {reason, "evicted.preempted", "a workload of higher priority needs the room"};
    case Reason::kDrained: return {reason, "evicted.drain", "the node is being drained"};
    case Reason::kSpecMoved: return {reason, "evicted.spec_changed", "the changed workload does not fit its node"};
    case Reason::kLeft: return {reason, "evicted.left", "the workload left its node and waits for another"};
    case Reason::kApplied: return {reason, "request.applied", "the workload was applied"};
    case Reason::kStopRequested: return {reason, "request.stopped", "the workload is to be stopped"};
    case Reason::kDeleteRequested: return {reason, "request.deleted", "the workload is to be deleted"};
    case Reason::kRetryRequested: return {reason, "request.retry", "attempts begin anew"};
    case Reason::kRetry: return {reason, "retry.scheduled", "the workload is tried again after a pause"};
    case Reason::kGaveUp: return {reason, "retry.exhausted", "every attempt failed"};
    case Reason::kDeleted: return {reason, "deleted", "the workload is deleted"};
    case Reason::kDeletedWithNode:
      return {reason, "deleted.node_unavailable", "the workload is deleted; its node cleans up when it returns"};
    case Reason::kMemberCreated: return {reason, "set.created", "the set lacked a member"};
    case Reason::kMemberUpdated: return {reason, "set.updated", "the set's template changed"};
    case Reason::kMemberRemoved: return {reason, "set.removed", "the set has a member too many"};
    case Reason::kOrphan: return {reason, "orphan.unknown", "the store does not hold the workload"};
    case Reason::kOrphanMoved: return {reason, "orphan.moved", "the workload belongs to another node"};
    case Reason::kOrphansHeld:
      return {reason, "orphan.held", "too many workloads of the node are unknown: accept the node to delete them"};
    case Reason::kOrphansOfEmptyStore:
      return {reason, "orphan.store_empty",
              "the store holds no workload at all: accept the node to delete what it has"};
    case Reason::kOrphansOfCluster:
      return {reason, "orphan.cluster_held",
              "too many workloads of the cluster are unknown: accept the node to delete those it has"};
    case Reason::kQuotaFull: return {reason, "quota.full", "the tenant's quota does not admit the request"};
    case Reason::kRateExceeded: return {reason, "quota.rate", "the tenant applies faster than its rate"};
  }
  return {reason, "invalid", "not a reason"};
}

constexpr size_t kReasons = static_cast<size_t>(Reason::kRateExceeded) + 1;
constexpr auto kTable = [] {
  std::array<ReasonRow, kReasons> rows{};
  for (size_t i = 0; i < kReasons; ++i) rows[i] = Row(static_cast<Reason>(i));
  return rows;
}();

}  // namespace

std::span<const ReasonRow> ReasonTable() { return kTable; }
std::string_view ReasonName(Reason reason) { return Row(reason).name; }
std::string_view ReasonSentence(Reason reason) { return Row(reason).sentence; }

std::string ReasonText(Reason reason, std::string_view detail) {
  const std::string_view sentence = ReasonSentence(reason);
  if (detail.empty()) return std::string(sentence);
  return fmt::format("{}: {}", sentence, model::Shortened(std::string(detail), kMostDetail));
}

std::string_view ActionName(Action action) {
  switch (action) {
    case Action::kNoAction: return "NoAction";
    case Action::kBackoffWait: return "BackoffWait";
    case Action::kFinalizeDelete: return "FinalizeDelete";
    case Action::kAssign: return "Assign";
    case Action::kReschedule: return "Reschedule";
    case Action::kAwaitFailover: return "AwaitFailover";
    case Action::kInvestigate: return "Investigate";
    case Action::kReapplyRunning: return "ReapplyRunning";
    case Action::kApplyStopped: return "ApplyStopped";
    case Action::kDelete: return "Delete";
    case Action::kReschedulePending: return "ReschedulePending";
    case Action::kEvict: return "Evict";
  }
  return "NoAction";
}

std::string_view EventTypeName(EventType type) {
  switch (type) {
    case EventType::kWorkloadScheduled: return "WorkloadScheduled";
    case EventType::kWorkloadFailed: return "WorkloadFailed";
    case EventType::kWorkloadCompleted: return "WorkloadCompleted";
    case EventType::kWorkloadEvicted: return "WorkloadEvicted";
    case EventType::kNodeLost: return "NodeLost";
    case EventType::kNodeReady: return "NodeReady";
    case EventType::kRetryTriggered: return "RetryTriggered";
    case EventType::kRescheduled: return "Rescheduled";
    case EventType::kDriftDetected: return "DriftDetected";
  }
  return "DriftDetected";
}

}  // namespace muster::scheduler
