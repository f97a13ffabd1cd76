#include "rpc/provider_client.h"

#include <grpcpp/grpcpp.h>

#include <utility>
#include <variant>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/open_calls.h"
#include "rpc/provider_conversion.h"
#include "rpc/shared_texts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

class ProviderClient final : public contract::ProviderPort {
 public:
  ProviderClient(const std::string& target, const std::shared_ptr<grpc::Channel>& channel)
      : stub_(pb::CapacityProvider::NewStub(channel)), calls_("provider " + target, "record") {}

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override {
    std::visit([&](const auto& typed) { Send(typed, timeout, std::move(done)); }, request);
  }

 private:
  using Provider = pb::CapacityProvider::StubInterface::async_interface;

  void Send(const contract::CreateRequest& r, Duration t, Done d) { Start(r, &Provider::Create, t, std::move(d)); }
  void Send(const contract::ConfigureRequest& r, Duration t, Done d) {
    Start(r, &Provider::Configure, t, std::move(d));
  }
  void Send(const contract::DrainRequest& r, Duration t, Done d) { Start(r, &Provider::Drain, t, std::move(d)); }
  void Send(const contract::DeleteRequest& r, Duration t, Done d) { Start(r, &Provider::Delete, t, std::move(d)); }
  void Send(const contract::GetRequest& r, Duration t, Done d) { Start(r, &Provider::Get, t, std::move(d)); }
  void Send(const contract::ListRequest& r, Duration t, Done d) { Start(r, &Provider::List, t, std::move(d)); }

  template <class Request, class WireRequest, class WireReply>
  void Start(const Request& request, UnaryMethod<Provider, WireRequest, WireReply> method, Duration timeout,
             Done done) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.Unary(
        stub_->async(), method, std::move(wire), timeout, [this](WireReply& reply) { return TakeReply(reply, texts_); },
        std::move(done));
  }

  const std::unique_ptr<pb::CapacityProvider::Stub> stub_;
  SharedTexts texts_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<contract::ProviderPort>> MakeProviderClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target,
                                       .tls = tls,
                                       .serves = {Identity::Kind::kProvider},
                                       .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<ProviderClient>(target, channel);
}

}  // namespace muster::rpc
