// Nodes that are lost, agents that refuse, workloads that drift: where a workload goes then.
#include "base/probe.h"
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;

TEST(SchedulerFailover, WorkloadOfASilentNodeMovesToAnother) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const contract::WorkloadView before = lab.Workload("web");
  lab.StopBeating(before.node);
  lab.agents[before.node].unreachable = true;
  // Silence alone is judged by age; the list of the next pass finds the agent gone.
  lab.Run(30s);
  const contract::WorkloadView after = lab.Workload("web");
  EXPECT_NE(after.node, before.node);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_GT(after.stamp.sequence, before.stamp.sequence);
  EXPECT_EQ(lab.Decided(DecisionKind::kFailedOver), 1);
  EXPECT_TRUE(std::ranges::count(lab.EventsOf("web"), "Rescheduled") == 1);
}

TEST(SchedulerFailover, StaleHeartbeatIsUnavailableForFailoverAndPlacementAlike) {
  Lab lab({.monitor_interval = 1h});  // the monitor does not write it down
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const std::string node = lab.Workload("web").node;
  lab.StopBeating(node);
  lab.Run(2min + 50s);
  EXPECT_EQ(lab.Workload("web").node, node);
  lab.Run(20s);
  EXPECT_NE(lab.Workload("web").node, node);
  EXPECT_EQ(lab.Node(node).status, model::NodeStatus::kReady);
  model::WorkloadTemplate spec = Lab::Template();
  spec.requirements = {{{"kubernetes.io/hostname", model::Operator::kIn, {node}}}};
  EXPECT_NE(lab.Apply("pinned", spec).refusal.find(node + ": "), std::string::npos);
  EXPECT_EQ(lab.Get<contract::Explanation>(contract::ExplainWorkload{"pinned"}).nodes.size(), 2U);
  for (const auto& verdict : lab.Get<contract::Explanation>(contract::ExplainWorkload{"pinned"}).nodes) {
    if (verdict.node == node) {
      EXPECT_EQ(verdict.reason, "node.stale");
    }
  }
}

TEST(SchedulerFailover, WithoutACandidateItWaitsAndDoesNotCount) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.agents["n1"].unreachable = true;
  lab.StopBeating("n1");
  lab.Run(1min);
  const contract::WorkloadView view = lab.Workload("web");
  EXPECT_EQ(lab.Phase("web"), "RetryPending");
  EXPECT_EQ(view.reason, "failover.no_node");
  EXPECT_EQ(view.attempts, 0);
  EXPECT_EQ(view.metadata.at("lastReconciliationAction"), "AwaitFailover");
  lab.AddNode("n2");
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Running") << "a joining node ends the wait";
  EXPECT_EQ(lab.Workload("web").node, "n2");
}

TEST(SchedulerFailover, ReturningNodeKeepsAWorkloadThatFoundNoOther) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.agents["n1"].unreachable = true;
  lab.Run(1min);
  EXPECT_EQ(lab.Phase("web"), "RetryPending");
  lab.agents["n1"].unreachable = false;
  lab.Run(10s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size(), 1U) << "it ran all the time";
}

TEST(SchedulerFailover, WhatFailsOnANodeThatReturnedWaitsBetweenItsAttempts) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.agents["n1"].unreachable = true;
  lab.Run(1min);
  ASSERT_EQ(lab.Phase("web"), "RetryPending") << "it waits for another node";
  lab.agents["n1"].workloads.clear();
  lab.agents["n1"].fails["web"] = "exit code 1";
  lab.agents["n1"].unreachable = false;
  for (int i = 0; i < 600 && lab.Workload("web").attempts == 0; ++i) lab.Run(100ms);
  ASSERT_EQ(lab.Workload("web").attempts, 1);
  const size_t launches = lab.agents["n1"].applied.size();
  lab.Run(4s);
  EXPECT_EQ(lab.agents["n1"].applied.size(), launches) << "the wait for a node was over, the back-off is not";
  EXPECT_EQ(lab.Workload("web").attempts, 1);
}

TEST(SchedulerFailover, NodeThatBeatsAndCannotBeDialledCausesOneFailover) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  for (int i = 0; i < 4; ++i) lab.Apply(fmt::format("w{}", i));
  lab.Run(5s);
  lab.agents["n1"].unreachable = true;
  lab.agents["n1"].workloads.clear();
  lab.Run(10min);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(lab.Workload(fmt::format("w{}", i)).node, "n2");
  EXPECT_EQ(lab.Decided(DecisionKind::kFailedOver), 2);
}

TEST(SchedulerFailover, HungNodeDelaysNobodyElse) {
  Lab lab;
  lab.AddNode("hung");
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("h{}", i));
  lab.Run(5s);
  lab.AddNode("good");
  lab.Apply("web");
  lab.Run(5s);
  ASSERT_EQ(lab.Workload("web").node, "good");
  lab.agents["hung"].hangs = true;
  lab.agents["hung"].workloads.clear();
  EXPECT_TRUE(lab.Beat("hung").ok());
  lab.agents["good"].workloads.clear();
  EXPECT_TRUE(lab.Beat("good").ok());
  lab.Run(1s);
  EXPECT_EQ(lab.On("good", "web"), ActualState::kRunning);
  lab.Run(30s);
  EXPECT_EQ(lab.Node("hung").status, model::NodeStatus::kNotReady);
}

TEST(SchedulerFailover, StaleOwnerIsToldToDeleteWhatMovedAway) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const std::string old_node = lab.Workload("web").node;
  lab.StopBeating(old_node);
  lab.Run(5min);
  ASSERT_NE(lab.Workload("web").node, old_node);
  EXPECT_EQ(lab.On(old_node, "web"), ActualState::kRunning);
  EXPECT_TRUE(lab.Beat(old_node).ok());
  lab.Run(100ms);
  EXPECT_EQ(lab.On(old_node, "web"), ActualState::kMissing);
  EXPECT_EQ(lab.Phase("web"), "Running") << "the stale owner's statuses do not count";
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphanDeleted), 1);
}

// As after a move from a store whose workloads are not read: they are applied again while they run.
TEST(SchedulerOrphans, WhatIsAppliedToAnEmptyStoreRunsTwiceUntilItsOldNodeIsAccepted) {
  Lab lab;
  const auto reports = [&lab](const std::string& node, const std::string& id) {
    lab.agents[node].workloads[id].status = {.workload = id, .revision = "old", .actual = ActualState::kRunning};
  };
  reports("n1", "web");
  reports("n1", "rest");
  reports("n2", "db");
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Run(10min);
  EXPECT_EQ(lab.Node("n1").orphans_held, 2);
  contract::ApplyWorkload web = Lab::ApplyOf("web");
  web.require_labels = {{"kubernetes.io/hostname", "n2"}};
  ASSERT_TRUE(lab.Try(web).ok());
  contract::ApplyWorkload db = Lab::ApplyOf("db");
  db.require_labels = {{"kubernetes.io/hostname", "n2"}};
  ASSERT_TRUE(lab.Try(db).ok());
  lab.Run(10min);
  EXPECT_EQ(lab.On("n2", "db"), ActualState::kRunning);
  EXPECT_EQ(lab.agents["n2"].workloads.at("db").status.revision, "rev-1") << "it is taken over where it is";
  EXPECT_EQ(lab.Node("n2").orphans_held, 0);
  EXPECT_EQ(lab.On("n2", "web"), ActualState::kRunning);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning) << "it runs twice";
  EXPECT_EQ(lab.Node("n1").orphans_held, 2);
  EXPECT_TRUE(lab.agents["n1"].deleted.empty());
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n1"}).ok());
  lab.Run(30s);
  EXPECT_TRUE(lab.agents["n1"].workloads.empty());
  EXPECT_EQ(lab.On("n2", "web"), ActualState::kRunning);
  EXPECT_EQ(lab.agents["n2"].deleted.size(), 0U);
}

TEST(SchedulerFailover, DeletingOnADeadNodeCompletesAndTheNodeCleansUp) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.StopBeating("n1");
  lab.Run(5min);
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(1s);
  EXPECT_FALSE(lab.Exists("web"));
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(100ms);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kMissing);
}

TEST(SchedulerFailover, RuntimeMismatchRemovesTheTypeAndReschedules) {
  for (const int way : {0, 1, 2}) {  // an apply error, an applied=false reply, a later Failed
    Lab lab;
    lab.AddNode("n1");
    lab.AddNode("n2");
    LabAgent& first = lab.agents["n1"];
    const std::string text = "docker runtime not available on this node";
    if (way == 0) first.refuses = [&](const auto&) { return Status(Code::kInternal, text); };
    if (way == 1) first.declines = [&](const auto&) { return text; };
    if (way == 2) first.fails["web"] = text;
    lab.Apply("web");
    lab.Run(5s);
    EXPECT_EQ(lab.Phase("web"), "Running") << way;
    EXPECT_EQ(lab.Workload("web").node, "n2");
    EXPECT_EQ(lab.Workload("web").attempts, 0) << "it is no attempt";
    const auto refused = std::ranges::find(lab.decisions, contract::DecisionKind::kRefused, &contract::Decision::kind);
    ASSERT_NE(refused, lab.decisions.end()) << way;
    EXPECT_EQ(refused->workload + " " + refused->node + " " + refused->reason, "web n1 agent.runtime_missing");
    EXPECT_TRUE(refused->message.ends_with(": " + text)) << refused->message;
    EXPECT_EQ(lab.Decided(contract::DecisionKind::kRefused), 1) << way;
    const std::vector<model::WorkloadType> types = lab.Node("n1").supported_types;
    EXPECT_EQ(types, std::vector{model::WorkloadType::kProcess}) << way;
    EXPECT_NE(lab.store->rows.at("/assignments/web").value.find("n2"), std::string::npos);
    // A registration brings the type back.
    first.refuses = {};
    first.declines = {};
    first.fails.clear();
    EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
    EXPECT_EQ(lab.Node("n1").supported_types.size(), 2U);
  }
}

TEST(SchedulerFailover, AdmissionRefusalAvoidsTheNodeForTenMinutes) {
  Lab lab;
  lab.AddNode("n1");
  bool busy = true;
  lab.agents["n1"].refuses = [&](const auto&) -> std::optional<Status> {
    if (!busy) return std::nullopt;
    return Status(Code::kResourceExhausted, "memory above 80 %");
  };
  lab.Apply("web");
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Pending");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  EXPECT_EQ(lab.Node("n1").supported_types.size(), 2U) << "the type is kept";
  const auto refused = std::ranges::find(lab.decisions, "agent.admission", &contract::Decision::reason);
  ASSERT_NE(refused, lab.decisions.end());
  EXPECT_EQ(refused->kind, contract::DecisionKind::kRefused);
  EXPECT_EQ(refused->workload + " " + refused->node, "web n1");
  EXPECT_TRUE(refused->message.ends_with(": memory above 80 %")) << refused->message;
  busy = false;
  lab.Run(9min);
  EXPECT_EQ(lab.Phase("web"), "Pending");
  lab.Run(4min);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerFailover, ARefusalIsForgottenAsSoonThoughTheClockIsSetBack) {
  Lab lab;
  lab.AddNode("n1");
  bool busy = true;
  lab.agents["n1"].refuses = [&](const auto&) -> std::optional<Status> {
    if (!busy) return std::nullopt;
    return Status(Code::kResourceExhausted, "memory above 80 %");
  };
  lab.Apply("web");
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Pending");
  busy = false;
  lab.now.wall -= 1h;
  lab.Run(13min);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

// What it was before is still there: it ends before the workload is placed again.
TEST(SchedulerFailover, WhatIsRefusedAsAnUpdateLeavesTheNodeBeforeItIsPlacedAgain) {
  const auto ended_first = [](const Status& refusal) {
    Lab lab;
    lab.AddNode("n1");
    lab.agents["n1"].start_takes = 1h;  // it is never seen to run: an update finds it Scheduled
    lab.Apply("web");
    lab.Run(1s);
    lab.AddNode("n2");
    lab.agents["n1"].refuses = [&](const auto&) { return refusal; };
    model::WorkloadTemplate spec = Lab::Template();
    spec.image = "newer";
    lab.Apply("web", spec);
    bool left_while_there = false;
    for (int i = 0; i < 500 && lab.Workload("web").node != "n2"; ++i) {
      left_while_there |= lab.Workload("web").node.empty() && lab.On("n1", "web") != ActualState::kMissing;
      lab.Run(10ms);
    }
    EXPECT_EQ(lab.Workload("web").node, "n2");
    return !left_while_there && lab.On("n1", "web") == ActualState::kMissing;
  };
  const Status no_room(Code::kResourceExhausted, "cpu");
  const Status no_runtime(Code::kFailedPrecondition, "runtime not available: container");
  EXPECT_TRUE(ended_first(no_room));
  EXPECT_TRUE(ended_first(no_runtime));
  const faults::ScopedMutant on("scheduler.refused_update_leaves_old");
  EXPECT_FALSE(ended_first(no_room));
  EXPECT_FALSE(ended_first(no_runtime));
}

TEST(SchedulerFailover, AnUpdateWithoutARuntimeEndsWhatRunsAndTakesTheTypeFromTheNode) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.AddNode("n2");
  lab.agents["n1"].declines = [](const auto&) { return std::string("runtime not available: container"); };
  model::WorkloadTemplate spec = Lab::Template();
  spec.image = "newer";
  lab.Apply("web", spec);
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").node, "n2");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kMissing);
  EXPECT_EQ(lab.agents["n1"].deleted.size(), 1U) << "it ends there by one order, and not as an orphan";
  EXPECT_EQ(lab.Node("n1").supported_types, std::vector{model::WorkloadType::kProcess});
  EXPECT_EQ(lab.EventsOf("web"),
            (std::vector<std::string>{"WorkloadScheduled", "WorkloadEvicted", "Rescheduled", "WorkloadScheduled"}));
}

// However late the watch is: an agent takes a workload of the same id for the old one otherwise.
TEST(SchedulerFailover, AnAssignmentIsLaterThanThoseOfADeletedWorkloadOfItsId) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.watch_held = true;
  lab.Apply("web");
  lab.Run(5s);
  const uint64_t before = lab.Workload("web").stamp.sequence;
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(5s);
  EXPECT_FALSE(lab.Exists("web"));
  lab.Apply("web");
  lab.Run(5s);
  EXPECT_GT(lab.Workload("web").stamp.sequence, before);
}

// However late the watch is: what an earlier registration of the name was given must not be good again.
TEST(SchedulerFailover, AnEpochIsLaterThanThoseOfADeletedNodeOfItsName) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  facts.native = true;
  lab.watch_held = true;
  const uint64_t before = lab.Register(facts).state.epoch;
  lab.Run(1s);
  EXPECT_TRUE(lab.Try(contract::DeleteObject{.kind = contract::ObjectKind::kNode, .name = "n1", .force = true}).ok());
  lab.Run(1s);
  EXPECT_GT(lab.Register(facts).state.epoch, before);
}

// An agent does not take up again what it was told to delete: only a later assignment.
TEST(SchedulerFailover, WhatIsAppliedAgainWhileItIsDeletedIsANewAssignment) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  const uint64_t before = lab.Workload("web").stamp.sequence;
  lab.agents["n1"].delete_error = Status(Code::kInternal, "the runtime is busy");
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Deleting");
  EXPECT_EQ(lab.Apply("web").result, contract::ApplyResult::kConfigured);
  EXPECT_EQ(lab.Workload("web").node, "n1");
  EXPECT_GT(lab.Workload("web").stamp.sequence, before);
}

TEST(SchedulerFailover, RegistrationClearsARememberedRefusal) {
  Lab lab;
  lab.AddNode("n1");
  bool busy = true;
  lab.agents["n1"].refuses = [&](const auto&) -> std::optional<Status> {
    if (!busy) return std::nullopt;
    return Status(Code::kResourceExhausted, "memory above 80 %");
  };
  lab.Apply("web");
  lab.Run(30s);
  EXPECT_EQ(lab.Phase("web"), "Pending");
  busy = false;
  EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
  lab.Run(2s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

// Also that of a workload which runs elsewhere meanwhile, and is looked at long after.
TEST(SchedulerFailover, RegistrationClearsTheRefusalOfAWorkloadThatRunsElsewhere) {
  for (const bool registers : {true, false}) {
    Lab lab;
    lab.AddNode("n1");
    lab.agents["n1"].refuses = [](const auto&) { return Status(Code::kResourceExhausted, "memory above 80 %"); };
    lab.Apply("web");
    lab.Run(1s);
    lab.AddNode("n2");
    lab.Run(5s);
    EXPECT_EQ(lab.Workload("web").node, "n2");
    lab.agents["n1"].refuses = {};
    if (registers) {
      EXPECT_TRUE(lab.Register(lab.Facts("n1")).accepted);
    }
    lab.Run(1min);
    lab.StopBeating("n2");
    lab.agents["n2"].unreachable = true;
    lab.Run(1min);
    EXPECT_EQ(lab.Workload("web").node, registers ? "n1" : "n2");
    EXPECT_EQ(lab.Phase("web"), registers ? "Running" : "RetryPending");
  }
}

TEST(SchedulerFailover, MissingWorkloadIsLaunchedAgainAfterTheGrace) {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].start_takes = 1h;
  lab.Apply("web");
  lab.Run(2s);
  lab.agents["n1"].workloads.clear();  // accepted, and lost
  lab.Run(11s);
  EXPECT_EQ(lab.agents["n1"].applied.size(), 1U) << "within the grace of 15 s";
  lab.agents["n1"].start_takes = 100ms;
  lab.Run(5s);
  EXPECT_EQ(lab.agents["n1"].applied.size(), 2U);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
}

TEST(SchedulerFailover, AbsenceInAHeartbeatIsDrift) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(1min);
  lab.agents["n1"].workloads.clear();
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size(), 2U);
  EXPECT_EQ(std::ranges::count(lab.EventsOf("web"), "DriftDetected"), 1);
}

TEST(SchedulerFailover, StoppedWorkloadThatShouldRunIsLaunched) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(1min);
  lab.agents["n1"].workloads.at("web").status.actual = ActualState::kStopped;
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(1s);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning);
}

TEST(SchedulerFailover, SilentNodeIsListedEveryPass) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(20s);
  const int lists = lab.agents["n1"].lists_asked;
  lab.StopBeating("n1");
  lab.agents["n1"].workloads.clear();
  lab.Run(36s);  // its heartbeat is overdue by a pass after 15 s
  EXPECT_GE(lab.agents["n1"].lists_asked, lists + 4);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size(), 2U) << "the list showed that it was gone";
}

TEST(SchedulerFailover, NodeThatBeatsInTimeIsListedInOnePassOfTwelve) {
  // Faster than passes come, at its own pace, and no faster than it was told to.
  for (const Duration every : {Duration(4s), Duration(10s), Duration(60s)}) {
    Lab lab;
    lab.beat_every = every;
    lab.AddNode("n1");
    lab.Apply("web");
    lab.Run(5min);
    const int lists = lab.agents["n1"].lists_asked;
    lab.Run(10min);
    EXPECT_EQ(lab.agents["n1"].lists_asked, lists + 10) << every / 1s << " s between heartbeats";
  }
}

TEST(SchedulerFailover, HeartbeatsOutOfTurnOrLateDoNotMakeANodeSilentForLong) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5min + 3s);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lab.Beat("n1").ok());  // something happened there
  int lists = lab.agents["n1"].lists_asked;
  lab.Run(1min);
  EXPECT_LE(lab.agents["n1"].lists_asked, lists + 2) << "its turn, and one before it beat again";
  lab.StopBeating("n1");
  lab.Run(2min + 30s);
  EXPECT_TRUE(lab.Beat("n1").ok());  // after a pause that no node may make
  lists = lab.agents["n1"].lists_asked;
  lab.Run(2min + 30s);
  EXPECT_GE(lab.agents["n1"].lists_asked, lists + 16)
      << "from 65 s on with every pass: a node is told to beat each 60 s";
}

TEST(SchedulerFailover, NodesThatBeatAreListedInTurns) {
  Lab lab;
  for (int i = 0; i < 60; ++i) lab.AddNode(fmt::format("n{}", i));
  for (int i = 0; i < 60; ++i) lab.Apply(fmt::format("w{}", i));
  lab.Run(2min);
  std::map<MonoTime, int> at;
  std::map<std::string, int> of;
  lab.observe = [&](const Effect& effect) {
    const auto* call = std::get_if<Call>(&effect);
    if (call == nullptr || !std::holds_alternative<contract::ListOnAgent>(call->request)) return;
    ++at[lab.now.mono];
    ++of[call->to];
  };
  lab.Run(1min);
  EXPECT_EQ(of.size(), 60U);
  for (const auto& [node, lists] : of) EXPECT_EQ(lists, 1) << node;
  EXPECT_GE(at.size(), 10U);
  for (const auto& [when, lists] : at) EXPECT_LE(lists, 15) << "of 60 nodes, in one pass of twelve";
}

TEST(SchedulerFailover, AgentThatCannotBeCalledIsFoundThoughItsNodeBeatsAndNothingIsToBeDone) {
  for (const Duration every : {Duration(4s), Duration(10s)}) {
    Lab lab;
    lab.beat_every = every;
    lab.AddNode("n1");
    lab.Apply("web");
    lab.Run(2min);
    lab.agents["n1"].unreachable = true;  // and its heartbeats say that the workload runs
    lab.Run(1min + 5s);
    EXPECT_EQ(lab.Node("n1").status, model::NodeStatus::kNotReady);
    EXPECT_EQ(lab.Node("n1").status_updated_by, "reconciler");
    EXPECT_EQ(lab.Phase("web"), "RetryPending");
  }
}

TEST(SchedulerFailover, HeartbeatsOfANodeAtRestLeadToNothing) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(2min);
  const auto wake = lab.core.NextWake();
  ASSERT_TRUE(wake.has_value());
  ASSERT_GT(*wake, lab.now.mono);
  lab.Step(Asked{.request = 1'000'000, .body = contract::Heartbeat{.node = "n1", .statuses = lab.StatusesOf("n1")}});
  EXPECT_EQ(lab.core.NextWake(), wake) << "there is nothing to be decided";
}

TEST(SchedulerFailover, NodeThatIsNotHeardAfterARestartIsListedInTheFirstPass) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(1min);
  lab.StopBeating("n1");
  const int lists = lab.agents["n1"].lists_asked;
  lab.Restart();
  lab.Run(6s);
  EXPECT_EQ(lab.agents["n1"].lists_asked, lists + 1);
}

TEST(SchedulerFailover, StatusErrorIsInvestigatedAndNotCounted) {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].status_error = Status(Code::kInternal, "database locked");
  lab.Apply("web");
  lab.Run(20s);
  EXPECT_EQ(lab.Workload("web").reason, "agent.status_error");
  EXPECT_EQ(lab.Workload("web").metadata.at("lastReconciliationAction"), "Investigate");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  lab.agents["n1"].status_error = {};
  lab.Run(10s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerFailover, RefusedStampIsADecisionAndNoAttempt) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.AddNode("n1");
  lab.Run(1s);
  const uint64_t epoch = lab.agents["n1"].epoch;
  lab.agents["n1"].refuses = [&](const contract::ApplyOnAgent& apply) -> std::optional<Status> {
    return Status(Code::kFailedPrecondition,
                  fmt::format("the stamp is of epoch {}, this agent is in epoch {}", apply.stamp.epoch, epoch + 1));
  };
  lab.Apply("web");
  lab.Run(1min);
  const auto refused = std::ranges::find(lab.decisions, "agent.stamp_refused", &contract::Decision::reason);
  ASSERT_NE(refused, lab.decisions.end());
  EXPECT_EQ(refused->kind, DecisionKind::kRefused);
  EXPECT_EQ(refused->workload + " " + refused->node, "web n1");
  EXPECT_TRUE(refused->message.ends_with(fmt::format("this agent is in epoch {}", epoch + 1))) << refused->message;
  EXPECT_EQ(lab.Decided(DecisionKind::kRefused), 1) << "told once";
  EXPECT_GE(lab.agents["n1"].applied.size(), 10U) << "tried with every pass";
  EXPECT_LE(lab.agents["n1"].applied.size(), 20U) << "and with heartbeats";
  EXPECT_EQ(lab.Workload("web").reason, "agent.stamp_refused");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  lab.agents["n1"].refuses = {};
  lab.Run(10s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").reason, "agent.running");
}

TEST(SchedulerFailover, RefusedDeleteIsTriedAgain) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.agents["n1"].delete_error = Status(Code::kInternal, "busy");
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(20s);
  EXPECT_EQ(lab.Phase("web"), "Deleting");
  EXPECT_GE(lab.agents["n1"].deleted.size(), 2U);
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  const auto refused = std::ranges::find(lab.decisions, "agent.delete_failed", &contract::Decision::reason);
  ASSERT_NE(refused, lab.decisions.end());
  EXPECT_EQ(refused->kind, DecisionKind::kRefused);
  EXPECT_TRUE(refused->message.ends_with(": busy")) << refused->message;
  EXPECT_EQ(lab.Decided(DecisionKind::kRefused), 1) << "told once";
  lab.agents["n1"].delete_error = {};
  lab.Run(30s);
  EXPECT_FALSE(lab.Exists("web"));
}

TEST(SchedulerFailover, ExitCodeZeroCompletesWhatRunsOnce) {
  for (const auto policy : {model::RestartPolicy::kNever, model::RestartPolicy::kOnFailure}) {
    Lab lab;
    lab.AddNode("n1");
    lab.agents["n1"].exits["job"] = 0;
    model::WorkloadTemplate spec = Lab::Template(8000);
    spec.restart = policy;
    lab.Apply("job", spec);
    lab.Run(5s);
    EXPECT_EQ(lab.Phase("job"), "Completed");
    EXPECT_EQ(lab.Workload("job").exit_code, 0);
    lab.Apply("next", Lab::Template(8000));
    lab.Run(5s);
    EXPECT_EQ(lab.Phase("next"), "Running") << "what completed holds no room";
    EXPECT_EQ(lab.agents["n1"].applied.size(), 2U);
  }
}

TEST(SchedulerFailover, OtherExitCodesAreAttempts) {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].exits["job"] = 3;
  model::WorkloadTemplate spec = Lab::Template();
  spec.restart = model::RestartPolicy::kNever;
  lab.Apply("job", spec);
  lab.Run(3s);
  EXPECT_EQ(lab.Phase("job"), "RetryPending");
  EXPECT_EQ(lab.Workload("job").attempts, 1);
}

TEST(SchedulerFailover, StopAndStart) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  EXPECT_TRUE(lab.Try(contract::ApplyWorkload{.workload = "web", .desired = model::DesiredState::kStopped}).ok());
  lab.Run(3s);
  EXPECT_EQ(lab.Phase("web"), "Stopped");
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kStopped);
  lab.Run(1min);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kStopped);
  EXPECT_TRUE(lab.Try(contract::ApplyWorkload{.workload = "web", .desired = model::DesiredState::kRunning}).ok());
  lab.Run(3s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerFailover, ChangedSpecGoesToTheAgentAsAnotherRevision) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  model::WorkloadTemplate spec = Lab::Template();
  spec.image = "newer";
  const contract::Applied applied = lab.Apply("web", spec);  // rev-1 again
  EXPECT_TRUE(applied.revision.starts_with("rev-1-")) << applied.revision;
  EXPECT_EQ(lab.Workload("web").revision, "rev-1");
  lab.Run(3s);
  EXPECT_EQ(lab.agents["n1"].workloads.at("web").status.revision, applied.revision);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Apply("web", spec).result, contract::ApplyResult::kUnchanged);
  contract::ApplyWorkload named = Lab::ApplyOf("web", spec);
  named.revision = "rev-2";
  EXPECT_EQ(lab.Get<contract::Applied>(named).revision, "rev-2") << "a revision goes as it is";
}

TEST(SchedulerApply, ADryRunSaysWhatTheRunWouldBe) {
  Lab lab;
  lab.AddNode("n1");
  contract::ApplySpec apply{.spec = {.name = "web"}, .dry_run = true};
  apply.spec.spec = Lab::Template();
  EXPECT_EQ(lab.Get<contract::Applied>(apply).result, contract::ApplyResult::kCreated);
  EXPECT_FALSE(lab.Try(contract::GetWorkload{"web"}).ok()) << "nothing was done";
  apply.dry_run = false;
  lab.Get<contract::Applied>(apply);
  lab.Run(5s);
  apply.dry_run = true;
  EXPECT_EQ(lab.Get<contract::Applied>(apply).result, contract::ApplyResult::kUnchanged);
  apply.spec.spec.image = "newer";
  EXPECT_EQ(lab.Get<contract::Applied>(apply).result, contract::ApplyResult::kConfigured);
}

TEST(SchedulerFailover, LargerSpecThatItsNodeCannotHoldMoves) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("other", Lab::Template(4000));
  lab.Apply("web", Lab::Template(2000));
  lab.Run(5s);
  lab.AddNode("n2");
  lab.Apply("web", Lab::Template(3000));
  lab.Run(3s);
  EXPECT_EQ(lab.Workload("web").node, "n1") << "it fits in place";
  lab.Apply("web", Lab::Template(6000));
  lab.Run(5s);
  EXPECT_EQ(lab.Workload("web").node, "n2");
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kMissing);
}

}  // namespace
}  // namespace muster::scheduler
