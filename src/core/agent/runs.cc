// From what is wanted to what runs: the calls to the runtimes, their replies and reports, restarts.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/probe.h"
#include "core/agent/agent.h"

namespace muster::agent {
namespace {

// `base` doubled `times` times, at most `cap`.
Duration Doubled(Duration base, int32_t times, Duration cap) {
  for (int32_t i = 0; i < times && base < cap; ++i) base *= 2;
  return std::min(base, cap);
}

// After these a call may have had its effect.
bool OutcomeUnknown(Code code) {
  return code == Code::kDeadlineExceeded || code == Code::kUnavailable || code == Code::kUnknown ||
         code == Code::kCancelled;
}

}  // namespace

void Core::Advance(const std::string& id, Context& ctx) {
  Workload* const workload = Find(id);
  if (workload == nullptr || workload->operation != Operation::kNone || workload->uncertain) return;
  const Runtime* const runtime = FindRuntime(workload->row.wanted.spec.type);
  const bool known = (runtime != nullptr && runtime->listed) || MUTANT("agent.acts_before_it_has_seen");
  if (workload->row.deleting) {
    if (runtime == nullptr || known) AdvanceDeletion(id, *workload, ctx);
  } else if (known && !workload->row.stray) {
    AdvanceRunning(id, *workload, ctx);
  }
}

void Core::AdvanceDeletion(const std::string& id, Workload& workload, Context& ctx) {
  const bool running = workload.run && workload.run->running;
  if (running && !MUTANT("agent.removes_what_runs")) {
    CallRuntime(id, workload, Operation::kStop, contract::StopRun{.workload = id, .grace = workload.row.delete_grace},
                workload.row.delete_grace + state_.config.stop_slack, ctx);
    return;
  }
  if (workload.run) {
    CallRuntime(id, workload, Operation::kRemove, contract::RemoveRun{.workload = id}, state_.config.start_timeout,
                ctx);
    return;
  }
  MoveAction(id, workload, ActionState::kCompleted, "", ctx);
  if (workload.row.wanted.stamp.epoch > 0 && !MUTANT("agent.forgets_deleted")) {
    const Deleted gone{.stamp = workload.row.wanted.stamp, .at = ctx.now.wall};
    state_.deleted[id] = gone;
    ctx.writes.push_back(kDeleted.Put(id, gone));
    if (!state_.prune_at) state_.prune_at = ctx.now.mono + state_.config.deleted_memory;
  }
  ctx.changed.insert(id);
  state_.workloads.erase(id);
}

void Core::AdvanceRunning(const std::string& id, Workload& workload, Context& ctx) {
  Row& row = workload.row;
  const bool running = workload.run && workload.run->running;
  const bool replaced = row.launch_due && !MUTANT("agent.new_revision_beside_old");
  if (running && (!row.wanted.run || replaced)) {
    CallRuntime(id, workload, Operation::kStop, contract::StopRun{.workload = id, .grace = row.wanted.spec.grace},
                row.wanted.spec.grace + state_.config.stop_slack, ctx);
    return;
  }
  if (!row.wanted.run) {
    MoveAction(id, workload, ActionState::kCompleted, "", ctx);
    return;
  }
  if (row.launch_due) {
    ++row.launch;
    row.launch_due = false;
    Launch(id, workload, ctx);
    return;
  }
  if (running) {
    MoveAction(id, workload, ActionState::kCompleted, "", ctx);
    return;
  }
  if (!workload.run || workload.run->launch < row.launch) {
    // Its number is durable, and the runtime never got it, or it was lost on the way.
    PROBE("agent.launch_asked_again");
    Launch(id, workload, ctx);
    return;
  }
  if (!workload.restart_at || *workload.restart_at > ctx.now.mono) return;
  ++row.restarts;
  ++row.failures;
  ++row.launch;
  ++state_.restarts;
  BeginAction(id, workload, ActionKind::kRestart, ctx);
  Launch(id, workload, ctx);
}

void Core::Launch(const std::string& id, Workload& workload, Context& ctx) {
  const Row& row = workload.row;
  if (!MUTANT("agent.launch_not_durable")) ctx.changed.insert(id);
  workload.restart_at.reset();
  workload.usage.reset();
  CallRuntime(id, workload, Operation::kStart,
              contract::StartRun{.workload = id,
                                 .launch = row.launch,
                                 .revision = row.wanted.revision,
                                 .spec = row.wanted.spec,
                                 .labels = row.wanted.labels,
                                 .tenant = row.wanted.tenant},
              state_.config.start_timeout, ctx);
}

void Core::CallRuntime(const std::string& id, Workload& workload, Operation operation, contract::RuntimeRequest request,
                       Duration timeout, Context& ctx) {
  MUSTER_CHECK(workload.operation == Operation::kNone, "{} has a call open", id);
  workload.operation = operation;
  workload.last_call = ++state_.last_call;
  state_.operations[workload.last_call] = id;
  MoveAction(id, workload, ActionState::kRunning, "", ctx);
  ctx.effects.push_back(Call{.id = workload.last_call,
                             .to = std::string(model::WorkloadTypeName(workload.row.wanted.spec.type)),
                             .request = std::move(request),
                             .timeout = timeout});
}

void Core::ListRuntimes(Context& ctx) {
  for (Runtime& runtime : state_.runtimes) {
    if (runtime.list_call != 0 || runtime.list_at > ctx.now.mono) continue;
    runtime.list_call = ++state_.last_call;
    ctx.effects.push_back(Call{.id = runtime.list_call,
                               .to = std::string(model::WorkloadTypeName(runtime.type)),
                               .request = contract::ListRuns{},
                               .timeout = state_.config.list_timeout});
  }
}

void Core::OnCallDone(const CallDone& done, Context& ctx) {
  const auto list = std::ranges::find(state_.runtimes, done.id, &Runtime::list_call);
  if (list != state_.runtimes.end()) {
    OnListed(*list, done, ctx);
    return;
  }
  const auto open = state_.operations.find(done.id);
  MUSTER_CHECK(open != state_.operations.end(), "the host ended call {}, which is not open", done.id);
  const std::string id = open->second;
  state_.operations.erase(open);
  Workload* const workload = Find(id);
  MUSTER_CHECK(workload != nullptr, "{} has a call open and no row", id);
  OnOperationDone(id, *workload, done, ctx);
  ctx.touched.insert(id);
}

void Core::OnOperationDone(const std::string& id, Workload& workload, const CallDone& done, Context& ctx) {
  const Operation operation = std::exchange(workload.operation, Operation::kNone);
  const contract::Run refused{.workload = id,
                              .launch = workload.row.launch,
                              .revision = workload.row.wanted.revision,
                              .ended_at = ctx.now.wall,
                              .message = done.status.message()};
  if (!done.status.ok() && operation == Operation::kStart && !OutcomeUnknown(done.status.code())) {
    PROBE("agent.start_refused");
    TakeRun(id, workload, refused, ctx);
    return;
  }
  if (!done.status.ok()) {
    const bool believed = workload.row.deleting ? MUTANT("agent.failed_stop_is_deletion")
                                                : workload.row.launch_due && MUTANT("agent.failed_stop_is_end");
    if (believed && operation == Operation::kStop && workload.run) return LoseRun(id, workload, ctx);
    LookLater(id, workload, done.status.message(), ctx);
    return;
  }
  if (operation == Operation::kRemove) workload.run.reset();
  for (const contract::Run& run : done.reply->runs) TakeRun(id, workload, run, ctx);
  if (operation == Operation::kStop && workload.run && workload.run->running) {
    PROBE("agent.stopped_without_a_run");
    LoseRun(id, workload, ctx);
  }
  const bool started = workload.run && workload.run->launch >= workload.row.launch;
  if (operation == Operation::kStart && !started) LookLater(id, workload, "it tells of no run", ctx);
}

// How a call ended is not known, or makes no sense: the next list tells. Asked for in a moment, so that a runtime that
// fails at once is not asked all the time.
void Core::LookLater(const std::string& id, Workload& workload, const std::string& why, Context& ctx) {
  PROBE("agent.outcome_unknown");
  workload.uncertain = true;
  for (Runtime& runtime : state_.runtimes) {
    if (runtime.type != workload.row.wanted.spec.type) continue;
    runtime.list_at = std::min(runtime.list_at, ctx.now.mono + state_.config.runtime_retry);
  }
  ctx.effects.push_back(Notice{"a runtime did not do its work", id, why});
}

void Core::LoseRun(const std::string& id, Workload& workload, Context& ctx) {
  contract::Run lost = *workload.run;
  lost.running = false;
  lost.ended_at = ctx.now.wall;
  lost.message = "it is gone: its runtime does not have it any more";
  TakeRun(id, workload, lost, ctx);
}

void Core::OnListed(Runtime& runtime, const CallDone& done, Context& ctx) {
  runtime.list_call = 0;
  if (runtime.status != done.status && !done.status.ok()) {
    ctx.effects.push_back(
        Notice{"a runtime does not answer", std::string(model::WorkloadTypeName(runtime.type)), done.status.message()});
  }
  runtime.status = done.status;
  if (!done.status.ok()) {
    PROBE("agent.runtime_away");
    for (const auto& [id, workload] : state_.workloads) {
      if (workload.row.wanted.spec.type == runtime.type) ctx.touched.insert(id);
    }
    runtime.pause = runtime.pause == Duration::zero() ? state_.config.runtime_retry
                                                      : std::min(2 * runtime.pause, state_.config.list_interval);
    runtime.list_at = ctx.now.mono + runtime.pause;
    return;
  }
  if (!std::exchange(runtime.listed, true) && runtime.pause > Duration::zero()) {
    PROBE("agent.runtime_came");
    ctx.effects.push_back(RuntimeCame{runtime.type});
  }
  runtime.pause = Duration::zero();
  runtime.list_at = ctx.now.mono + state_.config.list_interval;
  std::map<std::string_view, const contract::Run*> runs;
  for (const contract::Run& run : done.reply->runs) runs[run.workload] = &run;
  for (auto& [id, workload] : state_.workloads) {
    if (workload.row.wanted.spec.type != runtime.type) continue;
    const auto found = runs.find(id);
    const contract::Run* const run = found == runs.end() ? nullptr : found->second;
    if (run != nullptr) runs.erase(found);
    ctx.touched.insert(id);
    // The list may be older than what a call has done since.
    if (workload.operation != Operation::kNone || workload.last_call > done.id) continue;
    workload.uncertain = false;
    if (run != nullptr) {
      TakeRun(id, workload, *run, ctx);
    } else if (workload.run && workload.run->running) {
      PROBE("agent.run_lost");
      LoseRun(id, workload, ctx);
    } else if (workload.row.deleting) {
      workload.run.reset();
    }
  }
  for (const auto& [id, run] : runs) AddStray(runtime, *run, ctx);
}

void Core::AddStray(const Runtime& runtime, const contract::Run& run, Context& ctx) {
  if (state_.workloads.contains(run.workload)) return;  // of another type: its own runtime has it
  PROBE("agent.stray");
  Workload& workload = state_.workloads[run.workload];
  workload.row.wanted.workload = run.workload;
  workload.row.wanted.revision = run.revision;
  workload.row.wanted.spec.type = runtime.type;
  workload.row.stray = true;
  workload.row.launch = run.launch;
  workload.row.created_at = run.started_at;
  workload.run = run;
  if (state_.deleted.erase(run.workload) > 0) ctx.writes.push_back(kDeleted.Erase(run.workload));
  ctx.changed.insert(run.workload);
  ctx.touched.insert(run.workload);
  ctx.effects.push_back(Notice{"a runtime has a workload that the agent does not know", run.workload, ""});
  // The scheduler has spoken before the runtime has: what it did not list goes.
  if (state_.removes_others) BeginDelete(run.workload, workload.row.wanted.spec.grace, ctx);
}

void Core::OnRunChanged(const contract::Run& run, Context& ctx) {
  Workload* const workload = Find(run.workload);
  if (workload == nullptr) {
    PROBE("agent.report_of_unknown");
    return;
  }
  TakeRun(run.workload, *workload, run, ctx);
  ctx.touched.insert(run.workload);
}

void Core::TakeRun(const std::string& id, Workload& workload, const contract::Run& run, Context& ctx) {
  Row& row = workload.row;
  if (workload.run && run.launch < workload.run->launch) return;
  const bool same = workload.run && run.launch == workload.run->launch;
  if (same && (!workload.run->running || run == *workload.run)) return;  // an end is final
  workload.run = run;
  workload.restart_at.reset();
  if (run.launch > row.launch) {
    // A row was lost, or the state is that of a backup: the runtime knows better.
    PROBE("agent.launch_of_another_life");
    row.launch = run.launch;
    if (run.revision == row.wanted.revision && row.wanted.run) row.launch_due = false;
    ctx.changed.insert(id);
  }
  if (run.running || run.launch < row.launch) return;
  OnRunEnded(id, workload, ctx);
}

void Core::OnRunEnded(const std::string& id, Workload& workload, Context& ctx) {
  Row& row = workload.row;
  const contract::Run& run = *workload.run;
  workload.usage.reset();
  if (row.deleting || row.stray || row.launch_due || !row.wanted.run) return;
  const bool restarts = RestartsAfter(workload) || MUTANT("agent.restarts_completed");
  const bool well = run.exit_code == 0;
  MoveAction(id, workload, well ? ActionState::kCompleted : ActionState::kFailed, well ? "" : run.message, ctx);
  if (!restarts) {
    PROBE("agent.ended_for_good");
    return;
  }
  if (run.ended_at - run.started_at >= state_.config.restart_reset && run.started_at != WallTime{}) {
    PROBE("agent.count_begins_anew");
    row.failures = 0;
    ctx.changed.insert(id);
  }
  if (row.failures >= state_.config.max_restarts && !MUTANT("agent.never_gives_up")) {
    PROBE("agent.gave_up");
    row.given_up = true;
    ctx.changed.insert(id);
    ctx.effects.push_back(Notice{"a workload ended too often", id, StatusOf(id, workload).message});
    return;
  }
  if (row.given_up) return;
  workload.restart_at = ctx.now.mono + Doubled(state_.config.restart_base, row.failures, state_.config.restart_cap);
}

void Core::BeginAction(const std::string& id, Workload& workload, ActionKind kind, Context& ctx) {
  if (workload.action != 0) MoveAction(id, workload, ActionState::kFailed, "replaced by a later one", ctx);
  workload.action = ++state_.last_action;
  workload.action_kind = kind;
  ctx.effects.push_back(Acted{.number = workload.action, .workload = id, .kind = kind});
}

void Core::MoveAction(const std::string& id, Workload& workload, ActionState state, std::string error, Context& ctx) {
  if (workload.action == 0) return;
  ctx.effects.push_back(Acted{.number = workload.action,
                              .workload = id,
                              .kind = workload.action_kind,
                              .state = state,
                              .error = std::move(error)});
  if (state == ActionState::kCompleted || state == ActionState::kFailed) workload.action = 0;
}

}  // namespace muster::agent
