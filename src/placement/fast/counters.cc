#include "placement/fast/counters.h"

#include "base/probe.h"

namespace muster::placement::fast {

void Counter::Add(Position row, int64_t amount) {
  if (!eligible.Test(row)) return;
  const uint32_t value = column->value[row];
  total += amount;
  const int64_t before = count[value];
  count[value] += amount;
  if (before < 0 || count[value] < 0) return;
  const auto from = static_cast<size_t>(before);
  const auto to = static_cast<size_t>(count[value]);
  if (to >= domains.size()) domains.resize(to + 1);
  --domains[from];
  ++domains[to];
  if (MUTANT("placement.least_stays") && amount > 0) return;
  if (count[value] < least) {
    least = count[value];
  } else {
    while (values > 0 && domains[static_cast<size_t>(least)] == 0) ++least;
  }
}

}  // namespace muster::placement::fast
