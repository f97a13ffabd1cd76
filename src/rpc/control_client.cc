#include "rpc/control_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "persys/control/v1/control.pb.h"
#include "rpc/channel.h"
#include "rpc/open_calls.h"

namespace muster::rpc {
namespace {

namespace pb = persys::control::v1;

constexpr Duration kCallTimeout = 10s;
constexpr int64_t kMegabyte = int64_t{1000} << 20;  // memory is counted in thousandths of a byte

pb::HeartbeatRequest RequestOf(const contract::Heartbeat& beat) {
  pb::HeartbeatRequest request;
  request.set_node_id(beat.node);
  if (beat.used) {
    request.mutable_usage()->set_cpu_used_millicores(beat.used->Get("cpu"));
    request.mutable_usage()->set_memory_used_mb(beat.used->Get("memory") / kMegabyte);
  }
  for (const contract::WorkloadStatus& status : beat.statuses) {
    pb::WorkloadStatus& row = *request.add_workload_statuses();
    row.set_workload_id(status.workload);
    row.set_state(std::string(contract::ActualStateName(status.actual)));
    row.set_message(status.message);
  }
  return request;
}

class GrpcControlClient final : public ControlClient {
 public:
  GrpcControlClient(const std::string& target, const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel), calls_("scheduler " + target, "answer") {}

  void Beat(const contract::Heartbeat& beat, std::function<void(Status)> done) override {
    calls_.BoundedUnary<pb::HeartbeatResponse>(
        channel_, "/persys.control.v1.AgentControl/Heartbeat", RequestOf(beat), kCallTimeout, MessageBounds(),
        [](const pb::HeartbeatResponse& reply) -> Result<bool> { return reply.acknowledged(); },
        [done = std::move(done)](const Result<bool>& acknowledged) {
          if (!acknowledged) return done(acknowledged.error());
          done(*acknowledged ? Status() : Status(Code::kFailedPrecondition, "the heartbeat was not acknowledged"));
        });
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  OpenCalls calls_;  // last: its end waits for calls
};

}  // namespace

Result<std::unique_ptr<ControlClient>> MakeControlClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target,
                                       .tls = tls,
                                       .serves = {.kinds = {Identity::Kind::kScheduler, Identity::Kind::kCluster}},
                                       .own_connection = true}));
  return std::make_unique<GrpcControlClient>(target, channel);
}

}  // namespace muster::rpc
