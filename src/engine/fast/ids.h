// Row numbers of the fast engine's tables. Plain 32-bit numbers: they are looked up millions of times a second.
#pragma once

#include <cstdint>

namespace muster::engine::fast {

using MachineId = uint32_t;
using ShapeId = uint32_t;    // an allocatable vector
using ClassId = uint32_t;    // machines that differ in nothing but id and state
using GroupId = uint32_t;    // machines of one class, state and attribution or pledge
using ClusterId = uint32_t;  // a cluster's name
using KeyId = uint32_t;      // (cluster, fingerprint, group)
using StampId = uint32_t;    // an attribution
using ProfileId = uint32_t;  // a fingerprint, and the profile behind it if one is known
using FitId = uint32_t;      // which classes can serve a need
using NeedId = uint32_t;     // a need of this cycle, by its place in the order of decision

inline constexpr uint32_t kNoId = 0xffffffff;
inline constexpr MachineId kNoMachine = kNoId;

}  // namespace muster::engine::fast
