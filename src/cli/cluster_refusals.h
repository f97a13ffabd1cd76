// Why nodes refuse a workload, summarised: one row for each class of refusal.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/table.h"
#include "contract/cluster_views.h"

namespace muster::cli {

// NODES, REASON, DETAIL (of the first of them), WHICH (up to three names). Nodes that fit come first, then the largest
// class. Empty without nodes.
inline Rows RefusalsByClass(const std::vector<contract::NodeRefusal>& nodes) {
  struct Class {
    std::vector<std::string> nodes;
    std::string detail;
  };
  std::map<std::string, Class> classes;
  for (const contract::NodeRefusal& refusal : nodes) {
    Class& one = classes[refusal.reason];
    if (one.nodes.empty()) one.detail = refusal.detail;
    one.nodes.push_back(refusal.node);
  }
  std::vector<std::pair<std::string, Class>> sorted(classes.begin(), classes.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    if (a.first.empty() != b.first.empty()) return a.first.empty();
    return a.second.nodes.size() > b.second.nodes.size();
  });
  if (sorted.empty()) return {};
  constexpr size_t kNamed = 3;
  Rows rows = {{"NODES", "REASON", "DETAIL", "WHICH"}};
  for (const auto& [reason, one] : sorted) {
    std::string which;
    for (size_t i = 0; i < std::min(kNamed, one.nodes.size()); ++i) which += (i == 0 ? "" : ", ") + one.nodes[i];
    if (one.nodes.size() > kNamed) which += fmt::format(" and {} more", one.nodes.size() - kNamed);
    rows.push_back({fmt::to_string(one.nodes.size()), reason.empty() ? "fits" : reason, OrDash(one.detail), which});
  }
  return rows;
}

}  // namespace muster::cli
