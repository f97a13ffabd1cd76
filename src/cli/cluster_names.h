// The words of the cluster verbs: types and names as kubectl takes them, and label selectors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "contract/cluster_views.h"
#include "model/requirement.h"

namespace muster::cli {

enum class ClusterKind : uint8_t { kWorkload, kNode, kSet, kQuota, kEvent };
std::string_view ClusterKindName(ClusterKind kind);  // "workload", "node", "set", "quota", "event"

// Singular, plural or short, in any case: "workloads", "workload", "wl". A job is a set.
Result<ClusterKind> ParseClusterKind(std::string_view word);

struct ClusterTarget {
  ClusterKind kind = ClusterKind::kWorkload;
  std::string name;  // empty: all of the kind

  bool operator==(const ClusterTarget&) const = default;
};

// TYPE[,TYPE...] [NAME...], or TYPE/NAME [TYPE/NAME...]. INVALID_ARGUMENT for no words, for an unknown type, for both
// forms at once. A type without names stands for all.
Result<std::vector<ClusterTarget>> ParseTargets(const std::vector<std::string>& words);
// The same where names are needed: INVALID_ARGUMENT for a type alone.
Result<std::vector<ClusterTarget>> ParseNamedTargets(const std::vector<std::string>& words);
// One set: NAME, set/NAME or set NAME.
Result<std::string> ParseSetName(const std::vector<std::string>& words);
// Names of one kind, each with or without its type: "n1", "node/n1".
Result<std::vector<std::string>> ParseNames(const std::vector<std::string>& words, ClusterKind kind);

// "app=web,tier!=db,zone in (a,b),!gpu,ssd": all must hold. Operators: = == != in notin, a key alone, ! before it.
Result<std::vector<model::Requirement>> ParseSelector(std::string_view text);
bool Selects(const std::vector<model::Requirement>& selector, const std::map<std::string, std::string>& labels);

}  // namespace muster::cli
