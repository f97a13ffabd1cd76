#include "sim/change_judge.h"

#include <gtest/gtest.h>

namespace muster::sim {
namespace {

using model::Reason;

constexpr MonoTime kStart = MonoTime(1h);

contract::ActionView Decided(std::string kind, Reason reason = Reason::kNone) {
  return {.kind = std::move(kind), .cluster_id = "a", .reason = reason, .outcome = "pending"};
}

// A cluster of forty machines: four may change.
struct Forty {
  Findings findings;
  ChangeJudge judge{{100'000}, 2min, findings};

  Forty() { judge.Has("a", 40, kStart); }
  bool Fails() const { return findings.failure().has_value(); }
};

TEST(ChangeJudge, ATenthMayChangeWhateverTheKind) {
  Forty forty;
  forty.judge.Audited(Decided("Reclaim"), kStart);
  forty.judge.Audited(Decided("Reclaim"), kStart + 1s);
  forty.judge.Audited(Decided("Repair"), kStart + 2s);
  forty.judge.GivenUp("a", kStart + 3s);
  EXPECT_FALSE(forty.Fails());
  forty.judge.GivenUp("a", kStart + 119s);
  EXPECT_EQ(forty.findings.failure(),
            "5 of a's 40 machines change within the window: 2 given up, 2 reclaimed, 1 repaired, not 4");
}

TEST(ChangeJudge, TheWindowMovesOn) {
  Forty forty;
  for (int i = 0; i < 4; ++i) forty.judge.Audited(Decided("Reclaim"), kStart);
  for (int i = 0; i < 4; ++i) forty.judge.Audited(Decided("Reclaim"), kStart + 2min);
  EXPECT_FALSE(forty.Fails());
}

TEST(ChangeJudge, TheShareIsThatOfTheClusterAsItWas) {
  Forty forty;
  forty.judge.Has("a", 5, kStart + 1s);
  for (int i = 0; i < 4; ++i) forty.judge.Audited(Decided("Reclaim"), kStart + 119s);
  EXPECT_FALSE(forty.Fails());
  forty.judge.Has("a", 5, kStart + 3min);
  forty.judge.Audited(Decided("Reclaim"), kStart + 5min);
  EXPECT_FALSE(forty.Fails()) << "one is always allowed";
  forty.judge.Audited(Decided("Reclaim"), kStart + 5min);
  EXPECT_TRUE(forty.Fails());
}

TEST(ChangeJudge, PriorityAndOrdersAreNoChange) {
  Forty forty;
  for (int i = 0; i < 40; ++i) {
    forty.judge.Audited(Decided("Preempt"), kStart);
    forty.judge.Audited(Decided("Reclaim", Reason::kReclaimInstead), kStart);
    forty.judge.Audited(Decided("Repair", Reason::kRepairByHand), kStart);
    forty.judge.Audited(Decided("Bootstrap"), kStart);
  }
  EXPECT_FALSE(forty.Fails());
}

}  // namespace
}  // namespace muster::sim
