// Any bytes as the messages of muster.v1.Agent and persys.agent.v1: requests and answers are refused by name or read,
// and those of muster.v1.Agent are written as they were.
#include "frames.h"
#include "muster/v1/agent.pb.h"
#include "persys/agent/v1/agent.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/persys_agent_conversion.h"

namespace {

using namespace muster;
namespace pb = persys::agent::v1;

template <class Wire>
void Ask(const std::string& bytes) {
  CheckBothWays<Wire>(
      bytes, [](Wire& wire) { return rpc::FromWire(wire); },
      [](const auto& value, Wire& wire) { rpc::ToWire(value, wire); });
}
template <class Wire>
void Answer(const std::string& bytes) {
  CheckBothWays<Wire>(
      bytes, [](Wire& wire) { return rpc::TakeReply(wire); },
      [](const auto& value, Wire& wire) { rpc::ToWire(value, wire); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  EachFrame(data, size, 15, [](uint8_t kind, const std::string& bytes) {
    switch (kind) {
      case 0: Ask<v1::ApplyOnAgent>(bytes); break;
      case 1: Ask<v1::DeleteOnAgent>(bytes); break;
      case 2: Ask<v1::GetStatusOnAgent>(bytes); break;
      case 3: Ask<v1::LogsRequest>(bytes); break;
      case 4: Answer<v1::AppliedOnAgent>(bytes); break;
      case 5: Answer<v1::WorkloadStatus>(bytes); break;
      case 6: Answer<v1::ListedOnAgent>(bytes); break;
      case 7: Answer<v1::LogChunk>(bytes); break;
      case 8: CheckRead<pb::ApplyWorkloadRequest>(bytes, [](const auto& wire) { return rpc::FromWire(wire); }); break;
      case 9: CheckRead<pb::DeleteWorkloadRequest>(bytes, [](const auto& wire) { return rpc::FromWire(wire); }); break;
      case 10: CheckRead<pb::GetWorkloadStatusRequest>(bytes, [](const auto& w) { return rpc::FromWire(w); }); break;
      case 11: CheckRead<pb::ApplyWorkloadResponse>(bytes, [](auto& wire) { return rpc::TakeReply(wire); }); break;
      case 12: CheckRead<pb::DeleteWorkloadResponse>(bytes, [](auto& wire) { return rpc::TakeReply(wire); }); break;
      case 13: CheckRead<pb::GetWorkloadStatusResponse>(bytes, [](auto& wire) { return rpc::TakeReply(wire); }); break;
      default: CheckRead<pb::ListWorkloadsResponse>(bytes, [](auto& wire) { return rpc::TakeReply(wire); }); break;
    }
  });
  return 0;
}
