#include "model/workload.h"

#include <fmt/format.h>

#include "model/names.h"

namespace muster::model {
namespace {

constexpr auto kDesiredStates = std::to_array<NameRow<DesiredState>>({{DesiredState::kRunning, "Running"},
                                                                      {DesiredState::kStopped, "Stopped"},
                                                                      {DesiredState::kDeleted, "Deleted"},
                                                                      {DesiredState::kStopped, "stop"},
                                                                      {DesiredState::kDeleted, "delete"}});

constexpr auto kPhases = std::to_array<NameRow<WorkloadPhase>>({{WorkloadPhase::kPending, "Pending"},
                                                                {WorkloadPhase::kScheduled, "Scheduled"},
                                                                {WorkloadPhase::kUpdating, "Updating"},
                                                                {WorkloadPhase::kRetryPending, "RetryPending"},
                                                                {WorkloadPhase::kRunning, "Running"},
                                                                {WorkloadPhase::kStopped, "Stopped"},
                                                                {WorkloadPhase::kCompleted, "Completed"},
                                                                {WorkloadPhase::kFailed, "Failed"},
                                                                {WorkloadPhase::kUnknown, "Unknown"},
                                                                {WorkloadPhase::kDeleting, "Deleting"},
                                                                {WorkloadPhase::kDeleted, "Deleted"}});

constexpr auto kRestartPolicies = std::to_array<NameRow<RestartPolicy>>({{RestartPolicy::kAlways, "always"},
                                                                         {RestartPolicy::kOnFailure, "on-failure"},
                                                                         {RestartPolicy::kNever, "never"},
                                                                         {RestartPolicy::kNever, "no"},
                                                                         {RestartPolicy::kAlways, "unless-stopped"}});

// The first invalid item as "field[i].<what>", or nothing.
template <class T>
std::string FirstInvalid(std::string_view field, const std::vector<T>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (const Status status = Validate(items[i]); !status.ok()) {
      return fmt::format("{}[{}].{}", field, i, status.message());
    }
  }
  return "";
}

std::string FirstProblem(const Workload& workload) {
  if (workload.id.empty()) return "id: missing";
  if (workload.type == WorkloadType::kUnspecified) {
    return "type: missing; use one of process, container, compose, vm";
  }
  if (workload.replicas < 1) return fmt::format("replicas: {} is below 1", workload.replicas);
  if (std::string problem = FirstInvalid("requirements", workload.requirements); !problem.empty()) return problem;
  return FirstInvalid("spread", workload.spread);
}

}  // namespace

std::string_view DesiredStateName(DesiredState state) { return NameOf(kDesiredStates, state); }

Result<DesiredState> ParseDesiredState(std::string_view name) {
  return ParseName(kDesiredStates, "desired state", name, LetterCase::kAny);
}

std::string_view WorkloadPhaseName(WorkloadPhase phase) { return NameOf(kPhases, phase); }

Result<WorkloadPhase> ParseWorkloadPhase(std::string_view name) { return ParseName(kPhases, "workload phase", name); }

std::string_view RestartPolicyName(RestartPolicy policy) { return NameOf(kRestartPolicies, policy); }

Result<RestartPolicy> ParseRestartPolicy(std::string_view name) {
  return ParseName(kRestartPolicies, "restart policy", name);
}

Status CheckStructure(const Workload& workload) {
  const std::string problem = FirstProblem(workload);
  if (problem.empty()) return {};
  return {Code::kInvalidArgument, fmt::format("workload {}: {}", Quoted(workload.id), problem)};
}

}  // namespace muster::model
