#include "engine/case_run.h"

#include <gtest/gtest.h>

#include "engine/text_table.h"

namespace muster::engine {
namespace {

using model::MachineState;

// What an engine that does what the test says was shown.
struct Seen {
  World world;
  Memory memory;
  MonoTime now;
};

std::vector<Seen> RunWith(std::string_view text, const std::function<Decision(const World&)>& decide,
                          std::vector<std::pair<model::Money, model::Money>>* costs = nullptr) {
  const auto input = ReadCase(text, "case");
  EXPECT_TRUE(input) << input.error().message();
  std::vector<Seen> seen;
  const auto engine = [&](const World& world, Memory& memory, MonoTime now, const Policy&) {
    seen.push_back({world, memory, now});
    memory.drains["kept"] = {.total_millis = 1, .drains = 1};
    return decide(world);
  };
  RunCase(*input, engine, input->cycles, [&](const CaseCycle& cycle) {
    EXPECT_EQ(cycle.number, static_cast<int32_t>(seen.size()));
    EXPECT_EQ(cycle.row_names.size(), cycle.world.needs.size());
    if (costs != nullptr) costs->emplace_back(cycle.cost_before, cycle.cost_after);
  });
  return seen;
}

TEST(CaseRun, StepsChangeTheWorldBeforeTheirCycle) {
  const auto seen = RunWith(R"(
cycleEvery: 10s
machines:
  - {id: a, state: Idle, instanceType: t, price: 1, idleFor: 1m}
  - {id: b, state: Speculative, instanceType: t, price: 1}
clusters:
  - {id: y, needs: [{name: late, aggregate: {cpu: 1}}]}
  - {id: x, reclaimsAllowed: 3, needs: [{aggregate: {cpu: 2}}]}
steps:
  - at: 2
    advance: 5s
    clusters: [{id: x, session: false, gate: shut, needs: []}]
    change: [{type: t, price: 2, interruptionProbability: 0.5}, {ids: [a], labels: {k: v}, failed: fire}]
  - {at: 3, forget: true, remove: [a], machines: [{id: c, state: Idle, idleFor: 2s}]}
)",
                            [](const World&) { return Decision{}; });
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].now, MonoTime{});
  EXPECT_EQ(seen[0].memory.machines.at("a").idle_since, MonoTime{} - 1min);
  ASSERT_EQ(seen[0].world.needs.size(), 2u);
  EXPECT_EQ(seen[0].world.needs[0].cluster, "x");  // clusters by id
  EXPECT_EQ(seen[0].world.needs[0].arrival, WallTime(1'767'225'600s));
  EXPECT_EQ(seen[0].world.clusters.at("x").reclaims_allowed, 3);

  EXPECT_EQ(seen[1].now, MonoTime{} + 15s);
  EXPECT_TRUE(seen[1].memory.drains.contains("kept"));
  EXPECT_EQ(seen[1].world.needs.size(), 1u);
  EXPECT_FALSE(seen[1].world.clusters.at("x").session);
  EXPECT_FALSE(seen[1].world.clusters.at("x").gate_open);
  EXPECT_EQ(seen[1].world.clusters.at("x").reclaims_allowed, 3);
  for (const model::Machine& machine : seen[1].world.machines) {
    EXPECT_EQ(machine.price_per_hour.micros, 2'000'000);
    EXPECT_EQ(machine.interruption_probability.millionths, 500'000);
  }
  EXPECT_EQ(seen[1].world.machines[0].state, MachineState::kFailed);
  EXPECT_EQ(seen[1].world.machines[0].last_error, "fire");
  EXPECT_EQ(seen[1].world.machines[0].labels.at("k"), "v");
  EXPECT_EQ(seen[1].world.machines[1].state, MachineState::kSpeculative);

  EXPECT_EQ(seen[2].now, MonoTime{} + 25s);
  ASSERT_EQ(seen[2].world.machines.size(), 2u);
  EXPECT_EQ(seen[2].world.machines[1].id, "c");
  EXPECT_EQ(seen[2].memory, (Memory{.machines = {{"c", {.idle_since = MonoTime{} + 23s}}}}));
}

TEST(CaseRun, CarriesOutActionsAndCountsWhatTheyCost) {
  std::vector<std::pair<model::Money, model::Money>> costs;
  const auto seen = RunWith(
      R"(
dwell: {create: 2}
cycles: 4
machines:
  - {id: bought, state: Speculative, price: 3}
  - {id: released, state: Idle, price: 2}
  - {id: failed, state: Failed, lastError: x, price: 100}
clusters: [{id: c, needs: [{aggregate: {cpu: 1}}]}]
)",
      [](const World& world) {
        Decision decision;
        decision.needs.push_back({.need = world.needs[0], .rows = {0}});
        if (world.machines[0].state != MachineState::kSpeculative) return decision;
        decision.actions.push_back(
            {.kind = ActionKind::kProvision, .machine = "bought", .cluster = "c", .need = KeyOf(world.needs[0])});
        decision.actions.push_back({.kind = ActionKind::kDelete, .machine = "released"});
        return decision;
      },
      &costs);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[1].world.machines[0].state, MachineState::kCreating);
  EXPECT_EQ(seen[2].world.machines[0].state, MachineState::kCreating);
  EXPECT_EQ(seen[3].world.machines[0].state, MachineState::kConfigured);
  EXPECT_EQ(seen[1].world.machines[1].state, MachineState::kSpeculative);
  EXPECT_EQ(costs[0], std::pair(model::Money{2'000'000}, model::Money{3'000'000}));
  EXPECT_EQ(costs[1], std::pair(model::Money{3'000'000}, model::Money{3'000'000}));
}

TEST(TextTable, AlignsColumnsByCharacters) {
  EXPECT_EQ(AlignRows({{"é", "x", "last one"}, {"abc", "", "y"}, {"a", "b", ""}}, "  "),
            "  é    x  last one\n  abc     y\n  a    b\n");
  EXPECT_EQ(AlignRows({}, "  "), "");
}

TEST(TextTable, JoinsNames) {
  EXPECT_EQ(JoinNames({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(JoinNames({"a", "b", "c"}, 3), "a, b, c");
  EXPECT_EQ(JoinNames({"a", "b", "c", "d"}, 3), "a, b, c and 1 more");
  EXPECT_EQ(JoinNames({}), "");
}

}  // namespace
}  // namespace muster::engine
