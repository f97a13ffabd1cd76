// Between the messages of muster.v1.Agent and the contract's types.
//
// Reading validates; an error is INVALID_ARGUMENT and names the field by its path ("spec.ports[1].protocol: ...").
// Writing cannot fail; texts that are no UTF-8 are written with '?' for what is none.
//
// Thread-safety: functions without state.
#pragma once

#include "base/status.h"
#include "contract/agent.h"
#include "contract/logs.h"

namespace muster::v1 {
class AppliedOnAgent;
class ApplyOnAgent;
class DeletedOnAgent;
class DeleteOnAgent;
class GetStatusOnAgent;
class ListedOnAgent;
class ListOnAgent;
class LogChunk;
class LogsRequest;
class WorkloadStatus;
}  // namespace muster::v1

namespace muster::rpc {

// Requests, as an agent reads them.
Result<contract::ApplyOnAgent> FromWire(const v1::ApplyOnAgent& wire);
Result<contract::DeleteOnAgent> FromWire(const v1::DeleteOnAgent& wire);
Result<contract::GetStatusOnAgent> FromWire(const v1::GetStatusOnAgent& wire);
Result<contract::ListOnAgent> FromWire(const v1::ListOnAgent& wire);
Result<contract::ReadLogs> FromWire(const v1::LogsRequest& wire);

void ToWire(const contract::ApplyOnAgent& request, v1::ApplyOnAgent& wire);
void ToWire(const contract::DeleteOnAgent& request, v1::DeleteOnAgent& wire);
void ToWire(const contract::GetStatusOnAgent& request, v1::GetStatusOnAgent& wire);
void ToWire(const contract::ListOnAgent& request, v1::ListOnAgent& wire);
void ToWire(const contract::ReadLogs& request, v1::LogsRequest& wire);

// Replies, as a scheduler reads them, taken out of the message.
Result<contract::AppliedOnAgent> TakeReply(v1::AppliedOnAgent& wire);
Result<contract::DeletedOnAgent> TakeReply(v1::DeletedOnAgent& wire);
Result<contract::WorkloadStatus> TakeReply(v1::WorkloadStatus& wire);
Result<contract::ListedOnAgent> TakeReply(v1::ListedOnAgent& wire);
Result<contract::LogChunk> TakeReply(v1::LogChunk& wire);

void ToWire(const contract::AppliedOnAgent& reply, v1::AppliedOnAgent& wire);
void ToWire(const contract::DeletedOnAgent& reply, v1::DeletedOnAgent& wire);
void ToWire(const contract::WorkloadStatus& reply, v1::WorkloadStatus& wire);
void ToWire(const contract::ListedOnAgent& reply, v1::ListedOnAgent& wire);
void ToWire(const contract::LogChunk& reply, v1::LogChunk& wire);

}  // namespace muster::rpc
