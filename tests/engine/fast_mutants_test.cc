// Planted bugs of the fast engine: the comparison with the reference finds each of them, and says what its row in
// tests/faults/engine.txt demands. Each is searched for in a process of its own, from the world that its row names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/probe.h"
#include "engine/compare.h"
#include "engine/flavours.h"
#include "host/fault_table_for_test.h"
#include "host/search_apart_for_test.h"

namespace muster::engine {
namespace {

// Worlds by number: rounds of random worlds, crowds at first sight, a history and the history of a crowd; every eighth
// round ends with a fleet whose machines are replaced and a history whose gangs take new names.
constexpr uint64_t kScenes = 10;
constexpr uint64_t kSights = 30;
constexpr uint64_t kRound = kScenes + kSights + 2;
constexpr uint64_t kEightRounds = 8 * kRound + 2;
constexpr uint64_t kWorlds = 7 * kEightRounds + 4 * kRound;  // 60 rounds

void RunWorld(uint64_t number, const DecideFn& decide) {
  const uint64_t of_eight = std::min<uint64_t>(number % kEightRounds / kRound, 7);
  const uint64_t round = 8 * (number / kEightRounds) + of_eight;
  const uint64_t i = number % kEightRounds - of_eight * kRound;
  if (i < kScenes) {
    Scene scene = SceneFor(round * kScenes + i, kFlavours[i % kFlavours.size()]);
    decide(scene.world, scene.memory, scene.now, scene.policy);
  } else if (i < kScenes + kSights) {
    const uint64_t sight = i - kScenes;
    Choices choices = CrowdChoicesFor(8'500'000 + round * kSights + sight);
    Scene scene = RandomCrowd(choices, kFirstSights[sight % kFirstSights.size()]).scene;
    decide(scene.world, scene.memory, scene.now, scene.policy);
  } else if (i == kScenes + kSights) {
    Choices choices = ChoicesFor(7'000'000 + round);
    const Scene scene = RandomScene(choices, kFlavours[round % kFlavours.size()]);
    (void)RunHistory(choices, scene, 20, decide);
  } else if (i == kScenes + kSights + 1) {
    Choices choices = CrowdChoicesFor(8'000'000 + round);
    const Crowd crowd = RandomCrowd(choices, kCrowds[round % 4]);
    (void)RunCrowd(choices, crowd, 25, decide);
  } else if (i == kRound) {
    Rng rng(9'000'000 + round);
    Choices choices = Choices::Random(rng, 20'000);
    (void)RunChurn(choices, 60, decide);
  } else {
    Choices choices = ChoicesFor(7'500'000 + round);
    const Scene scene = RandomScene(choices, kFlavours[round / 8 % kFlavours.size()]);
    (void)RunHistory(choices, scene, 60, UnderNewNames(decide));
  }
}

// The first difference in the worlds from `first` on; "" if there is none. `progress`, if given, is a file that gets a
// dot for every world begun.
std::string Search(uint64_t first, int progress = -1) {
  for (uint64_t number = first; number < kWorlds; ++number) {
    EXPECT_TRUE(progress < 0 || write(progress, ".", 1) == 1);
    Comparison comparison;
    RunWorld(number, comparison.AsFunction());
    if (!comparison.difference().empty()) return comparison.difference();
  }
  return "";
}

class FastMutant : public testing::TestWithParam<faults::Row> {};

TEST_P(FastMutant, IsFound) { faults::ExpectFoundApart(GetParam(), Search); }

INSTANTIATE_TEST_SUITE_P(FastEngine, FastMutant,
                         testing::ValuesIn(faults::RowsOf("FastMutant.IsFound", "engine", "bug")), faults::TestNameOf);

model::Machine OneCpu(std::string id, std::string zone, std::string cluster) {
  model::Machine machine{.id = std::move(id), .zone = std::move(zone), .cluster = std::move(cluster)};
  machine.state = machine.cluster.empty() ? model::MachineState::kIdle : model::MachineState::kConfigured;
  machine.instance_type = "m";
  machine.resources = {{"cpu", 1000}};
  return machine;
}

// Too rare for the search: a domain comes while nothing that is free changes, and moves the others' numbers. The need
// has its share of zone b and may take more only once zone c has something to give; pools are made, and nothing taken.
std::string WhenADomainComes() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}, {"other", {.gate_open = false}}}};
  world.machines = {OneCpu("b1", "b", "mine"), OneCpu("b2", "b", ""), OneCpu("c1", "c", "other")};
  model::ProfileParts parts;
  parts.spread.push_back(
      {.topology_key = std::string(model::kZoneKey), .max_skew = 1, .when = model::WhenUnsatisfiable::kDoNotSchedule});
  world.needs.push_back({.cluster = "mine",
                         .profile = model::Profile(std::move(parts)),
                         .aggregate = {{"cpu", 3000}},
                         .min_unit = {{"cpu", 1000}}});
  comparison.Decide(world, memory, MonoTime(1h), {});
  comparison.Decide(world, memory, MonoTime(1h + 1s), {});
  world.machines.push_back(OneCpu("a1", "a", "other"));
  const Decision last = comparison.Decide(world, memory, MonoTime(1h + 2s), {});
  EXPECT_TRUE(last.actions.empty());
  return comparison.difference();
}

TEST(FastMutants, StalePoolDomainsAreFound) {
  EXPECT_EQ(WhenADomainComes(), "");
  const faults::ScopedMutant on("fast.stale_pool_domains");
  EXPECT_TRUE(WhenADomainComes().starts_with("cycle 3, long-lived: ")) << WhenADomainComes();
}

// Elsewhere a group shrinks below what its need took of it, and the engine dies. Here a machine that the need does not
// use becomes cheaper than one that it uses, and nothing else changes.
std::string WhenAMachineBecomesCheaper() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}}};
  world.machines = {OneCpu("a1", "a", "mine"), OneCpu("b1", "a", "mine"), OneCpu("b2", "a", "mine")};
  for (const size_t dear : {1, 2}) world.machines[dear].price_per_hour = {1'000'000};
  world.needs.push_back({.cluster = "mine", .profile = {}, .aggregate = {{"cpu", 3000}}, .min_unit = {{"cpu", 1000}}});
  comparison.Decide(world, memory, MonoTime(1h), {});
  world.needs[0].aggregate = {{"cpu", 2000}};
  for (int i = 1; i < 4; ++i) comparison.Decide(world, memory, MonoTime(1h + i * 1s), {});
  world.machines[2].price_per_hour = {};
  const Decision last = comparison.Decide(world, memory, MonoTime(1h + 4s), {});
  EXPECT_EQ(last.claims.back().machine, "b2");
  return comparison.difference();
}

TEST(FastMutants, WhatIsSettledAnewIsFound) {
  EXPECT_EQ(WhenAMachineBecomesCheaper(), "");
  const faults::ScopedMutant on("fast.settled_stale");
  const std::string found = WhenAMachineBecomesCheaper();
  EXPECT_TRUE(found.starts_with("cycle 5, without verdicts: claim 1\n")) << found;
}

model::Profile OfOneZone(int32_t priority) {
  model::ProfileParts parts{.priority = priority};
  parts.requirements.push_back({.key = std::string(model::kZoneKey), .op = model::Operator::kSame});
  return model::Profile(std::move(parts));
}

model::Need Cpus(int64_t cpus, model::Profile profile, std::string group = "") {
  return {.cluster = "mine",
          .profile = std::move(profile),
          .aggregate = {{"cpu", cpus * 1000}},
          .min_unit = {{"cpu", 1000}},
          .group = std::move(group)};
}

void Pledge(const std::string& machine, const model::Need& need, Memory& memory) {
  memory.machines[machine].pledge = {
      .cluster = need.cluster, .fingerprint = need.profile.fingerprint(), .group = need.group};
}

// Too rare since gangs look for victims: what drains for a gang completes it where it is, beside a zone that is free.
std::string WhileAGangWaits() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}, {"other", {}}}};
  world.machines = {OneCpu("a1", "a", "mine"), OneCpu("a2", "a", "other"), OneCpu("b1", "b", ""),
                    OneCpu("b2", "b", "")};
  world.machines[1].state = model::MachineState::kDraining;
  world.needs.push_back(Cpus(2, OfOneZone(10), "gang"));
  Pledge("a2", world.needs[0], memory);
  EXPECT_TRUE(comparison.Decide(world, memory, MonoTime(1h), {}).actions.empty());
  return comparison.difference();
}

TEST(FastMutants, DrainsThatAreNotSeenAreFound) {
  EXPECT_EQ(WhileAGangWaits(), "");
  const faults::ScopedMutant on("fast.drains_unseen");
  EXPECT_TRUE(WhileAGangWaits().starts_with("cycle 1, afresh: action 0")) << WhileAGangWaits();
}

// A gang holds two machines that are pledged to it, and then two needs come that stand before it.
std::string WhenBetterNeedsCome() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}}};
  world.machines = {OneCpu("a1", "a", ""), OneCpu("a2", "a", ""), OneCpu("b1", "b", "mine")};
  world.needs.push_back(Cpus(1, model::Profile(model::ProfileParts{.priority = 50})));
  world.needs.push_back(Cpus(4, OfOneZone(10), "gang"));
  for (const char* machine : {"a1", "a2"}) Pledge(machine, world.needs[1], memory);
  EXPECT_TRUE(comparison.Decide(world, memory, MonoTime(1h), {}).actions.empty());
  for (const int32_t priority : {100, 99}) {
    world.needs.push_back(Cpus(1, model::Profile(model::ProfileParts{.priority = priority})));
  }
  EXPECT_EQ(comparison.Decide(world, memory, MonoTime(1h + 1s), {}).actions.size(), 2u);
  return comparison.difference();
}

TEST(FastMutants, WhatAGangHeldBeforeIsFound) {
  EXPECT_EQ(WhenBetterNeedsCome(), "");
  const faults::ScopedMutant on("fast.held_over");
  EXPECT_TRUE(WhenBetterNeedsCome().starts_with("cycle 2, long-lived: ")) << WhenBetterNeedsCome();
}

// A class runs out of stock, and nothing else changes.
std::string WhenStockRunsOut() {
  Comparison comparison;
  World world{.clusters = {{"mine", {}}}};
  world.machines = {OneCpu("a1", "a", ""), OneCpu("b1", "b", "")};
  for (model::Machine& machine : world.machines) machine.state = model::MachineState::kSpeculative;
  world.machines[1].price_per_hour = {1'000'000};
  world.needs.push_back(Cpus(1, {}));
  Memory memory;
  EXPECT_EQ(comparison.Decide(world, memory, MonoTime(1h), {}).actions.at(0).machine, "a1");
  world.holds.classes.insert(StockClassOf(world.machines[0]));
  EXPECT_EQ(comparison.Decide(world, memory, MonoTime(1h + 1s), {}).actions.at(0).machine, "b1");
  return comparison.difference();
}

TEST(FastMutants, StaleStockIsFound) {
  EXPECT_EQ(WhenStockRunsOut(), "");
  const faults::ScopedMutant on("fast.stale_stock");
  EXPECT_TRUE(WhenStockRunsOut().starts_with("cycle 2, long-lived: ")) << WhenStockRunsOut();
}

// The reclaim budget is spent: an unused machine goes instead of one that serves a lesser need.
std::string WhenTheBudgetIsSpent() {
  Comparison comparison;
  Memory memory;
  World world{.clusters = {{"mine", {}}, {"lab", {}}, {"rich", {.reclaims_allowed = 0}}}};
  world.machines = {OneCpu("a1", "a", "lab"), OneCpu("b1", "a", "rich")};
  world.needs.push_back(Cpus(1, model::Profile(model::ProfileParts{.priority = 1000})));
  world.needs.push_back(Cpus(1, model::Profile(model::ProfileParts{.priority = 1})));
  world.needs[1].cluster = "lab";
  memory.machines["b1"].attribution = model::Attribution{.fingerprint = "gone", .priority = 5000};
  memory.machines["b1"].unclaimed_since = MonoTime(50min);
  EXPECT_EQ(comparison.Decide(world, memory, MonoTime(1h), {}).actions.at(0).machine, "b1");
  return comparison.difference();
}

TEST(FastMutants, AMissedStandInIsFound) {
  EXPECT_EQ(WhenTheBudgetIsSpent(), "");
  const faults::ScopedMutant on("fast.instead_missed");
  EXPECT_TRUE(WhenTheBudgetIsSpent().starts_with("cycle 1, afresh: action 0")) << WhenTheBudgetIsSpent();
}

TEST(FastMutants, NothingIsFoundWithoutThem) { EXPECT_EQ(Search(0), ""); }

}  // namespace
}  // namespace muster::engine
