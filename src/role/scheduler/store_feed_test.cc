#include "role/scheduler/store_feed.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>

#include "store/memory_store.h"

namespace muster::scheduler {
namespace {

constexpr Duration kPatience = 20s;

// The events of a feed, one by one.
class Told {
 public:
  StoreFeed::Tell Tell() {
    return [this](Event event) {
      const std::lock_guard lock(mu_);
      events_.push_back(std::move(event));
      came_.notify_all();
    };
  }
  // The next event of this kind; others before it are dropped.
  template <class Kind>
  std::optional<Kind> Next() {
    std::unique_lock lock(mu_);
    while (came_.wait_for(lock, kPatience, [this] { return !events_.empty(); })) {
      Event event = std::move(events_.front());
      events_.pop_front();
      if (auto* kind = std::get_if<Kind>(&event)) return std::move(*kind);
    }
    return std::nullopt;
  }

 private:
  std::mutex mu_;
  std::condition_variable came_;
  std::deque<Event> events_;
};

// A store on a thread of its own, which can be out of reach.
class Feed : public testing::Test {
 protected:
  void Put(const std::string& key, const std::string& value) {
    store_.Commit({.compares = {}, .writes = {contract::Put(key, value)}}, 5s, [](const auto&) {});
  }
  void SetReachable(bool reachable) {
    schedule_.After({}, [this, reachable] { store_.SetReachable(reachable); });
  }

  host::ThreadSchedule schedule_;
  store::MemoryStore store_{schedule_};
  Told told_;
};

TEST_F(Feed, AStoreOfOneProcessHasNoElection) {
  const StoreFeed feed(store_, {.prefix = "", .address = "h:1", .election = false}, told_.Tell());
  const auto leads = told_.Next<LeadershipChanged>();
  ASSERT_TRUE(leads);
  EXPECT_TRUE(leads->leading);
  EXPECT_EQ(leads->leader, "h:1");
  EXPECT_EQ(leads->leader_key, "");
}

TEST_F(Feed, AStoreThatIsBackIsListedAgainAndThenOnlyChangesCome) {
  Put("/nodes/a", "1");
  const StoreFeed feed(store_, {.prefix = "", .address = "h:1", .election = false, .lost_after = 100ms}, told_.Tell());
  const auto first = told_.Next<StoreListed>();
  ASSERT_TRUE(first);
  ASSERT_EQ(first->rows.size(), 1);
  EXPECT_TRUE(feed.store_status().ok());
  SetReachable(false);
  ASSERT_TRUE(told_.Next<StoreLost>());
  EXPECT_FALSE(feed.store_status().ok());
  SetReachable(true);
  const auto again = told_.Next<StoreListed>();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->rows.size(), 1);
  EXPECT_TRUE(feed.store_status().ok());
  Put("/nodes/c", "3");
  const auto changed = told_.Next<StoreChanged>();
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->changes.back().now.key, "/nodes/c");
  EXPECT_GT(changed->revision, again->revision);
}

TEST_F(Feed, OneOfTwoLeadsAndTheOtherFollowsWhenItResigns) {
  Told other;
  auto first = std::make_unique<StoreFeed>(store_, StoreFeedOptions{.prefix = "/p", .address = "h:1", .election = true},
                                           told_.Tell());
  std::optional<LeadershipChanged> leads;
  do leads = told_.Next<LeadershipChanged>();
  while (leads && !leads->leading);
  ASSERT_TRUE(leads);
  EXPECT_EQ(leads->leader_key, "/p/leader");
  EXPECT_GT(leads->leader_revision, 0);

  const StoreFeed second(store_, {.prefix = "/p", .address = "h:2", .election = true}, other.Tell());
  std::optional<LeadershipChanged> follows;
  do follows = other.Next<LeadershipChanged>();
  while (follows && follows->leader.empty());
  ASSERT_TRUE(follows);
  EXPECT_FALSE(follows->leading);
  EXPECT_EQ(follows->leader, "h:1");

  first->Resign();
  EXPECT_FALSE(told_.Next<LeadershipChanged>()->leading);
  first.reset();
  do follows = other.Next<LeadershipChanged>();
  while (follows && !follows->leading);
  ASSERT_TRUE(follows);
  EXPECT_EQ(follows->leader, "h:2");
}

}  // namespace
}  // namespace muster::scheduler
