#include "base/rng.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace muster {
namespace {

// From a second implementation of xoshiro256** seeded by SplitMix64, itself checked against published vectors.
TEST(Rng, StreamIsThePublishedOne) {
  struct Stream {
    uint64_t seed;
    std::vector<uint64_t> draws;
  };
  for (const auto& [seed, draws] :
       std::vector<Stream>{{0,
                            {11091344671253066420u, 13793997310169335082u, 1900383378846508768u, 7684712102626143532u,
                             13521403990117723737u}},
                           {1,
                            {12966619160104079557u, 9600361134598540522u, 10590380919521690900u, 7218738570589545383u,
                             12860671823995680371u}},
                           {42,
                            {1546998764402558742u, 6990951692964543102u, 12544586762248559009u, 17057574109182124193u,
                             18295552978065317476u}},
                           {UINT64_MAX,
                            {10328197420357168392u, 14156678507024973869u, 9357971779955476126u, 13791585006304312367u,
                             10463432026814718762u}}}) {
    Rng rng(seed);
    for (const uint64_t draw : draws) EXPECT_EQ(rng.Next(), draw) << seed;
  }
}

TEST(Rng, ACopyHasTheSameFuture) {
  Rng rng(7);
  rng.Next();
  Rng copy = rng;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(copy.Next(), rng.Next());
}

TEST(Rng, BelowStaysBelow) {
  Rng rng(7);
  for (const uint64_t bound : {uint64_t{1}, uint64_t{2}, uint64_t{10}, (uint64_t{1} << 63) + 1, UINT64_MAX}) {
    for (int i = 0; i < 1000; ++i) ASSERT_LT(rng.Below(bound), bound);
  }
  EXPECT_DEATH(rng.Below(0), "bound > 0");
}

// Below draws again where a remainder would favour small results: with a bound of 3/4 of the range a plain remainder
// gives the lower third twice as often as each of the others.
TEST(Rng, BelowHasNoBias) {
  Rng rng(11);
  const uint64_t third = uint64_t{1} << 62;
  std::vector<int> hits(3);
  for (int i = 0; i < 30'000; ++i) ++hits[rng.Below(3 * third) / third];
  for (const int count : hits) EXPECT_NEAR(count, 10'000, 400);  // five standard deviations
}

TEST(Rng, BelowIsUniform) {
  Rng rng(13);
  constexpr int kCells = 100;
  constexpr int kDraws = 1'000'000;
  std::vector<int64_t> hits(kCells);
  for (int i = 0; i < kDraws; ++i) ++hits[rng.Below(kCells)];
  int64_t squares = 0;
  for (const int64_t count : hits) squares += (count - kDraws / kCells) * (count - kDraws / kCells);
  // Chi-square with 99 degrees of freedom: mean 99, deviation 14. Between 50 and 170 is five deviations either way.
  EXPECT_GT(squares, int64_t{50} * kDraws / kCells);
  EXPECT_LT(squares, int64_t{170} * kDraws / kCells);
}

TEST(Rng, BetweenIncludesBothEnds) {
  Rng rng(17);
  std::set<int64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(rng.Between(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_EQ(rng.Between(5, 5), 5);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const int64_t draw = rng.Between(INT64_MIN, INT64_MAX);
    negative = negative || draw < 0;
    positive = positive || draw > 0;
  }
  EXPECT_TRUE(negative && positive);
  EXPECT_DEATH(rng.Between(1, 0), "low <= high");
}

TEST(Rng, Chance) {
  Rng rng(19);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += rng.Chance(1, 4);
  EXPECT_NEAR(hits, 25'000, 700);
  EXPECT_FALSE(rng.Chance(0, 1));
  EXPECT_TRUE(rng.Chance(1, 1));
}

TEST(Rng, ForksAreIndependent) {
  Rng rng(23);
  Rng same = rng;
  Rng other = rng;
  Rng first = rng.Fork(1);
  EXPECT_EQ(first.Next(), same.Fork(1).Next());
  EXPECT_NE(rng.Fork(1).Next(), first.Next());
  EXPECT_NE(other.Fork(2).Next(), Rng(23).Fork(1).Next());
}

TEST(Rng, ShuffleGivesEveryOrderEquallyOften) {
  Rng rng(29);
  std::map<std::vector<int>, int> orders;
  for (int i = 0; i < 24'000; ++i) {
    std::vector<int> items = {1, 2, 3, 4};
    rng.Shuffle(std::span(items));
    ++orders[items];
  }
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 160);
}

}  // namespace
}  // namespace muster
