// What catalogues in YAML and in CSV have in common: the rules of one type, and how their breach is worded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/resources.h"
#include "planner/catalogue.h"

namespace muster::kube {

inline constexpr std::string_view kRequiredField = "this field is required";
inline constexpr std::string_view kReservedAndAllocatable = "give reserved or allocatable, not both";
inline constexpr std::string_view kNoTypes = "a catalogue needs at least one type";

// A whole number of units that a machine takes.
Status SetSlots(std::string_view text, planner::MachineType& type);
// What of a resource units may use; the rest is reserved. The type must have the resource.
Status SetAllocatable(std::string_view resource, int64_t milli, planner::MachineType& type);
// Whole devices, by the resource nvidia.com/gpu.
void SetDevices(planner::MachineType& type);

// Without a byte order mark, which editors of some systems put first.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace muster::kube
