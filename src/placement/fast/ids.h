// The index types of the fast placer.
#pragma once

#include "base/index.h"
#include "placement/types.h"

namespace muster::placement::fast {

using DimIndex = Index<struct DimTag>;          // a resource name
using KeyIndex = Index<struct KeyTag>;          // a label key
using UnitSlot = Index<struct UnitTag>;         // a placed unit
using StaticIndex = Index<struct StaticTag>;    // a set of constraints on labels, taints, type
using CounterIndex = Index<struct CounterTag>;  // units counted by domain
using Position = uint32_t;                      // a node's row; rows of nodes that are gone are used again

inline constexpr uint32_t kNoValue = ~uint32_t{0};  // of a label column: the node lacks the key

}  // namespace muster::placement::fast
