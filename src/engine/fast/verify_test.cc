// Verify finds what is wrong with a table: each planted bug breaks one, and the engine says which and how.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/probe.h"
#include "engine/fast/follower.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

model::Machine Machine(const std::string& id, MachineState state, const std::string& cluster = "") {
  model::Machine machine{.id = id, .state = state, .cluster = cluster};
  machine.zone = "z";
  machine.resources = {{"cpu", 1000}};
  return machine;
}

model::Need Need(const std::string& cluster, int64_t cpu, const std::string& group = "") {
  return {.cluster = cluster, .profile = {}, .aggregate = {{"cpu", cpu}}, .group = group};
}

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() : follower_(Policy{}) { world_.clusters["a"] = {}; }

  void Decide() {
    follower_.Update(world_);
    follower_.Decide(MonoTime(std::chrono::seconds(3600 + ++cycle_)));
    ASSERT_EQ(follower_.engine().Verify(), "");
  }

  World world_;
  Follower follower_;
  int cycle_ = 0;
};
using VerifyDeathTest = VerifyTest;

TEST_F(VerifyDeathTest, ClassThatIsNotIndexed) {
  world_.machines.push_back(Machine("m", MachineState::kIdle));
  Decide();
  world_.machines[0].zone = "y";
  const faults::ScopedMutant on("fast.class_unindexed");
  EXPECT_DEATH(Decide(), "catalogue: class 1 is not listed under topology.kubernetes.io/zone=y");
}

TEST_F(VerifyDeathTest, LabelsThatDoNotFollowIds) {
  for (const char* id : {"b", "d"}) world_.machines.push_back(Machine(id, MachineState::kIdle));
  Decide();
  for (const char* id : {"a", "c", "e"}) world_.machines.push_back(Machine(id, MachineState::kIdle));
  const faults::ScopedMutant on("fast.labels_kept");
  EXPECT_DEATH(Decide(), "machines: labels do not follow ids");
}

TEST_F(VerifyDeathTest, MachineThatCameBackBesideItsGap) {
  for (int i = 0; i < 20; ++i) world_.machines.push_back(Machine(fmt::format("{:02}", i), MachineState::kIdle));
  Decide();
  world_.machines[5].state = MachineState::kFailed;
  Decide();
  world_.machines[5].state = MachineState::kIdle;
  const faults::ScopedMutant on("fast.gap_forgotten");
  EXPECT_DEATH(Decide(), "groups: members of [0-9]+: id set: 20 . 1 machines, counted 20");
}

TEST_F(VerifyDeathTest, PledgeThatEndedUnnoticed) {
  Memory memory;
  memory.machines["m"].pledge = KeyOf(Need("a", 0, "x"));
  follower_.engine().Restore(memory);
  world_.machines.push_back(Machine("m", MachineState::kIdle));
  world_.needs.push_back(Need("a", 0, "x"));  // covered without it
  const faults::ScopedMutant on("fast.dirty_missed");
  EXPECT_DEATH(Decide(), "groups: m is in a group that it does not belong to");
}

TEST_F(VerifyDeathTest, NeedsOutOfOrder) {
  world_.needs = {Need("b", 1000), Need("a", 1000)};
  world_.clusters["b"] = {};
  follower_.engine().SetCluster("b", {});  // the first it hears of
  const faults::ScopedMutant on("fast.cluster_order");
  EXPECT_DEATH(Decide(), "need 1 is before its turn");
}

TEST_F(VerifyDeathTest, MachinesThatTwoNeedsClaimed) {
  world_.machines = {Machine("m1", MachineState::kIdle), Machine("m2", MachineState::kIdle)};
  world_.needs = {Need("a", 1000, "x"), Need("a", 1000, "y")};
  const faults::ScopedMutant on("fast.double_claim");
  EXPECT_DEATH(Decide(), "machines of (a group|group [0-9]+) ");
}

TEST_F(VerifyDeathTest, KeyThatIsForgottenInUse) {
  world_.machines.push_back(Machine("m", MachineState::kConfigured, "a"));
  world_.needs.push_back(Need("a", 1000, "x"));
  Decide();
  world_.clusters["a"].gate_open = false;
  world_.needs.clear();
  const faults::ScopedMutant on("fast.key_in_use");
  EXPECT_DEATH(
      {
        for (int i = 0; i < 5; ++i) Decide();
      },
      "references: key [0-9]+ is in use and spare");
}

// Fleets that change in every way leave nothing for Verify to find: Decide() asks after every cycle.
TEST_F(VerifyTest, HoldsWhileEverythingChanges) {
  for (int cycle = 0; cycle < 60; ++cycle) {
    world_.machines.clear();
    world_.needs.clear();
    for (int i = 0; i < 40; ++i) {
      const int dice = (i * 7 + cycle * (1 + i % 3)) % 11;
      if (dice == 0) continue;  // gone
      const MachineState state = dice < 4   ? MachineState::kConfigured
                                 : dice < 6 ? MachineState::kIdle
                                 : dice < 7 ? MachineState::kDraining
                                 : dice < 9 ? MachineState::kSpeculative
                                            : MachineState::kFailed;
      const bool bound = state == MachineState::kConfigured || state == MachineState::kDraining;
      world_.machines.push_back(Machine(fmt::format("m{}", i), state, bound ? "a" : ""));
      world_.machines.back().price_per_hour.micros = i % 4;
    }
    for (int i = 0; i < 6; ++i) world_.needs.push_back(Need("a", 1000 * ((cycle + i) % 5), fmt::format("g{}", i / 2)));
    Decide();
  }
}

}  // namespace
}  // namespace muster::engine::fast
