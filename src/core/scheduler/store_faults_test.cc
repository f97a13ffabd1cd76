// The store: other writers, lost answers, refusals, times without an answer, a change of leader.
#include "base/probe.h"
#include "core/scheduler/lab_for_test.h"
#include "core/scheduler/month_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;

std::string Stored(const Lab& lab, const std::string& id) { return lab.store->rows.at("/workloads/" + id).value; }

TEST(SchedulerStore, CommitsAreCountedByTheirOutcome) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const Counters before = lab.core.View()->counters;
  lab.watch_held = true;
  lab.WriteBehind("/workloads/a", "{}");
  lab.Ask(Lab::ApplyOf("a"));
  lab.Run(2ms);
  const Counters conflict = lab.core.View()->counters;
  EXPECT_EQ(conflict.conflicts, before.conflicts + 1);
  EXPECT_EQ(conflict.commits, before.commits);
  lab.lose_answers = true;
  lab.Ask(Lab::ApplyOf("b"));
  lab.Run(2ms);
  EXPECT_EQ(lab.core.View()->counters.unknowns, conflict.unknowns + 1);
  EXPECT_EQ(lab.core.View()->counters.commits, before.commits);
  lab.lose_answers = false;
  lab.watch_held = false;
  lab.ReturnStore();
  lab.Run(30s);
  const uint64_t commits = lab.core.View()->counters.commits;
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1"}).ok());
  EXPECT_EQ(lab.core.View()->counters.commits, commits + 1);
}

TEST(SchedulerStore, ReadsShowDurableStateOnly) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.lose_requests = true;
  const contract::RequestId request = lab.Ask(Lab::ApplyOf("web"));
  lab.Run(100ms);
  EXPECT_FALSE(lab.answers.contains(request));
  EXPECT_EQ(lab.Try(contract::GetWorkload{"web"}).code(), Code::kNotFound);
  EXPECT_TRUE(lab.agents["n1"].applied.empty()) << "no agent is told of what is not durable";
  lab.lose_requests = false;
  lab.Run(5s);
  ASSERT_TRUE(lab.answers.contains(request));
  EXPECT_TRUE(lab.answers.at(request).status.ok());
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerStore, CommitThatHappenedThoughTheAnswerWasLostIsTakenUp) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.lose_answers = true;
  const contract::RequestId request = lab.Ask(Lab::ApplyOf("web"));
  lab.Run(20ms);
  lab.lose_answers = false;
  lab.Run(5s);
  ASSERT_TRUE(lab.answers.contains(request));
  EXPECT_TRUE(lab.answers.at(request).status.ok());
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size(), 1U);
}

// What is applied, or a set, whose first commit is on its way for long; the workload or set was made and is deleted.
void ExpectNoReturn(contract::ClusterRequest apply, const contract::DeleteObject& order, const std::string& key) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  std::optional<contract::Transaction> late;
  lab.observe = [&](const Effect& effect) {
    const auto* commit = std::get_if<contract::Commit>(&effect);
    if (commit != nullptr && !late) late = commit->transaction;
  };
  lab.lose_requests = true;
  lab.Ask(std::move(apply));
  lab.Run(2ms);
  ASSERT_TRUE(late.has_value());
  lab.lose_requests = false;
  lab.Run(3s);
  ASSERT_TRUE(lab.store->rows.contains(key)) << "decided again";
  EXPECT_TRUE(lab.Try(order).ok());
  lab.Run(2s);
  EXPECT_FALSE(lab.store->Commit(*late).has_value()) << "it finds the record, and does not make it anew";
  lab.Run(10s);
  EXPECT_FALSE(lab.store->rows.contains(key)) << "gone once no commit can be that late";
}
TEST(SchedulerStore, ACommitThatIsLateDoesNotBringBackWhatWasDeleted) {
  ExpectNoReturn(Lab::ApplyOf("web"), {.kind = contract::ObjectKind::kWorkload, .name = "web"}, "/workloads/web");
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "web", .replicas = 2, .spec = Lab::Template()};
  ExpectNoReturn(contract::ApplySpec{.spec = set}, {.kind = contract::ObjectKind::kSet, .name = "web"}, "/sets/web");
}

TEST(SchedulerStore, AMemberThatIsMadeLateGoesWithItsSet) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "web", .replicas = 2, .spec = Lab::Template()};
  lab.Ask(contract::ApplySpec{.spec = set});
  lab.Run();
  std::optional<contract::Transaction> late;  // that makes the members
  lab.observe = [&](const Effect& effect) {
    const auto* commit = std::get_if<contract::Commit>(&effect);
    if (commit != nullptr && !late) late = commit->transaction;
  };
  lab.lose_requests = true;
  lab.Run(2ms);
  ASSERT_TRUE(late.has_value());
  lab.lose_requests = false;
  EXPECT_TRUE(lab.Try(contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "web"}).ok());
  lab.Run(3s);
  const auto made = lab.store->Commit(*late);
  ASSERT_TRUE(made.has_value());
  ASSERT_TRUE(lab.store->rows.contains("/workloads/web-1"));
  lab.Post(StoreChanged{.revision = lab.store->revision, .changes = *made});
  lab.Run(1min);
  for (const auto& [key, row] : lab.store->rows) EXPECT_EQ(key.find("web"), std::string::npos) << key;
  EXPECT_TRUE(lab.agents["n1"].workloads.empty());
}

TEST(SchedulerStore, WhatASetAskedOfAMemberIsAskedAgainIfTheCommitOfThatIsLost) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "web", .replicas = 1, .spec = Lab::Template()};
  const auto apply = [&] {
    lab.Ask(contract::ApplySpec{.spec = set});
    lab.Run();  // the set is stored, and what follows for its member is not decided yet
    lab.lose_requests = true;
    lab.Run(100ms);
    lab.lose_requests = false;
    lab.Run(1min);
  };
  apply();
  ASSERT_TRUE(lab.Exists("web-0"));
  EXPECT_EQ(lab.Phase("web-0"), "Running");
  set.spec.image = "newer";
  apply();
  EXPECT_EQ(lab.Workload("web-0").spec.image, "newer");
  EXPECT_EQ(lab.Phase("web-0"), "Running");
  set.replicas = 0;
  apply();
  EXPECT_FALSE(lab.Exists("web-0"));
}

TEST(SchedulerStore, LostAnswersWithoutAWatchEndWithTheNextList) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.lose_answers = true;
  lab.watch_held = true;
  const contract::RequestId request = lab.Ask(Lab::ApplyOf("web"));
  lab.Run(5s);
  EXPECT_FALSE(lab.answers.contains(request));
  EXPECT_EQ(std::ranges::count_if(lab.store->rows, [](const auto& row) { return row.first == "/workloads/web"; }), 1);
  lab.lose_answers = false;
  lab.watch_held = false;
  lab.ReturnStore();
  lab.Run(3s);
  ASSERT_TRUE(lab.answers.contains(request));
  EXPECT_TRUE(lab.answers.at(request).status.ok());
  EXPECT_EQ(lab.Phase("web"), "Running");
}

TEST(SchedulerStore, ConflictIsDecidedAgainOnWhatAnotherWroteAndNeverOverwrites) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  // Another program stops the workload, and the watch is late.
  lab.watch_held = true;
  WorkloadRecord other = *lab.core.copy().Find<WorkloadRecord>("web");
  other.workload.desired = model::DesiredState::kStopped;
  other.metadata["by"] = "hand";
  lab.WriteBehind("/workloads/web", Encode(other));
  const contract::RequestId request = lab.Ask(contract::RetryWorkload{"web"});
  lab.Run(20ms);
  lab.watch_held = false;
  lab.ReturnStore();
  lab.Run(5s);
  EXPECT_TRUE(lab.answers.at(request).status.ok());
  EXPECT_EQ(lab.Workload("web").metadata.at("by"), "hand");
  EXPECT_EQ(lab.Phase("web"), "Stopped");
  EXPECT_GE(lab.core.View()->counters.conflicts, 1U);
}

TEST(SchedulerStore, ConflictOfOneObjectDoesNotHoldUpOthers) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("a");
  lab.Run(5s);
  lab.watch_held = true;
  WorkloadRecord other = *lab.core.copy().Find<WorkloadRecord>("a");
  other.metadata["by"] = "hand";
  lab.WriteBehind("/workloads/a", Encode(other));
  lab.Ask(contract::RetryWorkload{"a"});
  std::vector<contract::RequestId> rest;
  for (const char* id : {"b", "c", "d"}) rest.push_back(lab.Ask(Lab::ApplyOf(id)));
  lab.Run(5s);
  for (const contract::RequestId request : rest) {
    ASSERT_TRUE(lab.answers.contains(request));
    EXPECT_TRUE(lab.answers.at(request).status.ok());
  }
  EXPECT_EQ(lab.Phase("d"), "Running");
}

TEST(SchedulerStore, RefusalOfTheStoreIsTheAnswer) {
  Lab lab;
  lab.AddNode("n1");
  lab.refuses_commits = Status(Code::kResourceExhausted, "the store is full");
  const Status status = lab.Try(Lab::ApplyOf("web"));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "the store is full");
  EXPECT_FALSE(lab.Exists("web"));
  lab.refuses_commits = {};
  lab.Run(3s);
  EXPECT_TRUE(lab.Try(Lab::ApplyOf("web")).ok());
}

TEST(SchedulerStore, LostStoreServesStaleReadsRefusesWritesAndFailsNothingOver) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const std::string node = lab.Workload("web").node;
  const WallTime lost = lab.now.wall;
  lab.LoseStore();
  lab.Run();
  // For five minutes nobody hears a heartbeat either.
  lab.StopBeating("n1");
  lab.StopBeating("n2");
  const size_t decisions = lab.decisions.size();
  const int asked = lab.agents[node].statuses_asked + lab.agents[node].lists_asked;
  lab.Run(5min);
  EXPECT_EQ(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::Summary>(contract::GetSummary{}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::NodesListed>(contract::ListNodes{}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::SetsListed>(contract::ListSets{}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::QuotasListed>(contract::ListQuotas{}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::EventsListed>(contract::ListEvents{.workload = "web"}).stale_since, lost);
  EXPECT_EQ(lab.Get<contract::Explanation>(contract::ExplainWorkload{"web"}).stale_since, lost);
  EXPECT_EQ(lab.Workload("web").stale_since, lost);
  EXPECT_EQ(lab.Node(node).stale_since, lost);
  EXPECT_EQ(lab.Try(Lab::ApplyOf("other")).code(), Code::kUnavailable);
  EXPECT_EQ(lab.agents[node].statuses_asked + lab.agents[node].lists_asked, asked) << "nothing is called";
  lab.ReturnStore();
  lab.Run(2min);
  EXPECT_EQ(lab.decisions.size(), decisions) << "ages are judged from the moment of return";
  EXPECT_EQ(lab.Workload("web").node, node);
  EXPECT_FALSE(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{}).stale_since.has_value());
  EXPECT_FALSE(lab.Workload("web").stale_since.has_value());
  lab.Run(2min);
  EXPECT_EQ(lab.Decided(DecisionKind::kNodeLost), 2) << "and then judged";
}

TEST(SchedulerStore, RequestWhoseCommitEndsUnknownAfterTheStoreWasLostIsRefused) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.lose_requests = true;
  const contract::RequestId request = lab.Ask(Lab::ApplyOf("web"));
  lab.Run();  // the commit is on its way
  lab.LoseStore();
  lab.Run(1s);
  ASSERT_TRUE(lab.answers.contains(request)) << "it does not wait for the store to return";
  EXPECT_EQ(lab.answers.at(request).status.code(), Code::kUnavailable);
}

TEST(SchedulerStore, SaysThatItLeadsOnceItTakesChanges) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const contract::Revision elected = lab.core.copy().state().revision + 1;
  lab.Post(LeadershipChanged{.leading = true, .leader = "s1", .leader_key = "/leader", .leader_revision = elected});
  lab.Run();
  EXPECT_FALSE(lab.Get<contract::Summary>(contract::GetSummary{}).leading) << "the election is not in its copy";
  EXPECT_FALSE(lab.core.View()->leading);
  EXPECT_EQ(lab.Try(Lab::ApplyOf("web")).code(), Code::kUnavailable);
  lab.WriteBehind("/leader", "s1");
  lab.Run(1s);
  EXPECT_TRUE(lab.Get<contract::Summary>(contract::GetSummary{}).leading);
  EXPECT_TRUE(lab.core.View()->leading);
}

TEST(SchedulerStore, RestartKeepsEveryAcknowledgedWorkloadAndJudgesAgesFromItsStart) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  for (int i = 0; i < 6; ++i) lab.Apply(fmt::format("w{}", i));
  lab.Run(5s);
  lab.Run(2min + 55s);
  lab.Restart();
  lab.Run(1min);
  EXPECT_EQ(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{}).workloads.size(), 6U);
  EXPECT_EQ(lab.Decided(DecisionKind::kFailedOver), 0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(lab.Phase(fmt::format("w{}", i)), "Running");
  EXPECT_EQ(lab.agents["n1"].applied.size() + lab.agents["n2"].applied.size(), 6U) << "nothing is launched again";
}

TEST(SchedulerStore, StandbyServesReadsAndNamesTheLeader) {
  Lab lab;
  lab.Run();
  EXPECT_TRUE(lab.core.View()->leader_known) << "this one";
  lab.Post(LeadershipChanged{.leading = false});
  lab.Run(1ms);
  EXPECT_TRUE(lab.core.View()->ready) << "its store answers";
  EXPECT_FALSE(lab.core.View()->leader_known);
  lab.Post(LeadershipChanged{.leading = false, .leader = "s1:8085"});
  lab.Run(1ms);
  EXPECT_TRUE(lab.core.View()->leader_known) << "another one";
  lab.Run();
  EXPECT_EQ(lab.Get<contract::Summary>(contract::GetSummary{}).leader, "s1:8085");
  const Status status = lab.Try(Lab::ApplyOf("web"));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("s1:8085"), std::string::npos);
  EXPECT_EQ(lab.Try(contract::Heartbeat{.node = "n1"}).code(), Code::kUnavailable);
}

TEST(SchedulerStore, OldLeaderCommitsNothingOnceAnotherWasElected) {
  Lab lab;
  lab.WriteBehind("/election", "s1");
  lab.Run(10ms);
  const contract::Revision elected = lab.store->rows.at("/election").modified;
  lab.Post(
      LeadershipChanged{.leading = true, .leader = "s1:8085", .leader_key = "/election", .leader_revision = elected});
  lab.AddNode("n1");
  EXPECT_TRUE(lab.Try(Lab::ApplyOf("web")).ok());
  lab.Run(3s);
  lab.WriteBehind("/election", "s2");  // this scheduler was paused, and has not heard
  const std::string before = Stored(lab, "web");
  const contract::RequestId request =
      lab.Ask(contract::ApplyWorkload{.workload = "web", .desired = model::DesiredState::kStopped});
  lab.Run(3s);
  EXPECT_FALSE(lab.answers.contains(request));
  EXPECT_EQ(Stored(lab, "web"), before);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning);
  EXPECT_LE(lab.core.View()->counters.conflicts, 8U) << "with pauses: the copy shows nothing of what is in the way";
  lab.Post(LeadershipChanged{.leading = false, .leader = "s2:8085"});
  lab.Run(3s);
  ASSERT_TRUE(lab.answers.contains(request));
  EXPECT_EQ(lab.answers.at(request).status.code(), Code::kUnavailable);
}

TEST(SchedulerStore, NewLeaderTakesOverWithoutDecidingTwice) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const contract::Stamp stamp = lab.Workload("web").stamp;
  Lab second({}, lab.store);
  second.agents = lab.agents;
  second.Post(LeadershipChanged{.leading = false, .leader = "first"});
  second.Run(1s);
  second.Post(LeadershipChanged{.leading = true, .leader = "second"});
  second.Run(2min);
  EXPECT_EQ(second.Workload("web").stamp, stamp);
  EXPECT_EQ(second.Phase("web"), "Running");
  EXPECT_EQ(second.decisions.size(), 0U);
}

TEST(SchedulerStore, WhatCameAndWentWhileTheWatchWasAwayIsGone) {
  faults::ResetProbes();
  Lab lab;
  lab.Run(10ms);
  lab.watch_held = true;
  EXPECT_TRUE(lab.Try(Lab::ApplyOf("web")).ok());  // it waits for a node
  lab.Run(1s);
  ASSERT_TRUE(lab.store->rows.contains("/retries/web"));
  std::erase_if(lab.store->rows, [](const auto& row) { return row.first.contains("web"); });  // another deleted it
  lab.Post(StoreChanged{.revision = ++lab.store->revision, .changes = {}});                   // the difference
  lab.watch_held = false;
  lab.Run(1s);
  EXPECT_FALSE(lab.Exists("web"));
  EXPECT_GT(faults::ProbeHits().at("scheduler.unshown"), 0u);
  EXPECT_TRUE(lab.Try(Lab::ApplyOf("web")).ok()) << "nothing of it is compared with any more";
}

// An older backup took the place of the store, at a lower revision.
TEST(SchedulerStore, AStoreThatWentBackIsReadAnew) {
  const auto adopted = [] {
    Lab lab;
    lab.agents["n1"].native = true;
    lab.AddNode("n1");
    lab.Apply("web");
    lab.Run(5s);
    const LabStore backup = *lab.store;
    lab.Apply("later");
    EXPECT_TRUE(lab.Try(contract::ApplyWorkload{.workload = "web", .desired = model::DesiredState::kStopped}).ok());
    lab.Run(1min);
    EXPECT_EQ(lab.Phase("web"), "Stopped");
    *lab.store = backup;
    lab.ReturnStore();
    const uint64_t conflicts = lab.core.View()->counters.conflicts;
    lab.Run(1min);
    if (lab.Exists("later")) return false;
    EXPECT_EQ(lab.Workload("web").store_revision, lab.store->rows.at("/workloads/web").modified);
    EXPECT_EQ(lab.Phase("web"), "Running") << "as the backup has it";
    EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning);
    EXPECT_EQ(lab.On("n1", "later"), ActualState::kRunning) << "what it does not know is counted first";
    EXPECT_TRUE(lab.Try(Lab::ApplyOf("third")).ok());
    lab.Run(1s);
    EXPECT_EQ(lab.Phase("third"), "Running");
    EXPECT_EQ(lab.core.View()->counters.conflicts, conflicts) << "nothing is compared with the store before";
    EXPECT_EQ(
        std::ranges::count(lab.notices, "the store went back to an earlier revision, and is read anew", &Notice::what),
        1);
    return true;
  };
  faults::ResetProbes();
  EXPECT_TRUE(adopted());
  EXPECT_GT(faults::ProbeHits().at("scheduler.another_store"), 0u);
  const faults::ScopedMutant on("scheduler.another_store_unseen");
  EXPECT_FALSE(adopted());
}

// Its outcome is told after the store before was lost: it is one of that store.
TEST(SchedulerStore, WhatWasOnItsWayWhenTheStoreWentBackIsNotInTheNextOne) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  const LabStore backup = *lab.store;
  lab.watch_held = true;
  for (int i = 0; i < 5; ++i) lab.WriteBehind("/other", fmt::format("{}", i));
  const contract::RequestId request = lab.Ask(Lab::ApplyOf("lost"));
  lab.Run();
  ASSERT_TRUE(lab.store->rows.contains("/workloads/lost")) << "committed, and not answered yet";
  lab.Post(StoreChanged{.revision = lab.store->revision - 1, .changes = {}});
  lab.Run();
  *lab.store = backup;
  lab.watch_held = false;
  lab.ReturnStore();
  lab.Run(1min);
  ASSERT_TRUE(lab.answers.contains(request));
  EXPECT_EQ(lab.answers.at(request).status.code(), Code::kUnavailable);
  EXPECT_FALSE(lab.Exists("lost"));
  EXPECT_TRUE(lab.Try(Lab::ApplyOf("lost")).ok()) << "nothing of it is compared with any more";
  lab.Run(1s);
  EXPECT_EQ(lab.Phase("lost"), "Running");
}

TEST(SchedulerStore, UnreadableRecordIsLeftAloneAndSaid) {
  Lab lab;
  lab.AddNode("n1");
  lab.WriteBehind("/workloads/odd", "not json");
  lab.Run(1s);
  ASSERT_EQ(lab.notices.size(), 1U);
  EXPECT_EQ(lab.notices[0].subject, "/workloads/odd");
  EXPECT_EQ(lab.Try(Lab::ApplyOf("odd")).code(), Code::kDataLoss);
  EXPECT_EQ(Stored(lab, "odd"), "not json");
}

TEST(SchedulerStore, EventsAreARingAndTheStoreIsFlatOverAMonth) {
  Lab lab({.events_per_workload = 5});
  BeginMonth(lab);
  size_t rows = 0;
  size_t bytes = 0;  // the most until day 10
  for (int day = 0; day < kDays; ++day) {
    PlayDay(lab, day, [&] { lab.Run(1h); });
    size_t now = 0;
    for (const auto& [key, row] : lab.store->rows) now += key.size() + row.value.size();
    if (day <= 10) bytes = std::max(bytes, now);
    if (day == 10) rows = lab.store->rows.size();
    // Numbers and counts of events grow by digits, and by nothing else.
    EXPECT_LE(now, bytes + bytes / 50) << "day " << day;
  }
  EXPECT_EQ(lab.store->rows.size(), rows);
  for (const std::string owner : {"web", "quiet", "set-0", "set-1", "set-2"}) {
    EXPECT_LE(std::ranges::count_if(lab.store->rows,
                                    [&](const auto& row) { return row.first.starts_with("/events/" + owner + "."); }),
              5)
        << owner;
  }
  EXPECT_LT(lab.store->commits, 30U * 100U);
}

// The keys of workloads and nodes in each commit, as they are sent.
class CommitsOf {
 public:
  explicit CommitsOf(Lab& lab) {
    lab.observe = [this](const Effect& effect) {
      const auto* commit = std::get_if<contract::Commit>(&effect);
      if (commit == nullptr) return;
      std::set<std::string> keys;
      for (const contract::StoreWrite& write : commit->transaction.writes) keys.insert(write.key);
      sent.push_back(std::move(keys));
    };
  }
  std::vector<std::set<std::string>> sent;
};

TEST(SchedulerStore, NodesGoBeforeABacklogOfWorkloadsAndTheseInTheirOrder) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  CommitsOf commits(lab);
  lab.Ask(Lab::ApplyOf("z-first", Lab::Template(1, 0)));
  for (int i = 0; i < 3000; ++i) lab.Ask(Lab::ApplyOf(fmt::format("a-{:04}", i), Lab::Template(1, 0)));
  lab.Run();
  ASSERT_GE(commits.sent.size(), 64U) << "no more may be under way";
  ASSERT_FALSE(lab.core.parts().drafts.state().open.empty());
  EXPECT_TRUE(commits.sent.front().contains("/workloads/z-first"));
  commits.sent.clear();
  const contract::RequestId cordon = lab.Ask(contract::CordonNode{.node = "n1"});
  lab.Run(1ms);
  ASSERT_GE(commits.sent.size(), 10U) << "the backlog stands";
  EXPECT_TRUE(commits.sent.front().contains("/nodes/n1"));
  lab.Run(1ms);
  ASSERT_TRUE(lab.answers.contains(cordon));
  EXPECT_TRUE(lab.answers.at(cordon).status.ok());
}

EventRecord ForeignEvent(const std::string& workload, WallTime at) {
  return {.type = "Scheduled", .workload = workload, .node = "n1", .reason = "by another", .at = at};
}
std::string UuidKey(int i) { return fmt::format("/events/7d44a1{:02}-5f2e-4c0f-9b1a-0242ac120002", i); }
size_t EventsInStore(const Lab& lab) {
  return static_cast<size_t>(
      std::ranges::count_if(lab.store->rows, [](const auto& row) { return row.first.starts_with("/events/"); }));
}

TEST(SchedulerStore, EventsOfAnotherProgramAreAllShownAndGoWithTheirWorkload) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  const size_t ours = lab.EventsOf("web").size();
  for (int i = 0; i < 5; ++i) lab.WriteBehind(UuidKey(i), Encode(ForeignEvent("web", lab.now.wall - 1min)));
  lab.Run(1min);
  EXPECT_EQ(lab.EventsOf("web").size(), ours + 5);
  lab.Restart();
  lab.Run(10s);
  EXPECT_EQ(lab.EventsOf("web").size(), ours + 5);
  // One that its program takes back is shown no more.
  lab.WriteBehind(UuidKey(0), std::nullopt);
  lab.Run(1s);
  EXPECT_EQ(lab.EventsOf("web").size(), ours + 4);
  ASSERT_TRUE(lab.Delete("web").ok());
  lab.Run(10s);
  EXPECT_FALSE(lab.Exists("web"));
  EXPECT_EQ(EventsInStore(lab), 0U);
  EXPECT_TRUE(lab.EventsOf("web").empty());
}

TEST(SchedulerStore, EventsOfAnotherProgramGoWhenTheyAreOldOrOfNothingThatIsThere) {
  const auto left_after = [](Duration time) {
    Lab lab;
    lab.AddNode("n1");
    lab.Apply("web");
    lab.Run(1min);
    const size_t ours = EventsInStore(lab);
    for (int i = 0; i < 5; ++i) lab.WriteBehind(UuidKey(i), Encode(ForeignEvent("web", lab.now.wall)));
    EventRecord of_node = ForeignEvent("", lab.now.wall);
    lab.WriteBehind(UuidKey(5), Encode(of_node));
    of_node.node = "gone";
    lab.WriteBehind(UuidKey(6), Encode(of_node));
    of_node.node.clear();
    lab.WriteBehind(UuidKey(7), Encode(of_node));
    lab.WriteBehind(UuidKey(8), Encode(ForeignEvent("web", lab.now.wall + 24h)));
    for (int i = 10; i < 90; ++i) lab.WriteBehind(UuidKey(i), Encode(ForeignEvent("gone", lab.now.wall)));
    lab.Run(time);
    EXPECT_EQ(lab.Phase("web"), "Running");
    return EventsInStore(lab) - ours;
  };
  faults::ResetProbes();
  EXPECT_EQ(left_after(10s), 7U) << "those of web, of the node and of nothing";
  EXPECT_EQ(faults::ProbeHits().at("scheduler.foreign_event_pruned"), 82U);
  EXPECT_EQ(left_after(1h + 10s), 0U);
}

TEST(SchedulerStore, EventsOfAnotherProgramGoThoughTheCommitOfThatIsLost) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const size_t ours = EventsInStore(lab);
  for (int i = 0; i < 5; ++i) lab.WriteBehind(UuidKey(i), Encode(ForeignEvent("gone", lab.now.wall)));
  lab.lose_requests = true;
  lab.Run(10s);
  EXPECT_EQ(EventsInStore(lab), ours + 5);
  EXPECT_GT(lab.core.parts().counters.unknowns, 0U);
  lab.lose_requests = false;
  lab.lose_answers = true;
  lab.Run(10s);
  EXPECT_EQ(EventsInStore(lab), ours);
  EXPECT_TRUE(lab.core.copy().state().foreign_events.empty()) << "the watch shows it";
}

TEST(SchedulerStore, EventsOfAnotherProgramAreDeletedByTheNextLeader) {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  const size_t ours = EventsInStore(lab);
  lab.Post(LeadershipChanged{.leading = false});
  for (int i = 0; i < 5; ++i) lab.WriteBehind(UuidKey(i), Encode(ForeignEvent("gone", lab.now.wall)));
  lab.Run(1min);
  EXPECT_EQ(EventsInStore(lab), ours + 5) << "it does not lead";
  lab.Post(LeadershipChanged{.leading = true});
  lab.Run(11s);
  EXPECT_EQ(EventsInStore(lab), ours);
  EXPECT_TRUE(lab.core.copy().state().foreign_events.empty());
}

TEST(SchedulerStore, AnEventThatIsWrittenAnewIsOfOneOwner) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  const size_t ours = lab.EventsOf("web").size();
  const auto write = [&](const std::string& workload) {
    lab.WriteBehind("/events/web.900", Encode(ForeignEvent(workload, lab.now.wall)));
    lab.Run(100ms);
  };
  write("gone");
  EXPECT_EQ(lab.core.copy().state().foreign_events.size(), 1U);
  write("web");
  EXPECT_TRUE(lab.core.copy().state().foreign_events.empty());
  lab.Run(1min);
  EXPECT_EQ(lab.EventsOf("web").size(), ours + 1) << "it is one of the ring";
  write("gone");
  EXPECT_EQ(lab.EventsOf("web").size(), ours);
  lab.Run(10s);
  EXPECT_FALSE(lab.store->rows.contains("/events/web.900"));
}

TEST(SchedulerStore, WatchersSeeEveryDurableChangeOnce) {
  Lab lab;
  lab.AddNode("n1");
  lab.changes.clear();
  lab.Apply("web");
  lab.Run(5s);
  std::vector<std::string> phases;
  for (const contract::ObjectChanged& change : lab.changes) {
    if (change.kind != contract::ObjectKind::kWorkload) continue;
    const auto& view = std::get<contract::WorkloadView>(change.now);
    phases.emplace_back(model::WorkloadPhaseName(view.phase));
    EXPECT_EQ(view.store_revision, change.revision);
  }
  EXPECT_EQ(phases.front(), "Scheduled");
  EXPECT_EQ(phases.back(), "Running");
  EXPECT_LE(phases.size(), 3U);
  lab.changes.clear();
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(3s);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(lab.changes.back().now));
}

}  // namespace
}  // namespace muster::scheduler
