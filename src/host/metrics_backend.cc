#include "host/metrics_backend.h"

#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <sstream>
#include <type_traits>
#include <variant>

#include "base/check.h"

namespace muster::host {
namespace {

class CounterOf final : public metrics::Counter {
 public:
  explicit CounterOf(prometheus::Counter& series) : series_(series) {}
  void Add(double by) override {
    MUSTER_CHECK(by >= 0, "a counter never falls, add {}", by);
    series_.Increment(by);
  }
  double value() const override { return series_.Value(); }
  prometheus::Counter& native() const { return series_; }

 private:
  prometheus::Counter& series_;
};

class GaugeOf final : public metrics::Gauge {
 public:
  explicit GaugeOf(prometheus::Gauge& series) : series_(series) {}
  void Set(double value) override { series_.Set(value); }
  double value() const override { return series_.Value(); }
  prometheus::Gauge& native() const { return series_; }

 private:
  prometheus::Gauge& series_;
};

class HistogramOf final : public metrics::Histogram {
 public:
  explicit HistogramOf(prometheus::Histogram& series) : series_(series) {}
  void Observe(double value) override { series_.Observe(value); }
  prometheus::Histogram& native() const { return series_; }

 private:
  prometheus::Histogram& series_;
};

// Of one metric. Names come from peers: a cluster or a priority more must not be a series for ever.
constexpr size_t kMostSeries = 1'000;

// All series of one name.
template <class Native, class Wrapper>
struct Family {
  prometheus::Family<Native>* family = nullptr;
  std::vector<double> bounds;  // histograms only
  std::map<metrics::Labels, std::unique_ptr<Wrapper>> series;
};
using Counters = Family<prometheus::Counter, CounterOf>;
using Gauges = Family<prometheus::Gauge, GaugeOf>;
using Histograms = Family<prometheus::Histogram, HistogramOf>;

prometheus::Family<prometheus::Counter>& Register(prometheus::Registry& registry, const std::string& name,
                                                  const std::string& help, Counters*) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
prometheus::Family<prometheus::Gauge>& Register(prometheus::Registry& registry, const std::string& name,
                                                const std::string& help, Gauges*) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
prometheus::Family<prometheus::Histogram>& Register(prometheus::Registry& registry, const std::string& name,
                                                    const std::string& help, Histograms*) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct PrometheusRegistry::Impl {
  mutable std::mutex mu;
  prometheus::Gauge hidden;  // of gauges that are not shown: what they say cannot be added up
  GaugeOf left_out_gauge{hidden};
  prometheus::Registry registry;
  std::map<std::string, std::variant<Counters, Gauges, Histograms>> families;  // guarded by mu

  // The library would throw on each of these.
  static void CheckNames(const std::string& name, const metrics::Labels& labels) {
    MUSTER_CHECK(prometheus::CheckMetricName(name), "\"{}\" is not a metric name", name);
    for (const auto& [label, value] : labels) {
      MUSTER_CHECK(prometheus::CheckLabelName(label), "\"{}\" is not a label name of {}", label, name);
    }
  }

  template <class Kind, class... Extra>
  auto& Find(const std::string& name, std::string_view help, const std::vector<double>& bounds,
             const metrics::Labels& labels, const Extra&... extra) {
    CheckNames(name, labels);
    const std::lock_guard lock(mu);
    auto [it, is_new] = families.try_emplace(name, Kind{});
    Kind* kind = std::get_if<Kind>(&it->second);
    MUSTER_CHECK(kind != nullptr, "metric {} is of another kind", name);
    if (is_new) {
      kind->family = &Register(registry, name, std::string(help), kind);
      kind->bounds = bounds;
    }
    MUSTER_CHECK(kind->bounds == bounds, "histogram {} has other bounds", name);
    const bool full = kind->series.size() >= kMostSeries && !labels.empty() && !kind->series.contains(labels);
    if (full) NoteFull(name);
    using Wrapper = std::remove_reference_t<decltype(*kind->series.begin()->second)>;
    if constexpr (std::is_same_v<Wrapper, GaugeOf>) {
      if (full) return static_cast<Wrapper&>(left_out_gauge);
    }
    const metrics::Labels& named = full ? OtherOf(labels, others) : labels;
    auto& wrapper = kind->series[named];
    if (!wrapper) wrapper = std::make_unique<Wrapper>(kind->family->Add(named, extra...));
    return static_cast<Wrapper&>(*wrapper);
  }

  // Under mu. The same names of labels, each with the value that stands for the rest.
  static const metrics::Labels& OtherOf(const metrics::Labels& labels, metrics::Labels& into) {
    into = labels;
    for (auto& [label, value] : into) value = "other";
    return into;
  }
  metrics::Labels others;  // guarded by mu

  // Under mu. Says once that a metric has more series than are kept.
  void NoteFull(const std::string& name) {
    if (!full_noted.insert(name).second) return;
    if (full_family == nullptr) {
      full_family = &prometheus::BuildGauge()
                         .Name("muster_metric_full")
                         .Help("1 for a metric with more series than are kept: counts go to the label other.")
                         .Register(registry);
    }
    full_family->Add({{"metric", name}}).Set(1);
  }
  std::set<std::string> full_noted;                              // guarded by mu
  prometheus::Family<prometheus::Gauge>* full_family = nullptr;  // guarded by mu
};

PrometheusRegistry::PrometheusRegistry() : impl_(std::make_unique<Impl>()) {}
PrometheusRegistry::~PrometheusRegistry() = default;

metrics::Counter& PrometheusRegistry::AddCounter(std::string_view name, std::string_view help,
                                                 const metrics::Labels& labels) {
  return impl_->Find<Counters>(std::string(name), help, {}, labels);
}

metrics::Gauge& PrometheusRegistry::AddGauge(std::string_view name, std::string_view help,
                                             const metrics::Labels& labels) {
  return impl_->Find<Gauges>(std::string(name), help, {}, labels);
}

metrics::Histogram& PrometheusRegistry::AddHistogram(std::string_view name, std::string_view help,
                                                     const std::vector<double>& bounds, const metrics::Labels& labels) {
  MUSTER_CHECK(std::ranges::is_sorted(bounds), "bounds of histogram {} must ascend", name);
  MUSTER_CHECK(!labels.contains("le"), "histogram {} may not have the label le", name);
  return impl_->Find<Histograms>(std::string(name), help, bounds, labels, bounds);
}

void PrometheusRegistry::Remove(std::string_view name, const metrics::Labels& labels) {
  const std::lock_guard lock(impl_->mu);
  const auto found = impl_->families.find(std::string(name));
  if (found == impl_->families.end()) return;
  std::visit(
      [&](auto& kind) {
        const auto series = kind.series.find(labels);
        if (series == kind.series.end()) return;
        kind.family->Remove(&series->second->native());
        kind.series.erase(series);
      },
      found->second);
}

std::string PrometheusRegistry::Expose() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return std::move(out).str();
}

}  // namespace muster::host
