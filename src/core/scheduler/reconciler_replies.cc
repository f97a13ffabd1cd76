// What the answers of agents lead to: the part of Reconciler that compares what is with what should be.
#include <fmt/format.h>

#include <algorithm>

#include "base/probe.h"
#include "core/scheduler/reconciler.h"

namespace muster::scheduler {

using contract::ActualState;
using model::DesiredState;
using model::WorkloadPhase;

namespace {

constexpr std::string_view kNoRuntime = "runtime not available";

bool SaysNoRuntime(std::string_view text) {
  return text.find(kNoRuntime) != std::string_view::npos && !MUTANT("scheduler.mismatch_unseen");
}

// The status the answer stands for; nothing if the agent could not tell.
std::optional<contract::WorkloadStatus> StatusIn(const CallDone& done) {
  if (done.status.code() == Code::kNotFound) return contract::WorkloadStatus{.actual = ActualState::kMissing};
  if (!done.status.ok() || !done.reply) return std::nullopt;
  return std::get<contract::WorkloadStatus>(*done.reply);
}

}  // namespace

void Reconciler::OnCallDone(const AgentCall& call, const CallDone& done, StepContext& ctx) {
  const std::string& id = call.workload;
  const WorkloadRecord* record = p_.drafts.Find<WorkloadRecord>(id);
  const bool current =
      record != nullptr && record->workload.assigned_node == call.node && record->stamp.sequence == call.sequence;
  if (!current) {
    PROBE("scheduler.late_answer");
    return MarkDirty(id);
  }
  if (IsUnreachable(done.status)) {  // and the node is waited for
    At(id).check = true;
    return SetTimer(id, ctx.now.mono + p_.config.reconcile_interval);
  }
  if (call.kind == CallKind::kApply && done.status.ok() && done.reply) {
    const auto& applied = std::get<contract::AppliedOnAgent>(*done.reply);
    if (applied.applied || applied.skipped) {
      At(id).launched = Anchor{.wall = ctx.now.wall, .mono = ctx.now.mono};
      At(id).there = call.node;
    }
  }
  if (p_.drafts.Busy(WorkloadObject(id))) {  // looked at again when its commit has ended
    At(id).check = true;
    return;
  }
  switch (call.kind) {
    case CallKind::kStatus:
      if (const auto status = StatusIn(done)) return OnStatus(id, *status, ctx);
      PROBE("scheduler.status_error");
      p_.transitions.SetTrouble(id, Action::kInvestigate, Reason::kStatusError, done.status.ToString(), std::nullopt,
                                ctx);
      At(id).check = true;
      return SetTimer(id, ctx.now.mono + p_.config.reconcile_interval);
    case CallKind::kApply: return OnApplied(call, done, ctx);
    case CallKind::kDelete: return OnDeleted(call, done, ctx);
    case CallKind::kList:
    case CallKind::kOrphan: return;
  }
}

// --- what an agent has

void Reconciler::OnStatus(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  if (status.usage) At(id).usage = status.usage;
  At(id).there = status.actual == ActualState::kMissing ? std::string() : record.workload.assigned_node;
  if (record.workload.desired == DesiredState::kDeleted || record.evict) return CompareGone(id, status, ctx);
  if (record.workload.phase == WorkloadPhase::kFailed || record.workload.phase == WorkloadPhase::kCompleted) return;
  if (record.workload.desired == DesiredState::kStopped) return CompareStopped(id, status, ctx);
  CompareRunning(id, status, ctx);
}

// It is to leave its node.
void Reconciler::CompareGone(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  Entry& entry = At(id);
  if (status.actual == ActualState::kMissing) {
    entry.delete_sent.reset();
    if (record.workload.desired == DesiredState::kDeleted) return Finalize(id, Reason::kDeleted, ctx);
    const std::string reason = record.message;
    p_.transitions.Unassign(id, Action::kReschedulePending, Reason::kLeft, reason, ctx);
    return MarkDirty(id);
  }
  const Duration patience =
      record.evict_grace.value_or(record.workload.spec.grace) + std::max<Duration>(p_.config.missing_grace, 1s);
  if (entry.delete_sent && ctx.now.mono - *entry.delete_sent < patience) {
    entry.check = true;
    return SetTimer(id, ctx.now.mono + std::min<Duration>(1s, p_.config.reconcile_interval));
  }
  CallAgent(id, record, CallKind::kDelete);
}

void Reconciler::CompareStopped(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  const bool runs = status.actual == ActualState::kRunning || status.actual == ActualState::kPending ||
                    status.actual == ActualState::kUnknown;
  if (!runs) {
    TakeLaunch(id);
    At(id).launches = 0;
    if (record.workload.phase != WorkloadPhase::kStopped) p_.transitions.SetStopped(id, status.actual, ctx);
    return;
  }
  Launch(id, status, ctx);
}

void Reconciler::CompareRunning(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  const bool same =
      status.revision.empty() || status.revision == record.agent_revision || MUTANT("scheduler.revision_ignored");
  const bool runs_once = record.workload.spec.restart != model::RestartPolicy::kAlways;
  const bool ended = status.actual == ActualState::kStopped || status.actual == ActualState::kFailed;
  if (same && ended && runs_once && status.exit_code == 0) {
    TakeLaunch(id);
    return p_.transitions.SetCompleted(id, status, ctx);
  }
  if (same && status.actual == ActualState::kRunning) {
    At(id).launches = 0;
    const bool launched = At(id).launched.has_value();
    if (!IsSettled(record) || record.actual != ActualState::kRunning || launched) {
      p_.transitions.SetRunning(id, status, TakeLaunch(id), ctx);
    }
    return MarkDirty(id);  // attempts are forgotten after a while
  }
  if (same && status.actual == ActualState::kFailed) return OnFailed(id, status, ctx);
  if (record.workload.phase == WorkloadPhase::kRunning && same && status.actual != ActualState::kPending &&
      !At(id).launched) {
    p_.transitions.SetDrift(id, status, ctx);
    At(id).check = true;
    return;
  }
  if (same && status.actual == ActualState::kPending) {  // its agent is at it
    p_.transitions.SetProgress(id, status, TakeLaunch(id), Action::kNoAction, ctx);
    At(id).check = true;
    return Poll(id, ctx);
  }
  Launch(id, status, ctx);
}

// Failed after an accepted launch is an attempt; before one it is what the launch is for.
void Reconciler::OnFailed(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  const bool launched = LaunchedAt(id, record, ctx.now).has_value();
  if (!launched) return Launch(id, status, ctx);
  TakeLaunch(id);
  const auto detail = status.metadata.find("failure_message");
  const std::string text = status.message.empty() && detail != status.metadata.end() ? detail->second : status.message;
  if (SaysNoRuntime(text)) {
    At(id).there.clear();  // what failed does not run: nothing has to end before it is placed elsewhere
    return RefuseRuntime(id, text, ctx);
  }
  p_.transitions.CountAttempt(id, Reason::kWorkloadFailed, text, ctx);
}

// Applies what is wanted, unless the last launch is recent.
void Reconciler::Launch(const std::string& id, const contract::WorkloadStatus& status, StepContext& ctx) {
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  Entry& entry = At(id);
  const auto launched = LaunchedAt(id, record, ctx.now);
  const bool patient = status.actual == ActualState::kMissing || status.actual == ActualState::kPending ||
                       (!status.revision.empty() && status.revision != record.agent_revision);
  const Duration pause = patient ? p_.config.missing_grace
                                 : std::min<Duration>(p_.config.missing_grace, 1s * (1 << std::min(entry.launches, 6)));
  if (launched && ctx.now.mono - *launched < pause && !MUTANT("scheduler.no_grace")) {
    if (entry.launched) {
      const Action action =
          record.workload.desired == DesiredState::kStopped ? Action::kApplyStopped : Action::kReapplyRunning;
      p_.transitions.SetProgress(id, status, TakeLaunch(id), action, ctx);
    }
    entry.check = true;
    return Poll(id, ctx);
  }
  ++entry.launches;
  CallAgent(id, record, CallKind::kApply);
}

// --- what an agent did

void Reconciler::OnApplied(const AgentCall& call, const CallDone& done, StepContext& ctx) {
  const std::string& id = call.workload;
  const WorkloadRecord& record = *p_.drafts.Find<WorkloadRecord>(id);
  const bool wanted = call.revision == record.agent_revision && !record.evict &&
                      call.run == (record.workload.desired == DesiredState::kRunning) &&
                      record.workload.desired != DesiredState::kDeleted;
  if (!wanted) {
    At(id).launched.reset();
    return MarkForCheck(id);
  }
  std::string text = done.status.message();
  if (done.status.ok() && done.reply) {
    const auto& applied = std::get<contract::AppliedOnAgent>(*done.reply);
    if (applied.applied || applied.skipped) return MarkForCheck(id);
    text = applied.message;
  }
  if (SaysNoRuntime(text)) return RefuseRuntime(id, text, ctx);
  if (done.status.code() == Code::kResourceExhausted) {
    PROBE("scheduler.admission_refused");
    return LeaveRefusing(id, Reason::kAdmission, text, ctx);
  }
  const NodeRecord* node = p_.copy.Find<NodeRecord>(call.node);
  const bool outdated = done.status.code() == Code::kFailedPrecondition || done.status.code() == Code::kAborted;
  if (outdated && node != nullptr && node->facts.native) {  // it knows a later stamp
    PROBE("scheduler.stamp_refused");
    RefuseChange(id, call.node, Action::kReapplyRunning, Reason::kStampRefused, text, std::nullopt, ctx);
    At(id).check = true;
    return SetTimer(id, ctx.now.mono + p_.config.reconcile_interval);
  }
  p_.transitions.CountAttempt(id, Reason::kApplyFailed, text, ctx);
  MarkDirty(id);
}

void Reconciler::OnDeleted(const AgentCall& call, const CallDone& done, StepContext& ctx) {
  const std::string& id = call.workload;
  const bool accepted = done.status.code() == Code::kNotFound ||
                        (done.status.ok() && done.reply && std::get<contract::DeletedOnAgent>(*done.reply).success);
  if (accepted) {
    At(id).delete_sent = ctx.now.mono;
    return MarkForCheck(id);
  }
  const std::string text =
      done.status.ok() ? std::get<contract::DeletedOnAgent>(*done.reply).message : done.status.ToString();
  PROBE("scheduler.delete_refused");
  const int32_t waits = p_.drafts.Find<WorkloadRecord>(id)->waits;
  RefuseChange(id, call.node, Action::kDelete, Reason::kDeleteFailed, text, BackoffOf(p_.config, waits + 1), ctx);
  MarkDirty(id);
}

// --- refusals

// It stays where it is, and is tried again. Told once, as long as the agent says the same.
void Reconciler::RefuseChange(const std::string& id, const std::string& node, Action action, Reason reason,
                              std::string_view text, std::optional<Duration> pause, StepContext& ctx) {
  if (p_.transitions.SetTrouble(id, action, reason, text, pause, ctx)) {
    p_.transitions.DecideRefused(id, node, reason, text, ctx);
  }
}

void Reconciler::RefuseRuntime(const std::string& id, std::string_view text, StepContext& ctx) {
  PROBE("scheduler.runtime_missing");
  const model::Workload& workload = p_.drafts.Find<WorkloadRecord>(id)->workload;
  const std::string node = workload.assigned_node;
  const model::WorkloadType type = workload.spec.type;
  if (!p_.drafts.Busy(NodeObject(node)) && p_.drafts.Find<NodeRecord>(node) != nullptr) {
    auto& types = p_.drafts.Edit<NodeRecord>(node).facts.supported_types;
    if (types.empty()) {
      types = {model::WorkloadType::kProcess, model::WorkloadType::kContainer, model::WorkloadType::kCompose};
    }
    std::erase(types, type);
    if (types.empty()) types.push_back(model::WorkloadType::kUnspecified);  // none: an empty list would mean all
  }
  LeaveRefusing(id, Reason::kRuntimeMissing, text, ctx);
}

// Its node does not take it: it is placed elsewhere, and not there for a while.
void Reconciler::LeaveRefusing(const std::string& id, Reason reason, std::string_view text, StepContext& ctx) {
  auto& record = p_.drafts.Edit<WorkloadRecord>(id);
  const std::string node = record.workload.assigned_node;
  const NodeRecord* there = p_.copy.Find<NodeRecord>(node);
  record.refusals[node] = {.until = ctx.now.wall + p_.config.refusal_memory,
                           .registration = there == nullptr ? 0 : there->registration};
  p_.transitions.DecideRefused(id, node, reason, text, ctx);
  const std::string detail = fmt::format("{}: {}", node, text);
  if (At(id).there == node && !MUTANT("scheduler.refused_update_leaves_old")) {
    // What it was before is still there, and may run: that ends first.
    p_.transitions.Evict(id, reason, detail, std::nullopt, ctx);
  } else {
    p_.transitions.Unassign(id, Action::kReschedulePending, reason, detail, ctx);
  }
  MarkDirty(id);
}

}  // namespace muster::scheduler
