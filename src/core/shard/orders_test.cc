// Orders: who gave them, why and when; what is refused; machines that are forgotten and recalled; clusters that are
// gone.
#include <gtest/gtest.h>

#include "core/shard/demand.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using contract::ActuationMode;
using enum model::MachineState;

contract::ClusterView ClusterOf(Lab& lab, const std::string& name) {
  for (const contract::ClusterView& view : lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters) {
    if (view.cluster_id == name) return view;
  }
  return {};
}

TEST(ShardOrders, SayWhoAndWhyAndWhenAlsoAfterARestart) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 0);
  lab.Run(1s);
  const WallTime when = lab.now.wall;
  lab.Ask(contract::SetActuation{
      .cluster_id = "a", .mode = ActuationMode::kPaused, .reason = "network", .who = "bigfleet://admin"});
  lab.Ask(contract::SetActuation{.mode = ActuationMode::kDryRun, .reason = "trial", .who = "local"});
  ASSERT_EQ(lab.orders.size(), 2u);
  EXPECT_EQ(lab.orders[0].order,
            (contract::OrderView{
                .kind = "pause", .cluster_id = "a", .who = "bigfleet://admin", .reason = "network", .at = when}));
  EXPECT_TRUE(lab.orders[0].refusal.ok());
  EXPECT_EQ(lab.orders[1].order.kind, "dry-run");
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(ClusterOf(lab, "a").last_order, lab.orders[0].order);
    const auto listed = lab.AskFor<contract::ClustersListed>(contract::ListClusters{});
    EXPECT_EQ(listed.last_order, lab.orders[1].order);
    EXPECT_EQ(listed.shard_mode, ActuationMode::kDryRun);
    lab.Restart();
  }
}

TEST(ShardOrders, ForAClusterThatIsNotKnownAreRefusedByName) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("blue", 0);
  const std::vector<contract::ShardRequest> orders = {
      contract::SetActuation{.cluster_id = "bleu", .mode = ActuationMode::kPaused, .who = "local"},
      contract::AcceptLosses{.cluster_id = "bleu", .who = "local"},
      contract::DecommissionCluster{.cluster_id = "bleu", .who = "local"}};
  for (const contract::ShardRequest& order : orders) {
    EXPECT_EQ(lab.Ask(order).status,
              Status(Code::kNotFound,
                     "this shard does not know a cluster \"bleu\"; `muster fleet clusters` lists those it knows"));
  }
  ASSERT_EQ(lab.orders.size(), 3u) << "refused orders are logged";
  for (const AuditOrder& audit : lab.orders) EXPECT_EQ(audit.refusal.code(), Code::kNotFound);
  EXPECT_EQ(ClusterOf(lab, "bleu").cluster_id, "") << "and the name is not remembered";
}

TEST(ShardOrders, ThoseForAMachineAreShownWithItsClusterUnlessThatIsPaused) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Add("m", 3, kFailed, "a");
  lab.Start();
  lab.Run(1s);
  EXPECT_TRUE(lab.Ask(contract::RepairMachine{.machine_id = "m-000", .reason = "now", .who = "local"}).status.ok());
  const contract::OrderView repair = ClusterOf(lab, "a").last_order;
  EXPECT_EQ(repair.kind, "repair");
  EXPECT_EQ(repair.machine_id, "m-000");
  EXPECT_EQ(repair.who, "local");
  EXPECT_EQ(repair.reason, "now");
  lab.Restart();
  lab.Run(1s);
  EXPECT_EQ(ClusterOf(lab, "a").last_order, repair);
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kPaused, .who = "local"});
  EXPECT_TRUE(lab.Ask(contract::ForgetMachine{.machine_id = "m-001", .who = "local"}).status.ok());
  EXPECT_EQ(ClusterOf(lab, "a").last_order.kind, "pause") << "who paused it is not hidden";
  EXPECT_TRUE(lab.Ask(contract::AcceptLosses{.cluster_id = "a", .who = "local"}).status.ok());
  EXPECT_EQ(lab.orders.back().order.kind, "accept");
  EXPECT_EQ(ClusterOf(lab, "a").last_order.kind, "pause") << "nor by an order that ends no pause";
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kDryRun, .who = "local"});
  EXPECT_EQ(ClusterOf(lab, "a").last_order.kind, "dry-run");
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = ActuationMode::kActive, .who = "local"});
  EXPECT_TRUE(lab.Ask(contract::ForgetMachine{.machine_id = "m-002", .who = "local"}).status.ok());
  EXPECT_EQ(ClusterOf(lab, "a").last_order.kind, "forget");
}

TEST(ShardOrders, RefusedBeforeTheMachinesHaveBeenSeenAreLogged) {
  Lab lab;
  lab.silent = true;
  lab.Start();
  const std::vector<contract::ShardRequest> orders = {contract::RepairMachine{.machine_id = "m", .who = "local"},
                                                      contract::ForgetMachine{.machine_id = "m", .who = "local"},
                                                      contract::RecallMachine{.machine_id = "m", .who = "local"},
                                                      contract::AcceptLosses{.who = "local"},
                                                      contract::DecommissionCluster{.cluster_id = "a", .who = "local"}};
  for (const contract::ShardRequest& order : orders) EXPECT_EQ(lab.Ask(order).status.code(), Code::kUnavailable);
  std::vector<std::string> logged;
  for (const AuditOrder& audit : lab.orders) {
    logged.push_back(audit.order.kind);
    EXPECT_EQ(audit.refusal.code(), Code::kUnavailable);
    EXPECT_EQ(audit.order.who, "local");
  }
  EXPECT_EQ(logged, (std::vector<std::string>{"repair", "forget", "recall", "accept", "decommission"}));
}

TEST(ShardOrders, AForgottenMachineIsListedAndRecalled) {
  Lab lab({.failed_policy = FailedPolicy::kKeep});
  lab.Put(Lab::MakeMachine("m", kFailed));
  lab.Start();
  EXPECT_TRUE(lab.Ask(contract::ForgetMachine{.machine_id = "m", .reason = "scrapped", .who = "local"}).status.ok());
  lab.Run(2min);
  lab.Restart();
  lab.Run(1s);
  const auto forgotten = lab.AskFor<contract::ForgottenListed>(contract::ListForgotten{}).orders;
  ASSERT_EQ(forgotten.size(), 1u);
  EXPECT_EQ(forgotten[0], lab.orders[0].order);
  EXPECT_EQ(forgotten[0].reason, "scrapped");
  EXPECT_EQ(lab.Ask(contract::RecallMachine{.machine_id = "n"}).status.code(), Code::kNotFound);
  EXPECT_TRUE(lab.Ask(contract::RecallMachine{.machine_id = "m", .reason = "a mistake", .who = "local"}).status.ok());
  lab.Run(3s);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m"));
  lab.Restart();
  lab.Run(3s);
  EXPECT_TRUE(lab.core().machines().tracked().contains("m"));
  EXPECT_TRUE(lab.AskFor<contract::ForgottenListed>(contract::ListForgotten{}).orders.empty());
}

TEST(ShardOrders, DecommissionEndsTheDemandOfAClusterThatIsGone) {
  Lab lab;
  lab.Start();
  lab.ConnectWith("a", 4);
  lab.Run(1s);
  const contract::DecommissionCluster order{.cluster_id = "a", .reason = "moved", .who = "local"};
  EXPECT_EQ(lab.Ask(order).status.code(), Code::kAborted) << "it is connected";
  EXPECT_EQ(lab.core().demand().Of("a").rows.size(), 1u);
  lab.Disconnect("a");
  EXPECT_TRUE(lab.Ask(order).status.ok());
  EXPECT_TRUE(lab.core().demand().Of("a").rows.empty());
  EXPECT_TRUE(lab.core().demand().Of("a").gate_open);
  EXPECT_EQ(ClusterOf(lab, "a").last_order.kind, "decommission");
}

}  // namespace
}  // namespace muster::shard
