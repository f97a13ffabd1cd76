// Tables themselves; what a conversion does with them is in its own test.
#include "rpc/wire_table.h"

#include <gtest/gtest.h>

#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "rpc/coordinator_conversion.h"
#include "rpc/wire_oneof.h"

namespace muster::rpc {

namespace pb = bigfleet::v1alpha1;

struct Owned {
  std::vector<std::string> machine_ids;
  std::string from;
  std::string to;
  MUSTER_FIELDS(Owned, machine_ids, from, to)
};
struct Drained {
  std::vector<std::string> machine_ids;
  int32_t priority = 0;
  MUSTER_FIELDS(Drained, machine_ids, priority)
};
struct Told {
  std::variant<std::monostate, Owned, Drained> what;
  MUSTER_FIELDS(Told, what)
};

MUSTER_WIRE_PART(Owned, pb::TransferOwnership, MUSTER_WIRE(machine_ids), MUSTER_WIRE_AS(from, from_shard_id),
                 MUSTER_WIRE_AS(to, to_shard_id, Required("say who gets them")));
MUSTER_WIRE_SOME(Drained, pb::CrossShardDrain, MUSTER_WIRE(machine_ids));
MUSTER_WIRE_PART(Told, pb::CoordinatorInstruction,
                 MUSTER_WIRE_ONEOF(what, MUSTER_WIRE_CASE(Owned, transfer_ownership),
                                   MUSTER_WIRE_CASE(Drained, cross_shard_drain)));

// ReadTable refuses to compile a table for which this is false, unless it is one of some members.
static_assert(NamesEveryMember<Owned, pb::TransferOwnership>());
static_assert(!NamesEveryMember<Drained, pb::CrossShardDrain>());

namespace {

pb::CoordinatorInstruction Transfer() {
  pb::CoordinatorInstruction wire;
  wire.mutable_transfer_ownership()->add_machine_ids("m-1");
  wire.mutable_transfer_ownership()->set_from_shard_id("a");
  wire.mutable_transfer_ownership()->set_to_shard_id("a shard with a name too long to be inside of a string");
  return wire;
}

TEST(WireTable, TextsAreMovedUnlessTheMessageIsConst) {
  pb::CoordinatorInstruction wire = Transfer();
  const char* const bytes = wire.transfer_ownership().to_shard_id().data();
  const auto copied = ReadByTable<Told>(std::as_const(wire));
  ASSERT_TRUE(copied.has_value());
  EXPECT_NE(std::get<Owned>(copied->what).to.data(), bytes);
  EXPECT_EQ(wire.SerializeAsString(), Transfer().SerializeAsString());
  const auto taken = ReadByTable<Told>(wire);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(std::get<Owned>(taken->what).to.data(), bytes);
  EXPECT_EQ(std::get<Owned>(taken->what).machine_ids, (std::vector<std::string>{"m-1"}));
}

TEST(WireTable, AnErrorHasThePathOfItsField) {
  pb::CoordinatorInstruction wire = Transfer();
  wire.mutable_transfer_ownership()->clear_to_shard_id();
  EXPECT_EQ(
      ReadByTable<Told>(wire, "instructions[4]").error(),
      Status(Code::kInvalidArgument, "instructions[4].transfer_ownership.to_shard_id: missing; say who gets them"));
}

TEST(WireTable, AOneofThatIsNotSetLeavesTheVariantAndTheMessageEmpty) {
  EXPECT_EQ(ReadByTable<Told>(pb::CoordinatorInstruction::default_instance())->what.index(), 0U);
  pb::CoordinatorInstruction wire;
  WriteTable(Told(), wire);
  EXPECT_EQ(wire.payload_case(), pb::CoordinatorInstruction::PAYLOAD_NOT_SET);
  WriteTable(Told{.what = Drained{.machine_ids = {"m"}}}, wire);
  EXPECT_EQ(wire.cross_shard_drain().machine_ids(0), "m");
}

TEST(CoordinatorConversion, AReportThatCannotBeReadIsNamedByItsField) {
  pb::ShardReport wire;
  wire.add_shortfalls();
  (*wire.add_shortfalls()->mutable_deficit()->mutable_resources())["cpu"] = "x";
  EXPECT_TRUE(FromWire(wire).error().message().starts_with("shortfalls[1].deficit.cpu: "));
  wire.mutable_shortfalls(1)->Clear();
  EXPECT_TRUE(FromWire(wire).has_value());
  wire.mutable_shortfalls(1)->set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(28));
  EXPECT_EQ(FromWire(wire).error().message(),
            "shortfalls[1].interruption_penalty_bucket: 28 is not a penalty bucket; use 0 to 27");
  wire.clear_shortfalls();
  wire.add_instruction_acks()->set_outcome(static_cast<pb::InstructAck::Outcome>(5));
  EXPECT_EQ(FromWire(wire).error().message(),
            "instruction_acks[0].outcome: 5 is not an outcome; use 1 (accepted) to 4 (failed)");
}

}  // namespace
}  // namespace muster::rpc
