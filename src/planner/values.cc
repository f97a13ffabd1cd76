#include "planner/values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "planner/cover.h"
#include "planner/domains.h"

namespace muster::planner {
namespace {

// Rows of the cover besides the dimensions. More would cost more than they tell.
constexpr size_t kMostPlaces = 12;

struct Places {
  uint32_t selector = 0;
  int64_t units = 0;
  int64_t most = 1;

  int64_t nodes() const { return (units + most - 1) / most; }
};

// The selectors that force the most nodes.
std::vector<Places> ExclusivePlaces(const Problem& problem) {
  std::map<uint32_t, Places> by_selector;
  for (const DenseKind& kind : problem.kinds) {
    for (const Limit& limit : kind.limits) {
      if (limit.most < 1 || !TakesPlace(kind, limit.selector)) continue;
      Places& places = by_selector[limit.selector];
      places.selector = limit.selector;
      places.units += kind.count();
      places.most = std::max(places.most, limit.most);
    }
  }
  std::vector<Places> list;
  for (const auto& [unused, places] : by_selector) {
    if (places.nodes() > 1) list.push_back(places);
  }
  std::ranges::stable_sort(list, std::greater<>(), &Places::nodes);
  if (list.size() > kMostPlaces) list.resize(kMostPlaces);
  return list;
}

CoverProblem CoverOf(const Problem& problem, const std::vector<Places>& places, const std::vector<bool>& placeable) {
  CoverProblem cover{.rows = problem.dims() + places.size()};
  cover.demand.assign(cover.rows, 0);
  for (size_t k = 0; k < problem.kinds.size(); ++k) {
    if (!placeable[k]) continue;
    const DenseKind& kind = problem.kinds[k];
    const std::vector<int64_t>& request = problem.requests[kind.request];
    const auto count = static_cast<double>(kind.count());
    for (size_t d = 0; d < problem.dims(); ++d) cover.demand[d] += static_cast<double>(request[d]) * count;
    for (size_t p = 0; p < places.size(); ++p) {
      if (TakesPlace(kind, places[p].selector)) cover.demand[problem.dims() + p] += count;
    }
  }
  // What is there already covers first, and costs nothing.
  for (const FixedNode& fixed : problem.fixed) {
    for (size_t d = 0; d < problem.dims(); ++d) cover.demand[d] -= static_cast<double>(fixed.free[d]);
    for (size_t p = 0; p < places.size(); ++p) {
      cover.demand[problem.dims() + p] -= static_cast<double>(places[p].most);
    }
  }
  for (double& demand : cover.demand) demand = std::max(demand, 0.0);
  for (uint32_t k = 0; k < problem.choices.size(); ++k) {
    cover.prices.push_back(static_cast<double>(problem.choices[k].price));
    for (const int64_t amount : problem.CapacityOf(k)) cover.capacities.push_back(static_cast<double>(amount));
    for (const Places& place : places) cover.capacities.push_back(static_cast<double>(place.most));
  }
  return cover;
}

// A worth that is above zero even where the cover sees no shortage: a share of the cheapest price by the largest share
// of any choice that one unit takes.
double LeastWorth(const Problem& problem, const DenseKind& kind, const std::vector<int64_t>& largest, double cheapest) {
  const std::vector<int64_t>& request = problem.requests[kind.request];
  double share = 1e-6;
  for (size_t d = 0; d < request.size(); ++d) {
    if (largest[d] > 0) share = std::max(share, static_cast<double>(request[d]) / static_cast<double>(largest[d]));
  }
  return 1e-3 * share * std::max(cheapest, 1.0);
}

}  // namespace

bool TakesPlace(const DenseKind& kind, uint32_t selector) {
  return std::ranges::any_of(kind.limits, [&](const Limit& limit) { return limit.selector == selector; }) &&
         std::ranges::binary_search(kind.matches, selector);
}

Values ValuesOf(const Problem& problem) {
  std::vector<bool> placeable;
  for (const DenseKind& kind : problem.kinds) {
    placeable.push_back(std::ranges::count(CellsThatFit(problem, kind), true) > 0);
  }
  const std::vector<Places> places = ExclusivePlaces(problem);
  const CoverAnswer answer = SolveCover(CoverOf(problem, places, placeable));
  Values values{.bound = answer.bound};
  values.grain.assign(answer.values.begin(), answer.values.begin() + static_cast<ptrdiff_t>(problem.dims()));
  for (size_t p = places.size(); p-- > 0;) {  // the one that forces the most nodes is first
    if (answer.values[problem.dims() + p] <= 0) continue;
    values.exclusive = true;
    values.selector = places[p].selector;
    values.most = places[p].most;
  }
  std::vector<int64_t> largest(problem.dims(), 0);
  double cheapest = HUGE_VAL;
  for (uint32_t k = 0; k < problem.choices.size(); ++k) {
    cheapest = std::min(cheapest, static_cast<double>(problem.choices[k].price));
    for (size_t d = 0; d < largest.size(); ++d) largest[d] = std::max(largest[d], problem.CapacityOf(k)[d]);
  }
  if (problem.choices.empty()) cheapest = 1;
  for (const DenseKind& kind : problem.kinds) {
    const std::vector<int64_t>& request = problem.requests[kind.request];
    double worth = 0;
    for (size_t d = 0; d < request.size(); ++d) worth += values.grain[d] * static_cast<double>(request[d]);
    for (size_t p = 0; p < places.size(); ++p) {
      if (TakesPlace(kind, places[p].selector)) worth += answer.values[problem.dims() + p];
    }
    values.worth.push_back(std::max(worth, LeastWorth(problem, kind, largest, cheapest)));
  }
  for (const Cell& cell : problem.cells) {
    double level = HUGE_VAL;
    for (uint32_t k = cell.first_choice; k < cell.end_choice; ++k) {
      double worth = 0;
      for (size_t d = 0; d < problem.dims(); ++d) {
        worth += values.grain[d] * static_cast<double>(problem.CapacityOf(k)[d]);
      }
      if (worth > 0) level = std::min(level, static_cast<double>(problem.choices[k].price) / worth);
    }
    values.level.push_back(level);
  }
  return values;
}

}  // namespace muster::planner
