#include "sim/losses_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunLossesWorld(seed); };
}

TEST(LossesWorld, HoldsUnderEveryKindOfLoss) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 24, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  for (const char* area : {"shard", "sim"}) faults::ExpectReached("LossesWorld.HoldsUnderEveryKindOfLoss", area);
}

class LossBug : public testing::TestWithParam<faults::Row> {};
TEST_P(LossBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(LossesWorld, LossBug, testing::ValuesIn(faults::RowsOf("LossBug.IsFound", "shard", "bug")),
                         faults::TestNameOf);

TEST(BreathingWorld, ADayOfCounterPhaseMovesABoundedNumberOfMachines) {
  for (const uint64_t seed : {1, 2, 3}) EXPECT_EQ(RunBreathingWorld(seed).failure, std::nullopt) << seed;
}

TEST(BreathingWorld, WithoutASurplusHoldMachinesMoveTooOften) {
  const faults::ScopedMutant on("shard.surplus_not_held");
  const RunResult run = RunBreathingWorld(1);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_TRUE(run.failure->contains("transitions in a day")) << *run.failure;
}

TEST(BreathingWorld, WithoutABudgetMoreThanATenthOfAClusterChanges) {
  const faults::ScopedMutant on("shard.no_reclaim_budget");
  const RunResult run = RunBreathingWorld(1);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_TRUE(run.failure->contains("machines change within the window")) << *run.failure;
}

}  // namespace
}  // namespace muster::sim
