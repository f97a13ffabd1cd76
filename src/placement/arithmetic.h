// The integer arithmetic of scores and quotas, so that two placers agree to the bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "placement/types.h"

namespace muster::placement {

__extension__ typedef __int128 Wide;

// Shares are in units of 2^-20, rounded down; a share above 4 counts as 4.
inline constexpr int64_t kShareOne = int64_t{1} << 20;
inline constexpr int64_t kShareMost = 4 * kShareOne;

// [S.utilisation] part / whole. A whole of nothing is fully used.
inline int64_t Share(int64_t part, int64_t whole) {
  if (whole <= 0) return kShareOne;
  if (part <= 0) return 0;
  const Wide share = static_cast<Wide>(part) * kShareOne / whole;
  return static_cast<int64_t>(std::min<Wide>(share, kShareMost));
}

// What is left of a resource that a node does not limit.
inline constexpr int64_t kUnlimited = INT64_MAX / 2;

inline int64_t AddSaturating(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// What a unit takes of its tenant's quota: its request, its devices as "gpu", and itself as one of kUnitsQuota.
model::Resources QuotaUse(const Kind& kind);

// Which filter judges a resource. Fit is judged in the order of these reasons, resources of one reason by name.
Reason FitReason(std::string_view resource);
// The entries of a request in the order in which fit judges them.
std::vector<model::Resources::Entry> InFitOrder(const model::Resources& request);

// [B.order] Whether `a` is served before `b`.
bool ServedBefore(const Kind& a_kind, const Unit& a, const Kind& b_kind, const Unit& b);

// [E.order] Whether `a` is evicted rather than `b`: lower priority, then younger, then the larger id.
bool EvictedBefore(const Kind& a_kind, const Unit& a, const Kind& b_kind, const Unit& b);

}  // namespace muster::placement
