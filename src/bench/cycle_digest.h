// Claims and ordered actions of one cycle in one number, by names: the same from both engines, whatever order claims
// were made in.
#pragma once

#include <cstdint>

#include "engine/fast/engine.h"
#include "engine/types.h"

namespace muster::bench {

uint64_t CycleDigest(const engine::fast::Engine& engine);  // of its last decision
uint64_t CycleDigest(const engine::Decision& decision);

}  // namespace muster::bench
