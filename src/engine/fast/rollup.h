// A roll-up as it was decoded: rows, and a digest of each made then. Digests lie side by side, as a roll-up that
// changed little is told by them alone.
#pragma once

#include <cstdint>
#include <span>

#include "model/need.h"

namespace muster::engine::fast {

struct Rollup {
  std::span<const model::Need> rows;
  std::span<const uint64_t> digests;  // RowDigest of each
};
using model::RowDigest;

}  // namespace muster::engine::fast
