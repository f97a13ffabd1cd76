// docs/agent.md has the settings and the metrics that are declared.
#include <gtest/gtest.h>

#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "role/agent/agent_role.h"

namespace muster::agent {
namespace {

TEST(AgentDocs, HaveEverySetting) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/agent.md", "settings", settings.DocsTable()));
}

TEST(AgentDocs, HaveEveryMetric) {
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const AgentMetrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/agent.md", "metrics", declared.DocsTable()));
}

TEST(AgentSettings, Defaults) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--data-dir", "d"), Status());
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_EQ(options.node, HostId());
  EXPECT_EQ(options.runtimes, std::vector{model::WorkloadType::kProcess});
  EXPECT_EQ(options.total, HostResources());
  EXPECT_EQ(options.config.max_restarts, Config().max_restarts);
  EXPECT_EQ(options.config.restart_base, Config().restart_base);
  EXPECT_EQ(options.schedulers, "");
}

TEST(AgentSettings, AreReadAndRefusedByName) {
  const auto land = [](std::initializer_list<std::pair<const char*, const char*>> given, RoleOptions& options) {
    host::Settings settings;
    DeclareSettings(settings, options);
    EXPECT_EQ(settings.Give("--data-dir", "d"), Status());
    for (const auto& [flag, value] : given) EXPECT_EQ(settings.Give(flag, value), Status());
    return settings.Land().message();
  };
  RoleOptions options;
  EXPECT_EQ(land({{"--scheduler", "a:1,b:2"},
                  {"--labels", "zone=a,disk=ssd"},
                  {"--taints", "gpu=yes:NoSchedule"},
                  {"--cpu", "1500m"},
                  {"--memory", "2Gi"},
                  {"--runtimes", "process,container"}},
                 options),
            "");
  EXPECT_EQ(options.schedulers, "a:1,b:2");
  EXPECT_EQ(options.labels.at("disk"), "ssd");
  EXPECT_EQ(options.taints.at(0).value, "yes");
  EXPECT_EQ(options.total.Get("cpu"), 1500);
  EXPECT_EQ(options.total.Get("memory"), (int64_t{2} << 30) * 1000);
  EXPECT_EQ(options.runtimes.size(), 2u);
  EXPECT_TRUE(land({{"--node-id", "../x"}}, options).starts_with("--node-id must be an id"));
  EXPECT_TRUE(land({{"--labels", "zone"}}, options).starts_with("--labels must be KEY=VALUE"));
  EXPECT_TRUE(land({{"--runtimes", "wasm"}}, options).starts_with("--runtimes must be one of"));
  EXPECT_TRUE(land({{"--scheduler", "nowhere"}}, options).starts_with("--scheduler must be HOST:PORT"));
}

TEST(AgentSettings, AJoinTokenNeedsWhatItIsUsedWithAndNoRefusalShowsIt) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--data-dir", "d"), Status());
  ASSERT_EQ(settings.Give("--join-token", "a-secret"), Status());
  for (const auto& [missing, value] : std::vector<std::pair<std::string, std::string>>{
           {"join-ca", "a CA"}, {"scheduler", "a:1"}, {"cluster", "blue"}}) {
    EXPECT_EQ(settings.Land(), Status(Code::kInvalidArgument, missing + " is missing: a join token needs it"));
    ASSERT_EQ(settings.Give("--" + missing, value), Status());
  }
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_TRUE(options.own_certificate);
  EXPECT_EQ(options.server.tls.cert, "d/tls/cert.pem");
  EXPECT_EQ(options.server.tls.key, "d/tls/key.pem");
  EXPECT_EQ(options.server.tls.ca, "d/tls/ca.pem");
  EXPECT_EQ(options.server.listen.host, "0.0.0.0") << "it will have TLS";
  ASSERT_EQ(settings.Give("--listen", "10.0.0.1:7"), Status());
  EXPECT_EQ(settings.Land(), Status());
  for (const std::string flag : {"--tls-cert", "--tls-key", "--tls-ca"}) {
    ASSERT_EQ(settings.Give(flag, "own.pem"), Status());
  }
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_FALSE(options.own_certificate) << "a machine that has a certificate is asked for no other";
  EXPECT_EQ(options.server.tls.cert, "own.pem");
}

}  // namespace
}  // namespace muster::agent
