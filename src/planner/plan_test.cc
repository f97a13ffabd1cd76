// Small requests with one right answer.
#include "planner/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace muster::planner {
namespace {

constexpr const char* kHost = "kubernetes.io/hostname";

struct Asked {
  Request request;
  placement::KindTable kinds;

  Asked& Type(const std::string& name, int64_t cpu, int64_t memory, int64_t price,
              const std::vector<std::string>& zones = {"a"}, const std::string& arch = "amd64") {
    MachineType type{.name = name, .arch = arch, .capacity = {{"cpu", cpu}, {"memory", memory}}};
    for (const std::string& zone : zones) type.offers.push_back({.zone = zone, .price = {price}});
    for (Candidate& candidate : MakeCandidates({.source = "test", .types = {type}}, {Pool{}})) {
      request.candidates.push_back(std::move(candidate));
    }
    return *this;
  }
  placement::Kind Kind(const std::string& app, int64_t cpu, int64_t memory) {
    placement::Kind kind;
    kind.labels = {{"app", app}};
    kind.request = {{"cpu", cpu}, {"memory", memory}};
    return kind;
  }
  Asked& Units(const placement::Kind& kind, int count) {
    const placement::KindIndex index = kinds.Add(kind);
    for (int i = 0; i < count; ++i) {
      request.pending.push_back({.id = fmt::format("unit-{}", request.pending.size()), .kind = index});
    }
    return *this;
  }
  Plan Run() {
    request.world.kinds = kinds.kinds();
    auto plan = MakePlan(request);
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
    return plan ? *plan : Plan{};
  }
  std::map<std::string, int> Types(const Plan& plan) {
    std::map<std::string, int> types;
    for (const PlannedMachine& machine : plan.machines) ++types[request.candidates[machine.candidate].type];
    return types;
  }
};

placement::Selector App(const std::string& app) {
  return {.given = true, .all = {{.key = "app", .op = model::Operator::kIn, .values = {app}}}};
}

using Types = std::map<std::string, int>;

TEST(Plan, BuysTheTypeThatFitsTheMixture) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("cpu-rich", 4000, 4, 100).Type("even", 4000, 16, 130).Type("memory-rich", 4000, 32, 200);
  asked.Units(asked.Kind("x", 1000, 1), 4).Units(asked.Kind("y", 1000, 8), 4);
  const Plan plan = asked.Run();
  EXPECT_EQ(asked.Types(plan), (Types{{"cpu-rich", 1}, {"memory-rich", 1}}));
  EXPECT_EQ(plan.cost_machines.micros, 300);
  EXPECT_LE(plan.lower_bound.micros, 300);
}

TEST(Plan, ExclusiveUnitsGetNodesAndOthersFillThem) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("one", 1000, 100, 10).Type("two", 2000, 100, 20).Type("eight", 8000, 100, 79);
  placement::Kind alone = asked.Kind("alone", 1000, 1);
  alone.exclude.push_back({.topology_key = kHost, .selector = App("alone")});
  asked.Units(alone, 6).Units(asked.Kind("filler", 1000, 1), 6);
  const Plan plan = asked.Run();
  EXPECT_TRUE(plan.unplaced.empty());
  // One large node would leave five exclusive units alone: 79 + 5 * 10.
  EXPECT_EQ(plan.cost_machines.micros, 120);
}

TEST(Plan, SpreadsOverEveryZoneThatIsSold) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("big", 64000, 100, 10, {"a", "b", "c"});
  placement::Kind spread = asked.Kind("web", 100, 1);
  spread.spread.push_back({.topology_key = std::string(model::kZoneKey), .selector = App("web")});
  const Plan plan = asked.Units(spread, 7).Run();
  std::map<std::string, int> by_node;
  for (const Assignment& assignment : plan.assignments) ++by_node[assignment.node];
  ASSERT_EQ(plan.machines.size(), 3U);
  std::multiset<int> counts;
  for (const auto& [unused, count] : by_node) counts.insert(count);
  EXPECT_EQ(counts, (std::multiset<int>{2, 2, 3}));
}

TEST(Plan, KeepsAGroupInOneZoneAndABundleOnOneNode) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("small", 2000, 100, 10, {"a", "b"}).Type("large", 6000, 100, 40, {"a", "b"});
  placement::Kind zone = asked.Kind("zone", 1000, 1);
  zone.colocate.push_back({.topology_key = std::string(model::kZoneKey), .selector = App("zone")});
  placement::Kind host = asked.Kind("host", 1000, 1);
  host.colocate.push_back({.topology_key = kHost, .selector = App("host")});
  const Plan plan = asked.Units(zone, 4).Units(host, 5).Run();
  EXPECT_TRUE(plan.unplaced.empty());
  std::set<std::string> nodes;
  for (const Assignment& assignment : plan.assignments) {
    const auto number = std::stoi(assignment.unit.substr(5));
    if (number >= 4) nodes.insert(assignment.node);
  }
  EXPECT_EQ(nodes.size(), 1U);
}

TEST(Plan, SaysWhatWouldTakeAUnitThatHasNoPlace) {
  Asked asked;
  asked.Type("arm", 8000, 100, 10, {"a"}, "arm64").Type("amd", 2000, 100, 10);
  placement::Kind kind = asked.Kind("x", 4000, 1);
  kind.requirements.push_back({.key = "kubernetes.io/arch", .op = model::Operator::kIn, .values = {"amd64"}});
  const Plan plan = asked.Units(kind, 1).Run();
  ASSERT_EQ(plan.unplaced.size(), 1U);
  EXPECT_EQ(plan.unplaced[0].nearest_type, "arm");
  EXPECT_EQ(plan.unplaced[0].reason, placement::Reason::kLabels);
  EXPECT_TRUE(plan.machines.empty());
}

TEST(Plan, FillsKeptNodesBeforeItBuys) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("node", 4000, 100, 100);
  placement::Node node{.id = "old"};
  node.total = {{"cpu", 4000}, {"memory", 100}};
  asked.request.world.nodes.push_back(node);
  asked.request.nodes["old"].price = model::Money{70};
  asked.request.keep = Keep::kNodes;
  const Plan plan = asked.Units(asked.Kind("x", 1000, 1), 6).Run();
  EXPECT_EQ(plan.machines.size(), 1U);
  EXPECT_EQ(std::ranges::count(plan.assignments, "old", &Assignment::node), 4);
  EXPECT_EQ(plan.cost_before, model::Money{70});
  EXPECT_EQ(plan.cost_after, model::Money{170});
}

// What stays where it is has neighbours among what is planned: units that must be near it, that must not, and that are
// spread with it.
TEST(Plan, TheIdealFleetKnowsWhatRunsOnNodesThatStay) {
  const std::string zone(model::kZoneKey);
  Asked asked;
  asked.request.exact = true;
  asked.Type("node", 4000, 100, 100, {"a", "b"});
  for (const std::string& id : {std::string("stays"), std::string("goes")}) {
    asked.request.world.nodes.push_back({.id = id, .labels = {{kHost, id}, {zone, id == "stays" ? "b" : "a"}}});
    asked.request.world.nodes.back().total = {{"cpu", 4000}, {"memory", 100}};
    asked.request.nodes[id] = {.price = model::Money{70}, .fixed = id == "stays"};
  }
  placement::Kind db = asked.Kind("db", 3500, 1);
  asked.request.world.placed.push_back({.unit = {.id = "db", .kind = asked.kinds.Add(db)}, .node = "stays"});
  placement::Kind agent;
  agent.labels = {{"app", "agent"}};
  agent.ports.push_back({.port = 9100});
  asked.request.residents.push_back({.unit = {.id = "agent", .kind = asked.kinds.Add(agent)}, .node = "stays"});
  placement::Kind near = asked.Kind("near", 1000, 1);
  near.colocate.push_back({.topology_key = zone, .selector = App("db")});
  placement::Kind apart = asked.Kind("apart", 1000, 1);
  apart.exclude.push_back({.topology_key = zone, .selector = App("db")});
  placement::Kind port = asked.Kind("port", 100, 1);
  port.ports.push_back({.port = 9100});
  const Plan plan = asked.Units(near, 1).Units(apart, 1).Units(port, 1).Units(asked.Kind("plain", 500, 1), 1).Run();
  EXPECT_TRUE(plan.unplaced.empty());
  ASSERT_EQ(plan.assignments.size(), 4U) << "the unit of the node that stays is not planned";
  const auto where = [&](size_t unit) -> std::string {
    const std::string& node = plan.assignments[unit].node;
    const auto machine = std::ranges::find(plan.machines, node, &PlannedMachine::id);
    return machine == plan.machines.end() ? node : asked.request.candidates[machine->candidate].zone;
  };
  EXPECT_EQ(where(0), "b");
  EXPECT_EQ(where(1), "a");
  EXPECT_NE(where(2), "stays") << "its port is taken there";
  EXPECT_EQ(where(3), "stays") << "there is room for half a cpu";
  EXPECT_EQ(plan.cost_before, model::Money{140});
  EXPECT_EQ(plan.cost_after, model::Money{270});
}

TEST(Plan, AResidentAsksForNothing) {
  Asked asked;
  asked.request.world.nodes.push_back({.id = "old"});
  asked.request.world.kinds = {asked.Kind("agent", 1, 1)};
  asked.request.residents.push_back({.unit = {.id = "agent", .kind = placement::KindIndex::Of(0)}, .node = "old"});
  EXPECT_EQ(MakePlan(asked.request).error().message(), "unit agent: what a resident takes is reserved on its node");
  asked.request.residents[0].node = "gone";
  EXPECT_EQ(MakePlan(asked.request).error().message(), "unit agent: there is no node gone");
}

TEST(Plan, AnUnpricedNodeMakesTheCostUnknown) {
  Asked asked;
  asked.request.world.nodes.push_back({.id = "old"});
  asked.request.keep = Keep::kNodes;
  const Plan plan = asked.Run();
  EXPECT_FALSE(plan.cost_before);
  EXPECT_FALSE(plan.cost_after);
  EXPECT_EQ(plan.unpriced_nodes, std::vector<std::string>{"old"});
}

TEST(Plan, TerminatingUnitsCountForNothing) {
  Asked asked;
  asked.Type("node", 4000, 100, 100);
  asked.request.world.nodes.push_back({.id = "old"});
  const placement::KindIndex kind = asked.kinds.Add(asked.Kind("x", 1000, 1));
  asked.request.world.placed.push_back({.unit = {.id = "a", .kind = kind}, .node = "old", .terminating = true});
  asked.request.world.placed.push_back({.unit = {.id = "b", .kind = kind}, .node = "old"});
  const Plan plan = asked.Run();
  ASSERT_EQ(plan.assignments.size(), 1U);
  EXPECT_EQ(plan.assignments[0].unit, "b");
}

TEST(Plan, PartsOfDevicesShareDevices) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("gpu", 8000, 100, 100);
  asked.request.candidates[0].devices = {1000, 1000};
  placement::Kind half = asked.Kind("half", 100, 1);
  half.devices.milli = 500;
  placement::Kind whole = asked.Kind("whole", 100, 1);
  whole.devices.whole = 1;
  const Plan plan = asked.Units(half, 2).Units(whole, 1).Run();
  ASSERT_EQ(plan.machines.size(), 1U);
  EXPECT_EQ(plan.assignments[0].devices, plan.assignments[1].devices);
  EXPECT_NE(plan.assignments[0].devices, plan.assignments[2].devices);
}

// Of four devices one is taken: a pair has room, and two pairs have not.
TEST(Plan, DevicesThatAreTakenAreTakenInPairsToo) {
  Asked asked;
  asked.request.exact = true;
  asked.Type("gpu", 8000, 100, 100);
  asked.request.candidates[0].devices = {1000, 1000};
  asked.request.world.nodes.push_back({.id = "old", .labels = {{kHost, "old"}}});
  asked.request.world.nodes[0].total = {{"cpu", 8000}, {"memory", 100}};
  asked.request.world.nodes[0].devices = {1000, 1000, 1000, 1000};
  asked.request.keep = Keep::kNodes;
  placement::Kind one = asked.Kind("one", 100, 1);
  one.devices.whole = 1;
  asked.request.world.placed.push_back({.unit = {.id = "one", .kind = asked.kinds.Add(one)}, .node = "old"});
  placement::Kind pair = asked.Kind("pair", 100, 1);
  pair.devices.whole = 2;
  const Plan plan = asked.Units(pair, 2).Run();
  EXPECT_TRUE(plan.unplaced.empty());
  EXPECT_EQ(plan.machines.size(), 1U);
}

// Two halves of 3 and two of 1 on nodes of 4: a scheduler that spreads puts the small ones on different nodes first.
TEST(Plan, TheReplayBuysWhatASpreadingSchedulerNeeds) {
  Asked asked;
  asked.Type("node", 4000, 4000, 100);
  asked.Units(asked.Kind("large", 4000, 4000), 4).Units(asked.Kind("small", 1000, 1000), 16);
  const Plan plan = asked.Run();
  EXPECT_TRUE(plan.replay.done);
  EXPECT_EQ(plan.cost_machines.micros, 800 + plan.replay.cost_added.micros);
  EXPECT_GT(plan.replay.pending_at_first, 0);
  EXPECT_GT(plan.replay.machines_added, 0);
  EXPECT_EQ(plan.replay.pending_at_last, 0);
  asked.request.exact = true;
  const Plan exact = asked.Run();
  EXPECT_FALSE(exact.replay.done);
  EXPECT_EQ(exact.cost_machines.micros, 800);
}

// Only the node that is there takes the large unit, and a scheduler that spreads puts small ones there first. No
// machine that could be bought helps, so none is bought.
TEST(Plan, TheReplaySaysWhatStaysPending) {
  Asked asked;
  asked.Type("small", 2000, 2000, 100);
  asked.request.world.nodes.push_back({.id = "old", .labels = {{kHost, "old"}}});
  asked.request.world.nodes[0].total = {{"cpu", 4000}, {"memory", 4000}};
  asked.request.keep = Keep::kNodes;
  asked.Units(asked.Kind("large", 4000, 4000), 1).Units(asked.Kind("small", 1000, 1000), 6);
  const Plan plan = asked.Run();
  EXPECT_TRUE(plan.unplaced.empty());
  EXPECT_EQ(plan.machines.size(), 3U);
  EXPECT_EQ(plan.replay.pending_at_first, 1);
  EXPECT_EQ(plan.replay.machines_added, 0);
  EXPECT_EQ(plan.replay.pending_at_last, 1);
}

// One unit wants a zone without the others. A scheduler that spreads puts others into both zones first, and then no
// machine of any zone helps.
TEST(Plan, TheReplayBuysNoMachinesThatHelpNoUnit) {
  Asked asked;
  asked.Type("node", 4000, 4000, 100, {"a", "b"});
  placement::Kind apart = asked.Kind("apart", 1000, 1000);
  apart.exclude.push_back({.topology_key = std::string(model::kZoneKey), .selector = App("many")});
  asked.Units(apart, 1).Units(asked.Kind("many", 1000, 1000), 12);
  const Plan plan = asked.Run();
  EXPECT_TRUE(plan.unplaced.empty());
  EXPECT_EQ(plan.machines.size(), 4U);
  EXPECT_GT(plan.replay.rounds, 0);
  EXPECT_EQ(plan.replay.pending_at_last, 1);
  EXPECT_EQ(plan.replay.machines_added, 0);
}

TEST(Plan, RefusesAMalformedRequest) {
  Asked asked;
  asked.Units(asked.Kind("x", 1, 1), 1);
  asked.request.world.kinds = asked.kinds.kinds();
  asked.request.pending.push_back(asked.request.pending[0]);
  const auto plan = MakePlan(asked.request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message(), "unit unit-0: the id is there twice");
}

}  // namespace
}  // namespace muster::planner
