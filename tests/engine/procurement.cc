#include "engine/procurement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>

#include "base/check.h"

namespace muster::engine {
namespace {

int64_t Size(const MachineClass& c) { return std::accumulate(c.units.begin(), c.units.end(), int64_t{0}); }

bool Covers(const std::vector<int64_t>& taken, const std::vector<int64_t>& demand) {
  return std::ranges::equal(taken, demand, std::ranges::greater_equal{});
}

}  // namespace

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
