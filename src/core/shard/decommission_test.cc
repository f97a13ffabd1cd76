// Orders that end something: a cluster that is gone, and machines that were forgotten.
#include <gtest/gtest.h>

#include <string>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

// One machine of twenty in ten minutes.
Config Slow() { return {.reclaim_budget = {50'000}, .reclaim_window = 10min}; }

// Cluster a has twenty machines, and its operator is gone.
void Abandon(Lab& lab) {
  lab.Add("m", 20, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(2s);
  lab.Disconnect("a");
  lab.Run(10min);
}

TEST(ShardDecommission, TakesTheMachinesBackWithinTheRails) {
  Lab lab(Slow());
  Abandon(lab);
  ASSERT_TRUE(lab.transitions.empty());
  EXPECT_TRUE(lab.Ask(contract::DecommissionCluster{.cluster_id = "a", .reason = "sold"}).status.ok());
  lab.Run(5s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1) << "what the reclaim budget of a cluster of twenty allows";
  lab.Run(lab.config().reclaim_window * 25);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 20) << "without a session, and without its acknowledgement";
  const auto views = lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters;
  EXPECT_TRUE(views.at(0).decommissioned);
  const faults::ScopedMutant on("shard.decommissioned_kept");
  Lab other(Slow());
  Abandon(other);
  other.Ask(contract::DecommissionCluster{.cluster_id = "a", .reason = "sold"});
  other.Run(1h);
  EXPECT_EQ(other.Count<contract::DrainRequest>(), 0);
}

TEST(ShardDecommission, SticksOverARestart) {
  Lab lab(Slow());
  Abandon(lab);
  lab.Ask(contract::DecommissionCluster{.cluster_id = "a"});
  lab.Run(1s);
  lab.Restart();
  lab.Run(lab.config().reclaim_window * 25);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 20);
}

TEST(ShardDecommission, IsRefusedForAClusterThatIsConnectedOrUnknown) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 1);
  EXPECT_EQ(lab.Ask(contract::DecommissionCluster{.cluster_id = "a"}).status.code(), Code::kAborted);
  EXPECT_EQ(lab.Ask(contract::DecommissionCluster{.cluster_id = "b"}).status.code(), Code::kNotFound);
}

TEST(ShardDecommission, AClusterThatComesBackIsRefusedUntilItIsResumed) {
  Lab lab(Slow());
  Abandon(lab);
  lab.Ask(contract::DecommissionCluster{.cluster_id = "a"});
  lab.ConnectWith("a", 20);
  EXPECT_NE(lab.core().demand().Of("a").last_refusal.find("decommissioned"), std::string::npos);
  EXPECT_TRUE(lab.core().demand().Of("a").rows.empty());
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kActive});
  lab.Rollup("a", 20);
  EXPECT_EQ(lab.core().demand().Of("a").rows.size(), 1u);
}

TEST(ShardForgotten, IsListedAndCanBeTakenBack) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Put(Lab::MakeMachine("m", kFailed));
  lab.Start();
  lab.Ask(contract::ForgetMachine{.machine_id = "m"});
  lab.Run(2s);
  const auto forgotten = lab.AskFor<contract::ForgottenListed>(contract::ListForgotten{}).orders;
  ASSERT_EQ(forgotten.size(), 1u);
  EXPECT_EQ(forgotten[0].machine_id, "m");
  EXPECT_EQ(lab.Ask(contract::RecallMachine{.machine_id = "x"}).status.code(), Code::kNotFound);
  EXPECT_TRUE(lab.Ask(contract::RecallMachine{.machine_id = "m"}).status.ok());
  lab.Run(2s);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m"));
  EXPECT_TRUE(lab.AskFor<contract::ForgottenListed>(contract::ListForgotten{}).orders.empty());
  lab.Restart();
  EXPECT_TRUE(lab.core().machines().tracked().contains("m"));
}

}  // namespace
}  // namespace muster::shard
