#include "planner/consolidate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/probe.h"

namespace muster::planner {
namespace {

// Nodes of 4 cpu at $1, each with units of 1 cpu.
struct Cluster {
  Request request;
  placement::KindTable kinds;

  placement::KindIndex Kind(int64_t cpu) {
    placement::Kind kind;
    kind.request = {{"cpu", cpu}};
    return kinds.Add(kind);
  }
  void AddNode(const std::string& id, int64_t units, int64_t cpu = 1000) {
    placement::Node node{.id = id};
    node.total = {{"cpu", 4000}};
    request.world.nodes.push_back(node);
    request.nodes[id] = {.price = model::Money{1'000'000}};
    for (int64_t i = 0; i < units; ++i) {
      request.world.placed.push_back({.unit = {.id = fmt::format("{}/{}", id, i), .kind = Kind(cpu)}, .node = id});
    }
  }
  placement::PlacedUnit& On(const std::string& unit) {
    return *std::ranges::find_if(request.world.placed, [&](const auto& placed) { return placed.unit.id == unit; });
  }
  Consolidation Run() {
    request.world.kinds = kinds.kinds();
    auto result = MakeConsolidation(request);
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? *result : Consolidation{};
  }
};

std::vector<std::string> Gone(const Consolidation& consolidation) {
  std::vector<std::string> nodes;
  for (const Wave& wave : consolidation.waves) nodes.insert(nodes.end(), wave.nodes.begin(), wave.nodes.end());
  std::ranges::sort(nodes);
  return nodes;
}

TEST(Consolidation, EmptiesNodesWhoseUnitsFitElsewhere) {
  Cluster cluster;
  cluster.AddNode("a", 2);
  cluster.AddNode("b", 1);
  cluster.AddNode("c", 1);
  const Consolidation result = cluster.Run();
  EXPECT_EQ(Gone(result), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(result.saved.micros, 2'000'000);
  EXPECT_EQ(result.not_worth, std::vector<std::string>{"a"});
  for (const Wave& wave : result.waves) {
    for (const Eviction& eviction : wave.evictions) EXPECT_EQ(eviction.to, "a");
  }
}

TEST(Consolidation, BuysACheaperMachineBeforeTheFirstEviction) {
  Cluster cluster;
  cluster.AddNode("a", 1);
  cluster.request.candidates.push_back({.type = "small", .price = {200'000}, .allocatable = {{"cpu", 1000}}});
  const Consolidation result = cluster.Run();
  ASSERT_EQ(result.waves.size(), 1U);
  ASSERT_EQ(result.waves[0].machines.size(), 1U);
  EXPECT_EQ(result.waves[0].evictions[0].to, result.waves[0].machines[0].id);
  EXPECT_EQ(result.saved.micros, 800'000);
}

TEST(Consolidation, NamesWhatKeepsANode) {
  Cluster cluster;
  for (const char* id : {"control", "bare", "two", "none", "unknown"}) cluster.AddNode(id, 1, 100);
  cluster.AddNode("room", 0);
  cluster.AddNode("unpriced", 0);
  cluster.request.nodes["control"].stays_because = "control plane";
  cluster.request.nodes["unpriced"].price.reset();
  cluster.On("bare/0").may_evict = false;
  cluster.request.world.budgets = {{"x", 1}, {"y", 1}, {"shut", 0}};
  cluster.On("two/0").budgets = {"x", "y"};
  cluster.On("none/0").budgets = {"shut"};
  cluster.On("unknown/0").budgets = {"gone"};
  const Consolidation result = cluster.Run();
  const std::vector<Stay> expected{{"control", "control plane"},
                                   {"bare", "bare/0 may not be evicted"},
                                   {"two", "two/0 is under 2 budgets"},
                                   {"none", "the budget shut of none/0 allows no eviction"},
                                   {"unknown", "the budget gone of unknown/0 allows no eviction"}};
  EXPECT_EQ(result.cannot_go, expected);
  EXPECT_EQ(result.unpriced, std::vector<std::string>{"unpriced"});
  EXPECT_EQ(Gone(result), std::vector<std::string>{"room"});
}

// What every consolidation holds to: "" or what is wrong.
std::string FaultOfBudgets() {
  Cluster cluster;
  cluster.AddNode("room", 0);
  cluster.AddNode("a", 2);
  cluster.AddNode("b", 2);
  cluster.request.nodes["room"].stays_because = "kept by the test";
  cluster.request.world.budgets = {{"web", 1}, {"shut", 0}};
  for (const char* unit : {"a/0", "a/1", "b/0"}) cluster.On(unit).budgets = {"web"};
  cluster.AddNode("c", 1, 100);
  cluster.On("c/0").budgets = {"shut"};
  const Consolidation result = cluster.Run();
  if (result.cannot_go.size() != 2) return "a budget that allows none is not heeded";
  if (Gone(result) != std::vector<std::string>{"a", "b"}) return "another set of nodes goes";
  std::set<std::string> moved;
  for (const Wave& wave : result.waves) {
    int64_t web = 0;
    for (const Eviction& eviction : wave.evictions) {
      moved.insert(eviction.unit);
      web += cluster.On(eviction.unit).budgets.empty() ? 0 : 1;
    }
    if (web > 1) return "a wave evicts more than its budget allows";
  }
  return moved.size() == 4 && result.waves.size() == 3 ? "" : "units are left behind";
}

TEST(Consolidation, WavesKeepToBudgets) { EXPECT_EQ(FaultOfBudgets(), ""); }

TEST(Consolidation, FindsPlantedBugs) {
  const faults::ScopedMutant ignored("planner.budget_ignored");
  EXPECT_EQ(FaultOfBudgets(), "a budget that allows none is not heeded");
}

TEST(Consolidation, FindsAWaveThatIsTooLarge) {
  const faults::ScopedMutant large("planner.wave_too_large");
  EXPECT_EQ(FaultOfBudgets(), "a wave evicts more than its budget allows");
}

}  // namespace
}  // namespace muster::planner
