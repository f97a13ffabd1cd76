// From a decided action to the provider's acknowledgement, and what the clusters are asked and told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"
#include "engine/bind_stamp.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

TEST(ShardExecute, BootstrapAsksForTheBlobAndStampsTheMachine) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(500ms);
  ASSERT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
  const auto& configure = std::get<contract::ConfigureRequest>(lab.transitions[0]);
  EXPECT_EQ(configure.cluster_id, "a");
  EXPECT_EQ(configure.bootstrap_blob, "join a");
  EXPECT_EQ(configure.fence, (contract::FenceToken{.shard_id = "shard-0", .epoch = 1, .sequence = 1}));
  EXPECT_EQ(configure.shard_metadata.at("muster.v1/bound-by"), "1/shard-0");
  EXPECT_EQ(engine::DecodeBindStamp(configure.shard_metadata)->priority, 10);
  EXPECT_EQ(lab.SentTo<contract::BootstrapRequest>("a")[0].request_id.size(), 16u);
  EXPECT_EQ(lab.Outcomes("success"), 1);
}

TEST(ShardExecute, ProvisionBuysAndThenBinds) {
  Lab lab;
  lab.Add("m", 2, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 1);
  lab.Run(30s);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 1) << "what is on its way counts";
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
  lab.Finish();
  lab.Run(1min);
  EXPECT_EQ(lab.transitions.size(), 2u) << "and then there is silence";
  // Each part of the way is timed once: the creation, the blob at once, the configuration; and all of it.
  ASSERT_EQ(lab.lasted.size(), 4u);
  EXPECT_EQ(lab.lasted[0].leg, Leg::kCreate);
  EXPECT_GE(lab.lasted[0].took, 30s);
  EXPECT_LE(lab.lasted[0].took, 33s);
  EXPECT_EQ(lab.lasted[1].leg, Leg::kBlob);
  EXPECT_LE(lab.lasted[1].took, 100ms);
  EXPECT_EQ(lab.lasted[2].leg, Leg::kConfigure);
  EXPECT_EQ(lab.lasted[3].leg, Leg::kProvision);
  EXPECT_GE(lab.lasted[3].took, lab.lasted[0].took + lab.lasted[2].took);
}

TEST(ShardExecute, ReclaimTellsTheClusterBeforeItDrains) {
  Lab lab({.empty_rollup_guard = false});
  lab.Add("m", 1, kConfigured, "a");
  lab.acknowledges = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Rollup("a", 0);
  lab.Run(1s);
  const auto told = lab.SentTo<contract::ReclaimInstruction>("a");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].nodes, std::vector<std::string>{"m-000"});
  EXPECT_EQ(told[0].grace_period_seconds, 600);
  EXPECT_EQ(told[0].preemptor_priority, 0);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  lab.Say("a", contract::ReclaimAck{.instruction_id = told[0].instruction_id, .nodes_started = 1});
  ASSERT_EQ(lab.waiting(), 1u) << "at once";
  lab.Run(1s);
  EXPECT_EQ(std::get<contract::DrainRequest>(lab.transitions.at(0)).grace_period_seconds, 600);
}

TEST(ShardExecute, AClusterThatNeverAcknowledgesIsDrainedAnyway) {
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.acknowledges = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(9s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  EXPECT_EQ(lab.SentTo<contract::ReclaimInstruction>("a").at(0).preemptor_priority, 1'000'000);
  lab.Run(3s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
  EXPECT_EQ(std::get<contract::DrainRequest>(lab.transitions.at(0)).grace_period_seconds, 10);
}

TEST(ShardExecute, WhatWasNotAcknowledgedAtADisconnectIsSentAgain) {
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.acknowledges = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(1s);
  lab.Disconnect("a");
  lab.Run(1min);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0) << "a cluster without a session loses nothing";
  lab.acknowledges = true;
  lab.Connect("a");
  lab.Run(1s);
  const auto told = lab.SentTo<contract::ReclaimInstruction>("a");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
}

TEST(ShardExecute, AnInstructionIsGivenUpWhenTheSessionStaysAway) {
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.acknowledges = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(1s);
  lab.Disconnect("a");
  lab.Run(3min);
  EXPECT_TRUE(lab.core().executor().operations().empty());
  EXPECT_EQ(lab.Outcomes("no_session"), 1);
  lab.Connect("a");
  lab.acknowledges = true;
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1) << "decided anew";
}

TEST(ShardExecute, ABlobIsUsedWithinItsTimeOrAskedForAgain) {
  Lab lab({.execute_concurrency = 1});
  lab.Add("m", 2, kIdle);
  lab.ttl = 5s;
  lab.Start();
  lab.ConnectWith("a", 2);
  lab.silent = true;  // the first one takes the only place
  lab.Run(8s);
  EXPECT_EQ(lab.SentTo<contract::BootstrapRequest>("a").size(), 2u);
  lab.silent = false;
  lab.Run(1s);
  EXPECT_EQ(lab.SentTo<contract::BootstrapRequest>("a").size(), 3u);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 2);
}

TEST(ShardExecute, ABlobThatFailsOrDoesNotComeLeavesTheMachineIdle) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.answers_blobs = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  lab.Say("a", contract::BootstrapResponse{.request_id = lab.SentTo<contract::BootstrapRequest>("a")[0].request_id,
                                           .error = "no token left"});
  EXPECT_EQ(lab.Outcomes("blob_error"), 1);
  EXPECT_EQ(lab.audits.back().action.error, "no token left");
  lab.Run(5s);
  ASSERT_EQ(lab.SentTo<contract::BootstrapRequest>("a").size(), 2u) << "asked again after a pause";
  lab.Run(31s);
  EXPECT_EQ(lab.Outcomes("blob_timeout"), 1);
  EXPECT_TRUE(lab.transitions.empty());
  const std::string late = lab.SentTo<contract::BootstrapRequest>("a")[1].request_id;
  lab.Say("a", contract::BootstrapResponse{.request_id = late, .user_data = "late"});
  lab.Run(100ms);
  EXPECT_TRUE(lab.transitions.empty()) << "a late answer counts for nothing";
}

TEST(ShardExecute, ALostSessionEndsWhatItWasAskedFor) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.answers_blobs = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  lab.Disconnect("a");
  EXPECT_TRUE(lab.core().executor().operations().empty());
  EXPECT_EQ(lab.Outcomes("no_session"), 1);
  lab.Run(1min);
  EXPECT_EQ(lab.SentTo<contract::BootstrapRequest>("a").size(), 1u) << "no work for a cluster without a session";
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.size(), 1u) << "its needs stand";
}

// Its blobs are gone with it; the cluster that comes back is asked again, and nothing is held for it.
TEST(ShardExecute, ALostSessionEndsWhatWaitsWithItsBlob) {
  Lab lab({.execute_concurrency = 1});
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.silent = true;  // the first one takes the only place
  lab.ConnectWith("a", 4);
  lab.Run(500ms);
  EXPECT_EQ(lab.core().executor().operations().size(), 4u);
  lab.Disconnect("a");
  EXPECT_EQ(lab.core().executor().operations().size(), 1u);
  EXPECT_EQ(lab.Outcomes("no_session"), 3);
  EXPECT_TRUE(lab.core().executor().state().lanes.empty()) << "nothing is left to wait for";
  lab.Connect("a");
  lab.silent = false;
  lab.Run(2s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 4);
  EXPECT_EQ(lab.SentTo<contract::BootstrapRequest>("a").size(), 7u);
}

TEST(ShardExecute, NoMoreCallsThanTheLimitAreInTheProvidersHands) {
  Lab lab({.execute_concurrency = 4});
  lab.Add("m", 20, kIdle);
  lab.Start();
  lab.silent = true;
  lab.ConnectWith("a", 20);
  lab.Run(500ms);
  EXPECT_EQ(lab.core().View()->calls, 4u);
  EXPECT_EQ(lab.core().View()->operations, 20u);
  lab.silent = false;
  lab.Run(500ms);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 20);
}

TEST(ShardExecute, AFullQueueLeavesTheRestToALaterCycle) {
  faults::ResetProbes();
  Lab lab({.execute_queue = 9});  // five for one cluster, then four are left to the others
  lab.Add("m", 12, kIdle);
  lab.Start();
  lab.Run(500ms);
  lab.ConnectWith("a", 12);
  lab.Run(10ms);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 5);
  EXPECT_EQ(lab.core().View()->counters.dropped, 7u);
  EXPECT_EQ(faults::ProbeHits()["shard.queue_full"], 7u);
  lab.Run(1s);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 12);
}

TEST(ShardExecute, AMachineThatMovedMeanwhileIsLeftAlone) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.answers_blobs = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  lab.SetState("m-000", kFailed);
  lab.Run(2s);
  EXPECT_EQ(lab.Outcomes("stale_state"), 1);
  lab.Say("a", contract::BootstrapResponse{.request_id = lab.SentTo<contract::BootstrapRequest>("a")[0].request_id});
  EXPECT_TRUE(lab.transitions.empty());
}

TEST(ShardExecute, IdleMachinesAreReleasedAfterTheHoldOfTheirType) {
  Lab lab;
  using enum model::CapacityType;
  for (const auto type : {kBareMetal, kReserved, kOnDemand, kSpot}) {
    model::Machine machine = Lab::MakeMachine(std::string(model::CapacityTypeName(type)), kIdle);
    machine.capacity_type = type;
    lab.Put(machine);
  }
  lab.Start();
  lab.Run(55s);
  EXPECT_TRUE(lab.transitions.empty());
  lab.Run(10s);
  ASSERT_EQ(lab.transitions.size(), 1u);
  EXPECT_EQ(std::get<contract::DeleteRequest>(lab.transitions[0]).machine_id, "spot");
  lab.Run(9min);
  ASSERT_EQ(lab.transitions.size(), 2u);
  EXPECT_EQ(std::get<contract::DeleteRequest>(lab.transitions[1]).machine_id, "on-demand");
  lab.Run(24h);
  EXPECT_EQ(lab.transitions.size(), 2u) << "owned hardware is never released";
}

TEST(ShardFenced, OneMachineIsSetAsideAndTheSecondHaltsTheShard) {
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.refuses = [](const contract::ProviderRequest& request) {
    const bool first = std::get<contract::ConfigureRequest>(request).machine_id == "m-000";
    return first ? Status(Code::kFailedPrecondition, "fenced: epoch 9") : Status();
  };
  lab.ConnectWith("a", 2);
  lab.Run(1min);
  EXPECT_EQ(lab.Outcomes("fenced"), 1);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 3) << "another machine takes its place";
  EXPECT_FALSE(lab.core().View()->halted);
  const auto views = lab.AskFor<contract::MachinesListed>(contract::ListMachines{}).machines;
  EXPECT_TRUE(views.at(0).fenced);
  EXPECT_EQ(views.at(0).reason, model::Reason::kFenced);

  lab.refuses = nullptr;
  lab.refusal = Status(Code::kFailedPrecondition, "fenced: epoch 9");
  lab.Rollup("a", 3);
  lab.Run(1min);
  EXPECT_EQ(lab.Outcomes("fenced"), 2);
  EXPECT_TRUE(lab.core().View()->halted);
  EXPECT_EQ(lab.core().View()->mode, contract::ActuationMode::kPaused);
  EXPECT_EQ(lab.Noted(model::Reason::kHalted), 1);
  EXPECT_TRUE(lab.stops.empty());
  const size_t calls = lab.transitions.size();
  lab.Rollup("a", 4);
  lab.Add("x", 2, kIdle);
  lab.Run(10min);
  EXPECT_EQ(lab.transitions.size(), calls) << "nothing is carried out";
  EXPECT_TRUE(lab.core().machines().tracked().contains("x-001")) << "and it goes on watching";
}

TEST(ShardFenced, AMachineThatWasFencedAndVanishedIsStillSetAside) {
  Lab lab;
  lab.Add("m", 3, kIdle);
  lab.Start();
  lab.refusal = Status(Code::kFailedPrecondition, "fenced: epoch 9");
  lab.ConnectWith("a", 1);
  lab.Run(100ms);
  ASSERT_EQ(lab.Outcomes("fenced"), 1);
  lab.refusal = {};
  const std::string fenced = std::get<contract::ConfigureRequest>(lab.transitions[0]).machine_id;
  const model::Machine machine = lab.machines.at(fenced);
  lab.Lose(fenced);
  lab.Run(65s);
  ASSERT_FALSE(lab.core().machines().tracked().contains(fenced));
  lab.Put(machine);
  lab.Run(5s);
  EXPECT_EQ(lab.core().machines().AsideOf(fenced), SetAside::kFenced);
  lab.Rollup("a", 3);
  lab.Run(1min);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 2) << "it is not touched";
  lab.Ask(contract::SetActuation{.mode = contract::ActuationMode::kActive});
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 3);
}

TEST(ShardFenced, TheShardTakesUpAgainByOrderOrARestart) {
  for (const bool by_order : {true, false}) {
    Lab lab;
    lab.Add("m", 2, kIdle);
    lab.Start();
    lab.refusal = Status(Code::kFailedPrecondition, "fenced: epoch 9");
    lab.ConnectWith("a", 2);
    lab.Run(5s);
    ASSERT_TRUE(lab.core().View()->halted);
    lab.refusal = {};
    if (by_order) {
      EXPECT_EQ(
          lab.AskFor<contract::ActuationSet>(contract::SetActuation{.mode = contract::ActuationMode::kActive}).previous,
          contract::ActuationMode::kPaused);
    } else {
      lab.Restart();
      lab.ConnectWith("a", 2);
    }
    lab.Run(5s);
    EXPECT_FALSE(lab.core().View()->halted);
    EXPECT_EQ(lab.InState(kConfiguring, "a"), 2) << by_order;
  }
}

TEST(ShardFenced, AnOrderToRepairDoesNotPassAHalt) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Add("m", 2, kIdle);
  lab.Put(Lab::MakeMachine("x", kFailed));
  lab.Start();
  lab.refusal = Status(Code::kFailedPrecondition, "fenced: epoch 9");
  lab.ConnectWith("a", 2);
  lab.Run(5s);
  ASSERT_TRUE(lab.core().View()->halted);
  const size_t calls = lab.transitions.size();
  lab.Ask(contract::RepairMachine{.machine_id = "x"});
  lab.Run(5s);
  EXPECT_EQ(lab.transitions.size(), calls);
}

TEST(ShardSession, SpeaksOneVersion) {
  Lab lab;
  lab.Start();
  lab.Connect("a", "v2");
  ASSERT_EQ(lab.closed.size(), 1u);
  EXPECT_EQ(lab.closed[0].second.ToString(), "INVALID_ARGUMENT: protocol_version: v2 is not spoken here; use v1alpha1");
  lab.Connect("");
  EXPECT_EQ(lab.closed.at(1).second.message(), "cluster_id: missing; say which cluster this is");
  for (const size_t bytes : {254, 5'000}) {
    lab.Connect(std::string(bytes, 'a'));
    EXPECT_EQ(lab.closed.back().second.ToString(),
              fmt::format("INVALID_ARGUMENT: cluster_id: has {} bytes, more than 253", bytes));
  }
  EXPECT_TRUE(lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters.empty());
}

TEST(ShardSession, ClustersBeyondTheMostAreRefusedAndKnownOnesAreNot) {
  Lab lab;
  lab.Start();
  for (size_t i = 0; i < kMostClusters; ++i) {
    const std::string name = fmt::format("c-{}", i);
    lab.Connect(name);
    if (i > 0) lab.Disconnect(name);
  }
  ASSERT_TRUE(lab.closed.empty());
  lab.Connect("one-more");
  ASSERT_EQ(lab.closed.size(), 1u);
  EXPECT_EQ(lab.closed[0].second.code(), Code::kResourceExhausted);
  EXPECT_EQ(lab.closed[0].second.message(),
            "cluster_id: this shard knows 4096 clusters, and no more are allowed; those without session, demand, "
            "machines and orders are forgotten after ten minutes");
  lab.Connect("c-7");
  EXPECT_EQ(lab.closed.size(), 1u) << "a known one comes back";
  lab.Restart();
  lab.Connect("one-more");
  EXPECT_EQ(lab.closed.size(), 1u) << "those that only said hello are forgotten";
}

TEST(ShardSession, ANewerOneTakesThePlaceOfTheOlder) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Connect("a");
  ASSERT_EQ(lab.closed.size(), 1u);
  EXPECT_EQ(lab.closed[0].first, 1u);
  EXPECT_EQ(lab.closed[0].second.code(), Code::kAborted);
  lab.Step(SessionClosed{1});
  EXPECT_TRUE(lab.core().sessions().Has("a")) << "the end of the older changes nothing";
  EXPECT_EQ(lab.core().View()->sessions, 1u);
}

TEST(ShardSession, WithoutOneAClusterGainsNothingAndLosesNothing) {
  Lab lab;
  lab.Add("m", 2, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 2);
  lab.Run(1s);
  lab.Disconnect("a");
  lab.SetState("m-000", kFailed);  // it is short now
  lab.Add("i", 1, kIdle);
  lab.ConnectWith("b", 2, 1'000'000);  // and what it still has would be taken
  lab.Run(30s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 0);
  EXPECT_EQ(lab.InState(kConfiguring, "b"), 1) << "what is free goes to those who are there";
  const auto needs = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "a"}).needs;
  ASSERT_EQ(needs.size(), 1u) << "its needs stand";
  EXPECT_FALSE(needs[0].has_session);
}

TEST(ShardSession, IsToldOfItsMachinesAtConnectAndWhenTheyChange) {
  Lab lab;
  lab.Add("m", 2, kConfigured, "a");
  lab.Add("n", 1, kConfigured, "b");
  lab.Start();
  lab.ConnectWith("a", 2);
  const auto first = lab.SentTo<contract::NodeStateUpdate>("a");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].supersedes_key, "node:m-000");
  EXPECT_EQ(first[0].provider_id, "m-000") << "the bare ref";
  EXPECT_EQ(first[0].labels,
            (model::TextMap{{"node.kubernetes.io/instance-type", "m"}, {"topology.kubernetes.io/zone", "a"}}));
  EXPECT_EQ(first[0].resources, (model::Resources{{"cpu", 1000}}));
  lab.SetState("m-001", kFailed);
  lab.Run(2s);
  const auto later = lab.SentTo<contract::NodeStateUpdate>("a");
  ASSERT_EQ(later.size(), 3u);
  EXPECT_EQ(later[2].state, kFailed);
  EXPECT_EQ(later[2].last_error, "broken");
}

TEST(ShardSession, TheClusterThatLosesAMachineHearsOfItsEnd) {
  Lab lab({.empty_rollup_guard = false});
  lab.Add("m", 1, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Rollup("a", 0);
  lab.Run(1s);
  lab.Finish();
  lab.Run(2s);
  std::vector<model::MachineState> states;
  for (const auto& update : lab.SentTo<contract::NodeStateUpdate>("a")) states.push_back(update.state);
  EXPECT_EQ(states, (std::vector{kConfigured, kDraining, kIdle}));
}

// It has cordoned the node for nothing, and must hear so.
TEST(ShardSession, TheClusterThatKeepsAMachineAfterAllHearsSo) {
  Lab lab({.empty_rollup_guard = false});
  lab.Add("m", 1, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.refusal = Status(Code::kInternal, "it cannot be drained");
  const size_t before = lab.SentTo<contract::NodeStateUpdate>("a").size();
  lab.Rollup("a", 0);
  lab.Run(1s);
  ASSERT_FALSE(lab.SentTo<contract::ReclaimInstruction>("a").empty());
  const auto updates = lab.SentTo<contract::NodeStateUpdate>("a");
  ASSERT_GT(updates.size(), before);
  EXPECT_EQ(updates.back().state, kConfigured);
}

TEST(ShardAudit, EveryActionAndWhatBecameOfIt) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  ASSERT_EQ(lab.audits.size(), 2u);
  const contract::ActionView& begun = lab.audits[0].action;
  EXPECT_EQ(begun.kind, "Bootstrap");
  EXPECT_EQ(begun.machine_id, "m-000");
  EXPECT_EQ(begun.cluster_id, "a");
  EXPECT_EQ(begun.reason, model::Reason::kAcquireIdle);
  EXPECT_EQ(begun.need_fingerprint, model::Profile({.priority = 10}).fingerprint());
  EXPECT_EQ(begun.outcome, "pending");
  EXPECT_EQ(lab.audits[1].action.outcome, "success");
  const auto actions = lab.AskFor<contract::ActionsListed>(contract::ListActions{}).actions;
  ASSERT_EQ(actions.size(), 1u) << "the later line takes the place of the earlier";
  EXPECT_EQ(actions[0].outcome, "success");
  EXPECT_TRUE(lab.AskFor<contract::ActionsListed>(contract::ListActions{.cluster_id = "b"}).actions.empty());
}

}  // namespace
}  // namespace muster::shard
