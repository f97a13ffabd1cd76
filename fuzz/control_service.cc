// Any bytes as the requests of persys.control.v1: each is refused by name or read; and a workload that is read reaches
// an agent whole: what its request says to an agent is read there as the same template.
#include "frames.h"
#include "persys/agent/v1/agent.pb.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/control_conversion.h"
#include "rpc/persys_agent_conversion.h"

namespace {

using namespace muster;
namespace pb = persys::control::v1;
namespace agent = persys::agent::v1;

template <class Wire>
void Ask(const std::string& bytes) {
  CheckRead<Wire>(bytes, [](const Wire& wire) { return rpc::FromWire(wire); });
}

void Apply(const std::string& bytes) {
  pb::ApplyWorkloadRequest wire;
  if (!wire.ParseFromString(bytes)) return;
  const auto request = rpc::FromWire(wire);
  if (!request) return CheckRefusal(request.error());
  if (!request->spec) return;
  contract::ApplyOnAgent apply;
  apply.workload = request->workload;
  apply.revision = request->revision;
  apply.spec = *request->spec;
  agent::ApplyWorkloadRequest sent;
  rpc::ToWire(apply, sent);
  agent::ApplyWorkloadRequest arrived;
  MUSTER_CHECK(arrived.ParseFromString(sent.SerializeAsString()));
  const auto read = rpc::FromWire(arrived);
  MUSTER_CHECK(read.has_value(), "{}", read.error().ToString());
  MUSTER_CHECK(read->spec.type == apply.spec.type && read->spec.command == apply.spec.command &&
                   read->spec.env == apply.spec.env && read->spec.volumes == apply.spec.volumes &&
                   read->spec.compose == apply.spec.compose && read->spec.restart == apply.spec.restart,
               "a workload does not reach the agent as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  EachFrame(data, size, 11, [](uint8_t kind, const std::string& bytes) {
    switch (kind) {
      case 0: Ask<pb::RegisterNodeRequest>(bytes); break;
      case 1: Ask<pb::HeartbeatRequest>(bytes); break;
      case 2: Apply(bytes); break;
      case 3: Ask<pb::DeleteWorkloadRequest>(bytes); break;
      case 4: Ask<pb::RetryWorkloadRequest>(bytes); break;
      case 5: Ask<pb::ListNodesRequest>(bytes); break;
      case 6: Ask<pb::GetNodeRequest>(bytes); break;
      case 7: Ask<pb::ListWorkloadsRequest>(bytes); break;
      case 8: Ask<pb::GetWorkloadRequest>(bytes); break;
      case 9: Ask<pb::ControlMessage>(bytes); break;
      default: Ask<pb::SubmitAutomationSuggestionRequest>(bytes); break;
    }
  });
  return 0;
}
