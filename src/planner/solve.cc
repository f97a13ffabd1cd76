#include "planner/solve.h"

#include <algorithm>
#include <array>
#include <utility>

#include "planner/build.h"
#include "planner/compile.h"
#include "planner/search.h"

namespace muster::planner {
namespace {

constexpr uint64_t kFastStepsPerUnit = 60;
constexpr uint64_t kBestStepsPerUnit = 10'000;
constexpr uint64_t kFewestSteps = 20'000;
constexpr uint64_t kMostBestSteps = 200'000'000;

struct Variant {
  BuildOptions options;
  double even = 0;
};

// No one way of building is best for every mixture: the cheapest outcome is taken.
std::vector<Variant> VariantsOf(bool exclusive) {
  if (!exclusive) return {{{.balance = 0.25}, 0}, {{.balance = 0.5}, 0}};
  return {{{.balance = 0.25, .share = 1.2}, 1}};
}

}  // namespace

uint64_t StepsFor(Effort effort, size_t units) {
  if (effort == Effort::kFast) return std::max(kFewestSteps, kFastStepsPerUnit * units);
  return std::clamp(kBestStepsPerUnit * units, 100 * kFewestSteps, kMostBestSteps);
}

Solution Solve(const Request& request, const std::vector<const placement::Unit*>& units) {
  Solution solution;
  solution.problem = std::make_unique<const Problem>(Compiler(request, units).Run());
  solution.valuer = std::make_unique<const Valuer>(*solution.problem);
  const Values values = solution.valuer->OfAll();
  solution.bound = static_cast<int64_t>(values.bound);
  CellAssignment cells = AssignCells(*solution.problem, values.worth, solution.valuer->LevelsOf(values));
  solution.refused = std::move(cells.refused);
  for (const Variant& variant : VariantsOf(values.exclusive)) {
    Packing packing(*solution.problem, cells.lots);
    Builder builder(packing, *solution.valuer);
    builder.PriceAll(variant.even);
    builder.FillFixed();
    builder.BuyRest(variant.options);
    const bool first = !solution.packing;
    const auto better = [](const Packing& a, const Packing& b) {
      return std::pair(a.left_in_all(), a.cost()) < std::pair(b.left_in_all(), b.cost());
    };
    if (first || better(packing, *solution.packing)) solution.packing = std::move(packing);
  }
  solution.greedy_cost = solution.packing->cost();
  Builder builder(*solution.packing, *solution.valuer);
  const uint64_t steps = StepsFor(request.effort, units.size());
  SearchOptions options{.steps = steps, .bound = solution.bound};
  // Where exclusive units make small nodes, whole types decide and the cover tells little: other values, and detours.
  options.vary = values.exclusive;
  options.heat = values.exclusive && request.effort == Effort::kBest ? 1 : 0;
  if (request.go_on) options.go_on = [&](uint64_t done) { return request.go_on(done, steps); };
  const SearchReport report = Search(*solution.packing, builder, options);
  solution.steps = report.steps;
  solution.stopped = report.stopped;
  return solution;
}

}  // namespace muster::planner
