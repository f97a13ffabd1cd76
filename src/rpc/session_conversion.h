// Between the messages of a session and the contract's types; roll-ups are in rollup_conversion.h.
//
// Reading validates, and takes the strings out of the message; an error is INVALID_ARGUMENT and names the field by its
// path ("hello.cluster_id: ..."). Writing cannot fail. Identifiers and blobs pass as they are, byte for byte.
//
// Thread-safety: functions without state.
#pragma once

#include "base/status.h"
#include "contract/session.h"

namespace bigfleet::v1alpha1 {
class BootstrapBlobResponse;
class Hello;
class OperatorMessage;
class ReclaimAck;
class ShardMessage;
}  // namespace bigfleet::v1alpha1

namespace muster::rpc {

// As a shard reads them.
Result<contract::Hello> TakeHello(bigfleet::v1alpha1::Hello& wire);
Result<contract::BootstrapResponse> TakeBootstrapResponse(bigfleet::v1alpha1::BootstrapBlobResponse& wire);
Result<contract::ReclaimAck> TakeReclaimAck(bigfleet::v1alpha1::ReclaimAck& wire);

// As a cluster reads them. A message without payload, which a newer shard may send, is refused too.
Result<contract::ShardMessage> TakeShardMessage(bigfleet::v1alpha1::ShardMessage& wire);

void ToWire(const contract::OperatorMessage& message, bigfleet::v1alpha1::OperatorMessage& wire);
void ToWire(const contract::ShardMessage& message, bigfleet::v1alpha1::ShardMessage& wire);

}  // namespace muster::rpc
