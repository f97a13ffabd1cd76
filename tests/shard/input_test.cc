// `muster shard` and peers that speak the wire's own messages and get them wrong: clusters whose roll-ups are bad or
// suspicious, providers that list garbage, hang, dawdle or fail. What is wrong is refused by name and counted, what was
// good stays, and cycles go on.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>

#include "shard/peers.h"

namespace muster::shard {
namespace {

using Input = PeersTest;

TEST_F(Input, WrongRollupsAreRefusedOrHeldAndTheReasonIsShown) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.Say(1000, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 1; }));

  struct Wrong {
    const char* reason;
    std::function<void(pb::ClusterCapacityNeeds&)> change;
  };
  double refused = 0;
  for (const auto& [reason, change] : std::vector<Wrong>{
           {"needs[7].aggregate_resources.cpu: quantity \\\"4x\\\"",
            [](auto& rollup) { (*rollup.mutable_needs(7)->mutable_aggregate_resources())["cpu"] = "4x"; }},
           {"needs[7].interruption_penalty_bucket: penalty bucket 28: ",
            [](auto& rollup) {
              rollup.mutable_needs(7)->set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(28));
            }},
           {"cluster_id: ", [](auto& rollup) { rollup.set_cluster_id("green"); }}}) {
    blue.Say(1000, 20, change);
    ++refused;
    EXPECT_TRUE(Eventually([&] {
      return Metric("bigfleet_shard_rollups_rejected_total{cluster=\"blue\"}") == refused;
    })) << reason;
    EXPECT_TRUE(Run({"clusters", "-o", "json"}).contains(reason)) << Run({"clusters", "-o", "json"});
  }
  EXPECT_EQ(blue.acknowledged(), 1) << "what is refused is not acknowledged";

  blue.Say(1, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 2; })) << "held is acknowledged";
  const auto held = [&](double value) {
    return Eventually([&] { return Metric("bigfleet_shard_rollup_quarantined{cluster=\"blue\"}") == value; });
  };
  EXPECT_TRUE(held(1));
  const std::string fewer_rows = Run({"clusters", "-o", "json"});
  EXPECT_TRUE(fewer_rows.contains("\"heldRollups\":1") && fewer_rows.contains("1 rows after 1000")) << fewer_rows;
  blue.Say(1000, 1);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 3; }));
  EXPECT_TRUE(held(2));
  const std::string smaller = Run({"clusters", "-o", "json"});
  EXPECT_TRUE(smaller.contains("\"heldRollups\":2") && smaller.contains("cpu")) << smaller;

  const auto needs = shard_->Needs();
  ASSERT_TRUE(needs.has_value());
  ASSERT_EQ(needs->needs.size(), 1000u) << "the last good one stays";
  for (const contract::NeedView& view : needs->needs) EXPECT_EQ(view.need.aggregate.Get("cpu"), 20'000);
  blue.Say(1000, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 4; }));
  EXPECT_TRUE(held(0));
}

TEST_F(Input, GarbageInAListIsRefusedByNameAndTheRestIsUsed) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  peer.spoil = [](pb::MachineList& list) {
    const auto bad = [&](const std::string& id) {
      pb::Machine& machine = *list.add_machines();
      machine.set_id(id);
      machine.set_state(pb::MACHINE_STATE_SPECULATIVE);
      machine.set_capacity_type(pb::CAPACITY_TYPE_ON_DEMAND);
      (*machine.mutable_resources()->mutable_resources())["cpu"] = "64";
      return &machine;
    };
    bad("bad-price")->set_price_per_hour(std::numeric_limits<double>::quiet_NaN());
    bad("bad-probability")->set_interruption_probability(2);
    bad("bad-state")->set_state(static_cast<pb::MachineState>(99));
    (*bad("bad-resources")->mutable_resources()->mutable_resources())["gpu"] = "much";
    bad("twice")->set_price_per_hour(100);
    bad("twice")->set_price_per_hour(1);
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 4)});
  EXPECT_TRUE(Eventually([&] { return Configured() == 4; }));
  EXPECT_TRUE(KeepsPace());
  for (const char* reason : {"price", "interruption_probability", "structural"}) {
    EXPECT_GT(Metric(fmt::format("bigfleet_shard_machines_rejected_total{{reason=\"{}\"}}", reason)), 0) << reason;
  }
  const std::string machines = Run({"machines", "-o", "json", "--limit", "0"});
  EXPECT_FALSE(machines.contains("\"bad-")) << machines;
  const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{});
  ASSERT_TRUE(listed.has_value());
  const auto twice =
      std::ranges::find(listed->machines, "twice", [](const contract::MachineView& view) { return view.machine->id; });
  ASSERT_NE(twice, listed->machines.end());
  EXPECT_EQ(twice->machine->price_per_hour.micros, 100'000'000) << "the first of the two counts";
  shard_->process().Signal(SIGTERM);
  EXPECT_EQ(shard_->process().Wait(), 0);
  const std::string log = shard_->process().err();
  for (const char* id : {"bad-price", "bad-probability", "bad-state", "bad-resources", "twice"}) {
    EXPECT_TRUE(log.contains(id)) << id;
  }
}

TEST_F(Input, AHungProviderDoesNotStopTheCycles) {
  ASSERT_TRUE(provider_.up());
  std::atomic<bool> hung = true;
  std::atomic<int> held = 0;
  Peer peer(provider_.grpc());
  peer.habit = [&] {
    ++held;
    hung.wait(true);
    return grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 6)});
  EXPECT_TRUE(Eventually([&] { return held > 0; }));
  EXPECT_TRUE(KeepsPace());
  EXPECT_EQ(Configured(), 0u);
  hung = false;
  hung.notify_all();
  EXPECT_TRUE(Eventually([&] { return Configured() == 6; }));
}

TEST_F(Input, AProviderThatTakesFiveSecondsForEveryCallGetsThereInTheEnd) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  peer.habit = [] {
    std::this_thread::sleep_for(5s);  // nobody waits for it: this is what slow means
    return grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 6)});
  EXPECT_TRUE(KeepsPace());
  EXPECT_TRUE(Eventually([&] { return Configured() == 6; }));
}

TEST_F(Input, AProviderThatFailsEveryThirdCallGetsThereInTheEnd) {
  ASSERT_TRUE(provider_.up());
  std::atomic<int> calls = 0;
  Peer peer(provider_.grpc());
  peer.habit = [&] {
    return ++calls % 3 == 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now") : grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 10)});
  EXPECT_TRUE(KeepsPace());
  EXPECT_TRUE(Eventually([&] { return Configured() == 10; }));
  EXPECT_GE(calls, 20 + 6);  // a Create and a Configure for each, and those that failed
}

}  // namespace
}  // namespace muster::shard
