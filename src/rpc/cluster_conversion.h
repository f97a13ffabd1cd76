// Between the messages of muster.v1.Cluster and the contract's types.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path ("spec.spec.ports[1].host: ...").
// Ids that name an object must be fit to be one ([A-Za-z0-9][A-Za-z0-9._-]{0,252}). Writing cannot fail.
//
// Thread-safety: functions without state.
#pragma once

#include <variant>

#include "base/status.h"
#include "contract/cluster.h"

namespace muster::v1 {
class AcceptNodeRequest;
class ReportMachinesRequest;
class Applied;
class ApplyQuotaRequest;
class ApplySpecRequest;
class ApplyWorkloadRequest;
class CordonNodeRequest;
class DeleteObjectRequest;
class Done;
class DrainNodeRequest;
class EventsListed;
class Explanation;
class ExplainWorkloadRequest;
class GetNodeRequest;
class GetSummaryRequest;
class GetWorkloadRequest;
class HeartbeatAck;
class JoinMessage;
class JoinRequest;
class ListEventsRequest;
class ListNodesRequest;
class ListQuotasRequest;
class ListSetsRequest;
class ListWorkloadsRequest;
class NodeHeartbeat;
class NodeRegistered;
class NodesListed;
class NodeView;
class QuotasListed;
class RestartSetRequest;
class RetryWorkloadRequest;
class ScaleSetRequest;
class SetsListed;
class Summary;
class WatchEvent;
class WatchRequest;
class WorkloadsListed;
class WorkloadView;
}  // namespace muster::v1

namespace muster::rpc {

// Requests, as a scheduler reads them. A node that joins is native.
Result<contract::RegisterNode> FromWire(const v1::JoinRequest& wire);
Result<contract::Heartbeat> FromWire(const v1::NodeHeartbeat& wire);
// What a node says over its Join.
using NodeWord = std::variant<contract::RegisterNode, contract::Heartbeat>;
Result<NodeWord> FromWire(const v1::JoinMessage& wire);
Result<contract::ApplyWorkload> FromWire(const v1::ApplyWorkloadRequest& wire);
Result<contract::ApplySpec> FromWire(const v1::ApplySpecRequest& wire);
Result<contract::ApplyQuota> FromWire(const v1::ApplyQuotaRequest& wire);
Result<contract::DeleteObject> FromWire(const v1::DeleteObjectRequest& wire);
Result<contract::RetryWorkload> FromWire(const v1::RetryWorkloadRequest& wire);
Result<contract::ScaleSet> FromWire(const v1::ScaleSetRequest& wire);
Result<contract::RestartSet> FromWire(const v1::RestartSetRequest& wire);
Result<contract::CordonNode> FromWire(const v1::CordonNodeRequest& wire);
Result<contract::DrainNode> FromWire(const v1::DrainNodeRequest& wire);
Result<contract::AcceptNode> FromWire(const v1::AcceptNodeRequest& wire);
Result<contract::ReportMachines> FromWire(const v1::ReportMachinesRequest& wire);
Result<contract::ListNodes> FromWire(const v1::ListNodesRequest& wire);
Result<contract::ListWorkloads> FromWire(const v1::ListWorkloadsRequest& wire);
Result<contract::GetNode> FromWire(const v1::GetNodeRequest& wire);
Result<contract::GetWorkload> FromWire(const v1::GetWorkloadRequest& wire);
Result<contract::ListSets> FromWire(const v1::ListSetsRequest& wire);
Result<contract::ListQuotas> FromWire(const v1::ListQuotasRequest& wire);
Result<contract::ListEvents> FromWire(const v1::ListEventsRequest& wire);
Result<contract::GetSummary> FromWire(const v1::GetSummaryRequest& wire);
Result<contract::ExplainWorkload> FromWire(const v1::ExplainWorkloadRequest& wire);
Result<contract::WatchCluster> FromWire(const v1::WatchRequest& wire);

void ToWire(const contract::RegisterNode& request, v1::JoinRequest& wire);
void ToWire(const contract::Heartbeat& request, v1::NodeHeartbeat& wire);
void ToWire(const contract::ApplyWorkload& request, v1::ApplyWorkloadRequest& wire);
void ToWire(const contract::ApplySpec& request, v1::ApplySpecRequest& wire);
void ToWire(const contract::ApplyQuota& request, v1::ApplyQuotaRequest& wire);
void ToWire(const contract::DeleteObject& request, v1::DeleteObjectRequest& wire);
void ToWire(const contract::RetryWorkload& request, v1::RetryWorkloadRequest& wire);
void ToWire(const contract::ScaleSet& request, v1::ScaleSetRequest& wire);
void ToWire(const contract::RestartSet& request, v1::RestartSetRequest& wire);
void ToWire(const contract::CordonNode& request, v1::CordonNodeRequest& wire);
void ToWire(const contract::DrainNode& request, v1::DrainNodeRequest& wire);
void ToWire(const contract::AcceptNode& request, v1::AcceptNodeRequest& wire);
void ToWire(const contract::ReportMachines& request, v1::ReportMachinesRequest& wire);
void ToWire(const contract::ListNodes& request, v1::ListNodesRequest& wire);
void ToWire(const contract::ListWorkloads& request, v1::ListWorkloadsRequest& wire);
void ToWire(const contract::GetNode& request, v1::GetNodeRequest& wire);
void ToWire(const contract::GetWorkload& request, v1::GetWorkloadRequest& wire);
void ToWire(const contract::ListSets& request, v1::ListSetsRequest& wire);
void ToWire(const contract::ListQuotas& request, v1::ListQuotasRequest& wire);
void ToWire(const contract::ListEvents& request, v1::ListEventsRequest& wire);
void ToWire(const contract::GetSummary& request, v1::GetSummaryRequest& wire);
void ToWire(const contract::ExplainWorkload& request, v1::ExplainWorkloadRequest& wire);
void ToWire(const contract::WatchCluster& request, v1::WatchRequest& wire);

// Replies, as a client reads them, taken out of the message.
Result<contract::NodeRegistered> TakeReply(v1::NodeRegistered& wire);
Result<contract::HeartbeatAck> TakeReply(v1::HeartbeatAck& wire);
Result<contract::Applied> TakeReply(v1::Applied& wire);
Result<contract::Done> TakeReply(v1::Done& wire);
Result<contract::NodesListed> TakeReply(v1::NodesListed& wire);
Result<contract::WorkloadsListed> TakeReply(v1::WorkloadsListed& wire);
Result<contract::NodeView> TakeReply(v1::NodeView& wire);
Result<contract::WorkloadView> TakeReply(v1::WorkloadView& wire);
Result<contract::SetsListed> TakeReply(v1::SetsListed& wire);
Result<contract::QuotasListed> TakeReply(v1::QuotasListed& wire);
Result<contract::EventsListed> TakeReply(v1::EventsListed& wire);
Result<contract::Summary> TakeReply(v1::Summary& wire);
Result<contract::Explanation> TakeReply(v1::Explanation& wire);
Result<contract::ClusterChange> TakeReply(v1::WatchEvent& wire);

void ToWire(const contract::NodeRegistered& reply, v1::NodeRegistered& wire);
void ToWire(const contract::HeartbeatAck& reply, v1::HeartbeatAck& wire);
void ToWire(const contract::Applied& reply, v1::Applied& wire);
void ToWire(const contract::Done& reply, v1::Done& wire);
void ToWire(const contract::NodesListed& reply, v1::NodesListed& wire);
void ToWire(const contract::WorkloadsListed& reply, v1::WorkloadsListed& wire);
void ToWire(const contract::NodeView& reply, v1::NodeView& wire);
void ToWire(const contract::WorkloadView& reply, v1::WorkloadView& wire);
void ToWire(const contract::SetsListed& reply, v1::SetsListed& wire);
void ToWire(const contract::QuotasListed& reply, v1::QuotasListed& wire);
void ToWire(const contract::EventsListed& reply, v1::EventsListed& wire);
void ToWire(const contract::Summary& reply, v1::Summary& wire);
void ToWire(const contract::Explanation& reply, v1::Explanation& wire);
void ToWire(const contract::ClusterChange& change, v1::WatchEvent& wire);

}  // namespace muster::rpc
