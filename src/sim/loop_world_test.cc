#include "sim/loop_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunLoopWorld(seed); };
}

// Not all seeds hold yet: docs/development.md says how many, and what they show. What is judged here is that the world
// is the same each time and reaches every fault.
TEST(LoopWorld, IsTheSameEachTimeAndReachesItsProbes) {
  faults::ResetProbes();
  for (uint64_t seed = 0; seed < 3; ++seed) EXPECT_EQ(RunLoopWorld(seed).log_hash, RunLoopWorld(seed).log_hash) << seed;
  for (uint64_t seed = 3; seed < 16; ++seed) EXPECT_GT(RunLoopWorld(seed).steps_checked, 0u);
  faults::ExpectReached("LoopWorld.IsTheSameEachTimeAndReachesItsProbes", "sim");
}

class LoopBug : public testing::TestWithParam<faults::Row> {};
// The seed holds without the bug, and with it the judge says so.
TEST_P(LoopBug, IsFound) {
  const RunResult clean = RunLoopWorld(GetParam().from);
  ASSERT_FALSE(clean.failure.has_value()) << "seed " << GetParam().from << ": " << *clean.failure;
  ExpectFound(GetParam(), World());
}
INSTANTIATE_TEST_SUITE_P(LoopWorld, LoopBug, testing::ValuesIn(faults::RowsOf("LoopBug.IsFound", "loop", "bug")),
                         faults::TestNameOf);

}  // namespace
}  // namespace muster::sim
