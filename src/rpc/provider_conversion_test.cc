#include "rpc/provider_conversion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

const std::string kAnyBytes("\0\xff\x80z", 4);
const std::map<std::string, std::string> kMetadata = {
    {std::string("nul\0key", 7), std::string("\0", 1)}, {"empty", ""}, {"\u00e9\U0001F600", "\u00fc"}};

model::Machine FullMachine() {
  return {.id = "m-1",
          .state = model::MachineState::kConfigured,
          .host = {.provider = "sim", .ref = "h-1"},
          .instance_type = "c5.large",
          .zone = "z1",
          .capacity_type = model::CapacityType::kSpot,
          .price_per_hour = {.micros = 123'457},
          .interruption_probability = {.millionths = 50'001},
          .resources = {{"cpu", 3'900}, {"memory", 16'384'000'000'000}},
          .allocatable = model::Resources{{"cpu", 3'500}},
          .labels = {{"rack", "r1"}},
          .cluster = "c-1",
          .shard_metadata = kMetadata,
          .last_error = "none so far"};
}

template <class Wire, class Request>
void ExpectSame(const Request& request) {
  Wire wire;
  ToWire(request, wire);
  const auto read = FromWire(OverTheWire(wire));
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(*read, request);
}

TEST(ProviderConversion, RequestsComeThroughUnchanged) {
  const contract::FenceToken token = {.shard_id = "shard-0", .epoch = 7, .sequence = 1L << 40};
  ExpectSame<pb::CreateRequest>(contract::CreateRequest{.machine_id = "m", .fence = token});
  ExpectSame<pb::ConfigureRequest>(contract::ConfigureRequest{
      .machine_id = "m", .cluster_id = "c", .bootstrap_blob = kAnyBytes, .fence = token, .shard_metadata = kMetadata});
  ExpectSame<pb::DrainRequest>(contract::DrainRequest{.machine_id = "m", .grace_period_seconds = 90, .fence = token});
  ExpectSame<pb::DeleteRequest>(contract::DeleteRequest{.machine_id = "m", .fence = {}});
  ExpectSame<pb::MachineRef>(contract::GetRequest{.machine_id = "m"});
  ExpectSame<pb::ListFilter>(contract::ListRequest{.states = {model::MachineState::kIdle, model::MachineState::kFailed},
                                                   .max_results = 5,
                                                   .since_revision = kAnyBytes});
}

// A Delete of the generation without tokens carried a bare reference.
TEST(ProviderConversion, AnOldDeleteIsAnUnfencedOne) {
  pb::MachineRef old;
  old.set_id("m-9");
  pb::DeleteRequest wire;
  ASSERT_TRUE(wire.ParseFromString(old.SerializeAsString()));
  EXPECT_EQ(FromWire(wire), (contract::DeleteRequest{.machine_id = "m-9", .fence = {}}));
  EXPECT_FALSE(FromWire(wire)->fence.given());
}

TEST(ProviderConversion, RequestsThatNameNothingAreRefusedByField) {
  const Status no_machine(Code::kInvalidArgument, "machine_id: missing; name the machine");
  EXPECT_EQ(FromWire(pb::CreateRequest()).error(), no_machine);
  EXPECT_EQ(FromWire(pb::ConfigureRequest()).error(), no_machine);
  EXPECT_EQ(FromWire(pb::DrainRequest()).error(), no_machine);
  EXPECT_EQ(FromWire(pb::DeleteRequest()).error(), no_machine);
  EXPECT_EQ(FromWire(pb::MachineRef()).error(), Status(Code::kInvalidArgument, "id: missing; name the machine"));
  for (const int state : {0, 9, 257, -1}) {
    pb::ListFilter filter;
    filter.add_states(pb::MACHINE_STATE_IDLE);
    filter.add_states(static_cast<pb::MachineState>(state));
    EXPECT_EQ(FromWire(filter).error(),
              Status(Code::kInvalidArgument,
                     "states[1]: " + std::to_string(state) + " is not a state; use 1 (Speculative) to 8 (Failed)"));
  }
}

TEST(ProviderConversion, AFilterHoldsEachStateOnce) {
  pb::ListFilter filter;
  for (int i = 0; i < 100; ++i) filter.add_states(pb::MACHINE_STATE_IDLE);
  EXPECT_EQ(FromWire(filter)->states.size(), 1u);
}

TEST(ProviderConversion, MachinesComeThroughUnchanged) {
  for (const model::Machine& machine :
       {FullMachine(), model::Machine{.id = "s", .state = model::MachineState::kSpeculative}}) {
    pb::Machine wire;
    ToWire(machine, wire);
    wire = OverTheWire(wire);
    EXPECT_EQ(wire.has_host(), !machine.host.empty());
    EXPECT_EQ(wire.has_allocatable(), machine.allocatable.has_value());
    SharedTexts texts;
    const auto read = TakeMachine(wire, "machine", texts);
    ASSERT_TRUE(read.has_value()) << read.error().ToString();
    EXPECT_EQ(*read, machine);
  }
  pb::Machine wire;
  ToWire(FullMachine(), wire);
  EXPECT_EQ(wire.resources().resources().at("memory"), "15625Mi");
  EXPECT_EQ(wire.price_per_hour(), 0.123457);
}

TEST(ProviderConversion, WhatTheWorldSaysOfAFailureIsMadeReadable) {
  model::Machine machine = FullMachine();
  machine.last_error = "disk \xff\xfe gone \u00e9 \xc3";
  pb::Machine wire;
  ToWire(machine, wire);
  EXPECT_EQ(OverTheWire(wire).last_error(), "disk ?? gone \u00e9 ?");
}

struct BadRecord {
  std::function<void(pb::Machine&)> spoil;
  std::string reason;
};

TEST(ProviderConversion, BadRecordsOfAListAreNamedAndTheOthersKept) {
  const std::vector<BadRecord> bad = {
      {[](pb::Machine& m) { m.clear_id(); }, "id: missing"},
      {[](pb::Machine& m) { m.set_price_per_hour(std::nan("")); },
       "price_per_hour: amount of dollars nan: it must be from 0 to 9000000000000"},
      {[](pb::Machine& m) { m.set_price_per_hour(-0.01); },
       "price_per_hour: amount of dollars -0.01: it must be from 0 to 9000000000000"},
      {[](pb::Machine& m) { m.set_price_per_hour(std::numeric_limits<double>::infinity()); },
       "price_per_hour: amount of dollars inf: it must be from 0 to 9000000000000"},
      {[](pb::Machine& m) { m.set_interruption_probability(2); },
       "interruption_probability: probability 2: it must be from 0 to 1"},
      {[](pb::Machine& m) { m.set_interruption_probability(-1e-9); },
       "interruption_probability: probability -1e-09: it must be from 0 to 1"},
      {[](pb::Machine& m) { m.set_interruption_probability(std::nan("")); },
       "interruption_probability: probability nan: it must be from 0 to 1"},
      {[](pb::Machine& m) { m.set_state(static_cast<pb::MachineState>(264)); },
       "state: 264 is not a state; use 1 (Speculative) to 8 (Failed)"},
      {[](pb::Machine& m) { m.clear_state(); }, "state: 0 is not a state; use 1 (Speculative) to 8 (Failed)"},
      {[](pb::Machine& m) { m.set_capacity_type(static_cast<pb::CapacityType>(5)); },
       "capacity_type: 5 is not a capacity type; use 1 (bare-metal) to 4 (spot)"},
      {[](pb::Machine& m) {
         (*m.mutable_resources()->mutable_resources())["b"] = "-1";
         (*m.mutable_resources()->mutable_resources())["a"] = "x";
         (*m.mutable_resources()->mutable_resources())["c"] = "";
       },
       "resources.a: "},
      {[](pb::Machine& m) { (*m.mutable_allocatable()->mutable_resources())["cpu"] = "1e99"; }, "allocatable.cpu: "},
      {[](pb::Machine& m) { (*m.mutable_resources()->mutable_resources())[""] = "1"; },
       "resources: a resource has no name; give one such as cpu or memory"},
      {[](pb::Machine& m) { (*m.mutable_resources()->mutable_resources())["x\ny"] = "-1"; },
       "resources.x\\ny: -1 is negative; an amount of a resource is zero or more"},
      {[](pb::Machine& m) { m.clear_host(); }, "host: a machine that is Configured must have one"},
      {[](pb::Machine& m) { m.set_state(pb::MACHINE_STATE_IDLE); }, "cluster: a machine that is Idle must have none"},
      {[](pb::Machine& m) {
         m.set_state(pb::MACHINE_STATE_FAILED);
         m.clear_last_error();
       },
       "last_error: a machine that is Failed must say why"},
  };
  pb::MachineList list;
  list.set_revision(kAnyBytes);
  const auto add = [&](const std::string& id) -> pb::Machine& {
    ToWire(FullMachine(), *list.add_machines());
    pb::Machine& machine = *list.mutable_machines(list.machines_size() - 1);
    machine.set_id(id);
    return machine;
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    bad[i].spoil(add("bad-" + std::to_string(i)));
    add("good-" + std::to_string(i));
  }
  add("good-0");
  list = OverTheWire(list);
  SharedTexts texts;
  const auto reply = TakeReply(list, texts);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->revision, kAnyBytes);
  ASSERT_EQ(reply->machines.size(), bad.size());
  ASSERT_EQ(reply->rejected.size(), bad.size() + 1);
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(reply->machines[i]->id, "good-" + std::to_string(i));
    EXPECT_EQ(reply->rejected[i].id, i == 0 ? "" : "bad-" + std::to_string(i));
    EXPECT_TRUE(reply->rejected[i].reason.starts_with("machines[" + std::to_string(2 * i) + "]." + bad[i].reason))
        << reply->rejected[i].reason;
  }
  EXPECT_EQ(reply->rejected.back(),
            (contract::RejectedMachine{.id = "good-0",
                                       .reason = "machines[34].id: \"good-0\" is also machines[1], which counts"}));
}

// In pieces of this many bytes, as a transport may cut it.
Result<contract::ListReply> Read(const std::string& bytes, SharedTexts& texts, size_t piece = 1 << 20) {
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.push_back(std::string_view(bytes).substr(at, piece));
  return ReadMachineList(pieces, texts);
}

TEST(ProviderConversion, AListInBytesIsTheSameListHoweverItIsCut) {
  pb::MachineList list;
  list.set_revision(kAnyBytes);
  for (int i = 0; i < 3'000; ++i) {
    ToWire(FullMachine(), *list.add_machines());
    if (i % 7 != 0) list.mutable_machines(i)->set_id("m-" + std::to_string(i));
    if (i % 11 == 0) list.mutable_machines(i)->set_price_per_hour(-1);
  }
  const std::string bytes = list.SerializeAsString();
  SharedTexts texts;
  const auto whole = TakeReply(list, texts);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(Read(bytes, texts), whole);
  EXPECT_EQ(Read(bytes, texts, 7), whole);
  EXPECT_EQ(Read("", texts), contract::ListReply());
  EXPECT_EQ(Read("\x78\x01" + bytes + "\x82\x01\x02xy", texts), whole) << "fields of a later protocol";
}

TEST(ProviderConversion, AListLargerThanAFleetIsRefusedByItsBound) {
  SharedTexts texts;
  const auto said = [&](const std::string& bytes) { return Read(bytes, texts).error().ToString(); };
  const auto row = [](const std::string& record) {
    pb::MachineList one;
    EXPECT_TRUE(one.add_machines()->ParseFromString(record));
    return one.SerializeAsString();
  };
  std::string empty;
  for (int i = 0; i < 100'000; ++i) empty.append("\x0A\x00", 2);
  EXPECT_TRUE(said(empty).ends_with(" records take more memory than machines do; a provider must answer with less"))
      << said(empty);
  pb::Machine large;
  large.set_id(std::string(65'536, 'x'));
  EXPECT_EQ(said(row(large.SerializeAsString())),
            "RESOURCE_EXHAUSTED: machines[0]: 65540 bytes, and 65536 are allowed; a provider must answer with less");
  EXPECT_EQ(said("\x12\x81\x80\x04" + std::string(65'537, 'x')),
            "RESOURCE_EXHAUSTED: revision: 65537 bytes, and 65536 are allowed; a provider must answer with less");
  for (const std::string bad : {"\x0A\x05x", "\x0A", "\x0B", "\x0A\x02\x0A\x05", "\x07", "\x0A\x03\x0A\x01\xFF"}) {
    EXPECT_EQ(Read(bad, texts).error().code(), Code::kInvalidArgument) << bad.size();
  }
}

TEST(ProviderConversion, AcknowledgementsAndSingleRecords) {
  const contract::TransitionAck ack = {.operation_id = "op-1", .machine = contract::MachineRecord(FullMachine())};
  pb::TransitionAck wire;
  ToWire(ack, wire);
  SharedTexts texts;
  EXPECT_EQ(TakeReply(wire, texts), ack);
  pb::TransitionAck bare;
  bare.set_operation_id("op-2");
  EXPECT_EQ(TakeReply(bare, texts), (contract::TransitionAck{.operation_id = "op-2", .machine = {}}));
  wire.mutable_machine()->set_price_per_hour(-1);
  EXPECT_TRUE(TakeReply(wire, texts).error().message().starts_with("machine.price_per_hour: ")) << "named by its path";
}

}  // namespace
}  // namespace muster::rpc
