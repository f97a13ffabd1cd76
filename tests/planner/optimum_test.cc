// What the planner pays, against the exact optimum of small requests: the cheapest way to part the units into machines,
// found by going through every subset.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/rng.h"
#include "planner/plan.h"

namespace muster::planner {
namespace {

constexpr int kInstances = 400;
constexpr size_t kUnits = 10;

struct Instance {
  Request request;
  std::vector<std::array<int64_t, 2>> units;  // cpu, memory
};

Instance MakeInstance(uint64_t seed) {
  Rng rng(seed);
  Instance instance;
  Catalogue catalogue;
  const int64_t types = rng.Between(2, 6);
  for (int64_t t = 0; t < types; ++t) {
    const int64_t cpu = rng.Between(2, 16);
    const int64_t memory = rng.Between(2, 16);
    MachineType type{.name = fmt::format("type-{}", t), .capacity = {{"cpu", cpu * 1000}, {"memory", memory * 1000}}};
    type.offers.push_back({.zone = "a", .price = {(cpu + memory) * rng.Between(700, 1300)}});
    catalogue.types.push_back(std::move(type));
  }
  catalogue.types[0].capacity = {{"cpu", 16'000}, {"memory", 16'000}};  // something takes every unit
  instance.request.candidates = MakeCandidates(catalogue, {Pool{}});
  instance.request.exact = true;
  for (size_t u = 0; u < kUnits; ++u) {
    placement::Kind kind;
    instance.units.push_back({rng.Between(1, 24) * 250, rng.Between(1, 24) * 250});
    kind.request = {{"cpu", instance.units.back()[0]}, {"memory", instance.units.back()[1]}};
    instance.request.pending.push_back({.id = fmt::format("unit-{}", u), .kind = placement::KindIndex::Of(u)});
    instance.request.world.kinds.push_back(std::move(kind));
  }
  return instance;
}

int64_t Optimum(const Instance& instance) {
  constexpr uint32_t kAll = (1U << kUnits) - 1;
  constexpr int64_t kNone = INT64_MAX / 2;
  std::vector<int64_t> machine(kAll + 1, kNone);  // the cheapest that takes the subset
  for (uint32_t set = 1; set <= kAll; ++set) {
    int64_t cpu = 0;
    int64_t memory = 0;
    for (size_t u = 0; u < kUnits; ++u) {
      if ((set >> u & 1) == 0) continue;
      cpu += instance.units[u][0];
      memory += instance.units[u][1];
    }
    for (const Candidate& candidate : instance.request.candidates) {
      if (candidate.allocatable.Get("cpu") < cpu || candidate.allocatable.Get("memory") < memory) continue;
      machine[set] = std::min(machine[set], candidate.price.micros);
    }
  }
  std::vector<int64_t> least(kAll + 1, kNone);
  least[0] = 0;
  for (uint32_t set = 1; set <= kAll; ++set) {
    // The machine of the lowest unit holds some subset of the others.
    const uint32_t lowest = set & -set;
    for (uint32_t part = set; part != 0; part = (part - 1) & set) {
      if ((part & lowest) != 0) least[set] = std::min(least[set], machine[part] + least[set ^ part]);
    }
  }
  return least[kAll];
}

TEST(PlanOptimum, TheGapIsSmallOnSmallRequests) {
  double sum = 0;
  double worst = 0;
  int exact = 0;
  for (int i = 0; i < kInstances; ++i) {
    const Instance instance = MakeInstance(static_cast<uint64_t>(i));
    const auto plan = MakePlan(instance.request);
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(plan->unplaced.empty());
    const int64_t optimum = Optimum(instance);
    ASSERT_GE(plan->cost_machines.micros, optimum) << "instance " << i << ": cheaper than possible";
    ASSERT_LE(plan->lower_bound.micros, optimum) << "instance " << i;
    const double ratio = static_cast<double>(plan->cost_machines.micros) / static_cast<double>(optimum);
    sum += ratio;
    worst = std::max(worst, ratio);
    exact += plan->cost_machines.micros == optimum ? 1 : 0;
  }
  fmt::print("mean {:.5f} worst {:.5f} optimal {} of {}\n", sum / kInstances, worst, exact, kInstances);
  EXPECT_LE(sum / kInstances, 1.003);
  EXPECT_LE(worst, 1.15);
  EXPECT_GE(exact, kInstances * 95 / 100);
}

}  // namespace
}  // namespace muster::planner
