#include "rpc/cluster_conversion.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "model/workload_bounds.h"
#include "muster/v1/cluster.pb.h"
#include "rpc/agent_tables.h"
#include "rpc/object_id.h"
#include "rpc/wire_oneof.h"

namespace muster::rpc {

namespace {

constexpr ObjectId kWorkload{"name the workload"};
constexpr ObjectId kSet{"name the set"};
constexpr ObjectId kNode{"name the node"};
constexpr Numbers kDesiredStates{0, 2, "a desired state; use 0 (running), 1 (stopped) or 2 (deleted)"};
constexpr Numbers kObjectKinds{0, 3, "a kind; use 0 (workload), 1 (set), 2 (quota) or 3 (node)"};

// A problem begins with the field; empty: there is none.
Status AtPath(std::string_view path, std::string problem) {
  if (problem.empty()) return {};
  Status error{Code::kInvalidArgument, std::move(problem)};
  AddPath(path, error);
  return error;
}

Status CheckTemplate(const model::WorkloadTemplate& spec, std::string_view path) {
  std::string problem = model::SizeProblem(spec);
  if (problem.empty()) problem = model::TemplateProblem(spec);
  return AtPath(path, std::move(problem));
}

}  // namespace

// Nodes.

MUSTER_WIRE_PART(model::Taint, v1::NodeTaint, MUSTER_WIRE(key), MUSTER_WIRE(value), MUSTER_WIRE(effect));
// `native` is told by the method.
MUSTER_WIRE_SOME(contract::NodeFacts, v1::NodeFacts, MUSTER_WIRE(node, kNode), MUSTER_WIRE(cluster),
                 MUSTER_WIRE(endpoint, Required("give host:port at which the agent serves")),
                 MUSTER_WIRE(agent_version), MUSTER_WIRE(total), MUSTER_WIRE(supported_types, kWorkloadTypes),
                 MUSTER_WIRE(storage_drivers), MUSTER_WIRE(labels), MUSTER_WIRE(taints));
MUSTER_WIRE_PART(contract::RegisterNode, v1::JoinRequest, MUSTER_WIRE(facts), MUSTER_WIRE(running), MUSTER_WIRE(epoch));
MUSTER_WIRE_PART(contract::Heartbeat, v1::NodeHeartbeat, MUSTER_WIRE(node, kNode), MUSTER_WIRE(epoch),
                 MUSTER_WIRE_OPTIONAL(used), MUSTER_WIRE(statuses_complete), MUSTER_WIRE(statuses), MUSTER_WIRE(usage),
                 MUSTER_WIRE(usage_of));
MUSTER_WIRE_PART(contract::FullState, v1::FullState, MUSTER_WIRE(epoch), MUSTER_WIRE(workloads),
                 MUSTER_WIRE(remove_others));
MUSTER_WIRE_REPLY(contract::NodeRegistered, v1::NodeRegistered, MUSTER_WIRE(accepted), MUSTER_WIRE(reason),
                  MUSTER_WIRE_AS(heartbeat_interval, heartbeat_interval_nanos, Count()),
                  MUSTER_WIRE_AS(lease_expires_at, lease_expires_at_unix_nanos), MUSTER_WIRE(state));
MUSTER_WIRE_REPLY(contract::HeartbeatAck, v1::HeartbeatAck, MUSTER_WIRE(drain_node),
                  MUSTER_WIRE_AS(lease_expires_at, lease_expires_at_unix_nanos));

Result<contract::RegisterNode> FromWire(const v1::JoinRequest& wire) {
  Result<contract::RegisterNode> request = ReadByTable<contract::RegisterNode>(wire);
  if (request) request->facts.native = true;
  return request;
}
void ToWire(const contract::RegisterNode& request, v1::JoinRequest& wire) { WriteTable(request, wire); }

Result<contract::Heartbeat> FromWire(const v1::NodeHeartbeat& wire) {
  if (wire.usage_size() != wire.usage_of_size()) return Refuse("", "usage_of", "must have one name for each `usage`");
  return ReadByTable<contract::Heartbeat>(wire);
}

Result<NodeWord> FromWire(const v1::JoinMessage& wire) {
  const auto within = [](std::string_view part, auto read) -> Result<NodeWord> {
    if (read) return *std::move(read);
    return Error(read.error().code(), fmt::format("{}.{}", part, read.error().message()));
  };
  switch (wire.message_case()) {
    case v1::JoinMessage::kJoin: return within("join", FromWire(wire.join()));
    case v1::JoinMessage::kHeartbeat: return within("heartbeat", FromWire(wire.heartbeat()));
    case v1::JoinMessage::MESSAGE_NOT_SET: break;
  }
  return InvalidArgument("message: missing; send join or heartbeat");
}
void ToWire(const contract::Heartbeat& request, v1::NodeHeartbeat& wire) { WriteTable(request, wire); }

// Changes.

MUSTER_WIRE_PART(contract::ApplyWorkload, v1::ApplyWorkloadRequest, MUSTER_WIRE(workload, kWorkload),
                 MUSTER_WIRE(revision), MUSTER_WIRE(desired, kDesiredStates), MUSTER_WIRE_OPTIONAL(spec),
                 MUSTER_WIRE(tenant), MUSTER_WIRE(require_labels), MUSTER_WIRE(metadata));
MUSTER_WIRE_PART(model::MemberCount, v1::MemberCount, MUSTER_WIRE(amount, Count()), MUSTER_WIRE(percent));
MUSTER_WIRE_PART(model::WorkloadSpec, v1::WorkloadSpec,
                 MUSTER_WIRE(kind, Numbers(0, 2, "a kind; use 0 (Workload), 1 (Set) or 2 (Job)")),
                 MUSTER_WIRE(name, ObjectId("name the workload")), MUSTER_WIRE(tenant), MUSTER_WIRE(labels),
                 MUSTER_WIRE_DEFAULT(replicas, Count()), MUSTER_WIRE_DEFAULT(max_unavailable), MUSTER_WIRE(max_surge),
                 MUSTER_WIRE(min_available), MUSTER_WIRE(spec));
MUSTER_WIRE_PART(contract::ApplySpec, v1::ApplySpecRequest, MUSTER_WIRE(spec), MUSTER_WIRE_OPTIONAL(expect, Count()),
                 MUSTER_WIRE(dry_run));
MUSTER_WIRE_PART(model::Quota, v1::Quota, MUSTER_WIRE(tenant, ObjectId("name the tenant")), MUSTER_WIRE(limits),
                 MUSTER_WIRE_DEFAULT(workloads), MUSTER_WIRE(applies_milli_hz, Count()), MUSTER_WIRE(burst, Count()));

Result<contract::ApplyWorkload> FromWire(const v1::ApplyWorkloadRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(contract::ApplyWorkload request, ReadByTable<contract::ApplyWorkload>(wire));
  if (request.spec) {
    if (Status valid = CheckTemplate(*request.spec, "spec"); !valid.ok()) return std::unexpected(std::move(valid));
  }
  return request;
}
void ToWire(const contract::ApplyWorkload& request, v1::ApplyWorkloadRequest& wire) { WriteTable(request, wire); }

Result<contract::ApplySpec> FromWire(const v1::ApplySpecRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(contract::ApplySpec request, ReadByTable<contract::ApplySpec>(wire));
  if (Status valid = AtPath("spec", model::CountsProblem(request.spec)); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  if (Status valid = CheckTemplate(request.spec.spec, "spec.spec"); !valid.ok()) {
    return std::unexpected(std::move(valid));
  }
  return request;
}
void ToWire(const contract::ApplySpec& request, v1::ApplySpecRequest& wire) { WriteTable(request, wire); }

MUSTER_WIRE_REQUEST(contract::ApplyQuota, v1::ApplyQuotaRequest, MUSTER_WIRE(quota));
MUSTER_WIRE_REQUEST(contract::DeleteObject, v1::DeleteObjectRequest, MUSTER_WIRE(kind, kObjectKinds),
                    MUSTER_WIRE(name, ObjectId("name the object")), MUSTER_WIRE(force));
MUSTER_WIRE_REQUEST(contract::RetryWorkload, v1::RetryWorkloadRequest, MUSTER_WIRE(workload, kWorkload));
static_assert(model::kMostReplicas == 100'000);
MUSTER_WIRE_REQUEST(contract::ScaleSet, v1::ScaleSetRequest, MUSTER_WIRE(set, kSet),
                    MUSTER_WIRE(replicas, Numbers(0, model::kMostReplicas, "from 0 to 100000")));
MUSTER_WIRE_REQUEST(contract::RestartSet, v1::RestartSetRequest, MUSTER_WIRE(set, kSet));
MUSTER_WIRE_REQUEST(contract::CordonNode, v1::CordonNodeRequest, MUSTER_WIRE(node, kNode),
                    MUSTER_WIRE_DEFAULT(cordoned), MUSTER_WIRE(reason), MUSTER_WIRE(order));
MUSTER_WIRE_REQUEST(contract::DrainNode, v1::DrainNodeRequest, MUSTER_WIRE(node, kNode),
                    MUSTER_WIRE_OPTIONAL_AS(grace, grace_nanos, Count()), MUSTER_WIRE(reason), MUSTER_WIRE(instruction),
                    MUSTER_WIRE_AS(deadline, deadline_unix_nanos), MUSTER_WIRE(order));
MUSTER_WIRE_REQUEST(contract::AcceptNode, v1::AcceptNodeRequest, MUSTER_WIRE(node, kNode));
MUSTER_WIRE_PART(contract::ComingMachine, v1::ComingMachine, MUSTER_WIRE(resources), MUSTER_WIRE(labels),
                 MUSTER_WIRE(taints));
MUSTER_WIRE_REQUEST(contract::ReportMachines, v1::ReportMachinesRequest, MUSTER_WIRE(machines),
                    MUSTER_WIRE_AS(valid_for, valid_for_nanos, Count()));
MUSTER_WIRE_REPLY(contract::Applied, v1::Applied,
                  MUSTER_WIRE(result, Numbers(0, 2, "a result; use 0 (created), 1 (configured) or 2 (unchanged)")),
                  MUSTER_WIRE(revision), MUSTER_WIRE(store_revision), MUSTER_WIRE(refusal));
MUSTER_WIRE_REPLY(contract::Done, v1::Done, MUSTER_WIRE(message), MUSTER_WIRE(store_revision));

// Questions.

MUSTER_WIRE_PART(contract::Page, v1::Page, MUSTER_WIRE(limit, Count()), MUSTER_WIRE(token));
MUSTER_WIRE_PART(contract::ListNodes, v1::ListNodesRequest, MUSTER_WIRE(status), MUSTER_WIRE(selector),
                 MUSTER_WIRE(page));
MUSTER_WIRE_PART(contract::ListWorkloads, v1::ListWorkloadsRequest, MUSTER_WIRE(node), MUSTER_WIRE(status),
                 MUSTER_WIRE(set), MUSTER_WIRE(tenant), MUSTER_WIRE(selector), MUSTER_WIRE(page));

// Every object is compared with every requirement.
template <class Request, class Wire>
Result<Request> ReadWithSelector(const Wire& wire) {
  Result<Request> request = ReadByTable<Request>(wire);
  if (!request) return request;
  if (std::string problem = model::SelectorSizeProblem(request->selector); !problem.empty()) {
    return InvalidArgument(std::move(problem));
  }
  return request;
}
Result<contract::ListNodes> FromWire(const v1::ListNodesRequest& wire) {
  return ReadWithSelector<contract::ListNodes>(wire);
}
void ToWire(const contract::ListNodes& request, v1::ListNodesRequest& wire) { WriteTable(request, wire); }
Result<contract::ListWorkloads> FromWire(const v1::ListWorkloadsRequest& wire) {
  return ReadWithSelector<contract::ListWorkloads>(wire);
}
void ToWire(const contract::ListWorkloads& request, v1::ListWorkloadsRequest& wire) { WriteTable(request, wire); }

MUSTER_WIRE_REQUEST(contract::GetNode, v1::GetNodeRequest, MUSTER_WIRE(node, kNode));
MUSTER_WIRE_REQUEST(contract::GetWorkload, v1::GetWorkloadRequest, MUSTER_WIRE(workload, kWorkload));
MUSTER_WIRE_REQUEST(contract::ListSets, v1::ListSetsRequest, MUSTER_WIRE(name), MUSTER_WIRE(page));
MUSTER_WIRE_REQUEST(contract::ListQuotas, v1::ListQuotasRequest, MUSTER_WIRE(tenant));
MUSTER_WIRE_REQUEST(contract::ListEvents, v1::ListEventsRequest, MUSTER_WIRE(workload), MUSTER_WIRE(node),
                    MUSTER_WIRE(limit, Count()));
MUSTER_WIRE_REQUEST(contract::GetSummary, v1::GetSummaryRequest);
MUSTER_WIRE_REQUEST(contract::ExplainWorkload, v1::ExplainWorkloadRequest, MUSTER_WIRE(workload, kWorkload));
MUSTER_WIRE_REQUEST(contract::WatchCluster, v1::WatchRequest, MUSTER_WIRE(nodes), MUSTER_WIRE(workloads),
                    MUSTER_WIRE(sets), MUSTER_WIRE(decisions), MUSTER_WIRE(from, Count()));

// Views.

MUSTER_WIRE_REPLY(contract::NodeView, v1::NodeView, MUSTER_WIRE(node),
                  MUSTER_WIRE(status, Numbers(0, 3, "a node status; use 1 (Ready) to 3 (Draining)")),
                  MUSTER_WIRE(status_reason, AnyBytes()), MUSTER_WIRE(status_updated_by),
                  MUSTER_WIRE_AS(status_updated_at, status_updated_at_unix_nanos),
                  MUSTER_WIRE_AS(last_heartbeat, last_heartbeat_unix_nanos), MUSTER_WIRE(endpoint),
                  MUSTER_WIRE(agent_version), MUSTER_WIRE(total), MUSTER_WIRE(reserved), MUSTER_WIRE(used),
                  MUSTER_WIRE(available), MUSTER_WIRE(supported_types, kWorkloadTypes), MUSTER_WIRE(labels),
                  MUSTER_WIRE(taints), MUSTER_WIRE(cordoned), MUSTER_WIRE(draining), MUSTER_WIRE(drain_reason),
                  MUSTER_WIRE(drain_instruction), MUSTER_WIRE_AS(drain_deadline, drain_deadline_unix_nanos),
                  MUSTER_WIRE(native), MUSTER_WIRE(epoch), MUSTER_WIRE(workloads), MUSTER_WIRE(orphans_held),
                  MUSTER_WIRE(revision), MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos), MUSTER_WIRE(last_order));
MUSTER_WIRE_REPLY(contract::WorkloadView, v1::WorkloadView, MUSTER_WIRE(workload), MUSTER_WIRE(set),
                  MUSTER_WIRE(tenant), MUSTER_WIRE(type, kWorkloadTypes), MUSTER_WIRE(desired, kDesiredStates),
                  MUSTER_WIRE(phase, Numbers(0, 10, "a phase; use 0 (Pending) to 10 (Deleted)")), MUSTER_WIRE(node),
                  MUSTER_WIRE(revision), MUSTER_WIRE(actual, kActualStates), MUSTER_WIRE(attempts),
                  MUSTER_WIRE(max_attempts), MUSTER_WIRE_AS(next_retry_at, next_retry_at_unix_nanos),
                  MUSTER_WIRE(reason), MUSTER_WIRE(message, AnyBytes()),
                  MUSTER_WIRE_AS(last_transition, last_transition_unix_nanos), MUSTER_WIRE(retryable),
                  MUSTER_WIRE_OPTIONAL(exit_code), MUSTER_WIRE_OPTIONAL(usage), MUSTER_WIRE(labels),
                  MUSTER_WIRE(metadata), MUSTER_WIRE(spec), MUSTER_WIRE_AS(created_at, created_at_unix_nanos),
                  MUSTER_WIRE_AS(updated_at, updated_at_unix_nanos), MUSTER_WIRE(stamp), MUSTER_WIRE(store_revision),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_PART(contract::SetView, v1::SetView, MUSTER_WIRE(spec), MUSTER_WIRE(revision), MUSTER_WIRE(members),
                 MUSTER_WIRE(current), MUSTER_WIRE(running), MUSTER_WIRE(available), MUSTER_WIRE(completed),
                 MUSTER_WIRE(failed), MUSTER_WIRE(deleting), MUSTER_WIRE_AS(created_at, created_at_unix_nanos),
                 MUSTER_WIRE(store_revision));
MUSTER_WIRE_PART(contract::QuotaView, v1::QuotaView, MUSTER_WIRE(quota), MUSTER_WIRE(used), MUSTER_WIRE(workloads));
MUSTER_WIRE_PART(contract::EventView, v1::EventView, MUSTER_WIRE(id), MUSTER_WIRE(type), MUSTER_WIRE(workload),
                 MUSTER_WIRE(node), MUSTER_WIRE(reason, AnyBytes()), MUSTER_WIRE_AS(at, at_unix_nanos),
                 MUSTER_WIRE(details, AnyBytes()));
MUSTER_WIRE_REPLY(contract::NodesListed, v1::NodesListed, MUSTER_WIRE(nodes), MUSTER_WIRE(next), MUSTER_WIRE(revision),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_REPLY(contract::WorkloadsListed, v1::WorkloadsListed, MUSTER_WIRE(workloads), MUSTER_WIRE(next),
                  MUSTER_WIRE(revision), MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_REPLY(contract::SetsListed, v1::SetsListed, MUSTER_WIRE(sets), MUSTER_WIRE(next), MUSTER_WIRE(revision),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_REPLY(contract::QuotasListed, v1::QuotasListed, MUSTER_WIRE(quotas),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_REPLY(contract::EventsListed, v1::EventsListed, MUSTER_WIRE(events),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_REPLY(contract::Summary, v1::Summary, MUSTER_WIRE(total_nodes), MUSTER_WIRE(ready_nodes),
                  MUSTER_WIRE(not_ready_nodes), MUSTER_WIRE(total_workloads), MUSTER_WIRE(running_workloads),
                  MUSTER_WIRE(pending_workloads), MUSTER_WIRE(failed_workloads), MUSTER_WIRE(deleted_workloads),
                  MUSTER_WIRE_AS(generated_at, generated_at_unix_nanos), MUSTER_WIRE(leading), MUSTER_WIRE(leader),
                  MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));
MUSTER_WIRE_PART(contract::NodeRefusal, v1::NodeRefusal, MUSTER_WIRE(node), MUSTER_WIRE(reason), MUSTER_WIRE(detail));
MUSTER_WIRE_REPLY(contract::Explanation, v1::Explanation, MUSTER_WIRE(workload), MUSTER_WIRE(story, AnyBytes()),
                  MUSTER_WIRE(nodes), MUSTER_WIRE(events), MUSTER_WIRE_AS(stale_since, stale_since_unix_nanos));

// Watches.

MUSTER_WIRE_PART(contract::ObjectChanged, v1::ObjectChanged, MUSTER_WIRE(kind, kObjectKinds), MUSTER_WIRE(name),
                 MUSTER_WIRE(revision),
                 MUSTER_WIRE_ONEOF(now, MUSTER_WIRE_CASE(contract::NodeView, node),
                                   MUSTER_WIRE_CASE(contract::WorkloadView, workload),
                                   MUSTER_WIRE_CASE(contract::SetView, set)));
MUSTER_WIRE_PART(contract::Decision, v1::Decision,
                 MUSTER_WIRE(kind, Numbers(0, 11, "a kind; use 0 (placed) to 11 (orphans-held)")),
                 MUSTER_WIRE_AS(at, at_unix_nanos), MUSTER_WIRE(workload), MUSTER_WIRE(node), MUSTER_WIRE(reason),
                 MUSTER_WIRE(message, AnyBytes()));

Result<contract::ClusterChange> TakeReply(v1::WatchEvent& wire) {
  if (wire.has_decision()) return ReadByTable<contract::Decision>(*wire.mutable_decision(), "decision");
  if (wire.has_object()) return ReadByTable<contract::ObjectChanged>(*wire.mutable_object(), "object");
  return Refuse("", "event", "missing");
}

void ToWire(const contract::ClusterChange& change, v1::WatchEvent& wire) {
  if (const auto* decision = std::get_if<contract::Decision>(&change)) {
    WriteTable(*decision, *wire.mutable_decision());
  } else {
    WriteTable(std::get<contract::ObjectChanged>(change), *wire.mutable_object());
  }
}

}  // namespace muster::rpc
