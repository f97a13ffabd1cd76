#include "host/metrics_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
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

TEST(PrometheusRegistry, ASeriesEndsWithWhatItIsAbout) {
  PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const metrics::Gauges<1> held(declared, "held", "Held.", {"cluster"});
  const metrics::Counters<1> refused(declared, "refused_total", "Refused.", {"cluster"});
  for (const char* cluster : {"blue", "green"}) {
    held.With(cluster).Set(1);
    refused.With(cluster).Add(2);
  }
  held.Remove("blue");
  refused.Remove("blue");
  refused.Remove("red");
  const std::string text = registry.Expose();
  EXPECT_FALSE(text.contains("blue")) << text;
  EXPECT_TRUE(text.contains("held{cluster=\"green\"} 1\n")) << text;
  EXPECT_EQ(refused.With("blue").value(), 0) << "it begins anew";
}

TEST(Declarations, GiveSeriesAndRows) {
  PrometheusRegistry registry;
  metrics::Declarations declared(registry);
  const metrics::Counters<2> calls(declared, "calls_total", "Calls, by method and code.", {"method", "code"});
  const metrics::Gauges<0> open(declared, "open", "Calls that are open.");
  const metrics::Histograms<1> seconds(declared, "seconds", "How long.", {"method"}, metrics::DoublingBounds(0.5, 3));
  EXPECT_TRUE(registry.Expose().contains("open 0\n")) << "without labels there is a series from the start";
  EXPECT_FALSE(registry.Expose().contains("calls_total"));
  calls.With("Get", "OK").Add();
  calls.With("Get", "OK").RaiseTo(5);
  calls.With("Get", "OK").RaiseTo(3);
  seconds.With("Get").Observe(1.5);
  const std::string text = registry.Expose();
  EXPECT_TRUE(text.contains("calls_total{code=\"OK\",method=\"Get\"} 5\n")) << text;
  EXPECT_TRUE(text.contains("seconds_bucket{method=\"Get\",le=\"1\"} 0\n")) << text;
  EXPECT_TRUE(text.contains("seconds_bucket{method=\"Get\",le=\"2\"} 1\n")) << text;
  EXPECT_EQ(declared.DocsTable(),
            "| metric | kind | |\n"
            "|---|---|---|\n"
            "| `calls_total{method,code}` | counter | Calls, by method and code. |\n"
            "| `open` | gauge | Calls that are open. |\n"
            "| `seconds{method}` | histogram | How long. |\n");
}

TEST(PrometheusRegistry, NamesOfPeersDoNotBecomeSeriesWithoutEnd) {
  PrometheusRegistry registry;
  for (int i = 0; i < 30'000; ++i) {
    const metrics::Labels labels{{"cluster", "c" + std::to_string(i)}};
    registry.AddCounter("asked_total", "Asked.", labels).Add();
    registry.AddGauge("needs", "Needs.", labels).Set(i);
    registry.AddHistogram("waited_seconds", "Waited.", {1}, labels).Observe(0.5);
  }
  const std::string text = registry.Expose();
  EXPECT_LT(std::ranges::count(text, '\n'), 6'100);
  EXPECT_TRUE(text.contains("asked_total{cluster=\"other\"} 29000\n"));
  EXPECT_TRUE(text.contains("waited_seconds_count{cluster=\"other\"} 29000\n"));
  EXPECT_FALSE(text.contains("needs{cluster=\"other\"}")) << "gauges do not add up";
  EXPECT_TRUE(text.contains("muster_metric_full{metric=\"needs\"} 1\n"));
  registry.AddCounter("asked_total", "Asked.", {{"cluster", "c5"}}).Add();
  EXPECT_TRUE(registry.Expose().contains("asked_total{cluster=\"c5\"} 2\n")) << "what is there stays";
  registry.Remove("needs", {{"cluster", "c5"}});
  registry.AddGauge("needs", "Needs.", {{"cluster", "late"}}).Set(7);
  EXPECT_TRUE(registry.Expose().contains("needs{cluster=\"late\"} 7\n")) << "there is room again";
}

}  // namespace
}  // namespace muster::host
