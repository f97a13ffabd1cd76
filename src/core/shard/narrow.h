// Narrow: a count as the wire's 32 bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace muster::shard {

inline int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}

}  // namespace muster::shard
