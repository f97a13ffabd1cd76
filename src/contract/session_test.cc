#include "contract/session.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "contract/coordinator.h"
#include "contract/shard.h"

namespace muster::contract {
namespace {

Rollup TwoRows() {
  const model::Profile profile({.requirements = {{.key = "zone", .op = model::Operator::kIn, .values = {"b", "a"}}},
                                .spread = {{.topology_key = "rack", .max_skew = 0}},
                                .priority = 7,
                                .interruption = model::PenaltyBucket::kPinned});
  return {.cluster_id = "c",
          .timestamp = WallTime(5s),
          .rows = NeedRows({{.cluster = "c", .profile = profile, .aggregate = {{"cpu", 4000}}, .group = "g"},
                            {.cluster = "c", .aggregate = {{"cpu", 1000}}, .min_unit = {{"cpu", 500}}}})};
}

TEST(Session, ARollupIsReadAsItWasWritten) {
  const Rollup rollup = TwoRows();
  const auto read = codec::FromBytes<OperatorMessage>(codec::ToBytes(OperatorMessage(rollup)));
  ASSERT_TRUE(read.has_value());
  const auto& again = std::get<Rollup>(*read);
  EXPECT_EQ(again, rollup);
  EXPECT_TRUE(std::ranges::equal(again.rows.digests(), rollup.rows.digests()));
  EXPECT_NE(rollup.rows.digests()[0], rollup.rows.digests()[1]);
}

// Parts in another order are the same profile, so their bytes must not be read as one.
TEST(Session, AProfileHasOneSpelling) {
  const model::Profile profile = TwoRows().rows.needs()[0].profile;
  EXPECT_TRUE(codec::FromBytes<model::Profile>(codec::ToBytes(profile)).has_value());
  model::ProfileParts parts = profile.parts();
  std::swap(parts.requirements[0].values[0], parts.requirements[0].values[1]);
  EXPECT_FALSE(codec::FromBytes<model::Profile>(codec::ToBytes(parts)).has_value());
}

TEST(Session, WhatIsSaidToTheCoordinatorIsReadAsItWasWritten) {
  const ShardReport report{.shard_id = "s",
                           .cycle = 3,
                           .summary = {.total_machines = 2, .per_zone_counts = {{"a", 2}}},
                           .shortfalls = {{.deficit = {{"cpu", 1}}, .priority = 5, .age_cycles = 2}},
                           .instruction_acks = {{.instruction_id = "i", .outcome = InstructOutcome::kFailed}}};
  EXPECT_EQ(codec::FromBytes<ShardReport>(codec::ToBytes(report)), report);
  const ReportAck ack{
      .coordinator_term = 4,
      .acknowledged = true,
      .instructions = {{.instruction_id = "i", .payload = AssignDomain{{.key = "zone", .value = "a"}}}}};
  EXPECT_EQ(codec::FromBytes<ReportAck>(codec::ToBytes(ack)), ack);
}

TEST(Session, AnswersOfAShardAreReadAsTheyWereWritten) {
  const ShardReply reply = NeedsInspected{
      .cycle = 9, .total = 1, .needs = {{.need = TwoRows().rows.needs()[0], .reason = model::Reason::kNoSession}}};
  const std::string bytes = codec::ToBytes(reply);
  const auto read = codec::FromBytes<ShardReply>(bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(codec::ToBytes(*read), bytes);
  EXPECT_EQ(std::get<NeedsInspected>(*read).needs, std::get<NeedsInspected>(reply).needs);
}

}  // namespace
}  // namespace muster::contract
