#include "rpc/send_queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace muster::rpc {
namespace {

using contract::ShardMessage;

contract::NodeStateUpdate Node(const std::string& machine, model::MachineState state) {
  return {.supersedes_key = "node:" + machine, .machine_id = machine, .state = state};
}
contract::Acknowledgement Ack(int64_t term) { return {.echo = fmt::format("{}", term), .coordinator_term = term}; }

std::vector<ShardMessage> Drain(SendQueue& queue) {
  std::vector<ShardMessage> messages;
  while (auto message = queue.Pop()) messages.push_back(*std::move(message));
  return messages;
}

TEST(SendQueue, TheLatestUpdateOfAKeyGoesInThePlaceOfTheFirst) {
  SendQueue queue;
  using enum model::MachineState;
  queue.Push(Ack(1));
  queue.Push(Node("a", kConfiguring));
  queue.Push(Node("b", kConfiguring));
  queue.Push(contract::AvailableCapacity{.supersedes_key = "available:f", .available_count = 1});
  queue.Push(Ack(2));
  queue.Push(Node("a", kConfigured));
  queue.Push(contract::AvailableCapacity{.supersedes_key = "available:f", .available_count = 2});
  EXPECT_EQ(queue.size(), 5u);
  EXPECT_EQ(Drain(queue),
            (std::vector<ShardMessage>{
                Ack(1), Node("a", kConfigured), Node("b", kConfiguring),
                contract::AvailableCapacity{.supersedes_key = "available:f", .available_count = 2}, Ack(2)}));
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueue, WhatWentOutIsNotSuperseded) {
  SendQueue queue;
  using enum model::MachineState;
  queue.Push(Node("a", kConfiguring));
  queue.Push(Node("b", kConfiguring));
  EXPECT_EQ(queue.Pop(), ShardMessage(Node("a", kConfiguring)));
  queue.Push(Node("a", kConfigured));
  queue.Push(Node("b", kDraining));
  EXPECT_EQ(Drain(queue), (std::vector<ShardMessage>{Node("b", kDraining), Node("a", kConfigured)}));
  queue.Push(Node("a", kFailed));
  queue.Clear();
  queue.Push(Node("a", kIdle));
  EXPECT_EQ(Drain(queue), std::vector<ShardMessage>{Node("a", kIdle)});
}

TEST(SendQueue, MessagesWithoutAKeyAreNeverMerged) {
  SendQueue queue;
  contract::NodeStateUpdate plain = Node("a", model::MachineState::kIdle);
  plain.supersedes_key.clear();
  queue.Push(plain);
  queue.Push(plain);
  EXPECT_EQ(queue.size(), 2u);
}

TEST(SendQueue, OfAPeerThatDoesNotReadAnAcknowledgementTakesThePlaceOfTheSameBeforeIt) {
  SendQueue queue;
  const auto hello = [](int64_t term) { return contract::Acknowledgement{.echo = "hello", .coordinator_term = term}; };
  std::vector<ShardMessage> expected;
  for (int i = 0; i < 100; ++i) {
    queue.Push(hello(1));
    expected.push_back(hello(1));
  }
  for (const ShardMessage& message : std::vector<ShardMessage>{hello(2), Ack(3), hello(4), hello(5)})
    queue.Push(message);
  expected.back() = hello(2);
  expected.push_back(Ack(3));
  expected.push_back(hello(5));
  EXPECT_EQ(Drain(queue), expected);
}

TEST(SendQueue, HintsCountByWhatTheyTake) {
  SendQueue queue({.messages = 1, .bytes = 10'000});
  const auto hint = [](const std::string& key, size_t size) {
    return contract::AvailableCapacity{.supersedes_key = key,
                                       .requirements = {{.key = "k", .values = {std::string(size, 'v')}}}};
  };
  queue.Push(hint("a", 6'000));
  queue.Push(hint("a", 6'000));
  EXPECT_FALSE(queue.overlong());
  queue.Push(hint("b", 6'000));
  EXPECT_TRUE(queue.overlong());
  queue.Push(hint("b", 10));
  EXPECT_FALSE(queue.overlong());
  EXPECT_EQ(Drain(queue).size(), 2u);
}

TEST(SendQueue, OnlyMessagesWithoutAKeyMakeItOverlong) {
  SendQueue queue({.messages = 3, .bytes = 1 << 20});
  for (int i = 0; i < 100; ++i) queue.Push(Node(fmt::format("m{}", i), model::MachineState::kIdle));
  for (int i = 0; i < 3; ++i) queue.Push(Ack(i));
  EXPECT_FALSE(queue.overlong());
  queue.Push(Ack(3));
  EXPECT_TRUE(queue.overlong());
  for (int i = 0; i < 101; ++i) queue.Pop();
  EXPECT_FALSE(queue.overlong());
}

TEST(SendQueue, FewButLargeMessagesMakeItOverlongToo) {
  SendQueue queue({.messages = 100, .bytes = 10'000});
  queue.Push(contract::ReclaimInstruction{.instruction_id = "i", .nodes = {std::string(6'000, 'n')}});
  EXPECT_FALSE(queue.overlong());
  queue.Push(contract::BootstrapRequest{.requirements = {{.key = "k", .values = {std::string(6'000, 'v')}}}});
  EXPECT_TRUE(queue.overlong());
  queue.Pop();
  EXPECT_FALSE(queue.overlong());
}

}  // namespace
}  // namespace muster::rpc
