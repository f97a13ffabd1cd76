// Stories of the whole loop: what people do to clusters that share a fleet, and what must come of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/requirement.h"
#include "sim/loop.h"
#include "sim/loop_for_test.h"

namespace muster::sim {
namespace {

std::vector<LoopAction> ActionsOf(const LoopView& view, const std::string& kind) {
  std::vector<LoopAction> of_kind;
  std::ranges::copy_if(view.actions, std::back_inserter(of_kind),
                       [&](const LoopAction& action) { return action.action.kind == kind; });
  return of_kind;
}

void ExpectRest(Loop& loop) {
  const size_t actions = loop.View().actions.size();
  loop.Run(10min);
  const LoopView later = loop.View();
  EXPECT_EQ(later.actions.size(), actions) << "it goes on:\n" << Story(later);
}

LoopStart TwoClusters(std::vector<model::Machine> machines) {
  return {.machines = std::move(machines), .clusters = {{.id = "batch"}, {.id = "shop"}}, .settings = LivelySettings()};
}

// Priorities that far apart leave a victim ten seconds (docs/engine.md, P2.grace).
TEST(LoopStory, OneClusterTakesAMachineOfAnotherAndBothComeToRest) {
  const auto loop = MakeLoop(TwoClusters(Many(3, {.id = "m"})));
  Apply(*loop, "batch", Set("crunch", 12, 1000));
  loop->RunUntilSettled();
  ASSERT_EQ(Running(loop->View(), "batch"), 12u) << Story(loop->View());
  Apply(*loop, "shop", Set("till", 4, 1000, 1'000'000));
  const Settled settled = loop->RunUntilSettled();
  const LoopView view = loop->View();
  EXPECT_TRUE(settled.settled) << Story(view);
  const std::vector<LoopAction> taken = ActionsOf(view, "Preempt");
  ASSERT_EQ(taken.size(), 1u) << Story(view);
  EXPECT_EQ(taken[0].action.grace_seconds, 10);
  EXPECT_EQ(Running(view, "shop"), 4u) << Story(view);
  EXPECT_EQ(Running(view, "batch"), 8u) << Story(view);
  EXPECT_EQ(view.Bound("shop").size(), 1u) << Story(view);
  EXPECT_EQ(view.Bound("batch").size(), 2u) << Story(view);
  EXPECT_EQ(view.clusters.at("batch").Pending().size(), 4u) << Story(view);
  for (const contract::WorkloadView& waits : view.clusters.at("batch").Pending()) EXPECT_FALSE(waits.message.empty());
  ASSERT_EQ(view.Shortfalls().size(), 1u) << Story(view);
  EXPECT_EQ(view.Shortfalls()[0].need.cluster, "batch");
  EXPECT_NE(view.Shortfalls()[0].reason, model::Reason::kNone);
  ExpectRest(*loop);
  // And back again.
  Apply(*loop, "shop", contract::ScaleSet{.set = "till", .replicas = 0});
  loop->RunUntilSettled();
  EXPECT_EQ(Running(loop->View(), "batch"), 12u) << Story(loop->View());
}

// The cheapest machine that the other cluster may use is full, and what runs there could be elsewhere too: a machine is
// bought for it.
TEST(LoopStory, WhatAnotherClusterDisplacesMovesToAMachineThatIsBought) {
  std::vector<model::Machine> machines = Many(1, {.id = "a", .zone = "a", .dollars = 0.05});
  for (model::Machine& machine : Many(3, {.id = "b", .zone = "b"})) machines.push_back(machine);
  LoopStart start = TwoClusters(std::move(machines));
  start.settings.stop_time = 1h;  // they use the whole of their grace
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "batch", Set("crunch", 8, 1000));
  loop->RunUntilSettled();
  const LoopView before = loop->View();
  ASSERT_EQ(Running(before, "batch"), 8u) << Story(before);
  ASSERT_EQ(before.Bound("batch").size(), 2u) << Story(before);
  contract::ApplySpec till = Set("till", 4, 1000, 1'000'000);
  till.spec.spec.requirements = {{{std::string(model::kZoneKey), model::Operator::kIn, {"a"}}}};
  Apply(*loop, "shop", till);
  EXPECT_TRUE(loop->RunUntilSettled().settled);
  const LoopView view = loop->View();
  const std::vector<LoopAction> taken = ActionsOf(view, "Preempt");
  ASSERT_EQ(taken.size(), 1u) << Story(view);
  EXPECT_EQ(taken[0].action.machine_id, "a-0");
  EXPECT_EQ(taken[0].action.grace_seconds, 10);
  EXPECT_EQ(Running(view, "shop"), 4u) << Story(view);
  EXPECT_EQ(Running(view, "batch"), 8u) << Story(view);
  EXPECT_EQ(view.Bound("batch").size(), 2u) << Story(view);
  EXPECT_TRUE(view.Shortfalls().empty()) << Story(view);
  for (const contract::WorkloadView& was : before.clusters.at("batch").workloads) {
    const auto& now =
        *std::ranges::find(view.clusters.at("batch").workloads, was.workload, &contract::WorkloadView::workload);
    if (was.node == "a-0") {
      EXPECT_TRUE(now.node.starts_with("b-")) << was.workload << "\n" << Story(view);
    } else {
      EXPECT_EQ(now.stamp, was.stamp) << was.workload << " was moved\n" << Story(view);
    }
  }
  ExpectRest(*loop);
}

// The gang needs four machines of one rack, and no rack has more than two: nobody is disturbed for it.
TEST(LoopStory, AGangThatCannotBeWholeDisturbsNobody) {
  std::vector<model::Machine> machines = Many(2, {.id = "a", .zone = "a"});
  for (model::Machine& machine : Many(2, {.id = "b", .zone = "b"})) machines.push_back(machine);
  const auto loop = MakeLoop(TwoClusters(std::move(machines)));
  Apply(*loop, "batch", Set("crunch", 16, 1000));
  loop->RunUntilSettled();
  const LoopView before = loop->View();
  ASSERT_EQ(Running(before, "batch"), 16u) << Story(before);
  contract::ApplySpec gang = Set("train", 4, 4000, 1'000'000);
  gang.spec.spec.colocate = {{.topology_key = "rack"}};
  Apply(*loop, "shop", gang);
  loop->RunUntilSettled();
  const LoopView after = loop->View();
  EXPECT_EQ(after.actions.size(), before.actions.size()) << Story(after);
  EXPECT_EQ(Running(after, "batch"), 16u) << Story(after);
  for (size_t i = 0; i < 16; ++i) {
    const contract::WorkloadView& was = before.clusters.at("batch").workloads[i];
    EXPECT_EQ(after.clusters.at("batch").workloads[i].stamp, was.stamp) << was.workload << " was moved";
  }
  EXPECT_EQ(after.clusters.at("shop").Pending().size(), 4u) << Story(after);
  ASSERT_EQ(after.Shortfalls().size(), 1u) << Story(after);
  EXPECT_EQ(after.Shortfalls()[0].need.cluster, "shop");
}

std::vector<LoopDecision> Evictions(const LoopView& view) {
  std::vector<LoopDecision> evictions;
  std::ranges::copy_if(view.decisions, std::back_inserter(evictions), [](const LoopDecision& decision) {
    return decision.decision.kind == contract::DecisionKind::kEvicted;
  });
  return evictions;
}

const contract::WorkloadView& Workload(const LoopView& view, const std::string& cluster, const std::string& name) {
  return *std::ranges::find(view.clusters.at(cluster).workloads, name, &contract::WorkloadView::workload);
}

// A moment at which so many members of the set run, looked at every 50 ms.
Duration WhenRun(Loop& loop, const std::string& set, size_t count) {
  for (const Duration end = loop.now() + 5min; loop.now() < end; loop.Run(50ms)) {
    const LoopView view = loop.View();
    const auto runs = [&](const contract::WorkloadView& workload) {
      return workload.set == set && workload.phase == model::WorkloadPhase::kRunning;
    };
    if (std::ranges::count_if(view.clusters.at("home").workloads, runs) == static_cast<ptrdiff_t>(count)) {
      return loop.now();
    }
  }
  ADD_FAILURE() << "it never runs\n" << Story(loop.View());
  return loop.now();
}

// Nor is anybody in its own cluster: each member by itself could have the place of four that matter less.
TEST(LoopStory, AGangThatCannotBeWholeDisturbsNobodyInItsOwnCluster) {
  std::vector<model::Machine> machines = Many(2, {.id = "a", .zone = "a"});
  for (model::Machine& machine : Many(2, {.id = "b", .zone = "b"})) machines.push_back(machine);
  const auto loop =
      MakeLoop({.machines = std::move(machines), .clusters = {{.id = "home"}}, .settings = LivelySettings()});
  Apply(*loop, "home", Set("crunch", 16, 1000));
  loop->RunUntilSettled();
  const LoopView before = loop->View();
  ASSERT_EQ(Running(before, "home"), 16u) << Story(before);
  contract::ApplySpec gang = Set("train", 4, 4000, 600'000);
  gang.spec.spec.colocate = {{.topology_key = "rack"}};
  Apply(*loop, "home", gang);
  loop->RunUntilSettled();
  const LoopView after = loop->View();
  EXPECT_TRUE(Evictions(after).empty()) << Story(after);
  EXPECT_EQ(after.actions.size(), before.actions.size()) << Story(after);
  EXPECT_EQ(Running(after, "home"), 16u) << Story(after);
  for (const contract::WorkloadView& was : before.clusters.at("home").workloads) {
    EXPECT_EQ(Workload(after, "home", was.workload).stamp, was.stamp) << was.workload << " was moved";
  }
  EXPECT_EQ(after.clusters.at("home").Pending().size(), 4u) << Story(after);
}

// Inside one cluster too: the fleet is full, and what matters more takes the place of what matters less, which is
// stopped with its own grace first: these do not end before they are killed.
TEST(LoopStory, OnAFullFleetWhatMattersMoreTakesThePlaceOfWhatMattersLess) {
  LoopStart start{.machines = Many(2, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  start.settings.stop_time = 1h;
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("low", 8, 1000));
  loop->RunUntilSettled();
  ASSERT_EQ(Running(loop->View(), "home"), 8u) << Story(loop->View());
  Apply(*loop, "home", Set("high", 2, 1000, 600'000));
  const Duration runs = WhenRun(*loop, "high", 2);
  const Settled settled = loop->RunUntilSettled();
  const LoopView view = loop->View();
  EXPECT_TRUE(settled.settled) << Story(view);
  const std::vector<LoopDecision> evicted = Evictions(view);
  ASSERT_EQ(evicted.size(), 2u) << Story(view);
  for (const LoopDecision& order : evicted) {
    EXPECT_GE(runs - order.at, 5s) << "the grace of a victim was cut short\n" << Story(view);
    EXPECT_LE(runs - order.at, 7s) << "its place was left empty\n" << Story(view);
  }
  size_t high = 0;
  size_t low = 0;
  for (const contract::WorkloadView& workload : view.clusters.at("home").workloads) {
    const bool is_running = workload.phase == model::WorkloadPhase::kRunning;
    (workload.set == "high" ? high : low) += is_running ? 1 : 0;
  }
  EXPECT_EQ(high, 2u) << Story(view);
  EXPECT_EQ(low, 6u) << Story(view);
  ExpectRest(*loop);
}

// The only machine of zone a is full of what could be anywhere: its victims move to machines of zone b.
TEST(LoopStory, VictimsMoveWhereThereIsRoom) {
  std::vector<model::Machine> machines = Many(1, {.id = "a", .zone = "a", .dollars = 0.05});
  for (model::Machine& machine : Many(3, {.id = "b", .zone = "b"})) machines.push_back(machine);
  LoopStart start{.machines = std::move(machines), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  start.settings.stop_time = 1h;
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("low", 8, 1000));
  loop->RunUntilSettled();
  const LoopView before = loop->View();
  ASSERT_EQ(Running(before, "home"), 8u) << Story(before);
  ASSERT_EQ(before.Bound("home").size(), 2u) << Story(before);
  contract::ApplySpec high = Set("high", 2, 1000, 600'000);
  high.spec.spec.requirements = {{{std::string(model::kZoneKey), model::Operator::kIn, {"a"}}}};
  Apply(*loop, "home", high);
  const Duration runs = WhenRun(*loop, "high", 2);
  EXPECT_TRUE(loop->RunUntilSettled().settled);
  const LoopView view = loop->View();
  EXPECT_EQ(Running(view, "home"), 10u) << Story(view);
  const std::vector<LoopDecision> evicted = Evictions(view);
  ASSERT_EQ(evicted.size(), 2u) << Story(view);
  for (const LoopDecision& order : evicted) {
    const std::string& victim = order.decision.workload;
    EXPECT_EQ(Workload(before, "home", victim).node, "a-0");
    EXPECT_TRUE(Workload(view, "home", victim).node.starts_with("b-")) << victim << "\n" << Story(view);
    EXPECT_EQ(Workload(view, "home", victim).phase, model::WorkloadPhase::kRunning);
    EXPECT_GE(runs - order.at, 5s) << "the grace of a victim was cut short\n" << Story(view);
  }
  // Nobody else was touched.
  for (const contract::WorkloadView& was : before.clusters.at("home").workloads) {
    const bool victim = std::ranges::any_of(
        evicted, [&](const LoopDecision& order) { return order.decision.workload == was.workload; });
    if (victim) continue;
    EXPECT_EQ(Workload(view, "home", was.workload).stamp, was.stamp) << was.workload << " was moved";
  }
  ExpectRest(*loop);
}

// Four members of three cores need four machines of four, and three would do by the sum.
TEST(LoopStory, StuckDemandIsRaisedOnAFragmentedClusterAndLoweredWhenItFitsAgain) {
  LoopStart start{.machines = Many(6, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  start.settings.operators.correction_hold = 2min;
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("wide", 4, 3000));
  loop->Run(5s);
  EXPECT_EQ(loop->View().Bound("home").size(), 3u) << "by the sum";
  loop->RunUntilSettled({.quiet = 3min});
  LoopView view = loop->View();
  EXPECT_EQ(Running(view, "home"), 4u) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 4u) << Story(view);
  ASSERT_EQ(view.clusters.at("home").corrections.size(), 1u);
  const auto stamps = [&] {
    std::set<uint64_t> all;
    for (const contract::WorkloadView& workload : view.clusters.at("home").workloads)
      all.insert(workload.stamp.sequence);
    return all;
  };
  const std::set<uint64_t> before = stamps();
  const size_t actions = view.actions.size();
  loop->Run(1h);  // many holds
  view = loop->View();
  EXPECT_EQ(stamps(), before) << "nobody was moved\n" << Story(view);
  EXPECT_EQ(view.actions.size(), actions) << Story(view);
  EXPECT_EQ(view.clusters.at("home").corrections.size(), 1u) << "it is needed as long as they are there";

  Apply(*loop, "home", contract::ScaleSet{.set = "wide", .replicas = 2});
  loop->RunUntilSettled({.quiet = 5min});
  view = loop->View();
  EXPECT_TRUE(view.clusters.at("home").corrections.empty()) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 2u) << Story(view);
  EXPECT_EQ(Running(view, "home"), 2u) << Story(view);
}

// An operator that starts anew knows it from what is bound, though two machines were raised for.
TEST(LoopStory, ARestartOfTheOperatorMovesNobodyOnAFragmentedCluster) {
  LoopStart start{.machines = Many(10, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("wide", 8, 3000));
  loop->RunUntilSettled({.quiet = 3min});
  const LoopView before = loop->View();
  ASSERT_EQ(Running(before, "home"), 8u) << Story(before);
  ASSERT_EQ(before.Bound("home").size(), 8u) << Story(before);
  for (int life = 0; life < 2; ++life) {
    loop->RestartOperator("home");
    loop->Run(30min);  // holds of the fleet and of the raise
    const LoopView after = loop->View();
    EXPECT_EQ(after.actions.size(), before.actions.size()) << Story(after);
    EXPECT_EQ(Running(after, "home"), 8u) << Story(after);
    EXPECT_EQ(after.clusters.at("home").corrections.size(), 1u);
  }
}

// The shard goes on counting a machine whose node people have taken out: what left it is not to wait for them.
TEST(LoopStory, ADrainedNodeIsReplacedWhileItsWorkloadsWaitAndGivenBackAfterwards) {
  LoopStart start{.machines = Many(5, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  start.settings.operators.correction_hold = 2min;
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("web", 8, 1000));
  loop->RunUntilSettled({.quiet = 3min});
  const LoopView full = loop->View();
  ASSERT_EQ(Running(full, "home"), 8u) << Story(full);
  ASSERT_EQ(full.Bound("home").size(), 2u) << Story(full);
  const std::string node = full.Bound("home")[0].machine->id;
  Apply(*loop, "home", contract::DrainNode{.node = node, .grace = 5s, .reason = "a disk is changed"});
  loop->RunUntilSettled({.quiet = 3min});
  const LoopView drained = loop->View();
  EXPECT_EQ(Running(drained, "home"), 8u) << Story(drained);
  EXPECT_EQ(drained.Bound("home").size(), 3u) << "one more, and no more than that\n" << Story(drained);
  EXPECT_EQ(drained.clusters.at("home").corrections.size(), 1u);
  for (const contract::WorkloadView& workload : drained.clusters.at("home").workloads) EXPECT_NE(workload.node, node);
  ExpectRest(*loop);  // for as long as people keep it out

  Apply(*loop, "home", contract::CordonNode{.node = node, .cordoned = false, .reason = "it is back"});
  loop->RunUntilSettled({.quiet = 5min});
  const LoopView back = loop->View();
  EXPECT_EQ(Running(back, "home"), 8u) << Story(back);
  EXPECT_EQ(back.Bound("home").size(), 2u) << Story(back);
  EXPECT_TRUE(back.clusters.at("home").corrections.empty()) << Story(back);
  ExpectRest(*loop);
}

// Nobody is there whom it is to be with: a machine is tried, and given back.
TEST(LoopStory, AWorkloadThatNoMachineHelpsBuysNoMoreThanOne) {
  LoopStart start{.machines = Many(8, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("web", 2, 1000));
  loop->RunUntilSettled({.quiet = 3min});
  ASSERT_EQ(loop->View().Bound("home").size(), 1u) << Story(loop->View());
  contract::ApplySpec lonely = Set("lonely", 1, 1000);
  lonely.spec.spec.colocate = {
      {.topology_key = std::string(model::kZoneKey),
       .selector = std::vector<model::Requirement>{{.key = "app", .op = model::Operator::kIn, .values = {"nobody"}}}}};
  Apply(*loop, "home", lonely);
  for (const Duration end = loop->now() + 1h; loop->now() < end; loop->Run(5s)) {
    ASSERT_LE(loop->View().Bound("home").size(), 2u) << Story(loop->View());
  }
  const LoopView view = loop->View();
  EXPECT_EQ(view.clusters.at("home").Pending().size(), 1u) << Story(view);
  EXPECT_LE(ActionsOf(view, "Create").size(), 8u) << "tried again, and seldom\n" << Story(view);
}

// No machine could ever carry it; the others are served as if it were not there.
TEST(LoopStory, AWorkloadLargerThanEveryMachineIsShortAlone) {
  LoopStart start{.machines = Many(6, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("web", 8, 1000));
  loop->RunUntilSettled();
  ASSERT_EQ(Running(loop->View(), "home"), 8u) << Story(loop->View());
  Apply(*loop, "home", Set("giant", 1, 64'000));
  loop->RunUntilSettled();
  EXPECT_TRUE(ActionsOf(loop->View(), "Reclaim").empty()) << "its neighbours lose nothing\n" << Story(loop->View());
  Apply(*loop, "home", contract::ScaleSet{.set = "web", .replicas = 12});
  loop->RunUntilSettled();
  const LoopView view = loop->View();
  EXPECT_EQ(Running(view, "home"), 12u) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 3u) << Story(view);
  ASSERT_EQ(view.Shortfalls().size(), 1u) << Story(view);
  EXPECT_EQ(view.Shortfalls()[0].need.min_unit.Get("cpu"), 64'000);
  ExpectRest(*loop);
}

// The same in a cluster that has no node yet.
TEST(LoopStory, AWorkloadLargerThanEveryMachineDoesNotKeepTheFirstNodeAway) {
  LoopStart start{.machines = Many(6, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("giant", 1, 64'000));
  Apply(*loop, "home", Set("web", 8, 1000));
  loop->RunUntilSettled();
  const LoopView view = loop->View();
  EXPECT_EQ(Running(view, "home"), 8u) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 2u) << Story(view);
  ExpectRest(*loop);
}

}  // namespace
}  // namespace muster::sim
