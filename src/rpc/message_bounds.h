// MessageBounds: how large a message may be, looked at in its bytes before anything is built of them.
//
// Two bytes on the wire can become hundreds in memory: an empty row is an object with maps of its own. So the bytes are
// walked once by the message's descriptor, what each part takes when it is built is added up, and a message that would
// take more than allowed is refused by the field at which it does. A message too small to do harm is not walked.
//
// Thread-safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"

namespace google::protobuf {
class Descriptor;
}

namespace muster::rpc {

struct MessageBounds {
  size_t bytes = 4 << 20;    // on the wire
  size_t memory = 32 << 20;  // once it is read, estimated
  size_t rows = 100'000;     // of one repeated field of messages
};
// Of a session, whose roll-ups hold a cluster's whole demand; everything else said in one has the bounds above.
inline constexpr MessageBounds kRollupBounds{.bytes = 24 << 20, .memory = 48 << 20, .rows = 100'000};

// Of an agent's answers, of which a node with thousands of workloads lists all.
inline constexpr MessageBounds kAgentReplyBounds{.bytes = 8 << 20, .memory = 40 << 20, .rows = 20'000};

// Of an answer of a scheduler or a shard: a page of a list, which a scheduler ends at a quarter of the bytes, or one
// row or change of a stream.
inline constexpr MessageBounds kServerReplyBounds{.bytes = 16 << 20, .memory = 48 << 20, .rows = 100'000};

// Of what a node hears when it joins: everything that is assigned to it, with its templates: hundreds of the largest
// that are admitted (model/workload_bounds.h). Not less, or a tenant could keep a node from joining with fewer.
inline constexpr MessageBounds kNodeStateBounds{.bytes = 128 << 20, .memory = 192 << 20, .rows = 100'000};

// Up to here a message is taken as it is.
inline constexpr size_t kHarmlessBytes = 64 << 10;

// `pieces` are the bytes in order. RESOURCE_EXHAUSTED with the bound that is passed and, where it is one, the field.
// Bytes that are no message of the type are OK: parsing refuses them.
Status CheckBounds(const google::protobuf::Descriptor& type, std::span<const std::string_view> pieces,
                   const MessageBounds& bounds);

// The same, and what it is estimated to take once it is read: no less than its bytes.
Result<size_t> WeighMessage(const google::protobuf::Descriptor& type, std::span<const std::string_view> pieces,
                            const MessageBounds& bounds);

}  // namespace muster::rpc
