#include "rpc/coordinator_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "rpc/aging_channel.h"
#include "rpc/coordinator_conversion.h"
#include "rpc/open_calls.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

class GrpcCoordinatorClient final : public CoordinatorClient {
 public:
  GrpcCoordinatorClient(const std::string& target, std::shared_ptr<grpc::ChannelInterface> channel)
      : channel_(std::move(channel)), calls_("coordinator " + target, "record") {}

  void Report(const contract::ShardReport& report, Duration timeout,
              std::function<void(Result<contract::ReportAck>)> done) override {
    pb::ShardReport wire;
    ToWire(report, wire);
    calls_.BoundedUnary<pb::ReportAck>(
        channel_, "/bigfleet.v1alpha1.Coordinator/ReportShard", std::move(wire), timeout, MessageBounds(),
        [](pb::ReportAck& ack) { return TakeReply(ack); }, std::move(done));
  }

 private:
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<CoordinatorClient>> MakeCoordinatorClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ChannelInterface> channel,
      MakeAgingChannel({.target = target, .tls = tls, .serves = {.kinds = {Identity::Kind::kCoordinator}}}));
  return std::make_unique<GrpcCoordinatorClient>(target, channel);
}

}  // namespace muster::rpc
