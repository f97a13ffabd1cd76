#include "engine/fast/id_set.h"

#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"

namespace muster::engine::fast {
namespace {

class IdSetTest : public testing::Test {
 protected:
  static constexpr uint32_t kMachines = 400;

  IdSetTest() {
    // Labels that order machines otherwise than their numbers.
    for (uint32_t m = 0; m < kMachines; ++m) labels_.Add((uint64_t{m} * 7919 + 13) % 10'007);
  }
  bool Lives(MachineId m) const { return in_.contains({labels_[m], m}); }
  auto lives() const {
    return [this](MachineId m) { return Lives(m); };
  }
  void Add(MachineId m) {
    in_.emplace(labels_[m], m);
    set_.Add(m, labels_, lives());
  }
  void Remove(MachineId m) {
    in_.erase({labels_[m], m});
    set_.Remove(m, labels_, lives());
  }
  std::vector<MachineId> Walk(IdSet::Cursor cursor) const {
    std::vector<MachineId> machines;
    for (MachineId m = set_.Next(cursor, labels_, lives()); m.valid(); m = set_.Next(cursor, labels_, lives())) {
      machines.push_back(m);
    }
    return machines;
  }
  std::vector<MachineId> Expected(size_t skip = 0) const {
    std::vector<MachineId> machines;
    for (const auto& [label, m] : in_) machines.push_back(m);
    machines.erase(machines.begin(), machines.begin() + static_cast<ptrdiff_t>(std::min(skip, machines.size())));
    return machines;
  }

  Labels labels_;
  std::set<std::pair<uint64_t, MachineId>> in_;
  IdSet set_;
};

TEST_F(IdSetTest, WalksInTheOrderOfIdsThroughRandomChanges) {
  Rng rng(2);
  for (int i = 0; i < 4000; ++i) {
    const MachineId m(static_cast<uint32_t>(rng.Below(kMachines)));
    Lives(m) ? Remove(m) : Add(m);
    if (rng.Below(200) == 0) set_.DropGaps(labels_, lives());
    ASSERT_EQ(set_.size(), in_.size());
    ASSERT_EQ(set_.Verify(labels_, lives()), "") << "change " << i;
    if (i % 20 != 0) continue;
    ASSERT_EQ(Walk(set_.Begin()), Expected()) << "change " << i;
    const auto skip = static_cast<uint32_t>(rng.Below(in_.size() + 2));
    IdSet::Cursor cursor = set_.Begin();
    set_.Skip(cursor, skip, labels_, lives());
    ASSERT_EQ(Walk(cursor), Expected(skip)) << "change " << i;
  }
}

TEST_F(IdSetTest, AMachineThatComesBackTakesItsPlaceAgain) {
  for (uint32_t m = 0; m < 100; ++m) Add(MachineId(m));
  const MachineId middle = Expected()[50];
  Remove(middle);
  Add(middle);
  EXPECT_EQ(Walk(set_.Begin()), Expected());
  EXPECT_EQ(Expected()[50], middle);
}

TEST_F(IdSetTest, IsEmptyAfterClear) {
  for (uint32_t m = 0; m < 100; ++m) Add(MachineId(m));
  in_.clear();
  set_.Clear();
  EXPECT_EQ(set_.size(), 0u);
  EXPECT_TRUE(Walk(set_.Begin()).empty());
  Add(MachineId(7));
  EXPECT_EQ(Walk(set_.Begin()), Expected());
}

TEST_F(IdSetTest, VerifyFindsMachinesOutOfOrder) {
  for (uint32_t m = 0; m < 10; ++m) Add(MachineId(m));
  std::swap(labels_[MachineId(0)], labels_[MachineId(5)]);
  in_.clear();
  for (uint32_t m = 0; m < 10; ++m) in_.emplace(labels_[MachineId(m)], MachineId(m));
  EXPECT_NE(set_.Verify(labels_, lives()).find("out of order"), std::string::npos);
}

TEST_F(IdSetTest, VerifyFindsAMachineThatLeftWithoutBeingRemoved) {
  for (uint32_t m = 0; m < 10; ++m) Add(MachineId(m));
  in_.erase(std::prev(in_.end()));
  EXPECT_NE(set_.Verify(labels_, lives()), "");
}

}  // namespace
}  // namespace muster::engine::fast
