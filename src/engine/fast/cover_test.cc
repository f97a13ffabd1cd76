#include "engine/fast/cover.h"

#include <gtest/gtest.h>

#include <array>

#include "base/rng.h"

namespace muster::engine::fast {
namespace {

constexpr size_t kDims = 2;

Amounts Of(int64_t cpu, int64_t memory) {
  Amounts amounts;
  amounts[0] = cpu;
  amounts[1] = memory;
  return amounts;
}

// Kinds in pool order, each a stretch of its own.
struct TestPool {
  std::vector<Amounts> each;
  std::vector<PoolKind> kinds;
  std::vector<Stretch> stretches;

  void Add(const Amounts& amounts, int64_t micros, int64_t available) {
    each.push_back(amounts);
    kinds.push_back({.shape = ShapeId::Of(kinds.size()), .cost = {.micros = micros}, .available = available});
  }
  CoverPool View(bool idle, bool mixed = false) {
    stretches.clear();
    int64_t position = 0;
    for (uint32_t k = 0; k < kinds.size(); ++k) {
      kinds[k].each = &each[k];
      stretches.push_back({.kind = k, .ordinal = 0, .position = position, .count = kinds[k].available});
      position += kinds[k].available;
    }
    return {.kinds = kinds, .stretches = stretches, .mixed = mixed, .idle = idle, .labels = [](uint32_t k, int64_t n) {
              std::vector<uint64_t> labels;
              for (int64_t i = 0; i < n; ++i) labels.push_back(uint64_t{k} * 1000 + static_cast<uint64_t>(i));
              return labels;
            }};
  }
};

Wide CostOf(const TestPool& pool, const Counts& counts) {
  Wide cost = 0;
  for (const auto& [k, count] : counts) cost += Wide{pool.kinds[k].cost.micros} * count;
  return cost;
}

Amounts Rest(const TestPool& pool, const Counts& counts, Amounts deficit) {
  for (const auto& [k, count] : counts) Subtract(deficit, pool.each[k], count, kDims);
  return deficit;
}

TEST(Cover, TakesTheOneLargeMachineThatIsCheaperThanMany) {
  TestPool pool;
  pool.Add(Of(1, 1), 10, 100);
  pool.Add(Of(8, 8), 50, 1);
  EXPECT_EQ(BestCover(pool.View(true), Of(8, 8), kDims), (Counts{{1, 1}}));
  EXPECT_EQ(BestCover(pool.View(true), Of(4, 4), kDims), (Counts{{0, 4}}));
  EXPECT_TRUE(BestCover(pool.View(true), Of(0, 0), kDims).empty());
}

TEST(Cover, OneKindNeedsNoSearch) {
  TestPool pool;
  pool.Add(Of(2, 0), 10, 3);
  pool.Add(Of(0, 1), 1, 0);  // none left
  pool.View(true);
  using One = std::pair<uint32_t, int64_t>;
  EXPECT_EQ(CoverOfOneKind(pool.kinds, false, true, Of(5, 7), kDims), One(0, 3));
  EXPECT_EQ(CoverOfOneKind(pool.kinds, false, true, Of(2, 0), kDims), One(0, 1));
  EXPECT_EQ(CoverOfOneKind(pool.kinds, false, true, Of(0, 7), kDims), One(0, 0));
}

TEST(Cover, PrunesAllPoolsTogetherDearestFirst) {
  TestPool idle;
  idle.Add(Of(1, 0), 10, 4);
  TestPool speculative;
  speculative.Add(Of(4, 0), 20, 1);
  std::array covers{PoolCover{.pool = idle.View(true), .counts = {{0, 4}}},
                    PoolCover{.pool = speculative.View(false), .counts = {{0, 1}}}};
  PruneTogether(covers, Of(4, 0), kDims);
  EXPECT_EQ(covers[0].counts, (Counts{{0, 4}}));
  EXPECT_TRUE(covers[1].counts.empty());

  covers[1].counts = {{0, 1}};
  PruneTogether(covers, Of(6, 0), kDims);
  EXPECT_EQ(covers[0].counts, (Counts{{0, 2}}));
  EXPECT_EQ(covers[1].counts, (Counts{{0, 1}}));
}

// Whatever the pool: what can be covered is, no machine is redundant, stretches that are the kinds change nothing, and
// taking the pool in order is never cheaper.
TEST(Cover, HoldsForRandomPools) {
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    TestPool pool;
    int64_t micros = 0;
    Amounts all;
    for (uint64_t k = 0; k < 1 + rng.Below(5); ++k) {
      micros += 1 + static_cast<int64_t>(rng.Below(20));
      const auto amount = [&] { return static_cast<int64_t>(rng.Below(6)); };
      pool.Add(Of(amount(), amount()), micros, amount());
      for (size_t d = 0; d < kDims; ++d) all[d] += pool.each.back()[d] * pool.kinds.back().available;
    }
    const Amounts deficit = Of(static_cast<int64_t>(rng.Below(15)), static_cast<int64_t>(rng.Below(15)));
    const bool idle = rng.Below(2) == 0;
    const Counts cover = BestCover(pool.View(idle), deficit, kDims);
    const Amounts rest = Rest(pool, cover, deficit);
    for (size_t d = 0; d < kDims; ++d) EXPECT_EQ(rest[d], std::max<int64_t>(deficit[d] - all[d], 0)) << "pool " << i;
    for (size_t c = 0; c < cover.size(); ++c) {
      Counts less = cover;
      EXPECT_LE(less[c].second, pool.kinds[less[c].first].available);
      --less[c].second;
      EXPECT_NE(Rest(pool, less, deficit), rest) << "pool " << i;
    }
    EXPECT_EQ(BestCover(pool.View(idle, true), deficit, kDims), cover) << "pool " << i;
    Counts in_order;
    Amounts shortage = deficit;
    for (uint32_t k = 0; k < pool.kinds.size(); ++k) {
      const int64_t count = std::min(pool.kinds[k].available, UsefulCount(pool.each[k], shortage, kDims));
      if (count > 0) in_order.emplace_back(k, count);
      Subtract(shortage, pool.each[k], count, kDims);
    }
    EXPECT_LE(CostOf(pool, cover), CostOf(pool, in_order)) << "pool " << i;
  }
}

TEST(Cover, RedundantIsWhatCanGoWithoutLoss) {
  Totals taken{};
  Add(taken, Of(2, 1), 5, kDims);
  EXPECT_EQ(Redundant(taken, Of(2, 1), Of(6, 0), 5, kDims), 2);
  EXPECT_EQ(Redundant(taken, Of(2, 1), Of(6, 5), 5, kDims), 0);
  EXPECT_EQ(Redundant(taken, Of(0, 1), Of(10, 0), 5, kDims), 5);
  EXPECT_EQ(Redundant(taken, Of(2, 1), Of(12, 0), 5, kDims), 0);
}

}  // namespace
}  // namespace muster::engine::fast
