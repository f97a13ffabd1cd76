// Properties of the reference engine, by search. MUSTER_SEARCH_SCALE=10 runs the volumes that docs/development.md
// records; 1, the default, a tenth of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/codec.h"
#include "base/probe.h"
#include "engine/flavours.h"
#include "engine/reference/decide.h"
#include "engine/search.h"
#include "host/fault_table_for_test.h"

namespace muster::engine {
namespace {

Decision Reference(const World& world, Memory& memory, MonoTime now, const Policy& policy) {
  return reference::Decide(world, memory, now, policy);
}

TEST(ReferenceEngine, KeepsTheInvariantsInRandomWorldsAndReachesEverything) {
  std::map<model::Reason, uint64_t> reasons;
  std::map<ActionKind, uint64_t> actions;
  std::map<ClaimKind, uint64_t> claims;
  for (uint64_t seed = 0; seed < 10'000 * SearchScale(); ++seed) {
    Scene scene = SceneFor(seed, kFlavours[seed % kFlavours.size()]);
    const auto broken = CheckOnce(scene, Reference);
    ASSERT_EQ(broken, std::nullopt) << "seed " << seed;
    const Decision decision = Reference(scene.world, scene.memory, scene.now, scene.policy);
    for (const Action& action : decision.actions) {
      ++actions[action.kind];
      ++reasons[action.reason];
    }
    for (const Claim& claim : decision.claims) ++claims[claim.kind];
    for (const NeedVerdict& verdict : decision.needs) ++reasons[verdict.reason];
    for (const MachineVerdict& verdict : decision.machines) ++reasons[verdict.reason];
  }
  EXPECT_EQ(actions.size(), 5u);
  EXPECT_EQ(claims.size(), 4u);
  for (const model::ReasonRow& row : model::ReasonTable()) {
    // Of a shard, not of the engine.
    if (row.name.starts_with("repair.") || row.name.starts_with("note.")) continue;
    if (row.name == "hold.missing" || row.name == "hold.fenced" || row.name == "hold.refused") continue;
    EXPECT_GT(reasons[row.reason], 0u) << "reason " << row.name << " was never given";
  }
}

TEST(ReferenceEngine, KeepsTheInvariantsWhileDemandSways) {
  faults::ResetProbes();
  for (const Family family : {Family::kHalfGangs, Family::kPledges, Family::kSurplus, Family::kBudget}) {
    for (uint64_t seed = 0; seed < 100 * SearchScale(); ++seed) {
      Choices choices = ChoicesFor(4'000'000 + seed);
      const Swaying swaying = RandomSwaying(choices, family);
      ASSERT_EQ(Sway(choices, swaying, 40, Reference).broken, std::nullopt) << "seed " << seed;
    }
  }
  faults::ExpectReached("ReferenceEngine.KeepsTheInvariantsWhileDemandSways", "engine");
}

TEST(ReferenceEngine, KeepsTheInvariantsThroughHistoriesAndReachesEveryRule) {
  faults::ResetProbes();
  for (uint64_t seed = 0; seed < 1'000 * SearchScale(); ++seed) {
    Choices choices = ChoicesFor(1'000'000 + seed);
    const Scene scene = RandomScene(choices, kFlavours[seed % kFlavours.size()]);
    ASSERT_EQ(RunHistory(choices, scene, 20, Reference), std::nullopt) << "seed " << seed;
  }
  faults::ExpectReached("ReferenceEngine.KeepsTheInvariantsThroughHistoriesAndReachesEveryRule", "engine");
}

bool HasEqualRows(const Scene& scene) {
  std::set<NeedKey> keys;
  for (const model::Need& need : scene.world.needs) keys.insert(KeyOf(need));
  return keys.size() != scene.world.needs.size();
}

TEST(ReferenceEngine, Settles) {
  int longest = 0;
  uint64_t in_flight = 0;
  const uint64_t worlds = 4'000 * SearchScale();
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    const Scene scene = SceneFor(2'000'000 + seed / kFlavours.size(), kFlavours[seed % kFlavours.size()]);
    const SettleResult result = Settle(scene, Reference);
    ASSERT_EQ(result.broken, std::nullopt) << "seed " << seed;
    ASSERT_FALSE(result.loops) << "seed " << seed;
    ASSERT_FALSE(result.too_long) << "seed " << seed << ": " << result.rounds << " rounds";
    // Two rows of one key share their machines and may pack them differently from round to round.
    ASSERT_TRUE(!result.buys_again || HasEqualRows(scene)) << "seed " << seed;
    in_flight += result.buys_in_flight && !HasEqualRows(scene) ? 1 : 0;
    longest = std::max(longest, result.rounds);
  }
  // Nothing is promised of rounds in which actions are still being carried out, but it is as good as never: a gang
  // counts what others bought meanwhile before what is still being made for it. [P1.credit]
  EXPECT_LE(in_flight * 100'000, worlds);
  fmt::print("{} worlds settle, longest run {}, {} bought again in flight\n", worlds, longest, in_flight);
}

TEST(ReferenceEngine, ARestartWithItsMemoryCausesNoAction) {
  int acts_without_attribution = 0;
  for (uint64_t seed = 0; seed < 1'000 * SearchScale(); ++seed) {
    Scene end = Settle(SceneFor(3'000'000 + seed, kFlavours[seed % kFlavours.size()]), Reference).end;
    const auto restored = codec::FromBytes<Memory>(codec::ToBytes(end.memory));
    ASSERT_TRUE(restored.has_value());
    ASSERT_EQ(*restored, end.memory);
    Memory memory = *restored;
    ASSERT_TRUE(Reference(end.world, memory, end.now, end.policy).actions.empty()) << "seed " << seed;
    // Why attribution is stored: bind stamps alone do not say who uses a machine today. [M.attribution]
    for (auto& [id, machine] : end.memory.machines) machine.attribution.reset();
    const SettleResult again = Settle(end, Reference);
    acts_without_attribution += again.end.now - end.now > 14h ? 1 : 0;
  }
  EXPECT_GT(acts_without_attribution, 0) << "the test would not notice lost attribution";
}

// What is wrong with how the world settles, if anything.
std::string SettlingTrouble(uint64_t seed, size_t flavour) {
  const Scene scene = SceneFor(2'000'000 + seed, kFlavours[flavour]);
  if (HasEqualRows(scene)) return "";
  const SettleResult result = Settle(scene, Reference);
  if (result.loops) return "a loop";
  if (result.buys_again || result.buys_in_flight) return "buying again";
  if (result.too_long) return "too many rounds";
  return "";
}

std::string SwayingTrouble(uint64_t seed, Family family) {
  Choices choices = ChoicesFor(4'000'000 + seed);
  const Swaying swaying = RandomSwaying(choices, family);
  const SwayResult result = Sway(choices, swaying, 40, Reference);
  if (result.preempts > swaying.preempts) return "preempting again";
  if (result.bought_again > 0) return "buying again";
  return "";
}

std::string HeldGangTrouble(uint64_t seed) {
  Choices choices = ChoicesFor(4'000'000 + seed);
  Scene scene = RandomHeldGang(choices);
  const Decision decision = Reference(scene.world, scene.memory, scene.now, scene.policy);
  if (decision.actions.empty()) return "";
  return fmt::format("{} for a hold of a moment", ActionKindName(decision.actions.front().kind));
}

std::string BrokenInvariant(uint64_t seed, size_t flavour) {
  return CheckOnce(SceneFor(2'000'000 + seed, kFlavours[flavour]), Reference).value_or("");
}

std::string BrokenHistory(uint64_t seed, size_t flavour) {
  Choices choices = ChoicesFor(4'500'000 + seed);
  const Scene scene = RandomScene(choices, kFlavours[flavour]);
  return RunHistory(choices, scene, 10, Reference).value_or("");
}

// Every rule that stops loops, flapping or buying twice: with the rule the search finds nothing, in the same worlds and
// more (here and in Settles), without it, it does.
struct RuleCase {
  const char* rule;
  std::function<std::string(uint64_t seed)> trouble;
  uint64_t worlds;  // to look at with the rule on
};
const std::vector<RuleCase> kRuleCases = {
    {"rule.own_first", [](uint64_t seed) { return SettlingTrouble(seed, 0); }, 3'000},
    {"rule.folded_identity", [](uint64_t seed) { return SettlingTrouble(seed, 5); }, 20'000},
    {"rule.skew_own", [](uint64_t seed) { return SettlingTrouble(seed, 4); }, 5'000},
    {"rule.gang_whole", [](uint64_t seed) { return SwayingTrouble(seed, Family::kHalfGangs); }, 1'000},
    {"rule.pledgee_first", [](uint64_t seed) { return SwayingTrouble(seed, Family::kPledges); }, 1'000},
    {"rule.surplus_first", [](uint64_t seed) { return SwayingTrouble(seed, Family::kSurplus); }, 1'000},
    {"rule.instead", [](uint64_t seed) { return SwayingTrouble(seed, Family::kBudget); }, 1'000},
    {"rule.holds", [](uint64_t seed) { return BrokenInvariant(seed, 7); }, 1'000},
    {"rule.hold_waits", [](uint64_t seed) { return BrokenInvariant(seed, 7); }, 1'000},
    {"rule.hold_not_taken", [](uint64_t seed) { return SettlingTrouble(seed, 8); }, 3'000},
    {"rule.hold_stays", HeldGangTrouble, 1'000},
    {"rule.hold_kept", [](uint64_t seed) { return BrokenInvariant(seed, 7); }, 1'000},
    {"rule.pause", [](uint64_t seed) { return BrokenInvariant(seed, 7); }, 1'000},
    {"rule.idle_risk", [](uint64_t seed) { return BrokenInvariant(seed, 0); }, 5'000},
    {"rule.gang_victims", [](uint64_t seed) { return BrokenInvariant(seed, 10); }, 3'000},
    {"rule.gang_stays", [](uint64_t seed) { return BrokenHistory(seed, 10); }, 1'000},
    {"rule.pending", [](uint64_t seed) { return BrokenInvariant(seed, 9); }, 1'000},
};

class MissingRule : public testing::TestWithParam<faults::Row> {};

TEST_P(MissingRule, IsFound) {
  const faults::Row& row = GetParam();
  const auto c = std::ranges::find(kRuleCases, row.name, &RuleCase::rule);
  ASSERT_NE(c, kRuleCases.end());
  ASSERT_EQ(std::ranges::count(kRuleCases, row.name, &RuleCase::rule), 1) << "only the first would be run";
  const faults::ScopedMutant off(row.name);
  std::string trouble;
  uint64_t world = row.from;
  for (; world < c->worlds && trouble.empty(); ++world) trouble = c->trouble(world);
  EXPECT_TRUE(!trouble.empty() && trouble.contains(row.says)) << trouble;
  fmt::print("without {}: {} in world {}\n", row.name, trouble, world - 1);
}

INSTANTIATE_TEST_SUITE_P(ReferenceEngine, MissingRule,
                         testing::ValuesIn(faults::RowsOf("MissingRule.IsFound", "engine", "bug")), faults::TestNameOf);

TEST(ReferenceEngine, WithTheRulesTheSameSearchFindsNone) {
  for (const RuleCase& c : kRuleCases) {
    for (uint64_t seed = 0; seed < c.worlds * SearchScale(); ++seed) {
      ASSERT_EQ(c.trouble(seed), "") << "searching for what lacks " << c.rule << ", seed " << seed;
    }
  }
}

// [V.pending] A shard that decides on every roll-up says which cycles count.
TEST(ReferenceEngine, AgesCountTheCyclesThatTheWorldCounts) {
  Scene scene;
  scene.world.clusters["c1"] = {};
  scene.world.needs.push_back({.cluster = "c1", .profile = {}, .aggregate = {{"cpu", 1000}}});
  std::vector<int32_t> ages;
  for (const bool counts : {true, false, true, false, false, true}) {
    scene.world.counts_ages = counts;
    ages.push_back(Reference(scene.world, scene.memory, scene.now, scene.policy).needs[0].age);
  }
  EXPECT_EQ(ages, (std::vector<int32_t>{1, 1, 2, 2, 2, 3}));
}

TEST(ReferenceEngine, TheSurplusHoldEndsFlapping) {
  const FlapResult held = Flap(1, 120s, 200, Reference);
  const FlapResult loose = Flap(1, 0s, 200, Reference);
  EXPECT_GT(loose.in_per_round, 10 * held.in_per_round);
  EXPECT_GT(loose.out_per_round, 10 * held.out_per_round);
}

RC_GTEST_PROP(ReferenceEngine, ShrinksWhatBreaks, (const std::vector<uint8_t>& bytes)) {
  Choices choices(bytes);
  const Scene scene = RandomScene(choices);
  RC_ASSERT(CheckOnce(scene, Reference) == std::nullopt);
  RC_ASSERT(RunHistory(choices, scene, 5, Reference) == std::nullopt);
}

}  // namespace
}  // namespace muster::engine
