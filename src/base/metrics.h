// Metrics: the port through which shells count and measure. host/metrics_backend.h puts Prometheus behind it.
//
// Names follow the Prometheus rules: base units, `_total` on counters, no unbounded label values. Asking for a name and
// labels again returns the same series; asking for a name as another kind is a bug and checked.
//
// A component declares each of its metrics once, as a member; the declaration gives the series and the row in the docs:
//
//   metrics::Declarations declared_{registry};
//   metrics::Counters<1> actions_{declared_, "bigfleet_shard_actions_total", "Actions decided, by kind.", {"kind"}};
//   ...
//   actions_.With("Provision").Add();
//
// Thread-safety: all functions may be called from any thread, but a Declarations is filled by one. A returned reference
// lives as long as its registry, or until the series is removed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace muster::metrics {

using Labels = std::map<std::string, std::string>;

class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double by = 1) = 0;
  virtual double value() const = 0;
  // For a total that is counted elsewhere and only grows. One thread at a time.
  void RaiseTo(double total) {
    if (const double more = total - value(); more > 0) Add(more);
  }
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
  // Ends the series; references to it are void. Nothing happens if there is none.
  virtual void Remove(std::string_view name, const Labels& labels) = 0;
  // The Prometheus text exposition of every series.
  virtual std::string Expose() const = 0;
};

// The metrics that a component has declared, in the order of the declarations.
class Declarations {
 public:
  explicit Declarations(Registry& registry) : registry_(registry) {}
  Declarations(const Declarations&) = delete;
  Declarations& operator=(const Declarations&) = delete;

  // A Markdown table, one row for each metric: its name with its labels, its kind, its help.
  std::string DocsTable() const { return "| metric | kind | |\n|---|---|---|\n" + rows_; }

 private:
  template <class Kind, size_t N>
  friend class Family;

  void Declare(std::string_view name, std::string_view kind, std::string_view help, const auto& labels) {
    std::string joined;
    for (const std::string_view label : labels) joined += (joined.empty() ? "" : ",") + std::string(label);
    if (!joined.empty()) joined = "{" + joined + "}";
    rows_ += "| `" + std::string(name) + joined + "` | " + std::string(kind) + " | " + std::string(help) + " |\n";
  }

  Registry& registry_;
  std::string rows_;
};

// All series of one name. One without labels has its series from the declaration on.
template <class Kind, size_t N>
class Family {
 public:
  Family(Declarations& in, std::string_view name, std::string_view help, std::array<std::string_view, N> labels = {},
         std::vector<double> bounds = {})
      : registry_(in.registry_), name_(name), help_(help), labels_(labels), bounds_(std::move(bounds)) {
    in.Declare(name, kKind, help, labels);
    if constexpr (N == 0) With();
  }

  // The series with these values of the labels, in the order of the declaration.
  template <class... Values>
    requires(sizeof...(Values) == N)
  Kind& With(const Values&... values) const {
    const Labels labels = LabelsOf(values...);
    if constexpr (std::is_same_v<Kind, Counter>)
      return registry_.AddCounter(name_, help_, labels);
    else if constexpr (std::is_same_v<Kind, Gauge>)
      return registry_.AddGauge(name_, help_, labels);
    else
      return registry_.AddHistogram(name_, help_, bounds_, labels);
  }

  // What the series was about is gone. Nobody else may be using the series.
  template <class... Values>
    requires(sizeof...(Values) == N)
  void Remove(const Values&... values) const {
    registry_.Remove(name_, LabelsOf(values...));
  }

 private:
  template <class... Values>
  Labels LabelsOf(const Values&... values) const {
    Labels labels;
    size_t next = 0;
    (labels.emplace(labels_[next++], std::string_view(values)), ...);
    return labels;
  }

  static constexpr std::string_view kKind = std::is_same_v<Kind, Counter> ? "counter"
                                            : std::is_same_v<Kind, Gauge> ? "gauge"
                                                                          : "histogram";
  Registry& registry_;
  const std::string name_;
  const std::string help_;
  const std::array<std::string_view, N> labels_;  // literals
  const std::vector<double> bounds_;              // histograms only
};
template <size_t N>
using Counters = Family<Counter, N>;
template <size_t N>
using Gauges = Family<Gauge, N>;
template <size_t N>
using Histograms = Family<Histogram, N>;

// `count` bounds from `first`, each twice the one before.
inline std::vector<double> DoublingBounds(double first, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace muster::metrics
