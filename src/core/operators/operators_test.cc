#include "core/operators/operators.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/probe.h"
#include "model/requirement.h"

namespace muster::operators {
namespace {

using contract::NodeView;
using contract::WorkloadView;
using model::MachineState;

// A core on virtual time, with what it said.
class Lab {
 public:
  void Give(const Event& event) {
    effects_.clear();
    core_.Step(event, now_, effects_);
    core_.CheckInvariants();
    // The state survives a journal at every step.
    auto copy = Core::Load(core_.Save());
    ASSERT_TRUE(copy.has_value());
    EXPECT_EQ(copy->Save(), core_.Save());
    std::string later = core_.Save();
    ++later.front();
    EXPECT_FALSE(Core::Load(later).has_value()) << "another layout";
  }
  // Lets time pass, waking the core as it asks.
  void Pass(Duration duration) {
    const MonoTime end = now_.mono + duration;
    std::vector<Effect> all;
    while (true) {
      const auto next = core_.NextWake();
      if (!next || *next > end) break;
      Advance(std::max(*next, now_.mono) - now_.mono);
      Give(contract::Wake{});
      all.insert(all.end(), effects_.begin(), effects_.end());
    }
    Advance(end - now_.mono);
    effects_ = std::move(all);
  }
  // Effects of one kind.
  template <class T>
  std::vector<T> Said() const {
    std::vector<T> said;
    for (const Effect& effect : effects_) {
      if (const T* one = std::get_if<T>(&effect)) said.push_back(*one);
    }
    return said;
  }
  // Messages of one kind to the shard.
  template <class T>
  std::vector<T> Sent() const {
    std::vector<T> sent;
    for (const Send& send : Said<Send>()) {
      if (const T* one = std::get_if<T>(&send.message)) sent.push_back(*one);
    }
    return sent;
  }
  void Finish(const Call& call, Status status = {}) {
    CallDone done{.id = call.id, .status = status};
    if (status.ok()) done.reply = contract::Done{};
    Give(done);
  }
  const Core& core() const { return core_; }

 private:
  void Advance(Duration duration) {
    now_.mono += duration;
    now_.wall += duration;
  }

  Core core_{Config{.cluster = "blue"}};
  Now now_{};
  std::vector<Effect> effects_;
};

WorkloadView Web(const std::string& id, const std::string& node = {}) {
  WorkloadView view{.workload = id, .node = node};
  view.phase = node.empty() ? model::WorkloadPhase::kPending : model::WorkloadPhase::kRunning;
  view.spec.resources = {{"cpu", 1000}};
  return view;
}
NodeView Node(const std::string& id, const std::string& instruction = {}) {
  return {.node = id,
          .status = model::NodeStatus::kReady,
          .total = {{"cpu", 4000}},
          .cordoned = !instruction.empty(),
          .drain_instruction = instruction};
}
Received Machine(const std::string& id, MachineState state) {
  return {.message = contract::NodeStateUpdate{.machine_id = id, .cluster_id = "blue", .state = state}};
}
Received Reclaim(const std::string& id, std::vector<std::string> nodes) {
  return {.message = contract::ReclaimInstruction{
              .instruction_id = id, .nodes = std::move(nodes), .grace_period_seconds = 60}};
}

TEST(Operators, SaysNothingBeforeItKnowsTheCluster) {
  Lab lab;
  lab.Give(SessionOpened{});
  EXPECT_TRUE(lab.Sent<contract::Rollup>().empty()) << "an empty roll-up would give every machine away";
  lab.Pass(1min);
  EXPECT_TRUE(lab.Sent<contract::Rollup>().empty());
  lab.Give(ClusterListed{.workloads = {Web("a")}});
  lab.Pass(200ms);
  ASSERT_EQ(lab.Sent<contract::Rollup>().size(), 1U);
  EXPECT_EQ(lab.Sent<contract::Rollup>()[0].rows.size(), 1U);
}

// What the scheduler was told of machines, each report as the number of kinds that come.
std::vector<size_t> Reported(const Lab& lab) {
  std::vector<size_t> kinds;
  for (const Call& call : lab.Said<Call>()) {
    if (const auto* report = std::get_if<contract::ReportMachines>(&call.request))
      kinds.push_back(report->machines.size());
  }
  return kinds;
}
void FinishReports(Lab& lab, Status status = {}) {
  for (const Call& call : lab.Said<Call>()) {
    if (std::holds_alternative<contract::ReportMachines>(call.request)) lab.Finish(call, status);
  }
}

TEST(Operators, SaysWhichMachinesComeUntilTheyHaveJoined) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{});
  lab.Pass(1min);
  EXPECT_TRUE(Reported(lab).empty()) << "nothing comes, and nothing was said to come";
  Received big = Machine("m1", MachineState::kCreating);
  auto& update = std::get<contract::NodeStateUpdate>(big.message);
  update.resources = {{"cpu", 8000}};
  update.labels = {{"zone", "b"}};
  update.taints = {{.key = "gpu", .value = "yes", .effect = "NoSchedule"}};
  lab.Give(big);
  update.machine_id = "m2";  // one like it
  lab.Give(big);
  lab.Give(Machine("m3", MachineState::kConfiguring));
  lab.Pass(200ms);
  const std::vector<Call> calls = lab.Said<Call>();
  ASSERT_EQ(calls.size(), 1U);
  const auto& report = std::get<contract::ReportMachines>(calls[0].request);
  ASSERT_EQ(report.machines.size(), 2U) << "equal ones are said once";
  EXPECT_EQ(report.machines[0].resources.Get("cpu"), 8000);
  EXPECT_EQ(report.machines[0].labels.at("zone"), "b");
  EXPECT_EQ(report.machines[0].taints.at(0).key, "gpu");
  EXPECT_EQ(report.valid_for, 30s);
  FinishReports(lab);
  lab.Pass(10s);
  EXPECT_EQ(Reported(lab), std::vector<size_t>{2}) << "said again before it expires";
  FinishReports(lab);
  lab.Give(Machine("m3", MachineState::kConfigured));
  lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "m1", .now = Node("m1")}});
  lab.Give(Machine("m2", MachineState::kFailed));
  lab.Pass(200ms);
  EXPECT_EQ(Reported(lab), std::vector<size_t>{1}) << "m3 has not joined yet";
  FinishReports(lab);
  lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "m3", .now = Node("m3")}});
  lab.Pass(200ms);
  EXPECT_EQ(Reported(lab), std::vector<size_t>{0}) << "nothing comes any more";
  FinishReports(lab);
  lab.Pass(1min);
  EXPECT_TRUE(Reported(lab).empty());
}

TEST(Operators, WhatCouldNotBeSaidOfMachinesIsSaidAgainAndNothingWithoutASession) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{});
  lab.Give(Machine("m1", MachineState::kCreating));
  lab.Pass(200ms);
  EXPECT_EQ(Reported(lab), std::vector<size_t>{1});
  const std::vector<Call> open = lab.Said<Call>();
  lab.Give(Machine("m1", MachineState::kFailed));
  lab.Pass(1min);
  EXPECT_TRUE(Reported(lab).empty()) << "one report at a time";
  lab.Finish(open.at(0), Status(Code::kUnavailable, "no answer"));
  EXPECT_EQ(Reported(lab), std::vector<size_t>{0}) << "the one that failed may have arrived";
  FinishReports(lab, Status(Code::kUnavailable, "no answer"));
  lab.Pass(9s);
  EXPECT_TRUE(Reported(lab).empty());
  lab.Pass(1s);
  EXPECT_EQ(Reported(lab), std::vector<size_t>{0}) << "until it is answered";
  FinishReports(lab);
  lab.Give(Machine("m2", MachineState::kCreating));
  lab.Give(SessionClosed{Status(Code::kUnavailable, "gone")});
  lab.Pass(1min);
  EXPECT_TRUE(Reported(lab).empty()) << "whether it still comes is not known";
  lab.Give(SessionOpened{});
  EXPECT_EQ(Reported(lab), std::vector<size_t>{1});
}

TEST(Operators, AnEmptyClusterIsSaidToBeEmpty) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{});
  lab.Pass(200ms);
  ASSERT_EQ(lab.Sent<contract::Rollup>().size(), 1U);
  EXPECT_EQ(lab.Sent<contract::Rollup>()[0].rows.size(), 0U);
}

TEST(Operators, ABurstOfChangesMakesOneRollup) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{});
  lab.Pass(1s);
  for (int i = 0; i < 100; ++i) {
    const std::string id = "web-" + std::to_string(i);
    lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kWorkload, .name = id, .now = Web(id)}});
  }
  lab.Pass(1s);
  const auto rollups = lab.Sent<contract::Rollup>();
  ASSERT_EQ(rollups.size(), 1U);
  ASSERT_EQ(rollups[0].rows.size(), 1U);
  EXPECT_EQ(rollups[0].rows.needs()[0].aggregate, (model::Resources{{"cpu", 100000}}));
  lab.Pass(30s);
  EXPECT_EQ(lab.Sent<contract::Rollup>().size(), 3U) << "and one every ten seconds";
}

TEST(Operators, BlobsAreMadeByTheShell) {
  Lab lab;
  lab.Give(Received{.message = contract::BootstrapRequest{.request_id = "r1"}});
  ASSERT_EQ(lab.Said<GiveBlob>().size(), 1U);
  EXPECT_EQ(lab.Said<GiveBlob>()[0].request_id, "r1");
}

TEST(Operators, AReclaimIsAcknowledgedWhenEveryNodeIsCordoned) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("m1"), Node("m2")}});
  lab.Give(Reclaim("i1", {"m1", "m2", "gone"}));
  const auto calls = lab.Said<Call>();
  ASSERT_EQ(calls.size(), 3U);
  const auto drain = std::get<contract::DrainNode>(calls[1].request);
  EXPECT_EQ(drain.node, "m1");
  EXPECT_EQ(drain.instruction, "i1");
  EXPECT_EQ(drain.grace, Duration(60s));
  lab.Finish(calls[0], {Code::kNotFound, "node gone is not known"});
  lab.Finish(calls[1]);
  EXPECT_TRUE(lab.Sent<contract::ReclaimAck>().empty());
  lab.Finish(calls[2], {Code::kUnavailable, "the scheduler restarts"});
  EXPECT_TRUE(lab.Sent<contract::ReclaimAck>().empty());
  lab.Pass(1s);
  const auto again = lab.Said<Call>();
  ASSERT_EQ(again.size(), 1U);
  lab.Finish(again[0]);
  ASSERT_EQ(lab.Sent<contract::ReclaimAck>().size(), 1U);
  EXPECT_EQ(lab.Sent<contract::ReclaimAck>()[0].nodes_started, 3);

  lab.Give(Reclaim("i1", {"m1", "m2", "gone"}));
  EXPECT_TRUE(lab.Said<Call>().empty());
  EXPECT_EQ(lab.Sent<contract::ReclaimAck>().size(), 1U) << "the same instruction again is acknowledged again";
}

TEST(Operators, ADrainThatIsWithdrawnUncordonsTheNode) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("m1", "i1")}});
  lab.Give(Machine("m1", MachineState::kDraining));
  EXPECT_TRUE(lab.Said<Call>().empty());
  lab.Give(Machine("m1", MachineState::kConfigured));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_FALSE(std::get<contract::CordonNode>(lab.Said<Call>()[0].request).cordoned);
}

TEST(Operators, ANodeAnOperatorOfThePeopleCordonedStaysCordoned) {
  Lab lab;
  NodeView node = Node("m1");
  node.cordoned = true;
  lab.Give(ClusterListed{.nodes = {node}});
  lab.Give(Machine("m1", MachineState::kDraining));
  lab.Give(Machine("m1", MachineState::kConfigured));
  EXPECT_TRUE(lab.Said<Call>().empty());
}

TEST(Operators, ANodeGoesWithItsMachine) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("m1")}});
  lab.Give(Machine("m1", MachineState::kConfigured));
  EXPECT_TRUE(lab.Said<Call>().empty());
  lab.Give(Machine("m1", MachineState::kIdle));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  const auto gone = std::get<contract::DeleteObject>(lab.Said<Call>()[0].request);
  EXPECT_EQ(gone.kind, contract::ObjectKind::kNode);
  EXPECT_EQ(gone.name, "m1");
  EXPECT_TRUE(gone.force);
  EXPECT_TRUE(lab.core().View()->machines.empty());
}

// Its instruction was lost, or taken back by mistake: nothing may be placed there while it drains.
TEST(Operators, AMachineThatDrainsUnaskedIsDrainedHereTooAndUncordonedWhenItIsKept) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {}});
  lab.Give(Machine("m1", MachineState::kDraining));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_EQ(std::get<contract::DrainNode>(lab.Said<Call>()[0].request).node, "m1");
  lab.Finish(lab.Said<Call>()[0]);
  lab.Give(Machine("m1", MachineState::kConfigured));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_FALSE(std::get<contract::CordonNode>(lab.Said<Call>()[0].request).cordoned);
}

// The shard has given the reclaim up, or forgot it in a restart: it names the machine as it is.
TEST(Operators, ANodeOfAMachineThatIsKeptIsUncordonedThoughItNeverDrained) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {}});
  lab.Give(Reclaim("i1", {"m1"}));
  lab.Finish(lab.Said<Call>()[0]);
  lab.Give(Machine("m1", MachineState::kConfigured));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_FALSE(std::get<contract::CordonNode>(lab.Said<Call>()[0].request).cordoned);

  Lab restarted;
  restarted.Give(SessionOpened{});
  restarted.Give(Machine("m1", MachineState::kConfigured));
  restarted.Give(ClusterListed{.nodes = {Node("m1", "i1")}, .workloads = {}});
  ASSERT_EQ(restarted.Said<Call>().size(), 1U);
  EXPECT_FALSE(std::get<contract::CordonNode>(restarted.Said<Call>()[0].request).cordoned);
}

// Its machine was repaired before the scheduler took the order: what runs there then must not be deleted.
TEST(Operators, ADeletionThatWasRefusedIsNotTriedAgainOnceTheMachineServes) {
  for (const MachineState again : {MachineState::kConfiguring, MachineState::kConfigured}) {
    Lab lab;
    lab.Give(SessionOpened{});
    lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {}});
    lab.Give(Machine("m1", MachineState::kConfigured));
    lab.Give(Machine("m1", MachineState::kFailed));
    const std::vector<Call> deletions = lab.Said<Call>();
    ASSERT_EQ(deletions.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<contract::DeleteObject>(deletions[0].request));
    if (again == MachineState::kConfigured) {  // it comes while the order is under way, and the answer is lost
      lab.Give(Machine("m1", again));
      lab.Finish(deletions[0], Status(Code::kDeadlineExceeded, "no answer"));
    } else {  // it comes before the order is tried again
      lab.Finish(deletions[0], Status(Code::kUnavailable, "no leader"));
      lab.Give(Machine("m1", again));
    }
    lab.Pass(1min);
    EXPECT_TRUE(lab.Said<Call>().empty()) << "the node is left alone";
    lab.Give(Machine("m1", MachineState::kFailed));
    ASSERT_EQ(lab.Said<Call>().size(), 1U) << "and goes when its machine fails again";
    EXPECT_TRUE(std::holds_alternative<contract::DeleteObject>(lab.Said<Call>()[0].request));
  }
}

// A machine that went while there was no session: nobody says so, but the shard no longer names it.
TEST(Operators, ANodeWhoseMachineWentUnseenIsForgotten) {
  Lab lab;
  NodeView gone = Node("m1");
  gone.labels = {{std::string(model::kInstanceTypeKey), "small"}};
  NodeView serves = gone;
  serves.node = "m2";
  NodeView own = Node("desk");
  for (NodeView* node : {&gone, &serves, &own}) node->status = model::NodeStatus::kNotReady;
  lab.Give(ClusterListed{.nodes = {gone, serves, own}, .workloads = {}});
  lab.Give(SessionOpened{});
  lab.Give(Machine("m2", MachineState::kConfigured));
  lab.Pass(10min);
  EXPECT_TRUE(lab.Said<Call>().empty()) << "the shard has not answered: it may know nothing yet";
  lab.Give(Received{.message = contract::Acknowledgement{.echo = "rollup"}});
  lab.Pass(59s);
  EXPECT_TRUE(lab.Said<Call>().empty());
  lab.Pass(2s);
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_EQ(std::get<contract::DeleteObject>(lab.Said<Call>()[0].request).name, "m1");
}

// The same of a machine that the fleet had reclaimed: the drain is done, and that it went was said to nobody.
TEST(Operators, ANodeThatWasDrainedAndWhoseMachineWentUnseenIsForgotten) {
  const auto deleted = [] {
    Lab lab;
    lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {}});
    lab.Give(SessionOpened{});
    lab.Give(Machine("m1", MachineState::kConfigured));
    lab.Give(Reclaim("i1", {"m1"}));
    const std::vector<Call> drains = lab.Said<Call>();
    lab.Finish(drains.at(0));
    lab.Give(SessionClosed{});
    NodeView silent = Node("m1", "i1");
    silent.status = model::NodeStatus::kNotReady;
    lab.Give(ClusterListed{.nodes = {silent}, .workloads = {}});
    lab.Give(SessionOpened{});
    lab.Give(Received{.message = contract::Acknowledgement{.echo = "rollup"}});
    lab.Pass(2min);
    return lab.Said<Call>().size() == 1 && std::get<contract::DeleteObject>(lab.Said<Call>()[0].request).name == "m1";
  };
  EXPECT_TRUE(deleted());
  const faults::ScopedMutant on("operators.keeps_nodes");
  EXPECT_FALSE(deleted());
}

// Nobody tells that the node is gone: the watch is behind, or the node has registered again before the answer came.
TEST(Operators, ANodeThatTheSchedulerDoesNotKnowIsDeletedOnceAMinute) {
  const auto calls = [] {
    Lab lab;
    NodeView silent = Node("m1");
    silent.status = model::NodeStatus::kNotReady;
    silent.labels[std::string(model::kInstanceTypeKey)] = "small";
    lab.Give(ClusterListed{.nodes = {silent}, .workloads = {}});
    lab.Give(SessionOpened{});
    lab.Give(Received{.message = contract::Acknowledgement{.echo = "rollup"}});
    lab.Pass(2min);
    const auto answered = [&lab] {
      int count = 0;
      for (std::vector<Call> next = lab.Said<Call>(); !next.empty() && count < 10; next = lab.Said<Call>()) {
        ++count;
        lab.Finish(next.at(0), Status(Code::kNotFound, "there is no node m1"));
      }
      return count;
    };
    const int at_once = answered();
    lab.Pass(1min);
    return std::pair(at_once, answered());
  };
  EXPECT_EQ(calls(), std::pair(1, 1));
  const faults::ScopedMutant on("operators.deleted_node_stays");
  EXPECT_EQ(calls().first, 10);
}

TEST(Operators, WhatWasOnItsWayWhenTheSessionEndedIsForgotten) {
  Lab lab;
  lab.Give(ClusterListed{});
  lab.Give(SessionOpened{});
  lab.Give(Machine("m1", MachineState::kConfiguring));
  lab.Give(SessionClosed{});
  lab.Give(SessionOpened{});
  EXPECT_EQ(lab.core().View()->machines.size(), 1U);
  lab.Give(Received{.message = contract::Acknowledgement{.echo = "rollup"}});
  EXPECT_TRUE(lab.core().View()->machines.empty());
}

TEST(Operators, StuckWorkloadsAreCorrectedOnceNoMachineIsOnItsWay) {
  Lab lab;
  lab.Give(SessionOpened{});
  WorkloadView stuck = Web("c");
  stuck.reason = "fit.cpu";
  stuck.spec.resources = {{"cpu", 2000}};
  WorkloadView large = Web("a", "m0");
  large.spec.resources = {{"cpu", 3000}};
  WorkloadView other = large;
  other.workload = "b";
  other.node = "m1";
  lab.Give(ClusterListed{.nodes = {Node("m0"), Node("m1")}, .workloads = {large, other, stuck}});
  lab.Give(Machine("m2", MachineState::kConfiguring));
  lab.Pass(1min);
  EXPECT_TRUE(lab.core().View()->corrections.empty());
  lab.Give(Machine("m2", MachineState::kFailed));
  lab.Pass(2s);
  ASSERT_EQ(lab.core().View()->corrections.size(), 1U);
  EXPECT_EQ(lab.core().View()->corrections[0].stuck, (std::vector<std::string>{"c"}));
  EXPECT_EQ(lab.core().View()->needs[0].aggregate, (model::Resources{{"cpu", 10000}}));
}

TEST(Operators, AWorkloadThatTheProtocolCannotExpressIsNamedOnceAndStopsNoOther) {
  Lab lab;
  lab.Give(SessionOpened{});
  WorkloadView above = Web("above");
  above.spec.requirements = {{{.key = "generation", .op = model::Operator::kGt, .values = {"4"}}}};
  lab.Give(ClusterListed{.workloads = {Web("a"), above}});
  ASSERT_EQ(lab.Said<Notice>().size(), 1U);
  EXPECT_EQ(lab.Said<Notice>()[0].what, "the fleet is not asked for a workload");
  EXPECT_EQ(lab.Said<Notice>()[0].subject, "above");
  EXPECT_EQ(lab.Said<Notice>()[0].detail,
            "the shard's protocol cannot express \"generation Gt [4]\": use In with the values that are meant");
  lab.Pass(200ms);
  ASSERT_EQ(lab.Sent<contract::Rollup>().size(), 1U);
  ASSERT_EQ(lab.Sent<contract::Rollup>()[0].rows.size(), 1U);
  EXPECT_EQ(lab.Sent<contract::Rollup>()[0].rows.needs()[0].aggregate, (model::Resources{{"cpu", 1000}}));
  EXPECT_EQ(lab.core().View()->left_out, 1);

  // A list says it again, and a change of its phase does: neither is news.
  const auto change = [&](const WorkloadView& view) {
    lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kWorkload, .name = "above", .now = view}});
  };
  lab.Give(ClusterListed{.workloads = {Web("a"), above}});
  EXPECT_TRUE(lab.Said<Notice>().empty());
  above.phase = model::WorkloadPhase::kScheduled;
  change(above);
  EXPECT_TRUE(lab.Said<Notice>().empty());
  // Another requirement of the kind is news, and In ends it.
  above.spec.requirements[0][0].op = model::Operator::kLt;
  change(above);
  EXPECT_EQ(lab.Said<Notice>().size(), 1U);
  above.spec.requirements[0][0] = {.key = "generation", .op = model::Operator::kIn, .values = {"5"}};
  change(above);
  EXPECT_TRUE(lab.Said<Notice>().empty());
  EXPECT_EQ(lab.core().View()->left_out, 0);
  EXPECT_EQ(lab.core().View()->needs.size(), 2U);
}

TEST(Operators, ALostSchedulerKeepsTheDemand) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.workloads = {Web("a")}});
  lab.Pass(1s);
  lab.Give(ClusterLost{.why = {Code::kUnavailable, "away"}});
  lab.Pass(10s);
  ASSERT_EQ(lab.Sent<contract::Rollup>().size(), 1U);
  EXPECT_EQ(lab.Sent<contract::Rollup>()[0].rows.size(), 1U);
}

// Two orders for one node may overtake each other on their way to the scheduler.
TEST(Operators, AnOrderWaitsForTheEndOfTheOneBefore) {
  const auto drains_last = [] {
    Lab lab;
    lab.Give(SessionOpened{});
    lab.Give(ClusterListed{.nodes = {Node("n1", "r0")}});
    lab.Give(Machine("n1", MachineState::kConfigured));
    const std::vector<Call> uncordons = lab.Said<Call>();
    EXPECT_EQ(uncordons.size(), 1U);
    lab.Give(Reclaim("r1", {"n1"}));
    if (!lab.Said<Call>().empty()) return false;
    EXPECT_TRUE(lab.Sent<contract::ReclaimAck>().empty());
    lab.Finish(uncordons[0], Status(Code::kDeadlineExceeded, "no answer in time"));
    const std::vector<Call> drains = lab.Said<Call>();
    EXPECT_EQ(drains.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<contract::DrainNode>(drains[0].request));
    lab.Finish(drains[0]);
    EXPECT_EQ(lab.Sent<contract::ReclaimAck>().size(), 1U);
    return true;
  };
  EXPECT_TRUE(drains_last());
  const faults::ScopedMutant on("operators.orders_overtake");
  EXPECT_FALSE(drains_last());
}

// An order whose answer did not come may arrive after the next one: the numbers tell the scheduler which is later.
TEST(Operators, OrdersAreNumberedAboveAllThatWereGiven) {
  const auto number = [](const Call& call) {
    const auto* drain = std::get_if<contract::DrainNode>(&call.request);
    return drain != nullptr ? drain->order : std::get<contract::CordonNode>(call.request).order;
  };
  Lab lab;
  lab.Give(SessionOpened{});
  NodeView node = Node("n1", "r0");
  node.last_order = 1'000'000'000'000;  // of an earlier life whose clock was ahead
  lab.Give(ClusterListed{.nodes = {node}});
  lab.Give(Machine("n1", MachineState::kConfigured));
  const std::vector<Call> uncordons = lab.Said<Call>();
  ASSERT_EQ(uncordons.size(), 1U);
  EXPECT_GT(number(uncordons[0]), node.last_order);
  lab.Give(Reclaim("r1", {"n1"}));
  lab.Finish(uncordons[0], Status(Code::kDeadlineExceeded, "no answer in time"));
  const std::vector<Call> drains = lab.Said<Call>();
  ASSERT_EQ(drains.size(), 1U);
  EXPECT_GT(number(drains[0]), number(uncordons[0]));
  lab.Finish(drains[0], Status(Code::kFailedPrecondition, "a later order was given"));
  lab.Pass(1s);
  const std::vector<Call> again = lab.Said<Call>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_GT(number(again[0]), number(drains[0]));
}

TEST(Operators, AnOrderIsNumberedByTheClockOfItsLife) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("n1")}});
  lab.Pass(30s);
  lab.Give(Reclaim("r1", {"n1"}));
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_EQ(std::get<contract::DrainNode>(lab.Said<Call>()[0].request).order, 30'000'000U);
}

// By a person, or by an order of an earlier life of the operator that was long on its way.
TEST(Operators, ADrainThatSomebodyTakesBackIsGivenAgain) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("n1")}});
  lab.Give(Reclaim("r1", {"n1"}));
  const std::vector<Call> drains = lab.Said<Call>();
  ASSERT_EQ(drains.size(), 1U);
  lab.Finish(drains[0]);
  NodeView before = Node("n1");
  lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "n1", .now = before}});
  EXPECT_TRUE(lab.Said<Call>().empty()) << "news from before the drain";
  NodeView after = Node("n1");
  after.last_order = std::get<contract::DrainNode>(drains[0].request).order;
  lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "n1", .now = after}});
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_TRUE(std::holds_alternative<contract::DrainNode>(lab.Said<Call>()[0].request));
}

// A session opens with the states of all machines; an instruction that still holds follows.
// Its agent joins after the instruction, or its record goes and comes again: a record that was never drained.
TEST(Operators, ANodeThatJoinsOnADrainingMachineIsDrained) {
  const auto drained_when_it_joins = [](bool listed, Status answer, bool told) {
    Lab lab;
    lab.Give(SessionOpened{});
    ClusterListed list;
    if (listed) list.nodes = {Node("n1")};
    lab.Give(list);
    lab.Give(Reclaim("r1", {"n1"}));
    const std::vector<Call> drains = lab.Said<Call>();
    EXPECT_EQ(drains.size(), 1U);
    lab.Finish(drains.at(0), answer);
    EXPECT_EQ(lab.Sent<contract::ReclaimAck>().size(), 1U);
    if (told) lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "n1", .now = std::monostate()}});
    if (told || !listed) {
      lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "n1", .now = Node("n1")}});
    } else {  // it went and came while nobody watched
      lab.Give(ClusterListed{.nodes = {Node("n1")}});
    }
    const std::vector<Call> again = lab.Said<Call>();
    if (again.size() != 1) return false;
    const auto* drain = std::get_if<contract::DrainNode>(&again[0].request);
    return drain != nullptr && drain->instruction == "r1" &&
           drain->order > std::get<contract::DrainNode>(drains[0].request).order;
  };
  EXPECT_TRUE(drained_when_it_joins(false, Status(Code::kNotFound, "there is no node n1"), false));
  EXPECT_TRUE(drained_when_it_joins(true, Status(Code::kNotFound, "there is no node n1"), true));
  EXPECT_TRUE(drained_when_it_joins(true, {}, true)) << "its record went";
  EXPECT_TRUE(drained_when_it_joins(true, {}, false)) << "a list has another record of it";
  EXPECT_TRUE(drained_when_it_joins(false, {}, false)) << "the operator had not heard of it yet";
}

TEST(Operators, AnInstructionThatWasTakenBackIsNotAcknowledged) {
  const auto acks_uncordoned = [] {
    Lab lab;
    lab.Give(SessionOpened{});
    lab.Give(Reclaim("r1", {"n1"}));  // the scheduler does not answer yet
    lab.Give(SessionClosed{});
    lab.Give(SessionOpened{});
    lab.Give(Machine("n1", MachineState::kConfigured));
    bool acked = !lab.Sent<contract::ReclaimAck>().empty();
    lab.Give(Reclaim("r1", {"n1"}));
    acked |= !lab.Sent<contract::ReclaimAck>().empty();
    lab.Give(ClusterListed{.nodes = {Node("n1")}});
    const std::vector<Call> drains = lab.Said<Call>();
    EXPECT_EQ(drains.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<contract::DrainNode>(drains[0].request));
    lab.Finish(drains[0]);
    EXPECT_TRUE(acked || lab.Sent<contract::ReclaimAck>().size() == 1U);
    return acked;
  };
  EXPECT_FALSE(acks_uncordoned());
  const faults::ScopedMutant on("operators.acks_void_instruction");
  EXPECT_TRUE(acks_uncordoned());
}

// A drain whose answer is lost has the shard say that the machine is kept, and then that it drains.
TEST(Operators, AMachineThatDrainsAfterAllIsDrainedAgain) {
  const auto ends_drained = [] {
    Lab lab;
    lab.Give(SessionOpened{});
    lab.Give(ClusterListed{.nodes = {Node("n1", "r1")}});
    lab.Give(Machine("n1", MachineState::kConfigured));
    const std::vector<Call> uncordons = lab.Said<Call>();
    EXPECT_EQ(uncordons.size(), 1U);
    lab.Give(Machine("n1", MachineState::kDraining));
    lab.Finish(uncordons[0]);
    const std::vector<Call> drains = lab.Said<Call>();
    return drains.size() == 1 && std::holds_alternative<contract::DrainNode>(drains[0].request);
  };
  EXPECT_TRUE(ends_drained());
  const faults::ScopedMutant on("operators.draining_is_kept");
  EXPECT_FALSE(ends_drained());
}

TEST(Operators, ANodeThatIsUncordonedWhileItsMachineDrainsIsDrainedAgain) {
  Lab lab;
  lab.Give(SessionOpened{});
  lab.Give(ClusterListed{.nodes = {Node("n1", "r1")}});
  lab.Give(Machine("n1", MachineState::kDraining));
  EXPECT_TRUE(lab.Said<Call>().empty()) << "it is drained already";
  lab.Give(ClusterChanged{{.kind = contract::ObjectKind::kNode, .name = "n1", .now = Node("n1")}});
  ASSERT_EQ(lab.Said<Call>().size(), 1U);
  EXPECT_TRUE(std::holds_alternative<contract::DrainNode>(lab.Said<Call>()[0].request));
}

int64_t Asked(const Lab& lab) {
  int64_t cpu = 0;
  const auto view = lab.core().View();
  for (const model::Need& need : view->needs) cpu += need.aggregate.Get("cpu");
  return cpu;
}
contract::WorkloadView Stays(const std::string& id) {
  WorkloadView view = Web(id);
  view.spec.resources = {{"cpu", 4000}};
  view.reason = "fit.none";
  return view;
}
ClusterChanged Changed(NodeView node) {
  const std::string id = node.node;
  return {{.kind = contract::ObjectKind::kNode, .name = id, .now = std::move(node)}};
}

// The shard counts the machine of a node that people have cordoned, or that does not beat.
TEST(Operators, WhatWaitsBesideANodeThatTakesNothingGetsAnotherMachine) {
  const auto asked = [](const NodeView& node, MachineState state) {
    Lab lab;
    lab.Give(SessionOpened{});
    lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {Stays("a")}});
    lab.Give(Machine("m1", state));
    lab.Give(Changed(node));
    lab.Pass(1min);
    return Asked(lab);
  };
  NodeView cordoned = Node("m1");
  cordoned.cordoned = true;
  NodeView silent = Node("m1");
  silent.status = model::NodeStatus::kNotReady;
  EXPECT_EQ(asked(cordoned, MachineState::kConfigured), 8000);
  EXPECT_EQ(asked(silent, MachineState::kConfigured), 8000);
  EXPECT_EQ(asked(cordoned, MachineState::kDraining), 4000) << "the shard does not count what leaves";
  EXPECT_EQ(asked(silent, MachineState::kFailed), 4000);
  EXPECT_EQ(asked(Node("m1", "i-1"), MachineState::kDraining), 4000);
  const faults::ScopedMutant on("operators.barred_node_is_forgotten");
  EXPECT_EQ(asked(cordoned, MachineState::kConfigured), 4000);
}

TEST(Operators, WhatWasAskedForBecauseOfANodeThatTakesNothingEndsWithItsMachine) {
  Lab lab;
  lab.Give(SessionOpened{});
  NodeView silent = Node("m1");
  silent.status = model::NodeStatus::kNotReady;
  lab.Give(ClusterListed{.nodes = {silent}, .workloads = {Stays("a")}});
  lab.Give(Machine("m1", MachineState::kConfigured));
  lab.Pass(1min);
  EXPECT_EQ(Asked(lab), 8000);
  lab.Give(Machine("m1", MachineState::kFailed));
  EXPECT_EQ(Asked(lab), 4000);
}

// Whatever comes first: an operator that has started says no demand without what was raised before.
TEST(Operators, TheFirstRollupCarriesWhatWasRaisedBefore) {
  const auto first = [](bool list_first) {
    Lab lab;
    ClusterListed listed;
    for (const char* node : {"m1", "m2", "m3"}) {
      listed.nodes.push_back(Node(node));
      WorkloadView view = Web(std::string("w") + node, node);
      view.spec.resources = {{"cpu", 2500}};
      listed.workloads.push_back(view);
    }
    if (!list_first) lab.Give(SessionOpened{});
    lab.Give(listed);
    if (list_first) {
      lab.Pass(50ms);
      lab.Give(SessionOpened{});
    }
    const std::vector<contract::Rollup> rollups = lab.Sent<contract::Rollup>();
    EXPECT_EQ(rollups.size(), 1U);
    return rollups.empty() ? 0 : rollups[0].rows.needs()[0].aggregate.Get("cpu");
  };
  EXPECT_EQ(first(true), 12000);
  EXPECT_EQ(first(false), 12000);
  const faults::ScopedMutant on("operators.says_before_it_looks");
  EXPECT_EQ(first(true), 7500);
}

TEST(Operators, AWorkloadThatAnotherMachineDoesNotHelpIsNamedOnce) {
  Lab lab;
  lab.Give(SessionOpened{});
  WorkloadView lonely = Stays("a");
  lonely.reason = "colocate.none";
  lab.Give(ClusterListed{.nodes = {Node("m1")}, .workloads = {lonely}});
  lab.Pass(1min);
  ASSERT_EQ(lab.Said<Notice>().size(), 1U);
  EXPECT_EQ(lab.Said<Notice>()[0].subject, "a");
  EXPECT_NE(lab.Said<Notice>()[0].detail.find("colocate.none"), std::string::npos);
  EXPECT_EQ(Asked(lab), 4000);
  EXPECT_EQ(lab.core().View()->helpless.size(), 1U);
}

}  // namespace
}  // namespace muster::operators
