#include "store/compactor.h"

#include <gtest/gtest.h>

#include "store/blocking.h"
#include "store/memory_store.h"

namespace muster::store {
namespace {

class CompactorTest : public testing::Test {
 protected:
  Revision Commit() {
    const auto outcome = blocking_.Commit({{}, {contract::Put("/k", "v")}});
    const Revision revision = std::get<contract::Committed>(outcome).revision;
    compactor_.Saw(revision);
    return revision;
  }
  // The revision up to which the history is gone; 0: it is all there.
  Revision Compacted() {
    WatchLog log(store_, contract::EveryKey(), 1, &time_);
    log.WaitFor(1, 0s);
    return log.compacted();
  }

  VirtualSchedule time_;
  MemoryStore store_{time_};
  Blocking blocking_{store_, &time_};
  Compactor compactor_{store_, time_, 5min};
};

TEST_F(CompactorTest, KeepsTheHistoryForATurnAndNoLongerThanForTwo) {
  compactor_.Lead(true);
  const Revision before_first = Commit();
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), 0);
  const Revision before_second = Commit();
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), before_first);
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), before_second);
  EXPECT_EQ(blocking_.Get("/k")->value().value, "v");
}

TEST_F(CompactorTest, IsTheLeadersAndGoesOnWhereAnotherComesToLead) {
  const Revision last = Commit();
  time_.RunFor(20min);
  EXPECT_EQ(Compacted(), 0);
  compactor_.Lead(true);
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), last);
  compactor_.Lead(false);
  Commit();
  time_.RunFor(20min);
  EXPECT_EQ(Compacted(), last);
}

TEST_F(CompactorTest, TriesAgainAtItsNextTurn) {
  compactor_.Lead(true);
  Commit();
  time_.RunFor(5min);
  store_.SetReachable(false);
  time_.RunFor(5min);
  store_.SetReachable(true);
  EXPECT_EQ(Compacted(), 0);
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), 2);
}

// A store that went back has not the revisions of before.
TEST_F(CompactorTest, ForgetsTheRevisionsOfAStoreThatWentBack) {
  compactor_.Lead(true);
  for (int i = 0; i < 10; ++i) Commit();
  time_.RunFor(5min);
  store_.GoBackTo({.revision = 1});
  compactor_.Saw(1);
  const Revision last = Commit();
  EXPECT_EQ(last, 2);
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), 1);
  time_.RunFor(5min);
  EXPECT_EQ(Compacted(), last);
}

}  // namespace
}  // namespace muster::store
