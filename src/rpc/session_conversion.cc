#include "rpc/session_conversion.h"

#include <fmt/format.h>

#include <utility>

#include "bigfleet/v1alpha1/shard.pb.h"
#include "rpc/rollup_conversion.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

void Write(const contract::Hello& hello, pb::OperatorMessage& wire) {
  wire.mutable_hello()->set_cluster_id(hello.cluster_id);
  wire.mutable_hello()->set_protocol_version(hello.protocol_version);
}

void Write(const contract::Rollup& rollup, pb::OperatorMessage& wire) { ToWire(rollup, *wire.mutable_rollup()); }

void Write(const contract::BootstrapResponse& response, pb::OperatorMessage& wire) {
  pb::BootstrapBlobResponse& into = *wire.mutable_bootstrap_response();
  into.set_request_id(response.request_id);
  into.set_user_data(response.user_data);
  into.set_ttl_seconds(response.ttl.count());
  into.set_error(Readable(response.error));
}

void Write(const contract::ReclaimAck& ack, pb::OperatorMessage& wire) {
  wire.mutable_reclaim_ack()->set_instruction_id(ack.instruction_id);
  wire.mutable_reclaim_ack()->set_nodes_started(ack.nodes_started);
}

void Write(const contract::Acknowledgement& ack, pb::ShardMessage& wire) {
  pb::Acknowledgement& into = *wire.mutable_ack();
  into.set_echo(ack.echo);
  into.set_coordinator_term(ack.coordinator_term);
  into.set_shard_epoch(ack.shard_epoch);
}

void Write(const contract::BootstrapRequest& request, pb::ShardMessage& wire) {
  pb::BootstrapRequest& into = *wire.mutable_bootstrap_request();
  into.set_request_id(request.request_id);
  WriteRequirements(request.requirements, *into.mutable_requirements());
  into.set_cluster_id(request.cluster_id);
}

void Write(const contract::ReclaimInstruction& instruction, pb::ShardMessage& wire) {
  pb::ReclaimInstruction& into = *wire.mutable_reclaim_instruction();
  into.set_instruction_id(instruction.instruction_id);
  for (const std::string& node : instruction.nodes) into.add_nodes(node);
  into.set_grace_period_seconds(instruction.grace_period_seconds);
  into.set_preemptor_priority(instruction.preemptor_priority);
}

void Write(const contract::NodeStateUpdate& update, pb::ShardMessage& wire) {
  pb::NodeStateUpdate& into = *wire.mutable_node_state_update();
  into.set_supersedes_key(update.supersedes_key);
  into.set_machine_id(update.machine_id);
  into.set_cluster_id(update.cluster_id);
  into.set_state(static_cast<pb::MachineState>(update.state));
  into.set_node_name(update.node_name);
  into.set_provider_id(update.provider_id);
  into.set_last_error(Readable(update.last_error));
  WriteMap(update.labels, *into.mutable_labels());
  WriteResources(update.resources, *into.mutable_resources());
  for (const contract::Taint& taint : update.taints) {
    pb::Taint& row = *into.add_taints();
    row.set_key(taint.key);
    row.set_value(taint.value);
    row.set_effect(taint.effect);
  }
}

void Write(const contract::AvailableCapacity& available, pb::ShardMessage& wire) {
  pb::AvailableCapacityUpdate& into = *wire.mutable_available_capacity();
  into.set_supersedes_key(available.supersedes_key);
  WriteRequirements(available.requirements, *into.mutable_requirements());
  WriteResources(available.resources, *into.mutable_resources());
  into.set_available_count(available.available_count);
  into.set_confidence(static_cast<pb::AvailableCapacityUpdate::Confidence>(available.confidence));
  into.set_cost_per_hour(model::ToDollars(available.cost_per_hour));
}

contract::ShardMessage Take(pb::Acknowledgement& wire) {
  return contract::Acknowledgement{.echo = std::move(*wire.mutable_echo()),
                                   .coordinator_term = wire.coordinator_term(),
                                   .shard_epoch = wire.shard_epoch()};
}

Result<contract::ShardMessage> Take(pb::BootstrapRequest& wire) {
  constexpr std::string_view kPath = "bootstrap_request";
  if (wire.request_id().empty()) return Refuse(kPath, "request_id", "missing; an answer names it");
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::Requirement> requirements,
                          RequirementsFromWire(wire.requirements(), kPath));
  return contract::BootstrapRequest{.request_id = std::move(*wire.mutable_request_id()),
                                    .requirements = std::move(requirements),
                                    .cluster_id = std::move(*wire.mutable_cluster_id())};
}

Result<contract::ShardMessage> Take(pb::ReclaimInstruction& wire) {
  constexpr std::string_view kPath = "reclaim_instruction";
  if (wire.instruction_id().empty()) return Refuse(kPath, "instruction_id", "missing; an acknowledgement names it");
  MUSTER_ASSIGN_OR_RETURN(const int64_t grace,
                          CountFromWire(wire.grace_period_seconds(), kPath, "grace_period_seconds"));
  contract::ReclaimInstruction instruction{.instruction_id = std::move(*wire.mutable_instruction_id()),
                                           .nodes = {},
                                           .grace_period_seconds = grace,
                                           .preemptor_priority = wire.preemptor_priority()};
  for (std::string& node : *wire.mutable_nodes()) instruction.nodes.push_back(std::move(node));
  return instruction;
}

Result<contract::ShardMessage> Take(pb::NodeStateUpdate& wire) {
  constexpr std::string_view kPath = "node_state_update";
  if (wire.machine_id().empty()) return Refuse(kPath, "machine_id", "missing; name the machine");
  const auto state = StateFromWire(wire.state());
  if (!state) return Refuse(kPath, "state", state.error().message());
  MUSTER_ASSIGN_OR_RETURN(model::Resources resources,
                          ResourcesFromWire(wire.resources().resources(), kPath, "resources"));
  contract::NodeStateUpdate update{.supersedes_key = std::move(*wire.mutable_supersedes_key()),
                                   .machine_id = std::move(*wire.mutable_machine_id()),
                                   .cluster_id = std::move(*wire.mutable_cluster_id()),
                                   .state = *state,
                                   .node_name = std::move(*wire.mutable_node_name()),
                                   .provider_id = std::move(*wire.mutable_provider_id()),
                                   .last_error = std::move(*wire.mutable_last_error()),
                                   .labels = TakeMap(*wire.mutable_labels()),
                                   .resources = std::move(resources),
                                   .taints = {}};
  for (pb::Taint& taint : *wire.mutable_taints()) {
    update.taints.push_back({.key = std::move(*taint.mutable_key()),
                             .value = std::move(*taint.mutable_value()),
                             .effect = std::move(*taint.mutable_effect())});
  }
  return update;
}

Result<contract::ShardMessage> Take(pb::AvailableCapacityUpdate& wire) {
  constexpr std::string_view kPath = "available_capacity";
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::Requirement> requirements,
                          RequirementsFromWire(wire.requirements(), kPath));
  MUSTER_ASSIGN_OR_RETURN(model::Resources resources,
                          ResourcesFromWire(wire.resources().resources(), kPath, "resources"));
  MUSTER_ASSIGN_OR_RETURN(const int32_t count, CountFromWire(wire.available_count(), kPath, "available_count"));
  const int confidence = wire.confidence();
  if (confidence < 0 || confidence > static_cast<int>(contract::Confidence::kHigh)) {
    return Refuse(kPath, "confidence", fmt::format("{} is not a confidence; use 1 (none) to 4 (high)", confidence));
  }
  const auto cost = model::MoneyFromDollars(wire.cost_per_hour());
  if (!cost) return Refuse(kPath, "cost_per_hour", cost.error().message());
  return contract::AvailableCapacity{.supersedes_key = std::move(*wire.mutable_supersedes_key()),
                                     .requirements = std::move(requirements),
                                     .resources = std::move(resources),
                                     .available_count = count,
                                     .confidence = static_cast<contract::Confidence>(confidence),
                                     .cost_per_hour = *cost};
}

}  // namespace

Result<contract::Hello> TakeHello(pb::Hello& wire) {
  if (wire.cluster_id().empty()) return Refuse("hello", "cluster_id", "missing; say which cluster this is");
  return contract::Hello{.cluster_id = std::move(*wire.mutable_cluster_id()),
                         .protocol_version = std::move(*wire.mutable_protocol_version())};
}

Result<contract::BootstrapResponse> TakeBootstrapResponse(pb::BootstrapBlobResponse& wire) {
  constexpr std::string_view kPath = "bootstrap_response";
  if (wire.request_id().empty()) return Refuse(kPath, "request_id", "missing; repeat that of the request");
  MUSTER_ASSIGN_OR_RETURN(const int64_t ttl, CountFromWire(wire.ttl_seconds(), kPath, "ttl_seconds"));
  return contract::BootstrapResponse{.request_id = std::move(*wire.mutable_request_id()),
                                     .user_data = std::move(*wire.mutable_user_data()),
                                     .ttl = std::chrono::seconds(ttl),
                                     .error = std::move(*wire.mutable_error())};
}

Result<contract::ReclaimAck> TakeReclaimAck(pb::ReclaimAck& wire) {
  constexpr std::string_view kPath = "reclaim_ack";
  if (wire.instruction_id().empty()) {
    return Refuse(kPath, "instruction_id", "missing; repeat that of the instruction");
  }
  MUSTER_ASSIGN_OR_RETURN(const int32_t started, CountFromWire(wire.nodes_started(), kPath, "nodes_started"));
  return contract::ReclaimAck{.instruction_id = std::move(*wire.mutable_instruction_id()), .nodes_started = started};
}

Result<contract::ShardMessage> TakeShardMessage(pb::ShardMessage& wire) {
  switch (wire.payload_case()) {
    case pb::ShardMessage::kAck: return Take(*wire.mutable_ack());
    case pb::ShardMessage::kBootstrapRequest: return Take(*wire.mutable_bootstrap_request());
    case pb::ShardMessage::kReclaimInstruction: return Take(*wire.mutable_reclaim_instruction());
    case pb::ShardMessage::kNodeStateUpdate: return Take(*wire.mutable_node_state_update());
    case pb::ShardMessage::kAvailableCapacity: return Take(*wire.mutable_available_capacity());
    case pb::ShardMessage::PAYLOAD_NOT_SET: break;
  }
  return Refuse("", "payload", "missing, or of a kind that is not known here");
}

void ToWire(const contract::OperatorMessage& message, pb::OperatorMessage& wire) {
  std::visit([&](const auto& typed) { Write(typed, wire); }, message);
}

void ToWire(const contract::ShardMessage& message, pb::ShardMessage& wire) {
  std::visit([&](const auto& typed) { Write(typed, wire); }, message);
}

}  // namespace muster::rpc
