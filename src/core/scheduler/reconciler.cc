#include "core/scheduler/reconciler.h"

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {

using contract::ActualState;
using model::DesiredState;
using model::WorkloadPhase;

bool IsSettled(const WorkloadRecord& record) {
  const model::Workload& workload = record.workload;
  if (workload.desired == DesiredState::kDeleted || record.evict) return false;
  if (workload.phase == WorkloadPhase::kCompleted || workload.phase == WorkloadPhase::kFailed) return true;
  return workload.phase ==
         (workload.desired == DesiredState::kStopped ? WorkloadPhase::kStopped : WorkloadPhase::kRunning);
}

contract::Stamp StampOf(const WorkloadRecord& record, const NodeRecord& node) {
  if (!node.facts.native) return {};
  return {.epoch = node.epoch, .sequence = record.stamp.sequence + (MUTANT("scheduler.stamp_ahead") ? 1 : 0)};
}

contract::ApplyOnAgent ApplyRequestOf(const WorkloadRecord& record, const NodeRecord& node) {
  return {.workload = record.workload.id,
          .set = record.workload.set,
          .tenant = record.workload.tenant,
          .revision = record.agent_revision,
          .run = record.workload.desired == DesiredState::kRunning && !record.evict &&
                 record.workload.phase != WorkloadPhase::kCompleted && record.workload.phase != WorkloadPhase::kFailed,
          .spec = record.workload.spec,
          .labels = record.workload.labels,
          .stamp = StampOf(record, node)};
}

Reconciler::Reconciler(Parts parts, State state) : p_(parts), state_(std::move(state)) {}

// --- what asks for a look

void Reconciler::MarkForCheck(const std::string& workload) {
  At(workload).check = true;
  MarkDirty(workload);
}

void Reconciler::MarkNode(const std::string& node, bool check) {
  for (const std::string& id : p_.copy.OnNode(node)) {
    if (check) {
      MarkForCheck(id);
    } else {
      MarkDirty(id);
    }
  }
}

void Reconciler::OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses,
                            bool complete) {
  std::vector<std::string_view> reported;
  reported.reserve(statuses.size());
  for (const contract::WorkloadStatus& status : statuses) {
    reported.push_back(status.workload);
    const WorkloadRecord* record = p_.copy.Find<WorkloadRecord>(status.workload);
    if (record == nullptr) continue;
    if (record->workload.assigned_node != node) {
      PROBE("scheduler.stale_owner");
      continue;
    }
    if (status.usage) OnUsage(status.workload, *status.usage);
    const bool same_revision = status.revision.empty() || status.revision == record->agent_revision;
    if (!IsSettled(*record) || record->actual != status.actual || !same_revision) MarkForCheck(status.workload);
  }
  if (!complete || MUTANT("scheduler.absence_ignored")) return;
  std::ranges::sort(reported);
  for (const std::string& id : p_.copy.OnNode(node)) {
    if (std::ranges::binary_search(reported, id)) continue;
    const WorkloadRecord& record = *p_.copy.Find<WorkloadRecord>(id);
    const bool ended = record.workload.phase == WorkloadPhase::kCompleted ||
                       record.workload.phase == WorkloadPhase::kFailed ||
                       record.workload.phase == WorkloadPhase::kStopped;
    if (!(IsSettled(record) && ended)) MarkForCheck(id);
  }
}

void Reconciler::OnUsage(const std::string& workload, const contract::WorkloadUsage& usage) {
  At(workload).usage = usage;
}

void Reconciler::EndWaits() {
  for (const auto& [id, since] : p_.placements.state().waiting) {
    At(id).try_now = true;
    MarkDirty(id);
  }
}

void Reconciler::OnRequested(const std::string& workload) {
  Entry& entry = At(workload);
  entry.launched.reset();
  entry.launches = 0;
  entry.delete_sent.reset();
  entry.check = true;
  MarkDirty(workload);
}

void Reconciler::Forget(const std::string& workload) {
  ClearTimer(workload);
  state_.entries.erase(workload);
  p_.placements.Forget(workload);
}

void Reconciler::EndWaitsOfRefused(const std::string& node) {
  for (const auto& [id, since] : p_.placements.state().waiting) {
    const WorkloadRecord* record = p_.drafts.Find<WorkloadRecord>(id);
    if (record == nullptr || !record->refusals.contains(node)) continue;
    At(id).try_now = true;
    MarkDirty(id);
  }
}

// --- deciding

void Reconciler::Run(StepContext& ctx) {
  while (!state_.timers.empty() && state_.timers.begin()->first <= ctx.now.mono) {
    const std::string id = state_.timers.begin()->second;
    ClearTimer(id);
    MarkForCheck(id);
    if (p_.placements.state().waiting.contains(id)) At(id).try_now = true;
  }
  for (const std::string& id : std::exchange(state_.dirty, {})) {
    // A busy one is looked at again when its commit has ended.
    if (!p_.drafts.Busy(WorkloadObject(id))) Decide(id, ctx);
  }
}

void Reconciler::Decide(const std::string& id, StepContext& ctx) {
  const WorkloadRecord* record = p_.drafts.Find<WorkloadRecord>(id);
  if (record == nullptr) return Forget(id);
  ClearTimer(id);
  const model::Workload& workload = record->workload;
  const std::string& node = workload.assigned_node;
  if (workload.desired == DesiredState::kDeleted && node.empty()) {
    return Finalize(id, Reason::kDeleted, ctx);
  }
  if (InBackoff(id, *record, ctx.now)) return;
  if (node.empty()) return DecideWithoutNode(id, *record, ctx);
  const bool available = p_.health.Available(node) || MUTANT("scheduler.no_failover");
  if (!available) {
    const bool ended = workload.phase == WorkloadPhase::kCompleted || workload.phase == WorkloadPhase::kFailed;
    if (!ended || !IsSettled(*record)) LeaveNode(id, *record, ctx);
    return;
  }
  p_.placements.Forget(id);
  At(id).try_now = false;
  if (p_.calls.Has(node, id)) return;  // the answer decides
  if (IsSettled(*record) && !At(id).check) return WatchSettled(id, *record, ctx);
  CallAgent(id, *record, CallKind::kStatus);
}

void Reconciler::DecideWithoutNode(const std::string& id, const WorkloadRecord& record, StepContext& ctx) {
  if (record.workload.desired == DesiredState::kStopped) {
    if (record.workload.phase != WorkloadPhase::kStopped) {
      p_.transitions.SetStopped(id, ActualState::kStopped, ctx);
    }
    return p_.placements.Forget(id);
  }
  if (IsSettled(record)) return;
  WantNode(id, record, ctx.now);
}

// A refusal that changes nothing leaves the back-off as it is.
void Reconciler::WantNode(const std::string& id, const WorkloadRecord& record, Now now) {
  At(id).try_now = false;
  const std::optional<MonoTime> retry = RetryAt(id, record, now);
  MonoTime next = retry && *retry > now.mono ? *retry : now.mono + p_.config.retry_cap;
  if (const auto preempt = p_.placements.PreemptAt(id, now)) next = std::min(next, *preempt);
  SetTimer(id, next);
  p_.placements.Want(id);
}

// Its node is not available.
void Reconciler::LeaveNode(const std::string& id, const WorkloadRecord& record, StepContext& ctx) {
  switch (record.workload.desired) {
    case DesiredState::kDeleted:
      PROBE("scheduler.deleted_on_dead_node");
      return Finalize(id, Reason::kDeletedWithNode, ctx);
    case DesiredState::kStopped:
      PROBE("scheduler.stopped_on_dead_node");
      return p_.transitions.Unassign(id, Action::kReschedule, Reason::kNodeUnavailable, record.workload.assigned_node,
                                     ctx);
    case DesiredState::kRunning: WantNode(id, record, ctx.now);
  }
}

// It is looked at again when its record can be removed for good.
void Reconciler::Finalize(const std::string& id, Reason reason, StepContext& ctx) {
  if (!p_.drafts.MayComeYet(WorkloadObject(id))) return p_.transitions.Finalize(id, reason, ctx);
  At(id).check = true;
}

// When its back-off ends, by the clock that does not jump.
std::optional<MonoTime> Reconciler::RetryAt(const std::string& id, const WorkloadRecord& record, Now now) {
  const auto& next = record.retry.next_retry_at;
  if (!next) return std::nullopt;
  Entry& entry = At(id);
  if (!entry.retry_at || entry.retry_at->wall != *next) {
    const Duration left = std::clamp<Duration>(*next - now.wall, Duration::zero(), p_.config.retry_cap);
    entry.retry_at = Anchor{.wall = *next, .mono = now.mono + left};
  }
  return entry.retry_at->mono;
}

// Sets the timer for its end. A wait for a node ends early if a node or room came, or when others may be evicted; at
// its longest it has no moment of its own.
bool Reconciler::InBackoff(const std::string& id, const WorkloadRecord& record, Now now) {
  Entry& entry = At(id);
  const bool waits = record.waits > 0;
  const std::optional<MonoTime> retry = RetryAt(id, record, now);
  if ((waits && entry.try_now) || (!retry && !(waits && p_.placements.state().waiting.contains(id)))) return false;
  if (retry && *retry <= now.mono) return false;
  if (waits) p_.placements.Await(id, now.mono);
  MonoTime until = retry.value_or(now.mono + p_.config.retry_cap);
  if (const auto preempt = p_.placements.PreemptAt(id, now)) until = std::min(until, *preempt);
  SetTimer(id, until);
  return true;
}

// It is as it should be; attempts are forgotten after a while.
void Reconciler::WatchSettled(const std::string& id, const WorkloadRecord& record, StepContext& ctx) {
  if (record.workload.phase != WorkloadPhase::kRunning || record.retry.attempts == 0 || !record.running_since) return;
  Entry& entry = At(id);
  if (!entry.running_since || entry.running_since->wall != *record.running_since) {
    const Duration age =
        std::clamp<Duration>(ctx.now.wall - *record.running_since, Duration::zero(), p_.config.retry_reset);
    entry.running_since = Anchor{.wall = *record.running_since, .mono = ctx.now.mono - age};
  }
  const MonoTime at = entry.running_since->mono + p_.config.retry_reset;
  if (at > ctx.now.mono) return SetTimer(id, at);
  p_.transitions.ResetAttempts(id, ctx);
}

// --- calls

void Reconciler::CallAgent(const std::string& id, const WorkloadRecord& record, CallKind kind) {
  if (kind == CallKind::kStatus) At(id).check = false;
  p_.calls.Enqueue({.kind = kind,
                    .node = record.workload.assigned_node,
                    .workload = id,
                    .sequence = record.stamp.sequence,
                    .revision = record.agent_revision,
                    .run = record.workload.desired == DesiredState::kRunning && !record.evict});
}

// Nothing if the call has no purpose any more. What changes something on a node is called from durable records alone.
std::optional<contract::AgentRequest> Reconciler::RequestOf(const AgentCall& call) const {
  const NodeRecord* node = p_.copy.Find<NodeRecord>(call.node);
  if (node == nullptr) return std::nullopt;
  if (call.kind == CallKind::kList) return contract::ListOnAgent{};
  const WorkloadRecord* record = p_.copy.Find<WorkloadRecord>(call.workload);
  if (record == nullptr || record->workload.assigned_node != call.node || record->stamp.sequence != call.sequence) {
    return std::nullopt;
  }
  if (call.kind == CallKind::kStatus) return contract::GetStatusOnAgent{call.workload};
  if (p_.drafts.Busy(WorkloadObject(call.workload)) && !MUTANT("scheduler.calls_before_commit")) return std::nullopt;
  if (call.kind == CallKind::kDelete) {
    return contract::DeleteOnAgent{.workload = call.workload,
                                   .grace = record->evict_grace.value_or(record->workload.spec.grace),
                                   .stamp = StampOf(*record, *node)};
  }
  return ApplyRequestOf(*record, *node);
}

void Reconciler::Dispatch(StepContext& ctx) {
  while (auto call = p_.calls.Next()) {
    std::optional<contract::AgentRequest> request;
    if (call->kind == CallKind::kOrphan) {
      const NodeRecord* node = p_.copy.Find<NodeRecord>(call->node);
      const WorkloadRecord* record = p_.drafts.Find<WorkloadRecord>(call->workload);
      const WorkloadRecord* stored = p_.copy.Find<WorkloadRecord>(call->workload);
      const bool owned = (record != nullptr && record->workload.assigned_node == call->node) ||
                         (stored != nullptr && stored->workload.assigned_node == call->node);
      if (node != nullptr && !owned) {
        request = contract::DeleteOnAgent{.workload = call->workload,
                                          .grace = record == nullptr ? 30s : record->workload.spec.grace,
                                          .stamp = {.epoch = node->facts.native ? node->epoch : 0,
                                                    .sequence = node->facts.native ? call->sequence : 0}};
      }
    } else {
      request = RequestOf(*call);
    }
    if (!request) {
      PROBE("scheduler.call_without_purpose");
      p_.calls.Drop(*call);
      if (!call->workload.empty()) MarkForCheck(call->workload);
      continue;
    }
    p_.calls.Send(*call, *std::move(request), p_.copy.Find<NodeRecord>(call->node)->facts.endpoint, ctx);
  }
}

// --- time

std::optional<MonoTime> Reconciler::LaunchedAt(const std::string& id, const WorkloadRecord& record, Now now) {
  Entry& entry = At(id);
  if (entry.launched) return entry.launched->mono;
  if (!record.launched_at) return std::nullopt;
  if (!entry.launched_at || entry.launched_at->wall != *record.launched_at) {
    const Duration age = std::max<Duration>(now.wall - *record.launched_at, Duration::zero());
    entry.launched_at = Anchor{.wall = *record.launched_at, .mono = now.mono - age};
  }
  return entry.launched_at->mono;
}

bool Reconciler::InGrace(const std::string& id, const WorkloadRecord& record, Now now) {
  const auto launched = LaunchedAt(id, record, now);
  return launched && now.mono - *launched < p_.config.missing_grace && !MUTANT("scheduler.no_grace");
}

// When an accepted launch that is not stored yet was; it is stored with what follows.
std::optional<WallTime> Reconciler::TakeLaunch(const std::string& id) {
  Entry& entry = At(id);
  if (!entry.launched) return std::nullopt;
  entry.launched_at = entry.launched;
  const WallTime at = entry.launched->wall;
  entry.launched.reset();
  return at;
}

// Its state is read again soon: every second while the launch is recent, otherwise with the passes.
void Reconciler::Poll(const std::string& id, StepContext& ctx) {
  const WorkloadRecord* record = p_.drafts.Find<WorkloadRecord>(id);
  const bool soon = record != nullptr && InGrace(id, *record, ctx.now);
  const Duration pause = soon ? std::min<Duration>(1s, p_.config.reconcile_interval) : p_.config.reconcile_interval;
  SetTimer(id, ctx.now.mono + pause);
}

void Reconciler::SetTimer(const std::string& id, MonoTime at) {
  ClearTimer(id);
  At(id).timer = at;
  state_.timers.emplace(at, id);
}

void Reconciler::ClearTimer(const std::string& id) {
  const auto found = state_.entries.find(id);
  if (found == state_.entries.end() || !found->second.timer) return;
  state_.timers.erase({*found->second.timer, id});
  found->second.timer.reset();
}

std::optional<MonoTime> Reconciler::NextWake() const {
  if (!state_.dirty.empty() || !p_.calls.idle()) return MonoTime{};
  if (state_.timers.empty()) return std::nullopt;
  return state_.timers.begin()->first;
}

const Reconciler::Entry* Reconciler::Find(std::string_view workload) const {
  const auto found = state_.entries.find(workload);
  return found == state_.entries.end() ? nullptr : &found->second;
}

void Reconciler::CheckInvariants() const {
  size_t timers = 0;
  for (const auto& [id, entry] : state_.entries) {
    timers += entry.timer.has_value();
    MUSTER_CHECK(!entry.timer || state_.timers.contains({*entry.timer, id}), "the timer of {} is lost", id);
  }
  MUSTER_CHECK(timers == state_.timers.size(), "{} timers for {} entries that have one", state_.timers.size(), timers);
}

}  // namespace muster::scheduler
