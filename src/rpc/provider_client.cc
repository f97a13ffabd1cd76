#include "rpc/provider_client.h"

#include <fmt/format.h>
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
      : stub_(pb::CapacityProvider::NewStub(channel)), calls_("provider " + target) {}

  void Ask(contract::ProviderRequest request, Duration timeout, Done done) override {
    std::visit([&](const auto& typed) { Send(typed, timeout, std::move(done)); }, request);
  }

 private:
  void Send(const contract::CreateRequest& request, Duration timeout, Done done) {
    Start<pb::CreateRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                [this](auto&... args) { stub_->async()->Create(args...); });
  }
  void Send(const contract::ConfigureRequest& request, Duration timeout, Done done) {
    Start<pb::ConfigureRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                   [this](auto&... args) { stub_->async()->Configure(args...); });
  }
  void Send(const contract::DrainRequest& request, Duration timeout, Done done) {
    Start<pb::DrainRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                               [this](auto&... args) { stub_->async()->Drain(args...); });
  }
  void Send(const contract::DeleteRequest& request, Duration timeout, Done done) {
    Start<pb::DeleteRequest, pb::TransitionAck>(request, timeout, std::move(done),
                                                [this](auto&... args) { stub_->async()->Delete(args...); });
  }
  void Send(const contract::GetRequest& request, Duration timeout, Done done) {
    Start<pb::MachineRef, pb::Machine>(request, timeout, std::move(done),
                                       [this](auto&... args) { stub_->async()->Get(args...); });
  }
  void Send(const contract::ListRequest& request, Duration timeout, Done done) {
    Start<pb::ListFilter, pb::MachineList>(request, timeout, std::move(done),
                                           [this](auto&... args) { stub_->async()->List(args...); });
  }

  template <class WireRequest, class WireReply, class Request, class Call>
  void Start(const Request& request, Duration timeout, Done done, const Call& call) {
    WireRequest wire;
    ToWire(request, wire);
    calls_.Unary<WireReply>(std::move(wire), timeout, call,
                            [this, done = std::move(done)](const Status& status, WireReply& reply) {
                              done(status.ok() ? Read(reply) : std::unexpected(status));
                            });
  }

  template <class WireReply>
  Result<contract::ProviderReply> Read(WireReply& wire) {
    auto reply = TakeReply(wire, texts_);
    if (!reply) {
      return Error(Code::kInternal,
                   fmt::format("{} answers with a bad record: {}", calls_.server(), reply.error().message()));
    }
    return *std::move(reply);
  }

  const std::unique_ptr<pb::CapacityProvider::Stub> stub_;
  SharedTexts texts_;
  OpenCalls calls_;  // last: its end waits for answers, which use the rest
};

}  // namespace

Result<std::unique_ptr<contract::ProviderPort>> MakeProviderClient(const std::string& target, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = target, .tls = tls, .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<ProviderClient>(target, channel);
}

}  // namespace muster::rpc
