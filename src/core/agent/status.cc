// What the agent reports of a workload.
#include <fmt/format.h>

#include "base/probe.h"
#include "core/agent/agent.h"

namespace muster::agent {
namespace {

using contract::ActualState;

// "exit code 1", "signal 9", "killed: out of memory", or the runtime's words.
std::string HowItEnded(const contract::Run& run) {
  constexpr int32_t kSignalBase = 128;
  std::string text;
  if (run.oom_killed) {
    text = "killed: out of memory";
  } else if (!run.message.empty()) {
    text = run.message;
  } else if (!run.exit_code) {
    text = "it ended; its exit code is not known";
  } else if (*run.exit_code > kSignalBase) {
    text = fmt::format("signal {}", *run.exit_code - kSignalBase);
  } else {
    text = fmt::format("exit code {}", *run.exit_code);
  }
  return text;
}

std::string_view LastLine(std::string_view output) {
  while (output.ends_with('\n')) output.remove_suffix(1);
  const size_t newline = output.rfind('\n');
  return newline == std::string_view::npos ? output : output.substr(newline + 1);
}

std::string FailureText(const contract::Run& run) {
  constexpr size_t kLongestLine = 200;
  std::string text = HowItEnded(run);
  if (const std::string_view line = LastLine(run.output); !line.empty()) {
    text += fmt::format("; its last output: {}", line.substr(0, kLongestLine));
  }
  return text;
}

}  // namespace

bool Core::RestartsAfter(const Workload& workload) {
  switch (workload.row.wanted.spec.restart) {
    case model::RestartPolicy::kNever: return false;
    case model::RestartPolicy::kOnFailure: return workload.run->exit_code != 0;
    case model::RestartPolicy::kAlways: return true;
  }
  return true;
}

ActualState Core::ActualOf(const Workload& workload) const {
  const Row& row = workload.row;
  const Runtime* const runtime = FindRuntime(row.wanted.spec.type);
  if (row.deleting) return ActualState::kPending;
  if (runtime == nullptr) return ActualState::kFailed;
  if (!runtime->listed || !runtime->status.ok() || workload.uncertain) return ActualState::kUnknown;
  const bool running = workload.run && workload.run->running;
  if (!row.wanted.run)
    return running || workload.operation == Operation::kStop ? ActualState::kPending : ActualState::kStopped;
  if (row.launch_due || workload.operation != Operation::kNone) return ActualState::kPending;
  if (running) return ActualState::kRunning;
  if (!workload.run || workload.run->launch < row.launch) return ActualState::kPending;
  if (row.given_up) return ActualState::kFailed;
  if (row.stray || !RestartsAfter(workload)) {
    if (MUTANT("agent.ended_job_runs")) return ActualState::kRunning;
    return workload.run->exit_code == 0 ? ActualState::kStopped : ActualState::kFailed;
  }
  return ActualState::kPending;
}

contract::WorkloadStatus Core::StatusOf(const std::string& id, const Workload& workload) const {
  const Row& row = workload.row;
  contract::WorkloadStatus status{.workload = id,
                                  .type = row.wanted.spec.type,
                                  .revision = row.wanted.revision,
                                  .wanted_running = row.wanted.run && !row.deleting,
                                  .actual = ActualOf(workload),
                                  .restarts = row.restarts,
                                  .created_at = row.created_at,
                                  .updated_at = row.updated_at,
                                  .stamp = row.wanted.stamp};
  const Runtime* const runtime = FindRuntime(row.wanted.spec.type);
  const bool ended = workload.run && !workload.run->running && workload.run->launch == row.launch;
  if (workload.run) status.metadata = workload.run->metadata;
  if (row.deleting) {
    status.message = "it is being deleted";
  } else if (runtime == nullptr) {
    status.message = fmt::format("runtime not available: {}", model::WorkloadTypeName(row.wanted.spec.type));
  } else if (!runtime->listed || !runtime->status.ok()) {
    status.message = fmt::format("the {} runtime does not answer: {}", model::WorkloadTypeName(runtime->type),
                                 runtime->status.message());
  } else if (status.actual == ActualState::kFailed && ended) {
    status.message = FailureText(*workload.run);
    if (row.given_up) status.message = fmt::format("gave up after {} restarts: {}", row.restarts, status.message);
  } else if (status.actual == ActualState::kPending && ended && workload.restart_at) {
    status.message = fmt::format("waits for restart {} of {}: {}", row.failures + 1, state_.config.max_restarts,
                                 FailureText(*workload.run));
  } else if (row.stray) {
    status.message = "the runtime has it, the agent's state does not";
  }
  if (ended && (status.actual == ActualState::kFailed || status.actual == ActualState::kStopped)) {
    status.exit_code = workload.run->exit_code;
  }
  if (status.actual == ActualState::kFailed) {
    status.metadata["failure_reason"] = ended && workload.run->oom_killed ? "OOM_KILLED"
                                        : runtime == nullptr              ? "RUNTIME_UNHEALTHY"
                                                                          : "RUNTIME_ERROR";
    status.metadata["last_error"] = status.message;
    if (ended && !workload.run->output.empty()) status.metadata["last_output"] = workload.run->output;
  }
  if (workload.action != 0) status.metadata["task_id"] = fmt::format("task-{}", workload.action);
  if (workload.run && workload.run->running) status.usage = workload.usage;
  return status;
}

}  // namespace muster::agent
