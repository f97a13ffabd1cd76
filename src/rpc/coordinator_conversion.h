// Between the messages of Coordinator.ReportShard and the contract's types: a shard writes reports and reads
// acknowledgements, a coordinator the reverse.
//
// Reading a report validates; an error is INVALID_ARGUMENT and names the field by its path ("shortfalls[3].deficit.cpu:
// ..."). Reading an acknowledgement cannot fail: the shard accepts or refuses each instruction by its id, and one of a
// kind that this build does not know is std::monostate. Writing cannot fail.
//
// Thread-safety: functions without state.
#pragma once

#include "base/status.h"
#include "contract/coordinator.h"

namespace bigfleet::v1alpha1 {
class ReportAck;
class ShardReport;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

Result<contract::ShardReport> FromWire(const bigfleet::v1alpha1::ShardReport& wire);
Result<contract::ReportAck> TakeReply(bigfleet::v1alpha1::ReportAck& wire);

void ToWire(const contract::ShardReport& report, bigfleet::v1alpha1::ShardReport& wire);
void ToWire(const contract::ReportAck& reply, bigfleet::v1alpha1::ReportAck& wire);

}  // namespace muster::rpc
