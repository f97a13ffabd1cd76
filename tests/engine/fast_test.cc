// The fast engine gives the reference engine's answers: claims, ordered actions, verdicts and memory, in random worlds,
// through random histories, in crowds, in every small world and every case; built afresh for one decision and living
// through many. With MUSTER_SEARCH_SCALE=10 the volumes are those of docs/development.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/probe.h"
#include "engine/compare.h"
#include "engine/fast/internals.h"
#include "engine/flavours.h"
#include "engine/search.h"
#include "engine/shapes/shapes.h"
#include "engine/small_worlds.h"

namespace muster::engine {
namespace {

TEST(FastEngine, DecidesAsTheReferenceInRandomWorlds) {
  for (uint64_t seed = 0; seed < 10'000 * SearchScale(); ++seed) {
    Scene scene = SceneFor(seed, kFlavours[seed % kFlavours.size()]);
    Comparison comparison;
    comparison.Decide(scene.world, scene.memory, scene.now, scene.policy);
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

TEST(FastEngine, DecidesAsTheReferenceThroughHistories) {
  int cycles = 0;
  for (uint64_t seed = 0; seed < 1'000 * SearchScale(); ++seed) {
    Choices choices = ChoicesFor(1'000'000 + seed);
    const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
    Comparison comparison;
    ASSERT_EQ(RunHistory(choices, scene, 20, comparison.AsFunction()), std::nullopt) << "seed " << seed;
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
    cycles += comparison.cycles();
  }
  fmt::print("{} cycles\n", cycles);
}

TEST(FastEngine, DecidesAsTheReferenceInCrowds) {
  int cycles = 0;
  for (uint64_t seed = 0; seed < 60 * SearchScale(); ++seed) {
    Choices choices = CrowdChoicesFor(5'000'000 + seed);
    const Crowd crowd = RandomCrowd(choices, kCrowds[seed % kCrowds.size()]);
    Comparison comparison;
    ASSERT_EQ(RunCrowd(choices, crowd, 25, comparison.AsFunction()), std::nullopt) << "seed " << seed;
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
    cycles += comparison.cycles();
  }
  fmt::print("{} cycles\n", cycles);
}

TEST(FastEngine, DecidesAsTheReferenceInCrowdsAtFirstSight) {
  for (uint64_t seed = 0; seed < 1'000 * SearchScale(); ++seed) {
    Choices choices = CrowdChoicesFor(5'500'000 + seed);
    Scene scene = RandomCrowd(choices, kFirstSights[seed % kFirstSights.size()]).scene;
    Comparison comparison;
    comparison.Decide(scene.world, scene.memory, scene.now, scene.policy);
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

TEST(FastEngine, DecidesAsTheReferenceWhileMachinesAreReplaced) {
  for (uint64_t seed = 0; seed < 8 * SearchScale(); ++seed) {
    Rng rng(6'000'000 + seed);
    Choices choices = Choices::Random(rng, 20'000);
    Comparison comparison;
    ASSERT_EQ(RunChurn(choices, 80, comparison.AsFunction()), std::nullopt) << "seed " << seed;
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

TEST(FastEngine, DecidesAsTheReferenceWhileGangsTakeNewNames) {
  for (uint64_t seed = 0; seed < 8 * SearchScale(); ++seed) {
    Choices choices = ChoicesFor(7'500'000 + seed);
    const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
    Comparison comparison;
    (void)RunHistory(choices, scene, 60, UnderNewNames(comparison.AsFunction()));
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

std::string AskForTheUnknown(uint64_t seed) {
  Choices choices = ChoicesFor(7'600'000 + seed);
  const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
  Comparison comparison;
  (void)RunHistory(choices, scene, 20, AskingForTheUnknown(comparison.AsFunction()));
  return comparison.difference();
}

TEST(FastEngine, DecidesAsTheReferenceWhileNeedsAskForTheUnknown) {
  for (uint64_t seed = 0; seed < 100 * SearchScale(); ++seed) ASSERT_EQ(AskForTheUnknown(seed), "") << "seed " << seed;
  const faults::ScopedMutant on("fast.odd_unread");
  std::string found;
  for (uint64_t seed = 0; seed < 100 && found.empty(); ++seed) found = AskForTheUnknown(seed);
  EXPECT_NE(found.find("long-lived: "), std::string::npos) << found;
}

std::string LetNamesPass(uint64_t seed) {
  Choices choices = ChoicesFor(7'700'000 + seed);
  const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
  Comparison comparison;
  (void)RunHistory(choices, scene, 20, WithNamesThatPass(comparison.AsFunction()));
  return comparison.difference();
}

TEST(FastEngine, DecidesAsTheReferenceWhileNamesOfResourcesComeAndGo) {
  faults::ResetProbes();
  for (uint64_t seed = 0; seed < 60 * SearchScale(); ++seed) ASSERT_EQ(LetNamesPass(seed), "") << "seed " << seed;
  EXPECT_GT(faults::ProbeHits()["fast.dimension_evicted"], 60u);
  const faults::ScopedMutant on("fast.evicted_unread");
  std::string found;
  for (uint64_t seed = 0; seed < 60 && found.empty(); ++seed) found = LetNamesPass(seed);
  EXPECT_NE(found.find("long-lived: "), std::string::npos) << found;
}

TEST(FastEngine, DecidesAsTheReferenceWhilePricesMove) {
  faults::ResetProbes();
  const uint64_t histories = 40 * SearchScale();
  for (uint64_t seed = 0; seed < histories; ++seed) {
    Choices choices = ChoicesFor(7'800'000 + seed);
    const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
    Comparison comparison;
    (void)RunHistory(choices, scene, 20, WithPricesThatMove(comparison.AsFunction()));
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
  EXPECT_GT(faults::ProbeHits()["fast.classes_swept"], 40 * histories);
}

TEST(FastEngine, DecidesAsTheReferenceInSmallWorlds) {
  uint64_t looked_at = 0;
  const uint64_t worlds = ForEachSmallWorld(SearchScale() >= 10 ? 1 : 40, [&](const Scene& scene, uint64_t number) {
    ++looked_at;
    Memory memory = scene.memory;
    Comparison comparison;
    comparison.Decide(scene.world, memory, scene.now, scene.policy);
    ASSERT_EQ(comparison.difference(), "") << "world " << number;
  });
  fmt::print("{} of {} worlds\n", looked_at, worlds);
}

// Nothing of the reference takes part: a long-lived engine decides and remembers.
SettleResult SettleAlone(const Scene& scene) {
  fast::Follower follower(scene.policy);
  follower.engine().Restore(scene.memory);
  return Settle(scene, [&](const World& world, Memory& memory, MonoTime now, const Policy&) {
    follower.Update(world);
    Decision decision = follower.Decide(now);
    memory = follower.engine().ExportMemory();
    return decision;
  });
}

TEST(FastEngine, Settles) {
  int longest = 0;
  for (uint64_t seed = 0; seed < 4'000 * SearchScale(); ++seed) {
    const SettleResult result =
        SettleAlone(SceneFor(2'000'000 + seed / kFlavours.size(), kFlavours[seed % kFlavours.size()]));
    ASSERT_EQ(result.broken, std::nullopt) << "seed " << seed;
    ASSERT_FALSE(result.loops || result.too_long) << "seed " << seed << ": " << result.rounds << " rounds";
    longest = std::max(longest, result.rounds);
  }
  fmt::print("longest run {}\n", longest);
}

TEST(FastEngine, SettlesOnEveryShape) {
  for (const Shape& shape : Shapes()) {
    Scene scene{.world = shape.build({.times = 1, .parts = 8})};
    for (int64_t parts = 16; scene.world.machines.size() > 1500 && parts <= 4096; parts *= 2) {
      scene.world = shape.build({.times = 1, .parts = parts});
    }
    if (scene.world.needs.size() > 1000) scene.world.needs.resize(1000);  // of one cluster, which scale leaves whole
    const SettleResult result = SettleAlone(scene);
    EXPECT_EQ(result.broken, std::nullopt) << shape.name;
    EXPECT_FALSE(result.loops || result.too_long || result.buys_again) << shape.name << ": " << result.rounds;
    fmt::print("{}: {} machines, {} needs, {} rounds\n", shape.name, scene.world.machines.size(),
               scene.world.needs.size(), result.rounds);
  }
}

// Gangs come and go under new names all the time.
TEST(FastEngine, UsesTheKeysOfGangsThatAreGoneAgain) {
  fast::Follower follower{Policy{}};
  model::ProfileParts parts;
  parts.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
  World world{.clusters = {{"a", {}}}};
  world.needs.push_back({.cluster = "a", .profile = model::Profile(parts), .aggregate = {{"cpu", 1000}}});
  for (int cycle = 0; cycle < 100; ++cycle) {
    world.needs[0].group = fmt::format("gang-{}", cycle);
    follower.Update(world);
    follower.Decide(MonoTime(std::chrono::seconds(3600 + cycle)));
  }
  EXPECT_LE(fast::Internals(follower.engine()).inventory.keys(), 5u);
}

// Whose is a machine that nobody claims any more, before and after many of them?
std::array<std::optional<model::Attribution>, 2> OwnerThroughGangs(size_t& stamps) {
  fast::Follower follower{Policy{}};
  World world{.clusters = {{"a", {}}}};
  world.machines.push_back(
      {.id = "m", .state = model::MachineState::kConfigured, .resources = {{"cpu", 1000}}, .cluster = "a"});
  world.needs.push_back({.cluster = "a", .profile = {}, .aggregate = {{"cpu", 1000}}});
  follower.Update(world);
  follower.Decide(MonoTime(std::chrono::seconds(3600)));
  const auto owner = [&] { return follower.engine().ExportMemory().machines.at("m").attribution; };
  const auto before = owner();
  model::ProfileParts parts;
  parts.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
  world.needs[0].profile = model::Profile(parts);
  for (int cycle = 1; cycle < 500; ++cycle) {
    world.needs[0].group = fmt::format("gang-{}", cycle);
    follower.Update(world);
    follower.Decide(MonoTime(std::chrono::seconds(3600 + cycle)));
  }
  stamps = fast::Internals(follower.engine()).inventory.stamps();
  return {before, owner()};
}

TEST(FastEngine, UsesTheStampsThatNobodyHasAgain) {
  size_t stamps = 0;
  const auto [before, after] = OwnerThroughGangs(stamps);
  EXPECT_LE(stamps, 80u);
  EXPECT_TRUE(before);
  EXPECT_EQ(after, before);
  const faults::ScopedMutant on("fast.stamp_in_use");
  EXPECT_DEATH(OwnerThroughGangs(stamps), "references: stamp [0-9]+ is in use and spare");
}

}  // namespace
}  // namespace muster::engine
