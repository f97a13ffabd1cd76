// Several workers: the same answer as one, on every way the workers may run; and a broker that really has work to do.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "engine/fast/follower.h"
#include "engine/shapes/shapes.h"
#include "host/pool.h"

namespace muster::engine {
namespace {

struct Decided {
  uint64_t digest = 0;
  fast::BrokerStats stats;
};

Decided DecideOnce(const World& world, Parallel* parallel, const Policy& policy = {}) {
  fast::Follower follower(policy, parallel);
  follower.Update(world);
  const Decision decision = follower.Decide(MonoTime(std::chrono::hours(1)));
  return {.digest = Digest(decision), .stats = follower.engine().broker()};
}

void ExpectSound(const fast::BrokerStats& stats) {
  EXPECT_EQ(stats.accepted_claims - stats.displaced_claims, stats.claimed);
  const fast::ModeStats total = stats.total();
  EXPECT_LE(total.displacements, stats.displaced_claims);
  EXPECT_EQ(total.retries, total.conflicts + total.displacements);
  EXPECT_EQ(stats.all_or_nothing.retries, 0u);
}

TEST(Broker, OneWorkerNeitherSpeculatesNorConflicts) {
  const Decided run = DecideOnce(ColdMixed({}), nullptr);
  EXPECT_EQ(run.stats.incremental.conflicts, 0u);
  EXPECT_EQ(run.stats.incremental.displacements, 0u);
  EXPECT_EQ(run.stats.claimed, 4000u);
  ExpectSound(run.stats);
}

TEST(Broker, WithoutRetriesNothingIsPlannedAhead) {
  const World world = ColdMixed({});
  ShuffledParallel shuffled(1, 8);
  const Decided run = DecideOnce(world, &shuffled, {.phase1_retries = 0});
  EXPECT_EQ(run.digest, DecideOnce(world, nullptr).digest);
  EXPECT_EQ(run.stats.incremental.conflicts, 0u);
  EXPECT_EQ(run.stats.incremental.proposals, 0u);
  ExpectSound(run.stats);
}

TEST(Broker, EightWorkersInAnyOrderGiveTheAnswerOfOne) {
  const World world = ColdMixed({});
  const uint64_t expected = DecideOnce(world, nullptr).digest;
  uint64_t conflicts = 0;
  uint64_t retries = 0;
  uint64_t displacements = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ShuffledParallel shuffled(seed, 8);
    const Decided run = DecideOnce(world, &shuffled);
    ASSERT_EQ(run.digest, expected) << "seed " << seed;
    ExpectSound(run.stats);
    EXPECT_LE(run.stats.incremental.conflict_fraction(), 1.0) << "seed " << seed;
    conflicts += run.stats.incremental.conflicts;
    retries += run.stats.incremental.retries;
    displacements += run.stats.incremental.displacements;
  }
  EXPECT_GT(conflicts, 0u);
  EXPECT_GT(retries, 0u);
  EXPECT_GT(displacements, 0u);
  RecordProperty("conflicts", std::to_string(conflicts));
  RecordProperty("displacements", std::to_string(displacements));
}

TEST(Broker, RealThreadsGiveTheAnswerOfOne) {
  const World world = ColdMixed({});
  const uint64_t expected = DecideOnce(world, nullptr).digest;
  host::Pool pool(8);
  uint64_t conflicts = 0;
  uint64_t retries = 0;
  uint64_t displacements = 0;
  for (int run = 0; run < 100; ++run) {
    const Decided threads = DecideOnce(world, &pool);
    ASSERT_EQ(threads.digest, expected) << "run " << run;
    ExpectSound(threads.stats);
    EXPECT_LE(threads.stats.incremental.conflict_fraction(), 1.0) << "run " << run;
    EXPECT_GT(threads.stats.incremental.nanos, 0u);
    conflicts += threads.stats.incremental.conflicts;
    retries += threads.stats.incremental.retries;
    displacements += threads.stats.incremental.displacements;
  }
  EXPECT_GT(conflicts, 0u);
  EXPECT_GT(retries, 0u);
  EXPECT_GT(displacements, 0u);
}

TEST(Broker, EachPlanIsTimed) {
  std::map<std::string, uint64_t, std::less<>> plans;
  std::map<std::string, uint64_t, std::less<>> nanos;
  host::Pool pool(4, [&](std::string_view what, uint64_t took) {
    ++plans[std::string(what)];
    nanos[std::string(what)] += took;
  });
  for (const World& world : {ColdMixed({}), Colocated5k({.times = 1, .parts = 10})}) {
    plans.clear();
    nanos.clear();
    const fast::BrokerStats stats = DecideOnce(world, &pool).stats;
    EXPECT_GT(stats.total().proposals, 0u);
    EXPECT_EQ(plans["proposal.incremental"], stats.incremental.proposals);
    EXPECT_EQ(plans["proposal.all-or-nothing"], stats.all_or_nothing.proposals);
    EXPECT_EQ(nanos["proposal.incremental"], stats.incremental.nanos);
    EXPECT_EQ(nanos["proposal.all-or-nothing"], stats.all_or_nothing.nanos);
  }
}

TEST(Broker, EqualPrecedenceNeverDisplaces) {
  World world = ColdMixed({});
  for (model::Need& need : world.needs) {
    model::ProfileParts parts = need.profile.parts();
    parts.priority = 1000;
    need.profile = model::Profile(std::move(parts));
  }
  const uint64_t expected = DecideOnce(world, nullptr).digest;
  host::Pool pool(8);
  uint64_t conflicts = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    ShuffledParallel shuffled(seed, 8);
    for (Parallel* parallel : {static_cast<Parallel*>(&shuffled), static_cast<Parallel*>(&pool)}) {
      const Decided run = DecideOnce(world, parallel);
      ASSERT_EQ(run.digest, expected) << "seed " << seed;
      EXPECT_EQ(run.stats.incremental.displacements, 0u) << "seed " << seed;
      EXPECT_EQ(run.stats.displaced_claims, 0u) << "seed " << seed;
      conflicts += run.stats.incremental.conflicts;
    }
  }
  EXPECT_GT(conflicts, 0u);
}

// What an engine bought has come.
void CarryOut(const Decision& decision, World& world) {
  std::map<std::string, model::Machine*> by_id;
  for (model::Machine& machine : world.machines) by_id[machine.id] = &machine;
  for (const Action& action : decision.actions) {
    ASSERT_EQ(action.kind, ActionKind::kBootstrap);
    by_id.at(action.machine)->state = model::MachineState::kConfigured;
    by_id.at(action.machine)->cluster = action.cluster;
  }
}

TEST(Broker, AWarmFleetHasFewConflicts) {
  World world = ColdMixed({});
  ShuffledParallel shuffled(5, 8);
  fast::Follower one(Policy{});
  fast::Follower eight(Policy{}, &shuffled);
  for (size_t cycle = 0; cycle < 25; ++cycle) {
    one.Update(world);
    eight.Update(world);
    const MonoTime now(std::chrono::hours(1) + std::chrono::seconds(cycle));
    const Decision decision = one.Decide(now);
    ASSERT_EQ(Digest(eight.Decide(now)), Digest(decision)) << "cycle " << cycle;
    const fast::BrokerStats& stats = eight.engine().broker();
    ExpectSound(stats);
    EXPECT_LE(stats.incremental.conflict_fraction(), cycle == 0 ? 1.0 : 0.2) << "cycle " << cycle;
    CarryOut(decision, world);
    // One need in 25 wants a machine more: several windows of needs that are short, in two chains.
    for (size_t i = cycle; i < world.needs.size(); i += 25) {
      world.needs[i].aggregate = *Add(world.needs[i].aggregate, world.needs[i].min_unit);
    }
  }
}

TEST(Broker, EveryShapeIsDecidedAsByOneWorker) {
  host::Pool pool(2);
  for (const Shape& shape : Shapes()) {
    const World world = shape.build({.times = 1, .parts = 50});
    ShuffledParallel shuffled(3, 8);
    const uint64_t expected = DecideOnce(world, nullptr).digest;
    EXPECT_EQ(DecideOnce(world, &pool).digest, expected) << shape.name;
    EXPECT_EQ(DecideOnce(world, &shuffled).digest, expected) << shape.name;
  }
}

}  // namespace
}  // namespace muster::engine
