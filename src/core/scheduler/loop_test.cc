// The smallest loop: a node registers and beats, a workload is applied, placed, launched, runs, and is deleted.
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;

TEST(SchedulerLoop, AppliedWorkloadRunsAndIsDeleted) {
  Lab lab;
  lab.AddNode("n1");
  const contract::Applied applied = lab.Apply("web");
  EXPECT_EQ(applied.result, contract::ApplyResult::kCreated);
  EXPECT_EQ(applied.revision, "rev-1");
  EXPECT_EQ(applied.refusal, "");
  lab.Run(2s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").node, "n1");
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning);
  EXPECT_EQ(lab.agents["n1"].applied.size(), 1U);
  EXPECT_TRUE(lab.store->rows.contains("/workloads/web"));
  EXPECT_TRUE(lab.store->rows.contains("/assignments/web"));
  EXPECT_TRUE(lab.store->rows.contains("/reconciliation/web"));
  EXPECT_EQ(lab.store->rows.at("/nodes/n1/status").value, "Ready");

  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(3s);
  EXPECT_FALSE(lab.Exists("web"));
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kMissing);
  for (const auto& [key, row] : lab.store->rows) EXPECT_EQ(key.find("web"), std::string::npos) << key;
}

// On a standby, which leaves the records as they are.
TEST(SchedulerLoop, TheSummaryHasABucketForWhatIsOnItsWay) {
  using enum model::WorkloadPhase;
  Lab lab;
  lab.Post(LeadershipChanged{.leading = false, .leader = "s1:8085"});
  lab.Run(1ms);
  std::map<model::WorkloadPhase, std::function<int32_t(const contract::Summary&)>> buckets;
  for (const auto phase : {kPending, kScheduled, kUpdating, kRetryPending, kUnknown}) {
    buckets[phase] = [](const contract::Summary& summary) { return summary.pending_workloads; };
  }
  buckets[kRunning] = [](const contract::Summary& summary) { return summary.running_workloads; };
  buckets[kFailed] = [](const contract::Summary& summary) { return summary.failed_workloads; };
  for (const auto phase : {kDeleting, kDeleted}) {
    buckets[phase] = [](const contract::Summary& summary) { return summary.deleted_workloads; };
  }
  int32_t written = 0;
  contract::Summary before;
  for (size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<model::WorkloadPhase>(i);
    WorkloadRecord record{.workload = {.id = fmt::format("w{}", i), .phase = phase}};
    lab.WriteBehind("/workloads/" + record.workload.id, Encode(record));
    lab.Run(1s);
    const auto now = lab.Get<contract::Summary>(contract::GetSummary{});
    EXPECT_EQ(now.total_workloads, ++written);
    const int32_t grown = now.pending_workloads + now.running_workloads + now.failed_workloads + now.deleted_workloads -
                          before.pending_workloads - before.running_workloads - before.failed_workloads -
                          before.deleted_workloads;
    EXPECT_EQ(grown, buckets.contains(phase) ? 1 : 0) << model::WorkloadPhaseName(phase);
    if (buckets.contains(phase)) {
      EXPECT_EQ(buckets.at(phase)(now), buckets.at(phase)(before) + 1) << model::WorkloadPhaseName(phase);
    }
    before = now;
  }
  EXPECT_EQ(before.pending_workloads, 5);
}

TEST(SchedulerLoop, SteadyStateWritesAndCallsNothing) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(30s);
  const uint64_t commits = lab.store->commits;
  const int asked = lab.agents["n1"].statuses_asked;
  lab.reconciled.clear();
  lab.Run(1h);
  EXPECT_EQ(lab.store->commits, commits);
  EXPECT_EQ(lab.agents["n1"].statuses_asked, asked);
  EXPECT_TRUE(lab.reconciled.empty());
}

TEST(SchedulerLoop, AgentIsNotAskedForWhatARequestJustChanged) {
  Lab lab;
  lab.AddNode("n1");
  lab.Ask(Lab::ApplyOf("web"));
  lab.Run(1ms);  // durable, and its state is being asked for
  ASSERT_TRUE(lab.Exists("web"));
  ASSERT_EQ(lab.agents["n1"].statuses_asked, 1);
  // The answer leads to a launch; a delete comes before it is sent.
  lab.Post(Asked{.request = 1'000'000,
                 .body = contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"}},
           1ms);
  lab.Run(5s);
  EXPECT_TRUE(lab.answers.at(1'000'000).status.ok());
  EXPECT_TRUE(lab.agents["n1"].applied.empty());
  EXPECT_FALSE(lab.Exists("web"));
}

TEST(SchedulerLoop, IsTheSameAfterEveryLoadFromAJournal) {
  Lab lab;
  lab.reload = true;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Apply("db");
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Phase("db"), "Running");
  EXPECT_NE(lab.Workload("web").node, lab.Workload("db").node);
}

TEST(SchedulerLoop, BurstIsPlacedEvenlyAndCommittedInBatches) {
  Lab lab;
  for (int i = 0; i < 10; ++i) lab.AddNode(fmt::format("n{}", i));
  const uint64_t before = lab.store->commits;
  for (int i = 0; i < 500; ++i) lab.Ask(Lab::ApplyOf(fmt::format("w{:03}", i), Lab::Template(100, 0)));
  lab.Run(10ms);
  const uint64_t commits = lab.store->commits - before;
  EXPECT_LE(commits, 500U / 20) << "a burst is committed in batches";
  lab.Run(5s);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(lab.core.copy().OnNode(fmt::format("n{}", i)).size(), 50U);
}

TEST(SchedulerLoop, WorkloadsThatAreGoneLeaveNothingInThePlacer) {
  Lab lab;
  lab.AddNode("n1");
  for (int i = 0; i < 3'000; ++i) {
    const std::string id = fmt::format("w{}", i);
    lab.Apply(id, Lab::Template(100 + i));  // no two of them are alike
    lab.Run(1s);
    ASSERT_TRUE(lab.Delete(id).ok());
    lab.Run(1s);
  }
  EXPECT_LE(lab.core.parts().rooms.kinds(), 1'010U);
}

TEST(SchedulerLoop, WorkloadsThatAreAlikeAreOneKind) {
  Lab lab;
  lab.AddNode("n1");
  for (int i = 0; i < 12; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(10));
  lab.Run(5s);
  EXPECT_EQ(lab.core.copy().OnNode("n1").size(), 12U);
  EXPECT_LE(lab.core.parts().rooms.kinds(), 2U);  // one that may preempt, one that may not yet
}

// A rule that reads the label with the set of a workload that is no member of one: it has its own name there.
model::WorkloadTemplate ApartFrom(model::Requirement set) {
  model::WorkloadTemplate spec = Lab::Template(100);
  spec.exclude = {
      {.topology_key = "kubernetes.io/hostname", .selector = std::vector<model::Requirement>{std::move(set)}}};
  return spec;
}

TEST(SchedulerRules, RulesReadTheSetOfWorkloadsThatAreMembersOfNone) {
  const model::Requirement web{"muster.io/set", model::Operator::kIn, {"web"}};
  const model::Requirement any{"muster.io/set", model::Operator::kExists, {}};
  for (const model::Requirement& rule : {web, any}) {
    Lab later;
    later.AddNode("n1");
    later.Apply("web");
    later.Apply("db");
    later.Run(5s);
    EXPECT_EQ(later.Workload("web").node, "n1");
    later.Apply("apart", ApartFrom(rule));
    later.Run(5s);
    EXPECT_EQ(later.Workload("apart").node, "");
    EXPECT_EQ(later.Workload("apart").reason, "exclude.own");
    // What it names is gone.
    ASSERT_TRUE(later.Delete("web").ok());
    later.Run(1min);
    EXPECT_EQ(later.Workload("apart").node, rule.op == model::Operator::kIn ? "n1" : "");

    Lab earlier;
    earlier.AddNode("n1");
    earlier.Apply("apart", ApartFrom(rule));
    earlier.Run(5s);
    EXPECT_EQ(earlier.Workload("apart").node, "n1");
    earlier.Apply("web");
    earlier.Run(5s);
    EXPECT_EQ(earlier.Workload("web").node, "");
    EXPECT_EQ(earlier.Workload("web").reason, "exclude.other");
  }
}

TEST(SchedulerRules, TheWorkloadThatARuleNamesIsFound) {
  const auto node_of_apart = [] {
    Lab lab;
    lab.AddNode("n1");
    lab.Apply("web");
    lab.Run(5s);
    lab.Apply("apart", ApartFrom({"muster.io/set", model::Operator::kIn, {"web"}}));
    lab.Run(5s);
    return lab.Workload("apart").node;
  };
  EXPECT_EQ(node_of_apart(), "");
  const faults::ScopedMutant on("scheduler.named_set_unread");
  EXPECT_EQ(node_of_apart(), "n1");
}

TEST(SchedulerRules, OnlyTheWorkloadThatARuleNamesIsKeptApart) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("db");
  lab.Run(5s);
  lab.Apply("apart", ApartFrom({"muster.io/set", model::Operator::kIn, {"web"}}));
  lab.Run(5s);
  EXPECT_EQ(lab.Workload("apart").node, "n1");
}

}  // namespace
}  // namespace muster::scheduler
