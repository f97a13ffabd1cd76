// What tests of conversions share: a trip over the wire, and a search for fields that are not written.
#pragma once

#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "bigfleet/v1alpha1/shard.pb.h"
#include "contract/session.h"
#include "model/need.h"
#include "rpc/rollup_conversion.h"
#include "rpc/session_conversion.h"

namespace muster::rpc {

// Through the bytes of the wire.
template <class Wire>
Wire OverTheWire(const Wire& wire) {
  std::string bytes;
  EXPECT_TRUE(wire.SerializeToString(&bytes));
  Wire read;
  EXPECT_TRUE(read.ParseFromString(bytes));
  return read;
}

// Paths of the fields that are unset or have their default value, in the message and in those within it; of a oneof
// only the one that is set counts. A test whose sample sets everything sees by it that nothing is left out on writing.
inline void AddUnset(const google::protobuf::Message& message, const std::string& path,
                     std::vector<std::string>& unset) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    const std::string name = path + field->name();
    const bool set =
        field->is_repeated() ? reflection.FieldSize(message, field) > 0 : reflection.HasField(message, field);
    if (!set && field->real_containing_oneof() == nullptr) unset.push_back(name);
    if (!set || field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (field->is_repeated()) {
      AddUnset(reflection.GetRepeatedMessage(message, field, 0), name + "[0].", unset);
    } else {
      AddUnset(reflection.GetMessage(message, field), name + ".", unset);
    }
  }
}
inline std::vector<std::string> UnsetFields(const google::protobuf::Message& message) {
  std::vector<std::string> unset;
  AddUnset(message, "", unset);
  return unset;
}

// As a shard reads it, of any kind.
inline Result<contract::OperatorMessage> TakeOperatorMessage(bigfleet::v1alpha1::OperatorMessage& wire) {
  using Wire = bigfleet::v1alpha1::OperatorMessage;
  switch (wire.payload_case()) {
    case Wire::kHello: return TakeHello(*wire.mutable_hello());
    case Wire::kRollup: {
      ProfileTable profiles;
      return ReadRollup(wire.rollup(), profiles);
    }
    case Wire::kBootstrapResponse: return TakeBootstrapResponse(*wire.mutable_bootstrap_response());
    case Wire::kReclaimAck: return TakeReclaimAck(*wire.mutable_reclaim_ack());
    case Wire::PAYLOAD_NOT_SET: break;
  }
  return InvalidArgument("nothing");
}

// A need that says something in every field.
inline model::Need FullNeed() {
  return {.cluster = "blue",
          .profile = model::Profile({.requirements = {{.key = "arch", .op = model::Operator::kIn, .values = {"b", "a"}},
                                                      {.key = "gpu", .op = model::Operator::kExists, .values = {}},
                                                      {.key = "rack", .op = model::Operator::kSame, .values = {}}},
                                     .spread = {{.topology_key = "host", .max_skew = 2}},
                                     .priority = -7,
                                     .interruption = model::PenaltyBucket::kPinned,
                                     .reclamation = model::PenaltyBucket::kHalfDollar}),
          .aggregate = {{"cpu", 96'000}, {"memory", 16'384'000'000'000}},
          .min_unit = {{"cpu", 1'500}},
          .group = "gang-1",
          .arrival = {}};
}

}  // namespace muster::rpc
