// HoldSets: for which clusters machines are on hold, as small numbers. 0 is no hold, 1 is every cluster; machines that
// are on hold for the same clusters have the same number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/fast/ids.h"

namespace muster::engine::fast {

class HoldSets {
 public:
  static constexpr uint16_t kNone = 0;
  static constexpr uint16_t kEveryone = 1;

  // `clusters` ascending. When there is no number left, the hold is for every cluster.
  uint16_t Of(const std::vector<ClusterId>& clusters) {
    if (clusters.empty()) return kNone;
    const auto known = numbers_.find(clusters);
    if (known != numbers_.end()) return known->second;
    if (sets_.size() > 0xffff) return kEveryone;
    sets_.push_back(clusters);
    return numbers_.emplace(clusters, static_cast<uint16_t>(sets_.size() - 1)).first->second;
  }
  bool Holds(uint16_t number, ClusterId cluster) const {
    if (number <= kEveryone) return number == kEveryone;
    return std::ranges::binary_search(sets_[number], cluster);
  }
  // No machine has a number any more.
  void Clear() {
    sets_.resize(2);
    numbers_.clear();
  }

 private:
  std::vector<std::vector<ClusterId>> sets_ = {{}, {}};
  std::map<std::vector<ClusterId>, uint16_t> numbers_;
};

}  // namespace muster::engine::fast
