#include "core/scheduler/spec_edits.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "base/codec.h"
#include "base/probe.h"

namespace muster::scheduler {
namespace {

using model::DesiredState;
using model::WorkloadPhase;

// Metadata that the scheduler itself writes is no part of what a client wants.
bool IsOwnMetadata(const std::string& key) { return key.starts_with("lastReconciliation"); }

std::map<std::string, std::string> MergeMetadata(const std::map<std::string, std::string>& wanted,
                                                 const std::map<std::string, std::string>& before) {
  std::map<std::string, std::string> merged = wanted;
  for (const auto& [key, value] : before) {
    if (IsOwnMetadata(key)) merged[key] = value;
  }
  return merged;
}

std::string DigestOf(const WantedWorkload& wanted) {
  std::string bytes = RevisionBytes(wanted.spec);
  bytes += codec::ToBytes(wanted.labels);
  bytes += codec::ToBytes(wanted.require_labels);
  bytes += codec::ToBytes(wanted.tenant);
  return fmt::format("{:016x}", Hash(bytes)).substr(0, 12);
}

// What of a kind a node must agree to; the room is judged apart.
auto NodeTermsOf(placement::Kind kind) {
  kind.request = {};
  kind.priority = 0;
  kind.labels = {};
  return kind;
}

}  // namespace

SpecEdits::SpecEdits(const Config& config, Drafts& drafts, Rooms& rooms)
    : config_(config), drafts_(drafts), rooms_(rooms) {}

WorkloadRecord SpecEdits::Preview(const WantedWorkload& wanted, Now now) const {
  const WorkloadRecord* before = drafts_.Find<WorkloadRecord>(wanted.id);
  WorkloadRecord record = before == nullptr ? WorkloadRecord{} : *before;
  const std::string revision = wanted.revision.empty() ? DigestOf(wanted) : wanted.revision;
  if (before == nullptr) {
    record.workload.created_at = now.wall;
    record.last_transition = now.wall;
    record.retry.max_attempts = config_.max_attempts;
    record.agent_revision = revision;
  } else {
    const bool same = before->workload.spec == wanted.spec && before->workload.labels == wanted.labels &&
                      before->require_labels == wanted.require_labels && before->workload.tenant == wanted.tenant;
    if (before->workload.revision != revision) {
      record.agent_revision = revision;
    } else if (!same) {
      record.agent_revision = fmt::format("{}-{}", revision, DigestOf(wanted));
    }
  }
  record.workload.id = wanted.id;
  record.workload.set = wanted.set;
  record.workload.tenant = wanted.tenant;
  record.workload.revision = revision;
  record.workload.labels = wanted.labels;
  record.workload.spec = wanted.spec;
  record.workload.desired = wanted.desired;
  record.require_labels = wanted.require_labels;
  record.metadata = MergeMetadata(wanted.metadata, record.metadata);
  return record;
}

contract::ApplyResult SpecEdits::ResultOf(const WorkloadRecord& next) const {
  const WorkloadRecord* before = drafts_.Find<WorkloadRecord>(next.workload.id);
  if (before == nullptr) return contract::ApplyResult::kCreated;
  const bool same = before->workload == next.workload && before->agent_revision == next.agent_revision &&
                    before->require_labels == next.require_labels && before->metadata == next.metadata;
  return same ? contract::ApplyResult::kUnchanged : contract::ApplyResult::kConfigured;
}

bool SpecEdits::Revives(const WorkloadRecord& record) const {
  const WorkloadRecord* before = drafts_.Find<WorkloadRecord>(record.workload.id);
  return before == nullptr || before->agent_revision != record.agent_revision ||
         before->workload.desired != record.workload.desired;
}

contract::ApplyResult SpecEdits::Apply(const WantedWorkload& wanted, StepContext& ctx) {
  WorkloadRecord record = Preview(wanted, ctx.now);
  const contract::ApplyResult result = ResultOf(record);
  if (result == contract::ApplyResult::kUnchanged) return result;
  if (result == contract::ApplyResult::kCreated) {
    Revive(record, Reason::kApplied, ctx);
    drafts_.Create(wanted.id, std::move(record));
    return result;
  }
  const WorkloadRecord before = *drafts_.Find<WorkloadRecord>(wanted.id);
  if (Revives(record)) {
    Revive(record, Reason::kApplied, ctx);
    MoveIfNeeded(before, record);
  }
  drafts_.Edit<WorkloadRecord>(wanted.id) = std::move(record);
  rooms_.SyncWorkload(wanted.id);  // what it holds now counts for the next change
  return result;
}

bool SpecEdits::SetDesired(const std::string& id, DesiredState desired, StepContext& ctx) {
  if (drafts_.Find<WorkloadRecord>(id)->workload.desired == desired) return false;
  auto& record = drafts_.Edit<WorkloadRecord>(id);
  record.workload.desired = desired;
  Revive(record,
         desired == DesiredState::kDeleted
             ? Reason::kDeleteRequested
             : (desired == DesiredState::kStopped ? Reason::kStopRequested : Reason::kApplied),
         ctx);
  return true;
}

void SpecEdits::Retry(const std::string& id, StepContext& ctx) {
  auto& record = drafts_.Edit<WorkloadRecord>(id);
  if (record.workload.phase == WorkloadPhase::kRunning || record.workload.phase == WorkloadPhase::kCompleted) {
    record.retry.attempts = 0;
    return;
  }
  Revive(record, Reason::kRetryRequested, ctx);
}

void SpecEdits::Revive(WorkloadRecord& record, Reason reason, StepContext& ctx) {
  model::Workload& workload = record.workload;
  const bool was_completed = workload.phase == WorkloadPhase::kCompleted;
  if (!MUTANT("scheduler.attempts_kept")) record.retry.attempts = 0;
  record.retry.next_retry_at.reset();
  record.waits = 0;
  record.launched_at.reset();
  record.exit_code.reset();
  record.refusals.clear();
  record.reason = ReasonName(reason);
  record.message = ReasonSentence(reason);
  if (was_completed) {  // it holds no room there any more
    record.previous_node = std::exchange(workload.assigned_node, {});
    record.actual = contract::ActualState::kUnknown;
  }
  const WorkloadPhase before = workload.phase;
  // Its agent may have been told to delete it, and takes that assignment never again.
  const bool undeleted = before == WorkloadPhase::kDeleting && workload.desired != DesiredState::kDeleted &&
                         !workload.assigned_node.empty();
  if (undeleted && !MUTANT("scheduler.undeleted_keeps_stamp")) record.previous_sequence = record.stamp.sequence++;
  if (workload.desired == DesiredState::kDeleted) {
    workload.phase = WorkloadPhase::kDeleting;
  } else if (workload.desired == DesiredState::kStopped && before == WorkloadPhase::kRunning) {
    workload.phase = before;
  } else if (workload.assigned_node.empty()) {
    workload.phase = WorkloadPhase::kPending;
  } else {
    const bool updates = before == WorkloadPhase::kRunning || before == WorkloadPhase::kUpdating;
    workload.phase = updates ? WorkloadPhase::kUpdating : WorkloadPhase::kScheduled;
  }
  if (workload.phase != before) record.last_transition = ctx.now.wall;
}

void SpecEdits::MoveIfNeeded(const WorkloadRecord& before, WorkloadRecord& record) {
  const std::string& node = record.workload.assigned_node;
  if (node.empty() || record.evict) return;
  const bool agrees = NodeTermsOf(KindOfWorkload(before, true)) == NodeTermsOf(KindOfWorkload(record, true));
  if (agrees && rooms_.FitsInstead(node, before.workload.spec.resources, record.workload.spec.resources)) return;
  PROBE("scheduler.spec_moves");
  record.evict = true;
  record.evict_grace.reset();
  record.reason = ReasonName(Reason::kSpecMoved);
  record.message = ReasonSentence(Reason::kSpecMoved);
}

}  // namespace muster::scheduler
