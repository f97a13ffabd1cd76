// Planted bugs of the fast placer: the comparison with the reference finds each of them, and says what its row in
// tests/faults/placement.txt demands. Each is searched for in a process of its own, from the world that its row names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "host/search_apart_for_test.h"
#include "placement/compare.h"

namespace muster::placement {
namespace {

constexpr uint64_t kWorlds = 4'000;

// Worlds by number: of ten, seven random ones, a crowded one, a wide one and a history.
std::string RunWorld(uint64_t number, Reach& reach) {
  if (number % 10 == 7) return CompareCrowded(5'000'000 + number, reach);
  if (number % 10 == 8) return CompareWide(3'000'000 + number, reach);
  if (number % 10 == 9) return CompareHistory(2'000'000 + number, 20, reach);
  return CompareScene(number, reach);
}

// The first difference in the worlds from `first` on; "" if there is none. `progress`, if given, is a file that gets a
// dot for every world begun.
std::string Search(uint64_t first, int progress = -1) {
  Reach reach;
  for (uint64_t number = first; number < kWorlds; ++number) {
    EXPECT_TRUE(progress < 0 || write(progress, ".", 1) == 1);
    const std::string difference = RunWorld(number, reach);
    if (!difference.empty()) return difference;
  }
  return "";
}

class PlacerMutant : public testing::TestWithParam<faults::Row> {};

TEST_P(PlacerMutant, IsFound) { faults::ExpectFoundApart(GetParam(), Search); }

INSTANTIATE_TEST_SUITE_P(FastPlacer, PlacerMutant,
                         testing::ValuesIn(faults::RowsOf("PlacerMutant.IsFound", "placement", "bug")),
                         faults::TestNameOf);

TEST(PlacerMutants, NothingIsFoundWithoutThem) { EXPECT_EQ(Search(kWorlds - 200), ""); }

}  // namespace
}  // namespace muster::placement
