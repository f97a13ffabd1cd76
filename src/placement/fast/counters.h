// Counters: how many placed units of some description there are in each domain of a label.
//
// A counter of matches counts units that match selectors (spread, co-location, exclusion); a counter of holders counts
// units that carry an exclusion term, for newcomers that the term is about. Counters are made when a kind first needs
// them and kept up to date by every unit that comes or goes; each kind knows the counters it feeds.
//
// Thread-safety: none. Invariant: a counter's value in a domain is the number of units that feed it on the nodes it
// counts there, as CheckInvariants of the placer recounts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "placement/fast/bitmap.h"
#include "placement/fast/ids.h"
#include "placement/fast/node_table.h"
#include "placement/match.h"

namespace muster::placement::fast {

// Which units: those that match all selectors, or those that hold an exclusion term.
struct CounterSpec {
  bool holders = false;
  std::vector<UnitSelector> selectors;
  std::string key;
  bool skip_terminating = false;
  std::string eligible;  // names the set of nodes that count; empty: every node with the key

  auto operator<=>(const CounterSpec&) const = default;
};

struct Counter {
  CounterSpec spec;
  const LabelColumn* column = nullptr;
  Bitmap eligible;
  std::vector<int64_t> count;    // by value of the key
  std::vector<int64_t> support;  // by value: nodes that count
  std::vector<int64_t> domains;  // by count: how many values with support have it
  int64_t values = 0;            // values with support
  int64_t least = 0;             // smallest count of a value with support
  int64_t total = 0;

  // What lies in the node's domain; 0 if it lacks the key.
  int64_t At(Position row) const {
    const uint32_t value = column->value[row];
    return value == kNoValue ? 0 : count[value];
  }
  void Add(Position row, int64_t amount);
};

// Finds what a kind's labels could match: by one In requirement where there is one, otherwise everything.
template <class I>
class LabelIndex {
 public:
  void Add(const std::vector<model::Requirement>& labels, I item) {
    for (const model::Requirement& requirement : labels) {
      if (requirement.op != model::Operator::kIn || requirement.values.empty()) continue;
      for (const std::string& value : requirement.values) by_label_[{requirement.key, value}].push_back(item);
      return;
    }
    others_.push_back(item);
  }
  template <class See>
  void Candidates(const model::TextMap& labels, See see) const {
    if (!by_label_.empty()) {
      for (const auto& label : labels) {
        const auto it = by_label_.find(label);
        if (it == by_label_.end()) continue;
        for (const I item : it->second) see(item);
      }
    }
    for (const I item : others_) see(item);
  }
  void clear() {
    by_label_.clear();
    others_.clear();
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<I>> by_label_;
  std::vector<I> others_;
};

// Finds the kinds that a selector could match.
class KindsByLabel {
 public:
  void Add(const Kind& kind, KindIndex index) {
    for (const auto& label : kind.labels) by_label_[label].push_back(index);
    all_.push_back(index);
  }
  template <class See>
  void Candidates(const std::vector<model::Requirement>& labels, See see) const {
    for (const model::Requirement& requirement : labels) {
      if (requirement.op != model::Operator::kIn || requirement.values.empty()) continue;
      for (const std::string& value : requirement.values) {
        const auto it = by_label_.find({requirement.key, value});
        if (it == by_label_.end()) continue;
        for (const KindIndex index : it->second) see(index);
      }
      return;
    }
    for (const KindIndex index : all_) see(index);
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<KindIndex>> by_label_;
  std::vector<KindIndex> all_;
};

}  // namespace muster::placement::fast
