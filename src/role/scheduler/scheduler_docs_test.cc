// docs/operating-scheduler.md has the settings and the metrics that are declared; the defaults are those of the core.
#include <gtest/gtest.h>

#include <map>

#include "base/codec.h"
#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "role/scheduler/scheduler_metrics.h"
#include "role/scheduler/scheduler_settings.h"

namespace muster::scheduler {
namespace {

TEST(SchedulerDocs, HaveEverySetting) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/operating-scheduler.md", "settings", settings.DocsTable()));
}

TEST(SchedulerDocs, HaveEveryMetric) {
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const SchedulerMetrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/operating-scheduler.md", "metrics", declared.DocsTable()));
}

TEST(SchedulerSettings, DefaultsAreThoseOfTheCore) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_EQ(codec::Describe(options.config), codec::Describe(Config()));
  EXPECT_EQ(options.store_lost_after, RoleOptions().store_lost_after);
  EXPECT_EQ(options.store_compact_every, RoleOptions().store_compact_every);
  EXPECT_EQ(options.journal_limit, RoleOptions().journal_limit);
  EXPECT_EQ(options.node_certificate_life, RoleOptions().node_certificate_life);
}

TEST(SchedulerSettings, EachChangesItsField) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{{"--store", "memory:"},
                                                                                    {"--store-lost-after", "1s"},
                                                                                    {"--store-compact-every", "0s"},
                                                                                    {"--id", "s"},
                                                                                    {"--cluster", "c"},
                                                                                    {"--reconcile-interval", "2s"},
                                                                                    {"--node-timeout", "3s"},
                                                                                    {"--monitor-interval", "4s"},
                                                                                    {"--missing-grace", "0s"},
                                                                                    {"--retry-base", "5ms"},
                                                                                    {"--retry-cap", "6s"},
                                                                                    {"--max-attempts", "7"},
                                                                                    {"--agent-rpc-timeout", "8s"},
                                                                                    {"--strategy", "pack"},
                                                                                    {"--preempt-after", "9s"},
                                                                                    {"--unreachable-grace", "10s"},
                                                                                    {"--journal-limit", "8MiB"}}) {
    ASSERT_EQ(settings.Give(flag, value), Status());
  }
  EXPECT_EQ(settings.Land(),
            Status(Code::kInvalidArgument, "--retry-base must be a duration of 50ms or more, not \"5ms\""));
  ASSERT_EQ(settings.Give("--retry-base", "50ms"), Status());
  ASSERT_EQ(settings.Land(), Status());
  Config expected;
  expected.id = "s";
  expected.cluster = "c";
  expected.reconcile_interval = 2s;
  expected.node_timeout = 3s;
  expected.monitor_interval = 4s;
  expected.missing_grace = 0s;
  expected.retry_base = 50ms;
  expected.retry_cap = 6s;
  expected.max_attempts = 7;
  expected.agent_timeout = 8s;
  expected.strategy = placement::Strategy::kPack;
  expected.preempt_after = 9s;
  expected.unreachable_grace = 10s;
  EXPECT_EQ(codec::Describe(options.config), codec::Describe(expected));
  EXPECT_EQ(options.store, "memory:");
  EXPECT_EQ(options.store_lost_after, 1s);
  EXPECT_EQ(options.store_compact_every, 0s);
  EXPECT_EQ(options.journal_limit, 8u << 20);
}

TEST(SchedulerSettings, VariablesOfAPersysSchedulerAreBelowWhatIsGiven) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  const std::map<std::string, const char*> variables = {{"GRPC_PORT", "9085"},
                                                        {"ETCD_ENDPOINTS", "http://e1:2379,e2:2379"},
                                                        {"SCHEDULER_RECONCILE_INTERVAL", "7"},
                                                        {"SCHEDULER_NODE_UNAVAILABLE_GRACE", "2m"},
                                                        {"SCHEDULER_MISSING_GRACE_PERIOD", "20s"},
                                                        {"LOG_LEVEL", "warn"},
                                                        {"METRICS_PORT", ""}};
  settings.ReadEnvironment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second;
  });
  ASSERT_EQ(settings.Give("--missing-grace", "5s"), Status());
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_EQ(options.server.listen.port, 9085);
  EXPECT_EQ(options.server.metrics_addr.port, 8084);
  EXPECT_EQ(options.store, "etcd://e1:2379,e2:2379");
  EXPECT_EQ(options.config.reconcile_interval, 7s);
  EXPECT_EQ(options.config.node_timeout, 2min);
  EXPECT_EQ(options.config.missing_grace, 5s);
  EXPECT_EQ(options.server.log_level, log::Level::kWarn);
}

TEST(SchedulerSettings, ACaForNodesNeedsItsKeyTlsAndACluster) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--join-ca", "ca.pem"), Status());
  EXPECT_EQ(settings.Land().message(), "--join-ca and --join-ca-key belong together; give both or neither");
  ASSERT_EQ(settings.Give("--join-ca-key", "ca.key"), Status());
  EXPECT_TRUE(settings.Land().message().starts_with("--join-ca needs --tls-cert")) << settings.Land().message();
  for (const std::string flag : {"--tls-cert", "--tls-key", "--tls-ca"}) {
    ASSERT_EQ(settings.Give(flag, "a.pem"), Status());
  }
  EXPECT_TRUE(settings.Land().message().starts_with("--join-ca needs --cluster")) << settings.Land().message();
  ASSERT_EQ(settings.Give("--cluster", "a/b"), Status());
  EXPECT_TRUE(settings.Land().message().starts_with("--join-ca needs --cluster")) << "it is part of an identity";
  ASSERT_EQ(settings.Give("--cluster", "blue"), Status());
  ASSERT_EQ(settings.Give("--node-certificate-life", "2h"), Status());
  EXPECT_EQ(settings.Land(), Status());
  EXPECT_EQ(options.join_ca.string(), "ca.pem");
  EXPECT_EQ(options.join_ca_key.string(), "ca.key");
  EXPECT_EQ(options.node_certificate_life, 2h);
}

TEST(SchedulerSettings, AUserOfTheStoreNeedsAPassword) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--store-user", "u"), Status());
  EXPECT_EQ(settings.Land(), Status(Code::kInvalidArgument,
                                    "--store-user and --store-password-file belong together; give both or neither"));
}

}  // namespace
}  // namespace muster::scheduler
