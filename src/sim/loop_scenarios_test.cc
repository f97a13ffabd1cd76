// Stories of the whole loop: what people do to clusters that share a fleet, and what must come of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

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

// Inside one cluster too: the fleet is full, and what matters more takes the place of what matters less, which is
// stopped with its own grace first.
TEST(LoopStory, OnAFullFleetWhatMattersMoreTakesThePlaceOfWhatMattersLess) {
  LoopStart start{.machines = Many(2, {.id = "m"}), .clusters = {{.id = "home"}}, .settings = LivelySettings()};
  const auto loop = MakeLoop(std::move(start));
  Apply(*loop, "home", Set("low", 8, 1000));
  loop->RunUntilSettled();
  ASSERT_EQ(Running(loop->View(), "home"), 8u) << Story(loop->View());
  Apply(*loop, "home", Set("high", 2, 1000, 600'000));
  const Settled settled = loop->RunUntilSettled();
  const LoopView view = loop->View();
  EXPECT_TRUE(settled.settled) << Story(view);
  size_t high = 0;
  size_t low = 0;
  for (const contract::WorkloadView& workload : view.clusters.at("home").workloads) {
    const bool runs = workload.phase == model::WorkloadPhase::kRunning;
    (workload.set == "high" ? high : low) += runs ? 1 : 0;
  }
  EXPECT_EQ(high, 2u) << Story(view);
  EXPECT_EQ(low, 6u) << Story(view);
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

}  // namespace
}  // namespace muster::sim
