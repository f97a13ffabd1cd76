#include "sim/shard_world.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "core/shard/shard.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"

namespace muster::sim {
namespace {

Scenario World() {
  return [](uint64_t seed) { return RunShardWorld(seed); };
}

TEST(ShardWorld, HoldsUnderFaultsAndComesToRest) {
  faults::ResetProbes();
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(World(), {.seeds = 40, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_GT(report.total.crashes, 40u);
}

}  // namespace
}  // namespace muster::sim
