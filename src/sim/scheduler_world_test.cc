#include "sim/scheduler_world.h"

#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/scheduler/scheduler.h"
#include "host/fault_table_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunSchedulerWorld(seed); };
}

TEST(SchedulerWorld, HoldsOverManySeedsAndReachesItsProbes) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 90, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_GT(report.total.crashes, 60u);
  faults::ExpectReached("SchedulerWorld.HoldsOverManySeedsAndReachesItsProbes", "scheduler");
}

TEST(SchedulerWorld, AStoreThatIsEmptiedOrRestoredUnderWorkloadsDeletesNothingBeyondTheRail) {
  for (const StoreLoss loss : {StoreLoss::kEmptied, StoreLoss::kRestored}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      EXPECT_EQ(RunStoreLoss(seed, loss).failure.value_or(""), "") << "seed " << seed << ", " << static_cast<int>(loss);
    }
  }
  const faults::ScopedMutant on("scheduler.no_orphan_rail");
  EXPECT_NE(RunStoreLoss(0, StoreLoss::kEmptied).failure.value_or(""), "");
}

class SchedulerBug : public testing::TestWithParam<faults::Row> {};
TEST_P(SchedulerBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(SchedulerWorld, SchedulerBug,
                         testing::ValuesIn(faults::RowsOf("SchedulerBug.IsFound", "scheduler", "bug")),
                         faults::TestNameOf);

TEST(SchedulerWorld, ItsJournalReplays) {
  const host::TempDir dir;
  const RunResult run = RunSchedulerWorld(5, {.journal_directory = dir.path()});
  EXPECT_EQ(run.log_hash, RunSchedulerWorld(5).log_hash) << "journaling changes nothing";
  const auto report = host::Replay<scheduler::Core>(dir.File("scheduler"));
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->divergence, std::nullopt);
  EXPECT_GT(report->steps, 100u);
}

}  // namespace
}  // namespace muster::sim
