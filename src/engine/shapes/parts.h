// What shapes are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace muster::engine::shapes {

inline constexpr std::string_view kRackKey = "topology.bigfleet/rack";
inline constexpr int64_t kGi = int64_t{1} << 30;
inline constexpr int64_t kMi = int64_t{1} << 20;

constexpr model::Penalty Dollars(int64_t dollars) { return {.finite = {.micros = dollars * 1'000'000}}; }
inline model::PenaltyBucket BucketOf(int64_t dollars) { return model::BucketForDollars(Dollars(dollars).finite); }

// The five instance types of shapes that tell machines apart by nothing else, for the i-th of something.
std::string_view FiveTypes(int64_t i);

// Whole cpus and bytes as Resources; zero leaves a dimension out.
struct Size {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;

  Size Times(int64_t count) const { return {cpu_milli * count, memory_bytes * count, gpus * count}; }
  Size Plus(const Size& o) const { return {cpu_milli + o.cpu_milli, memory_bytes + o.memory_bytes, gpus + o.gpus}; }
  Size Max(const Size& o) const {
    return {std::max(cpu_milli, o.cpu_milli), std::max(memory_bytes, o.memory_bytes), std::max(gpus, o.gpus)};
  }
  model::Resources Resources() const;
};

inline constexpr Size kOneCpu{.cpu_milli = 1000};

// A bare-metal machine in zone-a at no price, with a host if its state has one. An empty rack is no label.
model::Machine BareMetal(std::string id, model::MachineState state, std::string_view type, const Size& size,
                         std::string_view rack = {});

// The same, Configured for a cluster and stamped with what it was bound for; of no need that can be named.
model::Machine Bound(std::string id, std::string_view type, const Size& size, const std::string& cluster,
                     const model::Attribution& stamp);

// Instance type In `types`, Same(rack) if asked, both penalties $8,192.
model::Profile TypeProfile(std::vector<std::string> types, int32_t priority, bool same_rack);

}  // namespace muster::engine::shapes
