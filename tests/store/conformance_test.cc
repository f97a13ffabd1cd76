// One suite on all three stores, and the same random histories on all three.
//
// MUSTER_HISTORIES says how many histories memory and SQLite are compared on, 500 unless given; etcd takes a twentieth.
#include "store/conformance.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/probe.h"
#include "base/source_dir_for_test.h"
#include "host/fault_table_for_test.h"
#include "host/sqlite_store.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"
#include "host/thread_schedule.h"
#include "store/etcd_process.h"
#include "store/history.h"
#include "store/memory_store.h"

namespace muster::store {
namespace {

int Histories() {
  const char* asked = std::getenv("MUSTER_HISTORIES");
  return asked != nullptr ? std::stoi(asked) : 500;
}

void ExpectConforms(Store& store) {
  host::ThreadSchedule schedule;
  const host::SystemClock clock;
  for (const CheckResult& result : RunConformance(store, schedule, {}, clock)) {
    EXPECT_EQ(result.verdict, Verdict::kHolds) << result.name << ": " << result.rule << "\n  " << result.detail;
  }
  Blocking blocking(store);
  const auto left = blocking.Range(contract::KeysUnder("/conformance/"));
  ASSERT_TRUE(left.has_value()) << left.error().ToString();
  EXPECT_TRUE(left->rows.empty()) << "the suite leaves " << left->rows.front().key;
}

TEST(StoreConformance, Memory) {
  const auto store = host::MakeMemoryStore();
  ExpectConforms(*store);
}

TEST(StoreConformance, MemoryThatIsSlow) {
  host::ThreadSchedule schedule;
  MemoryStore store(schedule, {.min_delay = 10us, .max_delay = 2ms, .max_watch_lag = 5ms});
  ExpectConforms(store);
  schedule.Stop();
}

TEST(StoreConformance, Sqlite) {
  const host::TempDir dir;
  const auto store = host::OpenSqliteStore(dir.File("store"));
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  ExpectConforms(**store);
}

TEST(StoreConformance, Etcd) {
  const Etcd etcd;
  const auto store = etcd.Client();
  ExpectConforms(*store);
}

TEST(StoreConformance, EtcdBelowAPrefix) {
  const Etcd etcd;
  const auto store = etcd.Client("/some/prefix");
  ExpectConforms(*store);
  // Nothing else is to be seen below the prefix, and nothing of it above.
  Blocking below(*store);
  const auto above_store = etcd.Client();
  Blocking above(*above_store);
  static_cast<void>(below.Commit({{}, {contract::Put("k", "v")}}));
  static_cast<void>(above.Commit({{}, {contract::Put("/some/prefixed", "v"), contract::Put("/other", "v")}}));
  const auto all = below.Range(contract::EveryKey());
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->rows.size(), 2u);  // "/some/prefixed" begins with the prefix too
  EXPECT_EQ(all->rows[0].key, "ed");
  EXPECT_EQ(all->rows[1].key, "k");
  const auto found = above.Get("/some/prefixk");
  ASSERT_TRUE(found.has_value() && found->has_value());
}

// A rule that cannot be broken proves nothing: each planted bug of the store in memory breaks the one that its row
// names.
class StorePlantedBug : public testing::TestWithParam<faults::Row> {};

TEST_P(StorePlantedBug, BreaksARule) {
  const auto store = host::MakeMemoryStore();
  host::ThreadSchedule schedule;
  const host::SystemClock clock;
  const ConformanceOptions options{.only = GetParam().says, .patience = 3s};
  const auto sound = RunConformance(*store, schedule, options, clock);
  ASSERT_EQ(sound.size(), 1u) << "there is no rule " << GetParam().says;
  EXPECT_EQ(sound.front().verdict, Verdict::kHolds) << sound.front().detail;
  const faults::ScopedMutant bug(GetParam().name);
  EXPECT_EQ(RunConformance(*store, schedule, options, clock).front().verdict, Verdict::kBroken);
}

INSTANTIATE_TEST_SUITE_P(All, StorePlantedBug,
                         testing::ValuesIn(faults::RowsOf("StorePlantedBug.BreaksARule", "store", "bug")),
                         faults::TestNameOf);

// Answers are lost: the checker must take what is right, and find a commit that was carried out twice.
TEST(StoreHistories, WithLostAnswersAreJudged) {
  const auto judge = [](uint64_t seed) -> Status {
    host::ThreadSchedule schedule;
    MemoryStore store(schedule, {.max_delay = 200us, .lost_request_per_mille = 20, .lost_answer_per_mille = 50}, seed);
    const host::SystemClock clock;
    // Ranges that are lost are left out, so their timeout costs nothing but time.
    const auto history = RunConcurrentHistory(
        store, {.prefix = "/h/", .seed = seed, .clients = 6, .operations = 30, .watches = 1, .timeout = 20ms}, clock);
    schedule.Stop();
    if (!history) return history.error();
    return CheckHistory(*history);
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) EXPECT_EQ(judge(seed), Status()) << "seed " << seed;
  const faults::ScopedMutant bug("store.retried_after_lost_answer");
  bool found = false;
  for (uint64_t seed = 1; seed <= 20 && !found; ++seed) found = !judge(seed).ok();
  EXPECT_TRUE(found);
}

// The page has every rule, by its name and in its words.
TEST(StoreConformance, IsWhatThePageSays) {
  std::ifstream file(SourceDir() + "/docs/store.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const auto& [name, rule] : ConformanceChecks()) {
    EXPECT_NE(page.str().find(fmt::format("| `{}` | {} |", name, rule)), std::string::npos) << name;
  }
}

// The same histories, drawn from the same seeds, on a store that is compared and on one in memory.
void ExpectSameAsMemory(Store& store, int histories, int operations) {
  Blocking compared(store);
  uint64_t lines = 0;
  for (int seed = 1; seed <= histories; ++seed) {
    VirtualSchedule time;
    MemoryStore memory(time);
    Blocking model(memory, &time);
    const auto expected = RunSequentialHistory(model, "/h/", static_cast<uint64_t>(seed), operations);
    const auto found =
        RunSequentialHistory(compared, fmt::format("/h{}/", seed), static_cast<uint64_t>(seed), operations);
    ASSERT_TRUE(expected.has_value()) << expected.error().ToString();
    ASSERT_TRUE(found.has_value()) << "seed " << seed << ": " << found.error().ToString();
    ASSERT_EQ(*expected, *found) << "seed " << seed;
    lines += static_cast<uint64_t>(std::ranges::count(*found, '\n'));
  }
  testing::Test::RecordProperty("histories", histories);
  testing::Test::RecordProperty("lines", std::to_string(lines));
}

TEST(StoreHistories, SqliteIsAsMemory) {
  const host::TempDir dir;
  const auto store = host::OpenSqliteStore(dir.File("store"), {.durable = false});
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  ExpectSameAsMemory(**store, Histories(), 30);
}

TEST(StoreHistories, EtcdIsAsMemory) {
  const Etcd etcd;
  const auto store = etcd.Client();
  ExpectSameAsMemory(*store, std::max(Histories() / 20, 20), 30);
}

}  // namespace
}  // namespace muster::store
