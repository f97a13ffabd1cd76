#include <gtest/gtest.h>

#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "model/yaml_reader.h"
#include "role/operators/operator_role.h"

namespace muster::operators {
namespace {

TEST(OperatorDocs, HaveEverySettingAndMetric) {
  Options options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/operator.md", "settings", settings.DocsTable()));
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const OperatorMetrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/operator.md", "metrics", declared.DocsTable()));
}

TEST(OperatorRole, ItsBootstrapDataNameSchedulerAndCluster) {
  Options options{.config = {.cluster = "blue"}, .scheduler = "10.0.0.1:8085,10.0.0.2:8085"};
  EXPECT_EQ(DefaultBootstrap(options), "scheduler: 10.0.0.1:8085,10.0.0.2:8085\ncluster: blue\n");
}

TEST(OperatorRole, ATokenIsAValueOfTheBootstrapData) {
  Options options{.config = {.cluster = "blue"}, .scheduler = "10.0.0.1:8085"};
  const std::string blob = BootstrapWith(options, {.token_pem = "one\ntwo\n", .ca_pem = "three\n", .expires = {}});
  EXPECT_EQ(blob, "scheduler: 10.0.0.1:8085\ncluster: blue\njoin-token: |\n  one\n  two\njoin-ca: |\n  three\n");
  const auto read = model::ReadYaml(blob, "blob");
  ASSERT_TRUE(read && read->size() == 1);
  ASSERT_EQ(read->front().fields.size(), 4u);
  EXPECT_EQ(read->front().fields[2].value.scalar, "one\ntwo\n");
}

}  // namespace
}  // namespace muster::operators
