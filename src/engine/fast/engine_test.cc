// What the engine answers when it is asked. Its decisions are compared with the reference in tests/engine.
#include "engine/fast/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/probe.h"
#include "engine/fast/amounts.h"
#include "engine/fast/internals.h"

namespace muster::engine::fast {
namespace {

using model::MachineState;

model::Profile ProfileOf(int32_t priority, model::PenaltyBucket interruption = model::PenaltyBucket::kZero) {
  return model::Profile({.priority = priority, .interruption = interruption});
}

class QuestionsTest : public testing::Test {
 protected:
  QuestionsTest() : engine_(Policy{}) { engine_.SetCluster("a", {}); }

  void Machine(const std::string& id, MachineState state, const std::string& cluster = "") {
    model::Machine machine{.id = id, .state = state, .cluster = cluster};
    machine.instance_type = "m";
    machine.resources = {{"cpu", 1000}};
    engine_.Upsert(machine);
  }
  void Need(const model::Profile& profile, int64_t cpu, const std::string& group = "") {
    needs_.push_back({.cluster = "a", .profile = profile, .aggregate = {{"cpu", cpu}}, .group = group});
  }
  void Decide() {
    std::vector<uint64_t> digests;
    for (const model::Need& need : needs_) digests.push_back(RowDigest(need));
    engine_.ReplaceNeeds("a", {.rows = needs_, .digests = digests}, std::nullopt);
    engine_.Decide(MonoTime(std::chrono::seconds(3600 + ++cycle_)));
  }
  // "group priority age" of what changed, "group over" of what ended, and how many are short in all.
  std::vector<std::string> Changes() {
    std::vector<std::string> lines;
    int all = 0;
    const ShortChanges changes = engine_.TakeShortChanges([&](int32_t, int32_t age) {
      EXPECT_GE(age, 1);
      ++all;
    });
    for (const ShortChanges::Change& change : changes.changed) {
      lines.push_back(fmt::format("{} {} {}", change.key.group, change.priority, change.memory.age_unmet));
    }
    for (const NeedKey& key : changes.ended) lines.push_back(key.group + " over");
    lines.push_back(fmt::format("{} short", all));
    return lines;
  }
  using Lines = std::vector<std::string>;

  Engine engine_;
  std::vector<model::Need> needs_;
  int cycle_ = 0;
};

TEST_F(QuestionsTest, TellsWhichNeedsBecameShortAndWhichNoLongerAre) {
  Need(ProfileOf(7), 2000, "x");
  Need(ProfileOf(5), 1000, "y");
  Decide();
  EXPECT_EQ(Changes(), (Lines{"x 7 1", "y 5 1", "2 short"}));
  Decide();
  EXPECT_EQ(Changes(), (Lines{"2 short"}));
  Machine("m1", MachineState::kIdle);
  Machine("m2", MachineState::kIdle);
  Decide();
  EXPECT_EQ(Changes(), (Lines{"x over", "1 short"}));
  needs_.pop_back();
  Decide();
  EXPECT_EQ(Changes(), (Lines{"y over", "0 short"}));
  Need(ProfileOf(5), 1000, "y");
  Decide();
  EXPECT_EQ(Changes(), (Lines{"y 5 1", "1 short"}));
}

TEST_F(QuestionsTest, ANeedThatIsShortInAnotherWayIsToldAgain) {
  model::ProfileParts gang;
  gang.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
  Need(model::Profile(gang), 2000, "g");
  Decide();
  EXPECT_EQ(Changes(), (Lines{"g 0 1", "1 short"}));
  Decide();
  EXPECT_EQ(Changes(), (Lines{"1 short"}));
  model::Machine machine{.id = "m1", .state = MachineState::kIdle, .labels = {{"rack", "r"}}};
  machine.resources = {{"cpu", 1000}};
  engine_.Upsert(machine);  // it cannot hold the gang, but is more than was seen
  Decide();
  EXPECT_EQ(Changes(), (Lines{"g 0 3", "1 short"}));
}

TEST_F(QuestionsTest, WhatWasRestoredIsToldOnceMoreAndEndsIfItIsNotShort) {
  Memory memory;
  const auto key = [](const std::string& group) {
    return NeedKey{.cluster = "a", .fingerprint = ProfileOf(7).fingerprint(), .group = group};
  };
  memory.needs[key("x")] = {.age_unmet = 9};
  memory.needs[key("z")] = {.age_unmet = 3};
  engine_.Restore(memory);
  Need(ProfileOf(7), 2000, "x");
  Decide();
  EXPECT_EQ(Changes(), (Lines{"x 7 10", "z over", "1 short"}));
  Decide();
  EXPECT_EQ(Changes(), (Lines{"1 short"}));
}

TEST_F(QuestionsTest, TellsEachDrainOnce) {
  engine_.Restore({.drains = {{"other", {.total_millis = 5000, .drains = 1}}}});
  Machine("m1", MachineState::kDraining, "a");
  Decide();
  EXPECT_TRUE(engine_.TakeDrainChanges().empty());
  Machine("m1", MachineState::kIdle);
  Decide();
  using Change = std::pair<std::string, DrainMean>;
  EXPECT_EQ(engine_.TakeDrainChanges(), (std::vector<Change>{{"m", {.total_millis = 1000, .drains = 1}}}));
  Decide();
  EXPECT_TRUE(engine_.TakeDrainChanges().empty());
}

TEST_F(QuestionsTest, CountsClaimsByInterruptionBucket) {
  for (const char* id : {"m1", "m2", "m3"}) Machine(id, MachineState::kConfigured, "a");
  Machine("m4", MachineState::kIdle);
  Need(ProfileOf(9), 2000);
  Need(ProfileOf(5, model::PenaltyBucket::kPinned), 2000);
  using Claims = std::map<model::PenaltyBucket, uint64_t>;
  const Claims expected{{model::PenaltyBucket::kZero, 2}, {model::PenaltyBucket::kPinned, 2}};
  Decide();
  EXPECT_EQ(engine_.ClaimedByInterruption(), expected);
  Decide();  // some needs settle now
  EXPECT_EQ(engine_.ClaimedByInterruption(), expected);
}

TEST_F(QuestionsTest, KnowsWhatItWasTold) {
  EXPECT_EQ(engine_.StateOf("nobody"), std::nullopt);
  engine_.SetCluster("a", {.session = true, .gate_open = false, .reclaims_allowed = 3});
  ASSERT_TRUE(engine_.StateOf("a"));
  EXPECT_EQ(engine_.StateOf("a")->reclaims_allowed, 3);
  model::Resources many;
  for (size_t d = 0; d < kMaxMachineDimensions; ++d) many.Set(fmt::format("r{}", d), 1);
  EXPECT_TRUE(engine_.HasRoomFor(many));
  Machine("m1", MachineState::kIdle);  // brings a dimension of its own
  EXPECT_FALSE(engine_.HasRoomFor(many));
  EXPECT_TRUE(engine_.HasRoomFor({{"cpu", 5}}));
}

// A machine with as many names as there is room for comes and goes. Whether one with another name fits then.
bool HasRoomAfterJunk(Engine& engine) {
  model::Machine machine{.id = "serves", .state = MachineState::kIdle, .instance_type = "m"};
  machine.resources = {{"cpu", 1000}};
  engine.Upsert(machine);
  model::Machine junk{.id = "junk", .state = MachineState::kFailed, .instance_type = "m"};
  for (size_t d = 1; d < kMaxMachineDimensions; ++d) junk.resources.Set(fmt::format("junk{}", d), 1);
  EXPECT_TRUE(engine.HasRoomFor(junk.resources));
  engine.Upsert(junk);
  EXPECT_FALSE(engine.HasRoomFor({{"gpu", 1}})) << "they are in use, also by one that is Failed";
  engine.Decide(MonoTime(1s));
  engine.Remove("junk");
  return engine.HasRoomFor({{"gpu", 1}});
}

TEST(Dimensions, ThoseThatNoMachineHasMakeRoom) {
  {
    Engine engine(Policy{});
    ASSERT_TRUE(HasRoomAfterJunk(engine));
    model::Machine gpus{.id = "gpus", .state = MachineState::kIdle, .instance_type = "g"};
    gpus.resources = {{"cpu", 1000}, {"gpu", 8000}};
    engine.Upsert(gpus);
    engine.SetCluster("a", {});
    model::Need need{.profile = ProfileOf(1), .aggregate = {{"gpu", 8000}}, .min_unit = {{"gpu", 8000}}};
    engine.ReplaceNeeds("a", {.rows = std::vector{need}, .digests = std::vector<uint64_t>{1}}, std::nullopt);
    engine.Decide(MonoTime(2s));
    const std::vector<NamedAction> actions = engine.NamedActions();
    ASSERT_EQ(actions.size(), 1u);
    EXPECT_EQ(actions[0].action.machine, "gpus");
    model::Resources most{{"cpu", 1}, {"gpu", 1}};
    for (size_t d = 2; d < kMaxMachineDimensions; ++d) most.Set(fmt::format("other{}", d), 1);
    EXPECT_TRUE(engine.HasRoomFor(most));
    most.Set("more", 1);
    EXPECT_FALSE(engine.HasRoomFor(most));
  }
  const faults::ScopedMutant on("fast.dimensions_stay");
  Engine engine(Policy{});
  EXPECT_FALSE(HasRoomAfterJunk(engine));
}

// A machine that has all names but one gets as many others. Whether that fits.
bool MayBeNamedAnew(Engine& engine) {
  model::Machine serves{.id = "serves", .state = MachineState::kIdle, .instance_type = "m"};
  serves.resources = {{"cpu", 1000}};
  engine.Upsert(serves);
  model::Machine machine{.id = "many", .state = MachineState::kIdle, .instance_type = "m"};
  const auto name_it = [&](std::string_view as) {
    machine.resources = {};
    for (size_t d = 1; d < kMaxMachineDimensions; ++d) machine.resources.Set(fmt::format("{}{}", as, d), 1);
  };
  name_it("old");
  engine.Upsert(machine);
  engine.Decide(MonoTime(1s));
  name_it("new");
  EXPECT_FALSE(engine.HasRoomFor(machine.resources)) << "beside itself";
  if (!engine.HasRoomFor(machine.resources, "many")) return false;
  engine.Upsert(machine);
  engine.Decide(MonoTime(2s));
  EXPECT_TRUE(engine.HasRoomFor({{"cpu", 1}}));
  EXPECT_FALSE(engine.HasRoomFor({{"old1", 1}})) << "all places are taken";
  return true;
}

TEST(Dimensions, ThoseThatOnlyTheMachineItselfHasMakeRoomForIt) {
  {
    Engine engine(Policy{});
    EXPECT_TRUE(MayBeNamedAnew(engine));
    EXPECT_EQ(engine.Verify(), "");
  }
  const faults::ScopedMutant on("fast.own_dimensions_stay");
  Engine engine(Policy{});
  EXPECT_FALSE(MayBeNamedAnew(engine));
}

// One machine after the other comes with a name that no other has, and goes. The most classes and shapes there were.
size_t MostRowsOfJunk(int names) {
  Engine engine(Policy{});
  model::Machine machine{.id = "serves", .state = MachineState::kIdle, .instance_type = "m"};
  for (size_t d = 1; d < kMaxMachineDimensions; ++d) machine.resources.Set(fmt::format("r{}", d), 1);
  engine.Upsert(machine);
  machine.id = "junk";
  size_t most = 0;
  for (int i = 0; i < names; ++i) {
    machine.resources = {{fmt::format("junk{}", i), 1}};
    EXPECT_TRUE(engine.HasRoomFor(machine.resources)) << i;
    engine.Upsert(machine);
    engine.Remove("junk");
    if (i % 20 == 0) engine.Decide(MonoTime(std::chrono::seconds(3600 + i)));
    const Catalogue& catalogue = Internals(engine).inventory.catalogue();
    most = std::max(most, catalogue.classes() + catalogue.shapes());
  }
  return most;
}

TEST(Dimensions, MayComeAndGoForEver) { EXPECT_LE(MostRowsOfJunk(40'000), 600u); }

TEST_F(QuestionsTest, NeedsBringNoDimensions) {
  Machine("m1", MachineState::kIdle);
  for (int i = 0; i < 40; ++i) {
    Need(ProfileOf(i), 1000, fmt::format("g{}", i));
    needs_.back().aggregate.Set(fmt::format("example.com/r{}", i), 5);
  }
  Decide();
  model::Resources many;
  for (size_t d = 1; d < kMaxMachineDimensions; ++d) many.Set(fmt::format("x{}", d), 1);
  EXPECT_TRUE(engine_.HasRoomFor(many));
  const std::vector<ShortNeed> needs = engine_.ShortNeeds();
  ASSERT_EQ(needs.size(), 40u);
  EXPECT_EQ(needs[0].shortage, (model::Resources{{"example.com/r39", 5}}));
  EXPECT_EQ(needs[1].shortage, (model::Resources{{"cpu", 1000}, {"example.com/r38", 5}}));
}

// How many names the tables hold after so many profiles that are listed once, a thousand at a time; every tenth of a
// gang.
size_t NamesAfter(int profiles) {
  Engine engine(Policy{});
  engine.SetCluster("a", {});
  model::Machine machine{.id = "m", .state = MachineState::kIdle, .instance_type = "m"};
  machine.resources = {{"cpu", 1000}};
  engine.Upsert(machine);
  for (int first = 0; first < profiles; first += 1000) {
    std::vector<model::Need> needs;
    std::vector<uint64_t> digests;
    for (int i = first; i < first + 1000; ++i) {
      model::ProfileParts parts{.priority = 5};
      parts.requirements.push_back({.key = "app", .op = model::Operator::kIn, .values = {fmt::format("v{}", i)}});
      if (i % 10 == 0) parts.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
      needs.push_back(
          {.cluster = "a", .profile = model::Profile(std::move(parts)), .aggregate = {{"cpu", 1 + i % 700}}});
      digests.push_back(RowDigest(needs.back()));
    }
    engine.ReplaceNeeds("a", {.rows = needs, .digests = digests}, std::nullopt);
    engine.Decide(MonoTime(std::chrono::seconds(3600 + first)));
  }
  const Inventory& inventory = Internals(engine).inventory;
  return inventory.profiles() + inventory.keys() + inventory.stamps() + inventory.catalogue().fit_rows() +
         inventory.catalogue().filter_rows();
}

TEST(Sweep, GivesBackProfilesThatNoNeedHas) {
  EXPECT_LE(NamesAfter(100'000), NamesAfter(20'000) + 10'000);
  const faults::ScopedMutant on("fast.profiles_stay");
  EXPECT_GT(NamesAfter(40'000), NamesAfter(20'000) + 60'000);
}

TEST(SweepDeathTest, FindsAFitThatIsStillInUse) {
  const faults::ScopedMutant on("fast.fit_in_use");
  EXPECT_DEATH(NamesAfter(5'000), "check failed");
}

// A hundred machines in five racks, each with another price and in another rack in every cycle; a need for any of them
// and a gang. The first table that holds more than it should, in words; "" if none does.
std::string GrowthWhilePricesMove(int changes) {
  constexpr int kMachines = 100;
  constexpr size_t kMost = 5 * kMachines;  // classes: as many as there are machines, and those that wait for a sweep
  Engine engine(Policy{});
  engine.SetCluster("a", {});
  model::ProfileParts gang{.priority = 5};
  gang.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
  const std::vector<model::Need> needs = {
      {.cluster = "a", .profile = ProfileOf(7), .aggregate = {{"cpu", 200'000}}},
      {.cluster = "a", .profile = model::Profile(std::move(gang)), .aggregate = {{"cpu", 90'000}}, .group = "g"}};
  std::vector<uint64_t> digests;
  for (const model::Need& need : needs) digests.push_back(RowDigest(need));
  engine.ReplaceNeeds("a", {.rows = needs, .digests = digests}, std::nullopt);
  for (int change = 0; change < changes;) {
    for (int m = 0; m < kMachines; ++m) {
      model::Machine machine{.id = fmt::format("m{}", m), .state = MachineState::kIdle, .instance_type = "m"};
      machine.labels = {{"rack", fmt::format("r{}-{}", change / kMachines, m % 5)},
                        {"host", fmt::format("h{}", change)}};
      machine.price_per_hour = {1'000'000 + ++change};
      machine.resources = {{"cpu", 1000}, {"seen", change}};
      engine.Upsert(machine);
    }
    engine.Decide(MonoTime(std::chrono::seconds(3600 + change)));
    const Internals tables(engine);
    const Catalogue& catalogue = tables.inventory.catalogue();
    const auto too_many = [&](std::string_view what, size_t count) {
      return fmt::format("{} {} of {} machines after {} changes of prices", count, what, kMachines, change);
    };
    if (catalogue.classes() > kMost) return too_many("classes", catalogue.classes());
    if (catalogue.shapes() > kMost) return too_many("shapes", catalogue.shapes());
    for (const NeedRow* need : tables.demand.order()) {
      const Fit& fit = catalogue.fit_as_is(need->fit);
      if (fit.classes.size() > kMost) return too_many("classes in a fit", fit.classes.size());
      if (fit.domains.size() > kMost / 20) return too_many("racks", fit.domains.size());
    }
  }
  return "";
}

TEST(Sweep, GivesBackClassesThatNoMachineIsOf) {
  EXPECT_EQ(GrowthWhilePricesMove(100'000), "");
  const faults::ScopedMutant on("fast.classes_stay");
  EXPECT_EQ(GrowthWhilePricesMove(100'000), "600 classes of 100 machines after 600 changes of prices");
}

TEST(SweepDeathTest, FindsAClassThatAFilterHasNotTried) {
  const faults::ScopedMutant on("fast.classes_missed");
  EXPECT_DEATH(GrowthWhilePricesMove(1'000), "filter [0-9]+ lists other classes than match it");
}

// An engine that a row of clusters passes through, one after the other, each with a gang and a plain need, and with the
// machine for a while. How many clusters and keys its tables have room for.
std::pair<size_t, size_t> RowsAfter(int clusters) {
  Engine engine(Policy{.surplus_hold = {}});
  model::Machine machine{.id = "m", .state = MachineState::kIdle, .instance_type = "m"};
  machine.resources = {{"cpu", 1000}};
  engine.SetCluster("stays", {});
  int64_t now = 3600;
  const auto decide = [&] { engine.Decide(MonoTime(std::chrono::seconds(++now))); };
  for (int i = 0; i < clusters; ++i) {
    const std::vector<std::string> name = {fmt::format("c{}", clusters - i)};  // each goes before the others by name
    engine.SetCluster(name[0], {});
    model::ProfileParts gang{.priority = 5};
    gang.requirements.push_back({.key = "rack", .op = model::Operator::kSame});
    std::vector<model::Need> needs = {
        {.cluster = name[0], .profile = model::Profile({.priority = 7}), .aggregate = {{"cpu", 1000}}},
        {.cluster = name[0], .profile = model::Profile(std::move(gang)), .aggregate = {{"cpu", 500}}, .group = "g"}};
    std::vector<uint64_t> digests;
    for (const model::Need& need : needs) digests.push_back(RowDigest(need));
    engine.ReplaceNeeds(name[0], {.rows = needs, .digests = digests}, std::nullopt);
    machine.state = MachineState::kConfigured;
    machine.cluster = name[0];
    engine.Upsert(machine);
    decide();
    EXPECT_EQ(engine.AvailableTo(name[0]).size(), 2u);
    EXPECT_TRUE(engine.ForgetClusters(name).empty()) << "it has needs and a machine";
    engine.ReplaceNeeds(name[0], {}, std::nullopt);
    for (int j = 0; j < 4; ++j) decide();
    EXPECT_TRUE(engine.ForgetClusters(name).empty()) << "it has a machine";
    machine.state = MachineState::kIdle;
    machine.cluster.clear();
    engine.Upsert(machine);
    for (int j = 0; j < 40; ++j) decide();  // keys that machines had are looked at now and then
    EXPECT_EQ(engine.ForgetClusters(name), name);
    EXPECT_EQ(engine.ForgetClusters(name), name) << "what it does not know is forgotten";
    EXPECT_FALSE(engine.StateOf(name[0]).has_value());
    decide();
  }
  return {Internals(engine).inventory.clusters(), Internals(engine).inventory.keys()};
}

TEST(ForgetClusters, AnotherTakesTheRow) { EXPECT_EQ(RowsAfter(100), RowsAfter(2)); }

TEST(ForgetClusters, WaitsUntilTheMemoryOfNeedsIsMadeWithoutIt) {
  Engine engine(Policy{});
  const std::vector<std::string> name = {"a"};
  engine.SetCluster("a", {});
  const std::vector<model::Need> needs = {{.cluster = "a", .profile = {}, .aggregate = {{"cpu", 1}}}};
  const std::vector<uint64_t> digests = {RowDigest(needs[0])};
  engine.ReplaceNeeds("a", {.rows = needs, .digests = digests}, std::nullopt);
  engine.Decide(MonoTime(1h));
  EXPECT_EQ(engine.ExportMemory().needs.size(), 1u);
  engine.ReplaceNeeds("a", {}, std::nullopt);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(engine.ForgetClusters(name).empty()) << i;
    engine.Decide(MonoTime(1h));
  }
  EXPECT_EQ(engine.ForgetClusters(name), name);
}

TEST(ForgetClusters, OneWithAHoldStays) {
  Engine engine(Policy{});
  const std::vector<std::string> name = {"a"};
  engine.SetCluster("a", {});
  engine.SetHolds({.pairs = {{"m", "a"}}});
  for (int i = 0; i < 5; ++i) engine.Decide(MonoTime(1h));
  EXPECT_TRUE(engine.ForgetClusters(name).empty());
  engine.SetHolds({});
  EXPECT_EQ(engine.ForgetClusters(name), name);
}

// The machine has come since the last decision.
void ForgetTheClusterOfAMachine() {
  Engine engine(Policy{});
  engine.SetCluster("a", {});
  for (int i = 0; i < 5; ++i) engine.Decide(MonoTime(1h));
  engine.Upsert({.id = "m", .state = MachineState::kConfigured, .instance_type = "m", .cluster = "a"});
  EXPECT_TRUE(engine.ForgetClusters(std::vector<std::string>{"a"}).empty());
  engine.Decide(MonoTime(1h));
}

TEST(ForgetClustersDeathTest, FindsAClusterThatIsStillInUse) {
  ForgetTheClusterOfAMachine();
  const faults::ScopedMutant on("fast.cluster_in_use");
  EXPECT_DEATH(ForgetTheClusterOfAMachine(), "is of a cluster that is forgotten");
}

}  // namespace
}  // namespace muster::engine::fast
