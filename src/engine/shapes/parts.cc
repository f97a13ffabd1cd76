#include "engine/shapes/parts.h"

#include <array>
#include <utility>

#include "engine/bind_stamp.h"

namespace muster::engine::shapes {

using model::MachineState;

model::Resources Size::Resources() const {
  model::Resources resources;
  resources.Set("cpu", cpu_milli);
  resources.Set("memory", memory_bytes * 1000);
  resources.Set("nvidia.com/gpu", gpus * 1000);
  return resources;
}

std::string_view FiveTypes(int64_t i) {
  constexpr std::array<std::string_view, 5> kTypes{"a3-highgpu-8g", "m6i.large", "c6i.4xlarge", "n2-standard-32",
                                                   "r6i.xlarge"};
  return kTypes[static_cast<size_t>(i) % kTypes.size()];
}

model::Machine BareMetal(std::string id, MachineState state, std::string_view type, const Size& size,
                         std::string_view rack) {
  model::Machine machine{.id = std::move(id),
                         .state = state,
                         .instance_type = std::string(type),
                         .zone = "zone-a",
                         .capacity_type = model::CapacityType::kBareMetal,
                         .resources = size.Resources()};
  if (state != MachineState::kSpeculative) machine.host = {.provider = "shape", .ref = machine.id};
  if (!rack.empty()) machine.labels.emplace(std::string(kRackKey), std::string(rack));
  return machine;
}

model::Machine Bound(std::string id, std::string_view type, const Size& size, const std::string& cluster,
                     const model::Attribution& stamp) {
  model::Machine machine = BareMetal(std::move(id), MachineState::kConfigured, type, size);
  machine.cluster = cluster;
  machine.shard_metadata = EncodeBindStamp(stamp);
  return machine;
}

model::Profile TypeProfile(std::vector<std::string> types, int32_t priority, bool same_rack) {
  const model::PenaltyBucket penalty = model::BucketForDollars({.micros = 8'192'000'000});
  model::ProfileParts parts{.priority = priority, .interruption = penalty, .reclamation = penalty};
  parts.requirements.push_back(
      {.key = std::string(model::kInstanceTypeKey), .op = model::Operator::kIn, .values = std::move(types)});
  if (same_rack) parts.requirements.push_back({.key = std::string(kRackKey), .op = model::Operator::kSame});
  return model::Profile(std::move(parts));
}

}  // namespace muster::engine::shapes
