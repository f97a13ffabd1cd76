#include "engine/needs_table.h"

#include <algorithm>
#include <set>

namespace muster::engine {

void NeedsTable::Replace(const std::string& cluster, std::vector<model::Need> rows, WallTime now) {
  latest_ = std::max(latest_, now);
  std::set<NeedKey> listed;
  for (model::Need& row : rows) {
    row.cluster = cluster;
    const NeedKey key = KeyOf(row);
    const WallTime first = row.arrival != WallTime{} ? row.arrival : latest_;
    row.arrival = arrivals_.emplace(key, first).first->second;
    listed.insert(key);
  }
  for (auto it = arrivals_.lower_bound({.cluster = cluster}); it != arrivals_.end() && it->first.cluster == cluster;) {
    it = listed.contains(it->first) ? std::next(it) : arrivals_.erase(it);
  }
  if (rows.empty()) {
    rows_.erase(cluster);
  } else {
    rows_[cluster] = std::move(rows);
  }
}

std::vector<model::Need> NeedsTable::Rows() const {
  std::vector<model::Need> all;
  for (const auto& [cluster, rows] : rows_) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

void NeedsTable::RestoreArrivals(std::map<NeedKey, WallTime> arrivals) {
  arrivals_ = std::move(arrivals);
  for (const auto& [key, arrival] : arrivals_) latest_ = std::max(latest_, arrival);
}

}  // namespace muster::engine
