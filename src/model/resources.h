// Resources: an amount per dimension (cpu, memory, nvidia.com/gpu, ...), in milli-units.
//
// The form of the border: names are strings, and rows are few. Engines turn it into dense integer vectors.
// Invariants: (1) entries are sorted by name, bytewise, and names are unique; (2) amounts are positive: an absent
// dimension is zero, so equal amounts mean equal objects.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/copy_on_write.h"
#include "base/fields.h"
#include "base/status.h"

namespace muster::model {

class Resources {
 public:
  using Entry = std::pair<std::string, int64_t>;

  Resources() = default;
  // For literals in tests and tables: amounts must be non-negative (checked).
  Resources(std::initializer_list<std::pair<std::string_view, int64_t>> entries);

  // Parses and sets one dimension. An empty name, a second value for the same name (a first of zero leaves no trace), a
  // negative amount or a malformed quantity is refused; the message begins with the dimension ("cpu: ...").
  Status Parse(std::string_view name, std::string_view quantity);

  int64_t Get(std::string_view name) const;  // 0 if absent
  // The name must not be empty nor the amount negative (checked); zero removes the dimension.
  void Set(std::string_view name, int64_t milli);
  bool empty() const { return entries_->empty(); }
  const std::vector<Entry>& entries() const { return *entries_; }

  // Whether nobody else has this body; copies share it.
  bool alone() const { return entries_.alone(); }

  // True if every dimension of `demand` is at most ours.
  bool Covers(const Resources& demand) const;

  bool operator==(const Resources&) const = default;
  // "cpu=4 memory=16Gi"; "nothing" when empty.
  std::string ToString() const;

  MUSTER_FIELDS(Resources, entries_)

 private:
  CopyOnWrite<std::vector<Entry>> entries_;
};

// Sum per dimension. OUT_OF_RANGE, naming the dimension, when it does not fit int64 milli-units.
Result<Resources> Add(const Resources& a, const Resources& b);
// a - b per dimension, never below zero.
Resources SubtractSaturating(const Resources& a, const Resources& b);
// Larger amount per dimension.
Resources Max(const Resources& a, const Resources& b);
// `count` times `a`; the count must not be negative (checked). OUT_OF_RANGE as Add.
Result<Resources> Scale(const Resources& a, int64_t count);

}  // namespace muster::model
