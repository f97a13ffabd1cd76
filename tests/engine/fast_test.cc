// The fast engine gives the reference engine's answers: claims, ordered actions, verdicts and memory, in random worlds,
// through random histories, in every small world; built afresh for one decision and living through many. With
// MUSTER_SEARCH_SCALE=10 the volumes are those of docs/development.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/compare.h"
#include "engine/fast/cycle.h"
#include "engine/fast/engine.h"
#include "engine/flavours.h"
#include "engine/reference/decide.h"
#include "engine/search.h"

namespace muster::engine {
namespace {

TEST(FastEngine, DecidesAsTheReferenceInRandomWorlds) {
  for (uint64_t seed = 0; seed < 10'000 * SearchScale(); ++seed) {
    Scene scene = SceneFor(seed, kFlavours[seed % kFlavours.size()]);
    Comparison comparison(scene.policy);
    comparison.Decide(scene.world, scene.memory, scene.now);
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

TEST(FastEngine, DecidesAsTheReferenceThroughHistories) {
  for (uint64_t seed = 0; seed < 1'000 * SearchScale(); ++seed) {
    Choices choices = ChoicesFor(1'000'000 + seed);
    const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
    Comparison comparison(scene.policy);
    RunHistory(choices, scene, 20, [&](const World& world, Memory& memory, MonoTime now, const Policy&) {
      return comparison.Decide(world, memory, now);
    });
    ASSERT_EQ(comparison.difference(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::engine
