#include "sim/loop.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/loop_for_test.h"

namespace muster::sim {
namespace {

LoopStart OneCluster(std::vector<model::Machine> machines) {
  return {.machines = std::move(machines), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
}

TEST(Loop, WhatIsAppliedIsBoughtRunsAndIsGivenBack) {
  const auto loop = MakeLoop(OneCluster(Many(6, {.id = "m"})));
  ASSERT_NE(loop, nullptr);
  Apply(*loop, "home", Set("web", 6, 1000));
  const Settled up = loop->RunUntilSettled();
  LoopView view = loop->View();
  EXPECT_TRUE(up.settled) << Story(view);
  EXPECT_LT(up.took, 10s) << Story(view);
  EXPECT_EQ(Running(view, "home"), 6u) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 2u) << Story(view);
  EXPECT_EQ(view.price_per_hour, (model::Money{200'000}));
  EXPECT_TRUE(view.Shortfalls().empty());
  EXPECT_TRUE(view.clusters.at("home").Pending().empty());

  Apply(*loop, "home", contract::ScaleSet{.set = "web", .replicas = 1});
  const Settled down = loop->RunUntilSettled();
  view = loop->View();
  EXPECT_TRUE(down.settled) << Story(view);
  EXPECT_EQ(Running(view, "home"), 1u) << Story(view);
  EXPECT_EQ(view.Bound("home").size(), 1u) << Story(view);
  EXPECT_EQ(view.price_per_hour, (model::Money{100'000})) << Story(view);
}

TEST(Loop, TheSameStartGivesTheSameAnswers) {
  const auto story = [] {
    const auto loop = MakeLoop(OneCluster(Many(6, {.id = "m"})));
    Apply(*loop, "home", Set("web", 9, 1500));
    loop->RunUntilSettled();
    return Story(loop->View());
  };
  EXPECT_EQ(story(), story());
}

TEST(Loop, AWorldThatBeginsWhereAnotherCameToRestDoesNothing) {
  const auto first = MakeLoop(OneCluster(Many(6, {.id = "m"})));
  Apply(*first, "home", Set("web", 6, 1000));
  Apply(*first, "home", Set("wide", 1, 64000, 1));  // no machine is so large
  first->RunUntilSettled();
  const LoopView before = first->View();
  const auto second = MakeLoop(StartAgain(before, LivelySettings()));
  ASSERT_NE(second, nullptr);
  second->RunUntilSettled();
  const LoopView after = second->View();
  EXPECT_TRUE(after.actions.empty()) << Story(after);
  EXPECT_EQ(after.price_per_hour, before.price_per_hour);
  ASSERT_EQ(after.clusters.at("home").workloads.size(), 7u);
  for (size_t i = 0; i < 7; ++i) {
    const contract::WorkloadView& was = before.clusters.at("home").workloads[i];
    const contract::WorkloadView& is = after.clusters.at("home").workloads[i];
    EXPECT_EQ(is.node, was.node) << is.workload;
    EXPECT_EQ(is.phase, was.phase) << is.workload;
    EXPECT_EQ(is.stamp.sequence, was.stamp.sequence) << is.workload << " was assigned again";
  }
  ASSERT_EQ(after.clusters.at("home").Pending().size(), 1u);
  EXPECT_TRUE(after.clusters.at("home").Pending()[0].message.contains("cpu")) << Story(after);
  ASSERT_EQ(after.Shortfalls().size(), 1u);
}

TEST(Loop, ComputersOfTheirOwnArePartOfACluster) {
  LoopStart start = OneCluster(Many(2, {.id = "m"}));
  start.clusters[0].nodes.push_back({.node = "desk",
                                     .status = model::NodeStatus::kReady,
                                     .total = {{"cpu", 2000}, {"memory", int64_t{4} << 30}},
                                     .supported_types = {model::WorkloadType::kProcess},
                                     .epoch = 3});
  const auto loop = MakeLoop(std::move(start));
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->View().clusters.at("home").nodes.size(), 1u);
  EXPECT_GT(loop->View().clusters.at("home").nodes[0].epoch, 3u) << "it has joined";
}

TEST(Loop, WhatIsWrongWithAStartIsNamed) {
  LoopStart start = OneCluster({Bound({.id = "m"}, "other")});
  start.clusters[0].nodes.push_back({.node = "m"});
  auto loop = Loop::Make(start);
  ASSERT_FALSE(loop.has_value());
  EXPECT_EQ(loop.error().message(), "node m of cluster home: its machine serves other");
  start = OneCluster({});
  start.others.push_back({.cluster = "home"});
  loop = Loop::Make(start);
  ASSERT_FALSE(loop.has_value());
  EXPECT_EQ(loop.error().message(), "other cluster home: no id, or one that another has");
}

TEST(Loop, ALostZoneIsMadeGoodInTheOther) {
  std::vector<model::Machine> machines = Many(3, {.id = "a", .zone = "a"});
  for (model::Machine& machine : Many(3, {.id = "b", .zone = "b", .dollars = 0.2})) machines.push_back(machine);
  const auto loop = MakeLoop(OneCluster(std::move(machines)));
  Apply(*loop, "home", Set("web", 6, 1000));
  loop->RunUntilSettled();
  for (const contract::MachineView& view : loop->View().Bound("home")) {
    EXPECT_EQ(view.machine->zone, "a");
    loop->Observe(contract::MachineLost{
        .machine_id = view.machine->id, .host_ref = view.machine->host.ref, .reason = "the zone is gone"});
  }
  loop->SetStock([](const model::Machine& machine) { return machine.zone != "a"; });
  loop->RunUntilSettled({.quiet = 2min});
  const LoopView after = loop->View();
  EXPECT_EQ(Running(after, "home"), 6u) << Story(after);
  for (const contract::MachineView& view : after.Bound("home")) EXPECT_EQ(view.machine->zone, "b") << Story(after);
}

TEST(Loop, TheDemandOfOthersIsPartOfTheFleet) {
  LoopStart start = OneCluster(Many(2, {.id = "m"}));
  start.others.push_back({.cluster = "other", .needs = {NeedOf(4000, 1000, 10)}});
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("web", 8, 1000));
  loop->RunUntilSettled();
  LoopView view = loop->View();
  EXPECT_EQ(view.Bound("other").size(), 1u) << Story(view);
  EXPECT_EQ(Running(view, "home"), 4u) << Story(view);
  EXPECT_EQ(view.Shortfalls().size(), 1u) << Story(view);
  loop->SetDemand("other", {});
  loop->RunUntilSettled();
  view = loop->View();
  EXPECT_EQ(Running(view, "home"), 8u) << Story(view);
  EXPECT_TRUE(view.Bound("other").empty()) << Story(view);
}

}  // namespace
}  // namespace muster::sim
