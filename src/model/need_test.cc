#include "model/need.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::model {
namespace {

WallTime At(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

Need MakeNeed(std::string cluster, int32_t priority, Resources aggregate, Resources min_unit, WallTime arrival = {},
              std::string group = "") {
  return {.cluster = std::move(cluster),
          .profile = Profile({.priority = priority}),
          .aggregate = std::move(aggregate),
          .min_unit = std::move(min_unit),
          .group = std::move(group),
          .arrival = arrival};
}

TEST(Need, AggregatesEqualKeys) {
  const auto sums = Aggregate({MakeNeed("a", 1, {{"cpu", 10}, {"memory", 5}}, {{"cpu", 2}}, At(30)),
                               MakeNeed("a", 1, {{"cpu", 7}, {"gpu", 1}}, {{"cpu", 1}, {"gpu", 1}}, At(20)),
                               MakeNeed("a", 1, {{"cpu", 1}}, {{"cpu", 1}})});
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->size(), 1u);
  const Need expected = MakeNeed("a", 1, {{"cpu", 18}, {"gpu", 1}, {"memory", 5}}, {{"cpu", 2}, {"gpu", 1}}, At(20));
  EXPECT_EQ(sums->front(), expected);
}

TEST(Need, ArrivalIsTheEarliestKnown) {
  for (const auto& arrivals : {std::pair{At(0), At(9)}, std::pair{At(9), At(0)}, std::pair{At(9), At(10)}}) {
    const auto sums = Aggregate({MakeNeed("a", 1, {}, {}, arrivals.first), MakeNeed("a", 1, {}, {}, arrivals.second)});
    ASSERT_TRUE(sums);
    EXPECT_EQ(sums->front().arrival, At(9));
  }
  EXPECT_EQ(Aggregate({MakeNeed("a", 1, {}, {})})->front().arrival, WallTime());
}

TEST(Need, KeepsDifferentKeysApartInOrder) {
  const std::vector<Need> needs = {MakeNeed("b", 1, {{"cpu", 1}}, {}), MakeNeed("a", 2, {{"cpu", 2}}, {}),
                                   MakeNeed("a", 1, {{"cpu", 3}}, {}, {}, "gang"), MakeNeed("a", 1, {{"cpu", 4}}, {})};
  const auto sums = Aggregate(needs);
  ASSERT_TRUE(sums);
  EXPECT_EQ(*sums, (std::vector{needs[3], needs[2], needs[1], needs[0]}));
  EXPECT_EQ(Aggregate({}), std::vector<Need>{});
}

TEST(Need, OrderOfRequirementsDoesNotSplit) {
  Need one = MakeNeed("a", 1, {{"cpu", 1}}, {});
  Need two = one;
  one.profile = Profile({.requirements = {{"x", Operator::kExists, {}}, {"y", Operator::kIn, {"1", "2"}}}});
  two.profile = Profile({.requirements = {{"y", Operator::kIn, {"2", "1"}}, {"x", Operator::kExists, {}}}});
  const auto sums = Aggregate({one, two});
  ASSERT_TRUE(sums);
  ASSERT_EQ(sums->size(), 1u);
  EXPECT_EQ(sums->front().aggregate, (Resources{{"cpu", 2}}));
}

TEST(Need, OverflowNamesClusterAndDimension) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  const auto sums = Aggregate({MakeNeed("a", 1, {{"memory", max}}, {}), MakeNeed("a", 1, {{"memory", 1}}, {})});
  ASSERT_FALSE(sums);
  EXPECT_EQ(sums.error().code(), Code::kOutOfRange);
  EXPECT_NE(sums.error().message().find("cluster \"a\""), std::string::npos) << sums.error().message();
  EXPECT_NE(sums.error().message().find("memory: "), std::string::npos) << sums.error().message();
}

}  // namespace
}  // namespace muster::model
