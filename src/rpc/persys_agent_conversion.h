// Between the messages of persys.agent.v1 and the contract's types, for both ends.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path. Writing cannot fail. That protocol
// has no stamps, tenants, sets or graces: a request that is read has none, and the grace is the default one. Times are
// seconds. An exit code is the metadata key "container.exit_code".
//
// Thread-safety: functions without state.
#pragma once

#include "base/status.h"
#include "contract/agent.h"

namespace persys::agent::v1 {
class ApplyWorkloadRequest;
class ApplyWorkloadResponse;
class DeleteWorkloadRequest;
class DeleteWorkloadResponse;
class GetWorkloadStatusRequest;
class GetWorkloadStatusResponse;
class ListWorkloadsRequest;
class ListWorkloadsResponse;
}  // namespace persys::agent::v1

namespace muster::rpc {

// Requests, as an agent reads them. The filter of a list is the service's.
Result<contract::ApplyOnAgent> FromWire(const persys::agent::v1::ApplyWorkloadRequest& wire);
Result<contract::DeleteOnAgent> FromWire(const persys::agent::v1::DeleteWorkloadRequest& wire);
Result<contract::GetStatusOnAgent> FromWire(const persys::agent::v1::GetWorkloadStatusRequest& wire);
Result<contract::ListOnAgent> FromWire(const persys::agent::v1::ListWorkloadsRequest& wire);

void ToWire(const contract::ApplyOnAgent& request, persys::agent::v1::ApplyWorkloadRequest& wire);
void ToWire(const contract::DeleteOnAgent& request, persys::agent::v1::DeleteWorkloadRequest& wire);
void ToWire(const contract::GetStatusOnAgent& request, persys::agent::v1::GetWorkloadStatusRequest& wire);
void ToWire(const contract::ListOnAgent& request, persys::agent::v1::ListWorkloadsRequest& wire);

// Replies, as a scheduler reads them, taken out of the message.
Result<contract::AppliedOnAgent> TakeReply(persys::agent::v1::ApplyWorkloadResponse& wire);
Result<contract::DeletedOnAgent> TakeReply(persys::agent::v1::DeleteWorkloadResponse& wire);
Result<contract::WorkloadStatus> TakeReply(persys::agent::v1::GetWorkloadStatusResponse& wire);
Result<contract::ListedOnAgent> TakeReply(persys::agent::v1::ListWorkloadsResponse& wire);

void ToWire(const contract::AppliedOnAgent& reply, persys::agent::v1::ApplyWorkloadResponse& wire);
void ToWire(const contract::DeletedOnAgent& reply, persys::agent::v1::DeleteWorkloadResponse& wire);
void ToWire(const contract::WorkloadStatus& reply, persys::agent::v1::GetWorkloadStatusResponse& wire);
void ToWire(const contract::ListedOnAgent& reply, persys::agent::v1::ListWorkloadsResponse& wire);

}  // namespace muster::rpc
