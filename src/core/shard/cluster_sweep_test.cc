// Clusters that no part uses are forgotten while the shard runs.
#include "core/shard/cluster_sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"
#include "core/shard/order_log.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

std::vector<std::string> Known(Lab& lab) {
  std::vector<std::string> names;
  for (const auto& view : lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters) {
    names.push_back(view.cluster_id);
  }
  return names;
}

// Without a decision between two of them: a step each.
void Pass(Lab& lab, int first, int end) {
  for (int i = first; i < end; ++i) {
    const auto session = static_cast<contract::SessionId>(1'000'000 + i);
    std::vector<Core::Effect> effects;
    lab.core().Step(SessionOpened{session, {.cluster_id = fmt::format("c{:04}", i), .protocol_version = "v1alpha1"}},
                    lab.now, effects);
    for (const Core::Effect& effect : effects) {
      if (const auto* close = std::get_if<CloseSession>(&effect)) lab.closed.emplace_back(session, close->status);
    }
    effects.clear();
    lab.core().Step(SessionClosed{session}, lab.now, effects);
  }
}

// How many of 5,000 clusters were refused a session.
size_t RefusedOfManyInTurn() {
  Lab lab;
  lab.Start();
  Pass(lab, 0, kMostClusters);
  EXPECT_TRUE(lab.closed.empty());
  Pass(lab, kMostClusters, kMostClusters + 1);
  EXPECT_EQ(lab.closed.size(), 1u) << "the room is full for ten minutes";
  EXPECT_EQ(lab.closed.at(0).second.code(), Code::kResourceExhausted);
  lab.closed.clear();
  lab.Run(kForgetAfter + 2 * kSweepClustersEvery);
  Pass(lab, kMostClusters, 5'000);
  const size_t refused = lab.closed.size();
  EXPECT_EQ(Known(lab).size(), refused > 0 ? kMostClusters : 5'000 - kMostClusters);
  return refused;
}

TEST(ShardClusterSweep, NamesInTurnAreAllServed) {
  faults::ResetProbes();
  EXPECT_EQ(RefusedOfManyInTurn(), 0u);
  EXPECT_EQ(faults::ProbeHits()["shard.cluster_forgotten"], kMostClusters);
  const faults::ScopedMutant on("shard.cluster_names_stay");
  EXPECT_EQ(RefusedOfManyInTurn(), 5'000 - kMostClusters);
}

TEST(ShardClusterSweep, OneIsForgottenWithAllThatWasKeptOfIt) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(5s);
  lab.Finish();
  lab.Run(5s);
  ASSERT_EQ(lab.InState(kConfigured, "a"), 1);
  lab.Rollup("a", 5, 10, 1, "b");  // refused, and counted
  lab.Rollup("a", 0);
  for (int i = 0; i < 20 && lab.InState(kIdle) == 0; ++i) {
    lab.Rollup("a", 0);
    lab.Run(1min);
    lab.Finish();
  }
  ASSERT_EQ(lab.InState(kIdle), 1);
  lab.Run(1h);
  EXPECT_EQ(Known(lab), (std::vector<std::string>{"a"})) << "it has a session";
  EXPECT_EQ(lab.core().View()->counters.rollups_rejected.size(), 1u);
  lab.Disconnect("a");
  lab.Run(kForgetAfter - 1s);
  EXPECT_EQ(Known(lab).size(), 1u) << "not yet";
  lab.Run(2 * kSweepClustersEvery);
  EXPECT_TRUE(Known(lab).empty());
  EXPECT_TRUE(lab.core().View()->counters.rollups_rejected.empty());
  EXPECT_TRUE(lab.core().demand().clusters().empty());
  EXPECT_TRUE(lab.core().rails().quarantine().state().empty());
  for (const auto& [key, value] : lab.disk) EXPECT_FALSE(key.starts_with("baseline/")) << key;
  // It comes back as any other; the machine was given back meanwhile.
  lab.ConnectWith("a", 1);
  for (int i = 0; i < 3; ++i) {
    lab.Run(5s);
    lab.Finish();
  }
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kConfigured, "a"), 1);
  lab.Disconnect("a");
  lab.Run(1h);
  EXPECT_EQ(Known(lab), (std::vector<std::string>{"a"})) << "it has a demand and a machine";
}

TEST(ShardClusterSweep, OneThatIsUsedStays) {
  Lab lab;
  lab.Add("m", 1, kConfigured, "machine");
  lab.Add("f", 1, kFailed, "failed");
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Start();
  lab.Step(CeilingsSet{{{"ceiling", contract::Ceiling{.most_machines = 3}}}});
  for (const std::string name : {"ceiling", "demand", "ordered", "gone", "unused"}) lab.Connect(name);
  lab.Rollup("demand", 5);
  lab.Run(1s);
  for (const std::string name : {"ceiling", "demand", "ordered", "gone", "unused"}) lab.Disconnect(name);
  lab.Ask(contract::SetActuation{.cluster_id = "ordered", .mode = contract::ActuationMode::kPaused});
  lab.Ask(contract::DecommissionCluster{.cluster_id = "gone"});
  lab.Run(2 * kForgetAfter);
  EXPECT_EQ(Known(lab), (std::vector<std::string>{"ceiling", "demand", "failed", "gone", "machine", "ordered"}));
}

// A cluster that came once was paused and resumed a day ago. Which clusters are known.
std::vector<std::string> KnownADayAfterAnOrder(Lab& lab) {
  lab.Start();
  lab.Connect("a");
  lab.Disconnect("a");
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kPaused, .who = "local"});
  lab.Ask(contract::SetActuation{.cluster_id = "a", .mode = contract::ActuationMode::kActive, .who = "local"});
  lab.Run(kOrderKeeps - 1min);
  EXPECT_EQ(Known(lab), (std::vector<std::string>{"a"})) << "who resumed it sees that";
  lab.Run(1min + kForgetAfter + 2 * kSweepClustersEvery);
  return Known(lab);
}

TEST(ShardClusterSweep, AnOrderKeepsAClusterForADay) {
  {
    const faults::ScopedMutant on("shard.orders_keep_clusters");
    Lab lab;
    EXPECT_EQ(KnownADayAfterAnOrder(lab), (std::vector<std::string>{"a"}));
  }
  Lab lab;
  EXPECT_TRUE(KnownADayAfterAnOrder(lab).empty());
  EXPECT_FALSE(lab.disk.contains(kOrderRows.RowKey("a")));
  EXPECT_TRUE(lab.core().rails().modes().state().clusters.empty());
  lab.Restart();
  lab.Run(1s);
  EXPECT_TRUE(Known(lab).empty());
}

// A cluster that came once was decommissioned more than a day ago. Which clusters are known.
std::vector<std::string> KnownADayAfterItsEnd(Lab& lab) {
  lab.Start();
  lab.Connect("a");
  lab.Disconnect("a");
  lab.Ask(contract::DecommissionCluster{.cluster_id = "a"});
  lab.Run(kOrderKeeps - 1min);
  EXPECT_EQ(Known(lab), (std::vector<std::string>{"a"})) << "who ordered it sees that";
  lab.Run(1min + kForgetAfter + 2 * kSweepClustersEvery);
  return Known(lab);
}

TEST(ShardClusterSweep, OneThatIsDecommissionedTakesNoPlaceAndStaysThat) {
  {
    const faults::ScopedMutant on("shard.decommissioned_stay");
    Lab lab;
    EXPECT_EQ(KnownADayAfterItsEnd(lab), (std::vector<std::string>{"a"}));
  }
  Lab lab;
  EXPECT_TRUE(KnownADayAfterItsEnd(lab).empty());
  lab.Restart();
  lab.Run(1s);
  EXPECT_TRUE(Known(lab).empty());
  lab.ConnectWith("a", 1);
  EXPECT_NE(lab.core().demand().Of("a").last_refusal.find("decommissioned"), std::string::npos);
  lab.Disconnect("a");
  lab.Run(2 * kForgetAfter);
  EXPECT_TRUE(Known(lab).empty());
  const contract::SetActuation resume{.cluster_id = "a", .mode = contract::ActuationMode::kActive};
  EXPECT_TRUE(lab.Ask(resume).status.ok()) << "it is no mistyped name";
  lab.ConnectWith("a", 1);
  EXPECT_EQ(lab.core().demand().Of("a").rows.size(), 1u);
}

TEST(ShardClusterSweep, ASessionBeginsTheTimeAnew) {
  Lab lab;
  lab.Start();
  for (int i = 0; i < 5; ++i) {  // between two sweeps each time
    lab.Run(kForgetAfter / 2 + 10s);
    lab.Connect("a");
    lab.Disconnect("a");
  }
  EXPECT_EQ(Known(lab).size(), 1u);
  lab.Run(2 * kForgetAfter);
  EXPECT_TRUE(Known(lab).empty());
}

TEST(ShardClusterSweep, GoesOnAfterALoad) {
  Lab lab;
  lab.Start();
  lab.Connect("a");
  lab.Disconnect("a");
  lab.Run(kForgetAfter / 2);
  lab.core() = *Core::Load(lab.core().Save());
  lab.Run(kForgetAfter / 2 + 2 * kSweepClustersEvery);
  EXPECT_TRUE(Known(lab).empty());
}

}  // namespace
}  // namespace muster::shard
