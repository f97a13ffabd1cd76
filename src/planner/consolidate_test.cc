#include "planner/consolidate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/probe.h"
#include "planner/consolidation_checker.h"

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

// Nodes in two zones with units that are spread over them, one unit for each node.
struct SpreadCluster : Cluster {
  SpreadCluster() {
    placement::Kind kind;
    kind.request = {{"cpu", 1000}};
    kind.labels = {{"app", "web"}};
    kind.spread.push_back({.topology_key = std::string(model::kZoneKey), .selector = Web()});
    web = kinds.Add(kind);
  }
  static placement::Selector Web() {
    return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {"web"}}}};
  }
  void AddWebNode(const std::string& id, const std::string& zone, int64_t units = 1) {
    AddNode(id, 0);
    request.world.nodes.back().labels = {{std::string(model::kZoneKey), zone}};
    for (int64_t i = 0; i < units; ++i) {
      request.world.placed.push_back({.unit = {.id = fmt::format("{}/{}", id, i), .kind = web}, .node = id});
    }
  }
  placement::KindIndex web;
};

TEST(Consolidation, UnitsThatASpreadCountsStayInTheirZone) {
  SpreadCluster cluster;
  cluster.AddWebNode("a1", "a");
  cluster.AddWebNode("a2", "a");
  cluster.AddWebNode("b1", "b");
  cluster.AddWebNode("b2", "b");
  const Consolidation result = cluster.Run();
  EXPECT_EQ(Gone(result).size(), 2U);
  for (const Wave& wave : result.waves) {
    for (const Eviction& eviction : wave.evictions) EXPECT_EQ(eviction.from[0], eviction.to[0]) << eviction.unit;
  }
}

TEST(Consolidation, AUnitWhoseRuleDoesNotHoldKeepsItsNode) {
  SpreadCluster cluster;
  cluster.AddWebNode("a1", "a", 3);
  cluster.AddWebNode("a2", "a");
  cluster.AddWebNode("b1", "b");
  const Consolidation result = cluster.Run();
  ASSERT_EQ(result.cannot_go.size(), 2U);
  EXPECT_EQ(result.cannot_go[0].because, "a rule of a1/0 does not hold now, so no scheduler would put it back");
  EXPECT_EQ(Gone(result), std::vector<std::string>());
}

TEST(Consolidation, BuysNothingWhereASpreadWouldSeeANewDomain) {
  SpreadCluster cluster;
  cluster.AddWebNode("a1", "a");
  cluster.AddWebNode("b1", "b");
  cluster.AddNode("plain", 1);
  cluster.request.world.nodes.back().labels = {{std::string(model::kZoneKey), "b"}};
  for (const char* zone : {"c", "b"}) {
    Candidate small{.type = "small", .zone = zone, .price = {zone[0] == 'c' ? 100'000 : 200'000}};
    small.allocatable = {{"cpu", 1000}};
    small.labels = {{std::string(model::kZoneKey), zone}};
    cluster.request.candidates.push_back(small);
  }
  const Consolidation result = cluster.Run();
  int bought = 0;
  for (const Wave& wave : result.waves) {
    for (const PlannedMachine& machine : wave.machines) {
      EXPECT_EQ(cluster.request.candidates[machine.candidate].zone, "b");
      ++bought;
    }
  }
  EXPECT_GE(bought, 1);
}

TEST(Consolidation, UnitsThatMustShareANodeKeepIt) {
  Cluster cluster;
  cluster.AddNode("a", 1, 100);
  cluster.AddNode("b", 0);
  placement::Kind follower;
  follower.request = {{"cpu", 100}};
  follower.colocate.push_back({.topology_key = "kubernetes.io/hostname", .selector = {.given = true}});
  cluster.request.world.placed.push_back(
      {.unit = {.id = "follower", .kind = cluster.kinds.Add(follower)}, .node = "a"});
  const Consolidation result = cluster.Run();
  ASSERT_EQ(result.cannot_go.size(), 1U);
  EXPECT_EQ(result.cannot_go[0].because, "follower must share its node with other units");
}

// A budget of one for three units of two nodes, and one that allows none.
Cluster BudgetCluster() {
  Cluster cluster;
  cluster.AddNode("room", 0);
  cluster.AddNode("a", 2);
  cluster.AddNode("b", 2);
  cluster.request.nodes["room"].stays_because = "kept by the test";
  cluster.request.world.budgets = {{"web", 1}, {"shut", 0}};
  for (const char* unit : {"a/0", "a/1", "b/0"}) cluster.On(unit).budgets = {"web"};
  cluster.AddNode("c", 1, 100);
  cluster.On("c/0").budgets = {"shut"};
  cluster.request.world.kinds = cluster.kinds.kinds();
  return cluster;
}

std::string ErrorOf(const Cluster& cluster) {
  const auto result = MakeConsolidation(cluster.request);
  return result ? "" : std::string(result.error().message());
}

TEST(Consolidation, WavesKeepToBudgets) {
  Cluster cluster = BudgetCluster();
  const Consolidation result = cluster.Run();
  EXPECT_EQ(result.cannot_go.size(), 2U);
  EXPECT_EQ(Gone(result), (std::vector<std::string>{"a", "b"}));
  std::set<std::string> moved;
  for (const Wave& wave : result.waves) {
    int64_t web = 0;
    for (const Eviction& eviction : wave.evictions) {
      moved.insert(eviction.unit);
      web += cluster.On(eviction.unit).budgets.empty() ? 0 : 1;
    }
    EXPECT_LE(web, 1);
  }
  EXPECT_EQ(moved.size(), 4U);
  EXPECT_EQ(result.waves.size(), 3U);
}

TEST(Consolidation, FindsPlantedBugs) {
  const faults::ScopedMutant ignored("planner.budget_ignored");
  EXPECT_NE(ErrorOf(BudgetCluster()).find("is saved, not"), std::string::npos) << ErrorOf(BudgetCluster());
}

TEST(Consolidation, FindsAWaveThatIsTooLarge) {
  const faults::ScopedMutant large("planner.wave_too_large");
  EXPECT_NE(ErrorOf(BudgetCluster()).find("of budget web, which allows 1"), std::string::npos);
}

// Two units of one app change zones: in the end they are spread, after the first wave they are not.
TEST(Consolidation, FindsAWaveThatBreaksASpreadOnTheWay) {
  SpreadCluster cluster;
  cluster.AddWebNode("a1", "a");
  cluster.AddWebNode("a2", "a", 0);
  cluster.AddWebNode("b1", "b");
  cluster.AddWebNode("b2", "b", 0);
  cluster.request.world.kinds = cluster.kinds.kinds();
  Consolidation moves{.saved = {2'000'000}};
  moves.waves.push_back({.evictions = {{"a1/0", "a1", "b2"}, {"b1/0", "b1", "a2"}}, .nodes = {"a1", "b1"}});
  EXPECT_EQ(CheckConsolidation(cluster.request, moves), std::vector<std::string>());
  moves.waves.push_back({.evictions = {moves.waves[0].evictions[1]}, .nodes = {"b1"}});
  moves.waves[0].evictions.pop_back();
  moves.waves[0].nodes.pop_back();
  EXPECT_EQ(CheckConsolidation(cluster.request, moves),
            (std::vector<std::string>{"b2: a unit of kind 0 breaks its spread over topology.kubernetes.io/zone",
                                      "after wave 1: a unit of kind 0 breaks its spread over "
                                      "topology.kubernetes.io/zone=b, which held before"}));
}

struct Corruption {
  const char* name;
  const char* says;
  std::function<void(Request&, Consolidation&)> corrupt;
};

// A consolidation that holds, corrupted in one thing each time.
TEST(Consolidation, TheCheckerRejectsCorruptedWaves) {
  const std::vector<Corruption> corruptions = {
      {"a unit that is elsewhere", "it is not on",
       [](Request&, Consolidation& c) { c.waves[0].evictions[0].from = "room"; }},
      {"a unit twice", "it moves twice",
       [](Request&, Consolidation& c) { c.waves[0].evictions.push_back(c.waves[0].evictions[0]); }},
      {"a unit that may not be evicted", "it may not be evicted",
       [](Request& r, Consolidation&) {
         for (auto& placed : r.world.placed) placed.may_evict = false;
       }},
      {"two budgets", "under two budgets",
       [](Request& r, Consolidation&) {
         for (auto& placed : r.world.placed) placed.budgets = {"web", "other"};
       }},
      {"a budget", "which allows 0", [](Request& r, Consolidation&) { r.world.budgets.clear(); }},
      {"a target that goes", "is not there to stay",
       [](Request&, Consolidation& c) { c.waves[0].evictions[0].to = "b"; }},
      {"a target that is nowhere", "is not there to stay",
       [](Request&, Consolidation& c) { c.waves[0].evictions[0].to = "plan-9999"; }},
      {"a node with units", "goes with units on it", [](Request&, Consolidation& c) { c.waves[0].evictions.clear(); }},
      {"a node twice", "it goes twice",
       [](Request&, Consolidation& c) { c.waves.back().nodes.push_back(c.waves.back().nodes[0]); }},
      {"a node that may not go", "it may not go",
       [](Request& r, Consolidation& c) { r.nodes[c.waves.back().nodes[0]].stays_because = "it stays"; }},
      {"an unpriced node", "none that could go",
       [](Request& r, Consolidation& c) { r.nodes[c.waves.back().nodes[0]].price.reset(); }},
      {"a candidate that is not there", "there is no candidate",
       [](Request&, Consolidation& c) { c.waves[0].machines.push_back({.id = "plan-0001", .candidate = 7}); }},
      {"room", "of cpu is more than its", [](Request& r, Consolidation&) { r.world.nodes[0].total.Set("cpu", 500); }},
      {"a cordoned target", "it is cordoned", [](Request& r, Consolidation&) { r.world.nodes[0].cordoned = true; }},
      {"the money", "is saved, not", [](Request&, Consolidation& c) { ++c.saved.micros; }},
  };
  for (const Corruption& corruption : corruptions) {
    Cluster cluster = BudgetCluster();
    Consolidation result = cluster.Run();
    EXPECT_EQ(CheckConsolidation(cluster.request, result), std::vector<std::string>());
    corruption.corrupt(cluster.request, result);
    const std::string findings = fmt::format("{}", fmt::join(CheckConsolidation(cluster.request, result), "; "));
    EXPECT_NE(findings.find(corruption.says), std::string::npos) << corruption.name << ": " << findings;
  }
}

}  // namespace
}  // namespace muster::planner
