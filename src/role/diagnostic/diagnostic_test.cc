#include "role/diagnostic/diagnostic.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "host/docs_for_test.h"
#include "host/http_get_for_test.h"
#include "host/metrics_backend.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "rpc/health.h"

namespace muster::diagnostic {
namespace {

Options AnyPorts() {
  return {.listen = {"127.0.0.1", 0},
          .metrics_addr = {"127.0.0.1", 0},
          .data_dir = {},
          .journal = {},
          .build = {.version = "1.2.3", .commit = "abc", .compiler = "", .build_type = "", .faults = false}};
}

TEST(Diagnostic, ServesThenStops) {
  Diagnostic role(AnyPorts());
  ASSERT_EQ(role.Start({}), Status());
  const host::Address http = role.metrics_address();
  EXPECT_EQ(host::HttpGet(http, "/readyz").status, 200);
  const std::string metrics = host::HttpGet(http, "/metrics").body;
  EXPECT_TRUE(metrics.contains("muster_build_info{commit=\"abc\",version=\"1.2.3\"} 1\n")) << metrics;
  EXPECT_EQ(rpc::CheckHealth(role.listen_address(), "", 20s), Status());
  role.Stop();
  role.Stop();
  EXPECT_EQ(host::HttpGet(http, "/livez").status, 0);
  EXPECT_EQ(rpc::CheckHealth(role.listen_address(), "", 20s).code(), Code::kUnavailable);
}

TEST(Diagnostic, EachPortInUseFailsTheStart) {
  Diagnostic first(AnyPorts());
  ASSERT_EQ(first.Start({}), Status());
  Options same_grpc = AnyPorts();
  same_grpc.listen = first.listen_address();
  EXPECT_EQ(Diagnostic(same_grpc).Start({}).code(), Code::kUnavailable);
  Options same_http = AnyPorts();
  same_http.metrics_addr = first.metrics_address();
  EXPECT_EQ(Diagnostic(same_http).Start({}).code(), Code::kUnavailable);
}

TEST(Diagnostic, TheDataDirectoryHasOneOwner) {
  const host::TempDir dir;
  Options options = AnyPorts();
  options.data_dir = dir.path();
  Diagnostic first(options);
  ASSERT_EQ(first.Start({}), Status());
  EXPECT_EQ(Diagnostic(options).Start({}).code(), Code::kFailedPrecondition);
  first.Stop();
  EXPECT_EQ(Diagnostic(options).Start({}), Status());
}

// Waits for /readyz to say 200: the start is durable then.
std::string MetricsOnceReady(const Diagnostic& role) {
  const host::SystemClock clock;
  const MonoTime deadline = clock.Read().mono + 20s;
  while (host::HttpGet(role.metrics_address(), "/readyz").status != 200) {
    if (clock.Read().mono > deadline) return "not ready in 20 s";
    std::this_thread::yield();
  }
  return host::HttpGet(role.metrics_address(), "/metrics").body;
}

TEST(Diagnostic, CountsItsStartsAndJournalsThem) {
  const host::TempDir dir;
  Options options = AnyPorts();
  options.data_dir = dir.File("data");
  options.journal = dir.File("journal");
  for (int start = 1; start <= 3; ++start) {
    Diagnostic role(options);
    ASSERT_EQ(role.Start({}), Status());
    const std::string metrics = MetricsOnceReady(role);
    EXPECT_TRUE(metrics.contains("muster_diagnostic_starts " + std::to_string(start) + "\n")) << metrics;
  }
  const auto report = host::Replay<counter::Core>(options.journal);
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->segments, 3u);
  EXPECT_EQ(report->divergence, std::nullopt);
}

TEST(Diagnostic, TheJournalHasOneWriter) {
  const host::TempDir dir;
  Options options = AnyPorts();
  options.data_dir = dir.File("first");
  options.journal = dir.File("journal");
  Diagnostic first(options);
  ASSERT_EQ(first.Start({}), Status());
  options.data_dir = dir.File("second");
  EXPECT_EQ(Diagnostic(options).Start({}).message(),
            "--journal " + dir.File("journal") +
                ": another process works in it; stop that process or choose another directory");
  first.Stop();
  EXPECT_EQ(Diagnostic(options).Start({}), Status());
}

TEST(Diagnostic, OneDirectoryMayHoldStateAndJournal) {
  const host::TempDir dir;
  Options options = AnyPorts();
  options.data_dir = dir.path();
  options.journal = dir.path();
  EXPECT_EQ(Diagnostic(options).Start({}), Status());
}

TEST(Diagnostic, AJournalNeedsADataDirectory) {
  Options options = AnyPorts();
  options.journal = "anywhere";
  EXPECT_EQ(Diagnostic(options).Start({}).code(), Code::kInvalidArgument);
}

TEST(DiagnosticDocs, HaveEverySettingAndMetric) {
  Options options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/operating.md", "settings", settings.DocsTable()));
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const Metrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/operating.md", "metrics", declared.DocsTable()));
}

}  // namespace
}  // namespace muster::diagnostic
