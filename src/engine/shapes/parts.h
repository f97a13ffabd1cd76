// What shapes are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace muster::engine::shapes {

inline constexpr std::string_view kRackKey = "topology.bigfleet/rack";
inline constexpr int64_t kGi = int64_t{1} << 30;
inline constexpr int64_t kMi = int64_t{1} << 20;

// Whole cpus and bytes as Resources; zero leaves a dimension out.
struct Size {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;

  Size Times(int64_t count) const { return {cpu_milli * count, memory_bytes * count, gpus * count}; }
  model::Resources Resources() const;
};

// A bare-metal machine in zone-a at no price, with a host if its state has one. An empty rack is no label.
model::Machine BareMetal(std::string id, model::MachineState state, std::string_view type, const Size& size,
                         std::string_view rack = {});

// Instance type In `types`, Same(rack) if asked, both penalties $8,192.
model::Profile TypeProfile(std::vector<std::string> types, int32_t priority, bool same_rack);

}  // namespace muster::engine::shapes
