// Each rail by itself, without a shard around it.
#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/shard/rails.h"
#include "core/shard/step_for_test.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;
using engine::ActionKind;
using Texts = std::vector<std::string>;

TEST(ActuationModes, TheStrictestOfAllThatAnActionTouchesCounts) {
  const Config config;
  StepForTest step(config);
  ActuationModes modes({});
  modes.Set("a", ActuationMode::kDryRun, step.ctx);
  EXPECT_EQ(modes.For("a", std::nullopt), ActuationMode::kDryRun);
  EXPECT_EQ(modes.For("b", engine::NeedKey{.cluster = "a"}), ActuationMode::kDryRun) << "the need's cluster";
  EXPECT_EQ(modes.For("b", std::nullopt), ActuationMode::kActive);
  modes.Set("", ActuationMode::kPaused, step.ctx);
  EXPECT_EQ(modes.For("a", std::nullopt), ActuationMode::kPaused);
  EXPECT_EQ(modes.Get("a"), ActuationMode::kDryRun) << "its own";
  modes.Set("", ActuationMode::kActive, step.ctx);
  EXPECT_EQ(step.Writes(), (Texts{"put mode/a", "put mode/", "erase mode/"}));
}

TEST(ChangeBudget, LeavesWhatTheWindowHasNotSpent) {
  const Config config{.reclaim_cap = {500'000}, .reclaim_budget = {100'000}, .reclaim_window = 10min};
  ChangeBudget budget(config, {});
  StepForTest first(config);
  EXPECT_EQ(budget.Allowed("a", 30, first.ctx), 3);
  EXPECT_EQ(budget.Allowed("a", 0, first.ctx), 1) << "never below one";
  budget.Spend("a", first.ctx);
  budget.Spend("a", first.ctx);
  EXPECT_EQ(budget.Allowed("a", 28, first.ctx), 1) << "the share is that of the cluster as it was";
  EXPECT_EQ(budget.Allowed("b", 30, first.ctx), 3) << "each cluster has its own";
  EXPECT_EQ(first.Writes(), (Texts{"put reclaims/a", "put reclaims/a"}));
  StepForTest later(config, 10min);
  EXPECT_EQ(budget.Allowed("a", 28, later.ctx), 2);
  EXPECT_EQ(budget.SpentBy("a"), 0);
  EXPECT_EQ(budget.Allowed("a", 28, later.ctx), 2);
  EXPECT_EQ(later.Writes(), Texts{"erase reclaims/a"}) << "once";
}

TEST(ChangeBudget, IsCappedInEveryCycle) {
  const Config config{.reclaim_cap = {100'000}, .reclaim_budget = {1'000'000}};
  ChangeBudget budget(config, {});
  StepForTest step(config);
  EXPECT_EQ(budget.Allowed("a", 50, step.ctx), 5);
}

TEST(ChangeBudget, WhatAnEarlierLifeSpentCountsFromTheStart) {
  const Config config{.reclaim_cap = {1'000'000}, .reclaim_budget = {100'000}, .reclaim_window = 10min};
  ChangeBudget budget(config, {});
  budget.Restore("a", 2);
  StepForTest start(config);
  budget.Start(start.ctx.now.mono);
  StepForTest later(config, 9min);
  EXPECT_EQ(budget.Allowed("a", 28, later.ctx), 1);
  StepForTest last(config, 10min);
  EXPECT_EQ(budget.Allowed("a", 28, last.ctx), 2);
}

TEST(RollupQuarantine, HoldsTwoAndLetsTheThirdPassAfterAWhile) {
  const Config config;
  StepForTest step(config);
  const MonoTime now = step.ctx.now.mono;
  RollupQuarantine quarantine(config, {});
  EXPECT_EQ(quarantine.Hold("a", {}, now), "") << "nothing was accepted yet";
  quarantine.Accept("a", {.rows = 20, .totals = {{"cpu", 100'000}}}, step.ctx);
  const Baseline tenth{.rows = 2, .totals = {{"cpu", 10'000}}};
  EXPECT_EQ(quarantine.Hold("a", tenth, now), "") << "a tenth is not less than a tenth";
  const Baseline small{.rows = 20, .totals = {{"cpu", 9'000}}};
  EXPECT_EQ(quarantine.Hold("a", small, now),
            "held: 9 of cpu after 100; the third such roll-up in a row, 30 s after the first, is accepted");
  EXPECT_EQ(quarantine.held("a"), 1);
  quarantine.Clear("a");
  EXPECT_EQ(quarantine.held("a"), 0) << "the demand in force was repeated";
  EXPECT_NE(quarantine.Hold("a", {.rows = 1}, now), "");
  EXPECT_NE(quarantine.Hold("a", small, now + 30s), "");
  EXPECT_EQ(quarantine.Hold("a", small, now + 30s), "");
  quarantine.Accept("a", small, step.ctx);
  EXPECT_EQ(quarantine.held("a"), 0);
  quarantine.Accept("a", small, step.ctx);
  EXPECT_EQ(step.Writes(), (Texts{"put baseline/a", "put baseline/a"})) << "written when it changes";
  EXPECT_EQ(quarantine.Hold("a", {.rows = 20, .totals = {{"cpu", 900}}}, now + 31s), "") << "the cluster meant it";
}

TEST(RollupQuarantine, ComparesWithTheLargestOfTheLastTenMinutes) {
  const Config config;
  RollupQuarantine quarantine(config, {});
  StepForTest first(config);
  quarantine.Accept("a", {.rows = 100, .totals = {{"cpu", 10}}}, first.ctx);
  StepForTest second(config, 1min);
  quarantine.Accept("a", {.rows = 20, .totals = {{"cpu", 100}}}, second.ctx);
  const MonoTime replaced = second.ctx.now.mono;
  EXPECT_NE(quarantine.Hold("a", {.rows = 9, .totals = {{"cpu", 100}}}, replaced + 9min), "");
  EXPECT_EQ(quarantine.Hold("a", {.rows = 9, .totals = {{"cpu", 100}}}, replaced + 10min), "");
}

class RailsTest : public ::testing::Test {
 protected:
  engine::Action Act(ActionKind kind, const std::string& cluster = "a") {
    return {.kind = kind, .machine = "m" + std::to_string(++machines_), .cluster = cluster};
  }

  Config config_{.max_actions_per_cycle = 2, .execute_queue = 10};
  Clusters clusters_{{}};
  ActionLog log_{{}};
  Rails rails_{config_, clusters_, log_, {}};
  StepForTest step_{config_};
  int machines_ = 0;
};

TEST_F(RailsTest, VolumeLimitsEverythingButPreempt) {
  rails_.BeginCycle();
  EXPECT_FALSE(rails_.Admit(Act(ActionKind::kBootstrap), Readiness::kBusy, {}, {}, step_.ctx)) << "its machine is busy";
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kPreempt), Readiness::kReady, {}, {}, step_.ctx));
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kBootstrap), Readiness::kReady, {.all = 1}, {}, step_.ctx));
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kReclaim), Readiness::kReady, {.all = 2}, {}, step_.ctx));
  EXPECT_FALSE(rails_.Admit(Act(ActionKind::kProvision), Readiness::kReady, {.all = 3}, {}, step_.ctx));
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kPreempt), Readiness::kReady, {.all = 3}, {}, step_.ctx));
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kPreempt), Readiness::kReady, {.all = 10}, {}, step_.ctx))
      << "the queue is full of others";
  EXPECT_EQ(step_.counters.deduped, 1u);
  EXPECT_EQ(step_.counters.deferred, 1u);
  EXPECT_TRUE(step_.cycle.state().due) << "for what was deferred";
  EXPECT_EQ(rails_.budget().SpentBy("a"), 1);
  rails_.BeginCycle();
  EXPECT_TRUE(rails_.Admit(Act(ActionKind::kProvision), Readiness::kReady, {}, {}, step_.ctx));
}

TEST_F(RailsTest, SurplusThatGoesInsteadOfAVictimIsOutsideTheBudget) {
  const auto spent = [&](model::Reason reason) {
    rails_.BeginCycle();
    engine::Action action = Act(ActionKind::kReclaim);
    action.reason = reason;
    EXPECT_TRUE(rails_.Admit(action, Readiness::kReady, {}, {}, step_.ctx));
    return rails_.budget().SpentBy("a");
  };
  EXPECT_EQ(spent(model::Reason::kReclaimInstead), 0);
  EXPECT_EQ(spent(model::Reason::kReclaimSurplus), 1);
  const faults::ScopedMutant on("shard.instead_spends");
  EXPECT_EQ(spent(model::Reason::kReclaimInstead), 2);
}

TEST_F(RailsTest, WhatGrowthAndTrialPutOffIsCountedByClusterInEachCycle) {
  for (int cycle = 0; cycle < 2; ++cycle) {
    rails_.BeginCycle();
    EXPECT_FALSE(rails_.Admit(Act(ActionKind::kBootstrap, "a"), Readiness::kGrows, {}, {}, step_.ctx));
    EXPECT_FALSE(rails_.Admit(Act(ActionKind::kBootstrap, "a"), Readiness::kOnTrial, {}, {}, step_.ctx));
    EXPECT_FALSE(rails_.Admit(Act(ActionKind::kBootstrap, "a"), Readiness::kOnTrial, {}, {}, step_.ctx));
    ASSERT_EQ(rails_.put_off().size(), 1u);
    EXPECT_EQ(rails_.put_off().at("a").growth, 1);
    EXPECT_EQ(rails_.put_off().at("a").trial, 2);
  }
  EXPECT_EQ(step_.counters.deduped, 0u);
}

TEST_F(RailsTest, AClusterHasAsManyPlacesAsAreFree) {
  const auto admits = [&](ActionKind kind, const std::string& cluster, QueueLoad load) {
    rails_.BeginCycle();
    return rails_.Admit(Act(kind, cluster), Readiness::kReady, load, {}, step_.ctx);
  };
  EXPECT_TRUE(admits(ActionKind::kBootstrap, "a", {.all = 4, .of_cluster = 4}));
  EXPECT_FALSE(admits(ActionKind::kBootstrap, "a", {.all = 5, .of_cluster = 5})) << "half of ten";
  EXPECT_TRUE(admits(ActionKind::kBootstrap, "b", {.all = 9, .of_cluster = 0})) << "the others still have places";
  EXPECT_FALSE(admits(ActionKind::kBootstrap, "b", {.all = 10, .of_cluster = 0}));
  EXPECT_TRUE(admits(ActionKind::kDelete, "", {.all = 9, .of_cluster = 9})) << "what is for no cluster has no share";
  EXPECT_EQ(step_.counters.dropped, 2u);
  EXPECT_TRUE(step_.cycle.state().starved);
}

TEST_F(RailsTest, WhatAModeKeepsBackIsLoggedOnceForAsLongAsItLasts) {
  rails_.SetMode("a", ActuationMode::kPaused, step_.ctx);
  EXPECT_TRUE(clusters_.names().contains("a"));
  const engine::Action action = Act(ActionKind::kReclaim);
  for (int cycle = 0; cycle < 3; ++cycle) {
    rails_.BeginCycle();
    EXPECT_FALSE(rails_.Admit(action, Readiness::kReady, {}, {}, step_.ctx));
  }
  ASSERT_EQ(step_.Emitted<Audit>().size(), 1u);
  EXPECT_EQ(step_.Emitted<Audit>()[0].action.outcome, "suppressed");
  EXPECT_EQ(step_.counters.suppressed.at("Reclaim"), 3u);
  EXPECT_EQ(rails_.budget().SpentBy("a"), 0) << "no budget is spent on it";
  rails_.BeginCycle();
  rails_.BeginCycle();
  EXPECT_FALSE(rails_.Admit(action, Readiness::kReady, {}, {}, step_.ctx));
  EXPECT_EQ(step_.Emitted<Audit>().size(), 2u) << "it was not decided in the cycle between";
}

TEST_F(RailsTest, ObstaclesOfAnOperationThatIsReady) {
  const Operation drain{.kind = OperationKind::kReclaim, .cluster = "a"};
  const Operation create{.kind = OperationKind::kProvision, .cluster = "a"};
  EXPECT_EQ(rails_.Obstacle(drain, true), std::nullopt);
  EXPECT_EQ(rails_.Obstacle(drain, false), Outcome::kNoSession);
  EXPECT_EQ(rails_.Obstacle(create, false), std::nullopt) << "Create asks the cluster for nothing";
  rails_.SetMode("a", ActuationMode::kDryRun, step_.ctx);
  EXPECT_EQ(rails_.Obstacle(create, true), std::nullopt) << "dry run leaves alone what has begun";
  EXPECT_FALSE(rails_.MayRepair("a"));
  EXPECT_TRUE(rails_.MayRepair("b"));
  rails_.SetMode("", ActuationMode::kPaused, step_.ctx);
  EXPECT_EQ(rails_.Obstacle(create, true), Outcome::kSuppressed);
  EXPECT_FALSE(rails_.MayRepair("b"));
  const Operation by_hand{.kind = OperationKind::kRepair, .reason = model::Reason::kRepairByHand};
  EXPECT_EQ(rails_.Obstacle(by_hand, false), std::nullopt) << "an operator may repair while the shard is paused";
}

TEST(Outcomes, HaveTheirNames) {
  EXPECT_EQ(OutcomeName(Outcome::kPending), "pending");
  EXPECT_EQ(OutcomeName(Outcome::kDryRun), "dryrun");
  EXPECT_EQ(OutcomeName(Outcome::kInventoryMiss), "inventory_miss");
  EXPECT_EQ(OutcomeName(Outcome::kProviderError), "provider_error");
}

}  // namespace
}  // namespace muster::shard
