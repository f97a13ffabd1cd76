// Between the messages of Coordinator.ReportShard and the contract's types, as a shard needs them: it writes reports
// and reads instructions. Neither can fail: what an instruction says is for the shard to accept or refuse by its id,
// and one of a kind that this build does not know comes through as std::monostate.
//
// Thread-safety: functions without state.
#pragma once

#include "contract/coordinator.h"

namespace bigfleet::v1alpha1 {
class ReportAck;
class ShardReport;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

void ToWire(const contract::ShardReport& report, bigfleet::v1alpha1::ShardReport& wire);
contract::ReportAck TakeReply(bigfleet::v1alpha1::ReportAck& wire);

}  // namespace muster::rpc
