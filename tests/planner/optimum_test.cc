// What the planner pays, against the exact optimum of small requests: the cheapest way to part the units into machines.
// It is found twice, by an exact solver (cbc) over every set of units that some machine takes, and by going through all
// partitions.
#include <Cbc_C_Interface.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
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

constexpr uint32_t kAll = (1U << kUnits) - 1;
constexpr int64_t kNone = INT64_MAX / 2;

// By set of units: the price of the cheapest machine that takes them.
std::vector<int64_t> PriceOfSets(const Instance& instance) {
  std::vector<int64_t> price(kAll + 1, kNone);
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
      price[set] = std::min(price[set], candidate.price.micros);
    }
  }
  return price;
}

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

// Whether one more unit would cost nothing: a set that is never needed.
bool IsWidened(uint32_t set, const std::vector<int64_t>& price) {
  for (uint32_t u = 0; u < kUnits; ++u) {
    const uint32_t wider = set | 1U << u;
    if (wider != set && price[wider] == price[set]) return true;
  }
  return false;
}

// Which sets to buy a machine for, so that every unit is in one: a column for each set, a row for each unit. A unit
// that is in two may be left out of either, for a part of a set costs no more than the set.
int64_t OptimumBySolver(const std::vector<int64_t>& price) {
  std::vector<uint32_t> sets;
  std::vector<CoinBigIndex> start{0};
  std::vector<int> row;
  std::vector<double> cost;
  for (uint32_t set = 1; set <= kAll; ++set) {
    if (price[set] == kNone || IsWidened(set, price)) continue;
    sets.push_back(set);
    for (size_t u = 0; u < kUnits; ++u) {
      if ((set >> u & 1) != 0) row.push_back(static_cast<int>(u));
    }
    start.push_back(static_cast<CoinBigIndex>(row.size()));
    cost.push_back(static_cast<double>(price[set]));
  }
  const auto columns = static_cast<int>(sets.size());
  const std::vector<double> ones(row.size(), 1);
  const std::vector<double> most(sets.size(), 1);
  const std::vector<double> once(kUnits, 1);
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  Cbc_setLogLevel(model.get(), 0);
  Cbc_loadProblem(model.get(), columns, kUnits, start.data(), row.data(), ones.data(), nullptr, most.data(),
                  cost.data(), once.data(), nullptr);
  for (int k = 0; k < columns; ++k) Cbc_setInteger(model.get(), k);
  for (const char* shortcut : {"cuts", "preprocess", "heuristics"}) Cbc_setParameter(model.get(), shortcut, "off");
  Cbc_setAllowableGap(model.get(), 0);
  Cbc_solve(model.get());
  EXPECT_NE(Cbc_isProvenOptimal(model.get()), 0);
  // The cost of the solver's sets, in integers: its own objective is a double.
  int64_t sum = 0;
  uint32_t covered = 0;
  for (int k = 0; k < columns; ++k) {
    if (std::llround(Cbc_getColSolution(model.get())[k]) == 0) continue;
    covered |= sets[static_cast<size_t>(k)];
    sum += price[sets[static_cast<size_t>(k)]];
  }
  EXPECT_EQ(covered, kAll);
  return sum;
}

int64_t OptimumByPartitions(const std::vector<int64_t>& price) {
  std::vector<int64_t> least(kAll + 1, kNone);
  least[0] = 0;
  for (uint32_t set = 1; set <= kAll; ++set) {
    // The machine of the lowest unit holds some subset of the others.
    const uint32_t lowest = set & -set;
    for (uint32_t part = set; part != 0; part = (part - 1) & set) {
      if ((part & lowest) != 0) least[set] = std::min(least[set], price[part] + least[set ^ part]);
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
    const std::vector<int64_t> price = PriceOfSets(instance);
    const int64_t optimum = OptimumBySolver(price);
    ASSERT_EQ(optimum, OptimumByPartitions(price)) << "instance " << i;
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
