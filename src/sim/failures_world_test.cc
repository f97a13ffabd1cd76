#include "sim/failures_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunFailuresWorld(seed); };
}

TEST(FailuresWorld, HoldsWhileAPartFails) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 200, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  for (const char* area : {"shard", "sim"}) faults::ExpectReached("FailuresWorld.HoldsWhileAPartFails", area);
}

class FailureBug : public testing::TestWithParam<faults::Row> {};
TEST_P(FailureBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(FailuresWorld, FailureBug,
                         testing::ValuesIn(faults::RowsOf("FailureBug.IsFound", "shard", "bug")), faults::TestNameOf);

}  // namespace
}  // namespace muster::sim
