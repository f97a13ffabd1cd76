// Sets, drains, preemption, quotas, orphans, lists: what a cluster does beyond one workload.
#include <numeric>

#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;
using contract::DecisionKind;

model::WorkloadSpec SetOf(const std::string& name, int32_t replicas, model::WorkloadTemplate spec = Lab::Template()) {
  return {.kind = model::WorkloadKind::kSet, .name = name, .replicas = replicas, .spec = std::move(spec)};
}

int Up(Lab& lab, const std::string& set) {
  return lab.Get<contract::SetsListed>(contract::ListSets{.name = set}, 0s).sets.at(0).running;
}

contract::SetView ViewOfSet(Lab& lab, const std::string& set) {
  return lab.Get<contract::SetsListed>(contract::ListSets{.name = set}).sets.at(0);
}

// --- sets

TEST(SchedulerSets, MembersAreWorkloadsOfTheirOwn) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  EXPECT_EQ(lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("web", 3)}).result,
            contract::ApplyResult::kCreated);
  lab.Run(5s);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lab.Phase(fmt::format("web-{}", i)), "Running");
  const contract::SetView view = ViewOfSet(lab, "web");
  EXPECT_EQ(view.members, 3);
  EXPECT_EQ(view.available, 3);
  EXPECT_EQ(lab.Apply("single").result, contract::ApplyResult::kCreated);
  EXPECT_EQ(lab.Try(Lab::ApplyOf("web-0")).code(), Code::kFailedPrecondition) << "a member is changed through its set";
}

TEST(SchedulerSets, ScaleUpAndDownFromTheHighestNumber) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("web", 2)});
  lab.Run(5s);
  EXPECT_TRUE(lab.Try(contract::ScaleSet{.set = "web", .replicas = 4}).ok());
  lab.Run(5s);
  EXPECT_EQ(Up(lab, "web"), 4);
  EXPECT_TRUE(lab.Try(contract::ScaleSet{.set = "web", .replicas = 1}).ok());
  lab.Run(5s);
  EXPECT_TRUE(lab.Exists("web-0"));
  EXPECT_FALSE(lab.Exists("web-1"));
  EXPECT_FALSE(lab.Exists("web-3"));
}

TEST(SchedulerSets, MemberIdOfAnotherRefusesTheSet) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web-1");
  const Status status = lab.Try(contract::ApplySpec{.spec = SetOf("web", 3)});
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find("web-1"), std::string::npos);
}

// A plan is carried out as of what it has read.
TEST(SchedulerApply, WhatHasChangedSinceTheExpectedRevisionIsNotOverwritten) {
  Lab lab;
  lab.AddNode("n1");
  contract::ApplySpec set{.spec = SetOf("web", 1), .expect = 0};
  contract::ApplySpec single{.spec = {.name = "db", .spec = Lab::Template()}, .expect = 0};
  const auto aborted = [&lab](const contract::ApplySpec& apply) { return lab.Try(apply).code() == Code::kAborted; };
  ASSERT_TRUE(lab.Try(set).ok() && lab.Try(single).ok()) << "neither exists";
  lab.Run(5s);
  EXPECT_TRUE(aborted(set)) << "it exists";
  EXPECT_TRUE(aborted(single));

  set.expect = ViewOfSet(lab, "web").store_revision;
  single.expect = lab.Workload("db").store_revision;
  set.spec.replicas = 2;
  single.spec.spec.image = "newer";
  ASSERT_TRUE(lab.Try(set).ok() && lab.Try(single).ok()) << "they are as they were read";
  lab.Run(5s);
  set.spec.replicas = 3;
  single.spec.spec.image = "newest";
  EXPECT_TRUE(aborted(set)) << "it was changed since it was read";
  EXPECT_TRUE(aborted(single));
  lab.Run(5s);
  EXPECT_EQ(ViewOfSet(lab, "web").spec.replicas, 2);
  EXPECT_EQ(lab.Workload("db").spec.image, "newer");
}

TEST(SchedulerSets, RollingUpdateHoldsMaxUnavailableAndSurge) {
  for (const int surge : {0, 1}) {
    Lab lab;
    for (int i = 0; i < 3; ++i) lab.AddNode(fmt::format("n{}", i));
    model::WorkloadSpec spec = SetOf("web", 4);
    spec.max_unavailable = {.amount = 1};
    spec.max_surge = {.amount = surge};
    lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec});
    lab.Run(10s);
    ASSERT_EQ(Up(lab, "web"), 4);
    spec.spec.image = "newer";
    lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec}, 5ms);
    int least = 4;
    int most = 0;
    for (int i = 0; i < 4000 && ViewOfSet(lab, "web").available < 4; ++i) {
      least = std::min(least, Up(lab, "web"));
      most = std::max(most, ViewOfSet(lab, "web").members);
    }
    lab.Run(10s);
    EXPECT_GE(least, 3) << surge;
    EXPECT_LT(least, 4 + surge) << "something was replaced";
    EXPECT_LE(most, 4 + surge);
    const contract::SetView view = ViewOfSet(lab, "web");
    EXPECT_EQ(view.available, 4);
    EXPECT_EQ(view.members, 4);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(lab.Workload(fmt::format("web-{}", i)).spec.image, "newer");
    EXPECT_GE(lab.Decided(DecisionKind::kRolledOut), 4);
  }
}

TEST(SchedulerSets, RestartReplacesEveryMember) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("web", 2)});
  lab.Run(5s);
  const std::string before = lab.agents["n1"].workloads.at("web-0").status.revision;
  EXPECT_TRUE(lab.Try(contract::RestartSet{"web"}).ok());
  lab.Run(15s);
  EXPECT_NE(lab.agents["n1"].workloads.at("web-0").status.revision, before);
  EXPECT_EQ(lab.agents["n1"].applied.size(), 4U);
  EXPECT_EQ(Up(lab, "web"), 2);
}

TEST(SchedulerSets, JobCountsCompletions) {
  Lab lab;
  lab.AddNode("n1");
  model::WorkloadSpec spec = SetOf("job", 3);
  spec.kind = model::WorkloadKind::kJob;
  spec.spec.restart = model::RestartPolicy::kNever;
  for (int i = 0; i < 3; ++i) lab.agents["n1"].exits[fmt::format("job-{}", i)] = 0;
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec});
  lab.Run(10s);
  EXPECT_EQ(ViewOfSet(lab, "job").completed, 3);
  EXPECT_EQ(lab.agents["n1"].applied.size(), 3U);
}

TEST(SchedulerSets, DeletedSetTakesItsMembersAlong) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("web", 3)});
  lab.Run(5s);
  EXPECT_TRUE(lab.Try(contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "web"}).ok());
  lab.Run(5s);
  EXPECT_TRUE(lab.agents["n1"].workloads.empty());
  for (const auto& [key, row] : lab.store->rows) EXPECT_EQ(key.find("web"), std::string::npos) << key;
}

TEST(SchedulerSets, ExcludeKeepsMembersApartAndColocateTogether) {
  Lab lab;
  for (int i = 0; i < 3; ++i) lab.AddNode(fmt::format("n{}", i));
  model::WorkloadTemplate apart = Lab::Template(100);
  apart.exclude = {{.topology_key = "kubernetes.io/hostname"}};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("apart", 4, apart)});
  lab.Run(5s);
  std::set<std::string> nodes;
  for (int i = 0; i < 4; ++i) nodes.insert(lab.Workload(fmt::format("apart-{}", i)).node);
  EXPECT_EQ(nodes, (std::set<std::string>{"", "n0", "n1", "n2"}));
  EXPECT_EQ(lab.Workload("apart-3").reason, "exclude.own");
  model::WorkloadTemplate together = Lab::Template(100);
  together.colocate = {{.topology_key = "kubernetes.io/hostname"}};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("pair", 3, together)});
  lab.Run(5s);
  EXPECT_EQ(lab.Workload("pair-0").node, lab.Workload("pair-1").node);
  EXPECT_EQ(lab.Workload("pair-0").node, lab.Workload("pair-2").node);
}

// --- drain and preemption

TEST(SchedulerDrain, MovesWorkloadsWithinMinAvailable) {
  Lab lab;
  lab.AddNode("n1");
  model::WorkloadSpec spec = SetOf("web", 3);
  spec.min_available = {.amount = 2};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec});
  lab.Run(5s);
  lab.AddNode("n2");
  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1", .grace = 5s, .reason = "kernel"}, 5ms).ok());
  int least = 3;
  for (int i = 0; i < 2000; ++i) {
    lab.Run(5ms);
    least = std::min(least, Up(lab, "web"));
  }
  EXPECT_EQ(least, 2);
  EXPECT_EQ(lab.core.copy().OnNode("n1").size(), 0U);
  EXPECT_EQ(Up(lab, "web"), 3);
  EXPECT_TRUE(lab.Node("n1").draining);
  EXPECT_EQ(lab.agents["n1"].deleted.at(0).grace, 5s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 3);
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = false}).ok());
  EXPECT_FALSE(lab.Node("n1").draining);
}

TEST(SchedulerPreemption, HigherPriorityEvictsTheFewestAfterAWait) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  for (int i = 0; i < 4; ++i) lab.Apply(fmt::format("low{}", i), Lab::Template(4000));
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(4000);
  high.priority = 100;
  lab.Apply("high", high);
  lab.Run(8s);
  EXPECT_EQ(lab.Phase("high"), "Pending") << "not before preempt_after";
  lab.Run(5s);
  EXPECT_EQ(lab.Phase("high"), "Running");
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
  int pending = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string id = fmt::format("low{}", i);
    if (lab.Phase(id) != "Pending") continue;
    ++pending;
    EXPECT_EQ(std::ranges::count(lab.EventsOf(id), "WorkloadEvicted"), 1);
  }
  EXPECT_EQ(pending, 1);
}

TEST(SchedulerPreemption, AVictimThatIsMadeSmallerWhileItLeavesComesBackOnce) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("low", Lab::Template(8000));
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(4000);
  high.priority = 100;
  bool smaller = false;
  lab.observe = [&](const Effect& effect) {
    const auto* commit = std::get_if<contract::Commit>(&effect);
    const WorkloadRecord* low = lab.core.parts().drafts.Find<WorkloadRecord>("low");
    if (commit == nullptr || smaller || low == nullptr || !low->evict) return;
    smaller = true;
    lab.Ask(Lab::ApplyOf("low", Lab::Template(1000)));
  };
  lab.Apply("high", high);
  lab.Run(1min);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(lab.Workload("low").spec.resources.Get("cpu"), 1000);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
  EXPECT_EQ(lab.Phase("low"), "Running");
  EXPECT_EQ(lab.Phase("high"), "Running");
}

// A scheduler cannot know that it has no operator: one that has nothing to say looks the same. It waits in any case,
// unless it is told not to.
TEST(SchedulerPreemption, WaitsWithoutAnOperatorTooUnlessToldNotTo) {
  for (const bool at_once : {false, true}) {
    Lab lab({.preempt_after = at_once ? Duration(0s) : Duration(10s)});
    lab.AddNode("n1");
    lab.Apply("low", Lab::Template(8000));
    lab.Run(10min);  // and nothing was heard of an operator
    model::WorkloadTemplate high = Lab::Template(8000);
    high.priority = 100;
    lab.Apply("high", high);
    lab.Run(100ms);
    EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), at_once ? 1 : 0);
    lab.Run(9800ms);
    EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), at_once ? 1 : 0);
    lab.Run(200ms);
    EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
    lab.Run(2s);
    EXPECT_EQ(lab.Phase("high"), "Running");
  }
}

TEST(SchedulerPreemption, WithoutAWaitItStillWaitsForAMachineThatComes) {
  Lab lab({.preempt_after = 0s});
  lab.AddNode("n1");
  lab.Apply("low", Lab::Template(8000));
  lab.Run(5s);
  EXPECT_TRUE(lab.Try(contract::ReportMachines{.machines = {contract::ComingMachine{}}, .valid_for = 30s}).ok());
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 100;
  lab.Apply("high", high);
  lab.Run(29s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 0);
  lab.Run(2s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
}

TEST(SchedulerPreemption, RespectsMinAvailable) {
  Lab lab;
  lab.AddNode("n1");
  model::WorkloadSpec spec = SetOf("low", 2, Lab::Template(4000));
  spec.min_available = {.amount = 2};
  lab.Get<contract::Applied>(contract::ApplySpec{.spec = spec});
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(4000);
  high.priority = 100;
  lab.Apply("high", high);
  lab.Run(10min);
  EXPECT_EQ(lab.Phase("high"), "Pending");
  EXPECT_EQ(Up(lab, "low"), 2);
}

// Nodes of eight cpus in one rack, each full of work of low priority; and a gang that needs three of them.
class SchedulerGang : public testing::Test {
 protected:
  void AddNode(const std::string& node) {
    contract::NodeFacts facts = lab_.Facts(node);
    facts.labels = {{"rack", "a"}};
    ASSERT_TRUE(lab_.Register(std::move(facts)).accepted);
    lab_.StartBeating(node);
  }
  void AddFullNode(const std::string& node) {
    AddNode(node);
    lab_.Apply("low-" + node, Lab::Template(8000));
    lab_.Run(3s);
    ASSERT_EQ(lab_.Phase("low-" + node), "Running");
  }
  void ApplyGang() {
    model::WorkloadTemplate spec = Lab::Template(8000);
    spec.priority = 100;
    spec.colocate = {{.topology_key = "rack"}};
    lab_.Get<contract::Applied>(contract::ApplySpec{.spec = SetOf("gang", 3, spec)});
  }
  Lab lab_;
};

TEST_F(SchedulerGang, ThatCannotBeWholeEvictsNothing) {
  AddFullNode("n1");
  AddFullNode("n2");
  ApplyGang();
  lab_.Run(10min);
  EXPECT_EQ(lab_.Decided(DecisionKind::kEvicted), 0);
  EXPECT_EQ(lab_.Phase("low-n1"), "Running");
  EXPECT_EQ(lab_.Phase("low-n2"), "Running");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lab_.Phase(fmt::format("gang-{}", i)), "Pending");
  // Nothing of the trial is left: a workload by itself has its victim, and what may be evicted is what it was.
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 50;
  lab_.Apply("high", high);
  lab_.Run(1min);
  EXPECT_EQ(lab_.Phase("high"), "Running");
  EXPECT_EQ(lab_.Decided(DecisionKind::kEvicted), 1);
}

TEST_F(SchedulerGang, ThatBecomesWholeEvictsForAllItsMembers) {
  AddFullNode("n1");
  AddFullNode("n2");
  ApplyGang();
  lab_.Run(5min);
  ASSERT_EQ(lab_.Decided(DecisionKind::kEvicted), 0);
  AddNode("n3");  // one member has room there
  lab_.Run(5min);
  EXPECT_EQ(lab_.Decided(DecisionKind::kEvicted), 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(lab_.Phase(fmt::format("gang-{}", i)), "Running");
}

// Both are tried in one step: the gang first, whose first member would take the only one of the set that may go.
TEST_F(SchedulerGang, ThatMinAvailableKeepsFromBeingWholeLeavesTheBudgetToOthers) {
  AddNode("n1");
  AddNode("n2");
  model::WorkloadSpec low = SetOf("low", 2, Lab::Template(8000));
  low.min_available = {.amount = 1};
  lab_.Get<contract::Applied>(contract::ApplySpec{.spec = low});
  lab_.Run(5s);
  ASSERT_EQ(Up(lab_, "low"), 2);
  ApplyGang();
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 50;
  lab_.Apply("high", high);
  lab_.Run(1min);
  EXPECT_EQ(lab_.Phase("high"), "Running");
  EXPECT_EQ(Up(lab_, "low"), 1);
  EXPECT_EQ(lab_.Decided(DecisionKind::kEvicted), 1);
}

// A full node, and a workload that would evict what is on it.
void FillAndWant(Lab& lab) {
  lab.AddNode("n1");
  lab.Apply("low", Lab::Template(8000));
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 100;
  lab.Apply("high", high);
}
contract::ReportMachines Coming(Duration valid_for = 30s) {
  return {.machines = {{.resources = {{"cpu", 8000}, {"memory", int64_t{16} << 40}}, .labels = {}, .taints = {}}},
          .valid_for = valid_for};
}

TEST(SchedulerPreemption, WaitsForAMachineThatComes) {
  Lab lab;
  FillAndWant(lab);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(lab.Try(Coming()).ok());
    lab.Run(10s);
  }
  EXPECT_EQ(lab.Phase("high"), "Pending");
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 0);
  lab.AddNode("n2");
  lab.Run(5s);
  EXPECT_EQ(lab.Workload("high").node, "n2");
  EXPECT_EQ(lab.Phase("high"), "Running");
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 0);
}

TEST(SchedulerPreemption, WaitsForNoMachineThatCouldNotTakeIt) {
  const auto evicts = [](const contract::ComingMachine& machine) {
    Lab lab;
    FillAndWant(lab);
    EXPECT_TRUE(lab.Try(contract::ReportMachines{.machines = {machine}, .valid_for = 10min}).ok());
    lab.Run(12s);
    return lab.Decided(DecisionKind::kEvicted) == 1;
  };
  const model::Resources large = {{"cpu", 8000}, {"memory", int64_t{16} << 40}};
  EXPECT_FALSE(evicts({.resources = large, .labels = {}, .taints = {}}));
  EXPECT_FALSE(evicts({.resources = {}, .labels = {}, .taints = {}})) << "not known: it may";
  EXPECT_TRUE(evicts({.resources = {{"cpu", 7000}, {"memory", int64_t{16} << 40}}, .labels = {}, .taints = {}}));
  EXPECT_TRUE(evicts({.resources = large, .labels = {}, .taints = {{"gpu", "yes", "NoSchedule"}}}));
  EXPECT_FALSE(evicts({.resources = large, .labels = {}, .taints = {{"gpu", "yes", "PreferNoSchedule"}}}));
}

TEST(SchedulerPreemption, AMachineOfAnotherZoneIsNotWaitedFor) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  facts.labels = {{"zone", "a"}};
  EXPECT_TRUE(lab.Register(facts).accepted);
  lab.StartBeating("n1");
  lab.Apply("low", Lab::Template(8000));
  lab.Run(5s);
  model::WorkloadTemplate high = Lab::Template(8000);
  high.priority = 100;
  high.requirements = {{{"zone", model::Operator::kIn, {"a"}}}};
  lab.Apply("high", high);
  contract::ReportMachines report = Coming(10min);
  report.machines[0].labels = {{"zone", "b"}};
  EXPECT_TRUE(lab.Try(report).ok());
  lab.Run(12s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
}

TEST(SchedulerPreemption, AReportEndsByItselfAndWithTheNextOne) {
  Lab lab;
  FillAndWant(lab);
  EXPECT_TRUE(lab.Try(Coming()).ok());
  lab.Run(29s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 0);
  lab.Run(2s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1) << "an operator that died holds nobody back";
  Lab other;
  FillAndWant(other);
  EXPECT_TRUE(other.Try(Coming()).ok());
  other.Run(15s);
  EXPECT_TRUE(other.Try(contract::ReportMachines{.machines = {}, .valid_for = 30s}).ok());
  other.Run(1s);
  EXPECT_EQ(other.Decided(DecisionKind::kEvicted), 1) << "the machine does not come";
}

TEST(SchedulerPreemption, AnOperatorThatAlwaysSaysMachinesComeIsBelievedForTenMinutes) {
  Lab lab;
  FillAndWant(lab);
  for (int i = 0; i < 59; ++i) {
    EXPECT_TRUE(lab.Try(Coming(1000h)).ok());
    lab.Run(10s);
  }
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 0);
  EXPECT_TRUE(lab.Try(Coming(1000h)).ok());
  lab.Run(15s);
  EXPECT_EQ(lab.Decided(DecisionKind::kEvicted), 1);
  Lab once;
  EXPECT_TRUE(once.Try(Coming(1000h)).ok());
  once.Run(10min);
  FillAndWant(once);
  once.Run(12s);
  EXPECT_EQ(once.Decided(DecisionKind::kEvicted), 1) << "a report is believed for ten minutes";
}

TEST(SchedulerPreemption, TooManyMachinesAreRefusedByName) {
  Lab lab;
  lab.Run();
  contract::ReportMachines report;
  report.machines.resize(1001);
  const Status status = lab.Try(report);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("machines: 1001 are too many")) << status.message();
  report.machines.resize(1000);
  EXPECT_TRUE(lab.Try(report).ok());
  lab.LoseStore();
  EXPECT_EQ(lab.Try(report).code(), Code::kUnavailable);
}

TEST(SchedulerPreemption, EqualPriorityWaits) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("first", Lab::Template(8000));
  lab.Run(5s);
  lab.Apply("second", Lab::Template(8000));
  lab.Run(10min);
  EXPECT_EQ(lab.Phase("first"), "Running");
  EXPECT_EQ(lab.Phase("second"), "Pending");
}

// --- tenants

TEST(SchedulerTenants, QuotaRefusesWithTheFigures) {
  Lab lab;
  lab.AddNode("n1");
  model::Quota quota{.tenant = "shop", .limits = {{"cpu", 3000}}, .workloads = 10};
  EXPECT_EQ(lab.Get<contract::Applied>(contract::ApplyQuota{quota}).result, contract::ApplyResult::kCreated);
  // A burst is judged as a whole though nothing of it is durable yet.
  std::vector<contract::RequestId> requests;
  for (int i = 0; i < 5; ++i) {
    contract::ApplyWorkload apply = Lab::ApplyOf(fmt::format("w{}", i));
    apply.tenant = "shop";
    requests.push_back(lab.Ask(apply));
  }
  lab.Run(1s);
  int refused = 0;
  for (const contract::RequestId request : requests) {
    const Status& status = lab.answers.at(request).status;
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    EXPECT_NE(status.message().find("cpu 3 of 3"), std::string::npos) << status.message();
  }
  EXPECT_EQ(refused, 2);
  const auto listed = lab.Get<contract::QuotasListed>(contract::ListQuotas{"shop"});
  ASSERT_EQ(listed.quotas.size(), 1U);
  EXPECT_EQ(listed.quotas[0].used.Get("cpu"), 3000);
}

TEST(SchedulerTenants, WhatHasStoppedRunsAgainOnlyWithinTheQuota) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  const auto apply = [&](const std::string& id) {
    contract::ApplyWorkload body = Lab::ApplyOf(id);
    body.tenant = "shop";
    return lab.Try(body);
  };
  const auto desire = [&](const std::string& id, model::DesiredState state) {
    return lab.Try(contract::ApplyWorkload{.workload = id, .desired = state});
  };
  EXPECT_TRUE(apply("first").ok());
  lab.Run(2s);
  EXPECT_TRUE(desire("first", model::DesiredState::kStopped).ok());
  lab.Run(2s);
  EXPECT_TRUE(apply("second").ok()) << "what has stopped holds nothing";
  lab.Run(2s);
  EXPECT_EQ(desire("first", model::DesiredState::kRunning).code(), Code::kResourceExhausted);
  EXPECT_TRUE(lab.Delete("second").ok());
  lab.Run(2s);
  EXPECT_TRUE(desire("first", model::DesiredState::kRunning).ok());
}

TEST(SchedulerTenants, WhatHasCompletedIsAppliedAnewOnlyWithinTheQuota) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  const auto apply = [&](const std::string& id, const std::string& revision) {
    contract::ApplyWorkload body = Lab::ApplyOf(id);
    body.tenant = "shop";
    body.revision = revision;
    body.spec->restart = model::RestartPolicy::kNever;
    return lab.Try(body);
  };
  lab.agents["n1"].exits["first"] = 0;
  EXPECT_TRUE(apply("first", "r1").ok());
  lab.Run(5s);
  ASSERT_EQ(lab.Phase("first"), "Completed");
  lab.agents["n1"].exits.clear();
  EXPECT_TRUE(apply("second", "r1").ok()) << "what has completed holds nothing";
  lab.Run(2s);
  EXPECT_TRUE(apply("first", "r1").ok()) << "nothing changes";
  EXPECT_EQ(apply("first", "r2").code(), Code::kResourceExhausted) << "it would run again";
  EXPECT_EQ(lab.Phase("first"), "Completed");
  EXPECT_TRUE(lab.Delete("second").ok());
  lab.Run(2s);
  EXPECT_TRUE(apply("first", "r2").ok());
}

// The commit that gives something up may be slower than the one that takes it.
TEST(SchedulerTenants, WhatIsGivenUpIsFreeOnceThatIsDurable) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  const auto apply = [](const std::string& id, int64_t cpu) {
    contract::ApplyWorkload body = Lab::ApplyOf(id);
    body.tenant = "shop";
    body.revision = fmt::format("cpu-{}", cpu);
    body.spec->resources.Set("cpu", cpu);
    return body;
  };
  EXPECT_TRUE(lab.Try(apply("first", 1000)).ok());
  lab.Run(2s);
  const contract::RequestId less = lab.Ask(apply("first", 400));
  EXPECT_EQ(lab.Try(apply("second", 600)).code(), Code::kResourceExhausted);
  ASSERT_TRUE(lab.answers.contains(less));
  EXPECT_TRUE(lab.answers.at(less).status.ok());
  EXPECT_TRUE(lab.Try(apply("second", 600)).ok());
  EXPECT_EQ(lab.Get<contract::QuotasListed>(contract::ListQuotas{}).quotas[0].used.Get("cpu"), 1000);
}

TEST(SchedulerTenants, WhatACommitOfUnknownOutcomeMayHaveTakenIsCounted) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  contract::ApplyWorkload first = Lab::ApplyOf("first");
  first.tenant = "shop";
  lab.watch_held = true;
  lab.lose_answers = true;  // it happens, and nobody says so
  lab.Ask(first);
  lab.Run(5ms);
  lab.lose_answers = false;
  contract::ApplyWorkload second = Lab::ApplyOf("second");
  second.tenant = "shop";
  EXPECT_EQ(lab.Try(second).code(), Code::kResourceExhausted);
}

TEST(SchedulerTenants, WhatACommitOfASetOfUnknownOutcomeMayHaveTakenIsCounted) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  contract::ApplySpec set{.spec = SetOf("first", 1)};
  set.spec.tenant = "shop";
  lab.watch_held = true;
  lab.lose_answers = true;  // it happens, and nobody says so
  lab.Ask(set);
  lab.Run(5ms);
  lab.lose_answers = false;
  contract::ApplyWorkload second = Lab::ApplyOf("second");
  second.tenant = "shop";
  EXPECT_EQ(lab.Try(second).code(), Code::kResourceExhausted);
}

TEST(SchedulerTenants, WhatIsInDoubtForOneTenantCountsForAnotherThatTakesItOver) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  lab.lose_requests = true;
  lab.Ask(Lab::ApplyOf("first"));  // of no tenant
  lab.Run(5ms);
  contract::ApplyWorkload first = Lab::ApplyOf("first");
  first.tenant = "shop";
  lab.Ask(first);
  const auto& drafts = lab.core.parts().drafts.state().drafts;
  for (int i = 0; i < 10'000 && !drafts.contains(WorkloadObject("first")); ++i) lab.Run(10us);
  ASSERT_TRUE(drafts.contains(WorkloadObject("first"))) << "its commit is on its way";
  contract::ApplyWorkload second = Lab::ApplyOf("second");
  second.tenant = "shop";
  EXPECT_EQ(lab.Try(second, 0ms).code(), Code::kResourceExhausted);
}

// What is stopped holds nothing; retried or deleted it holds what it has on its node until that is gone.
TEST(SchedulerTenants, WhatIsRetriedOrDeletedWhileItIsStoppedIsAdmittedWhenItIsToRun) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  const auto apply = [](const std::string& id, model::DesiredState state) {
    contract::ApplyWorkload body = Lab::ApplyOf(id);
    body.tenant = "shop";
    body.desired = state;
    return body;
  };
  EXPECT_TRUE(lab.Try(apply("first", model::DesiredState::kRunning)).ok());
  lab.Run(2s);
  EXPECT_TRUE(lab.Try(apply("first", model::DesiredState::kStopped)).ok());
  lab.Run(2s);
  ASSERT_EQ(lab.Phase("first"), "Stopped");
  EXPECT_TRUE(lab.Try(apply("second", model::DesiredState::kRunning)).ok());
  lab.Run(2s);
  lab.Ask(contract::RetryWorkload{"first"});
  const Status retried = lab.Try(apply("first", model::DesiredState::kRunning));
  EXPECT_EQ(retried.message(), "tenant shop: cpu 1 of 1 in use, 1 more asked for");
  EXPECT_EQ(retried.code(), Code::kResourceExhausted);
  EXPECT_EQ(lab.Workload("first").desired, model::DesiredState::kStopped);
  lab.Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "first"});
  EXPECT_EQ(lab.Try(apply("first", model::DesiredState::kRunning)).code(), Code::kResourceExhausted);
}

TEST(SchedulerTenants, AQuotaThatIsAskedForTwiceIsAnsweredOnceItIsDurable) {
  Lab lab;
  lab.lose_requests = true;
  const contract::ApplyQuota quota{{.tenant = "shop", .limits = {{"cpu", 1000}}}};
  const contract::RequestId first = lab.Ask(quota);
  const contract::RequestId second = lab.Ask(quota);
  lab.Run(200ms);
  EXPECT_FALSE(lab.answers.contains(first));
  EXPECT_FALSE(lab.answers.contains(second));
  lab.lose_requests = false;
  lab.Run(5s);
  ASSERT_TRUE(lab.answers.contains(first) && lab.answers.contains(second));
  EXPECT_TRUE(lab.answers.at(first).status.ok());
  EXPECT_TRUE(lab.answers.at(second).status.ok());
}

TEST(SchedulerTenants, ATenantChangesWhatIsItsOwnAndNothingElse) {
  Lab lab;
  lab.AddNode("n1");
  const auto ask = [&](const std::string& tenant, contract::ClusterRequest body) {
    const contract::RequestId id = lab.Ask(contract::GetSummary{}) + 1'000'000;
    lab.Post(Asked{.request = id, .body = std::move(body), .tenant = tenant});
    lab.Run(10ms);
    return lab.answers.at(id).status;
  };
  EXPECT_TRUE(ask("shop", Lab::ApplyOf("web")).ok());
  EXPECT_EQ(lab.Workload("web").tenant, "shop") << "what a tenant applies is its own";
  contract::ApplyWorkload other = Lab::ApplyOf("api");
  other.tenant = "bank";
  EXPECT_EQ(ask("shop", other),
            Status(Code::kPermissionDenied, "tenant shop may not change what belongs to tenant bank"));
  EXPECT_TRUE(ask("bank", other).ok());
  const Status denied(Code::kPermissionDenied, "tenant shop may not change workload api, which is not its own");
  EXPECT_EQ(ask("shop", Lab::ApplyOf("api")), denied);
  EXPECT_EQ(ask("shop", contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "api"}), denied);
  EXPECT_EQ(ask("shop", contract::RetryWorkload{.workload = "api"}), denied);
  EXPECT_EQ(ask("shop", contract::ApplyWorkload{.workload = "api", .desired = model::DesiredState::kStopped}), denied);
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "farm", .replicas = 1, .spec = Lab::Template()};
  EXPECT_TRUE(ask("bank", contract::ApplySpec{.spec = set}).ok());
  const Status no_set(Code::kPermissionDenied, "tenant shop may not change set farm, which is not its own");
  EXPECT_EQ(ask("shop", contract::ScaleSet{.set = "farm", .replicas = 9}), no_set);
  EXPECT_EQ(ask("shop", contract::RestartSet{.set = "farm"}), no_set);
  EXPECT_EQ(
      ask("shop", contract::DeleteObject{.kind = contract::ObjectKind::kNode, .name = "n1", .force = true}).code(),
      Code::kPermissionDenied);
  EXPECT_EQ(lab.Workload("api").desired, model::DesiredState::kRunning);
  EXPECT_TRUE(ask("shop", contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"}).ok());
  EXPECT_TRUE(ask("", contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "api"}).ok())
      << "an operator may change all";
}

TEST(SchedulerTenants, ATenantReadsWhatIsItsOwnAndNothingElse) {
  Lab lab;
  lab.AddNode("n1");
  const auto ask = [&](const std::string& tenant, contract::ClusterRequest body) {
    const contract::RequestId id = lab.Ask(contract::GetSummary{}) + 1'000'000;
    lab.Post(Asked{.request = id, .body = std::move(body), .tenant = tenant});
    lab.Run(10ms);
    return lab.answers.at(id);
  };
  const auto code = [&](const std::string& tenant, contract::ClusterRequest body) {
    return ask(tenant, std::move(body)).status.code();
  };
  model::WorkloadSpec set{.kind = model::WorkloadKind::kSet, .name = "farm", .replicas = 1, .spec = Lab::Template()};
  ASSERT_TRUE(ask("shop", Lab::ApplyOf("web")).status.ok());
  ASSERT_TRUE(ask("bank", Lab::ApplyOf("api")).status.ok());
  ASSERT_TRUE(ask("bank", contract::ApplySpec{.spec = set}).status.ok());
  lab.Run(1s);
  EXPECT_EQ(code("shop", contract::GetWorkload{.workload = "web"}), Code::kOk);
  EXPECT_EQ(ask("shop", contract::GetWorkload{.workload = "api"}).status,
            Status(Code::kNotFound, "there is no workload api"));
  EXPECT_EQ(code("shop", contract::ExplainWorkload{.workload = "web"}), Code::kOk);
  EXPECT_EQ(code("shop", contract::ExplainWorkload{.workload = "api"}), Code::kNotFound);
  EXPECT_EQ(code("shop", contract::ListEvents{.workload = "api"}), Code::kNotFound);
  EXPECT_EQ(code("shop", contract::ListWorkloads{.tenant = "bank"}), Code::kNotFound);
  EXPECT_EQ(code("shop", contract::ListQuotas{.tenant = "bank"}), Code::kNotFound);
  const auto workloads = std::get<contract::WorkloadsListed>(*ask("shop", contract::ListWorkloads{}).reply);
  ASSERT_EQ(workloads.workloads.size(), 1u);
  EXPECT_EQ(workloads.workloads[0].workload, "web");
  EXPECT_TRUE(std::get<contract::SetsListed>(*ask("shop", contract::ListSets{}).reply).sets.empty());
  EXPECT_TRUE(std::get<contract::SetsListed>(*ask("shop", contract::ListSets{.name = "farm"}).reply).sets.empty());
  EXPECT_EQ(std::get<contract::SetsListed>(*ask("bank", contract::ListSets{}).reply).sets.size(), 1u);
  for (const auto& event : std::get<contract::EventsListed>(*ask("shop", contract::ListEvents{}).reply).events) {
    EXPECT_EQ(event.workload, "web");
  }
  EXPECT_EQ(std::get<contract::WorkloadsListed>(*ask("", contract::ListWorkloads{}).reply).workloads.size(), 3u)
      << "an operator reads all";
}

// At the scheduler's bound too: it holds no more afterwards.
TEST(SchedulerTenants, ASetThatChangesItsTenantIsCountedOnce) {
  auto store = std::make_shared<LabStore>();
  const auto set = [](const std::string& name, const std::string& tenant) {
    return model::WorkloadSpec{.kind = model::WorkloadKind::kJob,
                               .name = name,
                               .tenant = tenant,
                               .replicas = model::kMostReplicas,
                               .spec = Lab::Template()};
  };
  std::vector<int32_t> completed(model::kMostReplicas);
  std::iota(completed.begin(), completed.end(), 0);
  for (const char* name : {"a", "b"}) {
    const std::string key = KeyOf("", RecordKind::kSet, name);
    const SetRecord record{.spec = set(name, "shop"), .revision = "r", .completed = completed};
    store->rows[key] = {.key = key, .value = Encode(record), .created = 1, .modified = 1};
  }
  Lab lab({}, store);
  lab.Run(1s);
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set("c", "shop"), .dry_run = true}).code(), Code::kResourceExhausted);
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set("a", "bank"), .dry_run = true}), Status());
}

TEST(SchedulerTenants, RateLimitsApplies) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(
      contract::ApplyQuota{model::Quota{.tenant = "shop", .applies_milli_hz = 1000, .burst = 2}});
  int refused = 0;
  for (int i = 0; i < 4; ++i) {
    contract::ApplyWorkload apply = Lab::ApplyOf(fmt::format("w{}", i));
    apply.tenant = "shop";
    refused += lab.Try(apply, 1ms).code() == Code::kResourceExhausted;
  }
  EXPECT_EQ(refused, 2);
}

// --- orphans

// Within that time every node has reported, and what the store does not know is counted.
constexpr Duration kCounted = 4min;

TEST(SchedulerOrphans, UnknownWorkloadIsDeletedAfterAFreshComparison) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(kCounted);
  lab.agents["n1"].workloads["ghost"].status = {.workload = "ghost", .actual = ActualState::kRunning};
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(100ms);
  EXPECT_EQ(lab.On("n1", "ghost"), ActualState::kMissing);
  EXPECT_EQ(lab.On("n1", "web"), ActualState::kRunning);
}

TEST(SchedulerOrphans, RefusedDeleteOfAnOrphanIsADecision) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(kCounted);
  lab.agents["n1"].workloads["ghost"].status = {.workload = "ghost", .actual = ActualState::kRunning};
  lab.agents["n1"].delete_error = Status(Code::kFailedPrecondition, "the stamp 1/1 of ghost is old: it has 1/7");
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(100ms);
  const auto refused = std::ranges::find(lab.decisions, DecisionKind::kRefused, &contract::Decision::kind);
  ASSERT_NE(refused, lab.decisions.end());
  EXPECT_EQ(refused->workload + " " + refused->node + " " + refused->reason, "ghost n1 agent.delete_failed");
  EXPECT_TRUE(refused->message.ends_with("it has 1/7")) << refused->message;
  lab.agents["n1"].delete_error = {};
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(100ms);
  EXPECT_EQ(lab.On("n1", "ghost"), ActualState::kMissing);
}

TEST(SchedulerOrphans, ACopyThatIsBehindDeletesNothing) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(kCounted);
  // Another scheduler assigned "other" to this node, and the watch is late.
  lab.watch_held = true;
  WorkloadRecord other = *lab.core.copy().Find<WorkloadRecord>("web");
  other.workload.id = "other";
  lab.WriteBehind("/workloads/other", Encode(other));
  lab.agents["n1"].workloads["other"].status = {.workload = "other", .actual = ActualState::kRunning};
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(1s);
  EXPECT_EQ(lab.On("n1", "other"), ActualState::kRunning);
}

TEST(SchedulerOrphans, EmptyStoreUnderAHundredWorkloadsDeletesNothing) {
  Lab lab;
  for (int n = 0; n < 10; ++n) {
    const std::string node = fmt::format("n{}", n);
    for (int i = 0; i < 10; ++i) {
      const std::string id = fmt::format("w{}-{}", n, i);
      lab.agents[node].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
    }
    lab.AddNode(node);
  }
  lab.Run(10min);
  for (int n = 0; n < 10; ++n) {
    const std::string node = fmt::format("n{}", n);
    EXPECT_EQ(lab.agents[node].workloads.size(), 10U);
    EXPECT_EQ(lab.Node(node).orphans_held, 10);
  }
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 10) << "the alert is given once";
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n3"}).ok());
  lab.Run(30s);
  EXPECT_TRUE(lab.agents["n3"].workloads.empty());
  EXPECT_EQ(lab.agents["n4"].workloads.size(), 10U);
}

// Four on each of 25 nodes: no node has too many of them, the cluster has.
std::string TwentyFive(int n) { return fmt::format("n{:02}", n); }
void RunHundred(Lab& lab, bool native) {
  for (int n = 0; n < 25; ++n) {
    LabAgent& agent = lab.agents[TwentyFive(n)];
    agent.native = native;
    agent.epoch = native ? 7 : 0;
    for (int i = 0; i < 4; ++i) {
      const std::string id = fmt::format("w{:02}-{}", n, i);
      agent.workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
      if (native) agent.workloads[id].status.stamp = {.epoch = 7, .sequence = 9};
    }
    lab.AddNode(TwentyFive(n));
  }
}
size_t LeftOf(Lab& lab, const std::string& prefix) {
  size_t left = 0;
  for (const auto& [node, agent] : lab.agents) {
    left += static_cast<size_t>(
        std::ranges::count_if(agent.workloads, [&](const auto& entry) { return entry.first.starts_with(prefix); }));
  }
  return left;
}

class SchedulerOrphansOf : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Nodes, SchedulerOrphansOf, testing::Bool(),
                         [](const auto& row) { return row.param ? "native" : "foreign"; });

TEST_P(SchedulerOrphansOf, EmptyStoreUnderAHundredWorkloadsOfTwentyFiveNodesDeletesNothing) {
  Lab lab;
  RunHundred(lab, GetParam());
  lab.Run(30min);
  EXPECT_EQ(LeftOf(lab, "w"), 100U);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 25) << "the alert is given once for each node";
  EXPECT_EQ(lab.decisions.back().reason, "orphan.store_empty");
  lab.Apply("other");
  lab.Run(30min);
  EXPECT_EQ(LeftOf(lab, "w"), 100U) << "it stays, whatever comes into the store";
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n03"}).ok());
  lab.Run(1min);
  EXPECT_EQ(LeftOf(lab, "w"), 96U);
  EXPECT_EQ(lab.Node("n03").orphans_held, 0);
  EXPECT_EQ(lab.Node("n04").orphans_held, 4);
}

// Somebody has applied something before the nodes came: the store is as good as empty.
TEST_P(SchedulerOrphansOf, AlmostEmptyStoreUnderAHundredWorkloadsDeletesNothing) {
  Lab lab;
  lab.Apply("other");
  RunHundred(lab, GetParam());
  lab.Run(1min);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 0) << "not every node has reported: it is counted";
  lab.Run(30min);
  EXPECT_EQ(LeftOf(lab, "w"), 100U);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 25);
  const auto held = std::ranges::find(lab.decisions, DecisionKind::kOrphansHeld, &contract::Decision::kind);
  EXPECT_EQ(held->reason, "orphan.cluster_held");
  EXPECT_TRUE(held->message.ends_with(": 100 of 101 workloads of all nodes, 4 of them here")) << held->message;
  for (int n = 0; n < 25; ++n) {
    EXPECT_TRUE(lab.Try(contract::AcceptNode{TwentyFive(n)}).ok());
    lab.Run(20s);
    EXPECT_EQ(LeftOf(lab, "w"), 100U - 4 * (static_cast<size_t>(n) + 1)) << "one node after the other";
  }
}

// The store loses everything while the scheduler runs, and is written again at once.
TEST_P(SchedulerOrphansOf, StoreThatIsEmptiedUnderAHundredWorkloadsDeletesNothing) {
  Lab lab;
  for (int n = 0; n < 25; ++n) {
    lab.agents[TwentyFive(n)].native = GetParam();
    lab.AddNode(TwentyFive(n));
  }
  for (int i = 0; i < 100; ++i) lab.Apply(fmt::format("w{:02}", i), Lab::Template(50, 0));
  lab.Run(30min);
  ASSERT_EQ(LeftOf(lab, "w"), 100U);
  std::vector<std::string> keys;
  for (const auto& [key, row] : lab.store->rows) keys.push_back(key);
  for (const std::string& key : keys) lab.WriteBehind(key, std::nullopt);
  lab.Run(10ms);
  lab.Apply("other");
  for (int n = 0; n < 25; ++n) lab.Register(lab.Facts(TwentyFive(n)));
  lab.Run(30min);
  EXPECT_EQ(LeftOf(lab, "w"), 100U);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 25);
}

// Another store, without anything, takes the place of the store while the scheduler runs.
TEST_P(SchedulerOrphansOf, AnEmptyStoreInPlaceOfTheStoreUnderAHundredWorkloadsDeletesNothing) {
  Lab lab;
  for (int n = 0; n < 25; ++n) {
    lab.agents[TwentyFive(n)].native = GetParam();
    lab.AddNode(TwentyFive(n));
  }
  for (int i = 0; i < 100; ++i) lab.Apply(fmt::format("w{:02}", i), Lab::Template(50, 0));
  lab.Run(30min);
  ASSERT_EQ(LeftOf(lab, "w"), 100U);
  *lab.store = LabStore();
  lab.ReturnStore();
  lab.Run(10s);
  EXPECT_TRUE(lab.core.copy().All<WorkloadRecord>().empty());
  EXPECT_EQ(lab.Beat("n00").code(), Code::kNotFound) << "nodes are told to register";
  for (int n = 0; n < 25; ++n) EXPECT_TRUE(lab.Register(lab.Facts(TwentyFive(n))).accepted);
  lab.Apply("other");
  lab.Run(30min);
  EXPECT_EQ(LeftOf(lab, "w"), 100U);
  for (int n = 0; n < 25; ++n) EXPECT_TRUE(lab.agents[TwentyFive(n)].deleted.empty());
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 25);
  EXPECT_EQ(lab.Phase("other"), "Running");
  EXPECT_EQ(lab.core.View()->counters.conflicts, 0U);
}

// The backup is of the time when the nodes a* had four each; since then they have moved to b*. The store starts them
// again where its records say; what runs is left alone.
TEST_P(SchedulerOrphansOf, RestoredStoreUnderAHundredWorkloadsOfTwentyFiveNodesDeletesNothing) {
  Lab lab;
  const auto each = [&](const std::string& prefix, const auto& act) {
    for (int n = 0; n < 25; ++n) act(prefix + TwentyFive(n));
  };
  const auto add = [&](const std::string& node) {
    lab.agents[node].native = GetParam();
    lab.AddNode(node);
  };
  each("a", add);
  each("b", add);
  each("b", [&](const std::string& node) {
    EXPECT_TRUE(lab.Try(contract::CordonNode{.node = node, .cordoned = true}).ok());
  });
  for (int i = 0; i < 100; ++i) lab.Apply(fmt::format("w{:02}", i), Lab::Template(50, 0));
  lab.Run(1min);
  each("b", [&](const std::string& node) {
    EXPECT_TRUE(lab.Try(contract::CordonNode{.node = node, .cordoned = false}).ok());
  });
  const LabStore backup = *lab.store;
  each("a", [&](const std::string& node) {
    ASSERT_EQ(lab.core.copy().OnNode(node).size(), 4U);
    EXPECT_TRUE(lab.Try(contract::DrainNode{.node = node, .reason = "repair"}).ok());
  });
  lab.Run(20min);
  each("b", [&](const std::string& node) { ASSERT_EQ(lab.agents[node].workloads.size(), 4U); });

  *lab.store = backup;
  lab.Restart();
  lab.decisions.clear();
  lab.Run(30min);
  each("b", [&](const std::string& node) {
    EXPECT_TRUE(lab.agents[node].deleted.empty());
    EXPECT_EQ(lab.Node(node).orphans_held, 4);
  });
  each("a", [&](const std::string& node) { EXPECT_EQ(lab.agents[node].workloads.size(), 4U) << "they run twice"; });
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 25);
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"bn03"}).ok());
  lab.Run(1min);
  EXPECT_TRUE(lab.agents["bn03"].workloads.empty());
  EXPECT_EQ(lab.agents["bn04"].workloads.size(), 4U);
}

// A few are deleted as ever, and what is let through counts for those that follow.
TEST(SchedulerOrphans, TheRailCountsWhatWasLetThroughLately) {
  Lab lab;
  for (int n = 0; n < 10; ++n) lab.AddNode(TwentyFive(n));
  lab.Apply("web");
  lab.Run(kCounted);
  const auto appear = [&](int n) {
    const std::string id = fmt::format("ghost-{}", n);
    lab.agents[TwentyFive(n)].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
    lab.Run(11s);
  };
  for (int n = 0; n < 5; ++n) appear(n);
  EXPECT_EQ(LeftOf(lab, "ghost"), 0U);
  appear(5);
  EXPECT_EQ(LeftOf(lab, "ghost"), 1U) << "the sixth within a node timeout";
  EXPECT_EQ(lab.Node("n05").orphans_held, 1);
  lab.Run(kCounted);
  appear(6);
  EXPECT_EQ(LeftOf(lab, "ghost"), 1U) << "the others are long ago, the one that is held stays";
}

// The backup is of the time when n1 had them; since then they have moved to n2.
TEST(SchedulerOrphans, RestoredStoreUnderAHundredWorkloadsDeletesNothing) {
  Lab lab;
  for (const std::string node : {"n1", "n2"}) {
    lab.agents[node].native = true;
    lab.AddNode(node);
  }
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n2", .cordoned = true}).ok());
  for (int i = 0; i < 100; ++i) lab.Apply(fmt::format("w{:02}", i), Lab::Template(50, 0));
  lab.Run(1min);
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n2", .cordoned = false}).ok());
  lab.Run(1s);
  const LabStore backup = *lab.store;
  ASSERT_EQ(lab.core.copy().OnNode("n1").size(), 100U);

  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1", .reason = "repair"}).ok());
  lab.Run(20min);
  ASSERT_EQ(lab.core.copy().OnNode("n2").size(), 100U);
  ASSERT_TRUE(lab.agents["n1"].workloads.empty());
  ASSERT_EQ(lab.agents["n2"].workloads.size(), 100U);

  *lab.store = backup;
  lab.Restart();
  lab.decisions.clear();
  lab.Run(10min);
  EXPECT_TRUE(lab.agents["n2"].deleted.empty()) << "its heartbeats";
  EXPECT_EQ(lab.agents["n2"].workloads.size(), 100U);
  EXPECT_EQ(lab.Node("n2").orphans_held, 100);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 1) << "the alert is given once";
  EXPECT_FALSE(lab.Register(lab.Facts("n2")).state.remove_others) << "nor when it joins";
  EXPECT_EQ(lab.agents["n2"].workloads.size(), 100U);
  EXPECT_EQ(lab.Node("n2").orphans_held, 100) << "the alert stays";

  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n2"}).ok());
  lab.Run(1min);
  EXPECT_TRUE(lab.agents["n2"].workloads.empty());
  EXPECT_EQ(lab.agents["n1"].workloads.size(), 100U) << "where the restored store has them";
}

// As above, and n1 is no more: what the restored store has there is given to n3, by a later assignment than that of n2.
TEST(SchedulerOrphans, RestoredStoreWhoseNodesAreGoneDeletesNothing) {
  Lab lab;
  for (const std::string node : {"n1", "n2", "n3"}) {
    lab.agents[node].native = true;
    lab.AddNode(node);
  }
  const auto cordon = [&](const std::string& node, bool cordoned) {
    EXPECT_TRUE(lab.Try(contract::CordonNode{.node = node, .cordoned = cordoned}).ok());
  };
  cordon("n2", true);
  cordon("n3", true);
  for (int i = 0; i < 100; ++i) lab.Apply(fmt::format("w{:02}", i), Lab::Template(50, 0));
  lab.Run(1min);
  const LabStore backup = *lab.store;
  cordon("n2", false);
  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n1", .reason = "repair"}).ok());
  lab.Run(20min);
  ASSERT_EQ(lab.agents["n2"].workloads.size(), 100U);
  lab.StopBeating("n1");
  lab.agents["n1"].unreachable = true;

  *lab.store = backup;
  lab.store->revision += 1'000'000;  // as a SQLite store is restored
  lab.StopBeating("n2");             // until the failover is over: what it has is not known to be unknown before
  lab.Restart();
  cordon("n3", false);
  lab.Run(5min);
  ASSERT_EQ(lab.core.copy().OnNode("n3").size(), 100U);
  lab.StartBeating("n2");
  lab.Run(30min);
  EXPECT_TRUE(lab.agents["n2"].deleted.empty());
  EXPECT_EQ(lab.Node("n2").orphans_held, 100);
  lab.Restart();
  lab.Run(30min);
  EXPECT_TRUE(lab.agents["n2"].deleted.empty()) << "nor does the next scheduler";
  EXPECT_EQ(lab.agents["n2"].workloads.size(), 100U);
  cordon("n2", true);

  // They go on to another node: what is held stays so.
  lab.agents["n4"].native = true;
  lab.AddNode("n4");
  EXPECT_TRUE(lab.Try(contract::DrainNode{.node = "n3", .reason = "repair"}).ok());
  lab.Run(20min);
  EXPECT_EQ(lab.core.copy().OnNode("n4").size(), 100U);
  EXPECT_TRUE(lab.agents["n3"].workloads.empty());
  EXPECT_EQ(lab.agents["n2"].workloads.size(), 100U);
  EXPECT_EQ(lab.Node("n2").orphans_held, 100);
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n2"}).ok());
  lab.Run(1min);
  EXPECT_TRUE(lab.agents["n2"].workloads.empty());
}

// What a node had of a workload is released once, not for ever.
TEST(SchedulerOrphans, WhatIsAppliedAgainIsNotReleasedAnyMore) {
  Lab lab;
  lab.AddNode("n1");
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(kCounted);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(lab.Delete(fmt::format("w{}", i)).ok());
  lab.Run(1s);
  ASSERT_TRUE(lab.core.copy().All<WorkloadRecord>().empty());
  EXPECT_EQ(lab.core.parts().orphans.state().released.size(), 8U);
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(1s);
  EXPECT_TRUE(lab.Beat("n1").ok());
  EXPECT_TRUE(lab.core.parts().orphans.state().released.empty());
  for (int i = 0; i < 8; ++i) lab.WriteBehind(fmt::format("/workloads/w{}", i), std::nullopt);
  lab.Run(30min);
  EXPECT_EQ(lab.agents["n1"].workloads.size(), 8U) << "a store that lost them is no reason to delete them";
  EXPECT_EQ(lab.Node("n1").orphans_held, 8);
}

TEST(SchedulerOrphans, ARemovalThatTheStoreRefusesReleasesNothing) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(5s);
  lab.StopBeating("n1");
  lab.agents["n1"].unreachable = true;  // so that the workload is removed without it
  lab.Run(30s);
  lab.refuses_commits = Status(Code::kResourceExhausted, "the store is full");
  EXPECT_EQ(lab.Delete("web").code(), Code::kResourceExhausted);
  lab.Run(1s);
  EXPECT_TRUE(lab.Exists("web"));
  EXPECT_TRUE(lab.core.parts().orphans.state().released.empty());
}

TEST(SchedulerOrphans, ANodeThatIsForgottenHasReleasedNothing) {
  Lab lab;
  lab.AddNode("n1");
  lab.AddNode("n2");
  for (int i = 0; i < 4; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(5s);
  lab.StopBeating("n1");
  lab.StopBeating("n2");
  lab.Run(5min);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(lab.Delete(fmt::format("w{}", i)).ok());
  lab.Run(1s);
  EXPECT_EQ(lab.core.parts().orphans.state().released.size(), 2U);
  for (const std::string node : {"n1", "n2"}) {
    EXPECT_TRUE(lab.Try(contract::DeleteObject{.kind = contract::ObjectKind::kNode, .name = node, .force = true}).ok());
  }
  lab.Run(1s);
  EXPECT_TRUE(lab.core.parts().orphans.state().released.empty());
  for (int i = 2; i < 4; ++i) EXPECT_TRUE(lab.Delete(fmt::format("w{}", i)).ok());
  lab.Run(1s);
  EXPECT_FALSE(lab.Exists("w3"));
  EXPECT_TRUE(lab.core.parts().orphans.state().released.empty()) << "nor when it is not known any more";
}

// Some heartbeats have a part of what the node has.
TEST(SchedulerOrphans, AnIncompleteReportDoesNotEndTheAlert) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(kCounted);
  const auto appear = [&](const std::string& id) {
    lab.agents["n1"].workloads[id].status = {
        .workload = id, .actual = ActualState::kRunning, .stamp = {.epoch = 1, .sequence = 1}};
  };
  for (int i = 0; i < 10; ++i) appear(fmt::format("ghost-{}", i));
  EXPECT_TRUE(lab.Beat("n1").ok());
  ASSERT_EQ(lab.Node("n1").orphans_held, 10);
  contract::Heartbeat beat{.node = "n1", .epoch = lab.agents["n1"].epoch, .statuses_complete = false};
  EXPECT_TRUE(lab.Try(beat).ok());
  EXPECT_EQ(lab.Node("n1").orphans_held, 10);
  beat.statuses = {lab.agents["n1"].workloads.at("ghost-3").status};
  EXPECT_TRUE(lab.Try(beat).ok());
  EXPECT_EQ(lab.Node("n1").orphans_held, 10);
  EXPECT_TRUE(lab.agents["n1"].deleted.empty());
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 1);
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n1"}, 0ms).ok());
  beat.statuses.clear();
  EXPECT_TRUE(lab.Try(beat).ok());
  lab.Run(1min);
  EXPECT_EQ(lab.agents["n1"].workloads.size(), 1U) << "what was accepted stays so";
}

// Whatever an agent says, and for how long: memory has a bound, and what is beyond it is not deleted either.
TEST(SchedulerOrphans, IncompleteReportsAreNotedUpToABound) {
  Lab lab;
  for (const std::string node : {"n1", "n2"}) {
    lab.agents[node].native = true;
    lab.AddNode(node);
  }
  lab.StopBeating("n1");
  lab.StopBeating("n2");
  contract::Heartbeat beat{.node = "n1", .epoch = lab.agents["n1"].epoch, .statuses_complete = false};
  const auto status = [](const std::string& id) {
    return contract::WorkloadStatus{
        .workload = id, .actual = ActualState::kRunning, .stamp = {.epoch = 1, .sequence = 1}};
  };
  for (int part = 0; part < 12; ++part) {
    beat.statuses.clear();
    for (int i = 0; i < 1000; ++i) beat.statuses.push_back(status(fmt::format("ghost-{}-{}", part, i)));
    EXPECT_TRUE(lab.Try(beat, 1s).ok());
  }
  EXPECT_EQ(lab.Node("n1").orphans_held, 10'000);
  EXPECT_EQ(lab.core.parts().orphans.state().reports.at("n1").unknown.size(), 10'000U);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphansHeld), 1);
  // One that was not noted gets a record, on another node: it has not moved there.
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = true}).ok());
  lab.Apply("ghost-11-999");
  lab.Run(5s);
  ASSERT_TRUE(lab.core.copy().OnNode("n2").contains("ghost-11-999"));
  beat.statuses = {status("ghost-11-999")};
  beat.statuses[0].stamp = lab.core.copy().Find<WorkloadRecord>("ghost-11-999")->stamp;
  EXPECT_TRUE(lab.Try(beat, 1s).ok());
  EXPECT_TRUE(lab.agents["n1"].deleted.empty());
  EXPECT_EQ(lab.Node("n1").orphans_held, 10'000);
  EXPECT_EQ(lab.Decided(DecisionKind::kOrphanDeleted), 0);
  EXPECT_TRUE(lab.Try(contract::AcceptNode{"n1"}, 0ms).ok());
  EXPECT_EQ(lab.core.parts().orphans.state().reports.at("n1").unknown.size(), 0U);
}

// More of what a node had is stored for another node by now than one of its reports had.
TEST(SchedulerOrphans, TheRailCountsWhatIncompleteReportsHadTogether) {
  Lab lab;
  for (const std::string node : {"n1", "n2"}) {
    lab.agents[node].native = true;
    lab.AddNode(node);
  }
  lab.Apply("web");
  lab.Run(lab.config().node_timeout - 8s);
  for (const std::string node : {"n1", "n2"}) {
    lab.StopBeating(node);
    lab.agents[node].hangs = true;  // nor does a list say more
  }
  contract::Heartbeat beat{.node = "n1", .epoch = lab.agents["n1"].epoch, .statuses_complete = false};
  const auto report = [&](int ghost) {
    beat.statuses = {{.workload = fmt::format("ghost-{}", ghost),
                      .actual = ActualState::kRunning,
                      .stamp = {.epoch = 1, .sequence = 1}}};
    EXPECT_TRUE(lab.Try(beat, 10ms).ok());
  };
  for (int i = 0; i < 9; ++i) report(i);
  ASSERT_EQ(lab.core.parts().orphans.state().reports.at("n1").unknown.size(), 9U);
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "n1", .cordoned = true}).ok());
  for (int i = 0; i < 9; ++i) lab.Apply(fmt::format("ghost-{}", i), Lab::Template(50));
  lab.Run(10s);
  ASSERT_GE(lab.core.copy().OnNode("n2").size(), 9U);
  report(9);
  lab.Run(1s);
  EXPECT_EQ(lab.Node("n1").orphans_held, 1) << "ten of few, not of 2^64";
  EXPECT_TRUE(lab.agents["n1"].deleted.empty());
}

// A record of a version that did not keep the sequence of the assignment before.
TEST(SchedulerOrphans, WhatMovedUnderAnOlderVersionIsKnown) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.agents["n2"].native = true;
  lab.AddNode("n1");
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(5s);
  lab.AddNode("n2");
  lab.StopBeating("n1");
  lab.Run(5min);
  ASSERT_EQ(lab.core.copy().OnNode("n2").size(), 8U);
  for (int i = 0; i < 8; ++i) {
    const std::string id = fmt::format("w{}", i);
    WorkloadRecord record = *lab.core.copy().Find<WorkloadRecord>(id);
    EXPECT_GT(record.previous_sequence, 0U) << "every move has it";
    record.previous_sequence = 0;
    lab.WriteBehind("/workloads/" + id, Encode(record));
  }
  lab.Run(1s);
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(1min);
  EXPECT_EQ(lab.Node("n1").orphans_held, 0);
  EXPECT_TRUE(lab.agents["n1"].workloads.empty());
  // What n1 was given later than the record says is not known.
  const uint64_t later = lab.core.copy().Find<WorkloadRecord>("w0")->stamp.sequence + 1;
  for (int i = 0; i < 8; ++i) {
    const std::string id = fmt::format("w{}", i);
    lab.agents["n1"].workloads[id].status = {
        .workload = id, .actual = ActualState::kRunning, .stamp = {.epoch = 1, .sequence = later}};
  }
  EXPECT_TRUE(lab.Beat("n1").ok());
  EXPECT_EQ(lab.Node("n1").orphans_held, 8);
}

TEST(SchedulerOrphans, NativeNodeThatReturnsStopsAllThatMovedAway) {
  Lab lab;
  lab.agents["n1"].native = true;
  lab.agents["n2"].native = true;
  lab.AddNode("n1");
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(5s);
  lab.AddNode("n2");
  lab.StopBeating("n1");
  lab.Run(5min);
  ASSERT_EQ(lab.core.copy().OnNode("n2").size(), 8U);
  EXPECT_TRUE(lab.Register(lab.Facts("n1")).state.remove_others) << "their assignments to n2 are later: no rail";
  EXPECT_TRUE(lab.agents["n1"].workloads.empty());
}

TEST(SchedulerOrphans, NativeNodeOfAnEmptyStoreIsToldToRemoveNothing) {
  Lab lab;
  lab.agents["n1"].native = true;
  for (int i = 0; i < 10; ++i) {
    const std::string id = fmt::format("w{}", i);
    lab.agents["n1"].workloads[id].status = {.workload = id, .actual = ActualState::kRunning};
  }
  EXPECT_FALSE(lab.Register(lab.Facts("n1")).state.remove_others);
  EXPECT_EQ(lab.agents["n1"].workloads.size(), 10U);
}

// A container that is made anew has another host name, which is the id of its node: its work runs on.
struct NodeWithANewId {
  NodeWithANewId() {
    lab.AddNode("old");
    for (const char* id : {"a", "b", "c"}) lab.Apply(id);
    lab.Run(10min);
    lab.StopBeating("old");
    lab.renamed["new"] = "old";
    lab.AddNode("new");
    lab.Run(1min);
  }
  // Every workload that runs there.
  std::set<std::string> There() {
    std::set<std::string> there;
    for (const contract::WorkloadStatus& status : lab.StatusesOf("old")) {
      if (status.actual == ActualState::kRunning) there.insert(status.workload);
    }
    return there;
  }
  Lab lab;
  const std::set<std::string> all{"a", "b", "c"};
};

TEST(SchedulerOrphans, WhatRunsOnANodeThatHasGotAnotherIdRunsOn) {
  const auto deleted = [] {
    NodeWithANewId node;
    Lab& lab = node.lab;
    EXPECT_EQ(lab.Workload("a").node, "old");
    // What is placed under the new id is no orphan of the old one either.
    lab.Apply("d");
    lab.Run(10min);
    for (const char* id : {"a", "b", "c", "d"}) {
      EXPECT_EQ(lab.Phase(id), "Running");
      EXPECT_EQ(lab.Workload(id).node, "new");
    }
    return lab.agents["old"].deleted.size();
  };
  EXPECT_EQ(deleted(), 0U);
  const faults::ScopedMutant on("scheduler.new_id_is_another");
  EXPECT_GT(deleted(), 0U);
}

TEST(SchedulerOrphans, WhatMovedAwayFromANodeThatHasGotAnotherIdIsDeletedThere) {
  NodeWithANewId node;
  Lab& lab = node.lab;
  EXPECT_EQ(node.There(), node.all);
  EXPECT_TRUE(lab.Try(contract::CordonNode{.node = "new"}).ok());
  lab.AddNode("other");
  lab.Run(10min);
  for (const std::string& id : node.all) EXPECT_EQ(lab.Workload(id).node, "other");
  EXPECT_TRUE(lab.agents["old"].workloads.empty());
  EXPECT_EQ(lab.Node("new").orphans_held, 0);
}

TEST(SchedulerOrphans, NodesThatAreBothHeardAreTwoThoughTheyNameOneAddress) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("web");
  lab.Run(10min);
  lab.renamed["n2"] = "n1";  // as behind a translation of addresses
  lab.AddNode("n2");
  lab.Run(1min);
  EXPECT_FALSE(lab.agents["n1"].deleted.empty()) << "the record gives it to another node that lives";
}

TEST(SchedulerOrphans, ReturningNodeCleansUpAllThatMovedAway) {
  Lab lab;
  lab.AddNode("n1");
  for (int i = 0; i < 8; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(5s);
  lab.AddNode("n2");
  lab.StopBeating("n1");
  lab.Run(5min);
  EXPECT_EQ(lab.core.copy().OnNode("n2").size(), 8U);
  EXPECT_EQ(lab.agents["n1"].workloads.size(), 8U);
  EXPECT_TRUE(lab.Beat("n1").ok());
  lab.Run(1s);
  EXPECT_TRUE(lab.agents["n1"].workloads.empty()) << "they are known to be another's: no rail holds them";
}

// --- lists and filters

TEST(SchedulerLists, ArePagedAndFiltered) {
  Lab lab;
  lab.AddNode("n1");
  for (int i = 0; i < 7; ++i) lab.Apply(fmt::format("w{}", i), Lab::Template(100));
  lab.Run(5s);
  auto page = lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.page = {.limit = 3}});
  EXPECT_EQ(page.workloads.size(), 3U);
  EXPECT_EQ(page.next, "w2");
  page = lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.page = {.limit = 4, .token = page.next}});
  EXPECT_EQ(page.workloads.size(), 4U);
  EXPECT_EQ(page.next, "");
  EXPECT_EQ(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.status = "running"}).workloads.size(), 7U);
  EXPECT_EQ(lab.Get<contract::WorkloadsListed>(contract::ListWorkloads{.status = "Failed"}).workloads.size(), 0U);
  EXPECT_EQ(lab.Get<contract::NodesListed>(contract::ListNodes{.status = "Ready"}).nodes.size(), 1U);
  const auto summary = lab.Get<contract::Summary>(contract::GetSummary{});
  EXPECT_EQ(summary.running_workloads, 7);
  EXPECT_EQ(summary.ready_nodes, 1);
}

TEST(SchedulerLists, EventsAreTheNewestUpToTheLimit) {
  Lab lab;
  lab.AddNode("n1");
  lab.Apply("mine");
  contract::ApplyWorkload apply = Lab::ApplyOf("theirs");
  apply.tenant = "t";
  lab.Get<contract::Applied>(apply);
  lab.Run(5s);
  const auto write = [&](const std::string& workload, int number, Duration age) {
    const EventRecord event{.type = "Scheduled", .workload = workload, .at = lab.now.wall - age};
    lab.WriteBehind(fmt::format("/events/{}.{}", workload, number), Encode(event));
  };
  // In pairs of the same moment, the older ones with the higher numbers.
  for (int i = 0; i < 200; ++i) write("mine", 100 + i, (i / 2 - 200) * 1s);
  write("theirs", 100, -1s);
  lab.Run(1s);
  const auto list = [&](int32_t limit, const std::string& tenant) {
    const contract::RequestId id = 1'000'000 + limit;
    lab.Post(Asked{.request = id, .body = contract::ListEvents{.limit = limit}, .tenant = tenant});
    lab.Run();
    std::vector<std::string> ids;
    for (const auto& event : std::get<contract::EventsListed>(*lab.answers.at(id).reply).events)
      ids.push_back(event.id);
    return ids;
  };
  EXPECT_EQ(list(5, ""), (std::vector<std::string>{"mine.101", "mine.100", "mine.103", "mine.102", "mine.105"}));
  EXPECT_EQ(list(0, "").size(), 100U);
  const std::vector<std::string> all = list(1000, "");
  EXPECT_EQ(all.size(), lab.store->rows.size() -
                            static_cast<size_t>(std::ranges::count_if(
                                lab.store->rows, [](const auto& row) { return !row.first.starts_with("/events/"); })));
  EXPECT_EQ(all[200], "theirs.100");
  EXPECT_EQ(list(1, "t"), std::vector<std::string>{"theirs.100"}) << "others' events take no place from a tenant's";
}

TEST(SchedulerPlacement, EachRefusalNamesItsFilter) {
  struct Row {
    std::string name;
    std::function<void(contract::NodeFacts&)> node;
    std::function<void(contract::ApplyWorkload&)> workload;
    std::string reason;
    std::string text;
  };
  const std::vector<Row> rows{
      {"labels", {}, [](auto& w) { w.require_labels["zone"] = "b"; }, "node.labels", "label zone In [b]"},
      {"type", [](auto& n) { n.supported_types = {model::WorkloadType::kVm}; }, {}, "node.type", "runs no container"},
      {"cpu", {}, [](auto& w) { w.spec->resources.Set("cpu", 9000); }, "fit.cpu", "cpu short by 1"},
      {"memory",
       {},
       [](auto& w) { w.spec->resources.Set("memory", int64_t{18} * 1000 << 30); },
       "fit.memory",
       "memory short by"},
      {"disk", [](auto& n) { n.total.Set("disk", int64_t{1000} << 30); },
       [](auto& w) { w.spec->resources.Set("disk", int64_t{2000} << 30); }, "fit.disk", "disk short by 1Gi"},
      {"taint", [](auto& n) { n.taints = {{"gpu", "yes", "NoSchedule"}}; }, {}, "node.taint", "taint gpu=yes"},
  };
  for (const Row& row : rows) {
    Lab lab;
    contract::NodeFacts facts = lab.Facts("n1");
    if (row.node) row.node(facts);
    EXPECT_TRUE(lab.Register(facts).accepted);
    contract::ApplyWorkload apply = Lab::ApplyOf("web");
    if (row.workload) row.workload(apply);
    const auto applied = lab.Get<contract::Applied>(apply);
    EXPECT_NE(applied.refusal.find("n1: "), std::string::npos) << row.name << ": " << applied.refusal;
    EXPECT_NE(applied.refusal.find(row.text), std::string::npos) << row.name << ": " << applied.refusal;
    EXPECT_EQ(lab.Workload("web").reason, row.reason) << row.name;
  }
}

TEST(SchedulerPlacement, HostPortsAreEnforced) {
  Lab lab;
  lab.AddNode("n1");
  model::WorkloadTemplate spec = Lab::Template(100);
  spec.ports = {{.container = 80, .host = 8080}};
  lab.Apply("a", spec);
  const contract::Applied applied = lab.Apply("b", spec);
  EXPECT_NE(applied.refusal.find("port TCP 0.0.0.0:8080 is held by a"), std::string::npos) << applied.refusal;
}

TEST(SchedulerPlacement, PortsThatAComposeFilePublishesAreEnforced) {
  Lab lab;
  contract::NodeFacts facts = lab.Facts("n1");
  facts.supported_types = {model::WorkloadType::kContainer, model::WorkloadType::kCompose};
  EXPECT_TRUE(lab.Register(facts).accepted);
  model::WorkloadTemplate file = Lab::Template(100);
  file.type = model::WorkloadType::kCompose;
  file.image.clear();
  file.command.clear();
  file.env = {{"PORT", "8080"}};
  file.compose = "services:\n  web:\n    image: web\n    build: .\n    ports: [\"${PORT}:80\"]\n";
  lab.Apply("a", file);
  file.env = {};
  file.compose = "services:\n  web: {image: web, ports: [{target: 80, published: 8080}]}\n";
  const std::string held = "port TCP 0.0.0.0:8080 is held by a";
  EXPECT_TRUE(lab.Apply("b", file).refusal.contains(held)) << "another file";
  model::WorkloadTemplate container = Lab::Template(100);
  container.ports = {{.container = 80, .host = 8080}};
  EXPECT_TRUE(lab.Apply("c", container).refusal.contains(held)) << "a container";
  file.compose = "services:\n  web: {image: web, ports: [\"8081:80\"]}\n";
  EXPECT_EQ(lab.Apply("d", file).refusal, "");
}

TEST(SchedulerPlacement, ManyNodesAreSummarisedByClass) {
  Lab lab;
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(lab.Register(lab.Facts(fmt::format("n{:02}", i))).accepted);
  const contract::Applied applied = lab.Apply("web", Lab::Template(9000));
  EXPECT_NE(applied.refusal.find("25 nodes: cpu short by 1"), std::string::npos) << applied.refusal;
  EXPECT_EQ(lab.Get<contract::Explanation>(contract::ExplainWorkload{"web"}).nodes.size(), 25U);
}

TEST(SchedulerPlacement, NodeWithoutStoragePoolsIsNotFilteredByDisk) {
  Lab lab;
  lab.AddNode("n1");
  model::WorkloadTemplate spec = Lab::Template();
  spec.resources.Set("disk", int64_t{1000} << 40);
  lab.Apply("web", spec);
  lab.Run(2s);
  EXPECT_EQ(lab.Phase("web"), "Running");
}

}  // namespace
}  // namespace muster::scheduler
