// Penalties: what it costs to interrupt a workload, or to take its machine away, in 28 buckets.
//
// Raw dollars would make every workload its own profile, so they are rounded up to a power of two before they become
// part of one. Numbers are the wire's: 0 unspecified, 1 zero, 2 half a dollar, 3..26 = $1, $2, ... $8,388,608, 27
// pinned. Pinned means "never, at any price": a value of its own, not a large number.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/status.h"
#include "model/money.h"

namespace muster::model {

enum class PenaltyBucket : uint8_t {
  kUnspecified = 0,
  kZero = 1,
  kHalfDollar = 2,
  kOneDollar = 3,
  kLargest = 26,  // $8,388,608
  kPinned = 27,
};
inline constexpr int kPenaltyBuckets = 28;

// A dollar amount or pinned. What a bucket stands for, and what a binding remembers.
struct Penalty {
  Money finite;  // zero when pinned
  bool pinned = false;

  static constexpr Penalty Pinned() { return {.finite = {}, .pinned = true}; }
  // Finite amounts in order, pinned above all of them.
  constexpr std::strong_ordering operator<=>(const Penalty& other) const {
    if (pinned != other.pinned) return pinned <=> other.pinned;
    return finite <=> other.finite;
  }
  constexpr bool operator==(const Penalty&) const = default;
  MUSTER_FIELDS(Penalty, finite, pinned)
};

// The smallest bucket whose upper bound is at least `dollars`: $0.51 -> $1, $8000 -> $8192, above $8,388,608 -> pinned.
// Zero and below -> kZero.
PenaltyBucket BucketForDollars(Money dollars);
// The bucket's upper bound, which is the dollar value used back. Unspecified and zero: $0.
Penalty UpperBound(PenaltyBucket bucket);
// "0", "0.5", "1", "2", ... "8388608", "pinned"; "unspecified". The metric label and the text form.
std::string BucketLabel(PenaltyBucket bucket);
Result<PenaltyBucket> BucketFromNumber(int64_t number);
// A label, a dollar amount ("$0.51", rounded up to its bucket) or "pinned".
Result<PenaltyBucket> ParseBucket(std::string_view text);

}  // namespace muster::model
