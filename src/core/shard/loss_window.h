// LossWindow: what happened to machines within a span of time, in the order it happened, and how often in each cluster.
// A machine counts once. Adding and removing one costs the logarithm of how many there are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/fields.h"
#include "base/time.h"

namespace muster::shard {

struct Loss {
  MonoTime at;
  std::string machine;  // empty: of an earlier life
  std::string cluster;  // empty: it served none

  MUSTER_FIELDS(Loss, at, machine, cluster)
};

class LossWindow {
 public:
  using State = std::deque<Loss>;
  using Counts = std::map<std::string, int64_t, std::less<>>;  // by cluster

  explicit LossWindow(State state) {
    for (Loss& loss : state) Insert(std::move(loss));
  }

  void Add(Loss loss) {
    if (!loss.machine.empty()) Remove(loss.machine);
    Insert(std::move(loss));
  }
  // Whether the machine was in the window.
  bool Remove(const std::string& machine) {
    const auto found = numbers_.find(machine);
    if (found == numbers_.end()) return false;
    Erase(losses_.find(found->second));
    return true;
  }
  bool Contains(const std::string& machine) const { return numbers_.contains(machine); }
  // Removes what is older than `span`, and calls `gone` with the cluster of each.
  void Expire(MonoTime now, Duration span, const std::function<void(const std::string&)>& gone) {
    while (!losses_.empty() && now - losses_.begin()->second.at >= span) {
      const std::string cluster = losses_.begin()->second.cluster;
      Erase(losses_.begin());
      gone(cluster);
    }
  }
  // Removes what happened to the cluster's machines, or everything if the name is empty.
  void Clear(const std::string& cluster) {
    for (auto it = losses_.begin(); it != losses_.end();) {
      const auto loss = it++;
      if (cluster.empty() || loss->second.cluster == cluster) Erase(loss);
    }
  }
  void SetTimes(MonoTime now) {
    for (auto& [number, loss] : losses_) loss.at = now;
  }

  int64_t total() const { return static_cast<int64_t>(losses_.size()); }
  int64_t Of(const std::string& cluster) const {
    const auto found = by_cluster_.find(cluster);
    return found == by_cluster_.end() ? 0 : found->second;
  }
  const Counts& by_cluster() const { return by_cluster_; }
  State state() const {
    State state;
    for (const auto& [number, loss] : losses_) state.push_back(loss);
    return state;
  }

 private:
  using Losses = std::map<uint64_t, Loss>;  // numbered in the order they happened

  void Insert(Loss loss) {
    ++by_cluster_[loss.cluster];
    if (!loss.machine.empty()) numbers_.insert_or_assign(loss.machine, next_);
    losses_.emplace_hint(losses_.end(), next_++, std::move(loss));
  }
  void Erase(Losses::iterator loss) {
    const auto count = by_cluster_.find(loss->second.cluster);
    if (--count->second == 0) by_cluster_.erase(count);
    numbers_.erase(loss->second.machine);
    losses_.erase(loss);
  }

  Losses losses_;
  uint64_t next_ = 0;
  // Derived from losses_.
  Counts by_cluster_;
  std::map<std::string, uint64_t, std::less<>> numbers_;  // by machine
};

}  // namespace muster::shard
