#include "sim/counter_world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/probe.h"
#include "core/counter/counter.h"
#include "host/fault_table_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "sim/planted_bug_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunCounterWorld(seed); };
}

// The same on every compiler: this test runs in the g++ build and in both sanitizer builds, which use clang.
constexpr uint64_t kHashOfFirst200Seeds = 0xfda2c2711450222a;

TEST(CounterWorld, HoldsOverManySeedsAndReachesItsProbes) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 200, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_EQ(report.total.log_hash, kHashOfFirst200Seeds) << fmt::format("{:#018x}", report.total.log_hash);
  EXPECT_GT(report.total.crashes, 200u);
  for (const char* area : {"counter", "host", "sim"}) {
    faults::ExpectReached("CounterWorld.HoldsOverManySeedsAndReachesItsProbes", area);
  }
}

class CounterBug : public testing::TestWithParam<faults::Row> {};
TEST_P(CounterBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(CounterWorld, CounterBug,
                         testing::ValuesIn(faults::RowsOf("CounterBug.IsFound", "counter", "bug")), faults::TestNameOf);

TEST(CounterWorld, AReportDoesNotDependOnTheOrderOfWork) {
  InlineParallel in_order;
  ShuffledParallel shuffled(3, 4);
  const CampaignOptions options{.first_seed = 77, .seeds = 100, .repeats = 1};
  EXPECT_EQ(RunCampaign(World(), options, in_order).total.log_hash,
            RunCampaign(World(), options, shuffled).total.log_hash);
}

TEST(CounterWorld, ItsJournalsReplay) {
  const host::TempDir dir;
  const RunResult run = RunCounterWorld(5, {.journal_directory = dir.path()});
  EXPECT_EQ(run.log_hash, RunCounterWorld(5).log_hash) << "journaling changes nothing";
  for (const char* name : {"counter-0", "counter-1"}) {
    const auto report = host::Replay<counter::Core>(dir.File(name));
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    EXPECT_EQ(report->divergence, std::nullopt);
    EXPECT_GT(report->steps, 20u);
    EXPECT_GT(report->segments, 1u) << "one per life";
    // The planted bug changes what the core does, and replay says where.
    const faults::ScopedMutant mutant("counter.skip_persist");
    EXPECT_NE(host::Replay<counter::Core>(dir.File(name))->divergence, std::nullopt);
  }
}

TEST(CounterWorld, TheStepThatKillsIsInTheJournal) {
  const host::TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    if (!faults::EnableCrashPoint("host.in_step:20").ok()) ::_exit(1);
    (void)RunCounterWorld(5, {.journal_directory = dir.path()});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  uint64_t steps = 0;
  uint64_t unfinished = 0;
  for (const char* name : {"counter-0", "counter-1"}) {
    const auto report = host::Replay<counter::Core>(dir.File(name));
    ASSERT_TRUE(report.has_value()) << report.error().ToString();
    steps += report->steps;
    unfinished += report->unfinished;
  }
  EXPECT_EQ(steps, 20u);
  EXPECT_GE(unfinished, 1u) << "and the other's last may have had no time for its end";
}

}  // namespace
}  // namespace muster::sim
