// The fast placer beside the reference: equal outcomes, equal verdicts on every node, equal units after every change.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "placement/compare.h"
#include "placement/small_worlds.h"

namespace muster::placement {
namespace {

void ExpectEveryReason(const Reach& reach) {
  for (const ReasonRow& row : ReasonTable()) {
    if (row.reason == Reason::kNone) continue;
    const auto it = reach.reasons.find(std::string(row.name));
    const uint64_t times = it == reach.reasons.end() ? 0 : it->second;
    EXPECT_GE(times, 20u) << row.name;
    fmt::print("  {} {}\n", row.name, times);
  }
  constexpr std::array kMembers = {"taints", "weights", "soft spread", "devices", "utilisation", "node id"};
  for (size_t i = 0; i < kMembers.size(); ++i) {
    EXPECT_GE(reach.decided_by[i], 20u) << kMembers[i];
    fmt::print("  decided by {} {}\n", kMembers[i], reach.decided_by[i]);
  }
}

TEST(FastPlacer, AgreesOnRandomWorlds) {
  Reach reach;
  const uint64_t worlds = 10'000 * SearchScale();
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    ASSERT_EQ(CompareScene(seed, reach), "") << "seed " << seed;
  }
  fmt::print("{} worlds, {} units\n", worlds, reach.units);
  ExpectEveryReason(reach);
}

TEST(FastPlacer, AgreesOnWideWorlds) {
  Reach reach;
  const uint64_t worlds = 150 * SearchScale();
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    ASSERT_EQ(CompareWide(4'000'000 + seed, reach), "") << "seed " << seed;
  }
  fmt::print("{} worlds, {} units\n", worlds, reach.units);
}

TEST(FastPlacer, AgreesOnCrowdedWorlds) {
  Reach reach;
  const uint64_t worlds = 1'000 * SearchScale();
  for (uint64_t seed = 0; seed < worlds; ++seed) {
    ASSERT_EQ(CompareCrowded(6'000'000 + seed, reach), "") << "seed " << seed;
  }
  const uint64_t preempting = reach.reasons[std::string(ReasonName(Reason::kPlacedByPreemption))];
  fmt::print("{} worlds, {} units, {} by preemption\n", worlds, reach.units, preempting);
  EXPECT_GE(preempting, worlds / 10);
}

TEST(FastPlacer, AgreesOnAllSmallWorlds) {
  Reach reach;
  uint64_t looked_at = 0;
  std::array<uint64_t, 3> modes{};
  // The share has no factor in common with the number of modes, or whole modes would be left out.
  const uint64_t every = SearchScale() >= 10 ? 1 : 61;
  const uint64_t worlds = ForEachSmallWorld(every, [&](const Scene& scene, Arrival arrival, uint64_t number) {
    if (testing::Test::HasFatalFailure()) return;
    ++looked_at;
    ++modes[arrival == Arrival::kOneByOne ? 2 : scene.policy.preempt ? 1 : 0];
    Comparison comparison(scene, reach);
    if (arrival == Arrival::kTogether) {
      comparison.Place(scene.batch);
    } else {
      for (const Unit& unit : scene.batch) comparison.Place({unit});
    }
    ASSERT_EQ(comparison.difference(), "") << "world " << number;
  });
  fmt::print("{} of {} worlds, {} by preemption\n", looked_at, worlds,
             reach.reasons[std::string(ReasonName(Reason::kPlacedByPreemption))]);
  EXPECT_EQ(worlds, kSmallWorlds);
  EXPECT_EQ(looked_at, (kSmallWorlds + every - 1) / every);
  for (const uint64_t mode : modes) EXPECT_GE(mode, looked_at / 4);
  EXPECT_GE(reach.reasons[std::string(ReasonName(Reason::kPlacedByPreemption))], looked_at / 50);
}

// Kinds that are spread and excluded by each other come and go; what the placer says of a kind must not depend on
// whether others were forgotten.
TEST(FastPlacer, ForgottenKindsChangeNoAnswer) {
  const auto kind_of = [](int i) {
    Kind kind;
    kind.labels = model::TextMap::Map{{"app", fmt::format("a{}", i)}, {"tier", i % 2 == 0 ? "even" : "odd"}};
    kind.request.Set("cpu", 100 + i);
    const Selector odd{.given = true, .all = {{"tier", model::Operator::kIn, {"odd"}}}};
    if (i % 5 == 0) kind.exclude.push_back({.topology_key = "zone", .selector = odd});
    if (i % 3 == 0) kind.spread.push_back({.topology_key = "zone", .max_skew = 1, .selector = odd});
    return kind;
  };
  const auto add_nodes = [](fast::Placer& placer) {
    for (int i = 0; i < 6; ++i) {
      Node node{.id = fmt::format("n{}", i), .labels = model::TextMap::Map{{"zone", fmt::format("z{}", i % 3)}}};
      node.total = {{"cpu", 20'000}};
      node.supported_types = {Kind().type};
      placer.UpsertNode(node);
    }
  };
  fast::Placer forgets;
  fast::Placer keeps;
  add_nodes(forgets);
  add_nodes(keeps);
  size_t placed = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string id = fmt::format("u{}", i);
    std::vector<std::string> nodes;
    for (fast::Placer* placer : {&forgets, &keeps}) {
      const std::vector<Unit> batch = {{.id = id, .kind = placer->AddKind(kind_of(i % 40 + i / 10))}};
      nodes.push_back(placer->Place(batch).front().node);
      if (i >= 20) placer->RemoveUnit(fmt::format("u{}", i - 20));
    }
    ASSERT_EQ(nodes[0], nodes[1]) << i;
    placed += !nodes[0].empty();
    if (i % 7 == 0) forgets.ForgetKinds();
    forgets.CheckInvariants();
  }
  forgets.ForgetKinds();
  EXPECT_GT(placed, 100U);
  EXPECT_LE(forgets.kinds(), 20U);
  EXPECT_GT(keeps.kinds(), 40U);
}

TEST(FastPlacer, AgreesThroughHistories) {
  Reach reach;
  const uint64_t histories = 500 * SearchScale();
  for (uint64_t seed = 0; seed < histories; ++seed) {
    ASSERT_EQ(CompareHistory(1'000'000 + seed, 20, reach), "") << "seed " << seed;
  }
  fmt::print("{} histories, {} batches, {} units\n", histories, reach.batches, reach.units);
  for (const auto& [change, times] : reach.changes) fmt::print("  {} {}\n", change, times);
  EXPECT_EQ(reach.changes.size(), 8u);
  ExpectEveryReason(reach);
}

}  // namespace
}  // namespace muster::placement
