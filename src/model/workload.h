// Workload: what a user wants to run, what is wanted of it, and what is known of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/node.h"
#include "model/penalty.h"
#include "model/requirement.h"
#include "model/resources.h"

namespace muster::model {

enum class DesiredState : uint8_t { kRunning, kStopped, kDeleted };
std::string_view DesiredStateName(DesiredState state);
// Case-insensitive; "stop" and "delete" are older spellings.
Result<DesiredState> ParseDesiredState(std::string_view name);

enum class WorkloadPhase : uint8_t {
  kPending,
  kScheduled,
  kUpdating,
  kRetryPending,
  kRunning,
  kStopped,
  kCompleted,
  kFailed,
  kUnknown,
  kDeleting,
  kDeleted,
};
std::string_view WorkloadPhaseName(WorkloadPhase phase);
Result<WorkloadPhase> ParseWorkloadPhase(std::string_view name);

enum class RestartPolicy : uint8_t { kAlways, kOnFailure, kNever };
std::string_view RestartPolicyName(RestartPolicy policy);  // "always", "on-failure", "never"
// "no" and "unless-stopped" are the container world's spellings of never and always.
Result<RestartPolicy> ParseRestartPolicy(std::string_view name);

struct Workload {
  std::string id;
  std::string tenant;
  WorkloadType type = WorkloadType::kUnspecified;
  std::string revision;
  int32_t replicas = 1;
  int32_t priority = 0;
  PenaltyBucket interruption = PenaltyBucket::kZero;
  PenaltyBucket reclamation = PenaltyBucket::kZero;
  Resources request;
  std::vector<Requirement> requirements;
  std::vector<Spread> spread;
  std::map<std::string, std::string> labels;
  RestartPolicy restart = RestartPolicy::kAlways;
  DesiredState desired = DesiredState::kRunning;
  WorkloadPhase phase = WorkloadPhase::kPending;
  std::string assigned_node;
  WallTime created_at;

  bool operator==(const Workload&) const = default;
};

// Id and type given, at least one replica, valid requirements and spreads. The message names the field.
Status CheckStructure(const Workload& workload);

}  // namespace muster::model
