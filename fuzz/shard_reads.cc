// Any bytes as the messages of ShardRead and muster.v1.Fleet: a request is refused by name or read, and what is read is
// written as it was. And any bytes as answers: what a client takes it would write the same, and it names what it does
// not take.
//
// The input is a row of frames (frames.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/codec.h"
#include "bigfleet/v1alpha1/shardread.pb.h"
#include "frames.h"
#include "muster/v1/fleet.pb.h"
#include "refusal.h"
#include "rpc/shard_conversion.h"

namespace {

namespace pb = bigfleet::v1alpha1;
using namespace muster;

// The types of questions and answers have no equality of their own; their bytes have.
template <class Wire>
void Ask(const std::string& bytes) {
  Wire wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto request = rpc::FromWire(wire);
  if (!request) return CheckRefusal(request.error());
  Wire again;
  rpc::ToWire(*request, again);
  const auto read = rpc::FromWire(again);
  MUSTER_CHECK(read.has_value() && codec::ToBytes(*read) == codec::ToBytes(*request),
               "a request that was read is not written as it was");
}

template <class Wire>
void Answer(const std::string& bytes) {
  Wire wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto reply = rpc::TakeReply(wire);
  if (!reply) return CheckRefusal(reply.error());
  Wire again;
  rpc::ToWire(*reply, again);
  Wire arrived;
  MUSTER_CHECK(arrived.ParseFromString(again.SerializeAsString()));
  const auto read = rpc::TakeReply(arrived);
  MUSTER_CHECK(read.has_value() && codec::ToBytes(*read) == codec::ToBytes(*reply),
               "an answer that was read is not written as it was");
}

template <class Wire, class... Table>
void Row(const std::string& bytes, Table&... profiles) {
  Wire wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto view = rpc::TakeView(wire, "rows[3]", profiles...);
  if (!view) {
    MUSTER_CHECK(view.error().message().starts_with("rows[3]."), "{}", view.error().message());
    return CheckRefusal(view.error());
  }
  Wire again;
  rpc::ToWire(*view, again);
  Wire arrived;
  MUSTER_CHECK(arrived.ParseFromString(again.SerializeAsString()));
  const auto read = rpc::TakeView(arrived, "rows[3]", profiles...);
  MUSTER_CHECK(read.has_value(), "{}", read.error().ToString());
  // ShardRead's rows leave out what the protocol sets in some only.
  if constexpr (!std::is_same_v<Wire, pb::NeedView>) {
    MUSTER_CHECK(*read == *view, "a row that was read is not written as it was");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rpc::ProfileTable profiles;
  EachFrame(data, size, 25, [&](uint8_t kind, const std::string& bytes) {
    switch (kind) {
      case 0: Ask<pb::InspectNeedsRequest>(bytes); break;
      case 1: Ask<v1::ListMachinesRequest>(bytes); break;
      case 2: Ask<v1::ListActionsRequest>(bytes); break;
      case 3: Ask<v1::ListClustersRequest>(bytes); break;
      case 4: Ask<v1::ExplainRequest>(bytes); break;
      case 5: Ask<v1::SetActuationRequest>(bytes); break;
      case 6: Ask<v1::RepairMachineRequest>(bytes); break;
      case 7: Ask<v1::ForgetMachineRequest>(bytes); break;
      case 8: Row<pb::NeedView>(bytes, profiles); break;
      case 9: Row<v1::NeedView>(bytes, profiles); break;
      case 10: Row<v1::MachineView>(bytes); break;
      case 11: Answer<v1::ListActionsResponse>(bytes); break;
      case 12: Answer<v1::ListClustersResponse>(bytes); break;
      case 13: Answer<v1::ExplainResponse>(bytes); break;
      case 14: Answer<v1::SetActuationResponse>(bytes); break;
      case 15: Answer<v1::RepairMachineResponse>(bytes); break;
      case 16: Answer<v1::ForgetMachineResponse>(bytes); break;
      case 17: Ask<v1::ListForgottenRequest>(bytes); break;
      case 18: Ask<v1::RecallMachineRequest>(bytes); break;
      case 19: Ask<v1::AcceptLossesRequest>(bytes); break;
      case 20: Ask<v1::DecommissionClusterRequest>(bytes); break;
      case 21: Answer<v1::ListForgottenResponse>(bytes); break;
      case 22: Answer<v1::RecallMachineResponse>(bytes); break;
      case 23: Answer<v1::AcceptLossesResponse>(bytes); break;
      default: Answer<v1::DecommissionClusterResponse>(bytes); break;
    }
  });
  return 0;
}
