#include "sim/failures_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

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

// How many of so many seeds fail, and the first failure.
std::pair<int, std::string> FailedOfThoseThatComeFirst(uint64_t seeds) {
  std::pair<int, std::string> failed;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const RunResult run = RunBadTemplateThatComesFirst(seed);
    if (run.failure && failed.first++ == 0) failed.second = fmt::format("seed {}: {}", seed, *run.failure);
  }
  return failed;
}

TEST(FailuresWorld, ABadTemplateThatComesFirstTakesNoMoreThanItMayConfigure) {
  faults::ResetProbes();
  EXPECT_EQ(FailedOfThoseThatComeFirst(50), (std::pair(0, std::string())));
  EXPECT_GT(faults::ProbeHits()["sim.taken_by_one_on_trial"], 50u);
  EXPECT_GT(faults::ProbeHits()["sim.taken_by_one_that_is_proven"], 50u);
  const faults::ScopedMutant on("shard.takes_what_it_cannot_configure");
  const auto [failed, how] = FailedOfThoseThatComeFirst(3);
  EXPECT_GT(failed, 0);
  EXPECT_TRUE(how.contains("are taken at once for a")) << how;
}

class FailureBug : public testing::TestWithParam<faults::Row> {};
TEST_P(FailureBug, IsFound) { ExpectFound(GetParam(), World()); }
INSTANTIATE_TEST_SUITE_P(FailuresWorld, FailureBug,
                         testing::ValuesIn(faults::RowsOf("FailureBug.IsFound", "shard", "bug")), faults::TestNameOf);

}  // namespace
}  // namespace muster::sim
