// A scheduler over real gRPC against agents of another make: what persys.agent.v1 looks like in the field drives every
// retry, failover, refusal and orphan.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>

#include "host/temp_dir_for_test.h"
#include "scheduler/cluster_for_test.h"
#include "scheduler/fake_agent_for_test.h"

namespace muster::scheduler {
namespace {

using enum model::WorkloadPhase;
using model::NodeStatus;

// On each store that belongs to one process.
class SchedulerOnStore : public testing::TestWithParam<std::string> {
 protected:
  std::string Store() const { return GetParam() == "memory" ? "memory:" : "sqlite:" + dir_.path(); }
  host::TempDir dir_;
};

TEST_P(SchedulerOnStore, AnAppliedWorkloadRunsStopsAndIsDeleted) {
  Cluster cluster(ShortSettings(Store()));
  FakeAgent agent("n1");
  agent.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  contract::NodeView node = cluster.Node("n1");
  EXPECT_EQ(node.status_reason, "registered");
  EXPECT_EQ(node.status_updated_by, "register");

  ASSERT_EQ(cluster.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster.Becomes("web", kRunning));
  EXPECT_EQ(cluster.View("web").node, "n1");
  EXPECT_TRUE(agent.Runs("web"));
  EXPECT_EQ(cluster.Node("n1").reserved.Get("cpu"), 100);

  contract::ApplyWorkload stop;
  stop.workload = "web";
  stop.desired = model::DesiredState::kStopped;
  ASSERT_EQ(cluster.Apply(stop), Status());
  ASSERT_TRUE(cluster.Becomes("web", kStopped));
  EXPECT_EQ(agent.workloads().at("web"), "STOPPED");

  cluster.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"});
  EXPECT_TRUE(Eventually([&] { return !cluster.Has("web") && !agent.workloads().contains("web"); }));
}
INSTANTIATE_TEST_SUITE_P(Stores, SchedulerOnStore, testing::Values("memory", "sqlite"),
                         [](const auto& row) { return row.param; });

TEST(SchedulerRestart, WhatWasAppliedSurvivesARestartOfTheScheduler) {
  const host::TempDir dir;
  FakeAgent agent("n1");
  auto cluster = std::make_unique<Cluster>(ShortSettings("sqlite:" + dir.path()));
  agent.Register(cluster->address());
  ASSERT_TRUE(cluster->NodeBecomes("n1", NodeStatus::kReady));
  ASSERT_EQ(cluster->Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster->Becomes("web", kRunning));
  agent.behave([](Behaviour& b) { b.beat = false; });
  cluster.reset();
  cluster = std::make_unique<Cluster>(ShortSettings("sqlite:" + dir.path()));
  EXPECT_EQ(cluster->View("web").phase, kRunning);
  EXPECT_EQ(cluster->View("web").node, "n1");
  EXPECT_EQ(agent.calls("DeleteWorkload"), 0);
}

class SchedulerAgents : public testing::Test {
 protected:
  explicit SchedulerAgents(RoleOptions options = ShortSettings("memory:")) : cluster_(std::move(options)) {}

  std::unique_ptr<FakeAgent> Join(const std::string& node, std::vector<std::string> types = {"container"}) {
    auto agent = std::make_unique<FakeAgent>(node);
    agent->Register(cluster_.address(), {{"name", node}}, std::move(types));
    EXPECT_TRUE(cluster_.NodeBecomes(node, NodeStatus::kReady));
    return agent;
  }

  Cluster cluster_;
};

TEST_F(SchedulerAgents, ANewSpecReplacesWhatRuns) {
  const auto agent = Join("n1");
  contract::ApplyWorkload web = Cluster::Container("web");
  web.revision = "rev-1";
  ASSERT_EQ(cluster_.Apply(web), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  EXPECT_EQ(agent->RevisionOf("web"), "rev-1");
  web.spec->image = "j";
  ASSERT_EQ(cluster_.Apply(web), Status());  // one client always sends the same revision
  EXPECT_TRUE(Eventually([&] { return agent->RevisionOf("web").starts_with("rev-1-") && agent->Runs("web"); }));
  EXPECT_EQ(cluster_.View("web").revision, "rev-1");
}

TEST_F(SchedulerAgents, FailedAttemptsAreCountedAndEndInFailed) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.apply_error = "image pull failed"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kFailed));
  const contract::WorkloadView view = cluster_.View("web");
  EXPECT_EQ(view.attempts, 5);
  EXPECT_NE(view.message.find("image pull failed"), std::string::npos) << view.message;
  const int tried = agent->calls("ApplyWorkload");
  EXPECT_EQ(tried, 5);

  agent->behave([](Behaviour& b) { b.apply_error.clear(); });
  cluster_.Get<contract::Done>(contract::RetryWorkload{.workload = "web"});
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
}

TEST_F(SchedulerAgents, AWorkloadThatFailsAfterItWasAcceptedCountsToo) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.fail = "exit 1"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kFailed));
  EXPECT_NE(cluster_.View("web").message.find("exit 1"), std::string::npos);
}

TEST_F(SchedulerAgents, WhatALostNodeHadRunsElsewhere) {
  auto first = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  const auto second = Join("n2");
  first->behave([](Behaviour& b) { b.beat = false; });
  first->StopServing();
  EXPECT_TRUE(Eventually([&] { return second->Runs("web"); }));
  EXPECT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kNotReady));
  EXPECT_EQ(cluster_.View("web").node, "n2");
  // It comes back with what it had, which is not its own any more.
  first->ServeAgain();
  first->behave([](Behaviour& b) { b.beat = true; });
  EXPECT_TRUE(Eventually([&] { return !first->workloads().contains("web"); }));
  EXPECT_TRUE(second->Runs("web"));
}

TEST_F(SchedulerAgents, WithoutAnotherNodeWhatALostNodeHadWaitsForItWithoutAnAttempt) {
  auto first = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  const auto lose = [&] {
    first->behave([](Behaviour& b) { b.beat = false; });
    first->StopServing();
    ASSERT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kNotReady));
    ASSERT_TRUE(cluster_.Becomes("web", kRetryPending));
    const contract::WorkloadView waiting = cluster_.View("web");
    EXPECT_EQ(waiting.node, "n1") << "it stays where it was";
    EXPECT_EQ(waiting.reason, "failover.no_node");
    EXPECT_EQ(waiting.attempts, 0);
    EXPECT_EQ(cluster_.role().View()->counters.failovers, 0);
  };
  lose();
  first->ServeAgain();
  first->behave([](Behaviour& b) { b.beat = true; });
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  EXPECT_EQ(cluster_.View("web").node, "n1");
  EXPECT_EQ(first->calls("DeleteWorkload"), 0);
  lose();
  const auto second = Join("n2");
  ASSERT_TRUE(Eventually([&] { return second->Runs("web"); }));
  EXPECT_EQ(cluster_.View("web").node, "n2");
  EXPECT_EQ(cluster_.View("web").attempts, 0);
  EXPECT_EQ(cluster_.role().View()->counters.failovers, 1);
}

TEST_F(SchedulerAgents, TheBackOffOfAttemptsDoublesUpToItsCap) {
  // As the watch shows the workload while it waits: by attempts, when the next one is due.
  std::mutex mu;
  std::map<int32_t, WallTime> due;
  const contract::Revision from = cluster_.Get<contract::WorkloadsListed>(contract::ListWorkloads{}).revision;
  const auto watch = cluster_.client().Watch(
      {.workloads = true, .from = from},
      {.changed =
           [&](const contract::ClusterChange& change) {
             const auto* changed = std::get_if<contract::ObjectChanged>(&change);
             const auto* view = changed == nullptr ? nullptr : std::get_if<contract::WorkloadView>(&changed->now);
             if (view == nullptr || !view->next_retry_at) return;
             const std::lock_guard lock(mu);
             due[view->attempts] = *view->next_retry_at;
           },
       .ended = [](const Status&) {}});
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.apply_error = "image pull failed"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kFailed));
  std::vector<WallTime> failed;  // the attempts before the last one
  for (const auto& event : cluster_.Get<contract::EventsListed>(contract::ListEvents{.workload = "web"}).events) {
    if (event.type == "RetryTriggered") failed.push_back(event.at);
  }
  std::ranges::sort(failed);
  const std::vector<Duration> pauses = {100ms, 200ms, 400ms, 400ms};
  const auto tried = agent->times_of("ApplyWorkload");
  ASSERT_EQ(failed.size(), pauses.size());
  ASSERT_EQ(tried.size(), pauses.size() + 1);
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mu);
    return due.size() == pauses.size();
  }));
  for (size_t i = 0; i < pauses.size(); ++i) {
    EXPECT_EQ(due.at(static_cast<int32_t>(i) + 1) - failed[i], pauses[i]) << "after attempt " << i + 1;
    EXPECT_GE(tried[i + 1] - tried[i], pauses[i]) << "after attempt " << i + 1;
  }
}

TEST_F(SchedulerAgents, ANodeThatBeatsAndCannotBeDialledLosesItsWorkloadsOnce) {
  const auto first = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  const auto second = Join("n2");
  first->StopServing();
  first->Lose("web");  // its heartbeats say so, and the call that asks about it fails
  ASSERT_TRUE(Eventually([&] { return second->Runs("web"); }));
  EXPECT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kNotReady));
  // Heartbeats alone do not make it Ready: nothing is placed there, and nothing moves again.
  // As many node timeouts as ten minutes have in the field.
  const Duration away = ShortSettings("memory:").config.node_timeout * (10min / 1s) / (3min / 1s);
  EXPECT_FALSE(Eventually(
      [&] { return cluster_.Node("n1").status == NodeStatus::kReady || cluster_.View("web").node != "n2"; }, away));
  EXPECT_EQ(cluster_.View("web").node, "n2");
  EXPECT_EQ(cluster_.role().View()->counters.failovers, 1);
  first->ServeAgain();
  EXPECT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kReady));
}

TEST_F(SchedulerAgents, AnAgentThatCannotBeCalledIsFoundThoughNothingIsToBeDoneThere) {
  const auto first = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  const auto second = Join("n2");
  first->StopServing();  // its heartbeats go on, and say that the workload runs
  EXPECT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kNotReady));
  EXPECT_TRUE(Eventually([&] { return second->Runs("web"); }));
  EXPECT_EQ(cluster_.role().View()->counters.failovers, 1);
  first->ServeAgain();
  EXPECT_TRUE(Eventually([&] { return !first->workloads().contains("web"); })) << "it is another node's now";
  EXPECT_TRUE(second->Runs("web"));
}

TEST_F(SchedulerAgents, AnAgentThatHangsLosesItsWorkloadsOnce) {
  const auto first = Join("n1");
  for (const std::string id : {"a", "b", "c"}) {
    ASSERT_EQ(cluster_.Apply(Cluster::Container(id)), Status());
    ASSERT_TRUE(cluster_.Becomes(id, kRunning));
  }
  const auto second = Join("n2");
  first->behave([](Behaviour& b) { b.hang = true; });
  first->Lose("a");  // the call that asks about it is not answered, twice
  for (const std::string id : {"a", "b", "c"}) EXPECT_TRUE(Eventually([&] { return second->Runs(id); })) << id;
  EXPECT_EQ(cluster_.Node("n1").status, NodeStatus::kNotReady);
  EXPECT_EQ(cluster_.Node("n1").status_updated_by, "reconciler");
  EXPECT_EQ(cluster_.role().View()->counters.failovers, 3);
  first->behave([](Behaviour& b) { b.hang = false; });
  EXPECT_TRUE(cluster_.NodeBecomes("n1", NodeStatus::kReady));
  EXPECT_TRUE(Eventually([&] { return first->workloads().empty(); })) << "what it had is another node's now";
  for (const std::string id : {"a", "b", "c"}) EXPECT_TRUE(second->Runs(id)) << id;
}

TEST_F(SchedulerAgents, AnAgentThatSaysItHasAnothersWorkloadDeletesItAndNothingMoves) {
  const auto first = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  const int asked = first->calls("ApplyWorkload");
  const auto second = Join("n2");
  second->behave([](Behaviour& b) { b.lies = {"web"}; });
  EXPECT_TRUE(Eventually([&] { return second->calls("DeleteWorkload") == 1; }));
  EXPECT_EQ(cluster_.View("web").node, "n1");
  EXPECT_EQ(cluster_.View("web").phase, kRunning);
  EXPECT_EQ(cluster_.View("web").attempts, 0);
  EXPECT_TRUE(first->Runs("web"));
  EXPECT_EQ(first->calls("ApplyWorkload"), asked);
  EXPECT_EQ(first->calls("DeleteWorkload"), 0);
}

TEST_F(SchedulerAgents, ARuntimeThatIsNotAvailableMovesTheWorkloadAndTheTypeIsForgotten) {
  const auto first = Join("n1");
  first->behave([](Behaviour& b) { b.apply_error = "container runtime not available"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  EXPECT_TRUE(Eventually([&] { return cluster_.Node("n1").supported_types.empty(); }));
  EXPECT_EQ(cluster_.View("web").phase, kPending);
  EXPECT_EQ(cluster_.View("web").attempts, 0);
  const auto second = Join("n2");
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
  EXPECT_EQ(cluster_.View("web").node, "n2");
}

TEST_F(SchedulerAgents, ARuntimeThatIsNotAvailableLaterMovesItToo) {
  const auto first = Join("n1");
  first->behave([](Behaviour& b) { b.fail = "runtime not available: docker"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  EXPECT_TRUE(Eventually([&] { return cluster_.Node("n1").supported_types.empty(); }));
  EXPECT_EQ(cluster_.View("web").attempts, 0);
  const auto second = Join("n2");
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
  EXPECT_EQ(cluster_.View("web").node, "n2");
  EXPECT_EQ(cluster_.View("web").attempts, 0);
  EXPECT_TRUE(second->Runs("web"));
  EXPECT_TRUE(Eventually([&] { return !first->workloads().contains("web"); })) << "what failed is cleaned up";
}

TEST_F(SchedulerAgents, AnAnswerThatItWasNotAppliedIsAFailedAttempt) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.refuse = "the image is not signed"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kFailed));
  const contract::WorkloadView view = cluster_.View("web");
  EXPECT_EQ(view.attempts, 5);
  EXPECT_EQ(view.node, "n1") << "it is no reason to try another node";
  EXPECT_TRUE(view.message.contains("the image is not signed")) << view.message;
  EXPECT_EQ(agent->calls("ApplyWorkload"), 5);
  agent->behave([](Behaviour& b) { b.refuse.clear(); });
  cluster_.Get<contract::Done>(contract::RetryWorkload{.workload = "web"});
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
}

TEST_F(SchedulerAgents, AnAgentThatForgetsWhatItAcceptedIsToldAgainAfterTheGrace) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.forget = true; });
  const MonoTime began = host::SystemClock().Read().mono;
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(Eventually([&] { return agent->calls("ApplyWorkload") >= 4; }));
  EXPECT_GE(host::SystemClock().Read().mono - began, 3 * ShortSettings("memory:").config.missing_grace);
  const contract::WorkloadView view = cluster_.View("web");
  EXPECT_EQ(view.phase, kScheduled);
  EXPECT_EQ(view.node, "n1");
  EXPECT_EQ(view.attempts, 0) << "it was accepted each time";
  agent->behave([](Behaviour& b) { b.forget = false; });
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
}

TEST_F(SchedulerAgents, ANodeThatHasNoRoomByItsOwnJudgementIsAvoided) {
  const auto first = Join("n1");
  first->behave([](Behaviour& b) { b.apply_error = "INSUFFICIENT_RESOURCES: memory at 91%"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(Eventually([&] { return first->calls("ApplyWorkload") > 0 && cluster_.View("web").node.empty(); }));
  EXPECT_EQ(cluster_.Node("n1").supported_types.size(), 1);
  const auto second = Join("n2");
  EXPECT_TRUE(cluster_.Becomes("web", kRunning));
  EXPECT_EQ(cluster_.View("web").node, "n2");
}

TEST_F(SchedulerAgents, AWorkloadThatEndsWithZeroIsCompletedIfItsPolicySaysSo) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.exit_zero = true; });
  contract::ApplyWorkload job = Cluster::Container("job");
  job.spec->restart = model::RestartPolicy::kOnFailure;
  ASSERT_EQ(cluster_.Apply(job), Status());
  EXPECT_TRUE(cluster_.Becomes("job", kCompleted));
  EXPECT_EQ(cluster_.View("job").exit_code, 0);
}

TEST_F(SchedulerAgents, WorkloadsThatTheStoreDoesNotHaveAreDeletedOnTheNode) {
  const auto agent = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  agent->behave([](Behaviour& b) { b.lies = {"ghost"}; });
  EXPECT_TRUE(Eventually([&] { return agent->calls("DeleteWorkload") == 1; }));
}

TEST_F(SchedulerAgents, AnEmptyStoreUnderManyWorkloadsDeletesNothing) {
  const auto agent = std::make_unique<FakeAgent>("n1");
  std::vector<std::string> running;
  for (int i = 0; i < 100; ++i) running.push_back(fmt::format("w{:03}", i));
  agent->behave([&](Behaviour& b) { b.lies = running; });
  agent->Register(cluster_.address());
  ASSERT_TRUE(Eventually([&] {
    const auto node = cluster_.Ask(contract::GetNode{.node = "n1"});
    return node && std::get<contract::NodeView>(*node).orphans_held == 100;
  }));
  EXPECT_EQ(agent->calls("DeleteWorkload"), 0);
  cluster_.Get<contract::Done>(contract::AcceptNode{.node = "n1"});
  EXPECT_TRUE(Eventually([&] { return agent->calls("DeleteWorkload") >= 100; }));
}

TEST_F(SchedulerAgents, AnEmptyStoreUnderFourWorkloadsOnEachOfTwentyFiveNodesDeletesNothing) {
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int n = 0; n < 25; ++n) {
    agents.push_back(std::make_unique<FakeAgent>(fmt::format("n{:02}", n)));
    std::vector<std::string> running;
    for (int i = 0; i < 4; ++i) running.push_back(fmt::format("w{:02}-{}", n, i));
    agents.back()->behave([&](Behaviour& b) { b.lies = running; });
  }
  const auto held = [&] {
    int32_t all = 0;
    for (const auto& node : cluster_.Get<contract::NodesListed>(contract::ListNodes{}).nodes) all += node.orphans_held;
    return all;
  };
  const auto deleted = [&] {
    int all = 0;
    for (const auto& agent : agents) all += agent->calls("DeleteWorkload");
    return all;
  };
  ASSERT_EQ(cluster_.Apply(Cluster::Container("other")), Status());  // the store is as good as empty
  for (const auto& agent : agents) agent->Register(cluster_.address());
  EXPECT_TRUE(Eventually([&] { return held() == 100 || deleted() > 0; }));
  EXPECT_EQ(held(), 100);
  EXPECT_EQ(deleted(), 0);
  cluster_.Get<contract::Done>(contract::AcceptNode{.node = "n07"});
  EXPECT_TRUE(Eventually([&] { return agents[7]->calls("DeleteWorkload") == 4; }));
  EXPECT_TRUE(Eventually([&] { return held() == 96; }));
  EXPECT_EQ(deleted(), 4);
}

TEST_F(SchedulerAgents, DeletingAWorkloadOnADeadNodeCompletes) {
  const auto agent = Join("n1");
  ASSERT_EQ(cluster_.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));
  agent->behave([](Behaviour& b) { b.beat = false; });
  agent->StopServing();
  cluster_.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"});
  EXPECT_TRUE(Eventually([&] { return !cluster_.Has("web"); }));
}

// Settings in which a back-off would take minutes.
class SchedulerBackoff : public SchedulerAgents {
 protected:
  SchedulerBackoff() : SchedulerAgents(Slow()) {}
  static RoleOptions Slow() {
    RoleOptions options = ShortSettings("memory:");
    options.config.retry_base = 2min;
    options.config.retry_cap = 2min;
    return options;
  }
};

// How long it took until it held.
Duration TimeUntil(const std::function<bool()>& holds) {
  const host::SystemClock clock;
  const MonoTime began = clock.Read().mono;
  EXPECT_TRUE(Eventually(holds));
  return clock.Read().mono - began;
}

std::string Milliseconds(Duration time) {
  return fmt::format("{} ms", std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

TEST_F(SchedulerBackoff, ANodeThatJoinsEndsEveryWaitForCapacityAtOnce) {
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(fmt::format("w{}", i));
  for (const std::string& id : ids) {
    ASSERT_EQ(cluster_.Apply(Cluster::Container(id)), Status());
    ASSERT_TRUE(Eventually([&] { return cluster_.View(id).next_retry_at.has_value(); })) << id;
    const contract::WorkloadView waiting = cluster_.View(id);
    EXPECT_EQ(waiting.phase, kPending);
    EXPECT_FALSE(waiting.message.empty());
    EXPECT_EQ(waiting.attempts, 0);
    EXPECT_GT(*waiting.next_retry_at, host::SystemClock().Read().wall + 1min);
  }
  FakeAgent agent("n1");
  agent.Register(cluster_.address());
  const Duration took = TimeUntil([&] { return std::ranges::all_of(ids, [&](auto& id) { return agent.Runs(id); }); });
  std::cout << "ten workloads ran after " << Milliseconds(took) << "\n";
  EXPECT_LT(took, 1s);
  for (const std::string& id : ids) EXPECT_TRUE(cluster_.Becomes(id, kRunning));
}

// Settings in which a call to an agent that hangs would take long.
class SchedulerPatience : public SchedulerAgents {
 protected:
  SchedulerPatience() : SchedulerAgents(Patient()) {}
  static RoleOptions Patient() {
    RoleOptions options = ShortSettings("memory:");
    options.config.agent_timeout = 5s;
    return options;
  }
};

TEST_F(SchedulerPatience, AHungNodeDelaysNothingElsewhere) {
  const auto hung = Join("n1");
  for (int i = 0; i < 10; ++i) ASSERT_EQ(cluster_.Apply(Cluster::Container(fmt::format("h{}", i))), Status());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster_.Becomes(fmt::format("h{}", i), kRunning));
  const auto other = Join("n2");
  contract::ApplyWorkload web = Cluster::Container("web");
  web.require_labels = {{"name", "n2"}};
  ASSERT_EQ(cluster_.Apply(web), Status());
  ASSERT_TRUE(cluster_.Becomes("web", kRunning));

  const auto asked = [&] { return hung->calls("GetWorkloadStatus") + hung->calls("ListWorkloads"); };
  const int before = asked();
  hung->behave([](Behaviour& b) { b.hang = true; });
  for (int i = 0; i < 10; ++i) hung->Lose(fmt::format("h{}", i));  // its heartbeats say so: the scheduler asks
  ASSERT_TRUE(Eventually([&] { return asked() >= before + 4; })) << "as many as may be open";
  const MonoTime all_open = host::SystemClock().Read().mono;

  other->Lose("web");
  const Duration repaired = TimeUntil([&] { return other->Runs("web"); });
  web.workload = "more";
  ASSERT_EQ(cluster_.Apply(web), Status());
  const Duration launched = TimeUntil([&] { return other->Runs("more"); });
  std::cout << "repaired after " << Milliseconds(repaired) << ", launched after " << Milliseconds(launched) << "\n";
  EXPECT_LT(repaired, 1s);
  EXPECT_LT(launched, 1s);
  ASSERT_LT(host::SystemClock().Read().mono - all_open, 5s);
  EXPECT_EQ(asked(), before + 4) << "the calls were under way all the time";
  EXPECT_EQ(cluster_.Node("n1").status, NodeStatus::kReady);
}

TEST_F(SchedulerBackoff, AFixedSpecAStopAndADeleteActAtOnce) {
  const auto agent = Join("n1");
  agent->behave([](Behaviour& b) { b.apply_error = "bad image"; });
  for (const std::string id : {"fixed", "stopped", "deleted"}) {
    ASSERT_EQ(cluster_.Apply(Cluster::Container(id)), Status());
    ASSERT_TRUE(cluster_.Becomes(id, kRetryPending));
  }
  agent->behave([](Behaviour& b) { b.apply_error.clear(); });
  contract::ApplyWorkload fixed = Cluster::Container("fixed");
  fixed.spec->image = "j";
  ASSERT_EQ(cluster_.Apply(fixed), Status());
  EXPECT_TRUE(cluster_.Becomes("fixed", kRunning, 1s));
  contract::ApplyWorkload stop;
  stop.workload = "stopped";
  stop.desired = model::DesiredState::kStopped;
  ASSERT_EQ(cluster_.Apply(stop), Status());
  EXPECT_TRUE(cluster_.Becomes("stopped", kStopped, 1s));
  cluster_.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "deleted"});
  EXPECT_TRUE(Eventually([&] { return !cluster_.Has("deleted"); }, 1s));
}

}  // namespace
}  // namespace muster::scheduler
