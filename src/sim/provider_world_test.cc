#include "sim/provider_world.h"

#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/provider/provider.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"

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
  const auto hits = faults::ProbeHits();
  for (const char* name :
       {"provider.fenced", "provider.repeated", "provider.mark_of_a_failed_call", "provider.resumed",
        "provider.late_end", "provider.operation_failed", "provider.rotated", "provider.interruption_noticed",
        "provider.machine_lost", "sim_backend.asked_again", "sim_backend.ended_again"}) {
    EXPECT_TRUE(hits.contains(name) && hits.at(name) > 0) << name << " was never reached";
  }
}

TEST(ProviderWorld, FindsPlantedBugs) {
  for (const char* name :
       {"provider.no_fence", "provider.fence_lets_equal_pass", "provider.fence_ignores_epoch",
        "provider.fence_per_shard", "provider.mark_only_known_machines", "provider.mark_not_durable",
        "provider.existence_before_fence", "provider.repetition_before_fence", "provider.failed_call_keeps_its_token",
        "provider.replay_ignores_cluster", "provider.answer_before_durable", "provider.no_resume",
        "provider.resume_under_another_id", "provider.late_end_unfails", "provider.drain_keeps_cluster",
        "provider.drain_keeps_metadata", "provider.failed_without_error", "provider.repeat_gets_another_id",
        "provider.page_skips_the_rest"}) {
    const faults::ScopedMutant mutant(name);
    InlineParallel parallel;
    const auto report = RunCampaign(World(), {.seeds = 300, .repeats = 1, .stop_at_failure = true}, parallel);
    EXPECT_FALSE(report.failures.empty()) << name << " survived " << report.seeds_run << " seeds";
  }
}

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
