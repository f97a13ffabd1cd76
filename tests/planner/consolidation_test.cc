// What holds for every consolidation, on random clusters: the checker judges every wave, inside MakeConsolidation.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "planner/consolidate.h"
#include "planner/random_cluster.h"

namespace muster::planner {
namespace {

TEST(ConsolidationProperties, HoldOnRandomClusters) {
  std::map<std::string, int64_t> reached;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    const Request request = RandomCluster(seed);
    const auto result = MakeConsolidation(request);
    ASSERT_TRUE(result) << "seed " << seed << ": " << result.error().message();
    ASSERT_EQ(*MakeConsolidation(request), *result) << "seed " << seed;
    const bool any = !result->waves.empty();
    ASSERT_EQ(any, result->saved.micros > 0) << "seed " << seed;
    reached["several waves"] += result->waves.size() > 1 ? 1 : 0;
    for (const Stay& stay : result->cannot_go) {
      reached["a rule that does not hold"] += stay.because.contains("does not hold now") ? 1 : 0;
      reached["an excluded unit"] += stay.because.contains("is excluded from where it is") ? 1 : 0;
      reached["a domain of minDomains"] += stay.because.contains("a spread asks for") ? 1 : 0;
      reached["a unit that must share"] += stay.because.contains("must share its node") ? 1 : 0;
    }
    std::map<std::string, const placement::Kind*> kind_of;
    for (const placement::PlacedUnit& placed : request.world.placed) {
      kind_of[placed.unit.id] = &request.world.kinds[placed.unit.kind.value()];
    }
    for (const Wave& wave : result->waves) {
      reached["nodes that go"] += static_cast<int64_t>(wave.nodes.size());
      reached["machines"] += static_cast<int64_t>(wave.machines.size());
      for (const Eviction& eviction : wave.evictions) {
        const placement::Kind& kind = *kind_of[eviction.unit];
        ++reached["moves"];
        reached["moves of spread units"] += kind.spread.empty() ? 0 : 1;
        reached["moves of excluding units"] += kind.exclude.empty() ? 0 : 1;
        reached["moves of co-located units"] += kind.colocate.empty() ? 0 : 1;
      }
    }
  }
  for (const char* what :
       {"several waves", "a rule that does not hold", "a unit that must share", "nodes that go", "machines",
        "moves of spread units", "moves of excluding units", "moves of co-located units"}) {
    EXPECT_GE(reached[what], 50) << what;
  }
  EXPECT_GE(reached["an excluded unit"], 3);
  EXPECT_GE(reached["a domain of minDomains"], 3);
  EXPECT_GE(reached["moves"], 1'000);
}

class ConsolidationBug : public testing::TestWithParam<faults::Row> {};

TEST_P(ConsolidationBug, IsFound) {
  const faults::ScopedMutant bug(GetParam().name);
  for (uint64_t seed = GetParam().from; seed < GetParam().from + 2'000; ++seed) {
    const auto result = MakeConsolidation(RandomCluster(seed));
    if (result) continue;
    EXPECT_NE(result.error().message().find(GetParam().says), std::string::npos)
        << "seed " << seed << ": " << result.error().message();
    return;
  }
  FAIL() << "not found in 2,000 clusters";
}

INSTANTIATE_TEST_SUITE_P(Planner, ConsolidationBug,
                         testing::ValuesIn(faults::RowsOf("ConsolidationBug.IsFound", "planner", "bug")),
                         faults::TestNameOf);

}  // namespace
}  // namespace muster::planner
