// Failures move on: what failed is held, needs take the next best, and nothing is asked for again and again.
#include <gtest/gtest.h>

#include "base/probe.h"
#include "core/shard/lab_for_test.h"

namespace muster::shard {
namespace {

using enum model::MachineState;

// Speculative machines "<name>-000" and on of a zone or type and a price.
void Offer(Lab& lab, const std::string& name, int count, const std::string& zone, int64_t dollars,
           const std::string& type = "m") {
  for (int i = 0; i < count; ++i) {
    model::Machine machine = Lab::MakeMachine(fmt::format("{}-{:03}", name, i), kSpeculative);
    machine.zone = zone;
    machine.instance_type = type;
    machine.price_per_hour = {dollars * 1'000'000};
    lab.Put(machine);
  }
}

// Refuses Creates of machines whose id begins so.
void RefuseCreates(Lab& lab, const std::string& prefix, Code code) {
  lab.refuses = [prefix, code](const contract::ProviderRequest& request) {
    const auto* create = std::get_if<contract::CreateRequest>(&request);
    const bool hit = create != nullptr && create->machine_id.starts_with(prefix);
    return hit ? Status(code, "no more") : Status();
  };
}

int Creates(const Lab& lab, const std::string& prefix) {
  int count = 0;
  for (const auto& transition : lab.transitions) {
    const auto* create = std::get_if<contract::CreateRequest>(&transition);
    count += create != nullptr && create->machine_id.starts_with(prefix) ? 1 : 0;
  }
  return count;
}

int ConfiguresFor(const Lab& lab, const std::string& cluster) {
  int count = 0;
  for (const auto& transition : lab.transitions) {
    const auto* configure = std::get_if<contract::ConfigureRequest>(&transition);
    count += configure != nullptr && configure->cluster_id == cluster ? 1 : 0;
  }
  return count;
}

contract::MachineView ViewOf(Lab& lab, const std::string& id) {
  for (const auto& view : lab.AskFor<contract::MachinesListed>(contract::ListMachines{}).machines) {
    if (view.machine->id == id) return view;
  }
  return {};
}

model::Reason WhyShort(Lab& lab, const std::string& cluster) {
  return lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = cluster}).needs.at(0).reason;
}

TEST(ShardHolds, AFailedCreateMovesOnToTheNextMachine) {
  Lab lab;
  Offer(lab, "s", 3, "a", 1);
  RefuseCreates(lab, "s-000", Code::kInternal);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  EXPECT_EQ(Creates(lab, "s-000"), 1);
  EXPECT_EQ(Creates(lab, "s-001"), 1);
  EXPECT_EQ(lab.core().View()->shortfalls, 0u);
  EXPECT_EQ(lab.core().View()->holds.at("machine"), 1u);
  const contract::MachineView held = ViewOf(lab, "s-000");
  EXPECT_EQ(held.hold, "Create failed 1 times in a row");
  EXPECT_GT(*held.hold_until, lab.now.wall);
  EXPECT_EQ(ViewOf(lab, "s-001").hold, "");
}

int CreatesOfWhatFailsForOneMinute() {
  Lab lab;
  Offer(lab, "s", 3, "a", 1);
  RefuseCreates(lab, "s-000", Code::kInternal);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1min);
  return Creates(lab, "");
}

TEST(ShardHolds, AMachineThatFailsIsNotAskedForEveryCycle) {
  EXPECT_EQ(CreatesOfWhatFailsForOneMinute(), 2);
  const faults::ScopedMutant on("shard.failed_create_not_held");
  EXPECT_EQ(CreatesOfWhatFailsForOneMinute(), 4) << "until its class is held, and a probe";
}

// 2 s and 4 s for the machine; its third failure within a minute holds the class, for 30 s and then 60 s.
TEST(ShardHolds, HoldsDoubleAndAClassIsHeldAfterThreeFailures) {
  faults::ResetProbes();
  Lab lab;
  Offer(lab, "s", 1, "a", 1);
  RefuseCreates(lab, "s", Code::kInternal);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1900ms);
  EXPECT_EQ(Creates(lab, "s"), 1);
  lab.Run(1500ms);
  EXPECT_EQ(Creates(lab, "s"), 2);
  lab.Run(2500ms);
  EXPECT_EQ(Creates(lab, "s"), 2);
  lab.Run(1500ms);
  EXPECT_EQ(Creates(lab, "s"), 3);
  EXPECT_EQ(lab.core().View()->holds.at("class"), 1u);
  EXPECT_EQ(WhyShort(lab, "a"), model::Reason::kOutOfStock);
  lab.Run(27s);
  EXPECT_EQ(Creates(lab, "s"), 3);
  lab.Run(5s);
  EXPECT_EQ(Creates(lab, "s"), 4) << "the probe";
  lab.Run(55s);
  EXPECT_EQ(Creates(lab, "s"), 4);
  lab.Run(10s);
  EXPECT_EQ(Creates(lab, "s"), 5);
  EXPECT_EQ(faults::ProbeHits()["shard.probe_failed"], 2u);
  lab.refuses = nullptr;
  lab.Run(3min);
  EXPECT_EQ(Creates(lab, "s"), 6);
  lab.Finish();
  lab.Run(2s);
  EXPECT_TRUE(lab.core().View()->holds.empty()) << "a success ends it";
  EXPECT_EQ(ConfiguresFor(lab, "a"), 1);
}

// What a stock-out by zone or by type costs: one failed call, and the dearer machines are bought in the next cycle.
void ExpectMovesOn(const std::string& zone, const std::string& type) {
  Lab lab({.execute_concurrency = 1});
  Offer(lab, "cheap", 10, "a", 1);
  Offer(lab, "dear", 10, zone, 2, type);
  RefuseCreates(lab, "cheap", Code::kResourceExhausted);
  lab.Start();
  lab.ConnectWith("a", 5);
  lab.Run(1s);
  EXPECT_EQ(Creates(lab, "cheap"), 1);
  EXPECT_EQ(Creates(lab, "dear"), 5);
  EXPECT_EQ(lab.Outcomes("on_hold"), 4) << "what had begun is left for later";
  EXPECT_EQ(lab.core().View()->shortfalls, 0u);
  EXPECT_EQ(ViewOf(lab, "cheap-009").hold, "on-demand m in a is out of stock");
  lab.Run(1min);
  EXPECT_EQ(Creates(lab, ""), 6) << "nobody wants more";
}

TEST(ShardHolds, AStockOutOfAZoneOrATypeMovesOn) {
  faults::ResetProbes();
  ExpectMovesOn("b", "m");
  ExpectMovesOn("a", "n");
  EXPECT_EQ(faults::ProbeHits()["shard.held_in_queue"], 8u);
}

int CreatesOfAStockOut() {
  Lab lab({.execute_concurrency = 1});
  Offer(lab, "cheap", 10, "a", 1);
  Offer(lab, "dear", 10, "b", 2);
  RefuseCreates(lab, "cheap", Code::kResourceExhausted);
  lab.Start();
  lab.ConnectWith("a", 5);
  lab.Run(1s);
  return Creates(lab, "cheap");
}

TEST(ShardHolds, WithoutAHoldOfTheClassAllOfItIsTried) {
  EXPECT_EQ(CreatesOfAStockOut(), 1);
  const faults::ScopedMutant on("shard.no_class_hold");
  EXPECT_EQ(CreatesOfAStockOut(), 10);
}

// A class whose hold has passed, and a gang that wants three machines of it. How many Creates are sent at once.
int CreatesOfAGangAfterAHold(Lab& lab) {
  lab.config().hold_first = 5s;
  for (int i = 0; i < 3; ++i) {
    model::Machine machine = Lab::MakeMachine(fmt::format("s-{:03}", i), kSpeculative);
    machine.labels = {{"rack", "r1"}};
    lab.Put(machine);
  }
  RefuseCreates(lab, "s", Code::kResourceExhausted);
  lab.Start();
  lab.Connect("a");
  const model::Need gang{
      .profile = model::Profile({.requirements = {{.key = "rack", .op = model::Operator::kSame}}, .priority = 10}),
      .aggregate = {{"cpu", 3000}},
      .min_unit = {{"cpu", 1000}},
      .group = "g"};
  lab.Say("a", contract::Rollup{.cluster_id = "a", .timestamp = lab.now.wall, .rows = contract::NeedRows({gang})});
  lab.Run(3s);
  EXPECT_EQ(WhyShort(lab, "a"), model::Reason::kOutOfStock);
  lab.refuses = nullptr;
  const int before = Creates(lab, "s");
  lab.Run(5s);
  return Creates(lab, "s") - before;
}

TEST(ShardHolds, AfterTheHoldOneProbeGoesAheadAndAGangIsNotDeadlocked) {
  faults::ResetProbes();
  Lab lab;
  EXPECT_EQ(CreatesOfAGangAfterAHold(lab), 1);
  lab.Run(20s);
  EXPECT_EQ(Creates(lab, "s"), 3 + 1) << "the rest waits for how it ends";
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(Creates(lab, "s"), 3 + 3);
  for (const char* probe : {"shard.failed_while_held", "shard.probe_sent", "shard.hold_ended"}) {
    EXPECT_GT(faults::ProbeHits()[probe], 0u) << probe;
  }
  const faults::ScopedMutant on("shard.no_probe");
  Lab other;
  EXPECT_EQ(CreatesOfAGangAfterAHold(other), 3);
}

TEST(ShardHolds, ACreateThatEndsInFailedCountsAndIsToldAsAFailure) {
  faults::ResetProbes();
  Lab lab;
  Offer(lab, "s", 1, "a", 1);
  Offer(lab, "t", 1, "b", 2);
  lab.breaks = [](const model::Machine& machine) { return machine.zone == "a"; };
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  ASSERT_EQ(lab.Outcomes("success"), 1) << "acknowledged";
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.Outcomes("failed"), 1);
  EXPECT_EQ(faults::ProbeHits()["shard.transition_ended_in_failed"], 1u);
  EXPECT_EQ(lab.core().View()->counters.outcomes.at({"Provision", "failed"}), 1u);
  const auto actions = lab.AskFor<contract::ActionsListed>(contract::ListActions{}).actions;
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(actions[1].outcome, "failed") << "the line of the action says so";
  EXPECT_EQ(actions[1].error, "broken");
  EXPECT_EQ(Creates(lab, "t"), 1);
  const faults::ScopedMutant on("shard.failed_told_as_success");
  lab.breaks = [](const model::Machine&) { return true; };
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.Outcomes("failed"), 1);
}

// The answer to a Create is lost, and the Create ends in Failed for want of stock. Whether the class is held.
bool HoldsTheClassOfALostCreate() {
  Lab lab;
  Offer(lab, "s", 3, "a", 1);
  lab.refusal = Status(Code::kUnavailable, "lost");
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(100ms);
  const std::string id = std::get<contract::CreateRequest>(lab.transitions.at(0)).machine_id;
  model::Machine failed = lab.machines.at(id);
  failed.state = kFailed;
  failed.last_error = "Create failed: RESOURCE_EXHAUSTED: none left";
  lab.Put(failed);
  lab.refusal = {};
  lab.Run(1s);
  const bool told = lab.Outcomes("failed") == 1;
  return told && lab.core().View()->holds.contains("class");
}

TEST(ShardHolds, ACreateWhoseAnswerIsLostCountsWhenItEndsInFailed) {
  EXPECT_TRUE(HoldsTheClassOfALostCreate());
  const faults::ScopedMutant on("shard.unheard_create_not_held");
  EXPECT_FALSE(HoldsTheClassOfALostCreate());
}

TEST(ShardHolds, AFailedConfigureHoldsTheMachineForThatClusterOnly) {
  Lab lab;
  lab.Add("m", 2, kIdle);
  lab.refuses = [](const contract::ProviderRequest& request) {
    const auto* configure = std::get_if<contract::ConfigureRequest>(&request);
    const bool hit = configure != nullptr && configure->cluster_id == "a" && configure->machine_id == "m-000";
    return hit ? Status(Code::kInternal, "no") : Status();
  };
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(1s);
  EXPECT_EQ(lab.machines.at("m-001").cluster, "a");
  EXPECT_EQ(ViewOf(lab, "m-000").hold, "Configure for a failed 1 times in a row");
  lab.ConnectWith("b", 1);
  lab.Run(500ms);
  EXPECT_EQ(lab.machines.at("m-000").cluster, "b") << "the other cluster may have it";
}

// A fleet of 72, a cluster whose Configures end in Failed, and another that comes later. How many of the fleet are
// Failed after 45 s.
int FailedByABadTemplate(Lab& lab) {
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("m", 72, kIdle);
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "bad"; };
  lab.Start();
  lab.ConnectWith("bad", 8);
  for (int i = 0; i < 45; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  return lab.InState(kFailed);
}

TEST(ShardHolds, ABadTemplateCostsTheOthersNothing) {
  Lab lab;
  EXPECT_EQ(FailedByABadTemplate(lab), 9) << "what it asked for at first, and one probe";
  EXPECT_EQ(WhyShort(lab, "bad"), model::Reason::kClusterOnHold);
  const auto clusters = lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters;
  ASSERT_EQ(clusters.size(), 1u);
  EXPECT_GT(*clusters[0].hold_until, lab.now.wall);
  lab.ConnectWith("good", 60);
  lab.Run(1s);
  EXPECT_EQ(lab.InState(kConfiguring, "good"), 60) << "at once, and all of it";
  EXPECT_EQ(lab.core().View()->counters.outcomes.at({"Bootstrap", "failed"}), 9u);
  lab.breaks = nullptr;
  lab.Finish();
  lab.Run(2min);
  lab.Finish();
  lab.Run(2s);
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(lab.InState(kConfigured, "bad"), 3) << "three were left";
  const faults::ScopedMutant on("shard.no_cluster_hold");
  Lab other;
  EXPECT_EQ(FailedByABadTemplate(other), 72);
}

// The blob of a Configure is gone, or there is no room for it now: its machine waits, and the cluster is not held. Any
// other refusal counts.
TEST(ShardHolds, AConfigureThatWasNotTriedSaysNothingAboutItsCluster) {
  for (const Code code : {Code::kAborted, Code::kInternal, Code::kResourceExhausted}) {
    Lab lab;
    lab.Add("m", 6, kIdle);
    int refused = 0;
    lab.refuses = [&](const contract::ProviderRequest& request) {
      const bool now = std::holds_alternative<contract::ConfigureRequest>(request) && refused < 3;
      refused += now ? 1 : 0;
      return now ? Status(code, "not now") : Status();
    };
    lab.Start();
    lab.ConnectWith("a", 3);
    lab.Run(2s);
    EXPECT_EQ(refused, 3);
    const bool held = lab.core().rails().holds().IsClusterHeld("a", lab.now.mono);
    EXPECT_EQ(held, code != Code::kAborted) << CodeName(code);
    EXPECT_EQ(lab.InState(kConfiguring, "a"), held ? 0 : 3) << "others are taken";
  }
}

// A cluster without a machine asks for the whole fleet, and its template is bad. How many machines are Failed after
// 45 s.
int FailedByABadTemplateForAll() {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("m", 72, kIdle);
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "bad"; };
  lab.Start();
  lab.ConnectWith("bad", 72);
  for (int i = 0; i < 45; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  return lab.InState(kFailed);
}

TEST(ShardFirstWave, ABadTemplateCostsThreeMachinesWhateverItAsksFor) {
  EXPECT_EQ(FailedByABadTemplateForAll(), 4) << "three at first, and one probe";
  const faults::ScopedMutant on("shard.all_at_first");
  EXPECT_EQ(FailedByABadTemplateForAll(), 72);
}

// A cluster with one machine asks for 72 when its template turns bad. How many are Failed when it is held, and after
// its first probe.
std::pair<int, int> FailedByATemplateThatTurnedBad() {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("m", 72, kIdle);
  lab.Add("serves", 1, kConfigured, "bad");
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "bad"; };
  lab.Start();
  lab.ConnectWith("bad", 72);
  for (int i = 0; i < 10; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  const int held = lab.InState(kFailed);
  for (int i = 0; i < 35; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  return {held, lab.InState(kFailed)};
}

TEST(ShardFirstWave, ATemplateThatTurnsBadCostsNoMoreThanTheClusterHas) {
  EXPECT_EQ(FailedByATemplateThatTurnedBad(), (std::pair(3, 4)));
  const faults::ScopedMutant on("shard.one_vouches_for_all");
  EXPECT_EQ(FailedByATemplateThatTurnedBad().first, 71) << "one machine that was configured long ago says nothing";
}

// What is configured at once for a cluster with so many machines Configured that asks for 72, round by round.
std::vector<int> Rounds(Lab& lab, int has, const std::function<void()>& ask) {
  lab.config().first_bootstraps = 3;
  lab.Add("has", has, kConfigured, "a");
  lab.Add("m", 72 - has, kIdle);
  lab.Start();
  ask();
  std::vector<int> rounds;
  for (int i = 0; i < 10 && lab.InState(kConfigured, "a") < 72; ++i) {
    lab.Run(2s);
    rounds.push_back(lab.InState(kConfiguring, "a"));
    lab.Finish();
  }
  return rounds;
}

TEST(ShardFirstWave, AClusterDoublesInEveryRound) {
  {
    Lab lab;
    EXPECT_EQ(Rounds(lab, 0, [&] { lab.ConnectWith("a", 72); }), (std::vector{3, 3, 6, 12, 24, 24}));
  }
  {
    Lab lab;
    EXPECT_EQ(Rounds(lab, 1, [&] { lab.ConnectWith("a", 72); }), (std::vector{3, 4, 8, 16, 32, 8}));
  }
  Lab lab;
  EXPECT_EQ(Rounds(lab, 40, [&] { lab.ConnectWith("a", 72); }), (std::vector{32}))
      << "one that has machines waits less";
}

// The engine gives a gang everything or nothing, the rail a part of it at a time: what has begun counts for the gang.
TEST(ShardFirstWave, AGangComesToItsEndInTheSameRounds) {
  Lab lab;
  const auto ask = [&] {
    lab.Connect("a");
    const model::Requirement same{.key = std::string(model::kZoneKey), .op = model::Operator::kSame};
    const model::Need gang{.profile = model::Profile({.requirements = {same}, .priority = 10}),
                           .aggregate = {{"cpu", 72'000}},
                           .min_unit = {{"cpu", 1000}},
                           .group = "g"};
    lab.Say("a", contract::Rollup{.cluster_id = "a", .timestamp = lab.now.wall, .rows = contract::NeedRows({gang})});
  };
  EXPECT_EQ(Rounds(lab, 0, ask), (std::vector{3, 3, 6, 12, 24, 24}));
  EXPECT_EQ(lab.InState(kConfigured, "a"), 72);
}

// Another cluster has all 72 machines, and a more important one asks for as many; its template is bad for so long. How
// many are taken from the other within `time`.
int TakenForABadTemplate(Lab& lab, Duration bad, Duration time) {
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("m", 72, kConfigured, "good");
  lab.Start();
  lab.ConnectWith("good", 72);
  lab.Run(1s);
  const MonoTime well = lab.now.mono + bad;
  lab.breaks = [&lab, well](const model::Machine& machine) { return machine.cluster == "bad" && lab.now.mono < well; };
  lab.ConnectWith("bad", 72, 1000);
  for (Duration passed{}; passed < time; passed += 1s) {
    lab.Run(1s);
    lab.Finish();
  }
  lab.breaks = nullptr;
  return lab.Count<contract::DrainRequest>();
}

TEST(ShardFirstWave, AnImportantClusterWithABadTemplateTakesNoMoreThanItMayConfigure) {
  faults::ResetProbes();
  {
    Lab lab;
    EXPECT_EQ(TakenForABadTemplate(lab, 1h, 45s), 4) << "three at first, and one probe";
    EXPECT_EQ(lab.InState(kConfigured, "good"), 68);
  }
  EXPECT_GT(faults::ProbeHits()["shard.takes_later"], 0u);
  {
    Lab lab;
    EXPECT_EQ(TakenForABadTemplate(lab, 35s, 75s), 72)
        << "when the probe is well it takes the rest, three of them to fail";
    EXPECT_EQ(lab.InState(kConfigured, "bad"), 69);
    EXPECT_EQ(lab.InState(kConfigured, "good"), 0);
  }
  const faults::ScopedMutant on("shard.takes_what_it_cannot_configure");
  Lab lab;
  EXPECT_GE(TakenForABadTemplate(lab, 1h, 45s), 72);
}

// What is drained at once for a cluster that asks for all 72 machines of another one, round by round: it is configured
// before the next round unless it waits for others.
std::vector<int> RoundsOfTaking(Lab& lab, const std::function<void()>& ask) {
  lab.config().first_bootstraps = 3;
  lab.Add("m", 72, kConfigured, "b");
  lab.Start();
  lab.ConnectWith("b", 72);
  lab.Run(1s);
  ask();
  std::vector<int> rounds;
  for (int i = 0; i < 20 && lab.InState(kConfigured, "a") < 72; ++i) {
    lab.Run(2s);
    if (const int draining = lab.InState(kDraining); draining > 0) rounds.push_back(draining);
    lab.Finish();
  }
  return rounds;
}

TEST(ShardFirstWave, PriorityTakesAllOnceATemplateHasWorked) {
  {
    const faults::ScopedMutant on("shard.proven_is_limited");
    Lab lab;
    EXPECT_EQ(RoundsOfTaking(lab, [&] { lab.ConnectWith("a", 72, 1000); }), (std::vector{3, 3, 6, 12, 24, 24}));
  }
  Lab lab;
  EXPECT_EQ(RoundsOfTaking(lab, [&] { lab.ConnectWith("a", 72, 1000); }), (std::vector{3, 69}));
  EXPECT_EQ(lab.InState(kConfigured, "a"), 72);
}

// Cluster a has one machine and wants 60 more of b's; `failed` of its Configures failed `before`. How many are drained.
int TakenByOneThatServes(int failed, Duration before) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("a", 1, kConfigured, "a");
  lab.Add("b", 60, kConfigured, "b");
  lab.Add("m", failed, kIdle);
  lab.Start();
  lab.ConnectWith("b", 60);
  lab.ConnectWith("a", 1 + failed);
  lab.Run(1s);
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "a"; };
  lab.Finish();
  lab.Run(1s);
  EXPECT_EQ(lab.InState(kFailed, "a"), failed);
  lab.breaks = nullptr;
  lab.Rollup("a", 1);
  lab.Run(before);
  lab.Rollup("b", 60);
  lab.Rollup("a", 61, 1000);
  lab.Run(2s);
  return lab.InState(kDraining);
}

TEST(ShardFirstWave, OneWhoseLastConfigureFailedTakesNoMoreThanItMayConfigure) {
  EXPECT_EQ(TakenByOneThatServes(0, 5s), 60) << "priority is above every volume";
  EXPECT_EQ(TakenByOneThatServes(1, 5s), 3);
  EXPECT_EQ(TakenByOneThatServes(1, 9min), 3) << "no other has ended since";
  EXPECT_EQ(TakenByOneThatServes(1, 11min), 60) << "that is long ago";
}

TEST(ShardFirstWave, WhatGrowthAndTrialPutOffIsTold) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.Add("b", 20, kConfigured, "b");
  lab.Add("m", 10, kIdle);
  lab.Start();
  lab.ConnectWith("b", 20);
  lab.Run(1s);
  lab.ConnectWith("a", 10);
  lab.Run(5s);
  EXPECT_EQ(lab.core().View()->counters.actions.at("Bootstrap"), 3u) << "counted when it is their turn";
  EXPECT_EQ(lab.core().View()->put_off.growth, 7);
  auto views = lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters;
  EXPECT_EQ(views.at(0).growth_waits, 7);
  EXPECT_EQ(views.at(0).trial_waits, 0);
  EXPECT_EQ(views.at(1).growth_waits, 0);
  const auto need = lab.AskFor<contract::NeedsInspected>(contract::InspectNeeds{.cluster_id = "a"}).needs.at(0);
  const auto explain = [&](contract::Explain query) {
    return fmt::format("{}", fmt::join(lab.AskFor<contract::Explained>(std::move(query)).lines, "\n"));
  };
  const std::string growth = "7 machines wait for those that are being configured for cluster a";
  const contract::NeedRef ref{.cluster_id = "a", .fingerprint = need.need.profile.fingerprint()};
  EXPECT_TRUE(explain({.subject = ref}).contains(growth)) << explain({.subject = ref});
  EXPECT_TRUE(explain({.subject = std::string("m-009")}).contains(growth));
  // And c takes from b.
  lab.ConnectWith("c", 20, 1000);
  lab.Run(5s);
  EXPECT_EQ(lab.core().View()->put_off.trial, 13)
      << "the engine gives it the idle ones, three of which are on their way";
  EXPECT_EQ(lab.core().View()->counters.actions.count("Preempt"), 0u);
  views = lab.AskFor<contract::ClustersListed>(contract::ListClusters{}).clusters;
  EXPECT_EQ(views.at(2).growth_waits, 4);
  EXPECT_EQ(views.at(2).trial_waits, 13);
  EXPECT_EQ(lab.core().View()->counters.deduped, 0u);
}

// Three Configures never end. How many have begun after 14 min and 16 min, and 14 min and 16 min after a restart.
std::vector<int> BegunBesideStuckOnes() {
  Lab lab({.restart_grace = 0s});
  lab.config().first_bootstraps = 3;
  lab.Add("m", 20, kIdle);
  lab.Start();
  lab.ConnectWith("a", 20);
  std::vector<int> begun;
  for (const Duration time : {Duration(14min), Duration(2min)}) {
    lab.Run(time);
    begun.push_back(ConfiguresFor(lab, "a"));
  }
  lab.Restart();
  lab.ConnectWith("a", 20);
  for (const Duration time : {Duration(14min), Duration(2min)}) {
    lab.Run(time);
    begun.push_back(ConfiguresFor(lab, "a"));
  }
  return begun;
}

TEST(ShardFirstWave, ConfiguresThatNeverEndDoNotKeepTheOthersWaiting) {
  faults::ResetProbes();
  EXPECT_EQ(BegunBesideStuckOnes(), (std::vector{3, 6, 6, 9}));
  EXPECT_GT(faults::ProbeHits()["shard.configure_is_stuck"], 0u);
  const faults::ScopedMutant on("shard.stuck_ones_count");
  EXPECT_EQ(BegunBesideStuckOnes(), (std::vector{3, 3, 3, 3}));
}

// It configures nothing before it is whole; what it has gathered counts instead.
TEST(ShardFirstWave, AGangTakesTwiceAsManyInEveryRoundToo) {
  Lab lab;
  const auto ask = [&] {
    lab.Connect("a");
    const model::Requirement same{.key = std::string(model::kZoneKey), .op = model::Operator::kSame};
    const model::Need gang{.profile = model::Profile({.requirements = {same}, .priority = 1000}),
                           .aggregate = {{"cpu", 72'000}},
                           .min_unit = {{"cpu", 1000}},
                           .group = "g"};
    lab.Say("a", contract::Rollup{.cluster_id = "a", .timestamp = lab.now.wall, .rows = contract::NeedRows({gang})});
  };
  EXPECT_EQ(RoundsOfTaking(lab, ask), (std::vector{3, 3, 6, 12, 24, 24}));
  EXPECT_EQ(lab.InState(kConfigured, "a"), 72);
}

// A gang of six that must take all its machines, while the cluster's template is bad for 20 s: its hold has no probe
// before the gang is whole.
TEST(ShardFirstWave, AGangIsTakenForAfterAHoldThoughItHasNoProbe) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("m", 20, kConfigured, "b");
  lab.Start();
  lab.ConnectWith("b", 20);
  lab.Run(1s);
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "a"; };
  lab.Connect("a");
  const model::Requirement same{.key = std::string(model::kZoneKey), .op = model::Operator::kSame};
  const model::Need gang{.profile = model::Profile({.requirements = {same}, .priority = 1000}),
                         .aggregate = {{"cpu", 6000}},
                         .min_unit = {{"cpu", 1000}},
                         .group = "g"};
  lab.Say("a", contract::Rollup{.cluster_id = "a", .timestamp = lab.now.wall, .rows = contract::NeedRows({gang})});
  for (int i = 0; i < 20; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  EXPECT_EQ(lab.InState(kFailed), 3);
  lab.breaks = nullptr;
  for (int i = 0; i < 40; ++i) {
    lab.Run(1s);
    lab.Finish();
  }
  EXPECT_EQ(lab.InState(kConfigured, "a"), 6);
}

// A cluster is held while machines of another are about to be drained for it: they stay.
TEST(ShardFirstWave, WhatWasToBeTakenStaysWhenTheClusterIsHeld) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.config().failed_policy = FailedPolicy::kKeep;
  lab.Add("a", 10, kConfigured, "a");
  lab.Add("b", 5, kConfigured, "b");
  lab.Add("m", 3, kIdle);
  lab.acknowledges = false;
  lab.breaks = [](const model::Machine& machine) { return machine.cluster == "a"; };
  lab.Start();
  lab.ConnectWith("b", 5);
  lab.Run(1s);
  lab.ConnectWith("a", 18, 1000);
  lab.Run(2s);
  ASSERT_EQ(lab.InState(kConfiguring, "a"), 3);
  ASSERT_EQ(lab.SentTo<contract::ReclaimInstruction>("b").size(), 5u);
  lab.Finish();
  lab.Run(20s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 0);
  EXPECT_EQ(lab.Outcomes("on_hold"), 5);
}

TEST(ShardFirstWave, TheNextFollowEachSuccessAtOnce) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.Add("m", 72, kIdle);
  lab.Start();
  lab.ConnectWith("a", 40);
  lab.Run(5s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 3);
  lab.SetState("m-000", kConfigured);
  lab.Run(2s);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 3) << "in its place";
  EXPECT_EQ(ConfiguresFor(lab, "a"), 4);
}

TEST(ShardFirstWave, ARestartDoesNotWidenIt) {
  Lab lab({.restart_grace = 0s});
  lab.config().first_bootstraps = 3;
  lab.Add("m", 20, kIdle);
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(2s);
  lab.Restart();
  lab.ConnectWith("a", 20);
  lab.Run(5s);
  EXPECT_EQ(ConfiguresFor(lab, "a"), 3);
  lab.Finish();
  lab.Run(2s);
  EXPECT_EQ(ConfiguresFor(lab, "a"), 6);
}

// One blob that does not come must not keep the others waiting for ever: its time runs out.
TEST(ShardFirstWave, IsOverThoughItsFirstMachinesFail) {
  Lab lab;
  lab.config().first_bootstraps = 3;
  lab.Add("m", 20, kIdle);
  lab.answers_blobs = false;
  lab.Start();
  lab.ConnectWith("a", 20);
  lab.Run(35s);
  lab.answers_blobs = true;
  lab.Run(2min);
  for (int i = 0; i < 5; ++i) {
    lab.Finish();
    lab.Run(2s);
  }
  EXPECT_EQ(ConfiguresFor(lab, "a"), 20);
}

TEST(ShardHolds, AClusterThatIsSilentCannotFillTheQueueAndIsHeld) {
  const auto asked_of_others = [] {
    Lab lab({.execute_queue = 20});
    lab.Add("m", 100, kIdle);
    lab.mute = {"mute"};
    lab.Start();
    lab.ConnectWith("mute", 80, 1000);
    lab.Run(1s);
    lab.ConnectWith("b", 5);
    lab.Run(1s);
    EXPECT_EQ(lab.core().View()->counters.dropped > 0, true);
    const int of_b = ConfiguresFor(lab, "b");
    lab.Run(31s);
    EXPECT_GT(lab.Outcomes("blob_timeout"), 2);
    EXPECT_EQ(WhyShort(lab, "mute"), model::Reason::kClusterOnHold);
    return of_b;
  };
  EXPECT_EQ(asked_of_others(), 5);
  const faults::ScopedMutant on("shard.no_share");
  EXPECT_EQ(asked_of_others(), 0);
}

// The provider is away for 30 s while a machine is to be bought. How many dearer ones are bought.
int DearerBoughtInAnOutage(Code code) {
  Lab lab;
  Offer(lab, "cheap", 2, "a", 1);
  Offer(lab, "dear", 2, "b", 2);
  lab.Start();
  lab.Run(1s);
  lab.refusal = Status(code, "try later");
  lab.ConnectWith("a", 2);
  lab.Run(30s);
  if (!MUTANT("shard.outage_holds")) {
    EXPECT_LE(lab.transitions.size(), 2u + 4u) << "after 2 s, 4 s, 8 s, 16 s, one at a time";
    EXPECT_TRUE(lab.core().View()->holds.empty());
    EXPECT_TRUE(lab.core().View()->provider_away);
    EXPECT_EQ(lab.Noted(model::Reason::kProviderSilent), 1);
  }
  lab.refusal = {};
  lab.Run(31s);
  EXPECT_FALSE(lab.core().View()->provider_away);
  EXPECT_TRUE(MUTANT("shard.outage_holds") || lab.InState(kCreating) == 2);
  return Creates(lab, "dear");
}

TEST(ShardHolds, AnOutageOfTheProviderHoldsNothingAndBuysNothingDearer) {
  faults::ResetProbes();
  EXPECT_EQ(DearerBoughtInAnOutage(Code::kUnavailable), 0);
  EXPECT_GT(faults::ProbeHits()["shard.outage"], 3u);
  EXPECT_EQ(DearerBoughtInAnOutage(Code::kDeadlineExceeded), 0);
  const faults::ScopedMutant on("shard.outage_holds");
  EXPECT_GT(DearerBoughtInAnOutage(Code::kUnavailable), 0);
}

// --- one machine hangs: its calls run into their deadline, and the provider answers all others

// A need for so many machines with the label rack=`rack`.
void Want(Lab& lab, const std::string& cluster, int64_t machines, int32_t priority, const std::string& rack) {
  const model::Need need{
      .profile = model::Profile(
          {.requirements = {{.key = "rack", .op = model::Operator::kIn, .values = {rack}}}, .priority = priority}),
      .aggregate = {{"cpu", machines * 1000}},
      .min_unit = {{"cpu", 1000}}};
  lab.Connect(cluster);
  lab.Say(cluster,
          contract::Rollup{.cluster_id = cluster, .timestamp = lab.now.wall, .rows = contract::NeedRows({need})});
}

void PutInRack(Lab& lab, const std::string& id, model::MachineState state, const std::string& cluster,
               const std::string& rack) {
  model::Machine machine = Lab::MakeMachine(id, state, cluster);
  machine.labels = {{"rack", rack}};
  lab.Put(machine);
}

std::string MachineOf(const contract::ProviderRequest& request) {
  return std::visit(
      [](const auto& body) {
        if constexpr (requires { body.machine_id; }) {
          return body.machine_id;
        } else {
          return std::string();
        }
      },
      request);
}

// Two machines of one cluster, of which the first is taken for a more important need and hangs when it is drained.
// While the provider seems to be away another cluster asks for machines that could be bought.
struct OneHangs {
  OneHangs() {
    PutInRack(lab, "m-000", kConfigured, "low", "r1");
    PutInRack(lab, "m-001", kConfigured, "low", "r1");
    for (const char* id : {"s-000", "s-001"}) PutInRack(lab, id, kSpeculative, "", "r2");
    lab.hangs = [this](const contract::ProviderRequest& request) {
      if (!std::holds_alternative<contract::DrainRequest>(request)) return false;
      if (first.empty()) first = MachineOf(request);
      return MachineOf(request) == first;
    };
    lab.Start();
    Want(lab, "low", 2, 10, "r1");
    Want(lab, "high", 1, 1'000'000, "r1");
    lab.Run(31s);
    EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
    EXPECT_TRUE(lab.core().View()->provider_away);
    Want(lab, "other", 2, 10, "r2");
  }
  Lab lab;
  std::string first;  // the machine that hangs
};

TEST(ShardHolds, APreemptThatHangsDoesNotStopTheOthers) {
  OneHangs product;
  product.lab.Run(2s);
  EXPECT_EQ(Creates(product.lab, "s"), 2) << "the first call that is tried again is of another cluster";
  const faults::ScopedMutant on("shard.only_preempts_are_tried");
  OneHangs other;
  other.lab.Run(25s);
  EXPECT_EQ(Creates(other.lab, "s"), 0);
}

TEST(ShardHolds, AVictimThatHangsIsLeftForAnother) {
  faults::ResetProbes();
  OneHangs product;
  product.lab.Run(75s);
  EXPECT_EQ(product.lab.InState(kDraining), 1) << "the other machine";
  EXPECT_GT(faults::ProbeHits()["shard.machine_hangs"], 0u);
  EXPECT_FALSE(product.lab.core().View()->provider_away);
  const faults::ScopedMutant on("shard.hanging_is_outage");
  OneHangs other;
  other.lab.Run(10min);
  EXPECT_EQ(other.lab.InState(kDraining), 0);
}

// The cheapest machine hangs when it is created. With `others`, another cluster asks for one more every 5 s. After how
// many seconds the next machine is bought; 0: not within ten minutes.
int SecondsUntilTheNextIsBought(bool others) {
  Lab lab;
  PutInRack(lab, "s-000", kSpeculative, "", "r1");
  PutInRack(lab, "s-001", kSpeculative, "", "r1");
  for (int i = 0; i < 12; ++i) PutInRack(lab, fmt::format("t-{:03}", i), kSpeculative, "", "r2");
  lab.hangs = [](const contract::ProviderRequest& request) { return MachineOf(request) == "s-000"; };
  lab.Start();
  Want(lab, "a", 1, 10, "r1");
  for (int second = 1; second <= 600; ++second) {
    if (others && second % 5 == 0 && second <= 60) Want(lab, "b", second / 5, 10, "r2");
    lab.Run(1s);
    EXPECT_FALSE(others && lab.core().View()->provider_away);
    EXPECT_FALSE(lab.core().View()->holds.contains("class"));
    if (Creates(lab, "s-001") > 0) return second;
  }
  return 0;
}

TEST(ShardHolds, ACreateThatHangsIsLeftForTheNextMachine) {
  EXPECT_EQ(SecondsUntilTheNextIsBought(true), 31) << "its deadline: others were answered meanwhile";
  EXPECT_EQ(SecondsUntilTheNextIsBought(false), 67) << "two deadlines and the pauses after them: lists are answered";
  const faults::ScopedMutant on("shard.hanging_is_outage");
  EXPECT_EQ(SecondsUntilTheNextIsBought(false), 0);
}

TEST(ShardHolds, ADrainThatFailsIsNotTriedEveryCycle) {
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.refusal = Status(Code::kInternal, "no");
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(1900ms);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 1);
  lab.Run(60s);
  EXPECT_EQ(lab.Count<contract::DrainRequest>(), 5) << "after 2 s, 4 s, 8 s, 16 s";
}

// A need of high priority, two machines of another cluster, and one of them cannot be drained. How many drain.
int DrainedInPlaceOfOneThatFails() {
  Lab lab;
  lab.Add("m", 2, kConfigured, "a");
  lab.refuses = [](const contract::ProviderRequest& request) {
    const auto* drain = std::get_if<contract::DrainRequest>(&request);
    const bool hit = drain != nullptr && drain->machine_id == "m-000";
    return hit ? Status(Code::kInternal, "no") : Status();
  };
  lab.Start();
  lab.ConnectWith("a", 2);
  lab.ConnectWith("b", 1, 1'000'000);
  lab.Run(500ms);
  EXPECT_TRUE(lab.core().View()->holds.contains("rest"));
  EXPECT_EQ(ViewOf(lab, "m-000").hold, "Drain or Delete failed 1 times in a row");
  return lab.InState(kDraining);
}

TEST(ShardHolds, AVictimThatCannotBeDrainedIsLeftForAnother) {
  EXPECT_EQ(DrainedInPlaceOfOneThatFails(), 1);
  const faults::ScopedMutant on("shard.rests_untold");
  EXPECT_EQ(DrainedInPlaceOfOneThatFails(), 0);
}

// Twenty machines that a cluster no longer needs, of which one in a cycle may go, and the first cannot be drained. How
// many drain within half a minute.
int GivenBackBesideOneThatFails() {
  Lab lab;
  lab.config().reclaim_budget = {1'000'000};
  lab.Add("m", 20, kConfigured, "a");
  lab.refuses = [](const contract::ProviderRequest& request) {
    const auto* drain = std::get_if<contract::DrainRequest>(&request);
    const bool hit = drain != nullptr && drain->machine_id == "m-000";
    return hit ? Status(Code::kInternal, "no") : Status();
  };
  lab.Start();
  lab.ConnectWith("a", 0);
  lab.Run(30s);
  return lab.InState(kDraining);
}

TEST(ShardHolds, WhatCannotBeDrainedDoesNotTakeUpTheCapOfItsCluster) {
  EXPECT_EQ(GivenBackBesideOneThatFails(), 19);
  const faults::ScopedMutant on("shard.rests_untold");
  EXPECT_EQ(GivenBackBesideOneThatFails(), 0);
}

TEST(ShardHolds, ADrainThatComesBackIsAFailureAndWaitsLongerEachTime) {
  faults::ResetProbes();
  Lab lab;
  lab.Add("m", 1, kConfigured, "a");
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.ConnectWith("b", 1, 1'000'000);
  std::vector<int> drains;
  for (int second = 0; second < 30; ++second) {
    lab.Run(1s);
    if (lab.InState(kDraining) > 0) lab.SetState("m-000", kConfigured);  // it serves on
    drains.push_back(lab.Count<contract::DrainRequest>());
  }
  EXPECT_LE(drains.back(), 5) << "after 2 s, 4 s, 8 s, 16 s";
  EXPECT_GE(drains.back(), 3);
  EXPECT_EQ(faults::ProbeHits()["shard.drain_bounced"], static_cast<uint64_t>(drains.back()));
  EXPECT_EQ(lab.Outcomes("failed"), drains.back()) << "told as failures";
}

TEST(ShardHolds, AnIdleMachineThatCannotBeDeletedMayStillBeAcquired) {
  Lab lab;
  lab.config().policy.release_hold_on_demand = 1s;
  lab.Add("m", 1, kIdle);
  lab.refusal = Status(Code::kInternal, "no");
  lab.Start();
  lab.Run(5s);
  ASSERT_GT(lab.Count<contract::DeleteRequest>(), 0);
  lab.refusal = {};
  lab.ConnectWith("a", 1);
  lab.Run(500ms);
  EXPECT_EQ(lab.InState(kConfiguring, "a"), 1);
}

// A shard with a hold of each kind is restarted. How many calls follow within the hold.
size_t CallsAfterARestart(HoldKind kind) {
  Lab lab({.restart_grace = 0s});
  const bool acquires = kind == HoldKind::kPair || kind == HoldKind::kCluster;
  if (kind == HoldKind::kRest) {
    lab.Add("m", 1, kConfigured, "x");
  } else if (acquires) {
    lab.Add("m", kind == HoldKind::kPair ? 1 : 4, kIdle);
  } else {
    Offer(lab, "s", kind == HoldKind::kMachine ? 1 : 5, "a", 1);
  }
  lab.config().retry_first = kind == HoldKind::kClass || kind == HoldKind::kCluster ? 1ms : 60s;
  lab.config().retry_longest = 60s;
  lab.refusal = Status(kind == HoldKind::kClass ? Code::kResourceExhausted : Code::kInternal, "no");
  const auto connect = [&] {
    if (kind == HoldKind::kRest) lab.ConnectWith("x", 1);
    lab.ConnectWith("a", 3, 1'000'000);
  };
  lab.Start();
  connect();
  lab.Run(5s);
  const auto view = lab.core().View();
  EXPECT_EQ(view->holds.contains(std::string(HoldKindName(kind))), true) << HoldKindName(kind);
  const size_t before = lab.transitions.size();
  lab.Restart();
  connect();
  lab.Run(20s);
  return lab.transitions.size() - before;
}

TEST(ShardHolds, ARestartInsideAHoldCausesNoCall) {
  for (const HoldKind kind :
       {HoldKind::kMachine, HoldKind::kClass, HoldKind::kPair, HoldKind::kCluster, HoldKind::kRest}) {
    EXPECT_EQ(CallsAfterARestart(kind), 0u) << HoldKindName(kind);
    const faults::ScopedMutant on("shard.holds_forgotten");
    EXPECT_GT(CallsAfterARestart(kind), 0u) << HoldKindName(kind);
  }
}

TEST(ShardHolds, TheWindowOfFailuresSurvivesARestart) {
  Lab lab({.restart_grace = 0s});
  Offer(lab, "s", 1, "a", 1);
  RefuseCreates(lab, "s", Code::kInternal);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(4s);
  EXPECT_EQ(Creates(lab, "s"), 2);
  lab.Restart();
  lab.ConnectWith("a", 1);
  lab.Run(5s);
  EXPECT_EQ(Creates(lab, "s"), 3);
  EXPECT_EQ(lab.core().View()->holds.count("class"), 1u) << "the third within the minute";
}

// No build writes such rows; a file that was damaged or mended by hand may have them.
TEST(ShardHolds, RowsThatSayNothingAreDropped) {
  const HoldKey rest{.kind = HoldKind::kRest, .machine = "m"};
  const HoldKey cluster{.kind = HoldKind::kCluster, .cluster = "a"};
  const HoldKey other{.kind = HoldKind::kCluster, .cluster = "b"};
  const HoldKey many{.kind = HoldKind::kCluster, .cluster = "c"};
  Lab lab;
  lab.Start();
  const WallTime now = lab.now.wall;
  for (const contract::Write& write :
       {kHoldRows.Put(rest, {}), kHoldRows.Put(cluster, {}), kHoldRows.Put(other, {.times = -1, .recent = {now}}),
        kHoldRows.Put(many, {.recent = {now, now, now}})}) {
    lab.disk[write.key] = *write.value;
  }
  lab.Restart();
  lab.Run(1min);
  EXPECT_TRUE(lab.core().rails().holds().state().holds.empty());
  for (const auto& [key, value] : lab.disk) EXPECT_FALSE(key.starts_with("hold/"));
}

TEST(ShardHolds, OfAMachineThatIsGoneNothingIsKept) {
  Lab lab;
  Offer(lab, "s", 1, "a", 1);
  RefuseCreates(lab, "s", Code::kInternal);
  lab.Start();
  lab.ConnectWith("a", 1);
  lab.Run(500ms);
  EXPECT_EQ(lab.core().rails().holds().state().holds.size(), 2u);
  lab.machines.clear();
  lab.Run(2min);
  EXPECT_TRUE(lab.core().machines().tracked().empty());
  EXPECT_TRUE(lab.core().rails().holds().state().holds.empty());
  for (const auto& [key, value] : lab.disk) EXPECT_FALSE(key.starts_with("hold/"));
}

// A provider that takes a machine back instead of failing it has failed to configure it all the same.
TEST(ShardHolds, AConfigureThatEndsInIdleCountsAsAFailure) {
  Lab lab;
  lab.Add("m", 8, kIdle);
  lab.Start();
  lab.ConnectWith("a", 3);
  lab.Run(1s);
  ASSERT_EQ(lab.InState(kConfiguring), 3);
  for (int i = 0; i < 3; ++i) {
    model::Machine machine = lab.machines.at(fmt::format("m-{:03}", i));
    machine.state = kIdle;
    machine.cluster.clear();
    machine.shard_metadata.clear();
    lab.Put(machine);
  }
  lab.Run(3s);
  EXPECT_EQ(lab.Outcomes("failed"), 3);
  EXPECT_EQ(lab.Count<contract::ConfigureRequest>(), 3) << "three within a minute hold the cluster";
  EXPECT_TRUE(lab.core().rails().holds().IsClusterHeld("a", lab.now.mono));
}

}  // namespace
}  // namespace muster::shard
