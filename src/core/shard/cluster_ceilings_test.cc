// What an operator's file allows a cluster at most: refused by name, counted, logged, and out of the way of others.
#include "core/shard/cluster_ceilings.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

CeilingsSet Allow(const std::string& cluster, contract::Ceiling ceiling) { return {.ceilings = {{cluster, ceiling}}}; }

// Time passes and what is under way comes to its end, often enough for everything to settle.
void Settle(Lab& lab) {
  for (int i = 0; i < 8; ++i) {
    lab.Run(3s);
    lab.Finish();
  }
  lab.Run(3s);
}

contract::ClusterView ClusterOf(Lab& lab, const std::string& name) {
  for (const contract::ClusterView& view : lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters) {
    if (view.cluster_id == name) return view;
  }
  return {};
}

std::string WhyShort(Lab& lab, const std::string& cluster) {
  const auto needs = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = cluster});
  if (needs.needs.size() != 1) return "";
  const auto explained = lab.AskFor<contract::Explained>(contract::Explain{
      .subject = contract::NeedRef{.cluster_id = cluster, .fingerprint = needs.needs[0].need.profile.fingerprint()}});
  std::string text{model::ReasonName(needs.needs[0].reason)};
  for (const std::string& line : explained.lines) text += "\n" + line;
  return text;
}

// A cluster of higher priority wants four of five machines and may have two.
std::unique_ptr<Lab> TwoOfFour(const contract::Ceiling& ceiling, model::MachineState state) {
  auto lab = std::make_unique<Lab>();
  lab->Add("m", 5, state);
  lab->Start();
  lab->Step(Allow("a", ceiling));
  lab->ConnectWith("a", 4, 100);
  lab->ConnectWith("b", 3, 10);
  Settle(*lab);
  return lab;
}

// What was bought for a cluster that lacks machines is pledged to another one meanwhile: it counts for the first no
// longer than that may not buy a second one.
TEST(ClusterCeilings, WhatWasPassedOnCountsUntilTheLackEnds) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  const Clusters clusters({.names = {"a", "b"}});
  ClusterCeilings ceilings({});
  const auto idle = [&](ClusterCeilings::Most most) {
    ceilings.Count(clusters, lab.core().machines(), {}, std::move(most), lab.now.mono);
    return ceilings.AwaitedBy("a").idle;
  };
  EXPECT_EQ(idle({{"a", 5}}), 0);
  const engine::NeedKey need{.cluster = "a"};
  ceilings.OnStarted({.kind = engine::ActionKind::kProvision, .machine = "m-000", .need = need});
  EXPECT_EQ(idle({{"a", 1}}), 1);
  ceilings.OnPledge("m-000", "b");
  EXPECT_EQ(idle({{"a", 1}}), 1);
  EXPECT_EQ(idle({}), 0);
  EXPECT_TRUE(ceilings.state().coming.empty());
}

TEST(ClusterCeilings, AClusterGetsNoMoreMachinesThanItMayAndOthersGetTheRest) {
  faults::ResetProbes();
  const auto lab = TwoOfFour({.most_machines = 2}, kIdle);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 2);
  EXPECT_EQ(lab->InState(kConfigured, "b"), 3) << "what it may not have is not kept from others";
  EXPECT_GT(faults::ProbeHits()["shard.at_ceiling"], 0u);
  EXPECT_EQ(lab->Outcomes("ceiling"), 1) << "logged when it was reached";
  EXPECT_GE(lab->core().View()->counters.above_ceiling.at("a"), 2u) << "each is counted";
  const contract::ClusterView view = ClusterOf(*lab, "a");
  ASSERT_TRUE(view.ceiling.has_value());
  EXPECT_EQ(*view.ceiling,
            (contract::CeilingView{.most_machines = 2, .machines = 2, .per_hour = {2'000'000}, .reached = true}));
  EXPECT_FALSE(ClusterOf(*lab, "b").ceiling.has_value());
  const std::string why = WhyShort(*lab, "a");
  EXPECT_TRUE(why.starts_with("short.held\n")) << why;
  EXPECT_NE(why.find("cluster a is at its ceiling: it may have 2 machines, and has 2 machines for $2.00/h"),
            std::string::npos)
      << why;
}

TEST(ClusterCeilings, WithoutTheRailItGetsAll) {
  const faults::ScopedMutant on("shard.no_ceiling");
  const auto lab = TwoOfFour({.most_machines = 2}, kIdle);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 4);
}

TEST(ClusterCeilings, WhatIsBoughtForAClusterCountsBeforeItIsBound) {
  const auto lab = TwoOfFour({.most_machines = 2}, kSpeculative);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 2) << "those that were bought for it are bound to it";
  EXPECT_EQ(lab->InState(kConfigured, "b"), 3);
  EXPECT_EQ(lab->Count<contract::CreateRequest>(), 5) << "and nothing was bought in vain";
}

TEST(ClusterCeilings, MoneyIsCountedByTheMachinesPrices) {
  const auto lab = TwoOfFour({.most_per_hour = model::Money{2'500'000}}, kIdle);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 2);
  EXPECT_EQ(lab->InState(kConfigured, "b"), 3);
  EXPECT_EQ(ClusterOf(*lab, "a").ceiling->per_hour, model::Money{2'000'000});
}

TEST(ClusterCeilings, NoMoreVictimsAreTakenForAClusterThanItMayHave) {
  Lab lab;
  lab.Add("m", 3, kIdle);
  lab.Start();
  lab.ConnectWith("b", 3, 10);
  Settle(lab);
  ASSERT_EQ(lab.InState(kConfigured, "b"), 3);
  lab.Step(Allow("a", {.most_machines = 1}));
  lab.ConnectWith("a", 3, 100);
  Settle(lab);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 1);
  EXPECT_EQ(lab.InState(kConfigured, "b"), 2);
}

TEST(ClusterCeilings, ARaisedCeilingCountsAtOnceAndALowerOneTakesNothingAway) {
  const auto lab = TwoOfFour({.most_machines = 2}, kIdle);
  lab->Step(Allow("a", {.most_machines = 3}));
  Settle(*lab);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 3) << "by priority, from the other";
  lab->Step(Allow("a", {.most_machines = 1}));
  Settle(*lab);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 3);
  lab->Step(CeilingsSet{});
  Settle(*lab);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 4) << "off";
  std::vector<std::string> audited;
  for (const Audit& audit : lab->audits) {
    if (audit.action.kind == "Ceiling") audited.push_back(audit.action.cluster_id + ": " + audit.action.error);
  }
  EXPECT_EQ(audited,
            (std::vector<std::string>{"a: 2 machines", "a: 3 machines", "a: 1 machines", "a: no ceiling any more"}));
  const size_t before = lab->audits.size();
  lab->Step(CeilingsSet{});
  EXPECT_EQ(lab->audits.size(), before) << "nothing changed";
}

TEST(ClusterCeilings, AClusterWithoutALineHasThatOfEveryOther) {
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.Step(CeilingsSet{.ceilings = {{"a", {.most_machines = 3}}, {"*", {.most_machines = 1}}}});
  lab.ConnectWith("a", 2);
  lab.ConnectWith("b", 2);
  Settle(lab);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 2);
  EXPECT_EQ(lab.InState(kConfigured, "b"), 1);
}

TEST(ClusterCeilings, AClusterAtItsCeilingIsTriedAgainWhenItHasLessAndNowAndThen) {
  const auto lab = TwoOfFour({.most_machines = 2}, kIdle);
  lab->Rollup("b", 0);
  Settle(*lab);
  std::string lost;
  for (const auto& [id, machine] : lab->machines) {
    if (machine.cluster == "a") lost = id;
  }
  model::Machine machine = lab->machines.at(lost);
  machine.state = kIdle;
  machine.cluster.clear();
  machine.shard_metadata.clear();
  lab->Put(machine);
  Settle(*lab);
  EXPECT_EQ(lab->InState(kConfigured, "a"), 2);
  const uint64_t refused = lab->core().View()->counters.above_ceiling.at("a");
  lab->Run(2min);
  EXPECT_GT(lab->core().View()->counters.above_ceiling.at("a"), refused) << "something cheaper might be there";
  EXPECT_LT(lab->core().View()->counters.above_ceiling.at("a"), refused + 20) << "and not in every cycle";
}

TEST(ClusterCeilings, ARollupAboveTheHighestPriorityIsRefusedByName) {
  faults::ResetProbes();
  Lab lab;
  lab.Add("m", 4, kIdle);
  lab.Start();
  lab.Step(Allow("a", {.highest_priority = 50}));
  lab.ConnectWith("a", 1, 50);
  Settle(lab);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 1);
  lab.Rollup("a", 2, 51);
  Settle(lab);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 1) << "the last good demand is in force";
  EXPECT_EQ(ClusterOf(lab, "a").last_refusal,
            "needs[0].priority: 51 is above 50, the highest that this cluster may ask for");
  EXPECT_EQ(lab.core().View()->counters.rollups_rejected.at("a"), 1u);
  EXPECT_EQ(faults::ProbeHits()["shard.priority_above_ceiling"], 1u);
  const faults::ScopedMutant on("shard.any_priority");
  lab.Rollup("a", 2, 51);
  EXPECT_EQ(ClusterOf(lab, "a").last_refusal, "");
}

TEST(ClusterCeilings, ADemandAboveALoweredPriorityAcquiresNothingUntilItComesWithin) {
  Lab lab;
  lab.Add("m", 2, kIdle);
  lab.Start();
  lab.ConnectWith("a", 2, 100);
  lab.ConnectWith("b", 2, 10);
  lab.Run(1s);
  lab.Step(Allow("a", {.highest_priority = 50}));
  Settle(lab);
  ASSERT_EQ(lab.InState(kConfigured, "a"), 2) << "what it has stays";
  lab.Add("n", 2, kIdle);
  lab.Rollup("a", 4, 100);
  Settle(lab);
  EXPECT_EQ(lab.InState(kConfigured, "b"), 2);
  EXPECT_TRUE(ClusterOf(lab, "a").ceiling->reached);
  lab.Rollup("a", 4, 50);
  Settle(lab);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 4) << "by priority, which is the only throttle";
}

TEST(ClusterCeilings, WhatIsOnItsWayCountsAfterARestart) {
  Lab lab;
  lab.Add("m", 5, kSpeculative);
  lab.Start();
  lab.Step(Allow("a", {.most_machines = 2}));
  lab.ConnectWith("a", 4, 100);
  lab.Run(3s);
  ASSERT_EQ(lab.InState(kCreating), 2);
  lab.Restart();
  lab.Step(Allow("a", {.most_machines = 2}));
  lab.ConnectWith("a", 4, 100);
  Settle(lab);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 2);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 2);
}

TEST(ClusterCeilings, ALoadedCoreGoesOnAsTheSavedOne) {
  Lab lab;
  lab.Add("m", 5, kSpeculative);
  lab.Start();
  lab.Step(Allow("a", {.highest_priority = 100, .most_machines = 2, .most_per_hour = model::Money{9'000'000}}));
  lab.ConnectWith("a", 4, 100);
  lab.Run(3s);
  auto loaded = Core::Load(lab.core().Save());
  ASSERT_TRUE(loaded.has_value());
  for (int i = 0; i < 5; ++i) {
    lab.now.mono += 1s;
    lab.now.wall += 1s;
    std::vector<Effect> here;
    std::vector<Effect> there;
    lab.core().Step(contract::Wake{}, lab.now, here);
    loaded->Step(contract::Wake{}, lab.now, there);
    ASSERT_EQ(codec::ToBytes(here), codec::ToBytes(there));
    ASSERT_EQ(codec::ToBytes(loaded->rails().state().ceilings), codec::ToBytes(lab.core().rails().state().ceilings));
  }
}

}  // namespace
}  // namespace muster::shard
