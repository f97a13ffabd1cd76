// Records: what the scheduler keeps in the store, and how it looks there.
//
//   <prefix>/nodes/<id>            NodeRecord            <prefix>/nodes/<id>/status      the status as plain text
//   <prefix>/workloads/<id>        WorkloadRecord        <prefix>/assignments/<id>       AssignmentRecord
//   <prefix>/retries/<id>          RetryRecord           <prefix>/reconciliation/<id>    ReconciliationRecord
//   <prefix>/events/<id>           EventRecord           <prefix>/sets/<name>            SetRecord
//   <prefix>/quotas/<tenant>       model::Quota
//
// Values are JSON that people read with etcdctl: one object, the field names that existing tools know, numbers as
// numbers, times as RFC 3339. What those names do not cover lies below the key "muster". A record that was written by
// another program is read as far as its fields are known; unknown fields are ignored, absent ones have their defaults.
// WorkloadRecord is the truth: assignments and retries repeat a part of it for other readers, and are never read.
//
// Pure; reading is streaming, some microseconds a record. Decode fails with INVALID_ARGUMENT naming the field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "model/node.h"
#include "model/workload.h"

namespace muster::scheduler {

struct DrainOrder {
  std::string reason;
  std::string instruction;        // of an operator; empty: none
  std::optional<Duration> grace;  // limits that of each workload
  std::optional<WallTime> deadline;

  bool operator==(const DrainOrder&) const = default;
  MUSTER_FIELDS(DrainOrder, reason, instruction, grace, deadline)
};

struct NodeRecord {
  contract::NodeFacts facts;
  model::NodeStatus status = model::NodeStatus::kUnknown;
  std::string status_reason;
  std::string status_updated_by;  // register, heartbeat, monitor, reconciler
  WallTime status_updated_at;
  WallTime last_heartbeat;    // when this record was written; heartbeats themselves are not stored
  uint64_t registration = 0;  // the number of the last one; what the node refused before it is forgotten
  uint64_t epoch = 0;         // of the last registration of a native agent
  bool unreachable = false;   // a call failed: heartbeats do not make it Ready before a call succeeded
  bool cordoned = false;
  std::string cordon_reason;
  std::optional<DrainOrder> drain;
  uint64_t last_order = 0;  // of an operator: earlier ones are refused

  MUSTER_FIELDS(NodeRecord, facts, status, status_reason, status_updated_by, status_updated_at, last_heartbeat,
                registration, epoch, unreachable, cordoned, cordon_reason, drain, last_order)
};

struct RetryRecord {
  int32_t attempts = 0;
  int32_t max_attempts = 0;
  std::optional<WallTime> next_retry_at;

  bool operator==(const RetryRecord&) const = default;
  MUSTER_FIELDS(RetryRecord, attempts, max_attempts, next_retry_at)
};

// By a node, of a workload.
struct Refusal {
  WallTime until;             // when it is forgotten
  uint64_t registration = 0;  // of the node, at that time

  MUSTER_FIELDS(Refusal, until, registration)
};

struct WorkloadRecord {
  model::Workload workload;    // id, set, tenant, revision as the caller gave it, labels, spec, desired, phase, node
  std::string agent_revision;  // as agents get it
  std::map<std::string, std::string> require_labels;  // of the node, from persys.control.v1
  std::map<std::string, std::string> metadata;
  RetryRecord retry;
  int32_t waits = 0;  // for capacity or a failover target; they double the back-off and are no attempts
  contract::ActualState actual = contract::ActualState::kUnknown;
  std::optional<int32_t> exit_code;
  std::string reason;   // stable name
  std::string message;  // the sentence
  WallTime last_transition;
  WallTime updated_at;
  std::optional<WallTime> launched_at;  // the last accepted apply
  std::optional<WallTime> running_since;
  contract::Stamp stamp;
  uint64_t previous_sequence = 0;  // of the assignment before; the stamps of still earlier ones are lower
  std::string previous_node;
  bool evict = false;                       // it leaves its node: stopped there first, then placed anew
  std::optional<Duration> evict_grace;      // instead of its own
  std::map<std::string, Refusal> refusals;  // by node: the last one

  MUSTER_FIELDS(WorkloadRecord, workload, agent_revision, require_labels, metadata, retry, waits, actual, exit_code,
                reason, message, last_transition, updated_at, launched_at, running_since, stamp, previous_sequence,
                previous_node, evict, evict_grace, refusals)
};

struct AssignmentRecord {
  std::string workload;
  std::string node;
  std::string reason;
  WallTime created_at;

  bool operator==(const AssignmentRecord&) const = default;
  MUSTER_FIELDS(AssignmentRecord, workload, node, reason, created_at)
};

struct ReconciliationRecord {
  std::string workload;
  std::string action;
  bool success = true;
  std::string reason;
  WallTime attempted_at;

  bool operator==(const ReconciliationRecord&) const = default;
  MUSTER_FIELDS(ReconciliationRecord, workload, action, success, reason, attempted_at)
};

struct EventRecord {
  std::string id;
  std::string type;
  std::string workload;
  std::string node;
  std::string reason;
  WallTime at;
  std::map<std::string, std::string> details;

  bool operator==(const EventRecord&) const = default;
  MUSTER_FIELDS(EventRecord, id, type, workload, node, reason, at, details)
};

struct SetRecord {
  model::WorkloadSpec spec;
  std::string revision;   // of the template, with which members are made
  uint64_t restarts = 0;  // part of the revision, so that a restart is an update
  bool deleting = false;
  WallTime created_at;
  std::vector<int32_t> completed;  // members of a job that are done, by number

  MUSTER_FIELDS(SetRecord, spec, revision, restarts, deleting, created_at, completed)
};

std::string Encode(const NodeRecord& record);
std::string Encode(const WorkloadRecord& record);
std::string Encode(const AssignmentRecord& record);
std::string Encode(const ReconciliationRecord& record);
std::string Encode(const std::string& workload, const RetryRecord& record);
std::string Encode(const EventRecord& record);
std::string Encode(const SetRecord& record);
std::string Encode(const model::Quota& quota);

Result<NodeRecord> DecodeNode(std::string_view json);
Result<WorkloadRecord> DecodeWorkload(std::string_view json);
Result<ReconciliationRecord> DecodeReconciliation(std::string_view json);
Result<EventRecord> DecodeEvent(std::string_view json);
Result<SetRecord> DecodeSet(std::string_view json);
Result<model::Quota> DecodeQuota(std::string_view json);

// --- keys

enum class RecordKind : uint8_t {
  kNode,
  kNodeStatus,
  kWorkload,
  kAssignment,
  kRetry,
  kReconciliation,
  kEvent,
  kSet,
  kQuota,
};
std::string KeyOf(std::string_view prefix, RecordKind kind, std::string_view id);
struct ParsedKey {
  RecordKind kind = RecordKind::kNode;
  std::string id;
};
// Nothing for a key of no kind.
std::optional<ParsedKey> ParseKey(std::string_view prefix, std::string_view key);

// What a revision is made of, of a template: one without secrets has the bytes that it had before templates knew any,
// so that nothing is rolled out because the program was replaced.
std::string RevisionBytes(const model::WorkloadTemplate& spec);

}  // namespace muster::scheduler
