#include "engine/arithmetic.h"

#include <algorithm>

namespace muster::engine {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kSmallestPenaltyMicros = 10'000;  // $0.01
constexpr int64_t kShortestDrainMillis = 1'000;

// weight / dollars, as a ratio; a pinned penalty makes no victim better.
Wide PenaltyTerm(int64_t weight, const model::Penalty& penalty) {
  if (penalty.pinned) return 0;
  return Wide{weight} * kOne / std::max(penalty.finite.micros, kSmallestPenaltyMicros);
}

}  // namespace

// [A.cost] [A.pinned]
Cost EffectiveCost(const model::Machine& machine, model::PenaltyBucket interruption) {
  const int64_t price = machine.price_per_hour.micros;
  const int64_t probability = machine.interruption_probability.millionths;
  if (probability == 0) return {.micros = price};
  const model::Penalty penalty = model::UpperBound(interruption);
  if (penalty.pinned) return {.pinned = true, .micros = price};
  return {.micros = price + static_cast<int64_t>(Wide{probability} * penalty.finite.micros / kMillion)};
}

Wide VictimScore(const VictimWeights& weights, int64_t priority_gap, int64_t drain_millis,
                 const model::Penalty& interruption, const model::Penalty& reclamation) {
  const Wide gap = std::max<int64_t>(priority_gap, 0);
  const Wide gap_term = Wide{weights.priority_gap} * gap * kOne / kMillion;
  const Wide drain_term =
      Wide{weights.drain_speed} * kOne * 1000 / (Wide{kMillion} * std::max(drain_millis, kShortestDrainMillis));
  return gap_term + drain_term + PenaltyTerm(weights.interruption, interruption) +
         PenaltyTerm(weights.reclamation, reclamation);
}

int64_t MeanDrainMillis(const DrainMean& mean) {
  return mean.drains > 0 ? mean.total_millis / mean.drains : kUnknownDrainMillis;
}

std::chrono::seconds PreemptGrace(int64_t priority_gap) {
  if (priority_gap > 900'000) return std::chrono::seconds(10);
  if (priority_gap > 500'000) return std::chrono::seconds(30);
  if (priority_gap > 100'000) return std::chrono::minutes(2);
  return std::chrono::minutes(10);
}

}  // namespace muster::engine
