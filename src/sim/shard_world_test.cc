#include "sim/shard_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "host/fault_table_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunShardWorld(seed); };
}

TEST(ShardWorld, HoldsUnderFaultsAndComesToRest) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 120, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_GT(report.total.crashes, 60u);
  for (const char* area : {"shard", "sim"}) {
    faults::ExpectReached("ShardWorld.HoldsUnderFaultsAndComesToRest", area);
  }
}

class ShardBug : public testing::TestWithParam<faults::Row> {};
TEST_P(ShardBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(ShardWorld, ShardBug, testing::ValuesIn(faults::RowsOf("ShardBug.IsFound", "shard", "bug")),
                         faults::TestNameOf);

TEST(ShardWorld, ItsJournalsReplay) {
  const host::TempDir dir;
  const RunResult run = RunShardWorld(5, {.journal_directory = dir.path()});
  EXPECT_EQ(run.log_hash, RunShardWorld(5).log_hash) << "journaling changes nothing";
  for (const char* node : {"node-0", "node-1"}) {
    const auto report = host::Replay<shard::Core>(dir.File(node));
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    EXPECT_EQ(report->divergence, std::nullopt);
    EXPECT_GT(report->steps, 100u);
  }
}

}  // namespace
}  // namespace muster::sim
