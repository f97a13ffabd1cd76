#include <gtest/gtest.h>

#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
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

}  // namespace
}  // namespace muster::operators
