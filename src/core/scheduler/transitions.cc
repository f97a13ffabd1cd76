#include "core/scheduler/transitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/probe.h"
#include "model/utf8.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;
using model::WorkloadPhase;

}  // namespace

Duration BackoffOf(const Config& config, int32_t times) {
  Duration pause = config.retry_base;
  for (int32_t i = 1; i < times && pause < config.retry_cap; ++i) pause *= 2;
  return MUTANT("scheduler.no_backoff") ? Duration(1ms) : std::min(pause, config.retry_cap);
}

Transitions::Transitions(const Config& config, const StoreCopy& copy, Drafts& drafts)
    : config_(config), copy_(copy), drafts_(drafts) {}

WorkloadRecord& Transitions::Edit(const std::string& id, WorkloadPhase phase, std::string_view reason,
                                  std::string message, StepContext& ctx) {
  auto& record = drafts_.Edit<WorkloadRecord>(id);
  if (record.workload.phase != phase) record.last_transition = ctx.now.wall;
  record.workload.phase = phase;
  record.reason = reason;
  record.message = std::move(message);
  return record;
}

void Transitions::Decide(const std::string& id, DecisionKind kind, const std::string& node, std::string_view reason,
                         std::string message, StepContext& ctx) {
  drafts_.AddDecision(WorkloadObject(id), {.kind = kind,
                                           .at = ctx.now.wall,
                                           .workload = id,
                                           .node = node,
                                           .reason = std::string(reason),
                                           .message = std::move(message)});
}

// --- nodes

void Transitions::Assign(const std::string& id, const std::string& node, std::string_view why, StepContext& ctx) {
  const std::string from = drafts_.Find<WorkloadRecord>(id)->workload.assigned_node;
  const bool failover = !from.empty();
  const Reason reason = failover ? Reason::kFailedOver : Reason::kNone;
  const std::string message = failover ? fmt::format("{}: from {} to {}", ReasonSentence(reason), from, node)
                                       : fmt::format("placed on {}: {}", node, why);
  WorkloadRecord& record = Edit(id, WorkloadPhase::kScheduled, failover ? ReasonName(reason) : "placed", message, ctx);
  if (failover) {
    record.previous_node = from;
    ++ctx.counters.failovers;
  }
  record.workload.assigned_node = node;
  if (!MUTANT("scheduler.sequence_stays")) {
    record.previous_sequence = record.stamp.sequence;
    // Above every assignment of an earlier workload of this id, which was deleted at a revision that is known.
    record.stamp.sequence = std::max(record.stamp.sequence, copy_.LatestFor(WorkloadObject(id))) + 1;
  }
  const NodeRecord* there = copy_.Find<NodeRecord>(node);
  record.stamp.epoch = there == nullptr ? 0 : there->epoch;
  if (failover) record.retry.attempts = 0;
  record.retry.next_retry_at.reset();
  record.waits = 0;
  record.actual = ActualState::kPending;
  record.launched_at.reset();
  record.running_since.reset();
  record.exit_code.reset();
  record.evict = false;
  record.evict_grace.reset();
  drafts_.AddEvent(WorkloadObject(id), failover ? EventType::kRescheduled : EventType::kWorkloadScheduled, node,
                   message, ctx.now);
  drafts_.Explain(id, failover ? Action::kReschedule : Action::kAssign, true, message, ctx);
  Decide(id, failover ? DecisionKind::kFailedOver : DecisionKind::kPlaced, node,
         failover ? ReasonName(reason) : "placed", message, ctx);
}

void Transitions::Unassign(const std::string& id, Action action, Reason reason, std::string_view detail,
                           StepContext& ctx) {
  const std::string message = ReasonText(reason, detail);
  const auto* before = drafts_.Find<WorkloadRecord>(id);
  const std::string from = before->workload.assigned_node;
  const bool ended =
      before->workload.phase == WorkloadPhase::kFailed || before->workload.phase == WorkloadPhase::kCompleted;
  const bool stays = before->workload.desired == model::DesiredState::kStopped;
  const WorkloadPhase phase =
      stays ? WorkloadPhase::kStopped : (ended ? before->workload.phase : WorkloadPhase::kPending);
  WorkloadRecord& record = Edit(id, phase, ReasonName(reason), message, ctx);
  record.previous_node = from;
  record.workload.assigned_node.clear();
  record.actual = stays ? ActualState::kStopped : ActualState::kUnknown;
  record.evict = false;
  record.evict_grace.reset();
  record.launched_at.reset();
  record.running_since.reset();
  record.exit_code.reset();
  record.retry.next_retry_at.reset();
  drafts_.AddEvent(WorkloadObject(id), EventType::kRescheduled, from, message, ctx.now);
  drafts_.Explain(id, action, true, message, ctx);
}

bool Transitions::IsWaitNews(const std::string& id, std::string_view reason, Now now) const {
  const WorkloadRecord& record = *drafts_.Find<WorkloadRecord>(id);
  if (record.waits == 0 || record.reason != reason) return true;
  if (!record.retry.next_retry_at) return BackoffOf(config_, record.waits) < config_.retry_cap;
  return *record.retry.next_retry_at <= now.wall;
}

void Transitions::Wait(const std::string& id, bool failover, std::string_view reason, const std::string& message,
                       StepContext& ctx) {
  if (!IsWaitNews(id, reason, ctx.now)) return;
  const WorkloadRecord* before = drafts_.Find<WorkloadRecord>(id);
  const bool at_cap = before->waits > 0 && BackoffOf(config_, before->waits) >= config_.retry_cap;
  const bool said = before->reason == reason && before->waits > 0;
  WorkloadRecord& record =
      Edit(id, failover ? WorkloadPhase::kRetryPending : WorkloadPhase::kPending, reason, message, ctx);
  if (MUTANT("scheduler.waits_count")) ++record.retry.attempts;
  record.waits += at_cap ? 0 : 1;
  record.retry.next_retry_at.reset();
  if (!at_cap) record.retry.next_retry_at = ctx.now.wall + BackoffOf(config_, record.waits);
  drafts_.Explain(id, failover ? Action::kAwaitFailover : Action::kAssign, false, message, ctx);
  if (!said) Decide(id, DecisionKind::kRefused, record.workload.assigned_node, reason, message, ctx);
}

void Transitions::Evict(const std::string& id, Reason reason, std::string_view detail, std::optional<Duration> grace,
                        StepContext& ctx) {
  const auto* before = drafts_.Find<WorkloadRecord>(id);
  WorkloadRecord& record = Edit(id, before->workload.phase, ReasonName(reason), ReasonText(reason, detail), ctx);
  record.evict = true;
  record.evict_grace = grace;
  record.retry.next_retry_at.reset();
  const std::string& node = record.workload.assigned_node;
  drafts_.AddEvent(WorkloadObject(id), EventType::kWorkloadEvicted, node, record.message, ctx.now);
  drafts_.Explain(id, Action::kEvict, true, record.message, ctx);
  Decide(id, DecisionKind::kEvicted, node, record.reason, record.message, ctx);
}

// --- what its agent said

void Transitions::DecideRefused(const std::string& id, const std::string& node, Reason reason, std::string_view text,
                                StepContext& ctx) {
  Decide(id, DecisionKind::kRefused, node, ReasonName(reason), ReasonText(reason, text), ctx);
}

void Transitions::CountAttempt(const std::string& id, Reason reason, std::string_view detail, StepContext& ctx) {
  const std::string message = ReasonText(reason, detail);
  WorkloadRecord& record = Edit(id, WorkloadPhase::kRetryPending, ReasonName(reason), message, ctx);
  RetryRecord& retry = record.retry;
  const int32_t most = retry.max_attempts > 0 ? retry.max_attempts : config_.max_attempts;
  retry.attempts = std::min(retry.attempts + 1, most);
  record.waits = 0;  // it had a node; from here on the back-off is that of its attempts
  record.actual = ActualState::kFailed;
  record.launched_at.reset();
  record.running_since.reset();
  const std::string& node = record.workload.assigned_node;
  const Action action =
      record.workload.desired == model::DesiredState::kStopped ? Action::kApplyStopped : Action::kReapplyRunning;
  drafts_.Explain(id, action, false, message, ctx);
  if (retry.attempts >= most && !MUTANT("scheduler.never_gives_up")) {
    PROBE("scheduler.gave_up");
    retry.next_retry_at.reset();
    record.workload.phase = WorkloadPhase::kFailed;
    record.last_transition = ctx.now.wall;
    const std::string last = fmt::format("{} after {} attempts: {}", ReasonSentence(Reason::kGaveUp), most, message);
    drafts_.AddEvent(WorkloadObject(id), EventType::kWorkloadFailed, node, last, ctx.now);
    Decide(id, DecisionKind::kGaveUp, node, ReasonName(Reason::kGaveUp), last, ctx);
    return;
  }
  ++ctx.counters.retries;
  const Duration pause = BackoffOf(config_, retry.attempts);
  retry.next_retry_at = ctx.now.wall + pause;
  const std::string next = fmt::format("attempt {} of {} failed, the next one in {} s: {}", retry.attempts, most,
                                       std::chrono::duration_cast<std::chrono::seconds>(pause).count(), message);
  drafts_.AddEvent(WorkloadObject(id), EventType::kRetryTriggered, node, next, ctx.now);
  Decide(id, DecisionKind::kRetry, node, ReasonName(Reason::kRetry), next, ctx);
}

void Transitions::SetProgress(const std::string& id, const contract::WorkloadStatus& status,
                              std::optional<WallTime> launched, Action action, StepContext& ctx) {
  const auto* before = drafts_.Find<WorkloadRecord>(id);
  const bool updating =
      before->workload.phase == WorkloadPhase::kRunning || before->workload.phase == WorkloadPhase::kUpdating;
  const bool stops = before->workload.desired == model::DesiredState::kStopped;
  const WorkloadPhase phase =
      stops ? before->workload.phase : (updating ? WorkloadPhase::kUpdating : WorkloadPhase::kScheduled);
  if (!launched && before->workload.phase == phase && before->actual == status.actual && !before->retry.next_retry_at) {
    return;
  }
  WorkloadRecord& record =
      Edit(id, phase, ReasonName(Reason::kLaunched), ReasonText(Reason::kLaunched, status.message), ctx);
  record.actual = status.actual;
  if (launched) record.launched_at = launched;
  record.running_since.reset();
  record.retry.next_retry_at.reset();
  drafts_.Explain(id, action, true, record.message, ctx);
}

void Transitions::SetRunning(const std::string& id, const contract::WorkloadStatus& status,
                             std::optional<WallTime> launched, StepContext& ctx) {
  WorkloadRecord& record = Edit(id, WorkloadPhase::kRunning, ReasonName(Reason::kRunning),
                                std::string(ReasonSentence(Reason::kRunning)), ctx);
  const bool updated = record.actual != ActualState::kRunning || launched.has_value();
  record.actual = ActualState::kRunning;
  record.exit_code.reset();
  if (launched) record.launched_at = launched;
  if (!record.launched_at) record.launched_at = ctx.now.wall;
  if (!record.running_since || updated) record.running_since = ctx.now.wall;
  record.retry.next_retry_at.reset();
  record.waits = 0;
  if (!status.message.empty()) record.message = ReasonText(Reason::kRunning, status.message);
  drafts_.Explain(id, launched ? Action::kReapplyRunning : Action::kNoAction, true, record.message, ctx);
}

void Transitions::SetDrift(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const std::string message =
      fmt::format("it ran, and its node says {} {}", ActualStateName(status.actual),
                  model::Shortened(status.message.empty() ? status.revision : status.message, kMostDetail));
  WorkloadRecord& record = Edit(id, WorkloadPhase::kScheduled, ReasonName(Reason::kMissing), message, ctx);
  record.actual = status.actual;
  record.launched_at.reset();
  record.running_since.reset();
  drafts_.AddEvent(WorkloadObject(id), EventType::kDriftDetected, record.workload.assigned_node, message, ctx.now);
  drafts_.Explain(id, Action::kReapplyRunning, true, message, ctx);
}

void Transitions::SetStopped(const std::string& id, ActualState actual, StepContext& ctx) {
  WorkloadRecord& record = Edit(id, WorkloadPhase::kStopped, ReasonName(Reason::kStopped),
                                std::string(ReasonSentence(Reason::kStopped)), ctx);
  record.actual = actual;
  record.running_since.reset();
  record.retry.next_retry_at.reset();
  drafts_.Explain(id, Action::kNoAction, true, record.message, ctx);
}

void Transitions::SetCompleted(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  WorkloadRecord& record = Edit(id, WorkloadPhase::kCompleted, ReasonName(Reason::kCompleted),
                                std::string(ReasonSentence(Reason::kCompleted)), ctx);
  record.actual = status.actual;
  record.exit_code = status.exit_code;
  record.running_since.reset();
  record.retry.next_retry_at.reset();
  drafts_.AddEvent(WorkloadObject(id), EventType::kWorkloadCompleted, record.workload.assigned_node, record.message,
                   ctx.now);
  drafts_.Explain(id, Action::kNoAction, true, record.message, ctx);
}

void Transitions::ResetAttempts(const std::string& id, StepContext& ctx) {
  drafts_.Edit<WorkloadRecord>(id).retry.attempts = 0;
  ctx.Emit(Reconciled{.action = std::string(ActionName(Action::kNoAction)), .success = true});
}

bool Transitions::SetTrouble(const std::string& id, Action action, Reason reason, std::string_view detail,
                             std::optional<Duration> pause, StepContext& ctx) {
  const auto* before = drafts_.Find<WorkloadRecord>(id);
  std::string message = ReasonText(reason, detail);
  const bool said = before->reason == ReasonName(reason) && before->message == message;
  if (!pause && said) return false;
  WorkloadRecord& record = Edit(id, before->workload.phase, ReasonName(reason), std::move(message), ctx);
  if (pause) {
    ++record.waits;
    record.retry.next_retry_at = ctx.now.wall + *pause;
  }
  drafts_.Explain(id, action, false, record.message, ctx);
  return !said;
}

void Transitions::Finalize(const std::string& id, Reason reason, StepContext& ctx) {
  const auto* before = drafts_.Find<WorkloadRecord>(id);
  const std::string node = before->workload.assigned_node;
  drafts_.Remove(WorkloadObject(id));
  ctx.Emit(Reconciled{.action = std::string(ActionName(Action::kFinalizeDelete)), .success = true});
  Decide(id, DecisionKind::kDeleted, node, ReasonName(reason), std::string(ReasonSentence(reason)), ctx);
}

}  // namespace muster::scheduler
