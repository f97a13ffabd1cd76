// The ledger by itself: rows of an earlier life, and the rows it writes.
#include "core/shard/ledger.h"

#include <gtest/gtest.h>

#include "core/shard/step_for_test.h"

namespace muster::shard {
namespace {

using Texts = std::vector<std::string>;

void Store(contract::Recovered& rows, const contract::Write& write) { rows[write.key] = *write.value; }

class LedgerTest : public ::testing::Test {
 protected:
  void Recover(const contract::Recovered& rows) {
    contract::RowReader reader("shard", "");
    ledger_.RegisterRows(reader);
    ASSERT_TRUE(reader.Read(rows).ok());
    ledger_.Start(step_.ctx.now);
  }

  const Config config_;
  EngineView engine_{config_.policy, nullptr};
  ClusterCeilings ceilings_{{}};
  Ledger ledger_{engine_, ceilings_, {}};
  StepForTest step_{config_};
};

TEST_F(LedgerTest, AgesOfAnEarlierLifeAreNeverNegative) {
  contract::Recovered rows;
  const WallTime now = step_.ctx.now.wall;
  Store(rows, kMachineRows.Put("m", {.unclaimed_since = now - 30s, .draining_since = now + 1h}));
  Store(rows, kDrainRows.Put("large", {.total_millis = 5000, .drains = 2}));
  Recover(rows);
  const engine::MachineMemory& memory = ledger_.restored().machines.at("m");
  EXPECT_EQ(memory.unclaimed_since, step_.ctx.now.mono - 30s);
  EXPECT_EQ(memory.draining_since, step_.ctx.now.mono) << "the wall clock was set back meanwhile";
  EXPECT_EQ(ledger_.restored().drains.at("large").drains, 2);
  ledger_.ForgetRestored();
  EXPECT_EQ(ledger_.restored(), engine::Memory{});
}

TEST_F(LedgerTest, ADroppedMachineTakesItsRowAlong) {
  contract::Recovered rows;
  Store(rows, kMachineRows.Put("m", {.unclaimed_since = step_.ctx.now.wall}));
  Recover(rows);
  ledger_.OnMachineDropped("x", step_.ctx);
  ledger_.OnMachineDropped("m", step_.ctx);
  EXPECT_EQ(step_.Writes(), Texts{"erase machine/m"}) << "x has none";
}

TEST_F(LedgerTest, AShortNeedIsAsOldAsItsCyclesSay) {
  contract::Recovered rows;
  const model::Need need{.cluster = "a",
                         .profile = model::Profile({.priority = 7}),
                         .aggregate = {{"cpu", 1000}},
                         .min_unit = {{"cpu", 1000}}};
  const engine::NeedKey key = engine::KeyOf(need);
  Store(rows, kShortRows.Put(key, {.since = step_.ctx.now.wall - 1min, .cycles = {.first = 41}}));
  Recover(rows);
  engine_.engine().SetCluster("a", {});
  CycleTimer cycle(config_, {.number = 500, .counted = 100});
  ledger_.RestoreAges("a", cycle);
  const std::vector<model::Need> needs{need};
  const std::vector<uint64_t> digests{model::RowDigest(need)};
  engine_.engine().ReplaceNeeds("a", {.rows = needs, .digests = digests}, std::nullopt);
  engine_.engine().Decide(step_.ctx.now.mono);
  const ShortChanges changes = engine_.TakeShortChanges(501, 101);
  ASSERT_EQ(changes.changed.size(), 1u);
  EXPECT_EQ(changes.changed[0].key, key);
  EXPECT_EQ(changes.changed[0].priority, 7);
  EXPECT_EQ(changes.changed[0].cycles.first, 41);
  EXPECT_EQ(changes.counts.by_age, (std::array<uint64_t, 4>{0, 0, 1, 0}));
  engine_.engine().Decide(step_.ctx.now.mono + 1s);
  const ShortChanges steady = engine_.TakeShortChanges(502, 102);
  EXPECT_TRUE(steady.changed.empty() && steady.ended.empty()) << "it stays as it is";
  engine_.engine().Decide(step_.ctx.now.mono + 1s, false, false);
  const ShortChanges uncounted = engine_.TakeShortChanges(503, 102);
  EXPECT_TRUE(uncounted.changed.empty() && uncounted.ended.empty()) << "a cycle that does not count makes it no older";
  engine_.engine().ReplaceNeeds("a", {}, std::nullopt);
  engine_.engine().Decide(step_.ctx.now.mono + 2s);
  EXPECT_EQ(engine_.TakeShortChanges(504, 103).ended, std::vector<engine::NeedKey>{key});
}

}  // namespace
}  // namespace muster::shard
