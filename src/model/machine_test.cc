#include "model/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/codec.h"
#include "model/requirement.h"

namespace muster::model {
namespace {

using enum MachineState;

constexpr auto kAllStates = std::to_array<MachineState>(
    {kSpeculative, kCreating, kIdle, kConfiguring, kConfigured, kDraining, kDeleting, kFailed});

Machine ValidMachine(MachineState state) {
  Machine machine{.id = "m-1", .state = state};
  const bool bare = state == kSpeculative || state == kCreating;
  if (!bare) machine.host = {.provider = "sim", .ref = "h-1"};
  if (state == kConfigured || state == kDraining) machine.cluster = "c-1";
  if (state == kFailed) machine.last_error = "disk full";
  return machine;
}

TEST(Machine, AllStatePairsAgainstTheLegalEdges) {
  const std::set<std::pair<MachineState, MachineState>> legal = {
      {kSpeculative, kCreating}, {kCreating, kIdle},          {kCreating, kFailed},    {kIdle, kConfiguring},
      {kIdle, kDeleting},        {kConfiguring, kConfigured}, {kConfiguring, kFailed}, {kConfiguring, kIdle},
      {kConfigured, kDraining},  {kDraining, kIdle},          {kDraining, kFailed},    {kDeleting, kSpeculative},
      {kDeleting, kFailed},      {kFailed, kDeleting}};
  ASSERT_EQ(legal.size(), 14u);
  int pairs = 0;
  for (const MachineState from : kAllStates) {
    for (const MachineState to : kAllStates) {
      EXPECT_EQ(IsLegalEdge(from, to), legal.contains({from, to})) << StateName(from) << " -> " << StateName(to);
      ++pairs;
    }
    EXPECT_FALSE(IsLegalEdge(from, kUnspecified));
    EXPECT_FALSE(IsLegalEdge(kUnspecified, from));
  }
  EXPECT_EQ(pairs, 64);
}

TEST(Machine, StableStates) {
  for (const MachineState state : kAllStates) {
    EXPECT_EQ(IsStable(state), state == kSpeculative || state == kIdle || state == kConfigured) << StateName(state);
  }
  EXPECT_FALSE(IsStable(kUnspecified));
}

TEST(Machine, Names) {
  std::set<std::string_view> names;
  for (const MachineState state : kAllStates) {
    names.insert(StateName(state));
    EXPECT_EQ(ParseState(StateName(state)), state);
  }
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(StateName(kUnspecified), "Unspecified");
  EXPECT_EQ(StateName(static_cast<MachineState>(77)), "invalid");
  const auto unknown = ParseState("idle");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(
      unknown.error().message(),
      "unknown machine state \"idle\": use one of Speculative, Creating, Idle, Configuring, Configured, Draining, "
      "Deleting, Failed");
  EXPECT_FALSE(ParseState("Unspecified"));

  for (const std::string_view name : {"unspecified", "bare-metal", "reserved", "on-demand", "spot"}) {
    const auto type = ParseCapacityType(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(CapacityTypeName(*type), name);
  }
  EXPECT_EQ(CapacityTypeName(CapacityType::kSpot), "spot");
  EXPECT_FALSE(ParseCapacityType("Spot"));
}

TEST(Machine, ValidRecordsPass) {
  for (const MachineState state : kAllStates) {
    const Status status = CheckStructure(ValidMachine(state));
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  Machine configuring = ValidMachine(kConfiguring);
  configuring.cluster = "c-1";
  EXPECT_TRUE(CheckStructure(configuring).ok());
  Machine failed = ValidMachine(kFailed);
  failed.cluster = "c-1";
  EXPECT_TRUE(CheckStructure(failed).ok());
  failed = {.id = "m-1", .state = kFailed, .last_error = "quota gone"};
  EXPECT_TRUE(CheckStructure(failed).ok());
  Machine edge = ValidMachine(kIdle);
  edge.interruption_probability = {1'000'000};
  EXPECT_TRUE(CheckStructure(edge).ok());
}

// The record after `change` is refused with a message that names the machine and begins with the field.
template <class Change>
void ExpectBroken(MachineState state, std::string_view field, Change change) {
  Machine machine = ValidMachine(state);
  change(machine);
  const Status status = CheckStructure(machine);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << StateName(state) << " " << field;
  EXPECT_TRUE(status.message().starts_with(fmt::format("machine \"{}\": {}: ", machine.id, field))) << status.message();
}

TEST(Machine, EveryStructuralInvariantCanBreak) {
  ExpectBroken(kIdle, "id", [](Machine& m) { m.id.clear(); });
  ExpectBroken(kIdle, "state", [](Machine& m) { m.state = kUnspecified; });
  ExpectBroken(kIdle, "state", [](Machine& m) { m.state = static_cast<MachineState>(9); });
  for (const MachineState state : {kSpeculative, kCreating}) {
    ExpectBroken(state, "host", [](Machine& m) { m.host.ref = "h-1"; });
    ExpectBroken(state, "cluster", [](Machine& m) { m.cluster = "c-1"; });
  }
  for (const MachineState state : {kIdle, kConfiguring, kConfigured, kDraining, kDeleting}) {
    ExpectBroken(state, "host", [](Machine& m) { m.host = {}; });
  }
  for (const MachineState state : {kConfigured, kDraining}) {
    ExpectBroken(state, "cluster", [](Machine& m) { m.cluster.clear(); });
  }
  for (const MachineState state : {kIdle, kDeleting}) {
    ExpectBroken(state, "cluster", [](Machine& m) { m.cluster = "c-1"; });
  }
  ExpectBroken(kFailed, "cluster", [](Machine& m) {
    m.host = {};
    m.cluster = "c-1";
  });
  ExpectBroken(kFailed, "last_error", [](Machine& m) { m.last_error.clear(); });
  for (const MachineState state : kAllStates) {
    ExpectBroken(state, "price_per_hour", [](Machine& m) { m.price_per_hour = {-1}; });
    ExpectBroken(state, "interruption_probability", [](Machine& m) { m.interruption_probability = {-1}; });
    ExpectBroken(state, "interruption_probability", [](Machine& m) { m.interruption_probability = {1'000'001}; });
  }
}

TEST(Machine, Attributes) {
  Machine machine = ValidMachine(kIdle);
  machine.labels = {{"gpu", "h100"}, {"empty", ""}, {std::string(kZoneKey), "a label is not the zone"}};
  EXPECT_EQ(machine.Attribute(kInstanceTypeKey), std::nullopt);
  EXPECT_EQ(machine.Attribute(kZoneKey), std::nullopt);
  machine.instance_type = "m5.large";
  machine.zone = "z1";
  EXPECT_EQ(machine.Attribute(kInstanceTypeKey), "m5.large");
  EXPECT_EQ(machine.Attribute(kZoneKey), "z1");
  EXPECT_EQ(machine.Attribute("gpu"), "h100");
  EXPECT_EQ(machine.Attribute("empty"), "");
  EXPECT_EQ(machine.Attribute("rack"), std::nullopt);
}

TEST(Machine, EffectiveAllocatable) {
  Machine machine = ValidMachine(kIdle);
  machine.resources = {{"cpu", 4000}};
  EXPECT_EQ(machine.EffectiveAllocatable(), machine.resources);
  machine.allocatable = Resources{};
  EXPECT_TRUE(machine.EffectiveAllocatable().empty());
}

TEST(Machine, SurvivesTheCodec) {
  Machine machine = ValidMachine(kConfigured);
  machine.allocatable = Resources{{"cpu", 3900}};
  machine.labels = {{"gpu", "h100"}};
  machine.price_per_hour = {510'000};
  machine.interruption_probability = {50'000};
  EXPECT_EQ(codec::FromBytes<Machine>(codec::ToBytes(machine)), machine);
}

}  // namespace
}  // namespace muster::model
