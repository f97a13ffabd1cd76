#include "core/operators/demand.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/probe.h"

namespace muster::operators {
namespace {

using contract::WorkloadView;
using model::Resources;

constexpr MonoTime kStart{};

WorkloadView Waiting(const std::string& id, int64_t cpu) {
  WorkloadView view{.workload = id, .reason = "fit.none", .message = "no node takes it"};
  view.spec.resources = {{"cpu", cpu}};
  return view;
}
WorkloadView On(const std::string& node, const std::string& id, int64_t cpu) {
  WorkloadView view = Waiting(id, cpu);
  view.phase = model::WorkloadPhase::kRunning;
  view.node = node;
  view.reason.clear();
  return view;
}
WorkloadView Alone(WorkloadView view) {
  view.spec.exclude = {{.topology_key = "kubernetes.io/hostname"}};
  return view;
}
Demand Empty() { return {"blue", 15s, 10min}; }
// Nothing of an earlier life is looked for any more.
Demand Begun() {
  Demand demand = Empty();
  demand.Review(false, kStart);
  return demand;
}
void Set(Demand& demand, const WorkloadView& view, MonoTime now = kStart) {
  demand.SetWorkload(view.workload, view, now);
}

TEST(OperatorsDemand, CountsWhatIsToRunWhetherPlacedOrNot) {
  Demand demand = Empty();
  Set(demand, Waiting("a", 500));
  Set(demand, On("n", "b", 1500));
  ASSERT_EQ(demand.Needs().size(), 1U);
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 2000}}));
  EXPECT_EQ(demand.Needs()[0].min_unit, (Resources{{"cpu", 1500}}));
  EXPECT_EQ(demand.Needs()[0].cluster, "blue");
}

// With ten thousand members, what is told of one of them must not cost a sum over all.
TEST(OperatorsDemand, IsAddedUpAgainOnlyWhenSomethingThatCountsHasChanged) {
  Demand demand = Empty();
  Set(demand, On("n", "a", 500));
  const BoundNode node{.total = {{"cpu", 4000}}, .labels = {}};
  demand.SetNode("n", node);
  const model::Need* const needs = demand.Needs().data();
  WorkloadView same = On("n", "a", 500);
  same.message = "it runs";
  same.attempts = 3;
  Set(demand, same, kStart + 1s);
  demand.SetNode("n", node);
  demand.RemoveNode("unknown");
  demand.RemoveWorkload("unknown");
  EXPECT_EQ(demand.Needs().data(), needs);
  demand.CheckInvariants();

  const auto cpu = [&] {
    demand.CheckInvariants();
    return demand.Needs().empty() ? 0 : demand.Needs()[0].aggregate.Get("cpu");
  };
  Set(demand, On("n", "a", 700));
  EXPECT_EQ(cpu(), 700);
  Set(demand, Waiting("b", 500));
  EXPECT_EQ(cpu(), 1200);
  demand.RemoveWorkload("b");
  EXPECT_EQ(cpu(), 700);
  demand.RemoveWorkloadsBut({});
  EXPECT_EQ(cpu(), 0);
}

TEST(OperatorsDemand, EndsWithStoppedCompletedDeletedAndFailed) {
  for (const auto phase : {model::WorkloadPhase::kStopped, model::WorkloadPhase::kCompleted,
                           model::WorkloadPhase::kDeleted, model::WorkloadPhase::kFailed}) {
    WorkloadView view = On("n", "a", 500);
    view.phase = phase;
    EXPECT_FALSE(CountsAsDemand(view)) << model::WorkloadPhaseName(phase);
  }
  WorkloadView view = On("n", "a", 500);
  view.phase = model::WorkloadPhase::kDeleting;
  view.desired = model::DesiredState::kDeleted;
  EXPECT_TRUE(CountsAsDemand(view)) << "it holds its room until it has left the node";
  view.node.clear();
  EXPECT_FALSE(CountsAsDemand(view));
}

TEST(OperatorsDemand, ProfilesComeFromTheTemplate) {
  WorkloadView view = Waiting("web-0", 500);
  view.set = "web";
  view.spec.priority = 7;
  view.spec.requirements = {{{.key = "zone", .op = model::Operator::kIn, .values = {"a"}}}};
  view.spec.spread = {{.spread = {.topology_key = "zone", .max_skew = 2}}};
  view.spec.colocate = {{.topology_key = "rack"}, {.topology_key = "zone", .weight = 10}};
  const DemandUnit unit = UnitOf(view);
  EXPECT_EQ(unit.profile.priority(), 7);
  EXPECT_EQ(unit.profile.requirements(),
            (std::vector<model::Requirement>{{.key = "rack", .op = model::Operator::kSame},
                                             {.key = "zone", .op = model::Operator::kIn, .values = {"a"}}}));
  EXPECT_EQ(unit.profile.spread().size(), 1U);
  EXPECT_EQ(unit.group, "web");
}

WorkloadView Above(WorkloadView view) {
  view.spec.requirements = {{{.key = "generation", .op = model::Operator::kGt, .values = {"4"}}}};
  return view;
}

TEST(OperatorsDemand, WhatTheProtocolCannotExpressIsLeftOut) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  Set(demand, Waiting("a", 500));
  Set(demand, On("n1", "b", 1500));
  const std::vector<model::Need> others = demand.Needs();
  Set(demand, Above(Waiting("new", 1000)));
  Set(demand, Above(On("n1", "old", 1000)));
  EXPECT_EQ(demand.Needs(), others);
  EXPECT_EQ(demand.workloads(), 4U);
  EXPECT_EQ(demand.left_out(), 2U);
  EXPECT_EQ(demand.LeftOutBy("new"),
            "the shard's protocol cannot express \"generation Gt [4]\": use In with the values that are meant");
  EXPECT_EQ(demand.LeftOutBy("a"), "");
  EXPECT_EQ(demand.LeftOutBy("nobody"), "");
  // It asks for no review either: no machine can be asked for on its behalf.
  EXPECT_EQ(demand.NextReview(), kStart + 15s);
  Set(demand, On("n1", "a", 500));
  EXPECT_EQ(demand.NextReview(), std::nullopt);
  const faults::ScopedMutant on("operators.says_every_operator");
  EXPECT_EQ(demand.Needs().size(), 2U);
}

// Stored by a scheduler that did not bound it: one such need would have the roll-up of the whole cluster refused.
TEST(OperatorsDemand, WhatIsLargerThanAShardTakesIsLeftOut) {
  const auto require = [](WorkloadView view, size_t bytes) {
    view.spec.requirements = {{{.key = "zone", .op = model::Operator::kIn, .values = {std::string(bytes, 'z')}}}};
    return view;
  };
  Demand demand = Empty();
  Set(demand, Waiting("a", 500));
  Set(demand, require(Waiting("fits", 500), model::kMostTextsOfNeed - 100));
  EXPECT_EQ(demand.Needs().size(), 2U);
  EXPECT_EQ(demand.left_out(), 0U);
  Set(demand, require(Waiting("large", 500), model::kMostTextsOfNeed));
  // By its group: that of a rule, or of its size.
  WorkloadView grouped = require(Waiting("grouped", 500), model::kMostTextsOfNeed - 1'000);
  grouped.spec.colocate = {
      {.topology_key = "rack",
       .selector = {{{.key = "app", .op = model::Operator::kIn, .values = {std::string(950, 'g')}}}}}};
  Set(demand, grouped);
  WorkloadView sized = require(Waiting("sized", 500), model::kMostTextsOfNeed - 1'000);
  for (int i = 0; i < 10; ++i) sized.spec.resources.Set(fmt::format("{}{}", std::string(90, 'r'), i), 1000);
  Set(demand, sized);
  EXPECT_EQ(demand.Needs().size(), 2U);
  EXPECT_EQ(demand.left_out(), 3U);
  EXPECT_EQ(demand.LeftOutBy("large"),
            "its requirements, spread and group take 65612 bytes, and the shard takes at most 65536: make them fewer");
  for (const char* id : {"grouped", "sized"}) EXPECT_NE(demand.LeftOutBy(id), "");
}

TEST(OperatorsDemand, OfAlternativesTheFirstThatTheProtocolCanExpressIsCounted) {
  WorkloadView view = Above(Waiting("a", 500));
  view.spec.requirements.push_back({{.key = "generation", .op = model::Operator::kIn, .values = {"5", "6"}}});
  const DemandUnit unit = UnitOf(view);
  EXPECT_EQ(LeftOutBy(unit), "");
  EXPECT_TRUE(unit.waits);
  ASSERT_EQ(unit.profile.requirements().size(), 1U);
  EXPECT_EQ(unit.profile.requirements()[0].op, model::Operator::kIn);
}

TEST(OperatorsDemand, RoomOfWhatIsLeftOutIsNoRoomForWhatWaits) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  Set(demand, Above(On("n1", "out", 3000)));
  Set(demand, Waiting("a", 2000));
  // The shard sees 2 cpu asked for and 4 bound: without a raise nothing would come.
  EXPECT_EQ(demand.Review(false, kStart + 15s).size(), 1U);
  ASSERT_EQ(demand.Needs().size(), 1U);
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 6000}}));
}

TEST(OperatorsDemand, MembersThatExcludeEachOtherNeedAMachineEach) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}, {"memory", 1000}}});
  demand.SetNode("n2", {.total = {{"cpu", 4000}}});
  Set(demand, Alone(On("n1", "a", 100)));
  Set(demand, Alone(On("n2", "b", 100)));
  Set(demand, Alone(Waiting("c", 100)));
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 8100}})) << "two whole nodes and one to come";
  // Two sets of the same profile on the same nodes do not double them.
  WorkloadView other = Alone(On("n1", "d", 100));
  other.set = "other";
  Set(demand, other);
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 8100}}));
}

TEST(OperatorsDemand, StuckWorkloadsRaiseTheDemandAboveWhatIsBound) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  demand.SetNode("n2", {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 3000));
  Set(demand, On("n2", "b", 3000));
  Set(demand, Waiting("c", 2000));  // 2000 are free, in two pieces
  EXPECT_TRUE(demand.Review(false, kStart + 14s).empty());
  EXPECT_TRUE(demand.Review(true, kStart + 20s).empty()) << "machines are coming";
  EXPECT_EQ(demand.Review(false, kStart + 20s).size(), 1U);
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 10000}})) << "all that is bound, and 2000 more";
  EXPECT_TRUE(demand.Review(false, kStart + 30s).empty()) << "once is enough while nothing came";

  // A machine came and the workload runs: the raise stays for the hold, and as long as the workload fits nowhere else.
  demand.SetNode("n3", {.total = {{"cpu", 4000}}});
  Set(demand, On("n3", "c", 2000));
  EXPECT_TRUE(demand.Review(false, kStart + 60s).empty());
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 10000}}));
  EXPECT_EQ(demand.NextReview(), kStart + 60s + 10min);
  EXPECT_TRUE(demand.Review(false, kStart + 60s + 10min).empty()) << "without it, n3 would go and c be stuck again";
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 10000}}));
  Set(demand, On("n2", "b", 1000));
  EXPECT_TRUE(demand.Review(false, kStart + 60s + 20min - 1s).empty());
  EXPECT_EQ(demand.Review(false, kStart + 60s + 20min).size(), 1U) << "c fits beside b";
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 6000}}));
}

TEST(OperatorsDemand, WhatFindsNoNodeAfterItsOwnWasLostIsStuckToo) {
  Demand demand = Empty();
  for (const char* node : {"n1", "n2"}) demand.SetNode(node, {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 3000));
  Set(demand, On("n2", "b", 3000));
  WorkloadView homeless = On("n3", "c", 2000);
  homeless.phase = model::WorkloadPhase::kRetryPending;
  homeless.reason = "failover.no_node";
  Set(demand, homeless);
  EXPECT_EQ(demand.Review(false, kStart + 20s).size(), 1U);
}

TEST(OperatorsDemand, WhatWaitsForSomethingElseThanRoomBuysNothing) {
  for (const char* reason : {"fit.cpu", "node.type", "node.taint", "quota"}) {
    Demand demand = Empty();
    demand.SetNode("n1", {.total = {{"cpu", 4000}}});
    Set(demand, On("n1", "a", 1000));
    WorkloadView waits = Waiting("b", 2000);  // it has room on n1
    waits.reason = reason;
    Set(demand, waits);
    EXPECT_TRUE(demand.Review(false, kStart + 1h).empty()) << reason;
    EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 3000}})) << reason;
  }
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 1000));
  WorkloadView apart = Waiting("b", 2000);
  apart.reason = "spread.skew";
  Set(demand, apart);
  EXPECT_EQ(demand.Review(false, kStart + 1h).size(), 1U) << "another domain takes another machine";
}

// The scheduler keeps the room of what is stopped or has failed on its node; of what has completed it does not.
TEST(OperatorsDemand, RoomThatOthersHoldIsNoRoomForWhatWaits) {
  const auto raises = [](model::WorkloadPhase phase) {
    Demand demand = Empty();
    demand.SetNode("n1", {.total = {{"cpu", 4000}}});
    WorkloadView rests = On("n1", "a", 3000);
    rests.phase = phase;
    Set(demand, rests);
    Set(demand, Waiting("b", 2000));
    const bool raised = !demand.Review(false, kStart + 20s).empty();
    demand.RemoveWorkload("a");
    EXPECT_TRUE(demand.Review(false, kStart + 40s).empty()) << "with it goes what it held";
    return raised;
  };
  EXPECT_TRUE(raises(model::WorkloadPhase::kStopped));
  EXPECT_TRUE(raises(model::WorkloadPhase::kFailed));
  EXPECT_FALSE(raises(model::WorkloadPhase::kCompleted));
  const faults::ScopedMutant on("operators.held_room_is_free");
  EXPECT_FALSE(raises(model::WorkloadPhase::kStopped));
}

TEST(OperatorsDemand, ARaiseIsForOneMachineHoweverMuchOthersHave) {
  Demand demand = Empty();
  for (int i = 0; i < 4; ++i) {
    const std::string id = std::to_string(i);
    demand.SetNode("n" + id, {.total = {{"cpu", 4000}}});
    WorkloadView other = On("n" + id, "other-" + id, 3000);
    other.spec.priority = 5;
    Set(demand, other);
  }
  Set(demand, Waiting("stuck", 2000));
  EXPECT_EQ(demand.Review(false, kStart + 20s).size(), 1U);
  for (const model::Need& need : demand.Needs()) {
    // Of the other: 2000 of 16000 are free besides what it asks for; then comes what it asks for once more.
    const int64_t cpu = need.profile.priority() == 5 ? 12000 : 2000 + 2000 + 2000;
    EXPECT_EQ(need.aggregate, (Resources{{"cpu", cpu}}));
  }
}

TEST(OperatorsDemand, DemandOfOthersThatCannotBeMetDoesNotHideStuckWorkloads) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  demand.SetNode("n2", {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 3000));
  Set(demand, On("n2", "b", 3000));
  WorkloadView giant = Waiting("giant", 64000);
  giant.spec.priority = 5;
  Set(demand, giant);
  Set(demand, Waiting("c", 2000));
  EXPECT_EQ(demand.Review(false, kStart + 20s).size(), 1U);
}

TEST(OperatorsDemand, ARestartFindsTheRaiseInWhatIsBound) {
  Demand demand = Empty();
  for (const char* node : {"n1", "n2", "n3"}) demand.SetNode(node, {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 2500));
  Set(demand, On("n2", "b", 2500));
  Set(demand, On("n3", "c", 2500));  // two nodes would do by the sum, and three are needed
  EXPECT_EQ(demand.Review(false, kStart).size(), 1U) << "it is said";
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 12000}})) << "all that is bound";
  demand.RemoveWorkload("a");
  EXPECT_EQ(demand.Review(false, kStart + 10min).size(), 1U) << "n1 is empty";
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 5000}}));

  Demand calm = Empty();
  for (const char* node : {"n1", "n2", "n3"}) calm.SetNode(node, {.total = {{"cpu", 4000}}});
  Set(calm, On("n1", "a", 1000));
  Set(calm, On("n2", "b", 1000));
  EXPECT_TRUE(calm.Review(false, kStart).empty());
  EXPECT_EQ(calm.Needs()[0].aggregate, (Resources{{"cpu", 2000}})) << "surplus is not kept";
}

int64_t Cpu(const Demand& demand) {
  int64_t cpu = 0;
  for (const model::Need& need : demand.Needs()) cpu += need.aggregate.Get("cpu");
  return cpu;
}
WorkloadView InZone(WorkloadView view, const std::string& zone) {
  view.spec.requirements = {{{.key = "zone", .op = model::Operator::kIn, .values = {zone}}}};
  return view;
}

TEST(OperatorsDemand, ARestartFindsWhatWasRaisedByMoreThanOneMachineAndForMoreThanOneNeed) {
  Demand demand = Empty();
  for (const std::string zone : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) {
      const std::string node = zone + std::to_string(i);
      demand.SetNode(node, {.total = {{"cpu", 4000}}, .labels = {{"zone", zone}}});
      Set(demand, InZone(On(node, "w" + node, 3000), zone));
    }
  }
  EXPECT_EQ(demand.Review(false, kStart).size(), 2U);
  ASSERT_EQ(demand.Needs().size(), 2U);
  for (const model::Need& need : demand.Needs()) EXPECT_EQ(need.aggregate, (Resources{{"cpu", 32000}}));
  // One machine of each is kept no longer than its workload is there.
  for (const char* gone : {"wa3", "wb3"}) demand.RemoveWorkload(gone);
  EXPECT_EQ(demand.Review(false, kStart + 10min).size(), 2U);
  for (const model::Need& need : demand.Needs()) EXPECT_EQ(need.aggregate, (Resources{{"cpu", 28000}}));
  EXPECT_TRUE(demand.Review(false, kStart + 20min).empty());
}

// What can be emptied is no raise, whatever stands beside it.
TEST(OperatorsDemand, ARestartKeepsNoSurplusBesideWhatIsFragmented) {
  Demand demand = Empty();
  for (int i = 0; i < 5; ++i) demand.SetNode("n" + std::to_string(i), {.total = {{"cpu", 4000}}});
  for (const char* node : {"n1", "n2", "n3"}) Set(demand, On(node, std::string("w") + node, 2500));
  Set(demand, On("n4", "small", 400));
  EXPECT_EQ(demand.Review(false, kStart).size(), 1U);
  EXPECT_EQ(Cpu(demand), 12000) << "n0 is empty, and n4 can be emptied";

  Demand alone = Empty();  // their nodes are counted whole: nothing was raised
  for (const char* node : {"n1", "n2", "n3"}) {
    alone.SetNode(node, {.total = {{"cpu", 4000}}});
    Set(alone, Alone(On(node, std::string("w") + node, 500)));
  }
  EXPECT_TRUE(alone.Review(false, kStart).empty());
  EXPECT_EQ(Cpu(alone), 12000);
}

// The first roll-up waits for the search: what it looks at must not grow with needs times nodes times workloads.
TEST(OperatorsDemand, ARestartLooksThroughALargeClusterOnce) {
  constexpr int kNodes = 200;
  constexpr int kNeeds = 20;
  constexpr int kOnANode = 20;
  Demand demand = Empty();
  for (int node = 0; node < kNodes; ++node) {
    const std::string id = fmt::format("n{:03}", node);
    demand.SetNode(id, {.total = {{"cpu", 32000}}});
    for (int i = 0; i < kOnANode; ++i) {
      WorkloadView view = On(id, fmt::format("w{:03}-{}", node, i), 800);
      view.spec.priority = i % kNeeds;
      Set(demand, view);
    }
  }
  faults::ResetProbes();
  EXPECT_TRUE(demand.Review(false, kStart).empty()) << "half of the nodes can be emptied into the others";
  auto hits = faults::ProbeHits();
  EXPECT_EQ(hits["operators.occupancy"], faults::Compiled() ? 1U : 0U);
  // For each need: twice for each workload that is moved, and every node for each kind of them.
  EXPECT_LE(hits["operators.room_looked_at"], kNeeds * (2U * kNodes / 2 * kOnANode + kNodes * kNeeds));
  EXPECT_EQ(hits["operators.not_emptied"], 0U);
}

TEST(OperatorsDemand, OfManyNodesThatCannotBeEmptiedOnlyTheEmptiestAreTried) {
  Demand demand = Empty();
  demand.SetNode("hole", {.total = {{"cpu", 40000}}});
  for (const char* id : {"h1", "h2", "h3"}) Set(demand, On("hole", id, 11000));
  for (int node = 0; node < 100; ++node) {
    const std::string id = fmt::format("n{:03}", node);
    demand.SetNode(id, {.total = {{"cpu", 20000}}});
    // One of them finds room, in the hole, and the other does not.
    for (const char* half : {"a", "b"}) Set(demand, On(id, id + half, 7000));
  }
  faults::ResetProbes();
  EXPECT_EQ(demand.Review(false, kStart).size(), 1U);
  EXPECT_EQ(Cpu(demand), 2'040'000) << "all that is bound";
  auto hits = faults::ProbeHits();
  EXPECT_EQ(hits["operators.not_emptied"], faults::Compiled() ? 32U : 0U);
  EXPECT_LE(hits["operators.room_looked_at"], 32U * 200);
}

// The shard counts a node that takes nothing: beside it another machine is wanted.
TEST(OperatorsDemand, ANodeThatTakesNothingIsNoRoomForWhatWaits) {
  const BoundNode barred{.total = {{"cpu", 4000}}, .usable = false};
  Demand demand = Empty();
  demand.SetNode("n1", barred);
  demand.SetNode("n2", {.total = {{"cpu", 4000}}});
  for (const char* id : {"a", "b"}) Set(demand, On("n2", id, 2000));
  for (const char* id : {"c", "d"}) Set(demand, Waiting(id, 2000));
  EXPECT_EQ(demand.Review(false, kStart + 15s).size(), 1U);
  EXPECT_EQ(Cpu(demand), 12000) << "three machines, one of which takes nothing";
  Demand gone = demand;

  // The third came. While the first takes nothing the raise stays, and when it does it ends with its hold.
  demand.SetNode("n3", {.total = {{"cpu", 4000}}});
  for (const char* id : {"c", "d"}) Set(demand, On("n3", id, 2000));
  EXPECT_TRUE(demand.Review(false, kStart + 1min).empty());
  EXPECT_TRUE(demand.Review(false, kStart + 1h).empty());
  EXPECT_EQ(Cpu(demand), 12000);
  Demand again = Empty();  // an operator that starts now
  for (const char* node : {"n2", "n3"}) again.SetNode(node, {.total = {{"cpu", 4000}}});
  again.SetNode("n1", barred);
  for (const char* id : {"a", "b"}) Set(again, On("n2", id, 2000));
  for (const char* id : {"c", "d"}) Set(again, On("n3", id, 2000));
  EXPECT_EQ(again.Review(false, kStart).size(), 1U);
  EXPECT_EQ(Cpu(again), 12000);
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  EXPECT_TRUE(demand.Review(false, kStart + 1h + 1min).empty());
  EXPECT_EQ(demand.Review(false, kStart + 1h + 10min).size(), 1U);
  EXPECT_EQ(Cpu(demand), 8000);

  // Or it leaves: with it goes what was asked for because of it, at once.
  gone.RemoveNode("n1");
  EXPECT_EQ(Cpu(gone), 8000);
}

TEST(OperatorsDemand, NodesThatTakeNothingAreCountedHoweverManyTheyAre) {
  const BoundNode barred{.total = {{"cpu", 4000}}, .usable = false};
  Demand only = Begun();
  only.SetNode("n1", barred);
  for (const char* id : {"a", "b"}) Set(only, Waiting(id, 2000));
  EXPECT_EQ(only.Review(false, kStart + 15s).size(), 1U);
  EXPECT_EQ(Cpu(only), 8000);

  Demand many = Begun();
  for (int i = 0; i < 5; ++i) many.SetNode("n" + std::to_string(i), barred);
  many.SetNode("open", {.total = {{"cpu", 4000}}});
  Set(many, On("open", "a", 4000));
  Set(many, On("n1", "b", 3000));
  Set(many, Waiting("c", 2000));
  EXPECT_EQ(many.Review(false, kStart + 15s).size(), 1U);
  EXPECT_EQ(Cpu(many), 26000) << "all that is bound, and what waits";
  EXPECT_TRUE(many.Review(false, kStart + 30s).empty());
}

WorkloadView Refused(const std::string& id, const std::string& reason) {
  WorkloadView view = Waiting(id, 2000);
  view.reason = reason;
  return view;
}

// An empty machine says whether another one helps.
TEST(OperatorsDemand, WhatAnEmptyMachineRefusesIsNotHelpedByAnother) {
  for (const char* reason : {"colocate.none", "exclude.own", "port.taken"}) {
    Demand demand = Empty();
    demand.SetNode("n1", {.total = {{"cpu", 4000}}});
    Set(demand, On("n1", "a", 1000));
    Set(demand, Refused("b", reason));
    MonoTime now = kStart + 15s;
    EXPECT_EQ(demand.Review(false, now).size(), 1U) << reason;
    EXPECT_EQ(Cpu(demand), 6000) << "one machine";
    EXPECT_TRUE(demand.helpless().empty());
    // It came, is empty, and takes the workload no more than the first: it is given back, and no third one comes.
    demand.SetNode("n2", {.total = {{"cpu", 4000}}});
    now += 20s;
    EXPECT_EQ(demand.Review(false, now).size(), 1U);
    EXPECT_EQ(demand.helpless(), (std::map<std::string, std::string>{{"b", reason}}));
    EXPECT_EQ(Cpu(demand), 3000);
    demand.RemoveNode("n2");
    for (const Duration pause : {Duration(10min), Duration(20min), Duration(40min)}) {
      EXPECT_TRUE(demand.Review(false, now + pause - 1s).empty()) << reason;
      EXPECT_EQ(Cpu(demand), 3000);
      now += pause;
      EXPECT_EQ(demand.Review(false, now).size(), 1U) << "things may have changed";
      demand.SetNode("n2", {.total = {{"cpu", 4000}}});
      EXPECT_EQ(demand.Review(false, now).size(), 1U);
      demand.RemoveNode("n2");
    }
  }
}

TEST(OperatorsDemand, WhatIsSpreadIsHelpedByAMachineOfAnotherDomain) {
  Demand demand = Empty();
  const auto node = [&](const std::string& id, const std::string& zone) {
    demand.SetNode(id, {.total = {{"cpu", 4000}}, .labels = {{"zone", zone}}});
  };
  node("n1", "a");
  WorkloadView there = On("n1", "a", 2000);
  WorkloadView apart = Refused("b", "spread.skew");
  for (WorkloadView* view : {&there, &apart}) {
    view->spec.spread = {{.spread = {.topology_key = "zone"}}};
    Set(demand, *view);
  }
  EXPECT_EQ(demand.Review(false, kStart + 15s).size(), 1U);
  node("n2", "a");
  EXPECT_EQ(demand.Review(false, kStart + 30s).size(), 1U) << "the next may stand elsewhere";
  EXPECT_TRUE(demand.helpless().empty());
  Demand twice = demand;
  node("n3", "b");
  apart.node = "n3";
  apart.phase = model::WorkloadPhase::kRunning;
  apart.reason.clear();
  Set(demand, apart);
  EXPECT_TRUE(demand.Review(false, kStart + 31s).empty());
  twice.SetNode("n3", {.total = {{"cpu", 4000}}, .labels = {{"zone", "a"}}});
  EXPECT_EQ(twice.Review(false, kStart + 45s).size(), 1U);
  EXPECT_EQ(twice.helpless().size(), 1U) << "two of one zone are no help";
  EXPECT_EQ(Cpu(twice), 4000);
}

// Whatever refuses it, and however often machines come.
TEST(OperatorsDemand, DemandForWhatIsNotHelpedDoesNotGrow) {
  const auto most = [] {
    Demand demand = Empty();
    demand.SetNode("n0", {.total = {{"cpu", 4000}}});
    Set(demand, On("n0", "a", 1000));
    Set(demand, Refused("b", "colocate.none"));
    int64_t bound = 1;
    for (MonoTime now = kStart + 15s; now < kStart + 1h; now += 10s) {
      demand.Review(false, now);
      for (; bound * 4000 < Cpu(demand); ++bound) {
        demand.SetNode("n" + std::to_string(bound), {.total = {{"cpu", 4000}}});
      }
    }
    return bound;
  };
  EXPECT_EQ(most(), 2);
  const faults::ScopedMutant on("operators.empty_ones_are_no_answer");
  EXPECT_GT(most(), 100);
}

TEST(OperatorsDemand, WhatWasAskedForBeforeIsTakenUp) {
  const auto stuck = [](Demand& demand) {
    demand.SetNode("n1", {.total = {{"cpu", 4000}}});
    demand.SetNode("n2", {.total = {{"cpu", 4000}}});
    Set(demand, On("n1", "a", 3000));
    Set(demand, On("n2", "b", 3000));
    Set(demand, Waiting("c", 2000));
  };
  Demand before = Empty();
  stuck(before);
  EXPECT_EQ(before.Review(false, kStart + 20s).size(), 1U);
  Demand after = Empty();
  stuck(after);
  after.TakeUp(before.Needs(), kStart);
  EXPECT_EQ(after.Needs()[0].aggregate, (Resources{{"cpu", 10000}})) << "the raise, before c is stuck again";
  EXPECT_TRUE(after.Review(false, kStart + 1s).empty());
  EXPECT_EQ(after.Needs()[0].aggregate, (Resources{{"cpu", 10000}}));
  after.RemoveWorkload("c");
  EXPECT_EQ(after.Review(false, kStart + 10min).size(), 1U);
  EXPECT_EQ(after.Needs()[0].aggregate, (Resources{{"cpu", 6000}}));

  Demand sizes = Empty();
  for (const auto& [id, cpu] : {std::pair("a", 1000), std::pair("giant", 64000)}) Set(sizes, Waiting(id, cpu));
  Demand again = sizes;
  EXPECT_EQ(sizes.Review(false, kStart + 20s).size(), 1U);
  again.TakeUp(sizes.Needs(), kStart);
  EXPECT_EQ(again.Needs().size(), 2U) << "size by size at once";
}

TEST(OperatorsDemand, ARepeatedCorrectionStaysTwiceAsLong) {
  Demand demand = Empty();
  for (const char* node : {"n1", "n2"}) demand.SetNode(node, {.total = {{"cpu", 4000}}});
  MonoTime now = kStart;
  for (const Duration hold : {Duration(10min), Duration(20min), Duration(40min)}) {
    Set(demand, On("n1", "a", 3000), now);
    Set(demand, On("n2", "b", 3000), now);
    Set(demand, Waiting("c", 2000), now);
    now += 20s;
    ASSERT_EQ(demand.Review(false, now).size(), 1U);
    Set(demand, On("n2", "b", 1000), now);
    Set(demand, On("n2", "c", 2000), now);
    EXPECT_TRUE(demand.Review(false, now).empty());
    EXPECT_TRUE(demand.Review(false, now + hold - 1s).empty());
    EXPECT_EQ(demand.Review(false, now + hold).size(), 1U);
    now += hold;
  }
}

TEST(OperatorsDemand, NothingIsRaisedWhileLessIsBoundThanAskedFor) {
  Demand demand = Empty();
  Set(demand, Waiting("a", 2000));
  EXPECT_TRUE(demand.Review(false, kStart + 1h).empty());
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 2000}}));
}

// The smallest unit of a need is its largest member, and no smaller machine serves it.
TEST(OperatorsDemand, WhatNoBoundNodeCouldCarryIsAskedForApart) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  Set(demand, On("n1", "a", 1000));
  Set(demand, Waiting("b", 2000));
  Set(demand, Waiting("giant", 64000));
  Set(demand, Waiting("twin", 64000));
  Set(demand, Waiting("large", 6000));
  const std::vector<model::Need> needs = demand.Needs();
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_EQ(needs[0].group, "");
  EXPECT_EQ(needs[0].aggregate, (Resources{{"cpu", 3000}}));
  EXPECT_EQ(needs[0].min_unit, (Resources{{"cpu", 2000}}));
  EXPECT_EQ(needs[1].group, GroupOfSize({{"cpu", 6000}}));
  EXPECT_EQ(needs[2].aggregate, (Resources{{"cpu", 128000}}));
  EXPECT_EQ(needs[2].min_unit, (Resources{{"cpu", 64000}}));
  // A node that could carry it makes it one of the others.
  demand.SetNode("n2", {.total = {{"cpu", 8000}}});
  ASSERT_EQ(demand.Needs().size(), 2U);
  EXPECT_EQ(demand.Needs()[0].min_unit, (Resources{{"cpu", 6000}}));
  const faults::ScopedMutant on("operators.one_size_for_all");
  demand.SetNode("n3", {.total = {{"cpu", 1}}});  // something that counts: all is added up anew
  ASSERT_EQ(demand.Needs().size(), 1U);
}

TEST(OperatorsDemand, AGangIsNeverSplit) {
  Demand demand = Empty();
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  for (const int64_t cpu : {1000, 64000}) {
    WorkloadView view = Waiting("train-" + std::to_string(cpu), cpu);
    view.set = "train";
    view.spec.colocate = {{.topology_key = "rack"}};
    Set(demand, view);
  }
  ASSERT_EQ(demand.Needs().size(), 1U);
  EXPECT_EQ(demand.Needs()[0].group, "train");
}

// Without a node nothing says what can be had.
TEST(OperatorsDemand, ANeedForWhichNothingComesIsAskedForSizeBySize) {
  Demand demand = Empty();
  Set(demand, Waiting("a", 1000));
  Set(demand, Waiting("b", 2000));
  Set(demand, Waiting("giant", 64000));
  EXPECT_TRUE(demand.Review(false, kStart + 14s).empty());
  EXPECT_EQ(demand.Needs().size(), 1U);
  EXPECT_TRUE(demand.Review(true, kStart + 20s).empty()) << "a machine is coming";
  EXPECT_EQ(demand.Review(false, kStart + 20s).size(), 1U);
  EXPECT_EQ(demand.Needs().size(), 3U);
  EXPECT_TRUE(demand.Review(false, kStart + 30s).empty()) << "said once";
  demand.SetNode("n1", {.total = {{"cpu", 4000}}});
  EXPECT_TRUE(demand.Review(false, kStart + 40s).empty());
  ASSERT_EQ(demand.Needs().size(), 2U) << "one for what the node could carry";
  EXPECT_EQ(demand.Needs()[0].aggregate, (Resources{{"cpu", 3000}}));
}

// No bound node counts for it, whatever room they have: the shard sees that it is short.
TEST(OperatorsDemand, WhatNoBoundNodeCouldCarryRaisesNothing) {
  const auto raised = [] {
    Demand demand = Empty();
    demand.SetNode("n1", {.total = {{"cpu", 8000}}, .labels = {{"zone", "a"}}});
    WorkloadView elsewhere = Waiting("a", 1000);
    elsewhere.spec.requirements = {{{.key = "zone", .op = model::Operator::kIn, .values = {"b"}}}};
    Set(demand, elsewhere);
    demand.Review(false, kStart + 20s);
    demand.Review(false, kStart + 21s);
    int64_t asked = 0;
    for (const model::Need& need : demand.Needs()) asked += need.aggregate.Get("cpu");
    return asked - 1000;
  };
  EXPECT_EQ(raised(), 0);
  const faults::ScopedMutant on("operators.raises_for_what_none_carries");
  EXPECT_EQ(raised(), 2000);
}

}  // namespace
}  // namespace muster::operators
