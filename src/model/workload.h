// Workload: what a user wants to run, what is wanted of it, and what is known of it. WorkloadSpec and Quota: what a
// workload file declares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/resources.h"
#include "model/workload_template.h"

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

// One workload as the cluster knows it: declared alone, or a member of a set.
struct Workload {
  std::string id;
  std::string set;  // the set or job it is a member of; empty: none
  std::string tenant;
  std::string revision;
  std::map<std::string, std::string> labels;
  WorkloadTemplate spec;
  DesiredState desired = DesiredState::kRunning;
  WorkloadPhase phase = WorkloadPhase::kPending;
  std::string assigned_node;
  WallTime created_at;

  bool operator==(const Workload&) const = default;
  MUSTER_FIELDS(Workload, id, set, tenant, revision, labels, spec, desired, phase, assigned_node, created_at)
};

// A valid id and a valid template. The message names the workload and the field.
Status CheckStructure(const Workload& workload);

// Ids of workloads, sets and tenants: [A-Za-z0-9][A-Za-z0-9._-]{0,252}.
bool IsWorkloadId(std::string_view id);

enum class WorkloadKind : uint8_t { kWorkload, kSet, kJob };
std::string_view WorkloadKindName(WorkloadKind kind);  // "Workload", "Set", "Job"

// A number of members, or a percentage of them.
struct MemberCount {
  int32_t amount = 0;
  bool percent = false;

  // Of `total` members; a part counts as a whole one.
  int32_t Of(int32_t total) const;
  bool operator==(const MemberCount&) const = default;
  MUSTER_FIELDS(MemberCount, amount, percent)
};
// "3" or "25%"; at most 100%.
Result<MemberCount> ParseMemberCount(std::string_view text);
std::string FormatMemberCount(MemberCount count);

// A workload, set or job as a file declares it.
struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::kWorkload;
  std::string name;
  std::string tenant;
  std::map<std::string, std::string> labels;
  int32_t replicas = 1;            // members of a set; completions of a job
  MemberCount max_unavailable{1};  // while a new template is rolled out
  MemberCount max_surge;
  MemberCount min_available;  // evictions keep so many running
  WorkloadTemplate spec;

  bool operator==(const WorkloadSpec&) const = default;
  MUSTER_FIELDS(WorkloadSpec, kind, name, tenant, labels, replicas, max_unavailable, max_surge, min_available, spec)
};

// "<name>-<i>", from 0; a plain workload has its name as its id.
std::string MemberId(const WorkloadSpec& spec, int32_t index);

// What a tenant may have at most. An absent dimension, and a rate of 0, is not limited.
struct Quota {
  std::string tenant;
  Resources limits;              // cpu, memory, disk, gpu
  int64_t workloads = -1;        // -1: not limited
  int64_t applies_milli_hz = 0;  // thousandths of an apply per second; 0: not limited
  int32_t burst = 0;

  bool operator==(const Quota&) const = default;
  MUSTER_FIELDS(Quota, tenant, limits, workloads, applies_milli_hz, burst)
};

}  // namespace muster::model
