#include "sim/loop_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario LoopScenario() {
  return [](uint64_t seed) { return RunLoopWorld(seed); };
}
Scenario AgentsScenario() {
  return [](uint64_t seed) { return RunAgentsWorld(seed); };
}

void ExpectHolds(const Scenario& world, uint64_t seeds, uint32_t repeats) {
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(world, {.seeds = seeds, .repeats = repeats}, parallel);
  EXPECT_EQ(report.seeds_run, seeds);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
}

// Longer campaigns: docs/development.md.
TEST(LoopWorld, HoldsOverManySeedsAndReachesItsProbes) {
  faults::ResetProbes();
  ExpectHolds(LoopScenario(), 16, 2);
  faults::ExpectReached("LoopWorld.HoldsOverManySeedsAndReachesItsProbes", "sim");
}

TEST(AgentsWorld, HoldsOverManySeeds) { ExpectHolds(AgentsScenario(), 40, 1); }

class LoopBug : public testing::TestWithParam<faults::Row> {};
// The seed holds without the bug, and with it the judge says so.
TEST_P(LoopBug, IsFound) {
  const RunResult clean = RunLoopWorld(GetParam().from);
  ASSERT_FALSE(clean.failure.has_value()) << "seed " << GetParam().from << ": " << *clean.failure;
  ExpectFound(GetParam(), LoopScenario());
}
INSTANTIATE_TEST_SUITE_P(LoopWorld, LoopBug, testing::ValuesIn(faults::RowsOf("LoopBug.IsFound", "loop", "bug")),
                         faults::TestNameOf);

class AgentsBug : public testing::TestWithParam<faults::Row> {};
TEST_P(AgentsBug, IsFound) {
  const RunResult clean = RunAgentsWorld(GetParam().from);
  ASSERT_FALSE(clean.failure.has_value()) << "seed " << GetParam().from << ": " << *clean.failure;
  ExpectFound(GetParam(), AgentsScenario());
}
INSTANTIATE_TEST_SUITE_P(LoopWorld, AgentsBug, testing::ValuesIn(faults::RowsOf("AgentsBug.IsFound", "agents", "bug")),
                         faults::TestNameOf);

}  // namespace
}  // namespace muster::sim
