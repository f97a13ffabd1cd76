#include "contract/cluster.h"

#include <algorithm>
#include <array>

namespace muster::contract {

std::string_view ApplyResultName(ApplyResult result) {
  static constexpr std::array<std::string_view, 3> kNames{"created", "configured", "unchanged"};
  return kNames.at(static_cast<size_t>(result));
}

std::string_view ObjectKindName(ObjectKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"workload", "set", "quota", "node"};
  return kNames.at(static_cast<size_t>(kind));
}

std::string_view DecisionKindName(DecisionKind kind) {
  static constexpr std::array<std::string_view, 12> kNames{"placed",    "refused",    "failed-over",    "retry",
                                                           "gave-up",   "evicted",    "rolled-out",     "deleted",
                                                           "node-lost", "node-ready", "orphan-deleted", "orphans-held"};
  return kNames.at(static_cast<size_t>(kind));
}

bool TellsOfFailure(model::WorkloadPhase phase, std::string_view reason) {
  using enum model::WorkloadPhase;
  static constexpr std::array<std::string_view, 5> kProgress{"placed", "agent.launched", "agent.running",
                                                             "agent.stopped", "agent.completed"};
  if (std::ranges::find(kProgress, reason) != kProgress.end() || reason.starts_with("request.")) return false;
  // A record of another program has no reason; an eviction or a failover is the cause of a wait, and else a move.
  if (!reason.empty() && !reason.starts_with("evicted.") && !reason.starts_with("failover.")) return true;
  return phase == kPending || phase == kRetryPending || phase == kFailed || phase == kUnknown;
}

}  // namespace muster::contract
