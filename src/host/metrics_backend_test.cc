#include "host/metrics_backend.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster::host {
namespace {

TEST(PrometheusRegistry, SameNameAndLabelsIsTheSameSeries) {
  PrometheusRegistry registry;
  metrics::Counter& first = registry.AddCounter("calls_total", "Calls.", {{"to", "provider"}});
  metrics::Counter& again = registry.AddCounter("calls_total", "Another help.", {{"to", "provider"}});
  metrics::Counter& other = registry.AddCounter("calls_total", "Calls.", {{"to", "shard"}});
  EXPECT_EQ(&first, &again);
  EXPECT_NE(&first, &other);
  first.Add();
  again.Add(2.5);
  EXPECT_EQ(first.value(), 3.5);
  EXPECT_EQ(other.value(), 0);
}

TEST(PrometheusRegistry, Exposition) {
  PrometheusRegistry registry;
  registry.AddCounter("calls_total", "Calls.", {{"to", "a\"b\n"}}).Add(2);
  registry.AddGauge("machines", "Machines.", {}).Set(-1.5);
  metrics::Histogram& cycle = registry.AddHistogram("cycle_seconds", "Cycle.", {0.5, 1}, {});
  cycle.Observe(0.5);
  cycle.Observe(0.75);
  cycle.Observe(9);
  EXPECT_EQ(registry.Expose(),
            "# HELP calls_total Calls.\n"
            "# TYPE calls_total counter\n"
            "calls_total{to=\"a\\\"b\\n\"} 2\n"
            "# HELP machines Machines.\n"
            "# TYPE machines gauge\n"
            "machines -1.5\n"
            "# HELP cycle_seconds Cycle.\n"
            "# TYPE cycle_seconds histogram\n"
            "cycle_seconds_count 3\n"
            "cycle_seconds_sum 10.25\n"
            "cycle_seconds_bucket{le=\"0.5\"} 1\n"
            "cycle_seconds_bucket{le=\"1\"} 2\n"
            "cycle_seconds_bucket{le=\"+Inf\"} 3\n");
}

TEST(PrometheusRegistry, ManyThreads) {
  PrometheusRegistry registry;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&registry, t] {
        for (int i = 0; i < 500; ++i) {
          registry.AddCounter("n_total", "N.", {{"k", std::to_string(i % 10)}}).Add();
          if (t == 0 && i % 50 == 0) {
            EXPECT_FALSE(registry.Expose().empty());
          }
        }
      });
    }
  }
  for (int k = 0; k < 10; ++k) {
    EXPECT_EQ(registry.AddCounter("n_total", "N.", {{"k", std::to_string(k)}}).value(), 200);
  }
}

TEST(PrometheusRegistryDeathTest, MisuseEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  PrometheusRegistry registry;
  registry.AddCounter("a_total", "A.", {});
  registry.AddHistogram("h", "H.", {1, 2}, {});
  EXPECT_DEATH(registry.AddGauge("a_total", "A.", {}), "metric a_total is of another kind");
  EXPECT_DEATH(registry.AddHistogram("h", "H.", {1, 3}, {}), "histogram h has other bounds");
  EXPECT_DEATH(registry.AddHistogram("g", "G.", {2, 1}, {}), "must ascend");
  EXPECT_DEATH(registry.AddHistogram("g", "G.", {1}, {{"le", "1"}}), "may not have the label le");
  EXPECT_DEATH(registry.AddGauge("a-b", "A.", {}), "\"a-b\" is not a metric name");
  EXPECT_DEATH(registry.AddGauge("b", "B.", {{"1x", ""}}), "\"1x\" is not a label name of b");
  EXPECT_DEATH(registry.AddCounter("a_total", "A.", {}).Add(-1), "a counter never falls");
}

}  // namespace
}  // namespace muster::host
