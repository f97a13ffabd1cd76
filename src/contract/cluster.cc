#include "contract/cluster.h"

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

}  // namespace muster::contract
