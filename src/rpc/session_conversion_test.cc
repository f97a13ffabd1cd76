#include "rpc/session_conversion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "bigfleet/v1alpha1/shard.pb.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

const std::string kAnyBytes("\0\xff\x80z", 4);

std::vector<contract::OperatorMessage> FullOperatorMessages() {
  return {contract::Hello{.cluster_id = "blue", .protocol_version = "v1alpha1"},
          contract::Rollup{.cluster_id = "blue", .timestamp = WallTime(5s), .rows = contract::NeedRows({FullNeed()})},
          contract::BootstrapResponse{.request_id = "r", .user_data = kAnyBytes, .ttl = 60s, .error = "no"},
          contract::ReclaimAck{.instruction_id = "i", .nodes_started = 2}};
}

std::vector<contract::ShardMessage> FullShardMessages() {
  const std::vector<model::Requirement> requirements = FullNeed().profile.requirements();
  return {contract::Acknowledgement{.echo = "hello", .coordinator_term = 3, .shard_epoch = 4},
          contract::BootstrapRequest{.request_id = "r", .requirements = requirements, .cluster_id = "blue"},
          contract::ReclaimInstruction{
              .instruction_id = "i", .nodes = {"m-1", "m-2"}, .grace_period_seconds = 600, .preemptor_priority = -5},
          contract::NodeStateUpdate{.supersedes_key = "node:m-1",
                                    .machine_id = "m-1",
                                    .cluster_id = "blue",
                                    .state = model::MachineState::kDraining,
                                    .node_name = "n",
                                    .provider_id = "sim://h",
                                    .last_error = "none",
                                    .labels = {{"rack", "r1"}, {"empty", ""}},
                                    .resources = {{"cpu", 3'500}},
                                    .taints = {{.key = "k", .value = "v", .effect = "NoSchedule"}}},
          contract::AvailableCapacity{.supersedes_key = "available:f",
                                      .requirements = requirements,
                                      .resources = {{"memory", 1'024'000}},
                                      .available_count = 12,
                                      .confidence = contract::Confidence::kMedium,
                                      .cost_per_hour = {.micros = 123'457}}};
}

Result<contract::OperatorMessage> Take(pb::OperatorMessage& wire) { return TakeOperatorMessage(wire); }
Result<contract::ShardMessage> Take(pb::ShardMessage& wire) { return TakeShardMessage(wire); }

template <class Wire, class Message>
void ExpectSame(const Message& message) {
  Wire wire;
  ToWire(message, wire);
  EXPECT_EQ(UnsetFields(wire), std::vector<std::string>());
  wire = OverTheWire(wire);
  const auto read = Take(wire);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_TRUE(*read == message) << "alternative " << message.index();
}

TEST(SessionConversion, MessagesComeThroughUnchanged) {
  for (const auto& message : FullOperatorMessages()) ExpectSame<pb::OperatorMessage>(message);
  for (const auto& message : FullShardMessages()) ExpectSame<pb::ShardMessage>(message);
}

TEST(SessionConversion, WhatTheWorldSaysOfAFailureIsMadeReadable) {
  pb::ShardMessage wire;
  ToWire(contract::NodeStateUpdate{.last_error = "disk \xff gone"}, wire);
  EXPECT_EQ(OverTheWire(wire).node_state_update().last_error(), "disk ? gone");
  pb::OperatorMessage response;
  ToWire(contract::BootstrapResponse{.error = "\xff"}, response);
  EXPECT_EQ(OverTheWire(response).bootstrap_response().error(), "?");
}

template <class Wire, class Message>
void ExpectRefused(const Message& message, const std::function<void(Wire&)>& spoil, const std::string& reason) {
  Wire wire;
  ToWire(message, wire);
  spoil(wire);
  const auto read = Take(wire);
  ASSERT_FALSE(read.has_value()) << reason;
  EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(read.error().message().starts_with(reason)) << read.error().message();
}

TEST(SessionConversion, WhatAShardCannotReadIsNamed) {
  using Wire = pb::OperatorMessage;
  const auto messages = FullOperatorMessages();
  ExpectRefused<Wire>(
      messages[0], [](Wire& w) { w.mutable_hello()->clear_cluster_id(); },
      "hello.cluster_id: missing; say which cluster this is");
  ExpectRefused<Wire>(
      messages[0], [](Wire& w) { w.mutable_hello()->set_cluster_id(std::string(254, 'c')); },
      "hello.cluster_id: has 254 bytes, more than 253");
  ExpectRefused<Wire>(
      messages[0], [](Wire& w) { w.mutable_hello()->set_protocol_version(std::string(65, 'v')); },
      "hello.protocol_version: has 65 bytes, more than 64");
  ExpectRefused<Wire>(
      messages[2], [](Wire& w) { w.mutable_bootstrap_response()->clear_request_id(); },
      "bootstrap_response.request_id: missing; repeat that of the request");
  ExpectRefused<Wire>(
      messages[2], [](Wire& w) { w.mutable_bootstrap_response()->set_ttl_seconds(-1); },
      "bootstrap_response.ttl_seconds: -1 is negative; use zero or more");
  ExpectRefused<Wire>(
      messages[3], [](Wire& w) { w.mutable_reclaim_ack()->clear_instruction_id(); },
      "reclaim_ack.instruction_id: missing; repeat that of the instruction");
  ExpectRefused<Wire>(
      messages[3], [](Wire& w) { w.mutable_reclaim_ack()->set_nodes_started(-2); },
      "reclaim_ack.nodes_started: -2 is negative; use zero or more");
}

TEST(SessionConversion, WhatAClusterCannotReadIsNamed) {
  using Wire = pb::ShardMessage;
  const auto messages = FullShardMessages();
  const auto no_operator = static_cast<pb::NodeSelectorRequirement::Operator>(9);
  ExpectRefused<Wire>(messages[0], [](Wire& w) { w.Clear(); }, "payload: missing, or of a kind that is not known here");
  ExpectRefused<Wire>(
      messages[1], [](Wire& w) { w.mutable_bootstrap_request()->clear_request_id(); },
      "bootstrap_request.request_id: missing; an answer names it");
  ExpectRefused<Wire>(
      messages[1], [&](Wire& w) { w.mutable_bootstrap_request()->mutable_requirements(0)->set_operator_(no_operator); },
      "bootstrap_request.requirements[0].operator: 9 is not an operator; use 1 (In) to 5 (Same)");
  ExpectRefused<Wire>(
      messages[2], [](Wire& w) { w.mutable_reclaim_instruction()->clear_instruction_id(); },
      "reclaim_instruction.instruction_id: missing; an acknowledgement names it");
  ExpectRefused<Wire>(
      messages[2], [](Wire& w) { w.mutable_reclaim_instruction()->set_grace_period_seconds(-1); },
      "reclaim_instruction.grace_period_seconds: -1 is negative; use zero or more");
  ExpectRefused<Wire>(
      messages[3], [](Wire& w) { w.mutable_node_state_update()->clear_machine_id(); },
      "node_state_update.machine_id: missing; name the machine");
  ExpectRefused<Wire>(
      messages[3], [](Wire& w) { w.mutable_node_state_update()->clear_state(); },
      "node_state_update.state: 0 is not a state; use 1 (Speculative) to 8 (Failed)");
  ExpectRefused<Wire>(
      messages[3],
      [](Wire& w) { (*w.mutable_node_state_update()->mutable_resources()->mutable_resources())["cpu"] = "x"; },
      "node_state_update.resources.cpu: ");
  ExpectRefused<Wire>(
      messages[4],
      [&](Wire& w) { w.mutable_available_capacity()->mutable_requirements(0)->set_operator_(no_operator); },
      "available_capacity.requirements[0].operator: 9 is not an operator; use 1 (In) to 5 (Same)");
  ExpectRefused<Wire>(
      messages[4],
      [](Wire& w) { (*w.mutable_available_capacity()->mutable_resources()->mutable_resources())["cpu"] = "x"; },
      "available_capacity.resources.cpu: ");
  ExpectRefused<Wire>(
      messages[4], [](Wire& w) { w.mutable_available_capacity()->set_available_count(-1); },
      "available_capacity.available_count: -1 is negative; use zero or more");
  ExpectRefused<Wire>(
      messages[4],
      [](Wire& w) {
        w.mutable_available_capacity()->set_confidence(static_cast<pb::AvailableCapacityUpdate::Confidence>(5));
      },
      "available_capacity.confidence: 5 is not a confidence; use 1 (none) to 4 (high)");
  ExpectRefused<Wire>(
      messages[4], [](Wire& w) { w.mutable_available_capacity()->set_cost_per_hour(std::nan("")); },
      "available_capacity.cost_per_hour: amount of dollars nan: it must be from 0 to 9000000000000");
}

}  // namespace
}  // namespace muster::rpc
