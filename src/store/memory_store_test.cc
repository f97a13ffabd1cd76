#include "store/memory_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"
#include "store/blocking.h"
#include "store/campaign.h"
#include "store/history.h"
#include "store/table.h"
#include "store/url.h"

namespace muster::store {
namespace {

using contract::IfAbsent;
using contract::IfUnchanged;
using contract::Put;

class MemoryStoreTest : public testing::Test {
 protected:
  VirtualSchedule time_;
  MemoryStore store_{time_};
  Blocking blocking_{store_, &time_};

  CommitOutcome PutKey(const std::string& value) { return blocking_.Commit({{}, {Put("k", value)}}); }
  std::string ValueOfKey() {
    const auto row = blocking_.Get("k");
    return row && *row ? (*row)->value : "absent";
  }
};

bool IsUnknown(const CommitOutcome& outcome) {
  const auto* unknown = std::get_if<contract::Unknown>(&outcome);
  return unknown != nullptr && !unknown->Refused();
}

TEST_F(MemoryStoreTest, ACommitHappensThoughItsAnswerIsLost) {
  faults::ResetProbes();
  store_.SetFaults({.lost_answer_per_mille = 1000});
  const MonoTime called = time_.now();
  EXPECT_TRUE(IsUnknown(PutKey("one")));
  EXPECT_EQ(time_.now() - called, 10s) << "the caller is told when its time is up";
  store_.SetFaults({});
  EXPECT_EQ(ValueOfKey(), "one");
  EXPECT_GT(faults::ProbeHits()["store.happened_unanswered"], 0u);
}

TEST_F(MemoryStoreTest, ACommitDoesNotHappenIfItsRequestIsLost) {
  store_.SetFaults({.lost_request_per_mille = 1000});
  EXPECT_TRUE(IsUnknown(PutKey("one")));
  store_.SetFaults({});
  EXPECT_EQ(ValueOfKey(), "absent");
}

// A slow request arrives after its caller has given up, and after another has written.
TEST_F(MemoryStoreTest, ALateCommitOverwritesUnlessItIsGuarded) {
  blocking_.SetTimeout(1s);
  for (const bool guarded : {false, true}) {
    static_cast<void>(blocking_.Commit({{}, {contract::Delete("k")}}));
    store_.SetFaults({.min_delay = 5s, .max_delay = 5s});
    Transaction late{.compares = {}, .writes = {Put("k", "late")}};
    if (guarded) late.compares.push_back(IfAbsent("k"));
    EXPECT_TRUE(IsUnknown(blocking_.Commit(late)));
    store_.SetFaults({});
    EXPECT_EQ(ValueOfKey(), "absent");
    static_cast<void>(PutKey("in time"));
    time_.RunFor(10s);
    EXPECT_EQ(ValueOfKey(), guarded ? "in time" : "late");
  }
}

TEST_F(MemoryStoreTest, WatchesLagButMissNothing) {
  store_.SetFaults({.max_watch_lag = 3s});
  WatchLog log(store_, contract::EveryKey(), 1, &time_);
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(PutKey(std::to_string(i)));
    time_.RunFor(200ms);
  }
  ASSERT_TRUE(log.WaitFor(21));
  EXPECT_EQ(log.changes().size(), 20u);
  EXPECT_LT(log.batches().size(), 20u) << "none of them has lagged";
}

TEST_F(MemoryStoreTest, ALaggingWatchIsOvertakenByCompaction) {
  faults::ResetProbes();
  store_.SetFaults({.max_watch_lag = 3s, .compact_per_mille = 1000});
  WatchLog log(store_, contract::EveryKey(), 2, &time_);
  for (int i = 0; i < 20 && log.compacted() == 0; ++i) static_cast<void>(PutKey(std::to_string(i)));
  ASSERT_TRUE(log.WaitFor(1000));
  EXPECT_GT(log.compacted(), 1);
  EXPECT_GT(faults::ProbeHits()["store.watch_compacted"], 0u);
}

TEST_F(MemoryStoreTest, OutOfReachNothingIsAnsweredAndWatchesStandStill) {
  WatchLog log(store_, contract::EveryKey(), 1, &time_);
  static_cast<void>(PutKey("one"));
  ASSERT_TRUE(log.WaitFor(2));
  store_.SetReachable(false);
  EXPECT_TRUE(IsUnknown(PutKey("two")));
  EXPECT_FALSE(blocking_.Range(contract::EveryKey()).has_value());
  store_.SetReachable(true);
  EXPECT_EQ(ValueOfKey(), "one");
  static_cast<void>(PutKey("three"));
  ASSERT_TRUE(log.WaitFor(3));
  EXPECT_EQ(log.changes().back().now.value, "three");
}

// What a run with every fault says and sees, as one text.
std::string FaultyRun(uint64_t seed) {
  VirtualSchedule time;
  MemoryStore store(time,
                    {.min_delay = 1ms,
                     .max_delay = 50ms,
                     .slow_per_mille = 50,
                     .lost_request_per_mille = 50,
                     .lost_answer_per_mille = 50,
                     .max_watch_lag = 1s,
                     .compact_per_mille = 5},
                    seed);
  std::string text;
  const auto watch = store.Watch(contract::EveryKey(), 1, [&](const WatchEvent& event) {
    const auto* batch = std::get_if<WatchBatch>(&event);
    text += batch != nullptr ? fmt::format("watch {} {}\n", batch->revision, batch->changes.size()) : "compacted\n";
  });
  Rng rng(seed);
  for (int i = 0; i < 200; ++i) {
    store.Commit({{}, {Put(fmt::format("k{}", rng.Below(5)), std::to_string(i))}}, 2s,
                 [&text, i](const CommitOutcome& outcome) {
                   const auto* committed = std::get_if<contract::Committed>(&outcome);
                   text += fmt::format("{} {}\n", i, committed != nullptr ? committed->revision : 0);
                 });
    time.RunFor(Duration(rng.Below(20'000'000)));
  }
  time.RunFor(1min);
  return text;
}

TEST(MemoryStore, OneSeedIsOneRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(FaultyRun(seed), FaultyRun(seed));
  EXPECT_NE(FaultyRun(1), FaultyRun(2));
}

TEST(StoreTable, KeepsItsInvariants) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    Table table;
    std::vector<LeaseId> leases = {0, table.AddLease(), table.AddLease()};
    for (int i = 0; i < 60; ++i) {
      const std::string key = fmt::format("k{}", rng.Below(4));
      const LeaseId lease = leases[rng.Below(leases.size())];
      const bool usable = lease == 0 || table.HasLease(lease);
      static_cast<void>(
          table.Apply({{}, {rng.Chance(1, 3) ? contract::Delete(key) : Put(key, "v", usable ? lease : 0)}}));
      if (rng.Chance(1, 20)) table.EndLease(lease);
      if (rng.Chance(1, 20)) static_cast<void>(table.Compact(table.revision() - rng.Between(0, 3)));
      table.CheckInvariants();
    }
  }
}

// The commit that made it the leader was never answered.
TEST_F(MemoryStoreTest, ACandidateLearnsThatItLeads) {
  faults::ResetProbes();
  const auto lease = blocking_.Grant(1h);
  ASSERT_TRUE(lease.has_value());
  store_.SetFaults({.lost_answer_per_mille = 1000});
  std::vector<Leadership> told;
  const Campaign campaign(store_, time_, {.key = "leader", .value = "me", .lease = lease->id},
                          [&](const Leadership& leadership) { told.push_back(leadership); });
  time_.RunFor(4s);
  EXPECT_TRUE(told.empty());
  store_.SetFaults({});
  time_.RunFor(1min);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, Leadership::Kind::kLeading);
  EXPECT_EQ(told[0].leader->modified, 2) << "it has stood once";
  EXPECT_GT(faults::ProbeHits()["store.campaign_unknown"], 0u);
}

// Two candidates that come and go, with every fault: never do both hold the key by what the store says.
TEST(Campaign, OneLeadsAtATimeWithEveryFault) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    VirtualSchedule time;
    MemoryStore store(time, {}, seed);
    Blocking blocking(store, &time);
    std::vector<LeaseId> leases;
    for (int i = 0; i < 2; ++i) leases.push_back(blocking.Grant(1h)->id);
    store.SetFaults(
        {.max_delay = 100ms, .lost_request_per_mille = 100, .lost_answer_per_mille = 100, .max_watch_lag = 1s});
    std::vector<std::optional<Revision>> leads(2);
    std::vector<Revision> terms;
    std::vector<std::unique_ptr<Campaign>> campaigns;
    for (size_t i = 0; i < 2; ++i) {
      campaigns.push_back(std::make_unique<Campaign>(
          store, time, CampaignRequest{.key = "leader", .value = std::to_string(i), .lease = leases[i]},
          [&, i](const Leadership& told) {
            leads[i].reset();
            if (told.kind != Leadership::Kind::kLeading) return;
            leads[i] = told.leader->modified;
            terms.push_back(told.leader->modified);
          }));
    }
    for (int round = 0; round < 10; ++round) {
      time.RunFor(20s);
      ASSERT_TRUE(leads[0].has_value() || leads[1].has_value()) << "seed " << seed;
      ASSERT_NE(leads[0], leads[1]) << "two lead in one term";
      store.Commit({{}, {contract::Delete("leader")}}, 1s, [](const CommitOutcome&) {});  // an operator deposes it
    }
    EXPECT_TRUE(std::ranges::is_sorted(terms)) << "seed " << seed;
    EXPECT_GT(terms.size(), 3u);
  }
}

TEST(StoreUrl, IsOneOfThree) {
  EXPECT_EQ(ParseStoreUrl("memory:")->kind, StoreUrl::Kind::kMemory);
  EXPECT_EQ(ParseStoreUrl("sqlite:/a/b")->directory, "/a/b");
  const auto etcd = ParseStoreUrl("etcd://h1:1,h2:2/some/prefix/");
  ASSERT_TRUE(etcd.has_value());
  EXPECT_EQ(etcd->endpoints, (std::vector<std::string>{"h1:1", "h2:2"}));
  EXPECT_EQ(etcd->prefix, "/some/prefix");
  EXPECT_EQ(ParseStoreUrl("etcd://h:1")->prefix, "");
  for (const char* wrong :
       {"", "memory", "memory:x", "sqlite:", "etcd://", "etcd://a:1,", "etcd:///p", "redis://h:1"}) {
    const auto parsed = ParseStoreUrl(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    EXPECT_NE(parsed.error().message().find("write memory:, sqlite:DIR or etcd://"), std::string::npos);
  }
}

TEST(KeyRange, OfAPrefixHasWhatBeginsWithIt) {
  EXPECT_TRUE(contract::KeysUnder("a").Contains("a"));
  EXPECT_TRUE(contract::KeysUnder("a").Contains("a\xff\xff"));
  EXPECT_FALSE(contract::KeysUnder("a").Contains("b"));
  EXPECT_EQ(contract::KeysUnder("a\xff").end, "b");
  EXPECT_EQ(contract::KeysUnder("\xff").end, "");
  EXPECT_TRUE(contract::OneKey("a").Contains("a"));
  EXPECT_FALSE(contract::OneKey("a").Contains(std::string("a\0", 2)));
}

// A small right history, and each way to get it wrong.
History RightHistory() {
  History history{.begins = 10};
  const auto at = [](int ms) { return MonoTime(std::chrono::milliseconds(ms)); };
  const KeyValue one{.key = "k", .value = "one", .created = 11, .modified = 11};
  const KeyValue two{.key = "k", .value = "two", .created = 11, .modified = 12};
  history.events = {
      {.client = 0,
       .called = at(0),
       .answered = at(10),
       .transaction = {{IfAbsent("k")}, {Put("k", "one")}},
       .answer = CommitOutcome(contract::Committed{11})},
      {.client = 1,
       .called = at(20),
       .answered = at(30),
       .range = contract::OneKey("k"),
       .answer = RangeReply{11, {one}}},
      {.client = 1,
       .called = at(40),
       .answered = at(50),
       .transaction = {{IfUnchanged("k", 11)}, {Put("k", "two")}},
       .answer = CommitOutcome(contract::Unknown{{Code::kUnavailable, ""}})},
      {.client = 0,
       .called = at(60),
       .answered = at(70),
       .transaction = {{IfUnchanged("k", 11)}, {Put("k", "lost")}},
       .answer = CommitOutcome(contract::Conflict{12})},
  };
  history.watched = {{{.now = one}, {.now = two}}, {{.now = one}, {.now = two}}};
  return history;
}

TEST(HistoryCheck, TakesWhatIsRight) { EXPECT_EQ(CheckHistory(RightHistory()), Status()); }

TEST(HistoryCheck, RefusesWhatIsWrong) {
  const auto breach = [](const std::function<void(History&)>& change) {
    History history = RightHistory();
    change(history);
    return CheckHistory(history).message();
  };
  const auto both = [](History& history, const std::function<void(std::vector<contract::Change>&)>& change) {
    for (auto& watched : history.watched) change(watched);
  };
  EXPECT_EQ(breach([](History& h) { h.watched[1].pop_back(); }), "two watches give different changes");
  EXPECT_EQ(breach([](History& h) { std::ranges::reverse(h.watched[0]); }), "a watch gives revision 11 after 12");
  EXPECT_EQ(breach([&](History& h) { both(h, [](auto& w) { w.push_back(w.back()); }); }),
            "a watch gives k of revision 12 twice");
  EXPECT_EQ(breach([&](History& h) { both(h, [](auto& w) { w.erase(w.begin()); }); }),
            "revision 12 was written though a condition of it did not hold");
  EXPECT_EQ(breach([&](History& h) { both(h, [](auto& w) { w[1].now.value = "other"; }); }),
            "no commit made revision 12");
  EXPECT_EQ(breach([&](History& h) { both(h, [](auto& w) { w[1].now.created = 12; }); }),
            "revision 12 is not what its commit writes");
  EXPECT_EQ(breach([](History& h) { h.events[0].answer = CommitOutcome(contract::Conflict{10}); }),
            "a commit in revision 11 was answered as a conflict");
  EXPECT_EQ(breach([](History& h) { h.events[0].answer = CommitOutcome(contract::Committed{12}); }),
            "a commit answered with revision 12 is in revision 11");
  EXPECT_EQ(breach([](History& h) { std::get<RangeReply>(h.events[1].answer).rows.clear(); }),
            "a range at revision 11 does not show what was written by then");
  EXPECT_EQ(breach([](History& h) { h.events[3].answer = CommitOutcome(contract::Conflict{11}); }),
            "a conflict at revision 11, where every condition holds");
  EXPECT_EQ(
      breach([](History& h) { h.events[2].answer = CommitOutcome(contract::Unknown{{Code::kInvalidArgument, ""}}); }),
      "a commit in revision 12 was answered as refused");
  EXPECT_EQ(breach([](History& h) { h.events[1].answer = RangeReply{10, {}}; }),
            "a request of revision 10 was called after revision 11 was answered");
}

}  // namespace
}  // namespace muster::store
