#include "host/pool.h"

#include <gtest/gtest.h>

#include <barrier>
#include <numeric>
#include <set>
#include <stdexcept>

namespace muster::host {
namespace {

TEST(Pool, EveryIndexOnceForEveryWidthAndSize) {
  for (const size_t width : {1u, 2u, 3u, 8u}) {
    Pool pool(width);
    EXPECT_EQ(pool.width(), width);
    for (const size_t n : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<int> calls(n, 0);  // unguarded on purpose: the sanitizer sees a double call or a missing barrier
      pool.For(n, [&](size_t i) { ++calls[i]; });
      EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), static_cast<int>(n));
      EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), static_cast<std::ptrdiff_t>(n));
    }
  }
}

TEST(Pool, AllThreadsWorkAtOnce) {
  Pool pool(4);
  std::barrier meet(4);  // passes only when four calls run at the same time
  std::mutex mu;
  std::set<std::thread::id> threads;
  pool.For(4, [&](size_t) {
    meet.arrive_and_wait();
    const std::lock_guard lock(mu);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

TEST(Pool, WhatOneForWroteTheNextReads) {
  Pool pool(3);
  std::vector<uint64_t> values(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.For(values.size(), [&](size_t i) { ++values[i]; });
  }
  EXPECT_EQ(values, std::vector<uint64_t>(64, 2000));
}

TEST(PoolDeathTest, MisuseEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Pool(0), "at least the calling thread");
  EXPECT_DEATH(
      {
        Pool pool(1);
        pool.For(1, [&](size_t) { pool.For(1, [](size_t) {}); });
      },
      "calls to Pool::For overlap");
  EXPECT_DEATH(Pool(2).For(1, [](size_t) { throw std::runtime_error("lost"); }), "");
}

}  // namespace
}  // namespace muster::host
