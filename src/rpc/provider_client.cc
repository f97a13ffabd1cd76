#include "rpc/provider_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>
#include <variant>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "rpc/aging_channel.h"
#include "rpc/open_calls.h"
#include "rpc/provider_conversion.h"
#include "rpc/shared_texts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

class ProviderClient final : public contract::ProviderPort {
 public:
  ProviderClient(const std::string& target, std::shared_ptr<grpc::ChannelInterface> channel)
      : channel_(std::move(channel)), calls_("provider " + target, "record") {}

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override {
    std::visit([&](const auto& typed) { Send(typed, timeout, std::move(done)); }, request);
  }

 private:
  void Send(const contract::CreateRequest& r, Duration t, Done d) {
    Start<pb::CreateRequest, pb::TransitionAck>(r, "/bigfleet.v1alpha1.CapacityProvider/Create", t, std::move(d));
  }
  void Send(const contract::ConfigureRequest& r, Duration t, Done d) {
    Start<pb::ConfigureRequest, pb::TransitionAck>(r, "/bigfleet.v1alpha1.CapacityProvider/Configure", t, std::move(d));
  }
  void Send(const contract::DrainRequest& r, Duration t, Done d) {
    Start<pb::DrainRequest, pb::TransitionAck>(r, "/bigfleet.v1alpha1.CapacityProvider/Drain", t, std::move(d));
  }
  void Send(const contract::DeleteRequest& r, Duration t, Done d) {
    Start<pb::DeleteRequest, pb::TransitionAck>(r, "/bigfleet.v1alpha1.CapacityProvider/Delete", t, std::move(d));
  }
  void Send(const contract::GetRequest& r, Duration t, Done d) {
    Start<pb::MachineRef, pb::Machine>(r, "/bigfleet.v1alpha1.CapacityProvider/Get", t, std::move(d));
  }
  void Send(const contract::ListRequest& r, Duration t, Done d) {
    pb::ListFilter wire;
    ToWire(r, wire);
    calls_.UnaryBytes(
        channel_, "/bigfleet.v1alpha1.CapacityProvider/List", std::move(wire), t,
        [this](const grpc::ByteBuffer& bytes) { return ReadMachineList(BytePieces(bytes).all(), texts_); },
        std::move(d));
  }

  template <class WireRequest, class WireReply, class Request>
  void Start(const Request& request, const char* path, Duration timeout, Done done) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.BoundedUnary<WireReply>(
        channel_, path, std::move(wire), timeout, MessageBounds(),
        [this](WireReply& reply) { return TakeReply(reply, texts_); }, std::move(done));
  }

  const std::shared_ptr<grpc::ChannelInterface> channel_;
  SharedTexts texts_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<contract::ProviderPort>> MakeProviderClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelInterface> channel,
                          MakeAgingChannel({.target = target,
                                            .tls = tls,
                                            .serves = {.kinds = {Identity::Kind::kProvider}},
                                            .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<ProviderClient>(target, channel);
}

}  // namespace muster::rpc
