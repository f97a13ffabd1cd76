// docs/operating-shard.md has the settings and the metrics that are declared; the defaults are those of the core.
// docs/coming-from-bigfleet.md leaves out no setting.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <string>

#include "base/codec.h"
#include "base/source_dir_for_test.h"
#include "core/shard/snapshot.h"
#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "role/shard/shard_metrics.h"
#include "role/shard/shard_settings.h"

namespace muster::shard {
namespace {

TEST(ShardDocs, HaveEverySetting) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/operating-shard.md", "settings", settings.DocsTable()));
}

// Whether the flag, and no longer one that begins so, is in the text.
bool Names(const std::string& text, const std::string& flag) {
  for (size_t at = text.find(flag); at != std::string::npos; at = text.find(flag, at + 1)) {
    const char next = at + flag.size() < text.size() ? text[at + flag.size()] : ' ';
    if (next != '-' && std::isalnum(static_cast<unsigned char>(next)) == 0) return true;
  }
  return false;
}

TEST(ShardDocs, ThePageForThoseWhoComeFromBigFleetNamesEverySetting) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  std::ifstream file(SourceDir() + "/docs/coming-from-bigfleet.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const host::Setting& setting : settings.all()) EXPECT_TRUE(Names(page, setting.flag)) << setting.flag;
  EXPECT_FALSE(Names(page, "--connection"));
}

TEST(ShardDocs, HaveEveryMetric) {
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const ShardMetrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/operating-shard.md", "metrics", declared.DocsTable()));
}

TEST(ShardMetrics, PlansThatLostARaceShowByHowANeedProposes) {
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  ShardMetrics metrics(declared);
  Snapshot snapshot;
  PlanTotals& plans = snapshot.counters.plans[static_cast<size_t>(PlanMode::kIncremental)];
  plans = {.kept = 8, .conflicts = 2, .retries = 3};
  metrics.PhaseEnded("proposal.incremental", 1ms);
  metrics.Update(snapshot);
  const auto shows = [&](const std::string& line) { return registry.Expose().contains(line + "\n"); };
  const std::string phase = "bigfleet_shard_phase1_";
  EXPECT_TRUE(shows(phase + R"(occ_conflict_fraction{mode="incremental"} 0.25)"));
  EXPECT_TRUE(shows(phase + R"(occ_conflict_fraction{mode="all-or-nothing"} 0)"));
  EXPECT_TRUE(shows(phase + R"(occ_retries_total{mode="incremental",outcome="committed"} 3)"));
  EXPECT_TRUE(shows(phase + R"(proposal_duration_seconds_count{mode="incremental"} 1)"));
  EXPECT_TRUE(shows(phase + R"(proposal_duration_seconds_sum{mode="incremental"} 0.001)"));
  plans.kept = 10;
  metrics.Update(snapshot);
  EXPECT_TRUE(shows(phase + R"(occ_conflict_fraction{mode="incremental"} 0)")) << "since they were read before";
  EXPECT_TRUE(shows(phase + R"(occ_retries_total{mode="incremental",outcome="committed"} 3)"));
}

TEST(ShardSettings, DefaultsAreThoseOfTheCore) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--data-dir", "d"), Status());
  ASSERT_EQ(settings.Give("--provider-addr", "p:1"), Status());
  ASSERT_EQ(settings.Land(), Status());
  Config expected;
  expected.address = ":7780";
  EXPECT_EQ(codec::Describe(options.config), codec::Describe(expected));
  EXPECT_EQ(options.audit.rotate_bytes, AuditOptions().rotate_bytes);
  EXPECT_EQ(options.workers, RoleOptions().workers);
  EXPECT_EQ(options.journal_limit, RoleOptions().journal_limit);
}

TEST(ShardSettings, EachChangesItsField) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--data-dir", "d"},
                                                        {"--provider-addr", "p:1"},
                                                        {"--id", "s"},
                                                        {"--own", "zone=a,zone=b"},
                                                        {"--own", "rack=c"},
                                                        {"--cycle-interval", "2s"},
                                                        {"--phase1-workers", "3"},
                                                        {"--phase1-retries", "4"},
                                                        {"--victim-weights", "1,2,3,0.5"},
                                                        {"--surplus-hold", "0s"},
                                                        {"--release-hold", "spot=5s"},
                                                        {"--max-actions-per-cycle", "7"},
                                                        {"--reclaim-cap-fraction", "0.5"},
                                                        {"--reclaim-budget", "10%/1h"},
                                                        {"--empty-rollup-guard", "off"},
                                                        {"--incremental-reconcile", "off"},
                                                        {"--dry-run", "on"},
                                                        {"--execute-concurrency", "8"},
                                                        {"--failed-policy", "keep"},
                                                        {"--available-capacity-interval", "9s"},
                                                        {"--audit-log", "a.log"},
                                                        {"--audit-rotate", "8KiB"},
                                                        {"--journal-limit", "8MiB"},
                                                        {"--coordinator-addr", "c:1"},
                                                        {"--advertise-addr", "me:1"},
                                                        {"--coordinator-heartbeat-interval", "11s"},
                                                        {"--epoch-at-least", "12"}}) {
    ASSERT_EQ(settings.Give(flag, value), Status()) << flag;
  }
  ASSERT_EQ(settings.Land(), Status());
  Config expected;
  expected.id = "s";
  expected.own = {{.key = "zone", .value = "a"}, {.key = "zone", .value = "b"}, {.key = "rack", .value = "c"}};
  expected.cycle_interval = 2s;
  expected.policy.victim_weights = {1'000'000, 2'000'000, 3'000'000, 500'000};
  expected.policy.phase1_retries = 4;
  expected.policy.surplus_hold = 0s;
  expected.policy.release_hold_spot = 5s;
  expected.max_actions_per_cycle = 7;
  expected.reclaim_cap = {500'000};
  expected.reclaim_budget = {100'000};
  expected.reclaim_window = 1h;
  expected.empty_rollup_guard = false;
  expected.incremental_reconcile = false;
  expected.mode = contract::ActuationMode::kDryRun;
  expected.execute_concurrency = 8;
  expected.failed_policy = FailedPolicy::kKeep;
  expected.hints_interval = 9s;
  expected.address = "me:1";
  expected.report_interval = 11s;
  expected.epoch_at_least = 12;
  EXPECT_EQ(codec::Describe(options.config), codec::Describe(expected));
  EXPECT_EQ(options.workers, 3u);
  EXPECT_EQ(options.provider_addr, "p:1");
  EXPECT_EQ(options.coordinator_addr, "c:1");
  EXPECT_EQ(options.audit.path, "a.log");
  EXPECT_EQ(options.audit.rotate_bytes, 8192u);
  EXPECT_EQ(options.journal_limit, 8u << 20);
}

TEST(ShardSettings, PauseAndDryRunTogetherArePaused) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
           {"--data-dir", "d"}, {"--provider-addr", "p:1"}, {"--dry-run", "on"}, {"--actuation-paused", "on"}}) {
    ASSERT_EQ(settings.Give(flag, value), Status()) << flag;
  }
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_EQ(options.config.mode, contract::ActuationMode::kPaused);
}

TEST(ShardSettings, AnAvailableCapacityIntervalOfZeroIsTheDefault) {
  for (const std::string zero : {"0", "0s"}) {
    RoleOptions options;
    host::Settings settings;
    DeclareSettings(settings, options);
    for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
             {"--data-dir", "d"}, {"--provider-addr", "p:1"}, {"--available-capacity-interval", zero}}) {
      ASSERT_EQ(settings.Give(flag, value), Status()) << flag;
    }
    ASSERT_EQ(settings.Land(), Status()) << zero;
    EXPECT_EQ(options.config.hints_interval, Config().hints_interval) << zero;
  }
}

}  // namespace
}  // namespace muster::shard
