#include "model/penalty.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/names.h"

namespace muster::model {
namespace {

constexpr int64_t kDollar = 1'000'000;

// kOneDollar to kLargest double at each step.
constexpr int64_t Micros(int bucket) { return kDollar << (bucket - static_cast<int>(PenaltyBucket::kOneDollar)); }

}  // namespace

PenaltyBucket BucketForDollars(Money dollars) {
  if (dollars.micros <= 0) return PenaltyBucket::kZero;
  if (dollars.micros <= kDollar / 2) return PenaltyBucket::kHalfDollar;
  int bucket = static_cast<int>(PenaltyBucket::kOneDollar);
  while (bucket < static_cast<int>(PenaltyBucket::kPinned) && dollars.micros > Micros(bucket)) ++bucket;
  return static_cast<PenaltyBucket>(bucket);
}

Penalty UpperBound(PenaltyBucket bucket) {
  MUSTER_CHECK(bucket <= PenaltyBucket::kPinned, "bucket {}", static_cast<int>(bucket));
  if (bucket <= PenaltyBucket::kZero) return {};
  if (bucket == PenaltyBucket::kPinned) return Penalty::Pinned();
  if (bucket == PenaltyBucket::kHalfDollar) return {.finite = {kDollar / 2}};
  return {.finite = {Micros(static_cast<int>(bucket))}};
}

std::string BucketLabel(PenaltyBucket bucket) {
  switch (bucket) {
    case PenaltyBucket::kUnspecified: return "unspecified";
    case PenaltyBucket::kZero: return "0";
    case PenaltyBucket::kHalfDollar: return "0.5";
    case PenaltyBucket::kPinned: return "pinned";
    default: return fmt::format("{}", UpperBound(bucket).finite.micros / kDollar);
  }
}

Result<PenaltyBucket> BucketFromNumber(int64_t number) {
  if (number < 0 || number >= kPenaltyBuckets) {
    return InvalidArgument(fmt::format("penalty bucket {}: it must be from 0 to {}", number, kPenaltyBuckets - 1));
  }
  return static_cast<PenaltyBucket>(number);
}

Result<PenaltyBucket> ParseBucket(std::string_view text) {
  if (text == "pinned") return PenaltyBucket::kPinned;
  if (text == "unspecified") return PenaltyBucket::kUnspecified;
  if (const auto dollars = ParseMoney(text)) return BucketForDollars(*dollars);
  return InvalidArgument(
      fmt::format("penalty {}: write dollars such as 0.51 or $8000, or the word pinned", Quoted(text)));
}

}  // namespace muster::model
