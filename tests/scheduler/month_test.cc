// A month of a cluster on a SQLite store: the scheduler on virtual time, its events under leases that end, the store's
// history compacted as it is used. The file stays as large as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>
#include <variant>

#include "core/scheduler/month_for_test.h"
#include "host/sqlite_store.h"
#include "host/temp_dir_for_test.h"
#include "store/blocking.h"

namespace muster::scheduler {
namespace {

// The lab's store, carried out by a real one too: both must agree on every commit.
struct SqliteLabStore : LabStore {
  explicit SqliteLabStore(const std::string& directory)
      : sqlite(*host::OpenSqliteStore(directory, {.durable = false, .keep_history = 500, .keep_changes = 5000})) {}

  std::optional<std::vector<contract::Change>> Commit(const contract::Transaction& transaction) override {
    const contract::CommitOutcome outcome = blocking.Commit(transaction);
    auto changes = LabStore::Commit(transaction);
    const auto* committed = std::get_if<contract::Committed>(&outcome);
    EXPECT_EQ(changes.has_value(), committed != nullptr);
    if (committed != nullptr) {
      EXPECT_EQ(committed->revision, revision);
    }
    return changes;
  }
  // The lease ends, and its keys with it.
  std::vector<contract::Change> End(contract::LeaseId lease) {
    EXPECT_EQ(blocking.Revoke(lease), Status());
    std::vector<contract::Change> changes;
    for (const auto& [key, row] : rows) {
      if (row.lease == lease) changes.push_back({.deleted = true, .now = {.key = key, .value = {}}});
    }
    if (!changes.empty()) ++revision;
    for (contract::Change& change : changes) {
      change.now.modified = revision;
      rows.erase(change.now.key);
    }
    return changes;
  }
  // What the real one has, as the other has it.
  void ExpectTheSame() {
    const Result<store::RangeReply> held = blocking.Range(contract::KeysUnder("/"));
    ASSERT_TRUE(held.has_value()) << held.error().ToString();
    EXPECT_EQ(held->revision, revision);
    EXPECT_TRUE(std::ranges::equal(held->rows, rows, {}, {}, [](const auto& entry) { return entry.second; }));
  }

  const std::unique_ptr<store::Store> sqlite;
  store::Blocking blocking{*sqlite};
};

size_t BytesIn(const std::string& directory) {
  size_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
  return bytes;
}

TEST(SchedulerMonth, TheFileOfASqliteStoreStaysAsLargeAsItWas) {
  const host::TempDir dir;
  const auto sqlite = std::make_shared<SqliteLabStore>(dir.path());
  Lab lab({}, sqlite);
  // As RotatingLease does it: one for a quarter of the time that events live, each ends half of that time later.
  std::deque<contract::LeaseId> leases;
  const auto rotate = [&] {
    const auto granted = sqlite->blocking.Grant(10h);
    ASSERT_TRUE(granted.has_value());
    leases.push_back(granted->id);
    lab.Post(EventLease{.lease = granted->id});
    if (leases.size() <= 6) return;
    std::vector<contract::Change> gone = sqlite->End(leases.front());
    leases.pop_front();
    if (!gone.empty()) lab.Post(StoreChanged{.revision = sqlite->revision, .changes = std::move(gone)}, 1ms);
  };
  rotate();
  BeginMonth(lab);
  size_t most = 0;  // until day 10
  for (int day = 0; day < kDays; ++day) {
    PlayDay(lab, day, [&] {
      for (int quarter = 0; quarter < 4; ++quarter) {
        rotate();
        lab.Run(15min);
      }
    });
    sqlite->ExpectTheSame();
    const size_t now = BytesIn(dir.path());
    if (day <= 10) most = std::max(most, now);
    // The history is compacted a thousand revisions at once; a month has fewer, 20 KB a day.
    EXPECT_LE(now, most + most / 20) << "day " << day;
  }
  EXPECT_LT(sqlite->rows.size(), 100U);
  for (const auto& [key, row] : sqlite->rows) EXPECT_FALSE(key.starts_with("/events/guest-")) << key;
}

}  // namespace
}  // namespace muster::scheduler
