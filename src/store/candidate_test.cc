#include "store/candidate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/probe.h"
#include "base/rng.h"
#include "store/blocking.h"
#include "store/memory_store.h"

namespace muster::store {
namespace {

// What one candidate was told.
class Told {
 public:
  explicit Told(VirtualSchedule& time) : time_(time) {}

  Candidate::Handler Handler() {
    return [this](const CandidateEvent& event) {
      const auto* leads = std::get_if<contract::Leading>(&event);
      leading = leads != nullptr ? std::optional(*leads) : std::nullopt;
      if (leads != nullptr) terms.insert(leads->key.modified);
      if (leads == nullptr) leader = std::get<contract::Following>(event).leader;
      ++events;
    };
  }
  // Whether it may act as the leader.
  bool Leads() const { return leading && time_.now() < leading->until; }

  std::optional<contract::Leading> leading;  // the last event, if it was one
  std::optional<KeyValue> leader;            // of the last Following
  std::set<Revision> terms;
  int events = 0;

 private:
  VirtualSchedule& time_;
};

class CandidateTest : public testing::Test {
 protected:
  std::unique_ptr<Candidate> Stand(const std::string& value, Told& told) {
    return std::make_unique<Candidate>(store_, time_, CandidateOptions{.key = "/leader", .value = value},
                                       told.Handler());
  }

  VirtualSchedule time_;
  MemoryStore store_{time_};
  Blocking blocking_{store_, &time_};
  Told a_{time_};
  Told b_{time_};
};

TEST_F(CandidateTest, LeadsForAsLongAsItRenews) {
  const auto candidate = Stand("a", a_);
  time_.RunFor(1h);
  EXPECT_TRUE(a_.Leads());
  EXPECT_EQ(a_.terms.size(), 1u);
  EXPECT_EQ(a_.leading->key.value, "a");
  EXPECT_GT(a_.leading->until - time_.now(), 1s);
  EXPECT_NEAR(a_.events, 3600, 10) << "an event for each renewal";
}

TEST_F(CandidateTest, FollowsAndKnowsWhoLeads) {
  const auto first = Stand("a", a_);
  time_.RunFor(1s);
  const auto second = Stand("b", b_);
  time_.RunFor(1min);
  EXPECT_FALSE(b_.Leads());
  ASSERT_TRUE(b_.leader.has_value());
  EXPECT_EQ(b_.leader->value, "a");
  EXPECT_EQ(b_.events, 1) << "it is told once";
}

// It stops at the end of its lease by its own clock, though nobody tells it anything.
TEST_F(CandidateTest, StopsInTimeWhenTheStoreIsSilent) {
  faults::ResetProbes();
  const auto candidate = Stand("a", a_);
  time_.RunFor(10s);
  store_.SetReachable(false);
  const MonoTime silent = time_.now();
  while (a_.leading) ASSERT_TRUE(time_.RunOne());
  EXPECT_GE(time_.now() - silent, 1s);
  EXPECT_LE(time_.now() - silent, 3s);
  EXPECT_GT(faults::ProbeHits()["store.candidate_overdue"], 0u);
  // Meanwhile its lease ends: it stands again, for another term.
  time_.RunFor(1min);
  store_.SetReachable(true);
  time_.RunFor(10s);
  EXPECT_TRUE(a_.Leads());
  EXPECT_EQ(a_.terms.size(), 2u);
  EXPECT_GT(faults::ProbeHits()["store.candidate_stands_again"], 0u);
}

TEST_F(CandidateTest, ResignsSoThatAnotherLeadsAtOnce) {
  const auto first = Stand("a", a_);
  time_.RunFor(1s);
  const auto second = Stand("b", b_);
  time_.RunFor(1s);
  std::optional<Status> resigned;
  first->Resign([&](Status status) { resigned = std::move(status); });
  EXPECT_FALSE(a_.leading) << "it is told before the lease is revoked";
  time_.RunFor(500ms);
  EXPECT_EQ(resigned, Status());
  EXPECT_TRUE(b_.Leads());
  time_.RunFor(1h);
  EXPECT_FALSE(a_.leading);
}

TEST_F(CandidateTest, ResignsWithoutALease) {
  store_.SetReachable(false);
  const auto candidate = Stand("a", a_);
  std::optional<Status> resigned;
  candidate->Resign([&](Status status) { resigned = std::move(status); });
  time_.RunFor(1ms);
  EXPECT_EQ(resigned, Status());
  store_.SetReachable(true);
  time_.RunFor(1min);
  EXPECT_EQ(a_.events, 0);
}

TEST_F(CandidateTest, IsReplacedAfterItsLeaseWhenItIsGone) {
  auto first = Stand("a", a_);
  time_.RunFor(1s);
  const auto second = Stand("b", b_);
  time_.RunFor(1s);
  first.reset();
  const int events = a_.events;
  time_.RunFor(5s);
  EXPECT_TRUE(b_.Leads());
  EXPECT_EQ(a_.events, events);
}

// Three candidates with every fault, and a store that is away from time to time; what went wrong, or nothing.
std::string BreachOf(uint64_t seed) {
  VirtualSchedule time;
  MemoryStore store(time,
                    {.max_delay = 300ms,
                     .slow_per_mille = 30,
                     .lost_request_per_mille = 150,
                     .lost_answer_per_mille = 150,
                     .max_watch_lag = 1s},
                    seed);
  std::vector<std::unique_ptr<Told>> told;
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (int i = 0; i < 3; ++i) {
    told.push_back(std::make_unique<Told>(time));
    candidates.push_back(std::make_unique<Candidate>(
        store, time, CandidateOptions{.key = "/leader", .value = std::to_string(i)}, told.back()->Handler()));
  }
  Rng rng(seed);
  std::set<Revision> terms;
  for (const MonoTime end = time.now() + 5min; time.now() < end;) {
    if (!time.RunOne()) return "nothing happens any more";
    int leaders = 0;
    for (const auto& one : told) leaders += one->Leads() ? 1 : 0;
    if (leaders > 1) return "two lead at one moment";
    if (!rng.Chance(1, 2000)) continue;
    store.SetReachable(false);
    const MonoTime back = time.now() + Duration(rng.Between(0, Duration(8s).count()));
    while (time.RunOne(back)) {
    }
    store.SetReachable(true);
  }
  for (const auto& one : told) terms.insert(one->terms.begin(), one->terms.end());
  return terms.size() < 3 ? "the leader never changes" : "";
}

TEST(Candidate, OneLeadsAtATimeWithEveryFault) {
  for (uint64_t seed = 1; seed <= 30; ++seed) EXPECT_EQ(BreachOf(seed), "") << "seed " << seed;
}

TEST(CandidatePlantedBug, IsFound) {
  const faults::ScopedMutant bug("store.candidate_leads_too_long");
  bool found = false;
  for (uint64_t seed = 1; seed <= 100 && !found; ++seed) found = BreachOf(seed) == "two lead at one moment";
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace muster::store
