// IdMerge and Tied: several groups as one, in the order of their machines' ids.
#include "engine/fast/id_merge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/fast/tied.h"

namespace muster::engine::fast {
namespace {

using Ids = std::vector<std::string>;

class MergeTest : public testing::Test {
 protected:
  // Three groups of Idle machines that differ in price: ids 00, 03, 06... in the first, 01, 04... in the second.
  MergeTest() : view_(inventory_) {
    for (int i = 0; i < 12; ++i) {
      model::Machine machine{.id = fmt::format("{:02}", i), .state = model::MachineState::kIdle};
      machine.price_per_hour.micros = i % 3;
      inventory_.Upsert(machine, model::DigestOf(machine));
    }
    inventory_.BeginCycle(MonoTime(std::chrono::hours(1)));
    for (int i = 0; i < 3; ++i) groups_.push_back(inventory_.group_of(inventory_.Find(fmt::format("{:02}", i))));
  }
  void Claim(GroupId g, uint32_t count) { inventory_.Open(g).claimed += count; }
  std::string Id(MachineId m) const { return std::string(inventory_.id(m)); }

  Inventory inventory_;
  ClaimView view_;
  std::vector<GroupId> groups_;
};

TEST_F(MergeTest, MergesGroupsById) {
  IdMerge merge(view_);
  for (const GroupId g : groups_) merge.Add(g);
  Ids ids;
  for (; !merge.empty(); merge.Step()) {
    EXPECT_EQ(merge.source(), ids.size() % 3);
    ids.push_back(Id(merge.machine()));
  }
  EXPECT_EQ(ids, (Ids{"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"}));
}

TEST_F(MergeTest, LeavesOutWhatIsClaimedAndDroppedSources) {
  Claim(groups_[0], 2);
  Claim(groups_[2], 4);
  IdMerge merge(view_);
  EXPECT_EQ(Id(merge.Add(groups_[0])), "06");
  EXPECT_EQ(Id(merge.Add(groups_[1])), "01");
  EXPECT_EQ(merge.Add(groups_[2]), kNoMachine);
  Ids ids;
  while (!merge.empty()) {
    ids.push_back(Id(merge.machine()));
    ids.size() == 3 ? merge.DropSource() : merge.Step();
  }
  EXPECT_EQ(ids, (Ids{"01", "04", "06", "07", "10"}));
}

TEST_F(MergeTest, TiedGivesTheGroupWhoseTurnItIs) {
  Tied tied;
  tied.groups = groups_;
  EXPECT_EQ(tied.Count(view_, 100), 12);
  EXPECT_EQ(tied.First(view_), groups_[0]);
  Claim(groups_[0], 1);
  EXPECT_EQ(tied.First(view_), groups_[1]);
  Claim(groups_[1], 4);
  EXPECT_EQ(tied.First(view_), groups_[2]);
  EXPECT_EQ(tied.Count(view_, 100), 7);
  EXPECT_GE(tied.Count(view_, 3), 3);
}

TEST_F(MergeTest, AWalkOverTiedGroupsCanBeginAgain) {
  Tied tied;
  tied.groups = {groups_[0], groups_[2]};
  TiedWalk walk(view_);
  const auto first = [&](size_t count) {
    Ids ids;
    walk.Begin(&tied, std::span(&groups_[1], 1));
    for (; ids.size() < count; walk.Step()) ids.push_back(Id(walk.machine()));
    walk.End();
    return ids;
  };
  EXPECT_EQ(first(4), (Ids{"00", "01", "02", "03"}));
  EXPECT_EQ(first(2), (Ids{"00", "01"}));
  Claim(groups_[0], 2);
  EXPECT_EQ(first(4), (Ids{"01", "02", "04", "05"}));
}

TEST_F(MergeTest, WhatAPlannerClaimsApartIsItsOwn) {
  view_.BeginPrivate();
  view_.Claim(groups_[0], 3);
  EXPECT_EQ(view_.Remaining(groups_[0]), 1u);
  EXPECT_EQ(inventory_.Remaining(groups_[0]), 4u);
  IdMerge merge(view_);
  EXPECT_EQ(Id(merge.Add(groups_[0])), "09");
  view_.EndPrivate();
  EXPECT_EQ(view_.Remaining(groups_[0]), 4u);
}

}  // namespace
}  // namespace muster::engine::fast
