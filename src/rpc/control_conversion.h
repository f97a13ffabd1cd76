// Between the messages of persys.control.v1 and the contract's types.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path ("spec.container.image: ..."). What
// that protocol has no field for comes in `spec.metadata`: label.<k>, tenant, priority and spread.<key>; all of it is
// kept as the workload's metadata too. Writing cannot fail.
//
// Thread-safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "contract/agent.h"
#include "contract/cluster.h"

namespace persys::control::v1 {
class ApplyWorkloadRequest;
class ApplyWorkloadResponse;
class ControlMessage;
class DeleteWorkloadRequest;
class DeleteWorkloadResponse;
class GetClusterSummaryRequest;
class GetClusterSummaryResponse;
class GetNodeRequest;
class GetNodeResponse;
class GetWorkloadRequest;
class GetWorkloadResponse;
class HeartbeatRequest;
class HeartbeatResponse;
class ListNodesRequest;
class ListNodesResponse;
class ListWorkloadsRequest;
class ListWorkloadsResponse;
class RegisterNodeRequest;
class RegisterNodeResponse;
class RetryWorkloadRequest;
class RetryWorkloadResponse;
class SubmitAutomationSuggestionRequest;
}  // namespace persys::control::v1

namespace muster::rpc {

// Requests, as a scheduler reads them. A node that registers here is foreign.
Result<contract::RegisterNode> FromWire(const persys::control::v1::RegisterNodeRequest& wire);
Result<contract::Heartbeat> FromWire(const persys::control::v1::HeartbeatRequest& wire);
Result<contract::ApplyWorkload> FromWire(const persys::control::v1::ApplyWorkloadRequest& wire);
Result<contract::DeleteObject> FromWire(const persys::control::v1::DeleteWorkloadRequest& wire);
Result<contract::RetryWorkload> FromWire(const persys::control::v1::RetryWorkloadRequest& wire);
Result<contract::ListNodes> FromWire(const persys::control::v1::ListNodesRequest& wire);
Result<contract::GetNode> FromWire(const persys::control::v1::GetNodeRequest& wire);
Result<contract::ListWorkloads> FromWire(const persys::control::v1::ListWorkloadsRequest& wire);
Result<contract::GetWorkload> FromWire(const persys::control::v1::GetWorkloadRequest& wire);
Result<contract::GetSummary> FromWire(const persys::control::v1::GetClusterSummaryRequest& wire);
// What a suggestion asks for; SCALE_REPLICAS needs to know the set first, and asks for it.
Result<contract::ClusterRequest> FromWire(const persys::control::v1::SubmitAutomationSuggestionRequest& wire);
// What a node says over its ControlStream.
using NodeWord = std::variant<contract::RegisterNode, contract::Heartbeat>;
Result<NodeWord> FromWire(const persys::control::v1::ControlMessage& wire);

// The state that a request names, by `field`; empty is Running.
Result<model::DesiredState> DesiredStateFromWire(const std::string& name, std::string_view field);

void ToWire(const contract::NodeRegistered& reply, persys::control::v1::RegisterNodeResponse& wire);
void ToWire(const contract::HeartbeatAck& reply, persys::control::v1::HeartbeatResponse& wire);
void ToWire(const contract::Applied& reply, persys::control::v1::ApplyWorkloadResponse& wire);
void ToWire(const contract::Done& reply, persys::control::v1::DeleteWorkloadResponse& wire);
void ToWire(const contract::Done& reply, persys::control::v1::RetryWorkloadResponse& wire);
void ToWire(const std::vector<contract::NodeView>& reply, persys::control::v1::ListNodesResponse& wire);
void ToWire(const contract::NodeView& reply, persys::control::v1::GetNodeResponse& wire);
void ToWire(const std::vector<contract::WorkloadView>& reply, persys::control::v1::ListWorkloadsResponse& wire);
void ToWire(const contract::WorkloadView& reply, persys::control::v1::GetWorkloadResponse& wire);
void ToWire(const contract::Summary& reply, persys::control::v1::GetClusterSummaryResponse& wire);

// Commands to a node over its ControlStream.
void ToWire(const contract::ApplyOnAgent& command, persys::control::v1::ControlMessage& wire);
void ToWire(const contract::DeleteOnAgent& command, persys::control::v1::ControlMessage& wire);

}  // namespace muster::rpc
