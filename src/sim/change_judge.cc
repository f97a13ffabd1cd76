#include "sim/change_judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::sim {

void ChangeJudge::Has(const std::string& cluster, int64_t machines, MonoTime now) {
  auto& sizes = clusters_[cluster].sizes;
  if (sizes.empty() || sizes.back().second != machines) sizes.emplace_back(now, machines);
  // The size that was there when the window began counts too.
  while (sizes.size() > 1 && now - sizes[1].first >= window_) sizes.pop_front();
}

void ChangeJudge::Audited(const contract::ActionView& action, MonoTime decided) {
  if (action.outcome != "pending" || action.cluster_id.empty()) return;
  const bool reclaims = action.kind == "Reclaim" && action.reason != model::Reason::kReclaimInstead;
  const bool repairs = action.kind == "Repair" && action.reason != model::Reason::kRepairByHand;
  if (reclaims) Count(action.cluster_id, "reclaimed", decided);
  if (repairs) Count(action.cluster_id, "repaired", decided);
}

void ChangeJudge::TakeBackGivenUp(const std::string& cluster) {
  auto& changes = clusters_[cluster].changes;
  const auto last =
      std::ranges::find(changes.rbegin(), changes.rend(), kGivenUp, [](const auto& row) { return row.second; });
  if (last != changes.rend()) changes.erase(std::next(last).base());
}

void ChangeJudge::Count(const std::string& cluster, std::string_view how, MonoTime when) {
  auto& [sizes, changes] = clusters_[cluster];
  while (!changes.empty() && when - changes.front().first >= window_) changes.pop_front();
  const auto before = std::ssize(changes);
  changes.emplace_back(when, how);
  int64_t had = 0;
  for (const auto& [since, size] : sizes) had = std::max(had, size);
  const int64_t most = std::max<int64_t>(1, (had + before) * share_.millionths / 1'000'000);
  findings_.Check(std::ssize(changes) <= most, [&] {
    std::map<std::string_view, int> kinds;
    for (const auto& [at, kind] : changes) ++kinds[kind];
    std::string said;
    for (const auto& [kind, count] : kinds) said += fmt::format("{}{} {}", said.empty() ? "" : ", ", count, kind);
    return fmt::format("{} of {}'s {} machines change within the window: {}, not {}", changes.size(), cluster, had,
                       said, most);
  });
}

}  // namespace muster::sim
