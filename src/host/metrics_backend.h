// PrometheusRegistry: base/metrics.h on prometheus-cpp. One per process; /metrics shows what it exposes.
//
// Invariants, checked:
//   1. Names and label names follow the Prometheus rules.
//   2. A name belongs to one kind; a histogram's name to one set of bounds. The help text of the first request stays.
//   3. A name has at most 1,000 series. Beyond them a count or a histogram goes to the series whose labels are all
//      "other", a gauge is not shown, and muster_metric_full names the metric.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <memory>

#include "base/metrics.h"

namespace muster::host {

class PrometheusRegistry final : public metrics::Registry {
 public:
  PrometheusRegistry();
  ~PrometheusRegistry() override;

  metrics::Counter& AddCounter(std::string_view name, std::string_view help, const metrics::Labels& labels) override;
  metrics::Gauge& AddGauge(std::string_view name, std::string_view help, const metrics::Labels& labels) override;
  metrics::Histogram& AddHistogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                                   const metrics::Labels& labels) override;
  void Remove(std::string_view name, const metrics::Labels& labels) override;
  std::string Expose() const override;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace muster::host
