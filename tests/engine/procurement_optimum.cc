#include <Cbc_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/check.h"
#include "engine/procurement.h"

namespace muster::engine {
namespace {

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

}  // namespace

int64_t ExactOptimum(const Procurement& procurement) {
  const auto dimensions = static_cast<int>(procurement.demand.size());
  const auto classes = static_cast<int>(procurement.classes.size());
  // One column a class, one row a dimension, dense; prices in whole steps, so that every cost is an integer.
  std::vector<CoinBigIndex> start{0};
  std::vector<int> row;
  std::vector<double> units;
  std::vector<double> price;
  std::vector<double> count;
  for (const MachineClass& c : procurement.classes) {
    for (int d = 0; d < dimensions; ++d) {
      row.push_back(d);
      units.push_back(static_cast<double>(c.units[static_cast<size_t>(d)]));
    }
    start.push_back(static_cast<CoinBigIndex>(row.size()));
    price.push_back(static_cast<double>(c.price_micros / kPriceStepMicros));
    count.push_back(static_cast<double>(c.count));
  }
  const std::vector<double> demand(procurement.demand.begin(), procurement.demand.end());
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  Cbc_setLogLevel(model.get(), 0);
  Cbc_loadProblem(model.get(), classes, dimensions, start.data(), row.data(), units.data(), nullptr, count.data(),
                  price.data(), demand.data(), nullptr);
  for (int k = 0; k < classes; ++k) Cbc_setInteger(model.get(), k);
  // Plain branch and bound: with the probing cuts of cbc 2.10 on integers beyond 0 and 1, "proven optimal" may be
  // wrong.
  for (const char* shortcut : {"cuts", "preprocess", "heuristics"}) Cbc_setParameter(model.get(), shortcut, "off");
  Cbc_setAllowableGap(model.get(), 0);
  Cbc_solve(model.get());
  MUSTER_CHECK(Cbc_isProvenOptimal(model.get()) != 0);
  // The cost of the solver's counts, in integers: its own objective is a double.
  int64_t cost = 0;
  std::vector<int64_t> taken(procurement.demand.size(), 0);
  for (int k = 0; k < classes; ++k) {
    const MachineClass& c = procurement.classes[static_cast<size_t>(k)];
    const int64_t bought = std::llround(Cbc_getColSolution(model.get())[k]);
    MUSTER_CHECK(bought >= 0 && bought <= c.count);
    cost += bought * c.price_micros;
    for (size_t d = 0; d < taken.size(); ++d) taken[d] += bought * c.units[d];
  }
  for (size_t d = 0; d < taken.size(); ++d) MUSTER_CHECK(taken[d] >= procurement.demand[d]);
  return cost;
}

int64_t TabulatedOptimum(const Procurement& procurement) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max() / 2;
  // Amounts of demand in mixed radix: position 0 is nothing, the last one all of it.
  std::vector<int64_t> stride;
  int64_t positions = 1;
  for (const int64_t units : procurement.demand) {
    stride.push_back(positions);
    positions *= units + 1;
  }
  std::vector<int64_t> least(static_cast<size_t>(positions), kNone);
  least[0] = 0;
  const auto without = [&](int64_t position, const MachineClass& c, int64_t machines) {
    int64_t rest = 0;
    for (size_t d = 0; d < stride.size(); ++d) {
      const int64_t units = position / stride[d] % (procurement.demand[d] + 1);
      rest += std::max<int64_t>(units - machines * c.units[d], 0) * stride[d];
    }
    return static_cast<size_t>(rest);
  };
  for (const MachineClass& c : procurement.classes) {
    // Lots of 1, 2, 4, ... make every count up to the class's own; from the top down, each lot is used once.
    int64_t lot = 1;
    for (int64_t left = c.count; left > 0; left -= lot, lot *= 2) {
      lot = std::min(lot, left);
      for (int64_t position = positions - 1; position > 0; --position) {
        int64_t& cost = least[static_cast<size_t>(position)];
        cost = std::min(cost, least[without(position, c, lot)] + lot * c.price_micros);
      }
    }
  }
  MUSTER_CHECK(least.back() < kNone);
  return least.back();
}

}  // namespace muster::engine
