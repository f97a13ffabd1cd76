// Amounts: resource vectors as dense integers. Dimensions are numbered in order of first view (Catalogue), so loops
// run over the few that exist; those beyond are zero.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "engine/arithmetic.h"

namespace muster::engine::fast {

inline constexpr size_t kMaxDimensions = 16;
// That machines may have: one is for what needs ask for and no machine has.
inline constexpr size_t kMaxMachineDimensions = kMaxDimensions - 1;

struct Amounts {
  std::array<int64_t, kMaxDimensions> v{};

  int64_t& operator[](size_t d) { return v[d]; }
  int64_t operator[](size_t d) const { return v[d]; }
  bool operator==(const Amounts&) const = default;
};

// Dimensions may still come: the hash reads those that are not zero only.
inline void AddTo(Hasher& hasher, const Amounts& amounts) {
  for (size_t d = 0; d < kMaxDimensions; ++d) {
    if (amounts[d] != 0) hasher.Add(static_cast<uint64_t>(amounts[d]) * kMaxDimensions + d);
  }
}

// Sums of amounts.
using Totals = std::array<Wide, kMaxDimensions>;

// Adds `count` machines, or takes them off if it is negative.
inline void Add(Totals& totals, const Amounts& each, int64_t count, size_t n) {
  for (size_t d = 0; d < n; ++d) totals[d] += Wide{each[d]} * count;
}

// A demand that shrinks as machines are taken for it: what is short, over `n` dimensions.
inline bool IsZero(const Amounts& amounts, size_t n) {
  for (size_t d = 0; d < n; ++d) {
    if (amounts[d] != 0) return false;
  }
  return true;
}

template <class Supply>  // Amounts or Totals
bool Covers(const Supply& supply, const Amounts& demand, size_t n) {
  for (size_t d = 0; d < n; ++d) {
    if (supply[d] < demand[d]) return false;
  }
  return true;
}

inline bool IsUseful(const Amounts& each, const Amounts& shortage, size_t n) {
  for (size_t d = 0; d < n; ++d) {
    if (shortage[d] > 0 && each[d] > 0) return true;
  }
  return false;
}

// How many equal machines are useful one after the other: until every dimension they add to is covered.
inline int64_t UsefulCount(const Amounts& each, const Amounts& shortage, size_t n) {
  int64_t count = 0;
  for (size_t d = 0; d < n; ++d) {
    if (shortage[d] > 0 && each[d] > 0) count = std::max(count, (shortage[d] - 1) / each[d] + 1);
  }
  return count;
}

// How many of `count` equal machines may go without lowering what of `deficit` is covered by all that is taken.
inline int64_t Redundant(const Totals& taken, const Amounts& each, const Amounts& deficit, int64_t count, size_t n) {
  Wide spare = count;
  for (size_t d = 0; d < n; ++d) {
    if (deficit[d] == 0 || each[d] == 0) continue;
    if (taken[d] <= deficit[d]) return 0;
    spare = std::min(spare, (taken[d] - deficit[d]) / each[d]);
  }
  return static_cast<int64_t>(spare);
}

// Takes `count` machines off, never below zero.
inline void Subtract(Amounts& shortage, const Amounts& each, int64_t count, size_t n) {
  for (size_t d = 0; d < n; ++d) {
    if (shortage[d] == 0 || each[d] == 0) continue;
    const Wide taken = Wide{each[d]} * count;
    shortage[d] = taken >= shortage[d] ? 0 : shortage[d] - static_cast<int64_t>(taken);
  }
}

}  // namespace muster::engine::fast
