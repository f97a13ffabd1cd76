// Any bytes as the messages of muster.v1.Cluster: a request is refused by name or read, and what is read is written as
// it was; and so are answers.
#include "frames.h"
#include "muster/v1/cluster.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/cluster_conversion.h"

namespace {

using namespace muster;

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
  EachFrame(data, size, 36, [](uint8_t kind, const std::string& bytes) {
    switch (kind) {
      case 0: Ask<v1::JoinRequest>(bytes); break;
      case 1: Ask<v1::NodeHeartbeat>(bytes); break;
      case 2: Ask<v1::ApplyWorkloadRequest>(bytes); break;
      case 3: Ask<v1::ApplySpecRequest>(bytes); break;
      case 4: Ask<v1::ApplyQuotaRequest>(bytes); break;
      case 5: Ask<v1::DeleteObjectRequest>(bytes); break;
      case 6: Ask<v1::RetryWorkloadRequest>(bytes); break;
      case 7: Ask<v1::ScaleSetRequest>(bytes); break;
      case 8: Ask<v1::RestartSetRequest>(bytes); break;
      case 9: Ask<v1::CordonNodeRequest>(bytes); break;
      case 10: Ask<v1::DrainNodeRequest>(bytes); break;
      case 11: Ask<v1::AcceptNodeRequest>(bytes); break;
      case 12: Ask<v1::ListNodesRequest>(bytes); break;
      case 13: Ask<v1::ListWorkloadsRequest>(bytes); break;
      case 14: Ask<v1::GetNodeRequest>(bytes); break;
      case 15: Ask<v1::GetWorkloadRequest>(bytes); break;
      case 16: Ask<v1::ListSetsRequest>(bytes); break;
      case 17: Ask<v1::ListQuotasRequest>(bytes); break;
      case 18: Ask<v1::ListEventsRequest>(bytes); break;
      case 19: Ask<v1::ExplainWorkloadRequest>(bytes); break;
      case 20: Ask<v1::WatchRequest>(bytes); break;
      case 21: Answer<v1::NodeRegistered>(bytes); break;
      case 22: Answer<v1::HeartbeatAck>(bytes); break;
      case 23: Answer<v1::Applied>(bytes); break;
      case 24: Answer<v1::Done>(bytes); break;
      case 25: Answer<v1::NodesListed>(bytes); break;
      case 26: Answer<v1::WorkloadsListed>(bytes); break;
      case 27: Answer<v1::SetsListed>(bytes); break;
      case 28: Answer<v1::QuotasListed>(bytes); break;
      case 29: Answer<v1::EventsListed>(bytes); break;
      case 30: Answer<v1::Summary>(bytes); break;
      case 31: Answer<v1::Explanation>(bytes); break;
      case 32: Answer<v1::WatchEvent>(bytes); break;
      case 33: Ask<v1::ReportMachinesRequest>(bytes); break;
      case 34: Ask<v1::LogsRequest>(bytes); break;
      default: CheckRead<v1::JoinMessage>(bytes, [](const auto& wire) { return rpc::FromWire(wire); }); break;
    }
  });
  return 0;
}
