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
constexpr uint64_t kFewestSteps = 60'000;
constexpr int kForbidRounds = 4;
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

Packing BestOfVariants(const Solution& solution, const std::vector<Lot>& lots, bool exclusive) {
  std::optional<Packing> best;
  for (const Variant& variant : VariantsOf(exclusive)) {
    Packing packing(*solution.problem, lots);
    Builder builder(packing, *solution.valuer);
    builder.PriceAll(variant.even);
    builder.FillFixed();
    builder.BuyRest(variant.options);
    const auto rank = [](const Packing& p) { return std::pair(p.left_in_all(), p.cost()); };
    if (!best || rank(packing) < rank(*best)) best = std::move(packing);
  }
  return *std::move(best);
}

// Units that were given a cell and found no room there are counted where they are not. They get another cell while
// `again`, and are refused later. Whether there were any.
bool NoteLeft(const Packing& packing, bool again, CellRequest& request) {
  bool any = false;
  for (uint32_t l = 0; l < packing.lots().size(); ++l) {
    const Lot& lot = packing.lots()[l];
    if (lot.cell == kAnyCell || packing.left(l) == 0) continue;
    any = true;
    if (again) {
      request.forbidden.emplace(lot.kind, lot.cell);
    } else {
      request.counts[lot.kind] -= packing.left(l);
    }
  }
  return any;
}

}  // namespace

uint64_t StepsFor(Effort effort, size_t units) {
  if (effort == Effort::kFast) return std::max(kFewestSteps, kFastStepsPerUnit * units);
  return std::clamp(kBestStepsPerUnit * units, 10 * kFewestSteps, kMostBestSteps);
}

Solution Solve(const Request& request, const std::vector<const placement::Unit*>& units) {
  Solution solution;
  solution.problem = std::make_unique<const Problem>(Compiler(request, units).Run());
  solution.valuer = std::make_unique<const Valuer>(*solution.problem);
  const Values values = solution.valuer->OfAll();
  solution.bound = static_cast<int64_t>(values.bound);
  CellRequest request_for_cells{.worth = values.worth, .level = solution.valuer->LevelsOf(values)};
  for (const DenseKind& kind : solution.problem->kinds) request_for_cells.counts.push_back(kind.count());
  for (int round = 0;; ++round) {
    CellAssignment cells = AssignCells(*solution.problem, request_for_cells);
    solution.refused = std::move(cells.refused);
    solution.packing = BestOfVariants(solution, cells.lots, values.exclusive);
    if (!NoteLeft(*solution.packing, round < kForbidRounds, request_for_cells)) break;
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
