#include "rpc/session_conversion.h"

#include <fmt/format.h>

#include "bigfleet/v1alpha1/shard.pb.h"
#include "rpc/rollup_conversion.h"
#include "rpc/wire_oneof.h"
#include "rpc/wire_parts.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

namespace pb = bigfleet::v1alpha1;

namespace {

constexpr Numbers kState{.least = 1, .most = 8, .what = "a state; use 1 (Speculative) to 8 (Failed)"};
constexpr Numbers kConfidence{.least = 0, .most = 4, .what = "a confidence; use 1 (none) to 4 (high)"};

}  // namespace

MUSTER_WIRE_PART(contract::Hello, pb::Hello, MUSTER_WIRE(cluster_id, Required("say which cluster this is")),
                 MUSTER_WIRE(protocol_version));
MUSTER_WIRE_PART(contract::BootstrapResponse, pb::BootstrapBlobResponse,
                 MUSTER_WIRE(request_id, Required("repeat that of the request")), MUSTER_WIRE(user_data),
                 MUSTER_WIRE_AS(ttl, ttl_seconds, Count()), MUSTER_WIRE(error, AnyBytes()));
MUSTER_WIRE_PART(contract::ReclaimAck, pb::ReclaimAck,
                 MUSTER_WIRE(instruction_id, Required("repeat that of the instruction")),
                 MUSTER_WIRE(nodes_started, Count()));

MUSTER_WIRE_PART(contract::Acknowledgement, pb::Acknowledgement, MUSTER_WIRE(echo), MUSTER_WIRE(coordinator_term),
                 MUSTER_WIRE(shard_epoch));
MUSTER_WIRE_PART(contract::BootstrapRequest, pb::BootstrapRequest,
                 MUSTER_WIRE(request_id, Required("an answer names it")), MUSTER_WIRE(requirements),
                 MUSTER_WIRE(cluster_id));
MUSTER_WIRE_PART(contract::ReclaimInstruction, pb::ReclaimInstruction,
                 MUSTER_WIRE(instruction_id, Required("an acknowledgement names it")), MUSTER_WIRE(nodes),
                 MUSTER_WIRE(grace_period_seconds, Count()), MUSTER_WIRE(preemptor_priority));
MUSTER_WIRE_PART(contract::Taint, pb::Taint, MUSTER_WIRE(key), MUSTER_WIRE(value), MUSTER_WIRE(effect));
MUSTER_WIRE_PART(contract::NodeStateUpdate, pb::NodeStateUpdate, MUSTER_WIRE(supersedes_key),
                 MUSTER_WIRE(machine_id, Required("name the machine")), MUSTER_WIRE(cluster_id),
                 MUSTER_WIRE(state, kState), MUSTER_WIRE(node_name), MUSTER_WIRE(provider_id),
                 MUSTER_WIRE(last_error, AnyBytes()), MUSTER_WIRE(labels), MUSTER_WIRE(resources), MUSTER_WIRE(taints));
MUSTER_WIRE_PART(contract::AvailableCapacity, pb::AvailableCapacityUpdate, MUSTER_WIRE(supersedes_key),
                 MUSTER_WIRE(requirements), MUSTER_WIRE(resources), MUSTER_WIRE(available_count, Count()),
                 MUSTER_WIRE(confidence, kConfidence), MUSTER_WIRE(cost_per_hour));

namespace {

void Write(const contract::Hello& hello, pb::OperatorMessage& wire) { WriteTable(hello, *wire.mutable_hello()); }
void Write(const contract::Rollup& rollup, pb::OperatorMessage& wire) { ToWire(rollup, *wire.mutable_rollup()); }
void Write(const contract::BootstrapResponse& response, pb::OperatorMessage& wire) {
  WriteTable(response, *wire.mutable_bootstrap_response());
}
void Write(const contract::ReclaimAck& ack, pb::OperatorMessage& wire) { WriteTable(ack, *wire.mutable_reclaim_ack()); }

constexpr WireOneof kShardPayload(
    "payload", [](auto& message) -> auto& { return message; }, MUSTER_WIRE_CASE(contract::Acknowledgement, ack),
    MUSTER_WIRE_CASE(contract::BootstrapRequest, bootstrap_request),
    MUSTER_WIRE_CASE(contract::ReclaimInstruction, reclaim_instruction),
    MUSTER_WIRE_CASE(contract::NodeStateUpdate, node_state_update),
    MUSTER_WIRE_CASE(contract::AvailableCapacity, available_capacity));

}  // namespace

// Its texts are kept for as long as the shard runs, and quoted: they are short, or refused before anything else.
Result<contract::Hello> TakeHello(pb::Hello& wire) {
  constexpr size_t kLongestName = 253;
  constexpr size_t kLongestVersion = 64;
  if (wire.cluster_id().empty()) return Refuse("", "hello.cluster_id", "missing; say which cluster this is");
  const auto longer = [](const std::string& text, size_t most, std::string_view field) -> Status {
    if (text.size() <= most) return {};
    return Refuse("", field, fmt::format("has {} bytes, more than {}", text.size(), most)).error();
  };
  for (const Status& bad : {longer(wire.cluster_id(), kLongestName, "hello.cluster_id"),
                            longer(wire.protocol_version(), kLongestVersion, "hello.protocol_version")}) {
    if (!bad.ok()) return std::unexpected(bad);
  }
  return ReadByTable<contract::Hello>(wire, "hello");
}

Result<contract::BootstrapResponse> TakeBootstrapResponse(pb::BootstrapBlobResponse& wire) {
  return ReadByTable<contract::BootstrapResponse>(wire, "bootstrap_response");
}

Result<contract::ReclaimAck> TakeReclaimAck(pb::ReclaimAck& wire) {
  return ReadByTable<contract::ReclaimAck>(wire, "reclaim_ack");
}

Result<contract::ShardMessage> TakeShardMessage(pb::ShardMessage& wire) {
  if (wire.payload_case() == pb::ShardMessage::PAYLOAD_NOT_SET) {
    return Refuse("", "payload", "missing, or of a kind that is not known here");
  }
  contract::ShardMessage message;
  Status error;
  if (!kShardPayload.Read(wire, message, error)) return std::unexpected(std::move(error));
  return message;
}

void ToWire(const contract::OperatorMessage& message, pb::OperatorMessage& wire) {
  std::visit([&](const auto& typed) { Write(typed, wire); }, message);
}

void ToWire(const contract::ShardMessage& message, pb::ShardMessage& wire) { kShardPayload.Write(message, wire); }

}  // namespace muster::rpc
