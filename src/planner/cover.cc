#include "planner/cover.h"

#include <algorithm>
#include <cmath>

namespace muster::planner {
namespace {

constexpr double kTiny = 1e-9;

// The dual as a dictionary: `slack_j = price_j - sum(capacity_ij * value_i)`, maximise `demand * value`. Variables
// below `rows` are values, the others slacks.
class Dictionary {
 public:
  explicit Dictionary(const CoverProblem& problem)
      : rows_(problem.rows), columns_(problem.prices.size()), objective_(problem.demand) {
    for (size_t j = 0; j < columns_; ++j) {
      constant_.push_back(problem.prices[j]);
      basic_.push_back(rows_ + j);
      for (size_t i = 0; i < rows_; ++i) coefficients_.push_back(-problem.capacities[j * rows_ + i]);
    }
    for (size_t i = 0; i < rows_; ++i) free_.push_back(i);
  }

  void Solve() {
    // Largest coefficient first; after many pivots the lowest variable, which cannot cycle.
    const size_t careful_after = 50 * (rows_ + 1);
    for (size_t pivots = 0; pivots < 4 * careful_after; ++pivots) {
      const size_t entering = Entering(pivots >= careful_after);
      if (entering == rows_) return;
      const size_t leaving = Leaving(entering);
      if (leaving == columns_) return;  // a dimension that no choice has: no value can be given to it
      Pivot(leaving, entering);
    }
  }

  std::vector<double> Values() const {
    std::vector<double> values(rows_, 0);
    for (size_t j = 0; j < columns_; ++j) {
      if (basic_[j] < rows_) values[basic_[j]] = std::max(constant_[j], 0.0);
    }
    return values;
  }

 private:
  size_t Entering(bool careful) const {
    size_t best = rows_;
    for (size_t i = 0; i < rows_; ++i) {
      if (objective_[i] <= kTiny) continue;
      if (best == rows_ || (careful ? free_[i] < free_[best] : objective_[i] > objective_[best])) best = i;
    }
    return best;
  }

  size_t Leaving(size_t entering) const {
    size_t best = columns_;
    double least = 0;
    for (size_t j = 0; j < columns_; ++j) {
      const double coefficient = coefficients_[j * rows_ + entering];
      if (coefficient >= -kTiny) continue;
      const double ratio = std::max(constant_[j], 0.0) / -coefficient;
      if (best == columns_ || ratio < least || (ratio == least && basic_[j] < basic_[best])) {
        best = j;
        least = ratio;
      }
    }
    return best;
  }

  void Pivot(size_t leaving, size_t entering) {
    double* row = &coefficients_[leaving * rows_];
    const double by = -row[entering];
    // entering = (constant + the other terms - leaving) / by
    for (size_t i = 0; i < rows_; ++i) row[i] = i == entering ? -1 / by : row[i] / by;
    constant_[leaving] /= by;
    for (size_t j = 0; j < columns_; ++j) {
      if (j == leaving) continue;
      Substitute(&coefficients_[j * rows_], constant_[j], row, constant_[leaving], entering);
    }
    double unused = 0;
    Substitute(objective_.data(), unused, row, constant_[leaving], entering);
    std::swap(basic_[leaving], free_[entering]);
  }

  void Substitute(double* into, double& constant, const double* row, double row_constant, size_t entering) const {
    const double times = into[entering];
    if (times == 0) return;
    into[entering] = 0;
    for (size_t i = 0; i < rows_; ++i) into[i] += times * row[i];
    constant += times * row_constant;
  }

  const size_t rows_;
  const size_t columns_;
  std::vector<double> objective_;
  std::vector<double> constant_;
  std::vector<double> coefficients_;
  std::vector<size_t> basic_;  // variable of each dictionary row
  std::vector<size_t> free_;   // variable of each dictionary column
};

}  // namespace

CoverAnswer SolveCover(const CoverProblem& problem) {
  const size_t rows = problem.rows;
  // Every row to the scale of its largest capacity, so that one tolerance serves bytes and slots.
  std::vector<double> scale(rows, 0);
  for (size_t k = 0; k < problem.capacities.size(); ++k) {
    scale[k % rows] = std::max(scale[k % rows], problem.capacities[k]);
  }
  CoverProblem scaled = problem;
  for (size_t k = 0; k < scaled.capacities.size(); ++k) {
    if (scale[k % rows] > 0) scaled.capacities[k] /= scale[k % rows];
  }
  for (size_t i = 0; i < rows; ++i) scaled.demand[i] = scale[i] > 0 ? scaled.demand[i] / scale[i] : 0;
  Dictionary dictionary(scaled);
  dictionary.Solve();
  CoverAnswer answer{.values = dictionary.Values()};
  // Rounding must not make the bound too high: no column may be worth more than its price.
  double most = 1;
  for (size_t j = 0; j < scaled.prices.size(); ++j) {
    double worth = 0;
    for (size_t i = 0; i < rows; ++i) worth += answer.values[i] * scaled.capacities[j * rows + i];
    if (worth > scaled.prices[j]) most = std::max(most, scaled.prices[j] > 0 ? worth / scaled.prices[j] : HUGE_VAL);
  }
  for (size_t i = 0; i < rows; ++i) {
    answer.values[i] = std::isinf(most) ? 0 : answer.values[i] / most;
    answer.bound += answer.values[i] * scaled.demand[i];
    if (scale[i] > 0) answer.values[i] /= scale[i];
  }
  return answer;
}

}  // namespace muster::planner
