// The engine's formulas, in integers, so that two engines agree to the bit.
//
// Ratios are floor(x * 2^20 / max). Costs are micro-dollars, with pinned as a value of its own that ranks after
// everything finite. Nothing here allocates or depends on anything but its arguments.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

#include "engine/types.h"
#include "model/machine.h"
#include "model/penalty.h"

namespace muster::engine {

// Wide enough for any total of milli-units and any product below.
__extension__ typedef __int128 Wide;

inline constexpr int64_t kOne = int64_t{1} << 20;  // the ratio 1

// floor(x * 2^20 / whole); whole must be positive, x must not be negative.
constexpr Wide Ratio(Wide x, Wide whole) { return x * kOne / whole; }

// What a machine costs an hour, in the eyes of one need.
struct Cost {
  bool pinned = false;    // may be interrupted, and the need can never bear that: after everything finite, by price
  bool reserved = false;  // a later need waits for it: taken last in its pool, whatever it costs
  int64_t micros = 0;

  auto operator<=>(const Cost&) const = default;
};

// Price + interruption probability x interruption penalty. Probability 0 costs the price, also to a pinned need.
Cost EffectiveCost(const model::Machine& machine, model::PenaltyBucket interruption);

// Best victim = highest score. `drain_millis` is the mean drain seen for the victim's type.
Wide VictimScore(const VictimWeights& weights, int64_t priority_gap, int64_t drain_millis,
                 const model::Penalty& interruption, const model::Penalty& reclamation);
inline constexpr int64_t kUnknownDrainMillis = 30'000;
int64_t MeanDrainMillis(const DrainMean& mean);

// 10 s, 30 s, 2 min or 10 min: the larger the gap, the shorter.
std::chrono::seconds PreemptGrace(int64_t priority_gap);
inline constexpr std::chrono::seconds kReclaimGrace{600};

}  // namespace muster::engine
