// Metrics: the port through which shells count and measure. host/metrics_backend.h puts Prometheus behind it.
//
// Names follow the Prometheus rules: base units, `_total` on counters, no unbounded label values. Asking for a name and
// labels again returns the same series; asking for a name as another kind is a bug and checked.
//
// Thread-safety: all functions may be called from any thread. A returned reference lives as long as its registry.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::metrics {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double by = 1) = 0;
  virtual double value() const = 0;
};

class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
  virtual double value() const = 0;
};

class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

class Registry {
 public:
  virtual ~Registry() = default;
  virtual Counter& AddCounter(std::string_view name, std::string_view help, const Labels& labels = {}) = 0;
  virtual Gauge& AddGauge(std::string_view name, std::string_view help, const Labels& labels = {}) = 0;
  // `bounds` are upper bounds of the buckets, ascending, without +Inf.
  virtual Histogram& AddHistogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                                  const Labels& labels = {}) = 0;
  // The Prometheus text exposition of every series.
  virtual std::string Expose() const = 0;
};

}  // namespace muster::metrics
