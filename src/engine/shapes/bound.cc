// Fleets of bound machines and nothing else: who is preempted, who is given back, and what it costs to find nobody.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/shapes/parts.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

using shapes::FiveTypes;
using shapes::kOneCpu;

// Penalties of a need: interruption $8,192, reclamation pinned.
model::Profile PinnedProfile(std::string_view type, int32_t priority) {
  model::ProfileParts parts = shapes::TypeProfile({std::string(type)}, priority, false).parts();
  parts.reclamation = model::PenaltyBucket::kPinned;
  return model::Profile(std::move(parts));
}

model::Need NeedOf(const std::string& cluster, model::Profile profile, int64_t cpus) {
  return {.cluster = cluster,
          .profile = std::move(profile),
          .aggregate = kOneCpu.Times(cpus).Resources(),
          .min_unit = kOneCpu.Resources()};
}

// A need of five machines from each of `count` clusters that have none.
void AddWanting(int64_t count, const std::array<model::Profile, 5>& profiles, World& world) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string cluster = fmt::format("wanting-{}", i);
    world.clusters[cluster] = {};
    world.needs.push_back(NeedOf(cluster, profiles[static_cast<size_t>(i % 5)], 5));
  }
}

}  // namespace

World Inversions500k(Scale scale) {
  const model::Attribution stamp{
      .priority = 100, .interruption = shapes::Dollars(1), .reclamation = shapes::Dollars(1)};
  const int64_t clusters = scale.Of(10);
  World world;
  for (int64_t c = 0; c < clusters; ++c) world.clusters[fmt::format("c-{}", c)] = {.gate_open = false};
  for (int64_t i = 0; i < scale.Of(500'000); ++i) {
    world.machines.push_back(
        shapes::Bound(fmt::format("m-{}", i), FiveTypes(i), kOneCpu, fmt::format("c-{}", i % clusters), stamp));
  }
  std::array<model::Profile, 5> profiles;
  for (size_t t = 0; t < 5; ++t) profiles[t] = PinnedProfile(FiveTypes(static_cast<int64_t>(t)), 1'000'000);
  AddWanting(scale.Of(100), profiles, world);
  return world;
}

World NoVictims450k(Scale scale) {
  const model::Attribution stamp{
      .priority = 1'000'000, .interruption = shapes::Dollars(8192), .reclamation = shapes::Dollars(65'536)};
  const int64_t clusters = scale.Of(50);
  World world;
  for (int64_t c = 0; c < clusters; ++c) world.clusters[fmt::format("c-{}", c)] = {.gate_open = false};
  for (int64_t i = 0; i < scale.Of(450'000); ++i) {
    world.machines.push_back(
        shapes::Bound(fmt::format("m-{}", i), FiveTypes(i), kOneCpu, fmt::format("c-{}", i % clusters), stamp));
  }
  std::array<model::Profile, 5> profiles;
  profiles.fill(shapes::TypeProfile({"a3-highgpu-8g"}, 1000, false));
  AddWanting(scale.Of(100), profiles, world);
  return world;
}

World Reclaim500k(Scale scale) {
  const model::Attribution stamp{
      .priority = 100, .interruption = shapes::Dollars(1), .reclamation = shapes::Dollars(1)};
  const int64_t clusters = scale.Of(50);
  World world;
  for (int64_t i = 0; i < scale.Of(500'000); ++i) {
    world.machines.push_back(
        shapes::Bound(fmt::format("m-{}", i), FiveTypes(i), kOneCpu, fmt::format("c-{}", i % clusters), stamp));
    world.machines.back().capacity_type = model::CapacityType::kOnDemand;
  }
  for (int64_t c = 0; c < clusters; ++c) {
    const std::string cluster = fmt::format("c-{}", c);
    world.clusters[cluster] = {};
    for (int64_t k = 0; k < 3; ++k) {
      world.needs.push_back(NeedOf(cluster, PinnedProfile(FiveTypes(c + k), 1'000'000), 3333));
    }
  }
  return world;
}

World Keep450k(Scale scale) {
  constexpr std::string_view kType = "a3-highgpu-8g";
  const model::Attribution stamp{
      .priority = 1'000'000, .interruption = shapes::Dollars(8192), .reclamation = shapes::Dollars(65'536)};
  World world;
  for (int64_t c = 0; c < scale.Of(50); ++c) {
    const std::string cluster = fmt::format("kwok-cluster-{}", c);
    world.clusters[cluster] = {};
    for (int64_t i = 0; i < 9000; ++i) {
      world.machines.push_back(
          shapes::Bound(fmt::format("m-{}", world.machines.size()), kType, kOneCpu, cluster, stamp));
    }
    world.needs.push_back(NeedOf(cluster, shapes::TypeProfile({std::string(kType)}, 1000, false), 10'000));
  }
  return world;
}

}  // namespace muster::engine
