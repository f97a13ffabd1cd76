// What a restart keeps: the epoch, what the engine remembers, what the rails have seen.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "base/codec.h"
#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

TEST(ShardRestart, TheEpochIsDurableBeforeTheFirstCallThatCarriesIt) {
  auto core = *Core::Recover({}, {{kEpochRow.key(), codec::ToBytes(int64_t{7})}});
  std::vector<Core::Effect> effects;
  core.Step(contract::Wake{}, {.mono = MonoTime(1h), .wall = WallTime(1h)}, effects);
  ASSERT_GE(effects.size(), 2u);
  const auto& persist = std::get<contract::Persist>(effects[0]);
  EXPECT_EQ(persist.writes.back().key, kEpochRow.key());
  EXPECT_EQ(persist.writes.back().value, codec::ToBytes(int64_t{8}));
  EXPECT_EQ(core.lifecycle().epoch(), 8);
}

TEST(ShardRestart, EveryLifeHasAHigherEpoch) {
  Lab lab({.epoch_at_least = 5});
  lab.Add("m", 1, kIdle);
  lab.Start();
  EXPECT_EQ(lab.core().lifecycle().epoch(), 5);
  lab.Restart();
  EXPECT_EQ(lab.core().lifecycle().epoch(), 6);
  lab.config().epoch_at_least = 0;
  lab.Restart();
  EXPECT_EQ(lab.core().lifecycle().epoch(), 7);
}

// A settled fleet: two clusters, one of which wants more than there is.
void Settle(Lab& lab) {
  lab.Add("m", 6, kIdle);
  lab.Start();
  lab.ConnectWith("a", 4, 20);
  lab.ConnectWith("b", 5, 10);
  lab.Run(2s);
  lab.Finish();
  lab.Run(5s);
  ASSERT_EQ(lab.InState(kConfigured, "a"), 4);
  ASSERT_EQ(lab.InState(kConfigured, "b"), 2);
}

TEST(ShardRestart, AtStaticDemandCausesNoAction) {
  Lab lab;
  Settle(lab);
  const size_t before = lab.transitions.size();
  lab.Restart();
  lab.ConnectWith("b", 5, 10);
  lab.Run(8s);
  lab.ConnectWith("a", 4, 20);
  lab.Run(5min);
  EXPECT_EQ(lab.transitions.size(), before);
}

TEST(ShardRestart, HearsFromTheClustersItKnewBeforeItDecides) {
  Lab lab({.restart_grace = 15s});
  Settle(lab);
  lab.Restart();
  lab.Add("x", 1, kIdle);
  const int before = lab.cycles;
  lab.ConnectWith("b", 5, 10);
  lab.Run(10s);
  EXPECT_EQ(lab.cycles, before);
  lab.Run(6s);
  EXPECT_GT(lab.cycles, before) << "but not for ever";
}

// A machine is being drained for a cluster when the shard is restarted: so many are drained in the end.
int DrainsForAPledge() {
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 1, 10);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(1s);
  EXPECT_EQ(lab.InState(kDraining), 1);
  lab.Restart();
  lab.ConnectWith("a", 1, 10);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Add("n", 1, kConfigured, "a");
  lab.Run(1min);
  const int drains = lab.Count<contract::DrainRequest>();
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.InState(kConfiguring, "b"), 1);
  return drains;
}

TEST(ShardRestart, APledgeSurvives) {
  EXPECT_EQ(DrainsForAPledge(), 1) << "no second victim for what is on its way";
  const faults::ScopedMutant on("shard.pledges_forgotten");
  EXPECT_EQ(DrainsForAPledge(), 2);
}

TEST(ShardRestart, ACreatingMachineIsStillTheNeedsItWasBoughtFor) {
  Lab lab;
  lab.Add("m", 3, kSpeculative);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  ASSERT_EQ(lab.Count<contract::CreateRequest>(), 1);
  lab.Restart();
  lab.ConnectWith("a", 1);
  lab.Run(1min);
  EXPECT_EQ(lab.Count<contract::CreateRequest>(), 1);
}

TEST(ShardRestart, AgesOfShortNeedsAndArrivalsGoOn) {
  Lab lab;
  Settle(lab);
  lab.Run(1min);
  const auto before = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "b"}).needs.at(0);
  ASSERT_GT(before.age_cycles_unmet, 60);
  lab.now.wall -= 1h;
  lab.Run(1s);
  lab.Restart();
  lab.ConnectWith("a", 4, 20);
  lab.ConnectWith("b", 5, 10);
  lab.Run(2s);
  const auto after = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "b"}).needs.at(0);
  EXPECT_GE(after.age_cycles_unmet, before.age_cycles_unmet - 60) << "the cycle's number is stored now and then";
  EXPECT_GT(after.age_cycles_unmet, 10);
  EXPECT_EQ(after.need.arrival, before.need.arrival);
}

// The data directory was moved to another host, but the old process does not know.
TEST(ShardRestart, AZombieChangesNothing) {
  const auto provider = std::make_shared<LabProvider>();
  Lab zombie({.empty_rollup_guard = false}, provider);
  zombie.Add("m", 1, kIdle);
  zombie.Start();
  zombie.ConnectWith("a", 1);
  zombie.Run(1s);
  zombie.Finish();
  zombie.Run(1s);
  Lab successor({.empty_rollup_guard = false}, provider);
  successor.disk = zombie.disk;
  successor.now = zombie.now;
  successor.Start();
  successor.ConnectWith("a", 0);
  successor.Run(1s);
  successor.Finish();
  ASSERT_EQ(provider->machines.at("m-000").state, kIdle) << "given up by the one that is in charge";
  const auto machines = provider->machines;
  zombie.Run(1min);
  EXPECT_EQ(zombie.Count<contract::ConfigureRequest>(), 2) << "it wants the machine back, and is told why not";
  EXPECT_EQ(provider->machines, machines);
  EXPECT_EQ(zombie.Noted(model::Reason::kFenced), 1);
  zombie.ConnectWith("b", 1, 1'000'000);
  zombie.Run(10min);
  EXPECT_EQ(zombie.transitions.size(), 2u);
  EXPECT_EQ(provider->machines, machines);
}

// Half of the time with the right clock, half with one that was set back by an hour; and once more set forward.
TEST(ShardRestart, TheWallClockSetBackChangesNoAge) {
  for (const Duration by : {Duration(-1h), Duration(1h)}) {
    Lab lab({.reclaim_window = 10min});
    lab.config().policy.surplus_hold = 60s;
    lab.Add("m", 10, kConfigured, "a");
    lab.Add("i", 1, kIdle);
    lab.Put(Lab::MakeMachine("f", kFailed));
    lab.Start();
    lab.ConnectWith("a", 10);
    lab.Rollup("a", 9);
    lab.Run(30s);
    lab.now.wall += by;
    lab.Run(25s);
    EXPECT_TRUE(lab.transitions.empty());
    lab.Run(10s);
    EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1) << "the surplus hold, a minute";
    EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1) << "the pause before a repair, a minute";
    lab.Rollup("a", 8);
    lab.now.wall += by;
    lab.Run(8min);
    EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1) << "the budget's window, ten minutes";
    EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1) << "the hold of an Idle machine, ten minutes";
    lab.Run(3min);
    EXPECT_EQ(lab.Count<contract::DrainRequest>(), 2);
    EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 2);
  }
}

TEST(ShardRestart, IdleIsStampedAnew) {
  Lab lab;
  lab.Add("m", 1, kIdle);
  lab.Start();
  lab.Run(9min);
  lab.Restart();
  lab.Run(9min);
  EXPECT_TRUE(lab.transitions.empty());
  lab.Run(2min);
  EXPECT_EQ(lab.Count<contract::DeleteRequest>(), 1);
}

TEST(ShardRestart, RefusesAStateThatCannotBeRead) {
  const auto core = Core::Recover({}, {{"epoch", "\xff"}});
  ASSERT_FALSE(core.has_value());
  EXPECT_EQ(core.error().code(), Code::kDataLoss);
  EXPECT_EQ(core.error().message(),
            "row epoch of the shard's state cannot be read; restore it from a backup, or remove the state and start "
            "with --epoch-at-least N, above every epoch this shard has had");
  EXPECT_FALSE(Core::Recover({}, {{"something", ""}}).has_value());
  EXPECT_EQ(Core::Recover({}, {{"format", codec::ToBytes(kFormat + 1)}}).error().code(), Code::kFailedPrecondition);
}

TEST(ShardRestart, RefusesToBeginAnewOverMachinesItHasBound) {
  Lab lab;
  Settle(lab);
  lab.disk.clear();
  lab.Restart();
  ASSERT_EQ(lab.stops.size(), 1u);
  EXPECT_EQ(lab.stops[0].why.message(),
            "machine m-005 was bound by this shard in epoch 1, but its state is not there; restore the data "
            "directory, or start with --epoch-at-least 1001");
  EXPECT_TRUE(lab.disk.empty());
  lab.config().epoch_at_least = 1001;
  lab.Restart();
  EXPECT_EQ(lab.stops.size(), 1u);
  EXPECT_EQ(lab.core().lifecycle().epoch(), 1001);
}

TEST(ShardRestart, EpochsNearTheEndOfTheirRangeAreRefused) {
  faults::ResetProbes();
  {
    const faults::ScopedMutant on("shard.epoch_wraps");
    Lab lab({.epoch_at_least = kHighestEpoch + 1});
    lab.Start();
    EXPECT_TRUE(lab.stops.empty());
  }
  for (const int64_t epoch : {kHighestEpoch, std::numeric_limits<int64_t>::max()}) {
    Lab lab;
    lab.disk = {{"format", codec::ToBytes(uint64_t{1})}, {"epoch", codec::ToBytes(epoch)}};
    const auto before = lab.disk;
    lab.Start();
    ASSERT_EQ(lab.stops.size(), 1u);
    EXPECT_NE(lab.stops[0].why.message().find(fmt::format("epoch {} is beyond", epoch)), std::string::npos);
    EXPECT_EQ(lab.disk, before);
    EXPECT_EQ(lab.core().lifecycle().epoch(), 0);
  }
  Lab given({.epoch_at_least = std::numeric_limits<int64_t>::max()});
  given.Start();
  EXPECT_EQ(given.stops.size(), 1u);
  EXPECT_EQ(faults::ProbeHits()["shard.epochs_used_up"], 3u);
  Lab highest({.epoch_at_least = kHighestEpoch});
  highest.Start();
  EXPECT_EQ(highest.core().lifecycle().epoch(), kHighestEpoch);
}

TEST(ShardRestart, ATakeoverBeginsAboveTheEpochsThatMachinesShow) {
  Lab lab;
  lab.Add("m", 3, kConfigured, "a");
  for (const auto& [id, by] : std::map<std::string, std::string>{{"m-000", "7/other"}, {"m-001", "41/other"}}) {
    model::Machine machine = lab.machines.at(id);
    machine.shard_metadata["muster.v1/bound-by"] = by;
    lab.Put(machine);
  }
  lab.Start();
  EXPECT_TRUE(lab.stops.empty());
  EXPECT_EQ(lab.core().lifecycle().epoch(), 42);
  EXPECT_EQ(lab.Noted(model::Reason::kEpochFound), 1);
  ASSERT_EQ(lab.audits.size(), 1u);
  EXPECT_EQ(lab.audits[0].action.kind, "Takeover");
  EXPECT_EQ(lab.audits[0].action.error, "epoch 42: machine m-001 was bound by other in epoch 41");
}

// Other makes do not write their epoch into the metadata: nothing can be found, and that is said.
TEST(ShardRestart, ATakeoverOfMachinesThatDoNotSayTheirEpochIsTold) {
  const auto told = [] {
    Lab lab;
    lab.Add("m", 3, kConfigured, "a");
    lab.Add("i", 1, kIdle);
    lab.Start();
    EXPECT_EQ(lab.core().lifecycle().epoch(), 1);
    return lab.audits.empty() ? "" : lab.audits[0].action.error;
  };
  EXPECT_TRUE(
      told().starts_with("epoch 1: 3 machines, m-000 among them, were bound by a shard that does not tell its "
                         "epoch"))
      << told();
  {
    const faults::ScopedMutant on("shard.takeover_untold");
    EXPECT_EQ(told(), "");
  }
  Lab given({.epoch_at_least = 500});
  given.Add("m", 3, kConfigured, "a");
  given.Start();
  EXPECT_EQ(given.core().lifecycle().epoch(), 500);
  EXPECT_TRUE(given.audits.empty()) << "who gives an epoch knows";
}

TEST(ShardRestart, ALoadedCoreGoesOnAsTheSavedOne) {
  Lab lab;
  Settle(lab);
  lab.Add("x", 2, kSpeculative);
  lab.silent = true;
  lab.Run(1500ms);
  auto loaded = Core::Load(lab.core().Save());
  ASSERT_TRUE(loaded.has_value());
  for (int i = 0; i < 50; ++i) {
    const Now now{.mono = lab.now.mono + i * 1s, .wall = lab.now.wall + i * 1s};
    std::vector<Core::Effect> saved;
    std::vector<Core::Effect> again;
    lab.core().Step(contract::Wake{}, now, saved);
    loaded->Step(contract::Wake{}, now, again);
    ASSERT_EQ(codec::Digest(saved), codec::Digest(again)) << "step " << i;
  }
  EXPECT_EQ(loaded->Save() == lab.core().Save(), true);
  EXPECT_FALSE(Core::Load("junk").has_value());
}

}  // namespace
}  // namespace muster::shard
