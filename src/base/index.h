// Strong index types: a MachineIndex is not a ClusterIndex, though both are 32-bit numbers.
//
//   using MachineIndex = Index<struct MachineTag>;
//   IndexVector<MachineIndex, Price> prices;
//
// Index{} is the invalid index; every other value is a position in some table.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"

namespace muster {

template <class Tag>
class Index {
 public:
  static constexpr uint32_t kInvalid = std::numeric_limits<uint32_t>::max();

  constexpr Index() = default;
  constexpr explicit Index(uint32_t value) : value_(value) {}
  static constexpr Index Of(size_t position) {
    MUSTER_CHECK(position < kInvalid, "{} rows do not fit a 32-bit index", position);
    return Index(static_cast<uint32_t>(position));
  }

  constexpr bool valid() const { return value_ != kInvalid; }
  constexpr uint32_t value() const { return value_; }
  constexpr auto operator<=>(const Index&) const = default;

 private:
  uint32_t value_ = kInvalid;
};

// A vector that only its own index type opens. Out of range is a bug and checked.
template <class I, class T>
class IndexVector {
 public:
  T& operator[](I index) { return rows_[Check(index)]; }
  const T& operator[](I index) const { return rows_[Check(index)]; }

  I push_back(T row) {
    const I index = I::Of(rows_.size());
    rows_.push_back(std::move(row));
    return index;
  }
  void resize(size_t size) { rows_.resize(size); }
  void clear() { rows_.clear(); }
  size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  bool contains(I index) const { return index.value() < rows_.size(); }

  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  size_t Check(I index) const {
    MUSTER_CHECK(index.value() < rows_.size(), "index {} of {}", index.value(), rows_.size());
    return index.value();
  }
  std::vector<T> rows_;
};

}  // namespace muster
