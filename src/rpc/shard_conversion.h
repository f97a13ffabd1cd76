// Between the messages of ShardRead and muster.v1.Fleet and the contract's types.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path ("need.fingerprint: ..."). Writing
// cannot fail.
//
// ShardRead's rows are what every shard of the protocol says: reasons are one of four, and supply and preemption stand
// only where it sets them. Fleet's rows carry all that the contract has, but for counts beyond int32, which are cut.
//
// Thread-safety: functions without state.
#pragma once

#include <string_view>

#include "base/status.h"
#include "contract/shard.h"
#include "rpc/rollup_conversion.h"

namespace bigfleet::v1alpha1 {
class InspectNeedsHeader;
class InspectNeedsRequest;
class NeedView;
}  // namespace bigfleet::v1alpha1
namespace muster::v1 {
class AcceptLossesRequest;
class AcceptLossesResponse;
class DecommissionClusterRequest;
class DecommissionClusterResponse;
class ExplainRequest;
class ExplainResponse;
class ForgetMachineRequest;
class ForgetMachineResponse;
class ListActionsRequest;
class ListActionsResponse;
class ListClustersRequest;
class ListClustersResponse;
class ListForgottenRequest;
class ListForgottenResponse;
class ListMachinesRequest;
class MachineView;
class NeedView;
class RecallMachineRequest;
class RecallMachineResponse;
class RepairMachineRequest;
class RepairMachineResponse;
class SetActuationRequest;
class SetActuationResponse;
}  // namespace muster::v1

namespace muster::rpc {

// Requests, as a shard reads them. Who gives an order is not on the wire: the service fills it in.
Result<contract::InspectNeeds> FromWire(const bigfleet::v1alpha1::InspectNeedsRequest& wire);
Result<contract::ListMachines> FromWire(const v1::ListMachinesRequest& wire);
Result<contract::ListActions> FromWire(const v1::ListActionsRequest& wire);
Result<contract::ListClusters> FromWire(const v1::ListClustersRequest& wire);
Result<contract::Explain> FromWire(const v1::ExplainRequest& wire);
Result<contract::SetActuation> FromWire(const v1::SetActuationRequest& wire);
Result<contract::RepairMachine> FromWire(const v1::RepairMachineRequest& wire);
Result<contract::ForgetMachine> FromWire(const v1::ForgetMachineRequest& wire);
Result<contract::ListForgotten> FromWire(const v1::ListForgottenRequest& wire);
Result<contract::RecallMachine> FromWire(const v1::RecallMachineRequest& wire);
Result<contract::AcceptLosses> FromWire(const v1::AcceptLossesRequest& wire);
Result<contract::DecommissionCluster> FromWire(const v1::DecommissionClusterRequest& wire);

void ToWire(const contract::InspectNeeds& request, bigfleet::v1alpha1::InspectNeedsRequest& wire);
void ToWire(const contract::ListMachines& request, v1::ListMachinesRequest& wire);
void ToWire(const contract::ListActions& request, v1::ListActionsRequest& wire);
void ToWire(const contract::ListClusters& request, v1::ListClustersRequest& wire);
void ToWire(const contract::Explain& request, v1::ExplainRequest& wire);
void ToWire(const contract::SetActuation& request, v1::SetActuationRequest& wire);
void ToWire(const contract::RepairMachine& request, v1::RepairMachineRequest& wire);
void ToWire(const contract::ForgetMachine& request, v1::ForgetMachineRequest& wire);
void ToWire(const contract::ListForgotten& request, v1::ListForgottenRequest& wire);
void ToWire(const contract::RecallMachine& request, v1::RecallMachineRequest& wire);
void ToWire(const contract::AcceptLosses& request, v1::AcceptLossesRequest& wire);
void ToWire(const contract::DecommissionCluster& request, v1::DecommissionClusterRequest& wire);

// Rows of streamed answers. A view of ShardRead does not say whether its cluster has a session: it is taken to have
// one.
Result<contract::NeedView> TakeView(bigfleet::v1alpha1::NeedView& wire, std::string_view path, ProfileTable& profiles);
Result<contract::NeedView> TakeView(v1::NeedView& wire, std::string_view path, ProfileTable& profiles);
Result<contract::MachineView> TakeView(v1::MachineView& wire, std::string_view path);

void ToWire(const contract::NeedView& view, bigfleet::v1alpha1::NeedView& wire);
void ToWire(const contract::NeedView& view, v1::NeedView& wire);
void ToWire(const contract::MachineView& view, v1::MachineView& wire);

// All of the answer but its rows.
Result<contract::NeedsInspected> FromWire(const bigfleet::v1alpha1::InspectNeedsHeader& wire);
void ToWire(const contract::NeedsInspected& reply, bigfleet::v1alpha1::InspectNeedsHeader& wire);

// Answers in one message, as a client reads them.
Result<contract::ActionsListed> TakeReply(v1::ListActionsResponse& wire);
Result<contract::ClustersListed> TakeReply(v1::ListClustersResponse& wire);
Result<contract::Explained> TakeReply(v1::ExplainResponse& wire);
Result<contract::ActuationSet> TakeReply(v1::SetActuationResponse& wire);
Result<contract::OrderTaken> TakeReply(v1::RepairMachineResponse& wire);
Result<contract::OrderTaken> TakeReply(v1::ForgetMachineResponse& wire);
Result<contract::ForgottenListed> TakeReply(v1::ListForgottenResponse& wire);
Result<contract::OrderTaken> TakeReply(v1::RecallMachineResponse& wire);
Result<contract::LossesAccepted> TakeReply(v1::AcceptLossesResponse& wire);
Result<contract::OrderTaken> TakeReply(v1::DecommissionClusterResponse& wire);

void ToWire(const contract::ActionsListed& reply, v1::ListActionsResponse& wire);
void ToWire(const contract::ClustersListed& reply, v1::ListClustersResponse& wire);
void ToWire(const contract::Explained& reply, v1::ExplainResponse& wire);
void ToWire(const contract::ActuationSet& reply, v1::SetActuationResponse& wire);
void ToWire(const contract::OrderTaken& reply, v1::RepairMachineResponse& wire);
void ToWire(const contract::OrderTaken& reply, v1::ForgetMachineResponse& wire);
void ToWire(const contract::ForgottenListed& reply, v1::ListForgottenResponse& wire);
void ToWire(const contract::OrderTaken& reply, v1::RecallMachineResponse& wire);
void ToWire(const contract::LossesAccepted& reply, v1::AcceptLossesResponse& wire);
void ToWire(const contract::OrderTaken& reply, v1::DecommissionClusterResponse& wire);

}  // namespace muster::rpc
