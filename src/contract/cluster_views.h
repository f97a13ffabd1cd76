// What a scheduler shows: nodes, workloads, sets, quotas, events, decisions. Parts of contract/cluster.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/store.h"
#include "model/node.h"
#include "model/resources.h"
#include "model/workload.h"

namespace muster::contract {

struct NodeView {
  std::string node;
  model::NodeStatus status = model::NodeStatus::kUnknown;
  std::string status_reason;
  std::string status_updated_by;  // register, heartbeat, monitor, reconciler
  WallTime status_updated_at;
  std::optional<WallTime> last_heartbeat;
  std::string endpoint;
  std::string agent_version;
  model::Resources total;
  model::Resources reserved;   // requests of the workloads assigned there
  model::Resources used;       // last reported
  model::Resources available;  // total - max(reserved, used)
  std::vector<model::WorkloadType> supported_types;
  std::map<std::string, std::string> labels;
  std::vector<model::Taint> taints;
  bool cordoned = false;
  bool draining = false;  // cordoned, and its workloads are being moved away
  std::string drain_reason;
  std::string drain_instruction;
  std::optional<WallTime> drain_deadline;
  uint64_t last_order = 0;  // the last numbered order that it was given
  bool native = false;
  uint64_t epoch = 0;
  int32_t workloads = 0;     // assigned there
  int32_t orphans_held = 0;  // workloads that the store does not hold, left alone until AcceptNode
  Revision revision = 0;
  std::optional<WallTime> stale_since;  // in the answer to GetNode

  MUSTER_FIELDS(NodeView, node, status, status_reason, status_updated_by, status_updated_at, last_heartbeat, endpoint,
                agent_version, total, reserved, used, available, supported_types, labels, taints, cordoned, draining,
                drain_reason, drain_instruction, drain_deadline, last_order, native, epoch, workloads, orphans_held,
                revision, stale_since)
};

struct WorkloadView {
  std::string workload;
  std::string set;
  std::string tenant;
  model::WorkloadType type = model::WorkloadType::kUnspecified;
  model::DesiredState desired = model::DesiredState::kRunning;
  model::WorkloadPhase phase = model::WorkloadPhase::kPending;
  std::string node;  // empty: none
  std::string revision;
  ActualState actual = ActualState::kUnknown;
  int32_t attempts = 0;
  int32_t max_attempts = 0;
  std::optional<WallTime> next_retry_at;
  std::string reason;   // stable name: "fit.memory", "agent.apply_failed", "node.unavailable"; empty: nothing to say
  std::string message;  // the sentence
  std::optional<WallTime> last_transition;
  bool retryable = true;
  std::optional<int32_t> exit_code;
  std::optional<WorkloadUsage> usage;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> metadata;
  model::WorkloadTemplate spec;
  WallTime created_at;
  WallTime updated_at;
  Stamp stamp;
  Revision store_revision = 0;
  std::optional<WallTime> stale_since;  // in the answer to GetWorkload

  MUSTER_FIELDS(WorkloadView, workload, set, tenant, type, desired, phase, node, revision, actual, attempts,
                max_attempts, next_retry_at, reason, message, last_transition, retryable, exit_code, usage, labels,
                metadata, spec, created_at, updated_at, stamp, store_revision, stale_since)
};

// Whether the message of a workload in this phase, with this reason, tells of a failure: what clients of persys read as
// `failure_reason`. That of a workload that runs, or is on its way as it should be, does not.
bool TellsOfFailure(model::WorkloadPhase phase, std::string_view reason);

struct SetView {
  model::WorkloadSpec spec;
  std::string revision;  // of the template
  int32_t members = 0;   // that exist, surge included
  int32_t current = 0;   // of them with this revision
  int32_t running = 0;
  int32_t available = 0;  // running with this revision
  int32_t completed = 0;  // of a job
  int32_t failed = 0;
  bool deleting = false;
  WallTime created_at;
  Revision store_revision = 0;

  MUSTER_FIELDS(SetView, spec, revision, members, current, running, available, completed, failed, deleting, created_at,
                store_revision)
};

struct QuotaView {
  model::Quota quota;
  model::Resources used;
  int64_t workloads = 0;

  MUSTER_FIELDS(QuotaView, quota, used, workloads)
};

// A stored event of a workload or node: WorkloadScheduled, WorkloadFailed, NodeLost, RetryTriggered, Rescheduled,
// DriftDetected, and ours.
struct EventView {
  std::string id;
  std::string type;
  std::string workload;
  std::string node;
  std::string reason;
  WallTime at;
  std::map<std::string, std::string> details;

  MUSTER_FIELDS(EventView, id, type, workload, node, reason, at, details)
};

// What the scheduler decided, as it decides it: every placement, failover, retry and refusal.
enum class DecisionKind : uint8_t {
  kPlaced,
  kRefused,
  kFailedOver,
  kRetry,
  kGaveUp,
  kEvicted,
  kRolledOut,
  kDeleted,
  kNodeLost,
  kNodeReady,
  kOrphanDeleted,
  kOrphansHeld,
};
std::string_view DecisionKindName(DecisionKind kind);  // "placed", "refused", ...
struct Decision {
  DecisionKind kind = DecisionKind::kPlaced;
  WallTime at;
  std::string workload;
  std::string node;
  std::string reason;   // stable name
  std::string message;  // the sentence with its figures

  MUSTER_FIELDS(Decision, kind, at, workload, node, reason, message)
};

enum class ObjectKind : uint8_t { kWorkload, kSet, kQuota, kNode };
std::string_view ObjectKindName(ObjectKind kind);  // "workload", "set", "quota", "node"

// A change of a watched object at a revision; without a view it was deleted.
struct ObjectChanged {
  ObjectKind kind = ObjectKind::kWorkload;
  std::string name;
  Revision revision = 0;
  std::variant<std::monostate, NodeView, WorkloadView, SetView> now;

  MUSTER_FIELDS(ObjectChanged, kind, name, revision, now)
};
using ClusterChange = std::variant<ObjectChanged, Decision>;

// --- answers. `stale_since` is set while the store is out of reach.

struct NodesListed {
  std::vector<NodeView> nodes;
  std::string next;  // token of the next page; empty: this was the last
  Revision revision = 0;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(NodesListed, nodes, next, revision, stale_since)
};
struct WorkloadsListed {
  std::vector<WorkloadView> workloads;
  std::string next;
  Revision revision = 0;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(WorkloadsListed, workloads, next, revision, stale_since)
};
struct SetsListed {
  std::vector<SetView> sets;
  std::string next;
  Revision revision = 0;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(SetsListed, sets, next, revision, stale_since)
};
struct QuotasListed {
  std::vector<QuotaView> quotas;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(QuotasListed, quotas, stale_since)
};
struct EventsListed {
  std::vector<EventView> events;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(EventsListed, events, stale_since)
};
struct Summary {
  int32_t total_nodes = 0;
  int32_t ready_nodes = 0;
  int32_t not_ready_nodes = 0;
  int32_t total_workloads = 0;
  int32_t running_workloads = 0;
  int32_t pending_workloads = 0;  // Pending, Scheduled, Updating, RetryPending, Unknown
  int32_t failed_workloads = 0;
  int32_t deleted_workloads = 0;
  WallTime generated_at;
  bool leading = true;
  std::string leader;  // address of the scheduler that leads; empty: unknown
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(Summary, total_nodes, ready_nodes, not_ready_nodes, total_workloads, running_workloads,
                pending_workloads, failed_workloads, deleted_workloads, generated_at, leading, leader, stale_since)
};

struct NodeRefusal {
  std::string node;
  std::string reason;  // stable name of the first filter that refuses; empty: it fits
  std::string detail;  // with the figures

  MUSTER_FIELDS(NodeRefusal, node, reason, detail)
};
struct Explanation {
  WorkloadView workload;
  std::vector<std::string> story;  // sentences, in the order of time
  std::vector<NodeRefusal> nodes;  // every node, by id
  std::vector<EventView> events;
  std::optional<WallTime> stale_since;

  MUSTER_FIELDS(Explanation, workload, story, nodes, events, stale_since)
};

}  // namespace muster::contract
