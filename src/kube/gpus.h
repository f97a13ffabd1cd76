// GPUs as devices. A dump and a catalogue count them as an amount (nvidia.com/gpu), workload files ask for devices
// (gpu, gpu-milli). In a plan all of them are devices of nodes: with an amount beside the devices a machine's GPUs
// would be given away twice.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/resources.h"
#include "placement/kind.h"

namespace muster::kube {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";
inline constexpr int64_t kMostDevices = 1024;  // of one machine

// As many whole devices as the amount has.
std::vector<int32_t> DevicesOf(const model::Resources& amounts);
// `amounts` without the GPUs.
void DropGpus(model::Resources& amounts);
// What the unit asks of nvidia.com/gpu becomes whole devices. A unit that asks for a part of a device as well keeps
// both, and fits no machine: a device is asked for as a part or as a whole.
void AskForDevices(placement::Kind& kind);

}  // namespace muster::kube
