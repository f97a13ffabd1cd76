#include "rpc/rollup_conversion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "bigfleet/v1alpha1/capacity.pb.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

pb::ClusterCapacityNeeds ToWire(const contract::Rollup& rollup) {
  pb::ClusterCapacityNeeds wire;
  rpc::ToWire(rollup, wire);
  return wire;
}

contract::Rollup Rollup(std::vector<model::Need> needs) {
  return {
      .cluster_id = "blue", .timestamp = WallTime(1234567890123456789ns), .rows = contract::NeedRows(std::move(needs))};
}

Result<contract::Rollup> Read(const pb::ClusterCapacityNeeds& wire) {
  ProfileTable profiles;
  return ReadRollup(OverTheWire(wire), profiles);
}

// Two needs are of one profile object if their fingerprints lie at one place.
const void* ObjectOf(const model::Need& need) { return &need.profile.fingerprint(); }

TEST(RollupConversion, ARollupComesThroughUnchanged) {
  const contract::Rollup rollup = Rollup({FullNeed(), {.cluster = "blue"}});
  const pb::ClusterCapacityNeeds wire = ToWire(rollup);
  EXPECT_EQ(UnsetFields(wire), std::vector<std::string>());
  EXPECT_EQ(wire.needs(0).aggregate_resources().at("memory"), "15625Mi");
  const auto read = Read(wire);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(*read, rollup);
  EXPECT_TRUE(std::ranges::equal(read->rows.digests(), rollup.rows.digests()));
}

TEST(RollupConversion, AnEmptyRollupIsOne) { EXPECT_EQ(Read(ToWire(Rollup({}))), Rollup({})); }

struct Bad {
  std::function<void(pb::CapacityNeed&)> spoil;
  std::string reason;
};

TEST(RollupConversion, AWrongFieldRefusesTheRollupByItsPath) {
  const std::vector<Bad> bad = {
      {[](pb::CapacityNeed& n) {
         n.mutable_requirements(1)->set_operator_(static_cast<pb::NodeSelectorRequirement::Operator>(6));
       },
       "requirements[1].operator: 6 is not an operator; use 1 (In) to 5 (Same)"},
      {[](pb::CapacityNeed& n) {
         n.mutable_requirements(0)->set_operator_(static_cast<pb::NodeSelectorRequirement::Operator>(-1));
       },
       "requirements[0].operator: -1 is not an operator; use 1 (In) to 5 (Same)"},
      {[](pb::CapacityNeed& n) { n.set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(28)); },
       "interruption_penalty_bucket: penalty bucket 28: it must be from 0 to 27"},
      {[](pb::CapacityNeed& n) { n.set_reclamation_penalty_bucket(static_cast<pb::PenaltyBucket>(-1)); },
       "reclamation_penalty_bucket: penalty bucket -1: it must be from 0 to 27"},
      {[](pb::CapacityNeed& n) { (*n.mutable_aggregate_resources())["cpu"] = "-1"; },
       "aggregate_resources.cpu: -1 is negative; an amount of a resource is zero or more"},
      {[](pb::CapacityNeed& n) { (*n.mutable_min_unit())["cpu"] = "lots"; }, "min_unit.cpu: "},
      {[](pb::CapacityNeed& n) { (*n.mutable_min_unit())["cpu"] = "1e99"; }, "min_unit.cpu: "},
      {[](pb::CapacityNeed& n) { (*n.mutable_min_unit())["cpu"] = ""; }, "min_unit.cpu: "},
      {[](pb::CapacityNeed& n) { (*n.mutable_min_unit())[""] = "1"; },
       "min_unit: a resource has no name; give one such as cpu or memory"},
      {[](pb::CapacityNeed& n) { (*n.mutable_min_unit())["a\nb"] = "-1"; },
       "min_unit.a\\nb: -1 is negative; an amount of a resource is zero or more"},
  };
  for (const Bad& one : bad) {
    pb::ClusterCapacityNeeds wire = ToWire(Rollup({FullNeed(), FullNeed(), FullNeed()}));
    one.spoil(*wire.mutable_needs(1));
    const auto read = Read(wire);
    ASSERT_FALSE(read.has_value()) << one.reason;
    EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
    EXPECT_TRUE(read.error().message().starts_with("needs[1]." + one.reason)) << read.error().message();
  }
}

TEST(RollupConversion, ANeedIsBoundedInWhatItSays) {
  pb::ClusterCapacityNeeds wire = ToWire(Rollup({FullNeed(), {.cluster = "blue"}}));
  pb::NodeSelectorRequirement& types = *wire.mutable_needs(1)->add_requirements();
  types.set_key("node.kubernetes.io/instance-type");
  types.set_operator_(pb::NodeSelectorRequirement::OPERATOR_IN);
  for (int i = 0; i < 1'500; ++i) types.add_values(fmt::format("m7i.metal-{}xl", i));
  EXPECT_TRUE(Read(wire).has_value()) << "all instance types that there are";
  for (int i = 0; i < 100'000; ++i) types.add_values("");
  const auto read = Read(wire);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(read.error().message().starts_with("needs[1]: its requirements, spread and group take 8"))
      << read.error().message();
}

TEST(RollupConversion, WhatOthersTakeIsTaken) {
  pb::ClusterCapacityNeeds wire;
  pb::CapacityNeed& need = *wire.add_needs();
  need.add_requirements()->set_key("zone");  // operator 0
  pb::TopologySpread& spread = *need.add_spread();
  spread.set_topology_key("rack");
  spread.set_max_skew(-3);
  spread.set_when_unsatisfiable(static_cast<pb::TopologySpread::WhenUnsatisfiable>(9));
  const auto read = Read(wire);
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  const model::Need& row = read->rows.needs()[0];
  EXPECT_EQ(row.profile.requirements()[0].op, model::Operator::kUnspecified);
  EXPECT_EQ(row.profile.spread()[0],
            (model::Spread{.topology_key = "rack", .max_skew = 1, .when = model::WhenUnsatisfiable::kUnspecified}));
  EXPECT_TRUE(row.aggregate.empty());
  EXPECT_EQ(row.profile.interruption(), model::PenaltyBucket::kUnspecified);
}

// Gt and Lt have no number on the wire; the shard says so instead of misreading them.
TEST(RollupConversion, AnOperatorOfOursIsRefusedByTheReader) {
  const model::Need need{
      .profile = model::Profile({.requirements = {{.key = "n", .op = model::Operator::kGt, .values = {"4"}}}})};
  EXPECT_EQ(Read(ToWire(Rollup({need}))).error().message(),
            "needs[0].requirements[0].operator: 6 is not an operator; use 1 (In) to 5 (Same)");
}

TEST(RollupConversion, EqualProfilesAreOneObjectFromRowToRowAndFromRollupToRollup) {
  ProfileTable profiles;
  model::Need other = FullNeed();
  other.profile = model::Profile({.priority = 3});
  const pb::ClusterCapacityNeeds wire = ToWire(Rollup({FullNeed(), other, FullNeed()}));
  const auto first = ReadRollup(wire, profiles);
  const auto second = ReadRollup(OverTheWire(wire), profiles);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(ObjectOf(first->rows.needs()[0]), ObjectOf(first->rows.needs()[2]));
  EXPECT_NE(ObjectOf(first->rows.needs()[0]), ObjectOf(first->rows.needs()[1]));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ObjectOf(first->rows.needs()[i]), ObjectOf(second->rows.needs()[i])) << i;
}

TEST(RollupConversion, AnotherOrderOfThePartsIsTheSameProfile) {
  ProfileTable profiles;
  pb::ClusterCapacityNeeds wire = ToWire(Rollup({FullNeed(), FullNeed()}));
  pb::CapacityNeed& turned = *wire.mutable_needs(1);
  turned.mutable_requirements()->SwapElements(0, 2);
  for (auto& requirement : *turned.mutable_requirements()) {
    if (requirement.values_size() == 2) requirement.mutable_values()->SwapElements(0, 1);
  }
  const auto read = ReadRollup(wire, profiles);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(ObjectOf(read->rows.needs()[0]), ObjectOf(read->rows.needs()[1]));
  EXPECT_EQ(profiles.size(), 1u);
}

// Rows that differ in one part of the profile only are of different profiles, whatever the texts look like side by
// side.
TEST(RollupConversion, DifferentProfilesAreNeverTakenForEqual) {
  ProfileTable profiles;
  pb::ClusterCapacityNeeds wire;
  const auto add = [&](const std::function<void(pb::CapacityNeed&)>& change) {
    pb::CapacityNeed& need = *wire.add_needs();
    rpc::ToWire(FullNeed(), need);
    change(need);
  };
  add([](pb::CapacityNeed&) {});
  add([](pb::CapacityNeed& n) { n.set_priority(8); });
  add([](pb::CapacityNeed& n) { n.set_interruption_penalty_bucket(pb::PENALTY_BUCKET_1); });
  add([](pb::CapacityNeed& n) { n.set_reclamation_penalty_bucket(pb::PENALTY_BUCKET_1); });
  add([](pb::CapacityNeed& n) { n.mutable_requirements()->RemoveLast(); });
  add([](pb::CapacityNeed& n) {
    n.mutable_requirements(0)->set_operator_(pb::NodeSelectorRequirement::OPERATOR_NOT_IN);
  });
  add([](pb::CapacityNeed& n) { n.mutable_requirements(0)->set_key("z"); });
  add([](pb::CapacityNeed& n) { n.mutable_requirements(0)->add_values("c"); });
  add([](pb::CapacityNeed& n) { n.mutable_spread()->Clear(); });
  add([](pb::CapacityNeed& n) { n.mutable_spread(0)->set_max_skew(3); });
  add([](pb::CapacityNeed& n) { n.mutable_spread(0)->set_topology_key("hos"); });
  add([](pb::CapacityNeed& n) {
    n.mutable_spread(0)->set_when_unsatisfiable(pb::TopologySpread::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
  });
  const auto read = ReadRollup(wire, profiles);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(profiles.size(), static_cast<size_t>(wire.needs_size()));
  for (int i = 0; i < wire.needs_size(); ++i) {
    ProfileTable alone;
    EXPECT_EQ(read->rows.needs()[static_cast<size_t>(i)], [&] {
      model::Need need = *ReadNeed(wire.needs(i), "", alone);
      need.cluster = wire.cluster_id();
      return need;
    }()) << i;
  }
}

TEST(RollupConversion, TheTableHoldsTheLatestRollupOnly) {
  ProfileTable profiles;
  for (int32_t round = 0; round < 100; ++round) {
    pb::ClusterCapacityNeeds wire = ToWire(Rollup({FullNeed(), FullNeed(), FullNeed()}));
    wire.mutable_needs(0)->set_priority(1'000 + round);
    wire.mutable_needs(1)->mutable_requirements()->SwapElements(round % 3, (round + 1) % 3);
    if (round % 2 == 1) (*wire.mutable_needs(2)->mutable_min_unit())["cpu"] = "no number";
    EXPECT_EQ(ReadRollup(wire, profiles).has_value(), round % 2 == 0);
    EXPECT_EQ(profiles.size(), 2u);
  }
}

}  // namespace
}  // namespace muster::rpc
