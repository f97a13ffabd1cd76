// Registration, heartbeats, the monitor, and nodes that cannot be called: rows of a node's life.
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::DecisionKind;
using model::NodeStatus;

TEST(SchedulerNodes, RegistrationIsReadyWithItsProvenance) {
  Lab lab;
  const contract::NodeRegistered reply = lab.Register(lab.Facts("n1"));
  EXPECT_TRUE(reply.accepted);
  EXPECT_EQ(reply.heartbeat_interval, 60s) << "a third of the node timeout";
  EXPECT_EQ(reply.lease_expires_at, lab.now.wall - 9ms + 3min) << "from the moment it is durable";
  const contract::NodeView node = lab.Node("n1");
  EXPECT_EQ(node.status, NodeStatus::kReady);
  EXPECT_EQ(node.status_reason, "registered");
  EXPECT_EQ(node.status_updated_by, "register");
  EXPECT_EQ(node.epoch, 0U) << "a foreign node has no epochs";
}

TEST(SchedulerNodes, RegistrationWithoutCapacityOrEndpointIsRefused) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  facts.total = {{"cpu", 8000}};
  const contract::NodeRegistered reply = lab.Register(facts);
  EXPECT_FALSE(reply.accepted);
  EXPECT_NE(reply.reason.find("memory"), std::string::npos) << reply.reason;
  facts = lab.Facts("n1");
  facts.endpoint = "n1";
  const Status status = lab.Try(contract::RegisterNode{.facts = facts});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("grpc_endpoint"), std::string::npos);
  facts = lab.Facts("");
  EXPECT_EQ(lab.Try(contract::RegisterNode{.facts = facts}).code(), Code::kInvalidArgument);
}

TEST(SchedulerNodes, NodesAreBoundedInNumber) {
  const auto store = std::make_shared<LabStore>();
  {
    Lab lab({}, store);
    ASSERT_TRUE(lab.Register(lab.Facts("seed")).accepted);
  }
  const contract::KeyValue row = store->rows.at("/nodes/seed");
  for (size_t i = 2; i < model::kMostNodes; ++i) {
    const std::string id = fmt::format("n{}", i);
    contract::KeyValue another = row;
    another.key = "/nodes/" + id;
    for (size_t at = 0; (at = another.value.find("seed", at)) != std::string::npos; at += id.size()) {
      another.value.replace(at, 4, id);
    }
    store->rows[another.key] = another;
  }
  Lab lab({}, store);
  EXPECT_TRUE(lab.Register(lab.Facts("last")).accepted);
  EXPECT_EQ(lab.Try(contract::RegisterNode{.facts = lab.Facts("one-more")}),
            Status(Code::kResourceExhausted, "scheduler: nodes 50000 of 50000 in use; delete those that are gone"));
  EXPECT_TRUE(lab.Register(lab.Facts("seed")).accepted) << "a node that is known";
}

TEST(SchedulerNodes, AnAgentOfALostStoreGetsAnEpochAboveTheOneItKnows) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.agents["n1"].epoch = 5000;  // from a scheduler whose store is gone
  EXPECT_EQ(lab.Register(lab.Facts("n1")).state.epoch, 5001U);
  lab.StartBeating("n1");
  lab.Apply("web");
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size(), 1U) << "its stamp is not refused";
  EXPECT_EQ(lab.Node("n1").epoch, 5001U);
  lab.agents["n1"].epoch = 3;  // an agent that lost its own state
  EXPECT_EQ(lab.Register(lab.Facts("n1")).state.epoch, 5002U);
}

TEST(SchedulerNodes, AnEpochNearTheEndOfItsRangeIsRefusedByName) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  facts.native = true;
  for (const uint64_t epoch : {uint64_t{1} << 62, UINT64_MAX}) {
    const Status status = lab.Try(contract::RegisterNode{.facts = facts, .running = {}, .epoch = epoch});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_TRUE(status.message().starts_with(fmt::format("epoch: {} is out of range", epoch))) << status.message();
  }
  EXPECT_FALSE(lab.store->rows.contains("/nodes/n1"));
  const uint64_t last = (uint64_t{1} << 62) - 1;
  EXPECT_TRUE(lab.Try(contract::RegisterNode{.facts = facts, .running = {}, .epoch = last}).ok());
  EXPECT_EQ(lab.Node("n1").epoch, last + 1);
}

TEST(SchedulerNodes, HeartbeatOfAnUnknownNodeMustRegister) {
  Lab lab;
  lab.Run();
  EXPECT_EQ(lab.Try(contract::Heartbeat{.node = "n1"}).code(), Code::kNotFound);
}

TEST(SchedulerNodes, HeartbeatsAreNotStored) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const uint64_t commits = lab.store->commits;
  lab.Run(1h);
  EXPECT_EQ(lab.store->commits, commits);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kReady);
  EXPECT_GE(*lab.Node("n1").last_heartbeat, lab.now.wall - 11s);
}

TEST(SchedulerNodes, SilentNodeIsNotReadyAfterThreeMinutesByTheMonitor) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(25s);
  lab.StopBeating("n1");
  const contract::NodeView last = lab.Node("n1");
  lab.Run(2min + 50s);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kReady);
  lab.Run(1min + 10s);
  const contract::NodeView node = lab.Node("n1");
  EXPECT_EQ(node.status, NodeStatus::kNotReady);
  EXPECT_EQ(node.status_updated_by, "monitor");
  EXPECT_TRUE(node.status_reason.starts_with("heartbeat expired: last heartbeat 2023-")) << node.status_reason;
  EXPECT_EQ(node.last_heartbeat, last.last_heartbeat);
  EXPECT_EQ(lab.store->rows.at("/nodes/n1/status").value, "NotReady");
  EXPECT_EQ(lab.Decided(DecisionKind::kNodeLost), 1);
}

TEST(SchedulerNodes, HeartbeatMakesASilentNodeReadyAgain) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.StopBeating("n1");
  lab.Run(5min);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kNotReady);
  EXPECT_TRUE(lab.Beat("n1").ok());
  const contract::NodeView node = lab.Node("n1");
  EXPECT_EQ(node.status, NodeStatus::kReady);
  EXPECT_EQ(node.status_reason, "heartbeat received");
  EXPECT_EQ(node.status_updated_by, "heartbeat");
}

TEST(SchedulerNodes, UnreachableAgentIsNotReadyByTheReconcilerInTheSamePass) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.agents["n1"].unreachable = true;
  lab.Apply("web");
  lab.Run(100ms);
  const contract::NodeView node = lab.Node("n1");
  EXPECT_EQ(node.status, NodeStatus::kNotReady);
  EXPECT_EQ(node.status_updated_by, "reconciler");
  EXPECT_NE(node.status_reason.find("unreachable"), std::string::npos) << node.status_reason;
}

TEST(SchedulerNodes, UnreachableNodeIsReadyOnlyAfterACallSucceeded) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.agents["n1"].unreachable = true;
  lab.Apply("web");
  lab.Run(10min);  // it beats all the time
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kNotReady);
  EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
  lab.Run(1min);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kNotReady) << "nor does a registration make it Ready";
  lab.agents["n1"].unreachable = false;
  lab.Run(6s);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kReady);
  EXPECT_EQ(lab.Node("n1").status_updated_by, "reconciler");
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerNodes, UnreachableGraceWaitsBeforeFailover) {
  Lab lab({.unreachable_grace = 30s});
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const std::string node = lab.Workload("web").node;
  lab.agents[node].workloads.clear();
  lab.agents[node].unreachable = true;
  lab.Run(20s);
  EXPECT_EQ(lab.Node(node).status, NodeStatus::kReady);
  EXPECT_EQ(lab.Workload("web").node, node);
  lab.Run(40s);
  EXPECT_EQ(lab.Node(node).status, NodeStatus::kNotReady);
  EXPECT_NE(lab.Workload("web").node, node);
}

TEST(SchedulerNodes, CordonIsNotUndoneByHeartbeatsOrRegistration) {
  Lab lab;
  lab.AddNode("n1");
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = true, .reason = "disk"}).ok());
  EXPECT_TRUE(lab.Beat("n1").ok());
  EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
  EXPECT_TRUE(lab.Node("n1").cordoned);
  EXPECT_EQ(lab.Node("n1").status, NodeStatus::kReady);
  const contract::Applied applied = lab.Apply("web");
  EXPECT_NE(applied.refusal.find("n1"), std::string::npos) << applied.refusal;
  EXPECT_EQ(lab.Workload("web").reason, "node.cordoned");
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = false}).ok());
  lab.Run(3s);
  EXPECT_EQ(lab.Phase("web"), "Running") << "an uncordoned node ends the wait";
}

// An order that was long on its way does not undo the one that was given after it.
TEST(SchedulerNodes, AnOrderThatIsLateIsRefused) {
  const auto late = [] {
    Lab lab;
    lab.AddNode("n1");
    EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1", .instruction = "r1", .order = 7}).ok());
    EXPECT_EQ(lab.Node("n1").last_order, 7U);
    EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
    const Status status = lab.Try(contract::CordonNode{.node = "n1", .cordoned = false, .order = 6});
    EXPECT_EQ(lab.Node("n1").cordoned, !status.ok());
    return status;
  };
  EXPECT_EQ(late(), Status(Code::kFailedPrecondition, "order: node n1 was given order 7 before order 6"));
  {
    const faults::ScopedMutant on("scheduler.late_order_taken");
    EXPECT_TRUE(late().ok());
  }
  Lab lab;
  lab.AddNode("n1");
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = false, .reason = "r", .order = 8}).ok());
  EXPECT_EQ(lab.Try(contract::DrainNode{.node = "n1", .order = 8}).code(), Code::kFailedPrecondition);
  EXPECT_EQ(lab.Try(contract::DrainNode{.node = "n1", .order = uint64_t{1} << 62}).code(), Code::kInvalidArgument);
  EXPECT_FALSE(lab.Node("n1").cordoned);
  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1"}).ok()) << "people's orders have no number";
  EXPECT_EQ(lab.Node("n1").last_order, 8U);
}

// A drain of order 5 is overtaken by an uncordoning of order 6 that finds the node as it wants it.
TEST(SchedulerNodes, AnOrderThatChangesNothingIsRememberedAllTheSame) {
  Lab lab;
  lab.AddNode("n1");
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = false, .order = 6}).ok());
  EXPECT_EQ(lab.Node("n1").last_order, 6U);
  EXPECT_EQ(lab.Try(contract::DrainNode{.node = "n1", .order = 5}),
            Status(Code::kFailedPrecondition, "order: node n1 was given order 6 before order 5"));
  EXPECT_FALSE(lab.Node("n1").cordoned);
}

// Its commit happened, and the answer was lost.
TEST(SchedulerNodes, AnOrderThatIsCarriedOutAgainIsTheSameOrder) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const auto order = [&](contract::ClusterRequest body) {
    lab.lose_answers = true;
    const contract::RequestId request = lab.Ask(std::move(body));
    lab.Run(2ms);
    lab.lose_answers = false;
    lab.Run(5s);
    return lab.answers.contains(request) ? lab.answers.at(request).status : Status(Code::kDeadlineExceeded, "none");
  };
  const contract::DrainNode drain{.node = "n1",
                                  .grace = 1500ms,
                                  .reason = "repair",
                                  .instruction = "r1",
                                  .deadline = lab.now.wall + 90'000'000'001ns,
                                  .order = 7};
  EXPECT_EQ(order(drain), Status());
  EXPECT_TRUE(lab.Node("n1").draining);
  EXPECT_EQ(order(contract::CordonNode{.node = "n1", .cordoned = false, .reason = "over", .order = 8}), Status());
  EXPECT_FALSE(lab.Node("n1").cordoned);
  EXPECT_EQ(lab.Node("n1").last_order, 8U);
  EXPECT_EQ(lab.Try(drain).code(), Code::kFailedPrecondition) << "and not the one before";
}

TEST(SchedulerNodes, AvailableIsTotalLessTheLargerOfReservedAndUsed) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web", Lab::Template(2000, 4));
  lab.Run(1s);
  EXPECT_TRUE(lab.Try(contract::Heartbeat{.node = "n1",
                                          .used = model::Resources{{"cpu", 3000}, {"memory", int64_t{1} << 40}},
                                          .statuses = lab.StatusesOf("n1")})
                  .ok());
  const contract::NodeView node = lab.Node("n1");
  EXPECT_EQ(node.reserved.Get("cpu"), 2000);
  EXPECT_EQ(node.available.Get("cpu"), 5000);
  EXPECT_EQ(node.available.Get("memory"), node.total.Get("memory") - node.reserved.Get("memory"));
}

TEST(SchedulerNodes, EpochGrowsWithEveryNativeRegistrationAndOlderOnesAreNotHeard) {
  Lab lab;
  lab.agents["n1"].native = true;
  const uint64_t first = lab.Register(lab.Facts("n1")).state.epoch;
  EXPECT_GT(first, 0U);
  lab.Run(1s);
  const uint64_t second = lab.Register(lab.Facts("n1")).state.epoch;
  EXPECT_GT(second, first);
  EXPECT_EQ(lab.Try(contract::Heartbeat{.node = "n1", .epoch = first}).code(), Code::kNotFound);
  EXPECT_TRUE(lab.Try(contract::Heartbeat{.node = "n1", .epoch = second}).ok());
}

TEST(SchedulerNodes, NativeNodeIsToldItsFullState) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(3s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  const contract::NodeRegistered again = lab.Register(lab.Facts("n1"));
  ASSERT_EQ(again.state.workloads.size(), 1U);
  EXPECT_EQ(again.state.workloads[0].workload, "web");
  EXPECT_EQ(again.state.workloads[0].stamp.epoch, again.state.epoch);
  EXPECT_GT(again.state.workloads[0].stamp.sequence, 0U);
  EXPECT_TRUE(again.state.remove_others);
}

TEST(SchedulerNodes, DeleteNodeNeedsItEmptyOrForce) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(3s);
  const std::string node = lab.Workload("web").node;
  contract::DeleteObject order{.kind = contract::ObjectKind::kNode, .name = node};
  EXPECT_EQ(lab.Try(order).code(), Code::kFailedPrecondition);
  order.force = true;
  lab.StopBeating(node);
  EXPECT_TRUE(lab.Try(order).ok());
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_NE(lab.Workload("web").node, node);
  EXPECT_FALSE(lab.store->rows.contains("/nodes/" + node));
  EXPECT_FALSE(lab.store->rows.contains("/nodes/" + node + "/status"));
}

}  // namespace
}  // namespace muster::scheduler
