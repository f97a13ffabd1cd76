// A mirror on each of the three stores, while many write and the history is compacted under it.
#include "store/mirror.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/rng.h"
#include "host/sqlite_store.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_schedule.h"
#include "store/etcd_process.h"
#include "store/mirrored.h"

namespace muster::store {
namespace {

constexpr int kWriters = 4;
constexpr int kCommits = 100;  // of each

void Write(Store& store, uint64_t seed) {
  Blocking blocking(store);
  Rng rng(seed);
  for (int i = 0; i < kCommits; ++i) {
    const std::string key = fmt::format("/m/{}", rng.Below(20));
    const std::string other = fmt::format("/m/other{}", rng.Below(20));
    Transaction transaction{.compares = {}, .writes = {contract::Put(key, fmt::format("{}-{}", seed, i))}};
    transaction.writes.push_back(rng.Chance(1, 2) ? contract::Delete(other) : contract::Put(other, "v"));
    const CommitOutcome outcome = blocking.Commit(transaction);
    const auto* committed = std::get_if<contract::Committed>(&outcome);
    if (committed != nullptr && rng.Chance(1, 10)) static_cast<void>(blocking.Compact(committed->revision));
  }
}

void ExpectMirrored(Store& store) {
  host::ThreadSchedule schedule;
  Blocking blocking(store);
  ASSERT_TRUE(blocking.Range(contract::EveryKey()).has_value());  // waits for a store that is being started
  ASSERT_TRUE(std::holds_alternative<contract::Committed>(blocking.Commit({{}, {contract::Put("/m/first", "v")}})));
  Mirrored copy(store, schedule, {.range = contract::KeysUnder("/m/")});
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) writers.emplace_back([&, i] { Write(store, static_cast<uint64_t>(i) + 1); });
  for (std::thread& writer : writers) writer.join();
  const auto rows = blocking.Range(contract::KeysUnder("/m/"));
  ASSERT_TRUE(rows.has_value()) << rows.error().ToString();
  EXPECT_GT(rows->rows.size(), 1u);
  EXPECT_TRUE(copy.Becomes(rows->rows));
  EXPECT_EQ(copy.breach(), "");
}

TEST(StoreMirror, IsTheRangeOfAStoreInMemory) {
  const auto store = host::MakeMemoryStore();
  ExpectMirrored(*store);
}

TEST(StoreMirror, IsTheRangeOfASqliteStore) {
  const host::TempDir dir;
  const auto store = host::OpenSqliteStore(dir.File("store"));
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  ExpectMirrored(**store);
}

TEST(StoreMirror, IsTheRangeOfAnEtcd) {
  const Etcd etcd;
  const auto store = etcd.Client();
  ExpectMirrored(*store);
}

}  // namespace
}  // namespace muster::store
