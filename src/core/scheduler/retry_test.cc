// Attempts, back-off, the end of both, and what ends them early.
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;

// A lab with one node on which "web" fails when it starts.
struct FailingLab : Lab {
  explicit FailingLab(Config config = {}) : Lab(config) {
    AddNode("n1");
    agents["n1"].fails["web"] = "exit code 1";
  }
  size_t launches() { return agents["n1"].applied.size(); }
};

TEST(SchedulerRetry, BacksOffFiveTenTwentyFortySecondsThenFails) {
  FailingLab lab;
  lab.Apply("web");
  std::vector<Duration> pauses;
  size_t seen = 0;
  MonoTime last = lab.now.mono;
  for (int i = 0; i < 3000 && lab.Phase("web") != "Failed"; ++i) {
    lab.Run(90ms);
    if (lab.launches() == seen) continue;
    if (seen > 0) pauses.push_back(lab.now.mono - last);
    seen = lab.launches();
    last = lab.now.mono;
  }
  ASSERT_EQ(pauses.size(), 4U);
  const std::vector<Duration> expected{5s, 10s, 20s, 40s};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_GE(pauses[i], expected[i]);
    EXPECT_LE(pauses[i], expected[i] + 2s) << i;
  }
  EXPECT_EQ(lab.Workload("web").attempts, 5);
  EXPECT_EQ(lab.Workload("web").reason, "agent.workload_failed");
  EXPECT_FALSE(lab.Workload("web").retryable);
  EXPECT_EQ(lab.Decided(DecisionKind::kRetry), 4);
  EXPECT_EQ(lab.Decided(DecisionKind::kGaveUp), 1);
  lab.Run(1h);
  EXPECT_EQ(lab.launches(), 5U) << "Failed is final";
  const std::vector<std::string> events = lab.EventsOf("web");
  EXPECT_EQ(events.back(), "WorkloadFailed");
}

TEST(SchedulerRetry, BackOffIsCappedAtTwoMinutes) {
  Config config;
  EXPECT_EQ(BackoffOf(config, 1), 5s);
  EXPECT_EQ(BackoffOf(config, 4), 40s);
  EXPECT_EQ(BackoffOf(config, 5), 80s);
  EXPECT_EQ(BackoffOf(config, 6), 120s);
  EXPECT_EQ(BackoffOf(config, 60), 120s);
}

TEST(SchedulerRetry, ApplyErrorCountsOnTheSameNode) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  bool refuse = true;
  for (const char* node : {"n1", "n2"}) {
    lab.agents[node].refuses = [&](const contract::ApplyOnAgent&) -> std::optional<Status> {
      if (!refuse) return std::nullopt;
      return Status(Code::kInternal, "disk error");
    };
  }
  lab.Apply("web");
  lab.Run(2s);
  contract::WorkloadView view = lab.Workload("web");
  EXPECT_EQ(lab.Phase("web"), "RetryPending");
  EXPECT_EQ(view.attempts, 1);
  EXPECT_EQ(view.reason, "agent.apply_failed");
  EXPECT_NE(view.message.find("disk error"), std::string::npos);
  ASSERT_TRUE(view.next_retry_at.has_value());
  const std::string node = view.node;
  refuse = false;
  lab.Run(6s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").node, node);
  EXPECT_TRUE(lab.store->rows.contains("/retries/web"));
}

TEST(SchedulerRetry, SuccessForTenMinutesResetsAttempts) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(3s);
  EXPECT_EQ(lab.Workload("web").attempts, 1);
  lab.agents["n1"].fails.clear();
  lab.Run(6s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").attempts, 1);
  lab.Run(9min);
  EXPECT_EQ(lab.Workload("web").attempts, 1);
  lab.Run(2min);
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  EXPECT_FALSE(lab.store->rows.contains("/retries/web"));
}

TEST(SchedulerRetry, RetryWorkloadBeginsAnewAndRevivesFailed) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(3min);
  EXPECT_EQ(lab.Phase("web"), "Failed");
  lab.agents["n1"].fails.clear();
  EXPECT_TRUE(lab.Try(contract::RetryWorkload{"web"}).ok());
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Try(contract::RetryWorkload{"nothing"}).code(), Code::kNotFound);
}

TEST(SchedulerRetry, ChangedSpecEndsABackOffAtOnce) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(40s);  // in a back-off of 40 s or so
  ASSERT_EQ(lab.Phase("web"), "RetryPending");
  lab.agents["n1"].fails.clear();
  model::WorkloadTemplate spec = Lab::Template();
  spec.image = "fixed";
  EXPECT_EQ(lab.Apply("web", spec).result, contract::ApplyResult::kConfigured);
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
}

TEST(SchedulerRetry, StopDuringABackOffActsAtOnce) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(40s);
  ASSERT_EQ(lab.Phase("web"), "RetryPending");
  EXPECT_TRUE(lab.Try(contract::ApplyWorkload{.workload = "web", .desired = model::DesiredState::kStopped}).ok());
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Stopped");
}

TEST(SchedulerRetry, DeleteDuringABackOffActsAtOnce) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(40s);
  ASSERT_EQ(lab.Phase("web"), "RetryPending");
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(1s);
  EXPECT_FALSE(lab.Exists("web"));
}

TEST(SchedulerRetry, ChangedSpecRevivesFailed) {
  FailingLab lab;
  lab.Apply("web");
  lab.Run(3min);
  ASSERT_EQ(lab.Phase("web"), "Failed");
  lab.agents["n1"].fails.clear();
  model::WorkloadTemplate spec = Lab::Template();
  spec.image = "fixed";
  lab.Apply("web", spec);
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerRetry, WaitingForCapacityBacksOffAndNeverCounts) {
  Lab lab;
  lab.AddNode("n1");
  const contract::Applied applied = lab.Apply("web", Lab::Template(9000));
  EXPECT_NE(applied.refusal.find("cpu short by 1"), std::string::npos) << applied.refusal;
  EXPECT_EQ(lab.Phase("web"), "Pending");
  EXPECT_EQ(lab.Workload("web").reason, "fit.cpu");
  ASSERT_TRUE(lab.Workload("web").next_retry_at.has_value());
  EXPECT_LE(*lab.Workload("web").next_retry_at - lab.now.wall, 5s);
  lab.Run(1min);
  EXPECT_GT(*lab.Workload("web").next_retry_at - lab.now.wall, 5s);
  lab.Run(1h);
  EXPECT_EQ(lab.Phase("web"), "Pending");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
  const uint64_t commits = lab.store->commits;
  lab.Run(1h);
  EXPECT_EQ(lab.store->commits, commits) << "a long wait writes nothing";
  EXPECT_EQ(lab.Decided(DecisionKind::kRefused), 1) << "a refusal is told once";
}

TEST(SchedulerRetry, JoiningNodeEndsEveryCapacityWaitAtOnce) {
  Lab lab;
  lab.AddNode("small");
  for (int i = 0; i < 5; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(9000));
  lab.Run(10min);
  contract::NodeFacts facts = lab.Facts("large");
  facts.total.Set("cpu", 64000);
  EXPECT_TRUE(lab.Register(facts).accepted);
  lab.StartBeating("large");
  lab.Run(1s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lab.Phase(fmt::format("w{}", i)), "Running");
}

TEST(SchedulerRetry, JoiningNodeEndsWaitsThatAnEarlierLifeBegan) {
  Lab lab;
  lab.AddNode("small");
  for (int i = 0; i < 5; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(9000));
  lab.Run(100s);
  lab.Restart();
  lab.Run(1s);
  ASSERT_GT(*lab.Workload("w0").next_retry_at - lab.now.wall, 10s);
  EXPECT_EQ(lab.core.View()->waiting, 5U);
  contract::NodeFacts facts = lab.Facts("large");
  facts.total.Set("cpu", 64000);
  EXPECT_TRUE(lab.Register(facts).accepted);
  lab.StartBeating("large");
  lab.Run(1s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lab.Phase(fmt::format("w{}", i)), "Running");
}

// What others wait for may be a label, a port or a rule of what is there: its room stays the same.
TEST(SchedulerRetry, AnEditThatLetsOthersInEndsTheirWaitAtOnce) {
  const auto placed_after = [](const auto& edit) {
    Lab lab;
    lab.AddNode("n1");
    model::WorkloadSpec there{
        .kind = model::WorkloadKind::kWorkload, .name = "there", .labels = {{"app", "db"}}, .spec = Lab::Template()};
    there.spec.ports = {{.container = 80, .host = 80}};
    EXPECT_TRUE(lab.Try(contract::ApplySpec{.spec = there}).ok());
    model::WorkloadTemplate apart = Lab::Template();
    apart.exclude = {{.topology_key = "kubernetes.io/hostname",
                      .selector = {{{.key = "app", .op = model::Operator::kIn, .values = {"db"}}}}}};
    lab.Apply("apart", apart);
    model::WorkloadTemplate same_port = Lab::Template();
    same_port.ports = there.spec.ports;
    lab.Apply("same-port", same_port);
    lab.Run(10min);
    EXPECT_EQ(lab.core.copy().OnNode("n1"), std::set<std::string>{"there"});
    edit(there);
    EXPECT_TRUE(lab.Try(contract::ApplySpec{.spec = there}).ok());
    lab.Run(1s);
    return lab.core.copy().OnNode("n1");
  };
  EXPECT_EQ(placed_after([](model::WorkloadSpec& there) { there.labels = {{"app", "web"}}; }),
            (std::set<std::string>{"apart", "there"}));
  EXPECT_EQ(placed_after([](model::WorkloadSpec& there) { there.spec.ports.clear(); }),
            (std::set<std::string>{"same-port", "there"}));
  EXPECT_EQ(placed_after([](model::WorkloadSpec& there) { there.spec.image = "busybox:2"; }),
            (std::set<std::string>{"there"}));
}

TEST(SchedulerRetry, WhatAnAgentSaysIsStoredInPart) {
  Lab lab;
  lab.AddNode("n1");
  const std::string text(8 << 20, 'x');
  lab.agents["n1"].fails["fails"] = text;
  lab.Apply("fails");
  lab.agents["n1"].declines = [&](const contract::ApplyOnAgent& apply) {
    return apply.workload == "declined" ? std::optional(text) : std::nullopt;
  };
  lab.Apply("declined");
  lab.Run(30s);
  EXPECT_EQ(lab.Workload("fails").message.size(), lab.Workload("fails").message.find(" ... (8388608 bytes)") + 20);
  EXPECT_LT(lab.Workload("declined").message.size(), kMostDetail + 100);
  for (const auto& [key, row] : lab.store->rows) EXPECT_LT(row.value.size(), 20'000U) << key;
  for (const contract::Decision& decision : lab.decisions) EXPECT_LT(decision.message.size(), kMostDetail + 200);
}

TEST(SchedulerRetry, FreedRoomEndsACapacityWaitAtOnce) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("first", Lab::Template(6000));
  lab.Apply("second", Lab::Template(6000));
  lab.Run(10min);
  EXPECT_EQ(lab.Phase("second"), "Pending");
  EXPECT_TRUE(lab.Delete("first").ok());
  lab.Run(2s);
  EXPECT_EQ(lab.Phase("second"), "Running");
}

// --- many that wait

// A thousand that no node takes, as they are at rest: their waits have grown to the cap. 20 others run.
struct Backlog {
  Backlog() {
    for (int i = 0; i < 10; ++i) lab.AddNode(fmt::format("n{}", i));
    for (int i = 0; i < 20; ++i) lab.Ask(Lab::ApplyOf(fmt::format("runs-{}", i)));
    for (int i = 0; i < 1000; ++i) lab.Ask(Lab::ApplyOf(fmt::format("waits-{}", i), Lab::Template(9000)));
    lab.Run(5s);
    asked_at_first = lab.core.parts().rooms.explained();
    lab.Run(10min);
    EXPECT_EQ(lab.core.View()->waiting, 1000U);
    asked = lab.core.parts().rooms.explained();
    attempts = lab.core.View()->counters.scheduling_attempts;
  }
  uint64_t Asked() const { return lab.core.parts().rooms.explained() - asked; }
  uint64_t Attempts() const { return lab.core.View()->counters.scheduling_attempts - attempts; }
  // 20 deletes within a second.
  void DeleteAll() {
    for (int i = 0; i < 20; ++i) {
      lab.Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = fmt::format("runs-{}", i)});
      lab.Run(50ms);
    }
    lab.Run(200ms);
    EXPECT_EQ(lab.core.copy().All<WorkloadRecord>().size(), 1000U);
  }

  Lab lab;
  uint64_t asked_at_first = 0;
  uint64_t asked = 0;
  uint64_t attempts = 0;
};

// To ask every node why it refuses what waits costs a text for each: that is done for what is written alone, and once
// for all that are alike.
TEST(SchedulerBacklog, NodesAreAskedWhyForWhatIsWrittenAlone) {
  Backlog backlog;
  EXPECT_LE(backlog.asked_at_first, 3U) << "a thousand that are alike";
  backlog.DeleteAll();
  EXPECT_EQ(backlog.Asked(), 0U);
  EXPECT_GT(backlog.Attempts(), 0U);
  const faults::ScopedMutant on("scheduler.waits_explained_anew");
  Backlog other;
  other.DeleteAll();
  EXPECT_GT(other.Asked(), 0U);
}

TEST(SchedulerBacklog, RoomThatIsLeftAllTheTimeEndsWaitsFiveTimesASecond) {
  Backlog backlog;
  backlog.DeleteAll();
  EXPECT_GE(backlog.Attempts(), 4 * 1000U);
  EXPECT_LE(backlog.Attempts(), 7 * 1000U);
  const faults::ScopedMutant on("scheduler.waves_unbounded");
  Backlog other;
  other.DeleteAll();
  EXPECT_GE(other.Attempts(), 20 * 1000U);
}

TEST(SchedulerBacklog, ANodeThatJoinsEndsEveryWaitAtOnceThoughOthersJustEnded) {
  Backlog backlog;
  Lab& lab = backlog.lab;
  ASSERT_TRUE(lab.Delete("runs-0").ok());
  while (lab.Exists("runs-0")) lab.Run(1ms);
  lab.Run(1ms);
  const uint64_t before = backlog.Attempts();
  EXPECT_EQ(before, 1000U) << "room was left";
  contract::NodeFacts large = lab.Facts("large");
  large.total = {{"cpu", 100'000}, {"memory", int64_t{100} << 40}};
  lab.Ask(contract::RegisterNode{.facts = std::move(large)});
  lab.Run(5ms);
  EXPECT_EQ(lab.core.copy().OnNode("large").size(), 11U);
}

TEST(SchedulerBacklog, RoomThatIsLeftJustAfterOtherRoomIsTakenWithinASecond) {
  Lab lab;
  lab.AddNode("n1");
  for (const char* id : {"a", "b"}) lab.Apply(id, Lab::Template(4000));
  for (const char* id : {"c", "d"}) lab.Apply(id, Lab::Template(4000));
  lab.Run(10min);
  ASSERT_EQ(lab.core.View()->waiting, 2U);
  for (const char* id : {"a", "b"}) {
    lab.Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = id});
    lab.Run(20ms);
  }
  lab.Run(1s - 40ms);
  EXPECT_EQ(lab.core.copy().OnNode("n1"), (std::set<std::string>{"c", "d"}));
}

}  // namespace
}  // namespace muster::scheduler
