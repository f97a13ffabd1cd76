// LossWindow: what happened to machines within a span of time, in the order it happened, and how often in each cluster.
// A machine counts once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
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

  explicit LossWindow(State state) : losses_(std::move(state)) {
    for (const Loss& loss : losses_) Count(loss, 1);
  }

  void Add(Loss loss) {
    if (!loss.machine.empty()) Remove(loss.machine);
    Count(loss, 1);
    losses_.push_back(std::move(loss));
  }
  // Whether the machine was in the window.
  bool Remove(const std::string& machine) {
    const auto found = Find(machine);
    if (found == losses_.end()) return false;
    Count(*found, -1);
    losses_.erase(found);
    return true;
  }
  // Removes what is older than `span`, and calls `gone` with the cluster of each.
  void Expire(MonoTime now, Duration span, const std::function<void(const std::string&)>& gone) {
    while (!losses_.empty() && now - losses_.front().at >= span) {
      const Loss loss = std::move(losses_.front());
      losses_.pop_front();
      Count(loss, -1);
      gone(loss.cluster);
    }
  }
  // Removes what happened to the cluster's machines, or everything if the name is empty.
  void Clear(const std::string& cluster) {
    std::erase_if(losses_, [&](const Loss& loss) {
      if (!cluster.empty() && loss.cluster != cluster) return false;
      Count(loss, -1);
      return true;
    });
  }
  void SetTimes(MonoTime now) {
    for (Loss& loss : losses_) loss.at = now;
  }

  int64_t total() const { return static_cast<int64_t>(losses_.size()); }
  int64_t Of(const std::string& cluster) const {
    const auto found = by_cluster_.find(cluster);
    return found == by_cluster_.end() ? 0 : found->second;
  }
  const State& state() const { return losses_; }

 private:
  State::iterator Find(const std::string& machine) {
    return machines_.contains(machine) ? std::ranges::find(losses_, machine, &Loss::machine) : losses_.end();
  }
  void Count(const Loss& loss, int64_t by) {
    int64_t& count = by_cluster_[loss.cluster];
    count += by;
    if (count == 0) by_cluster_.erase(loss.cluster);
    if (loss.machine.empty()) return;
    if (by > 0) {
      machines_.insert(loss.machine);
    } else {
      machines_.erase(loss.machine);
    }
  }

  State losses_;
  // Derived from losses_.
  std::map<std::string, int64_t, std::less<>> by_cluster_;
  std::set<std::string> machines_;
};

}  // namespace muster::shard
