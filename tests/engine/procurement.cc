#include "engine/procurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "base/rng.h"

namespace muster::engine {
namespace {

constexpr std::array<std::string_view, 3> kDimensions{"cpu", "memory", "nvidia.com/gpu"};
constexpr int64_t kMilli = 1000;

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

bool Covers(const std::vector<int64_t>& taken, const std::vector<int64_t>& demand) {
  return std::ranges::equal(taken, demand, std::ranges::greater_equal{});
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

int64_t CostOf(const World& world, const std::vector<std::string>& machines) {
  std::map<std::string_view, int64_t> price;
  for (const model::Machine& machine : world.machines) price.emplace(machine.id, machine.price_per_hour.micros);
  int64_t cost = 0;
  for (const std::string& id : machines) {
    const auto it = price.find(id);
    MUSTER_CHECK(it != price.end());
    cost += it->second;
  }
  return cost;
}

int64_t PriceOrderCost(const Procurement& procurement) {
  std::vector<const MachineClass*> order;
  for (const MachineClass& c : procurement.classes) order.push_back(&c);
  std::ranges::sort(order, {}, [](const MachineClass* c) { return std::tuple(c->price_micros, Size(*c), c); });
  std::vector<const MachineClass*> picks;
  std::vector<int64_t> taken(procurement.demand.size(), 0);
  for (const MachineClass* c : order) {
    // Every class has something of every dimension, so it adds to whatever is short.
    for (int64_t n = 0; n < c->count && !Covers(taken, procurement.demand); ++n) {
      picks.push_back(c);
      std::ranges::transform(taken, c->units, taken.begin(), std::plus{});
    }
  }
  int64_t cost = 0;
  for (auto pick = picks.rbegin(); pick != picks.rend(); ++pick) {
    std::vector<int64_t> rest(taken.size());
    std::ranges::transform(taken, (*pick)->units, rest.begin(), std::minus{});
    if (Covers(rest, procurement.demand)) {
      taken = rest;
    } else {
      cost += (*pick)->price_micros;
    }
  }
  return cost;
}

}  // namespace muster::engine
