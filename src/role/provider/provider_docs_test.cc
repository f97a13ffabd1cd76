// docs/provider.md has the settings and the metrics that are declared.
#include <gtest/gtest.h>

#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "role/provider/provider_role.h"

namespace muster::provider {
namespace {

TEST(ProviderDocs, HaveEverySetting) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  EXPECT_TRUE(host::PageShows("docs/provider.md", "settings", settings.DocsTable()));
}

TEST(ProviderDocs, HaveEveryMetric) {
  host::PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const ProviderMetrics metrics(declared);
  EXPECT_TRUE(host::PageShows("docs/provider.md", "metrics", declared.DocsTable()));
}

TEST(ProviderSettings, Defaults) {
  RoleOptions options;
  host::Settings settings;
  DeclareSettings(settings, options);
  ASSERT_EQ(settings.Give("--data-dir", "d"), Status());
  ASSERT_EQ(settings.Land(), Status());
  EXPECT_EQ(options.name, "sim");
  EXPECT_EQ(options.machines, 100u);
  EXPECT_EQ(options.seed, 1u);
  EXPECT_EQ(options.catalogue.types.size(), DefaultCatalogue().types.size());
}

}  // namespace
}  // namespace muster::provider
