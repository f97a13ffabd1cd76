#include "rpc/message_bounds.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "bigfleet/v1alpha1/shard.pb.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// In pieces of this many bytes, as a transport may cut it.
Status Check(const google::protobuf::Descriptor& type, const std::string& bytes, const MessageBounds& bounds,
             size_t piece = 1 << 20) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.push_back(std::string_view(bytes).substr(at, piece));
  return CheckBounds(type, pieces, bounds);
}

pb::OperatorMessage RollupOf(int rows) {
  pb::OperatorMessage message;
  for (int i = 0; i < rows; ++i) {
    pb::CapacityNeed& need = *message.mutable_rollup()->add_needs();
    need.set_priority(i);
    (*need.mutable_aggregate_resources())["cpu"] = "96";
    (*need.mutable_aggregate_resources())["memory"] = "768Gi";
    (*need.mutable_min_unit())["cpu"] = "2";
    pb::NodeSelectorRequirement& requirement = *need.add_requirements();
    requirement.set_key("topology.kubernetes.io/zone");
    requirement.add_values("eu-central-1a");
    requirement.add_values("eu-central-1b");
  }
  return message;
}

TEST(MessageBounds, ARealRollupPasses) {
  const pb::OperatorMessage message = RollupOf(20'000);
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), message.SerializeAsString(), kRollupBounds), Status());
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), message.SerializeAsString(), kRollupBounds, 7), Status())
      << "however it is cut";
}

TEST(MessageBounds, TheEstimateIsWhatItTakesOrMore) {
  const pb::OperatorMessage message = RollupOf(5'000);
  const size_t takes = message.SpaceUsedLong();
  const MessageBounds less{.bytes = 1 << 30, .memory = takes * 9 / 10, .rows = 1 << 30};
  const MessageBounds more{.bytes = 1 << 30, .memory = takes * 3, .rows = 1 << 30};
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), message.SerializeAsString(), less).code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), message.SerializeAsString(), more), Status());
}

TEST(MessageBounds, EachBoundIsNamed) {
  const pb::OperatorMessage message = RollupOf(2'000);
  const auto said = [&](const MessageBounds& bounds) {
    return Check(*pb::OperatorMessage::descriptor(), message.SerializeAsString(), bounds).message();
  };
  EXPECT_TRUE(said({.bytes = 100'000}).contains("bytes, and 100000 are allowed")) << said({.bytes = 100'000});
  EXPECT_EQ(said({.rows = 1'000}), "needs: the message has more than 1000 rows; send less at a time");
  EXPECT_TRUE(said({.memory = 1 << 20}).contains("takes more than 1 MiB of memory once it is read"));
}

TEST(MessageBounds, UnknownFieldsAndNumbersCount) {
  std::string unknown;
  for (int i = 0; i < 1'000'000; ++i) unknown += std::string("\xF8\x01\x01", 3);  // field 31, a number
  EXPECT_EQ(Check(*pb::MachineRef::descriptor(), unknown, {}).code(), Code::kResourceExhausted);
  pb::ListFilter filter;
  for (int i = 0; i < 3'000'000; ++i) filter.add_states(pb::MACHINE_STATE_IDLE);
  EXPECT_EQ(Check(*pb::ListFilter::descriptor(), filter.SerializeAsString(), {}).code(), Code::kResourceExhausted);
}

// They are kept as fields that are not known.
TEST(MessageBounds, ValuesOfAnotherKindThanTheirFieldCount) {
  std::string numbers;  // where the descriptor has a text
  for (int i = 0; i < 1'000'000; ++i) numbers += std::string("\x08\x01", 2);
  ASSERT_EQ(pb::MachineRef::descriptor()->FindFieldByNumber(1)->type(), google::protobuf::FieldDescriptor::TYPE_STRING);
  EXPECT_EQ(Check(*pb::MachineRef::descriptor(), numbers, {}).code(), Code::kResourceExhausted);
  const int priority = pb::CapacityNeed::descriptor()->FindFieldByName("priority")->number();
  ASSERT_LT(priority, 16);
  std::string texts;  // empty ones, where it has a number
  for (int i = 0; i < 1'000'000; ++i) texts += std::string{static_cast<char>(priority << 3 | 2), '\0'};
  EXPECT_EQ(Check(*pb::CapacityNeed::descriptor(), texts, {}).code(), Code::kResourceExhausted);
}

// protobuf reads on behind one, so that rows could hide there.
TEST(MessageBounds, AGroupIsRefused) {
  std::string message = "\x7B\x7C";  // field 15, a group with nothing in it
  for (int i = 0; i < 100'000; ++i) message += std::string("\x0A\x00", 2);
  pb::MachineList parsed;
  ASSERT_TRUE(parsed.ParseFromString(message));
  ASSERT_EQ(parsed.machines_size(), 100'000);
  const Status fit = Check(*pb::MachineList::descriptor(), message, {});
  EXPECT_EQ(fit, Status(Code::kInvalidArgument, "the message has a group, and none of this protocol has one"));
  const std::vector<std::string_view> small = {std::string_view(message).substr(0, 100)};
  EXPECT_EQ(WeighMessage(*pb::MachineList::descriptor(), small, {}).error(), fit) << "its weight is not known";
}

TEST(MessageBounds, WhatIsNoMessageIsLeftToTheParser) {
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), std::string(200'000, '\xFF'), {}), Status());
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), RollupOf(2'000).SerializeAsString().substr(0, 100'001), {}),
            Status());
  EXPECT_EQ(Check(*pb::OperatorMessage::descriptor(), "", {}), Status());
}

}  // namespace
}  // namespace muster::rpc
