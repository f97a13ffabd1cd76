#include "sim/provider_world.h"

#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/provider/provider.h"
#include "host/fault_table_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunProviderWorld(seed); };
}

TEST(ProviderWorld, HoldsOverManySeedsAndReachesItsProbes) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 150, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_GT(report.total.crashes, 150u);
  faults::ExpectReached("ProviderWorld.HoldsOverManySeedsAndReachesItsProbes", "provider");
}

class ProviderBug : public testing::TestWithParam<faults::Row> {};
TEST_P(ProviderBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(ProviderWorld, ProviderBug,
                         testing::ValuesIn(faults::RowsOf("ProviderBug.IsFound", "provider", "bug")),
                         faults::TestNameOf);

TEST(ProviderWorld, ItsJournalReplays) {
  const host::TempDir dir;
  const RunResult run = RunProviderWorld(5, {.journal_directory = dir.path()});
  EXPECT_EQ(run.log_hash, RunProviderWorld(5).log_hash) << "journaling changes nothing";
  const auto report = host::Replay<provider::Core>(dir.File("provider"));
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->divergence, std::nullopt);
  EXPECT_GT(report->steps, 100u);
}

}  // namespace
}  // namespace muster::sim
