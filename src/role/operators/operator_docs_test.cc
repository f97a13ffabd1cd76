#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "host/docs_for_test.h"
#include "host/metrics_backend.h"
#include "host/temp_dir_for_test.h"
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

TEST(OperatorRole, ATemplateThatIsNotThereEndsTheStart) {
  const host::TempDir dir;
  std::ofstream(dir.File("join.yaml")) << "token: t\n";
  OperatorRole role(
      Options{.config = {.cluster = "blue"}, .scheduler = "127.0.0.1:1", .bootstrap = dir.File("jion.yaml")});
  EXPECT_EQ(role.Start({}), Status(Code::kNotFound, "--bootstrap-template: " + dir.File("jion.yaml") +
                                                        ": cannot open: No such file or directory, did you mean " +
                                                        dir.File("join.yaml") + "?"));
}

}  // namespace
}  // namespace muster::operators
