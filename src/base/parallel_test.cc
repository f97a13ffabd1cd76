#include "base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster {
namespace {

std::vector<size_t> Order(Parallel& parallel, size_t n) {
  std::vector<size_t> order;
  parallel.For(n, [&](size_t i) { order.push_back(i); });
  return order;
}

TEST(Parallel, InlineCallsInOrder) {
  InlineParallel parallel;
  EXPECT_EQ(Order(parallel, 4), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(Order(parallel, 0), std::vector<size_t>{});
  EXPECT_EQ(parallel.width(), 1u);
}

TEST(Parallel, ShuffledCallsEachIndexOnce) {
  ShuffledParallel parallel(5, 8);
  EXPECT_EQ(parallel.width(), 8u);
  std::set<std::vector<size_t>> orders;
  for (int round = 0; round < 20; ++round) {
    std::vector<size_t> order = Order(parallel, 100);
    orders.insert(order);
    std::ranges::sort(order);
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(order[i], i);
    ASSERT_EQ(order.size(), 100u);
  }
  EXPECT_EQ(orders.size(), 20u);
  EXPECT_EQ(Order(parallel, 0), std::vector<size_t>{});
  EXPECT_EQ(Order(parallel, 1), std::vector<size_t>{0});
}

TEST(Parallel, ShuffledOrderIsTheSeeds) {
  ShuffledParallel one(5, 8);
  ShuffledParallel same(5, 2);
  ShuffledParallel other(6, 8);
  const std::vector<size_t> order = Order(one, 50);
  EXPECT_EQ(Order(same, 50), order);
  EXPECT_NE(Order(other, 50), order);
}

}  // namespace
}  // namespace muster
