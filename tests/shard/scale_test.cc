// What a step of the shard costs follows what happens in it, not what waits: parts of a shard with as many machines
// waiting as a lost zone of a large fleet has. The limits are processor time, so that a busy machine does not matter,
// and a hundred times what the parts need; a walk over all that waits for each event would go beyond them many times.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <functional>
#include <string>
#include <utility>

#include "core/shard/engine_view.h"
#include "core/shard/holds.h"
#include "core/shard/lab_for_test.h"
#include "core/shard/losses.h"
#include "core/shard/machines.h"
#include "core/shard/rails.h"
#include "core/shard/step_for_test.h"

namespace muster::shard {
namespace {

constexpr double kLimit = 2;  // seconds

double ProcessorSeconds(const std::function<void()>& work) {
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  };
  const double before = used();
  work();
  return used() - before;
}

std::string Name(int number) { return fmt::format("machine-{:06}", number); }

TEST(ShardScale, ALossIsTakenOutOfItsWindowWithoutAWalk) {
  constexpr int kMachines = 100'000;
  LossWindow window({});
  for (int i = 0; i < kMachines; ++i) window.Add({.at = MonoTime(1s), .machine = Name(i), .cluster = "a"});
  EXPECT_LT(ProcessorSeconds([&] {
              for (int i = kMachines; i-- > 0;) EXPECT_TRUE(window.Remove(Name(i)));
            }),
            kLimit);
  EXPECT_EQ(window.total(), 0);
}

TEST(ShardScale, AnOperationThatEndsLooksAtNoHoldButItsOwn) {
  constexpr int kMachines = 30'000;
  const Config config;
  StepForTest step(config);
  Holds holds(config, {});
  for (int i = 0; i < kMachines; ++i) holds.OnOtherFailed(Name(i), step.ctx);
  EXPECT_LT(ProcessorSeconds([&] {
              for (int i = 0; i < kMachines; ++i) holds.OnUndecided(Name(i));
            }),
            kLimit);
}

TEST(ShardScale, MissingMachinesThatMustWaitCostACycleNothing) {
  constexpr int kMachines = 20'000;
  constexpr int kCycles = 2'000;
  const Config config;
  EngineView engine({}, nullptr);
  Clusters clusters({});
  Machines machines(engine, clusters, {});
  Losses losses(config, clusters, machines, {});
  const ActuationModes modes({});
  ChangeBudget budget(config, {});
  for (int i = 0; i < kMachines; ++i) {
    machines.Add({.record = contract::MachineRecord({.id = Name(i),
                                                     .state = model::MachineState::kConfigured,
                                                     .instance_type = "m",
                                                     .zone = "a",
                                                     .resources = {{"cpu", 1000}},
                                                     .cluster = i % 2 == 0 ? "a" : "b"})});
  }
  StepForTest step(config);
  for (int i = 0; i < kMachines; ++i) {
    if (losses.OnVanished(*machines.Find(Name(i))->record, budget, step.ctx)) continue;
    machines.Put(Name(i), SetAside::kMissing);
  }
  EXPECT_FALSE(losses.TakeReplaced(modes, budget, step.ctx).empty());
  ASSERT_GT(losses.missing(), 10'000u);
  EXPECT_LT(ProcessorSeconds([&] {
              for (int i = 0; i < kCycles; ++i) EXPECT_TRUE(losses.TakeReplaced(modes, budget, step.ctx).empty());
            }),
            kLimit);
}

// 2.6 MB of names that no machine has: the roll-up, and the cycles that decide with it.
TEST(ShardScale, ARollupOfManyNamesDoesNotStopTheLoop) {
  model::Need need;
  for (int i = 0; i < 100'000; ++i) need.aggregate.Set(fmt::format("things.example/{:010}", i), 1);
  Lab lab;
  lab.Add("m", 10, model::MachineState::kIdle);
  lab.Start();
  lab.ConnectWith("b", 10);
  lab.Connect("a");
  const contract::Rollup rollup{.cluster_id = "a", .rows = contract::NeedRows({need})};
  EXPECT_LT(ProcessorSeconds([&] {
              lab.Say("a", rollup);
              lab.Run(5s);
            }),
            kLimit);
  EXPECT_TRUE(lab.core().demand().clusters().at("a").accepted);
  EXPECT_EQ(lab.InState(model::MachineState::kConfiguring, "b"), 10);
}

}  // namespace
}  // namespace muster::shard
