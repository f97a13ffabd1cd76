// Planted bugs that the simulated world does not show, or shows too rarely: a story for each, which ends well without
// the bug and says what went wrong with it.
#include "base/probe.h"
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;

struct PlantedBug {
  std::string name;
  std::string (*story)();  // what went wrong; empty: nothing
  std::string says;
};
void PrintTo(const PlantedBug& bug, std::ostream* out) { *out << bug.name; }

std::string Unless(bool holds, std::string what) { return holds ? std::string() : std::move(what); }

// A set of which `min_available` must stay up, on a node of its own.
void RunSet(Lab& lab, int32_t replicas, int32_t min_available, int64_t cpu_milli) {
  lab.AddNode("n1");
  model::WorkloadSpec spec{
      .kind = model::WorkloadKind::kSet, .name = "web", .replicas = replicas, .spec = Lab::Template(cpu_milli)};
  spec.min_available = {.amount = min_available};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec});
  lab.Run(5s);
}
int32_t Running(Lab& lab) {
  return lab.Get<contract::SetsListed>(contract::ListSets{.name = "web"}, 0s).sets.at(0).running;
}

std::string StoreAwayForLong() {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.LoseStore();
  lab.Run(1s);
  lab.StopBeating("n1");  // it cannot be heard
  lab.Run(10min);
  lab.ReturnStore();
  lab.Run(1min + 30s);
  return Unless(lab.Node("n1").status == model::NodeStatus::kReady, "the node is lost though its age counts anew");
}

std::string PreemptionOfASet() {
  Lab lab;
  RunSet(lab, 2, 2, 4000);
  model::WorkloadTemplate high = Lab::Template(4000);
  high.priority = 100;
  lab.Apply("high", high);
  lab.Run(1min);
  return Unless(Running(lab) == 2, "preemption takes a set below min-available");
}

std::string GangThatCannotBeWhole() {
  Lab lab;
  for (const std::string node : {"n1", "n2"}) {
    contract::NodeFacts facts = lab.Facts(node);
    facts.labels = {{"rack", "a"}};
    EXPECT_TRUE(lab.Register(std::move(facts)).accepted);
    lab.StartBeating(node);
    lab.Apply("low-" + node, Lab::Template(8000));
  }
  lab.Run(5s);
  model::WorkloadSpec gang{
      .kind = model::WorkloadKind::kSet, .name = "gang", .replicas = 3, .spec = Lab::Template(8000)};
  gang.spec.priority = 100;
  gang.spec.colocate = {{.topology_key = "rack"}};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = gang});
  lab.Run(5min);
  return Unless(lab.Decided(DecisionKind::kEvicted) == 0, "half a gang takes the place of work that runs");
}

// What an operator says of machines until `told`, every ten seconds, and who is evicted for a workload that waits for
// them.
std::string MachinesThatCome(Duration told, Duration lasts, bool evicts) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("low", Lab::Template(8000));
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 100;
  lab.Apply("high", high);
  for (Duration at{}; at < lasts; at += 10s) {
    if (at < told) {
      EXPECT_TRUE(lab.Try(contract::ReportMachines{.machines = {contract::ComingMachine{}}, .valid_for = 30s}).ok());
    }
    lab.Run(10s);
  }
  const bool evicted = lab.Decided(DecisionKind::kEvicted) > 0;
  return Unless(evicted == evicts, evicted ? "a workload is evicted though a machine comes"
                                           : "what waits for machines never evicts others");
}
std::string MachineOnItsWay() { return MachinesThatCome(1min, 1min, false); }
std::string OperatorThatDied() { return MachinesThatCome(20s, 2min, true); }
std::string OperatorThatLies() { return MachinesThatCome(12min, 12min, true); }

std::string DrainOfASet() {
  Lab lab;
  RunSet(lab, 3, 2, 1000);
  lab.AddNode("n2");
  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1", .reason = "kernel"}, 5ms).ok());
  int32_t least = 3;
  for (int i = 0; i < 1000; ++i) {
    lab.Run(5ms);
    least = std::min(least, Running(lab));
  }
  return Unless(least >= 2, "a drain takes a set below min-available");
}

std::string TwoRegistrations() {
  Lab lab;
  lab.agents["n1"].native = true;
  const uint64_t first = lab.Register(lab.Facts("n1")).state.epoch;
  return Unless(lab.Register(lab.Facts("n1")).state.epoch > first, "a registration has the epoch of the one before");
}

std::string AgentOfALostStore() {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.agents["n1"].epoch = 5000;
  lab.Register(lab.Facts("n1"));
  lab.Apply("web");
  lab.Run(5s);
  return Unless(lab.On("n1", "web") == ActualState::kRunning, "an agent refuses every stamp after its store was lost");
}

std::string HeartbeatOfAnEarlierLife() {
  Lab lab;
  lab.agents["n1"].native = true;
  const uint64_t first = lab.Register(lab.Facts("n1")).state.epoch;
  lab.Register(lab.Facts("n1"));
  const Status heard = lab.Try(contract::Heartbeat{.node = "n1", .epoch = first});
  return Unless(heard.code() == Code::kNotFound, "a heartbeat of an older epoch is heard");
}

std::string NodeThatCannotBeDialled() {
  Lab lab;
  lab.AddNode("n1");
  lab.Run(1s);
  lab.agents["n1"].unreachable = true;
  lab.Apply("web");
  lab.Run(5min);  // it beats all the time
  const int lost = lab.Decided(DecisionKind::kNodeLost);
  return Unless(lost == 1, fmt::format("the node is lost {} times, for heartbeats alone make it Ready", lost));
}

std::string AgentThatCannotBeCalledAtRest() {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(2min);
  lab.agents["n1"].unreachable = true;
  lab.Run(5min);  // it beats all the time, and says that the workload runs
  return Unless(lab.Node("n1").status == model::NodeStatus::kNotReady, "nobody finds that the agent cannot be called");
}

std::string MissingRuntime() {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.agents["n1"].declines = [](const auto&) { return std::string("docker runtime not available"); };
  lab.Apply("web");
  lab.Run(5s);
  return Unless(lab.Workload("web").node == "n2", "the workload stays on a node that cannot run it");
}

std::string DeadNode() {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Apply("web");
  lab.Run(5s);
  const std::string node = lab.Workload("web").node;
  lab.StopBeating(node);
  lab.agents[node].unreachable = true;
  lab.Run(5min);
  return Unless(lab.Workload("web").node != node, "the workload stays on a dead node");
}

std::string EmptyStore() {
  Lab lab;
  for (int i = 0; i < 10; ++i) {
    const std::string id = fmt::format("w{}", i);
    lab.agents["n1"].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
  }
  lab.AddNode("n1");
  lab.Run(1min);
  return Unless(lab.agents["n1"].workloads.size() == 10, "an empty store deletes what a node runs");
}

// One workload on each of many nodes, or a few on one: no node has too many that are unknown.
std::string EmptyStoreUnderAFew() {
  Lab lab;
  for (int i = 0; i < 4; ++i) {
    const std::string id = fmt::format("w{}", i);
    lab.agents["n1"].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
  }
  lab.AddNode("n1");
  lab.Run(10min);
  return Unless(lab.agents["n1"].workloads.size() == 4, "an empty store deletes the few that a node runs");
}
std::string AlmostEmptyStore() {
  Lab lab;
  lab.Apply("other");
  for (int n = 0; n < 25; ++n) {
    const std::string id = fmt::format("w{}", n);
    const std::string node = fmt::format("n{}", n);
    lab.agents[node].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
    lab.AddNode(node);
  }
  lab.Run(10min);
  size_t left = 0;
  for (const auto& [node, agent] : lab.agents) {
    for (const auto& [id, workload] : agent.workloads) left += id.starts_with('w') ? 1 : 0;
  }
  return Unless(left == 25, fmt::format("{} of 25 are deleted, node by node", 25 - left));
}

std::string RestoredStore() {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.agents["n2"].native = true;
  lab.AddNode("n1");
  for (int i = 0; i < 10; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.AddNode("n2");
  lab.Run(5s);
  const LabStore backup = *lab.store;
  lab.Ask(contract::DrainNode{.node = "n1", .reason = "repair"});
  lab.Run(5min);
  EXPECT_EQ(lab.agents["n2"].workloads.size(), 10U);
  *lab.store = backup;
  lab.Restart();
  lab.Run(1min);
  return Unless(lab.agents["n2"].workloads.size() == 10, "a restored store deletes what a node runs");
}

std::string FullQuota() {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  int admitted = 0;
  for (const char* id : {"a", "b"}) {
    contract::ApplyWorkload apply = Lab::ApplyOf(id);
    apply.tenant = "shop";
    admitted += lab.Try(apply).ok() ? 1 : 0;
  }
  return Unless(admitted == 1, "a tenant gets more than its quota");
}

std::string FloodOfRefusals() {
  Lab lab;
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1}}}});
  for (int i = 0; i < 500; ++i) {
    contract::ApplyWorkload apply = Lab::ApplyOf(fmt::format("w{}", i));
    apply.tenant = "shop";
    lab.Ask(apply);
  }
  lab.Run(100ms);
  return Unless(lab.decisions.size() == 10, fmt::format("{} decisions of refusals at once", lab.decisions.size()));
}

std::string FullNode() {
  Lab lab;
  lab.AddNode("n1");
  int refusals = 0;
  lab.agents["n1"].refuses = [&](const auto&) {
    ++refusals;
    return Status(Code::kResourceExhausted, "memory above 80 %");
  };
  lab.Apply("web");
  lab.Run(20s);
  return Unless(refusals == 1, fmt::format("a node that refused is asked {} times", refusals));
}

std::string SlowStart() {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].start_takes = 10s;
  lab.Apply("web");
  lab.Run(1s);
  lab.agents["n1"].workloads.clear();  // its agent does not show it yet
  lab.Run(9s);
  const size_t launches = lab.agents["n1"].applied.size();
  return Unless(launches == 1, fmt::format("{} launches within the grace", launches));
}

std::string WorkloadThatAlwaysFails() {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].fails["web"] = "exit code 1";
  lab.Apply("web");
  lab.Run(10min);
  return Unless(lab.Phase("web") == "Failed", "a workload that always fails is never Failed");
}

std::string WorkloadThatFailsOnce() {
  Lab lab;
  lab.AddNode("n1");
  lab.agents["n1"].fails["web"] = "exit code 1";
  lab.Apply("web");
  lab.Run(4s);
  const size_t launches = lab.agents["n1"].applied.size();
  return Unless(launches == 1, fmt::format("{} launches without a back-off", launches));
}

std::string DeleteBeforeALaunch() {
  Lab lab;
  lab.AddNode("n1");
  lab.Ask(Lab::ApplyOf("web"));
  lab.Run(1ms);  // durable, and its state is being asked for: the answer leads to a launch
  lab.Post(Asked{.request = 1'000'000,
                 .body = contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"}},
           1ms);
  lab.Run(5s);
  return Unless(lab.agents["n1"].applied.empty(), "a launch from a record that is about to change");
}

std::string PausedLeader() {
  Lab lab;
  lab.WriteBehind("/election", "s1");
  lab.Run(10ms);
  lab.Post(LeadershipChanged{.leading = true,
                             .leader = "s1:8085",
                             .leader_key = "/election",
                             .leader_revision = lab.store->rows.at("/election").modified});
  lab.AddNode("n1");
  lab.Run(1s);
  lab.WriteBehind("/election", "s2");  // and this scheduler has not heard
  lab.Ask(Lab::ApplyOf("web"));
  lab.Run(1s);
  return Unless(!lab.store->rows.contains("/workloads/web"), "an old leader writes");
}

std::string NewLeaderWithAnOldCopy() {
  Lab lab;
  lab.Run(10ms);
  lab.watch_held = true;
  lab.WriteBehind("/election", "s1");
  lab.Post(LeadershipChanged{.leading = true,
                             .leader = "s1:8085",
                             .leader_key = "/election",
                             .leader_revision = lab.store->rows.at("/election").modified});
  lab.Run(10ms);
  return Unless(lab.Try(Lab::ApplyOf("web")).code() == Code::kUnavailable,
                "a leader decides on a copy from before its election");
}

std::string EventWithALease() {
  Lab lab;
  lab.Post(EventLease{.lease = 7});
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  for (const auto& [key, row] : lab.store->rows) {
    const bool leased = row.lease == 7;
    if (leased != key.starts_with("/events/")) return fmt::format("{} has the lease {}", key, row.lease);
  }
  return "";
}

std::string AnotherTenantsWorkload() {
  Lab lab;
  contract::ApplyWorkload apply = Lab::ApplyOf("web");
  apply.tenant = "bank";
  EXPECT_TRUE(lab.Try(apply).ok());
  lab.Post(Asked{.request = 1'000'000,
                 .body = contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"},
                 .tenant = "shop"});
  lab.Run(1s);
  return Unless(lab.Exists("web"), "a tenant deletes what is another's");
}

// Whoever lists before a deletion, and watches from the revision of its list, hears of it.
std::string DeletionAheadOfTheWatch() {
  Lab lab;
  lab.Apply("web");
  lab.watch_held = true;
  const auto listed = lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{});
  EXPECT_EQ(listed.workloads.size(), 1U);
  EXPECT_TRUE(lab.Delete("web").ok());
  lab.Run(1s);
  for (const contract::ObjectChanged& change : lab.changes) {
    const bool gone = change.name == "web" && std::holds_alternative<std::monostate>(change.now);
    if (gone && change.revision > listed.revision) return "";
  }
  return "a deletion is told as older than a list that has what was deleted";
}

std::vector<PlantedBug> PlantedBugs() {
  return {
      {"scheduler.ages_go_on", StoreAwayForLong, "the node is lost though its age counts anew"},
      {"scheduler.beating_never_listed", AgentThatCannotBeCalledAtRest, "nobody finds that the agent cannot be called"},
      {"scheduler.budget_ignored", PreemptionOfASet, "preemption takes a set below min-available"},
      {"scheduler.calls_before_commit", DeleteBeforeALaunch, "a launch from a record that is about to change"},
      {"scheduler.coming_ignored", MachineOnItsWay, "evicted though a machine comes"},
      {"scheduler.counts_too_early", AlmostEmptyStore, "5 of 25 are deleted, node by node"},
      {"scheduler.deletion_told_as_old", DeletionAheadOfTheWatch, "is told as older than a list"},
      {"scheduler.drain_at_once", DrainOfASet, "a drain takes a set below min-available"},
      {"scheduler.empty_store_trusted", EmptyStoreUnderAFew, "deletes the few that a node runs"},
      {"scheduler.epoch_stays", TwoRegistrations, "has the epoch of the one before"},
      {"scheduler.events_stay", EventWithALease, "has the lease 0"},
      {"scheduler.half_gang_evicts", GangThatCannotBeWhole, "takes the place of work that runs"},
      {"scheduler.heartbeat_revives", NodeThatCannotBeDialled, "heartbeats alone make it Ready"},
      {"scheduler.known_epoch_ignored", AgentOfALostStore, "refuses every stamp after its store was lost"},
      {"scheduler.leader_unguarded", PausedLeader, "an old leader writes"},
      {"scheduler.leads_before_it_has_seen", NewLeaderWithAnOldCopy, "a copy from before its election"},
      {"scheduler.mismatch_unseen", MissingRuntime, "stays on a node that cannot run it"},
      {"scheduler.never_gives_up", WorkloadThatAlwaysFails, "a workload that always fails is never Failed"},
      {"scheduler.no_backoff", WorkloadThatFailsOnce, "launches without a back-off"},
      {"scheduler.no_cluster_rail", AlmostEmptyStore, "25 of 25 are deleted, node by node"},
      {"scheduler.no_failover", DeadNode, "stays on a dead node"},
      {"scheduler.no_grace", SlowStart, "launches within the grace"},
      {"scheduler.no_orphan_rail", EmptyStore, "an empty store deletes what a node runs"},
      {"scheduler.old_epoch_heard", HeartbeatOfAnEarlierLife, "a heartbeat of an older epoch is heard"},
      {"scheduler.quota_ignored", FullQuota, "a tenant gets more than its quota"},
      {"scheduler.refusal_forgotten", FullNode, "a node that refused is asked"},
      {"scheduler.refusals_flood", FloodOfRefusals, "500 decisions of refusals at once"},
      {"scheduler.report_stays", OperatorThatDied, "never evicts others"},
      {"scheduler.restored_store_trusted", RestoredStore, "a restored store deletes what a node runs"},
      {"scheduler.tenant_unbounded", AnotherTenantsWorkload, "a tenant deletes what is another's"},
      {"scheduler.waits_for_ever", OperatorThatLies, "never evicts others"},
  };
}

class SchedulerPlantedBug : public testing::TestWithParam<PlantedBug> {};
TEST_P(SchedulerPlantedBug, ShowsInItsStory) {
  EXPECT_EQ(GetParam().story(), "");
  const faults::ScopedMutant on(GetParam().name);
  const std::string found = GetParam().story();
  EXPECT_TRUE(found.contains(GetParam().says)) << found << "\nnot: " << GetParam().says;
}
INSTANTIATE_TEST_SUITE_P(Scheduler, SchedulerPlantedBug, testing::ValuesIn(PlantedBugs()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '.', '_');
  return name;
});

// The scheduler itself notices this one.
TEST(SchedulerPlantedBugDeathTest, RoomThatIsFreedEarlyIsAFailedCheck) {
  EXPECT_DEATH(
      {
        const faults::ScopedMutant on("scheduler.room_freed_early");
        MissingRuntime();
      },
      "holds no room");
}

// What the simulated world does not reach.
TEST(SchedulerProbes, AreReached) {
  faults::ResetProbes();
  for (const auto story : {DrainOfASet, WorkloadThatAlwaysFails, EmptyStore, MissingRuntime, FloodOfRefusals})
    EXPECT_EQ(story(), "");
  Lab lab;
  lab.AddNode("n1");
  lab.WriteBehind("/workloads/broken", "{");
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "web", .replicas = 2, .spec = Lab::Template()};
  lab.Ask(contract::ApplySpec{.spec = set});
  lab.Ask(Lab::ApplyOf("web-1"));  // before the set has its members
  lab.Run(1s);
  lab.agents["n1"].status_error = Status(Code::kInternal, "no answer from the runtime");
  lab.Apply("other");
  lab.Run(10s);
  lab.refuses_commits = Status(Code::kResourceExhausted, "the store is full");
  EXPECT_FALSE(lab.Try(Lab::ApplyOf("more")).ok());
  lab.Post(EventLease{.lease = 7});
  lab.refuses_commits = Status(Code::kNotFound, "the lease has ended");
  lab.Ask(Lab::ApplyOf("late"));
  lab.Run(3ms);
  lab.refuses_commits = Status();
  lab.Run(1s);
  EXPECT_TRUE(lab.Exists("late")) << "it is stored, with events that have no lease";
  const auto hits = faults::ProbeHits();
  for (const char* probe :
       {"scheduler.commit_refused", "scheduler.drain_waits", "scheduler.event_lease_gone", "scheduler.gave_up",
        "scheduler.member_taken", "scheduler.orphans_held", "scheduler.refusal_left_out", "scheduler.runtime_missing",
        "scheduler.status_error", "scheduler.unreadable_record"}) {
    EXPECT_TRUE(hits.contains(probe) && hits.at(probe) > 0) << probe;
  }
}

}  // namespace
}  // namespace muster::scheduler
