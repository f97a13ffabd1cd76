// What clients, nodes and operators ask of a scheduler, as plain values. persys.control.v1.AgentControl and
// muster.v1.Cluster are these on the wire (docs/wire.md).
//
// A request that changes something is answered once the change is durable in the store. Reads are answered from memory,
// with what is durable; `stale_since` is set while the store is out of reach.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/agent.h"
#include "contract/cluster_views.h"
#include "contract/store.h"
#include "model/requirement.h"
#include "model/resources.h"
#include "model/workload.h"

namespace muster::contract {

// --- nodes

// A node registers, again or for the first time. `running` and `epoch` are what the agent has, of a native one.
struct RegisterNode {
  NodeFacts facts;
  std::vector<WorkloadStatus> running;
  uint64_t epoch = 0;  // of the latest registration, with any scheduler; 0: none. The reply has a higher one

  MUSTER_FIELDS(RegisterNode, facts, running, epoch)
};
struct NodeRegistered {
  bool accepted = false;
  std::string reason;  // why it was not accepted
  Duration heartbeat_interval{};
  WallTime lease_expires_at;
  FullState state;  // of a native node

  MUSTER_FIELDS(NodeRegistered, accepted, reason, heartbeat_interval, lease_expires_at, state)
};

// NOT_FOUND: the node must register.
struct Heartbeat {
  std::string node;
  uint64_t epoch = 0;                    // of a native agent; 0: a foreign one
  std::optional<model::Resources> used;  // what the node measured
  bool statuses_complete = true;         // `statuses` are all that the node has
  std::vector<WorkloadStatus> statuses;
  std::vector<WorkloadUsage> usage;   // besides those in `statuses`
  std::vector<std::string> usage_of;  // the workloads of `usage`, in the same order

  MUSTER_FIELDS(Heartbeat, node, epoch, used, statuses_complete, statuses, usage, usage_of)
};
struct HeartbeatAck {
  bool drain_node = false;
  WallTime lease_expires_at;

  MUSTER_FIELDS(HeartbeatAck, drain_node, lease_expires_at)
};

// --- changes

// One workload as persys.control.v1 says it. Without a spec only the desired state changes. `require_labels` are labels
// that the node must have.
struct ApplyWorkload {
  std::string workload;
  std::string revision;  // empty: made of the spec
  model::DesiredState desired = model::DesiredState::kRunning;
  std::optional<model::WorkloadTemplate> spec;
  std::string tenant;
  std::map<std::string, std::string> require_labels;
  std::map<std::string, std::string> metadata;

  MUSTER_FIELDS(ApplyWorkload, workload, revision, desired, spec, tenant, require_labels, metadata)
};

// A workload, set or job as a file declares it. `expect` refuses with ABORTED if the object was changed since that
// revision (0: must not exist yet).
struct ApplySpec {
  model::WorkloadSpec spec;
  std::optional<Revision> expect;
  bool dry_run = false;  // validated and admitted, not stored

  MUSTER_FIELDS(ApplySpec, spec, expect, dry_run)
};
struct ApplyQuota {
  model::Quota quota;

  MUSTER_FIELDS(ApplyQuota, quota)
};
enum class ApplyResult : uint8_t { kCreated, kConfigured, kUnchanged };
std::string_view ApplyResultName(ApplyResult result);  // "created", "configured", "unchanged"
struct Applied {
  ApplyResult result = ApplyResult::kUnchanged;
  std::string revision;         // of the spec, as agents get it
  Revision store_revision = 0;  // at which it is durable
  std::string refusal;          // of a workload that no node takes yet; empty: placed, or not tried yet

  MUSTER_FIELDS(Applied, result, revision, store_revision, refusal)
};

// A workload stops on its node first; a set takes its members along; a node must have no workloads unless `force`.
struct DeleteObject {
  ObjectKind kind = ObjectKind::kWorkload;
  std::string name;
  bool force = false;

  MUSTER_FIELDS(DeleteObject, kind, name, force)
};
// Attempts begin anew, and a back-off ends.
struct RetryWorkload {
  std::string workload;

  MUSTER_FIELDS(RetryWorkload, workload)
};
struct ScaleSet {
  std::string set;
  int32_t replicas = 0;

  MUSTER_FIELDS(ScaleSet, set, replicas)
};
// Replaces every member, within the limits of an update.
struct RestartSet {
  std::string set;

  MUSTER_FIELDS(RestartSet, set)
};
// An operator numbers its orders for nodes: one that arrives after a later one for its node is refused, and cannot undo
// it. 0: the order has no number, and is always taken.
struct CordonNode {
  std::string node;
  bool cordoned = true;
  std::string reason;
  uint64_t order = 0;

  MUSTER_FIELDS(CordonNode, node, cordoned, reason, order)
};
// Cordons the node and moves its workloads away, within min-available; `grace` limits that of each workload. An
// instruction and a deadline are kept in the node's record for whoever asked. `order` as in CordonNode.
struct DrainNode {
  std::string node;
  std::optional<Duration> grace;
  std::string reason;
  std::string instruction;
  std::optional<WallTime> deadline;
  uint64_t order = 0;

  MUSTER_FIELDS(DrainNode, node, grace, reason, instruction, deadline, order)
};
// The workloads of this node that the store does not hold may be deleted there, however many.
struct AcceptNode {
  std::string node;

  MUSTER_FIELDS(AcceptNode, node)
};
// A machine that is on its way to become a node, as it will be.
struct ComingMachine {
  model::Resources resources;  // empty: not known
  std::map<std::string, std::string> labels;
  std::vector<model::Taint> taints;

  bool operator==(const ComingMachine&) const = default;
  MUSTER_FIELDS(ComingMachine, resources, labels, taints)
};
// The operator of the cluster says which machines come; equal ones once. It replaces what was said before, and holds
// for `valid_for`, at most ten minutes. Workloads that one of them could take evict no others meanwhile.
struct ReportMachines {
  std::vector<ComingMachine> machines;
  Duration valid_for{};

  MUSTER_FIELDS(ReportMachines, machines, valid_for)
};
struct Done {
  std::string message;  // what was done, for people; may be empty
  Revision store_revision = 0;

  MUSTER_FIELDS(Done, message, store_revision)
};

// --- questions

// Up to `limit` objects after `token`, in the order of their ids; 0: as many as the scheduler gives at most.
struct Page {
  int32_t limit = 0;
  std::string token;

  MUSTER_FIELDS(Page, limit, token)
};
struct ListNodes {
  std::string status;  // empty: any
  std::vector<model::Requirement> selector;
  Page page;

  MUSTER_FIELDS(ListNodes, status, selector, page)
};
struct ListWorkloads {
  std::string node;
  std::string status;
  std::string set;
  std::string tenant;
  std::vector<model::Requirement> selector;  // on the workload's labels
  Page page;

  MUSTER_FIELDS(ListWorkloads, node, status, set, tenant, selector, page)
};
struct GetNode {
  std::string node;

  MUSTER_FIELDS(GetNode, node)
};
struct GetWorkload {
  std::string workload;

  MUSTER_FIELDS(GetWorkload, workload)
};
struct ListSets {
  std::string name;  // empty: all
  Page page;

  MUSTER_FIELDS(ListSets, name, page)
};
struct ListQuotas {
  std::string tenant;  // empty: all

  MUSTER_FIELDS(ListQuotas, tenant)
};
// The latest first.
struct ListEvents {
  std::string workload;  // empty: of any
  std::string node;
  int32_t limit = 0;

  MUSTER_FIELDS(ListEvents, workload, node, limit)
};
struct GetSummary {
  MUSTER_FIELDS(GetSummary)
};
// Why a workload is where it is, or nowhere: every node with the first filter that refuses it.
struct ExplainWorkload {
  std::string workload;

  MUSTER_FIELDS(ExplainWorkload, workload)
};

// Appended to only: journals number the types.
using ClusterRequest =
    std::variant<RegisterNode, Heartbeat, ApplyWorkload, ApplySpec, ApplyQuota, DeleteObject, RetryWorkload, ScaleSet,
                 RestartSet, CordonNode, DrainNode, AcceptNode, ListNodes, ListWorkloads, GetNode, GetWorkload,
                 ListSets, ListQuotas, ListEvents, GetSummary, ExplainWorkload, ReportMachines>;

using ClusterReply = std::variant<NodeRegistered, HeartbeatAck, Applied, Done, NodesListed, WorkloadsListed, NodeView,
                                  WorkloadView, SetsListed, QuotasListed, EventsListed, Summary, Explanation>;

// Changes of these kinds after `from`; 0: from now on. OUT_OF_RANGE if the scheduler no longer has them: list again,
// and watch from the list's revision. Decisions have no revision and begin now.
struct WatchCluster {
  bool nodes = false;
  bool workloads = false;
  bool sets = false;
  bool decisions = false;
  Revision from = 0;

  MUSTER_FIELDS(WatchCluster, nodes, workloads, sets, decisions, from)
};

// What a scheduler answers, whatever carries the question. `done` runs once, on any thread.
class ClusterPort {
 public:
  using Done = std::function<void(Result<ClusterReply>)>;

  virtual ~ClusterPort() = default;
  virtual void Ask(ClusterRequest request, Done done) = 0;
};

}  // namespace muster::contract
