#include "placement/fast/node_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/probe.h"

namespace muster::placement::fast {
namespace {

Node Named(std::string id) {
  Node node{.id = std::move(id)};
  node.total = {{"cpu", 4000}, {"memory", 4000}};
  return node;
}

// Every id falls between the last two, so that the room between their ranks is halved each time.
TEST(NodeTable, RanksAreRenumbered) {
  faults::ResetProbes();
  NodeTable table(Strategy::kSpread);
  table.Load({Named("a"), Named("b")}, {});
  std::string id = "a";
  for (int i = 0; i < 80; ++i) {
    id += "a";
    table.Add(Named(id));
    table.CheckInvariants();
  }
  EXPECT_EQ(table.size(), 82u);
  EXPECT_GT(faults::ProbeHits().at("placement.ranks_renumbered"), 0u);
}

// As a scheduler reads its nodes from the store.
TEST(NodeTable, NodesThatJoinInTheOrderOfTheirIdsAreNotRenumbered) {
  faults::ResetProbes();
  NodeTable table(Strategy::kSpread);
  for (int i = 0; i < 2'000; ++i) table.Add(Named(fmt::format("n{:04}", i)));
  table.CheckInvariants();
  const auto hits = faults::ProbeHits();
  const auto renumbered = hits.find("placement.ranks_renumbered");
  EXPECT_TRUE(renumbered == hits.end() || renumbered->second == 0) << renumbered->second;
}

TEST(NodeTable, KeepsSummariesThroughShifts) {
  NodeTable table(Strategy::kPack);
  std::vector<Node> nodes;
  for (int i = 0; i < 130; ++i) nodes.push_back(Named(fmt::format("n{:03}", i)));
  table.Load(nodes, {});
  const DimIndex cpu = table.Dim("cpu");
  EXPECT_EQ(table.block_left(2, cpu), 4000);
  for (const Position row : {Position{128}, Position{129}}) {
    table.Shift(row, cpu, 1500);
    table.Settle(row);
  }
  table.CheckInvariants();
  EXPECT_EQ(table.block_left(2, cpu), 2500);
  EXPECT_LT(table.block_order(2), table.block_order(0)) << "the fuller come first";
  table.Remove(table.Find("n128"));
  table.CheckInvariants();
  EXPECT_EQ(table.Find("n128"), kNoValue);
}

}  // namespace
}  // namespace muster::placement::fast
