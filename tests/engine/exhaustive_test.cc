// Every small world. MUSTER_SEARCH_SCALE=10 looks at all of them; by default at every fortieth.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/flavours.h"
#include "engine/reference/decide.h"
#include "engine/search.h"
#include "engine/small_worlds.h"

namespace muster::engine {
namespace {

TEST(SmallWorlds, KeepTheInvariantsAndSettle) {
  uint64_t looked_at = 0;
  const DecideFn decide = [](const World& world, Memory& memory, MonoTime now, const Policy& policy) {
    return reference::Decide(world, memory, now, policy);
  };
  const uint64_t worlds = ForEachSmallWorld(SearchScale() >= 10 ? 1 : 40, [&](const Scene& scene, uint64_t number) {
    ++looked_at;
    ASSERT_EQ(CheckOnce(scene, decide), std::nullopt) << "world " << number;
    if (number % 16 != 1) return;  // settling takes many decisions
    const SettleResult result = Settle(scene, decide);
    ASSERT_EQ(result.broken, std::nullopt) << "world " << number;
    ASSERT_FALSE(result.loops || result.too_long) << "world " << number;
  });
  EXPECT_GT(looked_at, 10'000u);
  fmt::print("{} of {} worlds\n", looked_at, worlds);
}

}  // namespace
}  // namespace muster::engine
