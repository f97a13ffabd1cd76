#include "engine/shapes/procurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/rng.h"
#include "engine/shapes/shapes.h"

namespace muster::engine {
namespace {

constexpr std::array<std::string_view, 3> kDimensions{"cpu", "memory", "nvidia.com/gpu"};
constexpr int64_t kMilli = 1000;
constexpr std::string_view kInstanceKey = "example.com/instance";

int64_t Size(const MachineClass& c) { return std::accumulate(c.units.begin(), c.units.end(), int64_t{0}); }

int64_t EnoughAlone(const MachineClass& c, const std::vector<int64_t>& demand) {
  int64_t enough = 0;
  for (size_t d = 0; d < demand.size(); ++d) enough = std::max(enough, (demand[d] + c.units[d] - 1) / c.units[d]);
  return enough;
}

model::Resources ResourcesOf(const std::vector<int64_t>& units) {
  model::Resources resources;
  for (size_t d = 0; d < units.size(); ++d) resources.Set(kDimensions[d], units[d] * kMilli);
  return resources;
}

}  // namespace

Procurement MakeProcurement(uint64_t number, Draw draw) {
  Rng rng(12'000 + number);
  const bool skewed = draw == Draw::kSkewed;
  Procurement procurement;
  procurement.demand.resize(static_cast<size_t>(rng.Between(1, 3)));
  const int64_t pods = skewed ? 1 : rng.Between(1, 100);
  for (int64_t& units : procurement.demand) units = pods * rng.Between(1, skewed ? 400 : 4);
  procurement.classes.resize(static_cast<size_t>(rng.Between(4, 12)));
  for (MachineClass& c : procurement.classes) {
    const int64_t factor = skewed ? 1 : int64_t{1} << rng.Below(6);
    c.units.resize(procurement.demand.size());
    for (int64_t& units : c.units) units = factor * rng.Between(1, skewed ? 64 : 4);
    c.price_micros = Size(c) * rng.Between(70, 130) * kPriceStepMicros;
    c.count = EnoughAlone(c, procurement.demand);
    if (draw == Draw::kLimited && &c != &procurement.classes.front()) c.count = rng.Between(1, c.count);
  }
  return procurement;
}

World WorldOf(const Procurement& procurement, model::MachineState state) {
  World world;
  world.clusters["buyer"] = {};
  world.needs.push_back({.cluster = "buyer",
                         .aggregate = ResourcesOf(procurement.demand),
                         .min_unit = ResourcesOf(std::vector<int64_t>(procurement.demand.size(), 1))});
  for (size_t k = 0; k < procurement.classes.size(); ++k) {
    const MachineClass& c = procurement.classes[k];
    model::Machine machine{.state = state,
                           .instance_type = fmt::format("type-{}", k),
                           .capacity_type = model::CapacityType::kOnDemand,
                           .price_per_hour = {c.price_micros},
                           .resources = ResourcesOf(c.units)};
    for (int64_t n = 0; n < c.count; ++n) {
      machine.id = fmt::format("{}-{}", k, n);
      if (state == model::MachineState::kIdle) machine.host = {.provider = "test", .ref = machine.id};
      world.machines.push_back(machine);
    }
  }
  return world;
}

// Every instance on its own: a buyer sees the machines that carry its number.
World ProcurementFleet(Scale scale) {
  World world;
  for (int64_t n = 0; n < scale.Of(static_cast<int64_t>(kProcurements)); ++n) {
    const std::string number = fmt::format("{}", n);
    World one = WorldOf(MakeProcurement(static_cast<uint64_t>(n), Draw::kAmple), model::MachineState::kSpeculative);
    for (model::Machine& machine : one.machines) {
      machine.id = fmt::format("{}-{}", number, machine.id);
      machine.labels.emplace(std::string(kInstanceKey), number);
      world.machines.push_back(std::move(machine));
    }
    model::Need need = std::move(one.needs.front());
    need.cluster = "buyer-" + number;
    model::ProfileParts parts = need.profile.parts();
    parts.requirements.push_back({.key = std::string(kInstanceKey), .op = model::Operator::kIn, .values = {number}});
    need.profile = model::Profile(std::move(parts));
    world.clusters[need.cluster] = {};
    world.needs.push_back(std::move(need));
  }
  return world;
}

}  // namespace muster::engine
