// The benchmark shapes of placement, made small: both placers agree, and units that are kinds of their own go where
// equal units go.
#include "placement/shapes/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "placement/fast/placer.h"
#include "placement/reference/place.h"

namespace muster::placement {
namespace {

using shapes::Filled;
using shapes::Shape;

std::vector<Outcome> ByFast(const Filled& filled) {
  fast::Placer placer(filled.policy);
  placer.Load(filled.world);
  std::vector<Outcome> outcomes = placer.Place(filled.pending);
  placer.CheckInvariants();
  return outcomes;
}

double SmallScale(const Shape& shape) { return 60.0 / static_cast<double>(shape.build(1, false).pending.size()); }

TEST(PlacementShapes, BothPlacersAgreeOnThem) {
  for (const Shape& shape : shapes::Shapes()) {
    const Filled filled = shape.build(SmallScale(shape), false);
    World world = filled.world;
    const std::vector<Outcome> expected = reference::Place(world, filled.pending, filled.policy);
    EXPECT_EQ(expected, ByFast(filled)) << shape.name;
    EXPECT_GE(std::ranges::count_if(expected, [](const Outcome& outcome) { return !outcome.node.empty(); }), 30)
        << shape.name;
  }
}

TEST(PlacementShapes, KindsOfTheirOwnGoWhereEqualUnitsGo) {
  for (const Shape& shape : shapes::Shapes()) {
    const double scale = SmallScale(shape) * 5;
    const Filled unique = shape.build(scale, true);
    EXPECT_EQ(unique.world.kinds.size(), unique.pending.size());
    EXPECT_EQ(Digest(ByFast(shape.build(scale, false))), Digest(ByFast(unique))) << shape.name;
  }
}

TEST(PlacementShapes, AreSpreadAsTheyAsk) {
  const Shape& shape = shapes::Shapes()[1];
  ASSERT_EQ(shape.name, "nomad-5000-spread");
  const Filled filled = shape.build(0.1, false);
  std::map<std::string, int> racks;
  for (const Outcome& outcome : ByFast(filled)) {
    const auto node = std::ranges::find(filled.world.nodes, outcome.node, &Node::id);
    ASSERT_NE(node, filled.world.nodes.end()) << outcome.unit;
    ++racks[node->labels.at("rack")];
  }
  ASSERT_EQ(racks.size(), 12u);
  for (const auto& [rack, units] : racks) EXPECT_EQ(units, 10) << rack;
}

}  // namespace
}  // namespace muster::placement
