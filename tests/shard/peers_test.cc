// `muster shard` and peers that lie: resource names that no machine has, empty roll-ups in a row, a log that is not
// read, providers that refuse Delete in Failed, that answer a capped page with their head revision, that fence a call
// by mistake, that show all machines as Failed and then none of them.
#include "shard/peers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace muster::shard {
namespace {

using Peers = PeersTest;

bool IsReady(const ShardLife& shard) {
  return host::HttpGet(*host::ParseListenAddress(shard.http(), false, "http"), "/readyz").status == 200;
}

TEST_F(Peers, InventedResourceNamesCostNobodyElseAnything) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker green(shard_->grpc(), "green");
  green.Say(16, 1, [](auto& rollup) {
    for (int row = 0; row < 16; ++row) {
      (*rollup.mutable_needs(row)->mutable_aggregate_resources())[fmt::format("junk.example/{}", row)] = "1";
    }
  });
  ASSERT_TRUE(Eventually([&] { return green.acknowledged() == 1; })) << "short by that reason, not refused";
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 4)});
  EXPECT_TRUE(Eventually([&] { return Configured() == 4; }));
  for (const char* reason : {"price", "interruption_probability", "structural"}) {
    EXPECT_EQ(Metric(fmt::format("bigfleet_shard_machines_rejected_total{{reason=\"{}\"}}", reason)), 0) << reason;
  }
  EXPECT_TRUE(IsReady(*shard_));
  const std::string needs = Run({"needs", "-o", "json"});
  EXPECT_TRUE(needs.contains("short.resource")) << needs;
}

TEST_F(Peers, EmptyRollupsInARowAreHeldForHalfAMinute) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.Say(20, 1);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 1; }));
  const host::SystemClock clock;
  const MonoTime began = clock.Read().mono;
  for (int i = 0; i < 5; ++i) {
    blue.Say(0, 0);
    ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 2 + i; }));
  }
  ASSERT_LT(clock.Read().mono - began, 30s) << "too slow to show anything";
  auto needs = shard_->Needs();
  ASSERT_TRUE(needs.has_value());
  EXPECT_EQ(needs->needs.size(), 20u) << "three in a row are not enough";
  EXPECT_TRUE(Eventually([&] {
    blue.Say(0, 0);
    needs = shard_->Needs();
    return needs && needs->needs.empty();
  })) << "held, not for ever";
  EXPECT_GE(clock.Read().mono - began, 30s);
}

// Each held roll-up is a line of the log, and the test reads none of them: a pipe holds 64 KiB.
TEST_F(Peers, ALogThatIsNotReadStopsNothing) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.Say(20, 1);
  for (int i = 1; i < 400; ++i) {
    ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == i; })) << "after " << i << " roll-ups";
    blue.Say(0, 0);
  }
  EXPECT_TRUE(KeepsPace());
}

TEST_F(Peers, AProviderThatRefusesDeleteInFailedIsNotAskedForEver) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  std::atomic<int> deletes = 0;
  const auto break_machine = [](pb::Machine& machine) {
    machine.set_id("broken");
    machine.set_state(pb::MACHINE_STATE_FAILED);
    machine.set_capacity_type(pb::CAPACITY_TYPE_ON_DEMAND);
    machine.set_last_error("disk");
    machine.mutable_host()->set_provider("p");
    machine.mutable_host()->set_ref("r");
    (*machine.mutable_resources()->mutable_resources())["cpu"] = "1";
  };
  peer.spoil = [&](pb::MachineList& list) { break_machine(*list.add_machines()); };
  peer.gets = [&](const std::string& id, pb::Machine& machine) {
    if (id == "broken") break_machine(machine);
    return id == "broken";
  };
  peer.deletes = [&](const std::string& id) {
    if (id != "broken") return grpc::Status::OK;
    ++deletes;
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "machine is Failed");
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  ASSERT_TRUE(Eventually([&] { return Run({"machines", "--state", "Failed"}).contains("broken"); }));
  for (int i = 1; i <= 3; ++i) {
    Run({"repair", "broken", "--reason", "test"});
    ASSERT_TRUE(Eventually([&] { return deletes == i; }));
    const auto ended = [&] {
      return Metric(R"(bigfleet_shard_action_execute_outcomes_total{kind="Repair",outcome="provider_error"})");
    };
    ASSERT_TRUE(Eventually([&] { return ended() == i; }));
  }
  EXPECT_TRUE(Eventually([&] { return Run({"machines", "--state", "Failed"}).contains("hold.refused"); }))
      << "it is shown";
  // What waits to be repaired is due now, or when the machine has rested, 8 s after the third refusal.
  Run({"accept", "--reason", "test"});
  const int64_t cycle = shard_->Cycle();
  ASSERT_TRUE(Eventually([&] { return shard_->Cycle() >= cycle + 50; }));
  EXPECT_EQ(deletes, 3) << "no cycle asks for more";
}

TEST_F(Peers, CappedPagesWithTheHeadRevisionHideNoMachine) {
  constexpr int kMany = 6000;
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  peer.lists = [](const pb::ListFilter& filter, pb::MachineList& list) {
    list.set_revision("6000");
    if (filter.since_revision() == "6000") return true;  // nothing changed since
    for (int i = 0; i < kMany; ++i) {
      if (filter.max_results() > 0 && i >= filter.max_results()) break;
      pb::Machine& machine = *list.add_machines();
      machine.set_id(fmt::format("m-{:05}", i));
      machine.set_state(pb::MACHINE_STATE_SPECULATIVE);
      machine.set_instance_type("t");
      machine.set_zone("a");
      machine.set_capacity_type(pb::CAPACITY_TYPE_ON_DEMAND);
      machine.set_price_per_hour(1);
      (*machine.mutable_resources()->mutable_resources())["cpu"] = "1";
    }
    return true;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  EXPECT_TRUE(Eventually([&] {
    const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{});
    return listed && listed->machines.size() == kMany;
  }));
}

TEST_F(Peers, OneFencedCallSetsOneMachineAside) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  std::atomic<int> calls = 0;
  peer.habit = [&] {
    return ++calls == 1 ? grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "fenced") : grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 5)});
  EXPECT_TRUE(Eventually([&] { return Configured() == 5; })) << "by other machines";
  EXPECT_TRUE(IsReady(*shard_));
  const std::string machines = Run({"machines", "--limit", "0"});
  EXPECT_TRUE(machines.contains("fenced")) << machines;
  EXPECT_FALSE(shard_->process().Ended());
}

// What the provider is asked to make and to delete in place of machines that it says are lost: a tenth of them.
TEST_F(Peers, MachinesThatAllFailAndThenVanishAreReplacedWithinTheBudget) {
  constexpr int kServe = 20;
  constexpr int kBudget = 2;  // a tenth
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  enum class Lie : uint8_t { kNone, kFailed, kAbsent };
  std::atomic<Lie> lie = Lie::kNone;
  std::mutex mu;
  std::map<std::string, pb::Machine> serving;  // guarded by mu; as it says that they have failed
  peer.spoil = [&](pb::MachineList& list) {
    const std::lock_guard lock(mu);
    auto& machines = *list.mutable_machines();
    if (lie == Lie::kNone) {
      for (pb::Machine machine : machines) {
        if (machine.state() != pb::MACHINE_STATE_CONFIGURED) continue;
        machine.set_state(pb::MACHINE_STATE_FAILED);
        machine.set_last_error("lost");
        serving[machine.id()] = machine;
      }
    } else if (lie == Lie::kFailed) {
      for (pb::Machine& machine : machines) {
        if (const auto found = serving.find(machine.id()); found != serving.end()) machine = found->second;
      }
    } else {
      const auto gone = std::remove_if(machines.begin(), machines.end(),
                                       [&](const pb::Machine& machine) { return serving.contains(machine.id()); });
      machines.erase(gone, machines.end());
    }
  };
  peer.gets = [&](const std::string& id, pb::Machine& machine) {
    const std::lock_guard lock(mu);
    if (lie != Lie::kFailed || !serving.contains(id)) return false;
    machine = serving[id];
    return true;
  };
  peer.hides = [&](const std::string& id) {
    const std::lock_guard lock(mu);
    return lie == Lie::kAbsent && serving.contains(id);
  };
  std::vector<std::string> command =
      fleet_.ShardCommand(peer.target(), ":0", {"--cycle-interval", "200ms", "--no-incremental-reconcile"});
  *(std::ranges::find(command, "--reclaim-budget") + 1) = "10%/30m";
  shard_ = std::make_unique<ShardLife>(command);
  ASSERT_TRUE(shard_->up()) << shard_->process().err();
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", kServe)});
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mu);
    return serving.size() == kServe;
  }));
  const int created = peer.create_calls;
  const int deleted = peer.delete_calls;
  for (const Lie next : {Lie::kFailed, Lie::kAbsent}) {
    lie = next;
    const int64_t cycle = shard_->Cycle();
    ASSERT_TRUE(Eventually([&] { return shard_->Cycle() >= cycle + 50; }));
    EXPECT_TRUE(Eventually([&] { return peer.create_calls - created > 0; })) << "the budget is used";
    EXPECT_LE(peer.create_calls - created, kBudget);
    EXPECT_LE(peer.delete_calls - deleted, kBudget);
  }
}

}  // namespace
}  // namespace muster::shard
