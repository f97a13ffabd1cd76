// The rails: how fast, and whether at all, decisions are carried out; which roll-ups count.
#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;
using contract::ActuationMode;

// A settled cluster with so many machines, whose demand is then withdrawn.
void Settle(Lab& lab, int machines) {
  lab.Add("m", machines, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", machines);
  lab.Run(1s);
  ASSERT_TRUE(lab.transitions.empty());
}

TEST(ShardRails, TheCapOfACycleKeepsTheHeadOfTheList) {
  Lab lab({.reclaim_cap = {50'000}, .reclaim_budget = {1'000'000}, .empty_rollup_guard = false});
  lab.config().cycle_interval = 1h;
  Settle(lab, 100);
  lab.Rollup("a", 0);
  lab.Run(500ms);
  ASSERT_EQ(lab.Count<contract::DrainRequest>(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(std::get<contract::DrainRequest>(lab.transitions[static_cast<size_t>(i)]).machine_id,
              fmt::format("m-{:03}", i))
        << "all cost the same: by id";
  }
}

TEST(ShardRails, ASmallClusterMayGiveUpOneMachine) {
  Lab lab({.empty_rollup_guard = false});
  Settle(lab, 3);
  lab.Rollup("a", 0);
  lab.Run(110s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
  lab.Finish();
  lab.Run(20s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 2);
}

// At one cycle a second, 5 % a cycle alone would empty the cluster within minutes.
TEST(ShardRails, TheBudgetFollowsTheClockNotTheCycles) {
  Lab lab({.empty_rollup_guard = false});
  Settle(lab, 200);
  EXPECT_EQ(lab.core().View()->counters.reclaims_capped, 0u);
  lab.Rollup("a", 0);
  for (int i = 0; i < 11; ++i) {
    lab.Run(10s);
    lab.Finish();
  }
  EXPECT_GT(lab.cycles, 100);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 20);
  EXPECT_GT(lab.core().View()->counters.reclaims_capped, 80u);
  for (int i = 0; i < 6; ++i) {
    lab.Run(10s);
    lab.Finish();
  }
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 38) << "the next window, of a smaller cluster";
}

// A fleet that was there before its demand: the first roll-ups ask for a tenth of it, as on the day when a cap of 5 % a
// cycle, with one cycle a second, took 6,520 machines down to 846 within six minutes.
TEST(ShardRails, FivePercentACycleAloneEmptiesAClusterAndTheBudgetDoesNot) {
  const auto left_after_six_minutes = [](model::Probability budget) {
    Lab lab({.reclaim_budget = budget, .reclaim_window = 10min, .empty_rollup_guard = false});
    Settle(lab, 652);
    lab.Rollup("a", 65);
    for (int i = 0; i < 36; ++i) {
      lab.Run(10s);
      lab.Finish();
    }
    return lab.InState(kConfigured, "a");
  };
  EXPECT_EQ(left_after_six_minutes({1'000'000}), 65);
  EXPECT_EQ(left_after_six_minutes({50'000}), 652 - 32);
}

int DrainsThroughARestart() {
  Lab lab({.reclaim_budget = {50'000}, .reclaim_window = 10min, .empty_rollup_guard = false});
  Settle(lab, 100);
  lab.Rollup("a", 0);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 5);
  lab.now.wall += 1h;
  lab.Restart();
  lab.ConnectWith("a", 1);
  lab.Run(5min);
  return lab.Count<contract::DrainRequest>();
}

TEST(ShardRails, ARestartDoesNotWidenTheBudget) {
  EXPECT_EQ(DrainsThroughARestart(), 5) << "nor does a clock that was set";
  const faults::ScopedMutant on("shard.budget_forgotten");
  EXPECT_EQ(DrainsThroughARestart(), 9) << "five percent of what was left";
}

TEST(ShardRails, SurplusIsHeldForAWhile) {
  Lab lab({.empty_rollup_guard = false});
  lab.config().policy.surplus_hold = 60s;
  Settle(lab, 10);
  lab.Rollup("a", 9);
  lab.Run(55s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  lab.Run(10s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
}

TEST(ShardRails, MaxActionsDefersTheRestToAFollowUp) {
  Lab lab({.cycle_interval = 1h, .max_actions_per_cycle = 3});
  lab.Add("m", 10, kIdle);
  lab.Start();
  lab.Run(1s);
  lab.ConnectWith("a", 8);
  lab.Run(10ms);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 3);
  EXPECT_EQ(lab.core().View()->counters.deferred, 5u);
  lab.Run(300ms);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 8);
}

int PreemptsOfOneCycle() {
  Lab lab({.cycle_interval = 1h, .max_actions_per_cycle = 1, .reclaim_cap = {1}, .reclaim_budget = {1}});
  Settle(lab, 20);
  lab.ConnectWith("b", 20, 1000);
  lab.Run(10ms);
  return lab.Count<contract::DrainRequest>();
}

TEST(ShardRails, PreemptIsNeverLimited) {
  EXPECT_EQ(PreemptsOfOneCycle(), 20);
  const faults::ScopedMutant on("shard.preempt_limited");
  EXPECT_EQ(PreemptsOfOneCycle(), 1);
}

TEST(ShardRails, PauseAndDryRunHoldForTheShardAndStickOverRestarts) {
  for (const ActuationMode mode : {ActuationMode::kPaused, ActuationMode::kDryRun}) {
    Lab lab;
    lab.Add("m", 3, kIdle);
    lab.Start();
    EXPECT_EQ(lab.AskFor<contract::ActuationSet>(contract::SetActuation{.mode = mode, .reason = "test"}).previous,
              ActuationMode::kActive);
    lab.ConnectWith("a", 2);
    lab.Run(5s);
    EXPECT_TRUE(lab.transitions.empty());
    EXPECT_EQ(lab.Outcomes(mode == ActuationMode::kPaused ? "suppressed" : "dryrun"), 2) << "said once for each";
    EXPECT_EQ(lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters.at(0).mode, mode) << "of all";
    lab.Restart();
    lab.ConnectWith("a", 2);
    lab.Run(20s);
    EXPECT_TRUE(lab.transitions.empty());
    EXPECT_EQ(lab.AskFor<contract::ActuationSet>(contract::SetActuation{.mode = ActuationMode::kActive}).previous,
              mode);
    lab.Run(1s);
    EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 2);
  }
}

TEST(ShardRails, PauseOfAClusterLeavesTheOthersAlone) {
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kPaused});
  lab.Rollup("a", 2);
  lab.ConnectWith("b", 2);
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 0);
  EXPECT_EQ(lab.InState(kConfiguring, "b"), 2);
  EXPECT_EQ(lab.Ask(contract::SetActuation{.mode = ActuationMode::kUnspecified}).status.message(),
            "mode: give active, dry-run or paused");
}

TEST(ShardRails, PauseAndDryRunOfAClusterStickOverRestartsAndEnd) {
  for (const ActuationMode mode : {ActuationMode::kPaused, ActuationMode::kDryRun}) {
    Lab lab({.restart_grace = 0s});
    lab.Add("m", 3, kConfigured, "a");
    lab.Start();
    lab.ConnectWith("a", 3);
    lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = mode});
    for (int i = 0; i < 3; ++i) lab.Rollup("a", 0);
    lab.ConnectWith("b", 1, 1'000'000);
    lab.Run(5s);
    lab.Restart();
    lab.ConnectWith("a", 3);
    lab.ConnectWith("b", 1, 1'000'000);
    lab.Run(30s);
    EXPECT_TRUE(lab.transitions.empty()) << "neither given up nor taken for somebody else";
    EXPECT_GT(lab.Outcomes(mode == ActuationMode::kPaused ? "suppressed" : "dryrun"), 0);
    EXPECT_EQ(
        lab.AskFor<contract::ActuationSet>(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kActive})
            .previous,
        mode);
    lab.Run(2s);
    EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
  }
}

TEST(ShardRails, PauseStopsWhatHasBegunButNotReachedTheProvider) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.answers_blobs = false;
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  const auto asked = lab.SentTo<contract::BootstrapRequest>("a");
  ASSERT_EQ(asked.size(), 1u);
  lab.Ask(contract::SetActuation{.mode = ActuationMode::kPaused});
  lab.Say("a", contract::BootstrapResponse{.request_id = asked[0].request_id, .user_data = "x"});
  lab.Run(5s);
  EXPECT_TRUE(lab.transitions.empty());
}

TEST(ShardRails, DryRunLeavesAloneWhatHasBegun) {
  for (const std::string cluster : {"", "a"}) {
    Lab lab;
    lab.Add("m", 1, kIdle);
    lab.answers_blobs = false;
    lab.Start();
    lab.ConnectWith("a", 1);
    lab.Run(1s);
    const auto asked = lab.SentTo<contract::BootstrapRequest>("a");
    ASSERT_EQ(asked.size(), 1u);
    lab.Ask(contract::SetActuation{.cluster_id = cluster, .mode = ActuationMode::kDryRun});
    lab.Say("a", contract::BootstrapResponse{.request_id = asked[0].request_id, .user_data = "x"});
    lab.Run(5s);
    EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 1);
  }
}

// A trial shows all that going live would do: neither cap nor budget binds it.
int ReclaimsShown(const std::string& cluster, ActuationMode mode) {
  Lab lab({.empty_rollup_guard = false});
  Settle(lab, 100);
  lab.Ask(contract::SetActuation{.cluster_id = cluster, .mode = mode});
  lab.Rollup("a", 10);
  lab.Run(30s);
  EXPECT_TRUE(lab.transitions.empty());
  return lab.Outcomes(mode == ActuationMode::kPaused ? "suppressed" : "dryrun");
}

TEST(ShardRails, CapAndBudgetDoNotBindWhatIsNotCarriedOut) {
  for (const std::string cluster : {"", "a"}) {
    EXPECT_EQ(ReclaimsShown(cluster, ActuationMode::kDryRun), 90);
    EXPECT_EQ(ReclaimsShown(cluster, ActuationMode::kPaused), 90);
  }
  const faults::ScopedMutant on("shard.budget_binds_trials");
  EXPECT_LT(ReclaimsShown("", ActuationMode::kDryRun), 90);
}

// Two clusters whose machines a third may take; the one that would be taken from first is paused.
TEST(ShardRails, APausedClusterIsNobodysVictimAndTheOthersLookElsewhere) {
  Lab lab({.trial_interval = 1s});
  lab.Add("x", 1, kConfigured, "first");
  lab.Add("y", 1, kConfigured, "second");
  lab.Start();
  lab.ConnectWith("first", 1, 1);
  lab.ConnectWith("second", 1, 5);
  lab.Ask(contract::SetActuation{.cluster_id = "first", .mode = ActuationMode::kPaused});
  lab.Run(2s);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(3s);
  ASSERT_EQ(lab.Count<contract::DrainRequest>(), 1);
  EXPECT_EQ(std::get<contract::DrainRequest>(lab.transitions.at(0)).machine_id, "y-000");
  const auto suppressed = [&] {
    std::vector<std::string> machines;
    for (const Audit& audit : lab.audits) {
      if (audit.action.outcome == "suppressed") machines.push_back(audit.action.machine_id);
    }
    return machines;
  };
  EXPECT_EQ(suppressed(), std::vector<std::string>{"x-000"}) << "what would have happened is said, once";
  lab.Run(1min);
  EXPECT_EQ(suppressed().size(), 1u);
}

// The same life with a trial every second and with hardly any.
TEST(ShardRails, ATrialDisturbsNothing) {
  const auto live = [](Duration interval) {
    Lab lab({.empty_rollup_guard = false, .trial_interval = interval});
    lab.Add("m", 10, kConfigured, "a");
    lab.Add("s", 10, kSpeculative);
    lab.Start();
    lab.ConnectWith("a", 10, 1);
    lab.ConnectWith("b", 4, 1000);
    lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kDryRun});
    lab.Rollup("a", 15, 1);
    lab.Run(20s);
    lab.Finish();
    lab.Rollup("b", 12, 1000);
    lab.Run(40s);
    lab.Finish();
    lab.Run(10s);
    lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kActive});
    lab.Run(1min);
    std::vector<std::string> calls;
    for (const auto& transition : lab.transitions) {
      std::visit(
          [&](const auto& request) {
            if constexpr (requires { request.fence; }) {
              calls.push_back(fmt::format("{} {}", request.kTypeName, request.machine_id));
            }
          },
          transition);
    }
    EXPECT_GT(calls.size(), 10u);
    return std::pair(calls, lab.disk);
  };
  EXPECT_EQ(live(1s), live(1h));
}

// One call at a time: a has many machines to bind and came first, b has two.
std::string OrderOfConfigures() {
  Lab lab({.execute_concurrency = 1});
  lab.Add("m", 12, kIdle);
  lab.Start();
  lab.Run(1s);
  lab.silent = true;
  lab.ConnectWith("a", 10);
  lab.Run(500ms);
  lab.ConnectWith("b", 2);
  lab.Run(500ms);
  lab.silent = false;
  lab.Run(1s);
  std::string order;
  for (const auto& transition : lab.transitions) order += std::get<contract::ConfigureRequest>(transition).cluster_id;
  return order;
}

TEST(ShardRails, ClustersAreServedInTurns) {
  EXPECT_EQ(OrderOfConfigures(), "ababaaaaaaaa");
  const faults::ScopedMutant on("shard.no_turns");
  EXPECT_EQ(OrderOfConfigures(), "aaaaaaaaaabb");
}

// How many Configures of another cluster are sent before the Drain of a Preempt.
int CallsBeforeThePreempt() {
  Lab lab({.execute_concurrency = 1, .execute_queue = 10});
  lab.Add("m", 8, kIdle);
  lab.Add("v", 1, kConfigured, "victim");
  lab.Start();
  lab.ConnectWith("victim", 1, 1);
  lab.Run(1s);
  lab.silent = true;
  lab.ConnectWith("a", 4, 500);
  lab.ConnectWith("b", 3, 500);
  lab.ConnectWith("c", 1, 500);
  lab.Run(500ms);
  lab.ConnectWith("z", 1, 1'000'000);
  lab.Run(500ms);
  lab.silent = false;
  lab.Run(300ms);
  int before = 0;
  for (const auto& transition : lab.transitions) {
    if (std::holds_alternative<contract::DrainRequest>(transition)) return before;
    ++before;
  }
  return -1;
}

TEST(ShardRails, APreemptWaitsBehindNobody) {
  EXPECT_EQ(CallsBeforeThePreempt(), 1) << "the call that was open";
  const faults::ScopedMutant on("shard.preempt_waits");
  EXPECT_GT(CallsBeforeThePreempt(), 1);
}

int AgeAfterABurst() {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  for (int i = 0; i < 30; ++i) {
    lab.Rollup("a", 5 + i % 2);
    lab.Run(100ms);
  }
  EXPECT_GT(lab.cycles, 20);
  return lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{}).needs.at(0).age_cycles_unmet;
}

TEST(ShardRails, AgesCountAtMostOncePerCycleInterval) {
  EXPECT_LE(AgeAfterABurst(), 5);
  const faults::ScopedMutant on("shard.every_cycle_ages");
  EXPECT_GT(AgeAfterABurst(), 20);
}

TEST(ShardRails, WhatIsOnItsWayIsPendingAndNotShort) {
  Lab lab;
  lab.Add("m", 2, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 2, 1);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(1min);
  ASSERT_EQ(lab.InState(kDraining), 1);
  EXPECT_EQ(lab.core().View()->pending, 1u);
  EXPECT_EQ(lab.core().View()->shortfalls, 1u) << "what a lost is short, what b gets is not";
  const auto needs = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "b"}).needs;
  EXPECT_TRUE(needs.at(0).pending);
  EXPECT_EQ(needs.at(0).age_cycles_unmet, 0);
}

TEST(ShardQuarantine, ManyRowsThatBecomeFewAreHeldUntilTheThirdTimeAndForAWhile) {
  Lab lab;
  lab.Add("m", 40, kIdle);
  lab.Start();
  lab.Connect("a");
  lab.Rollup("a", 40, 10, 20);
  lab.Run(1s);
  lab.Finish();
  lab.Run(1s);
  for (int i = 0; i < 5; ++i) {
    lab.Rollup("a", 40, 10, 1);
    lab.Run(5s);
    EXPECT_EQ(lab.core().demand().clusters().at("a").rows.size(), 20u);
    EXPECT_EQ(lab.core().View()->quarantined.at("a"), i + 1);
  }
  const std::string held = "held: 1 rows after 20; the third such roll-up in a row, 30 s after the first, is accepted";
  EXPECT_EQ(lab.core().demand().clusters().at("a").last_refusal, held);
  lab.Run(5s);
  lab.Rollup("a", 40, 10, 1);
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.size(), 1u);
  EXPECT_TRUE(lab.core().View()->quarantined.empty());
  const auto told = lab.SentTo<contract::Acknowledgement>("a");
  ASSERT_EQ(told.size(), 8u) << "hello and seven roll-ups";
  EXPECT_EQ(told[1].echo, "rollup");
  EXPECT_EQ(told[2].echo, "rollup: " + held) << "the cluster is told";
  EXPECT_EQ(told[7].echo, "rollup");
}

TEST(ShardQuarantine, TwoAreNotEnoughHoweverLong) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  lab.Rollup("a", 40);
  lab.Rollup("a", 1);
  lab.Run(1h);
  lab.Rollup("a", 1);
  EXPECT_EQ(lab.core().rails().quarantine().held("a"), 2);
}

TEST(ShardQuarantine, ThreeEmptyOnesWithinAMomentTakeNothing) {
  for (const bool broken : {true, false}) {
    const faults::ScopedMutant on(broken ? "shard.held_for_a_moment" : "");
    Lab lab;
    lab.Add("m", 40, kConfigured, "a");
    lab.Start();
    lab.ConnectWith("a", 40);
    lab.Run(1s);
    for (int i = 0; i < 10; ++i) {
      lab.Rollup("a", 0);
      lab.Run(5ms);
    }
    lab.Run(20s);
    EXPECT_EQ(lab.Count<contract::DrainRequest>() > 0, broken);
  }
}

TEST(ShardQuarantine, ADemandThatShrinksInStepsIsComparedWithTheLargestOfLate) {
  for (const bool broken : {true, false}) {
    const faults::ScopedMutant on(broken ? "shard.shrinks_in_steps" : "");
    Lab lab;
    lab.Start();
    lab.Connect("a");
    for (const int64_t wanted : {100, 50, 25, 12}) {
      lab.Rollup("a", wanted);
      EXPECT_EQ(lab.core().rails().quarantine().held("a"), 0) << wanted;
      lab.Run(1min);
    }
    lab.Rollup("a", 6);
    EXPECT_EQ(lab.core().rails().quarantine().held("a"), broken ? 0 : 1) << "a tenth of what it was three minutes ago";
    if (broken) continue;
    lab.Restart();
    lab.Connect("a");
    lab.Rollup("a", 6);
    EXPECT_EQ(lab.core().rails().quarantine().held("a"), 1) << "over a restart too";
  }
}

TEST(ShardQuarantine, WhatWasInForceLongAgoIsForgotten) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  for (const int64_t wanted : {100, 50, 25, 12, 6, 3}) {
    lab.Rollup("a", wanted);
    EXPECT_EQ(lab.core().rails().quarantine().held("a"), 0) << wanted;
    lab.Run(5min);
  }
}

TEST(ShardQuarantine, AGoodRollupBetweenBeginsTheCountAgain) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  lab.Rollup("a", 40);
  for (int i = 0; i < 4; ++i) {
    lab.Rollup("a", 1);
    lab.Rollup("a", 1);
    EXPECT_EQ(lab.core().rails().quarantine().held("a"), 2);
    lab.Rollup("a", 40);
  }
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.front().aggregate, (model::Resources{{"cpu", 40'000}}));
}

TEST(ShardQuarantine, TheSameRowsWithATwentiethOfTheTotalsAreHeld) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  lab.Rollup("a", 40, 10, 4);
  lab.Rollup("a", 4, 10, 4);
  EXPECT_EQ(lab.core().rails().quarantine().held("a"), 0) << "a tenth is not less than a tenth";
  lab.Rollup("a", 40, 10, 4);
  lab.Rollup("a", 2, 10, 4);
  EXPECT_EQ(lab.core().rails().quarantine().held("a"), 1);
  EXPECT_EQ(lab.core().demand().clusters().at("a").last_refusal,
            "held: 2 of cpu after 40; the third such roll-up in a row, 30 s after the first, is accepted");
}

TEST(ShardQuarantine, TheBaselineSurvivesARestartAndTheGateStaysShut) {
  Lab lab;
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(1s);
  lab.Restart();
  lab.ConnectWith("a", 0);
  lab.Run(5min);
  EXPECT_EQ(lab.core().rails().quarantine().held("a"), 1);
  EXPECT_FALSE(lab.core().demand().clusters().at("a").gate_open) << "nothing that was accepted is in force";
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
}

TEST(ShardQuarantine, AHeldRollupOpensTheGateWhileAnAcceptedDemandIsInForce) {
  Lab lab({.restart_grace = 0s});
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Rollup("a", 0);
  EXPECT_TRUE(lab.core().demand().clusters().at("a").gate_open);
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.size(), 1u);
}

TEST(ShardGate, StaysShutUntilADemandIsAccepted) {
  Lab lab;
  lab.Add("m", 5, kConfigured, "a");
  lab.Start();
  lab.Connect("a");
  lab.Run(10min);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  lab.Rollup("a", 4);
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
}

TEST(ShardRollup, OfAnotherClusterIsRefused) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 3);
  lab.Rollup("a", 9, 10, 1, "b");
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.front().aggregate, (model::Resources{{"cpu", 3000}}));
  EXPECT_FALSE(lab.core().demand().clusters().contains("b"));
  EXPECT_EQ(lab.core().demand().clusters().at("a").last_refusal, "cluster_id: b is not the cluster of this session, a");
  EXPECT_EQ(lab.core().View()->counters.rollups_rejected.at("a"), 1u);
  EXPECT_EQ(lab.SentTo<contract::Acknowledgement>("a").size(), 2u) << "no acknowledgement for it";
}

TEST(ShardRollup, ThatCannotBeReadLeavesTheLastGoodOne) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 3);
  lab.Step(RollupUnreadable{1, Status(Code::kInvalidArgument, "needs[3].cpu: 1x is not a quantity")});
  EXPECT_EQ(lab.core().demand().clusters().at("a").rows.size(), 1u);
  const auto clusters = lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters;
  EXPECT_EQ(clusters.at(0).last_refusal, "needs[3].cpu: 1x is not a quantity");
  lab.Rollup("a", 4);
  EXPECT_EQ(lab.core().demand().clusters().at("a").last_refusal, "");
}

// Machines alone say which resources there are: invented names take no room from them. Nor may many of them take the
// square of their number.
TEST(ShardRollup, WithInventedResourcesIsAcceptedAndShort) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  model::Need need;
  for (int i = 0; i < 100'000; ++i) need.aggregate.Set(fmt::format("thing-{:06}", i), 1);
  lab.Say("a", contract::Rollup{.cluster_id = "a", .rows = contract::NeedRows({need})});
  EXPECT_TRUE(lab.core().demand().clusters().at("a").accepted);
  EXPECT_EQ(lab.core().demand().clusters().at("a").last_refusal, "");
}

TEST(ShardRollup, BeyondALimitIsRefusedAndTheLimitNamed) {
  Lab lab({.rollups = {.rows = 5, .profiles = 3, .groups = 2, .bytes = 1000}});
  lab.Start();
  lab.Connect("a");
  const auto say = [&](int rows, int profiles, int groups, size_t text) {
    std::vector<model::Need> needs;
    for (int i = 0; i < rows; ++i) {
      needs.push_back({.profile = model::Profile({.priority = i % profiles}),
                       .aggregate = {{"cpu", 1000 + i}},
                       .min_unit = {{"cpu", 1000}},
                       .group = fmt::format("{}{}", std::string(text, 'g'), i % groups)});
    }
    lab.Say("a", contract::Rollup{.cluster_id = "a", .rows = contract::NeedRows(std::move(needs))});
    return lab.core().demand().Of("a").last_refusal;
  };
  EXPECT_EQ(say(5, 3, 2, 0), "");
  EXPECT_EQ(say(6, 1, 1, 0), "needs: 6 rows; the limit of rows of a cluster is 5");
  EXPECT_EQ(say(5, 4, 1, 0), "needs: 4 profiles; the limit of profiles of a cluster is 3");
  EXPECT_EQ(say(5, 1, 3, 0), "needs: 3 groups; the limit of groups of a cluster is 2");
  EXPECT_EQ(say(2, 1, 1, 500).substr(0, 18), "needs: 1110 bytes;");
  const model::Spread spread{.topology_key = std::string(1000, 'k')};
  const model::Need wide{.profile = model::Profile({.spread = {spread}}), .aggregate = {{"cpu", 1}}};
  lab.Say("a", contract::Rollup{.cluster_id = "a", .rows = contract::NeedRows({wide})});
  EXPECT_EQ(lab.core().demand().Of("a").last_refusal.substr(0, 18), "needs: 1059 bytes;") << "what it spreads over too";
  EXPECT_EQ(lab.core().demand().Of("a").rows.size(), 5u) << "the last good one stays";
  const faults::ScopedMutant on("shard.no_rollup_limits");
  EXPECT_EQ(say(6, 1, 1, 0), "");
}

// What the cluster is told of a roll-up that is held.
std::string EchoOfAHeldRollup() {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 100);
  lab.Rollup("a", 0);
  return lab.SentTo<contract::Acknowledgement>("a").back().echo;
}

TEST(ShardQuarantine, TheClusterIsToldThatItsRollupIsHeld) {
  EXPECT_TRUE(EchoOfAHeldRollup().starts_with("rollup: held: ")) << EchoOfAHeldRollup();
  const faults::ScopedMutant on("shard.held_untold");
  EXPECT_EQ(EchoOfAHeldRollup(), "rollup");
}

}  // namespace
}  // namespace muster::shard
