#include "planner/values.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/probe.h"
#include "planner/domains.h"

namespace muster::planner {
namespace {

// Rows of the cover besides the dimensions. More would cost more than they tell.
constexpr size_t kMostPlaces = 8;

}  // namespace

bool TakesPlace(const DenseKind& kind, uint32_t selector) {
  return std::ranges::any_of(kind.limits, [&](const Limit& limit) { return limit.selector == selector; }) &&
         std::ranges::binary_search(kind.matches, selector);
}

Valuer::Valuer(const Problem& problem) : problem_(problem), largest_(problem.dims(), 0) {
  for (const DenseKind& kind : problem.kinds) {
    placeable_.push_back(std::ranges::count(CellsThatFit(problem, kind), true) > 0);
  }
  AddPlaces();
  columns_.rows = problem.dims() + places_.size();
  for (uint32_t k = 0; k < problem.choices.size(); ++k) {
    const auto capacity = problem.CapacityOf(k);
    columns_.prices.push_back(static_cast<double>(problem.choices[k].price));
    for (size_t d = 0; d < capacity.size(); ++d) {
      columns_.capacities.push_back(static_cast<double>(capacity[d]));
      largest_[d] = std::max(largest_[d], capacity[d]);
    }
    for (const Places& place : places_) columns_.capacities.push_back(static_cast<double>(place.most));
  }
  for (size_t k = 0; k < columns_.prices.size(); ++k) {
    cheapest_ = k == 0 ? columns_.prices[k] : std::min(cheapest_, columns_.prices[k]);
  }
}

void Valuer::AddPlaces() {
  std::map<uint32_t, Places> by_selector;
  std::map<uint32_t, int64_t> units;
  for (uint32_t k = 0; k < problem_.kinds.size(); ++k) {
    const DenseKind& kind = problem_.kinds[k];
    for (const Limit& limit : kind.limits) {
      if (limit.most < 1 || !TakesPlace(kind, limit.selector)) continue;
      Places& places = by_selector[limit.selector];
      places.selector = limit.selector;
      places.most = std::max(places.most, limit.most);
      if (!places.kinds.empty() && places.kinds.back() == k) continue;
      places.kinds.push_back(k);
      units[limit.selector] += kind.count();
    }
  }
  for (auto& [selector, places] : by_selector) {
    if (units[selector] > places.most) places_.push_back(std::move(places));
  }
  std::ranges::stable_sort(places_, std::greater<>(),
                           [&](const Places& places) { return units[places.selector] / places.most; });
  if (places_.size() > kMostPlaces) places_.resize(kMostPlaces);
}

// A worth that is above zero even where the cover sees no shortage: a share of the cheapest price, by the largest share
// of any choice that one unit takes.
double Valuer::LeastWorth(const DenseKind& kind) const {
  const std::vector<int64_t>& request = problem_.requests[kind.request];
  double share = 1e-6;
  for (size_t d = 0; d < request.size(); ++d) {
    if (largest_[d] > 0) share = std::max(share, static_cast<double>(request[d]) / static_cast<double>(largest_[d]));
  }
  return 1e-3 * share * std::max(cheapest_, 1.0);
}

// How short a resource is: what a cover of it alone would cost, as a share of the bound. To the eighth power, so that
// only those near the bound count.
void Valuer::Even(const CoverProblem& cover, double bound, double even, std::vector<double>& grain) const {
  std::vector<double> shortage(grain.size(), 0);
  double sum = 0;
  for (size_t d = 0; d < grain.size(); ++d) {
    double least = HUGE_VAL;
    for (size_t k = 0; k < cover.prices.size(); ++k) {
      const double capacity = cover.capacities[k * cover.rows + d];
      if (capacity > 0) least = std::min(least, cover.prices[k] / capacity);
    }
    if (std::isinf(least) || bound <= 0 || cover.demand[d] <= 0) continue;
    const double share = std::min(least * cover.demand[d] / bound, 1.0);
    const double squared = share * share;
    shortage[d] = squared * squared * squared * squared;
    sum += shortage[d];
  }
  if (sum <= 0) return;
  for (size_t d = 0; d < grain.size(); ++d) {
    const double own = cover.demand[d] > 0 ? shortage[d] / sum * bound / cover.demand[d] : 0;
    grain[d] = (1 - even) * grain[d] + even * own;
  }
}

Values Valuer::Of(const std::vector<int64_t>& counts, bool with_fixed, double even) const {
  const size_t dims = problem_.dims();
  CoverProblem cover = columns_;
  cover.demand.assign(cover.rows, 0);
  for (size_t k = 0; k < problem_.kinds.size(); ++k) {
    if (!placeable_[k] || counts[k] == 0) continue;
    const std::vector<int64_t>& request = problem_.requests[problem_.kinds[k].request];
    for (size_t d = 0; d < dims; ++d) {
      cover.demand[d] += static_cast<double>(request[d]) * static_cast<double>(counts[k]);
    }
  }
  for (size_t p = 0; p < places_.size(); ++p) {
    for (const uint32_t k : places_[p].kinds) cover.demand[dims + p] += static_cast<double>(counts[k]);
  }
  for (const FixedNode& fixed : problem_.fixed) {
    if (!with_fixed) break;
    for (size_t d = 0; d < dims; ++d) cover.demand[d] -= static_cast<double>(fixed.free[d]);
    for (size_t p = 0; p < places_.size(); ++p) cover.demand[dims + p] -= static_cast<double>(places_[p].most);
  }
  for (double& demand : cover.demand) demand = std::max(demand, 0.0);
  const CoverAnswer answer = SolveCover(cover);
  Values values{.bound = answer.bound * (MUTANT("planner.bound_too_high") ? 1.5 : 1)};
  values.grain.assign(answer.values.begin(), answer.values.begin() + static_cast<ptrdiff_t>(dims));
  if (even > 0) Even(cover, answer.bound, even, values.grain);
  for (const DenseKind& kind : problem_.kinds) {
    const std::vector<int64_t>& request = problem_.requests[kind.request];
    double worth = 0;
    for (size_t d = 0; d < dims; ++d) worth += values.grain[d] * static_cast<double>(request[d]);
    values.worth.push_back(std::max(worth, LeastWorth(kind)));
  }
  for (size_t p = places_.size(); p-- > 0;) {  // the one that forces the most nodes is first
    const double place = answer.values[dims + p];
    if (place <= 0) continue;
    for (const uint32_t k : places_[p].kinds) values.worth[k] += place;
    values.exclusive = true;
    values.selector = places_[p].selector;
    values.most = places_[p].most;
    values.place = place;
  }
  return values;
}

Values Valuer::OfAll(double even) const {
  std::vector<int64_t> counts;
  for (const DenseKind& kind : problem_.kinds) counts.push_back(kind.count());
  return Of(counts, true, even);
}

std::vector<double> Valuer::LevelsOf(const Values& values) const {
  std::vector<double> levels;
  for (const Cell& cell : problem_.cells) {
    double level = HUGE_VAL;
    for (uint32_t k = cell.first_choice; k < cell.end_choice; ++k) {
      double worth = 0;
      for (size_t d = 0; d < problem_.dims(); ++d) {
        worth += values.grain[d] * static_cast<double>(problem_.CapacityOf(k)[d]);
      }
      if (worth > 0) level = std::min(level, static_cast<double>(problem_.choices[k].price) / worth);
    }
    levels.push_back(level);
  }
  return levels;
}

}  // namespace muster::planner
