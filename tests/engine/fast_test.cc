// The fast engine gives the reference engine's answers: claims, ordered actions, verdicts and memory, in random worlds,
// through random histories, in crowds, in every small world and every case; built afresh for one decision and living
// through many. With MUSTER_SEARCH_SCALE=10 the volumes are those of docs/development.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/compare.h"
#include "engine/flavours.h"
#include "engine/search.h"

namespace muster::engine {
namespace {

DecideFn By(Comparison& comparison) {
  return [&](const World& world, Memory& memory, MonoTime now, const Policy& policy) {
    return comparison.Decide(world, memory, now, policy);
  };
}

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
    ASSERT_EQ(RunHistory(choices, scene, 20, By(comparison)), std::nullopt) << "seed " << seed;
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
    ASSERT_EQ(RunCrowd(choices, crowd, 25, By(comparison)), std::nullopt) << "seed " << seed;
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
    cycles += comparison.cycles();
  }
  fmt::print("{} cycles\n", cycles);
}

}  // namespace
}  // namespace muster::engine
