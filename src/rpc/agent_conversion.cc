#include "rpc/agent_conversion.h"

#include "muster/v1/agent.pb.h"
#include "rpc/agent_tables.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

namespace {

constexpr Required kWorkload{"name the workload"};

}  // namespace

// Requests.

Result<contract::ApplyOnAgent> FromWire(const v1::ApplyOnAgent& wire) {
  return ReadByTable<contract::ApplyOnAgent>(wire);
}
void ToWire(const contract::ApplyOnAgent& request, v1::ApplyOnAgent& wire) { WriteTable(request, wire); }

MUSTER_WIRE_REQUEST(contract::DeleteOnAgent, v1::DeleteOnAgent, MUSTER_WIRE(workload, kWorkload),
                    MUSTER_WIRE_AS(grace, grace_nanos, Count()), MUSTER_WIRE(stamp));
MUSTER_WIRE_REQUEST(contract::GetStatusOnAgent, v1::GetStatusOnAgent, MUSTER_WIRE(workload, kWorkload));
MUSTER_WIRE_REQUEST(contract::ListOnAgent, v1::ListOnAgent);
MUSTER_WIRE_REQUEST(contract::ReadLogs, v1::LogsRequest, MUSTER_WIRE(workload, kWorkload), MUSTER_WIRE(follow),
                    MUSTER_WIRE_OPTIONAL(tail, Count()), MUSTER_WIRE_AS(since, since_unix_nanos));

// Replies.

Result<contract::WorkloadStatus> TakeReply(v1::WorkloadStatus& wire) {
  return ReadByTable<contract::WorkloadStatus>(wire);
}
void ToWire(const contract::WorkloadStatus& reply, v1::WorkloadStatus& wire) { WriteTable(reply, wire); }

MUSTER_WIRE_REPLY(contract::AppliedOnAgent, v1::AppliedOnAgent, MUSTER_WIRE(applied), MUSTER_WIRE(skipped),
                  MUSTER_WIRE(message, AnyBytes()), MUSTER_WIRE(status));
MUSTER_WIRE_REPLY(contract::DeletedOnAgent, v1::DeletedOnAgent, MUSTER_WIRE(success), MUSTER_WIRE(message, AnyBytes()));
MUSTER_WIRE_REPLY(contract::ListedOnAgent, v1::ListedOnAgent, MUSTER_WIRE(workloads));
MUSTER_WIRE_REPLY(contract::LogChunk, v1::LogChunk,
                  MUSTER_WIRE(stream, Numbers(0, 1, "a stream; use 0 (stdout) or 1 (stderr)")), MUSTER_WIRE(data),
                  MUSTER_WIRE_AS(at, at_unix_nanos));

}  // namespace muster::rpc
