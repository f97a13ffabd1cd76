#include "store/mirror.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"
#include "store/blocking.h"
#include "store/carry_out.h"
#include "store/memory_store.h"

namespace muster::store {
namespace {

using contract::Put;
using Rows = std::map<std::string, KeyValue>;

// A core's copy of a range, made of events alone.
class Copy {
 public:
  explicit Copy(VirtualSchedule& time) : time_(time) {}

  Mirror::Handler Handler() {
    return [this](const MirrorEvent& event) { std::visit([this](const auto& e) { Take(e); }, event); };
  }

  std::vector<std::string> lines;             // one for each event
  Rows rows;                                  // the copy
  std::vector<std::pair<Revision, Rows>> at;  // the copy after each event that has rows
  std::optional<contract::StoreLost> last_lost;
  MonoTime last_event;
  std::string breach;  // the first

 private:
  void Take(const contract::RowsListed& listed) {
    if (!at.empty() && !lost_) breach = "listed twice";
    if (lost_ && back_rows_++ > 0) breach = "rows of a lost store";
    rows.clear();
    puts_.clear();
    for (const KeyValue& row : listed.rows) Keep({.deleted = false, .now = row});
    Note(listed.revision, fmt::format("listed {}", listed.revision));
  }
  void Take(const contract::RowsChanged& changed) {
    if (at.empty()) breach = "changes before the list";
    if (lost_) breach = "changes of a lost store";
    if (changed.changes.empty()) breach = "nothing has changed";
    Revision last = 0;
    std::string line = fmt::format("changed {}:", changed.revision);
    for (const contract::Change& change : changed.changes) {
      if (change.now.modified < last) breach = "changes are out of order";
      last = change.now.modified;
      Keep(change);
      line += change.deleted ? " -" + change.now.key : fmt::format(" {}={}", change.now.key, change.now.value);
    }
    if (last > changed.revision) breach = "a change is newer than its event";
    Note(changed.revision, line);
  }
  void Take(const contract::StoreLost& lost) {
    if (std::exchange(lost_, true)) breach = "lost twice";
    last_lost = lost;
    lines.emplace_back("lost");
    last_event = time_.now();
  }
  void Take(const contract::StoreBack& back) {
    if (!std::exchange(lost_, false)) breach = "back without a loss";
    if (std::exchange(back_rows_, 0) == 0) breach = "back without rows";
    lines.push_back(fmt::format("back {}", back.revision));
    at.emplace_back(back.revision, rows);
    last_event = time_.now();
  }
  void Keep(const contract::Change& change) {
    if (change.deleted) {
      if (rows.erase(change.now.key) == 0) breach = "a deletion of a key that is not there: " + change.now.key;
      return;
    }
    if (!puts_.emplace(change.now.key, change.now.modified).second) breach = "a put is given twice: " + change.now.key;
    rows[change.now.key] = change.now;
  }
  void Note(Revision revision, std::string line) {
    if (!at.empty() && revision < at.back().first) breach = "revisions go back";
    lines.push_back(std::move(line));
    at.emplace_back(revision, rows);
    last_event = time_.now();
  }

  VirtualSchedule& time_;
  bool lost_ = false;
  int back_rows_ = 0;
  std::set<std::pair<std::string, Revision>> puts_;
};

class MirrorTest : public testing::Test {
 protected:
  Revision Commit(std::vector<contract::StoreWrite> writes) {
    return std::get<contract::Committed>(blocking_.Commit({{}, std::move(writes)})).revision;
  }
  std::unique_ptr<Mirror> Begin() {
    return std::make_unique<Mirror>(store_, time_, MirrorOptions{.range = contract::KeysUnder("/")}, copy_.Handler());
  }

  VirtualSchedule time_;
  MemoryStore store_{time_};
  Blocking blocking_{store_, &time_};
  Copy copy_{time_};
};

TEST_F(MirrorTest, ListsOnceAndThenFollows) {
  Commit({Put("/a", "1"), Put("other", "x")});
  const auto mirror = Begin();
  time_.RunFor(1s);
  Commit({Put("/b", "2"), contract::Delete("/a")});
  Commit({Put("other", "y")});
  time_.RunFor(1h);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "changed 3: /b=2 -/a"}));
  EXPECT_EQ(copy_.breach, "");
}

TEST_F(MirrorTest, SaysThatTheStoreIsLostAndBack) {
  faults::ResetProbes();
  Commit({Put("/a", "1"), Put("/b", "1")});
  const auto mirror = Begin();
  time_.RunFor(10s);
  const MonoTime gone = time_.now();
  store_.SetReachable(false);
  time_.RunFor(40s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "lost"}));
  ASSERT_TRUE(copy_.last_lost.has_value());
  EXPECT_LE(copy_.last_lost->since, gone);
  EXPECT_LE(gone - copy_.last_lost->since, 2s);
  EXPECT_GE(copy_.last_event - gone, 3s);
  EXPECT_LE(copy_.last_event - gone, 7s);
  EXPECT_EQ(copy_.last_lost->status.code(), Code::kDeadlineExceeded);
  store_.SetReachable(true);
  Commit({Put("/c", "1"), contract::Delete("/b")});
  time_.RunFor(3s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "lost", "listed 3", "back 3"}));
  EXPECT_FALSE(copy_.rows.contains("/b"));
  Commit({Put("/a", "2")});
  time_.RunFor(1s);
  EXPECT_EQ(copy_.lines.back(), "changed 4: /a=2");
  EXPECT_EQ(copy_.breach, "");
  EXPECT_GT(faults::ProbeHits()["store.mirror_lost"], 0u);
}

// A loss that is shorter than lost_after is none, and costs no list.
TEST_F(MirrorTest, SitsOutAShortLoss) {
  const auto mirror = Begin();
  time_.RunFor(10s);
  store_.SetReachable(false);
  time_.RunFor(3s);
  store_.SetReachable(true);
  Commit({Put("/a", "1")});
  time_.RunFor(1min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 1", "changed 2: /a=1"}));
}

TEST_F(MirrorTest, IsNotLostBetweenTwoAnswers) {
  std::vector<bool> lost;
  const Mirror mirror(store_, time_, {.range = contract::EveryKey(), .check_every = 1s, .lost_after = 1s},
                      [&](const MirrorEvent& event) {
                        if (std::holds_alternative<contract::StoreLost>(event)) lost.push_back(true);
                      });
  time_.RunFor(1min);
  EXPECT_TRUE(lost.empty());
  store_.SetReachable(false);
  time_.RunFor(2s);
  EXPECT_EQ(lost.size(), 1U);
}

TEST_F(MirrorTest, BeginsWithAStoreThatIsNotThere) {
  const MonoTime begun = time_.now();
  store_.SetReachable(false);
  const auto mirror = Begin();
  time_.RunFor(1min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost"}));
  EXPECT_EQ(copy_.last_lost->since, begun);
  store_.SetReachable(true);
  time_.RunFor(3s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost", "listed 1", "back 1"}));
}

// The history is compacted before the watch has given it.
TEST_F(MirrorTest, GivesTheDifferenceAfterACompaction) {
  faults::ResetProbes();
  Commit({Put("/a", "1"), Put("/b", "1"), Put("/c", "1")});
  const auto mirror = Begin();
  time_.RunFor(10s);
  store_.SetFaults({.max_watch_lag = 10min});
  Commit({Put("/a", "2")});
  Commit({contract::Delete("/b")});
  ASSERT_EQ(blocking_.Compact(Commit({Put("/a", "3"), Put("/d", "1")})), Status());
  store_.SetFaults({});
  time_.RunFor(10min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "changed 5: /a=3 -/b /d=1"}));
  EXPECT_EQ(copy_.breach, "");
  EXPECT_GT(faults::ProbeHits()["store.mirror_listed_again"], 0u);
}

// Forwards to one of two stores. A list takes its time, whatever its timeout is.
class SwitchedStore final : public Store {
 public:
  explicit SwitchedStore(Store& first, Schedule* time = nullptr, Duration list_takes = {})
      : to_(&first), time_(time), list_takes_(list_takes) {}
  void SwitchTo(Store& other) { to_ = &other; }
  int lists() const { return lists_; }

  void Range(KeyRange range, Duration timeout, RangeDone done) override {
    const bool list = range != contract::OneKey(range.begin);
    if (list) ++lists_;
    if (!list || time_ == nullptr) return to_->Range(std::move(range), timeout, std::move(done));
    time_->After(list_takes_, [this, range = std::move(range), timeout, done = std::move(done)]() mutable {
      to_->Range(std::move(range), timeout, std::move(done));
    });
  }
  void Commit(Transaction transaction, Duration timeout, CommitDone done) override {
    to_->Commit(std::move(transaction), timeout, std::move(done));
  }
  std::unique_ptr<WatchHandle> Watch(KeyRange range, Revision from, WatchHandler handler) override {
    return to_->Watch(std::move(range), from, std::move(handler));
  }
  void Grant(Duration ttl, Duration timeout, LeaseDone done) override { to_->Grant(ttl, timeout, std::move(done)); }
  void KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) override {
    to_->KeepAlive(lease, timeout, std::move(done));
  }
  void Revoke(LeaseId lease, Duration timeout, Done done) override { to_->Revoke(lease, timeout, std::move(done)); }
  void Compact(Revision revision, Duration timeout, Done done) override {
    to_->Compact(revision, timeout, std::move(done));
  }

 private:
  Store* to_;
  Schedule* const time_;
  const Duration list_takes_;
  int lists_ = 0;
};

TEST_F(MirrorTest, WaitsForAListThatTakesLong) {
  Commit({Put("/a", "1")});
  SwitchedStore store(store_, &time_, 8s);
  const Mirror mirror(store, time_, {.range = contract::KeysUnder("/")}, copy_.Handler());
  time_.RunFor(1min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2"}));
  EXPECT_EQ(store.lists(), 1);
  store_.SetReachable(false);
  time_.RunFor(10s);
  store_.SetReachable(true);
  time_.RunFor(1min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "lost", "listed 2", "back 2"}));
  EXPECT_EQ(store.lists(), 2);
  EXPECT_EQ(copy_.breach, "");
}

TEST_F(MirrorTest, KeepsAListThatTakesLongerThanItsTimeout) {
  Commit({Put("/a", "1")});
  SwitchedStore store(store_, &time_, 40s);
  const Mirror mirror(store, time_, {.range = contract::KeysUnder("/")}, copy_.Handler());
  time_.RunFor(35s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost"}));
  time_.RunFor(1min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost", "listed 2", "back 2"}));
  EXPECT_EQ(store.lists(), 1);
}

// A copy that there is grows old meanwhile: nobody may take it for what the store has.
TEST_F(MirrorTest, IsLostWhileItIsListedAgain) {
  Commit({Put("/a", "1")});
  SwitchedStore store(store_, &time_, 8s);
  const Mirror mirror(store, time_, {.range = contract::KeysUnder("/")}, copy_.Handler());
  time_.RunFor(20s);
  store_.SetFaults({.max_watch_lag = 10min});
  ASSERT_EQ(blocking_.Compact(Commit({Put("/a", "2")})), Status());
  store_.SetFaults({});
  time_.RunFor(10min);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 2", "lost", "listed 3", "back 3"}));
  EXPECT_EQ(store.lists(), 2);
  EXPECT_EQ(copy_.breach, "");
}

// A list is waited for, not for ever.
TEST_F(MirrorTest, IsLostWhenTheStoreGoesUnderAList) {
  Commit({Put("/a", "1")});
  SwitchedStore store(store_, &time_, 2s);
  const Mirror mirror(store, time_, {.range = contract::KeysUnder("/")}, copy_.Handler());
  time_.RunFor(1s);
  store_.SetReachable(false);
  time_.RunFor(40s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost"}));
  store_.SetReachable(true);
  time_.RunFor(10s);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"lost", "listed 2", "back 2"}));
}

// Another store takes its place, at a lower revision: as if an older backup was restored.
TEST_F(MirrorTest, NoticesAStoreThatWentBack) {
  faults::ResetProbes();
  for (int i = 0; i < 10; ++i) Commit({Put("/a", "new"), Put("/b", "new")});
  MemoryStore older(time_);
  Blocking writes(older, &time_);
  static_cast<void>(writes.Commit({{}, {Put("/a", "old")}}));
  SwitchedStore store(store_);
  std::vector<std::string> seen;
  const Mirror mirror(store, time_, {.range = contract::KeysUnder("/")}, [&](const MirrorEvent& event) {
    if (const auto* changed = std::get_if<contract::RowsChanged>(&event)) {
      for (const contract::Change& change : changed->changes) seen.push_back(change.now.key + change.now.value);
    } else if (const auto* listed = std::get_if<contract::RowsListed>(&event)) {
      seen.push_back(fmt::format("listed {}", listed->revision));
      for (const contract::KeyValue& row : listed->rows) seen.push_back(row.key + row.value);
    }
  });
  time_.RunFor(10s);
  EXPECT_EQ(seen, (std::vector<std::string>{"listed 11", "/anew", "/bnew"}));
  seen.clear();
  store.SwitchTo(older);
  time_.RunFor(10s);
  EXPECT_EQ(seen, (std::vector<std::string>{"listed 2", "/aold"}));
  static_cast<void>(writes.Commit({{}, {Put("/c", "old")}}));
  time_.RunFor(1s);
  EXPECT_EQ(seen.back(), "/cold");
  EXPECT_GT(faults::ProbeHits()["store.mirror_went_back"], 0u);
}

// The store itself begins again, with a backup and then with nothing; a watch that waits for a higher revision is
// silent.
TEST_F(MirrorTest, ListsAStoreThatBeginsAgain) {
  Commit({Put("/a", "1")});
  const RangeReply backup = store_.Rows();
  Commit({Put("/a", "2"), Put("/b", "2")});
  std::vector<std::string> seen;
  const Mirror mirror(store_, time_, {.range = contract::KeysUnder("/")}, [&](const MirrorEvent& event) {
    const auto* listed = std::get_if<contract::RowsListed>(&event);
    ASSERT_NE(listed, nullptr);
    seen.push_back(fmt::format("listed {}", listed->revision));
    for (const contract::KeyValue& row : listed->rows) seen.push_back(row.key + row.value);
  });
  time_.RunFor(10s);
  EXPECT_EQ(seen, (std::vector<std::string>{"listed 3", "/a2", "/b2"}));
  seen.clear();
  store_.GoBackTo(backup);
  time_.RunFor(10s);
  EXPECT_EQ(seen, (std::vector<std::string>{"listed 2", "/a1"}));
  seen.clear();
  store_.GoBackTo({.revision = 1});
  time_.RunFor(10s);
  EXPECT_EQ(seen, (std::vector<std::string>{"listed 1"}));
}

TEST_F(MirrorTest, GivesNothingAfterItsEnd) {
  auto mirror = Begin();
  time_.RunFor(10s);
  mirror.reset();
  Commit({Put("/a", "1")});
  store_.SetReachable(false);
  time_.RunFor(1h);
  EXPECT_EQ(copy_.lines, (std::vector<std::string>{"listed 1"}));
}

TEST_F(MirrorTest, CarriesOutAFreshRead) {
  Commit({Put("/a", "1"), Put("other", "x")});
  std::optional<contract::ReadDone> done;
  const auto take = [&](contract::ReadDone event) { done = std::move(event); };
  CarryOut(store_, contract::Read{.id = 7, .range = contract::KeysUnder("/"), .timeout = 1s}, take);
  time_.RunFor(1s);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->id, 7u);
  EXPECT_EQ(done->status, Status());
  EXPECT_EQ(done->revision, 2);
  ASSERT_EQ(done->rows.size(), 1u);
  EXPECT_EQ(done->rows[0].value, "1");
  store_.SetReachable(false);
  CarryOut(store_, contract::Read{.id = 8, .range = contract::EveryKey(), .timeout = 1s}, take);
  time_.RunFor(2s);
  EXPECT_EQ(done->id, 8u);
  EXPECT_EQ(done->status.code(), Code::kDeadlineExceeded);
}

// ---- With every fault

// The range at a revision, from the changes of a watch that missed nothing.
Rows TruthAt(const std::vector<contract::Change>& changes, Revision revision) {
  Rows rows;
  for (const contract::Change& change : changes) {
    if (change.now.modified > revision) break;
    if (change.deleted) {
      rows.erase(change.now.key);
    } else {
      rows[change.now.key] = change.now;
    }
  }
  return rows;
}

// Writes, compacts and cuts the store off at random; what the mirror got wrong, or nothing.
std::string BreachOf(uint64_t seed) {
  VirtualSchedule time;
  MemoryStore store(time,
                    {.max_delay = 100ms,
                     .slow_per_mille = 20,
                     .lost_request_per_mille = 50,
                     .lost_answer_per_mille = 50,
                     .max_watch_lag = 2s},
                    seed);
  Copy copy(time);
  WatchLog truth(store, contract::EveryKey(), 1, &time);
  const Mirror mirror(store, time, {.range = contract::EveryKey()}, copy.Handler());
  Rng rng(seed);
  for (int i = 0; i < 300; ++i) {
    Transaction transaction;
    for (uint64_t key = rng.Below(3); key < 8; key += 1 + rng.Below(5)) {
      const std::string name = fmt::format("/{}", key);
      transaction.writes.push_back(rng.Chance(1, 3) ? contract::Delete(name) : Put(name, std::to_string(i)));
    }
    store.Commit(std::move(transaction), 1s, [](const CommitOutcome&) {});
    // What the truth has seen may go.
    const auto batches = truth.batches();
    if (rng.Chance(1, 10) && !batches.empty()) store.Compact(batches.back().revision, 1s, [](const Status&) {});
    if (rng.Chance(1, 60)) {
      store.SetReachable(false);
      time.RunFor(Duration(rng.Between(0, Duration(20s).count())));
      store.SetReachable(true);
    }
    time.RunFor(Duration(rng.Between(0, Duration(200ms).count())));
  }
  store.SetFaults({});
  time.RunFor(1min);
  if (!copy.breach.empty()) return copy.breach;
  const std::vector<contract::Change> changes = truth.changes();
  for (const auto& [revision, rows] : copy.at) {
    if (rows != TruthAt(changes, revision)) return fmt::format("the copy is not the range at revision {}", revision);
  }
  if (copy.rows != TruthAt(changes, changes.back().now.modified)) return "the copy is not the range in the end";
  return "";
}

TEST(Mirror, IsTheRangeAtEveryRevisionWithEveryFault) {
  faults::ResetProbes();
  for (uint64_t seed = 1; seed <= 100; ++seed) EXPECT_EQ(BreachOf(seed), "") << "seed " << seed;
  const auto hits = faults::ProbeHits();
  for (const char* probe : {"store.mirror_lost", "store.mirror_listed_again", "store.watch_compacted"}) {
    EXPECT_TRUE(hits.contains(probe)) << probe;
  }
}

TEST(MirrorPlantedBug, IsFound) {
  for (const char* name : {"store.mirror_misses_deletion", "store.mirror_repeats"}) {
    const faults::ScopedMutant bug(name);
    bool found = false;
    for (uint64_t seed = 1; seed <= 50 && !found; ++seed) found = !BreachOf(seed).empty();
    EXPECT_TRUE(found) << name;
  }
}

}  // namespace
}  // namespace muster::store
