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
  const CampaignReport report = RunCampaign(World(), {.seeds = 120, .repeats = 2}, parallel);
  for (const SeedFailure& failure : report.failures) ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  EXPECT_GT(report.total.crashes, 60u);
  const auto hits = faults::ProbeHits();
  for (const char* name : {"shard.blob_expired",
                           "shard.blob_timeout",
                           "shard.drained_unacknowledged",
                           "shard.fenced",
                           "shard.instruction_given_up",
                           "shard.instruction_resent",
                           "shard.late_ack",
                           "shard.late_blob",
                           "shard.list_failed",
                           "shard.look_after_call",
                           "shard.look_again",
                           "shard.machine_dropped",
                           "shard.machine_failed",
                           "shard.missing_from_sweep",
                           "shard.obstacle",
                           "shard.odd_edge",
                           "shard.overtaken",
                           "shard.record_rejected",
                           "shard.rollup_held",
                           "shard.rollup_refused",
                           "shard.session_lost_while_asking",
                           "shard.session_replaced",
                           "shard.shown_while_calling",
                           "shard.stale_read",
                           "shard.suppressed",
                           "shard.transition_failed",
                           "sim.taken_over",
                           "sim.zombie_stopped",
                           "sim.old_list"}) {
    EXPECT_TRUE(hits.contains(name) && hits.at(name) > 0) << name << " was never reached";
  }
}

TEST(ShardWorld, FindsPlantedBugs) {
  for (const char* name : {"shard.removals_unseen",
                           "shard.garbage_adopted",
                           "shard.fields_unrefreshed",
                           "shard.owns_everything",
                           "shard.rollup_of_another_cluster",
                           "shard.held_rollup_opens_gate",
                           "shard.no_quarantine",
                           "shard.cluster_pause_ignored",
                           "shard.pause_ignored",
                           "shard.pause_forgotten",
                           "shard.no_reclaim_budget",
                           "shard.session_not_needed",
                           "shard.gate_always_open",
                           "shard.fenced_goes_on",
                           "shard.failed_stay_failed",
                           "shard.epoch_used_twice",
                           "shard.blob_keeps_for_ever",
                           "shard.instructions_not_resent",
                           "shard.no_warm_up",
                           "shard.pledges_forgotten",
                           "shard.stale_reads_believed"}) {
    const faults::ScopedMutant mutant(name);
    InlineParallel parallel;
    const auto report = RunCampaign(World(), {.seeds = 200, .repeats = 1, .stop_at_failure = true}, parallel);
    EXPECT_FALSE(report.failures.empty()) << name << " survived " << report.seeds_run << " seeds";
  }
}

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
