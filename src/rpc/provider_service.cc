#include "rpc/provider_service.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "model/names.h"
#include "rpc/arena_messages.h"
#include "rpc/channel.h"
#include "rpc/provider_conversion.h"
#include "rpc/server_credentials.h"
#include "rpc/unary_answer.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

constexpr size_t kEncoders = 2;

template <class Reply>
constexpr Duration kTimeout = contract::kProviderCallTimeout;
template <>
constexpr Duration kTimeout<contract::ListReply> = contract::kProviderListTimeout;

Status CheckShard(const grpc::CallbackServerContext& context, const contract::FenceToken& token) {
  const std::optional<Identity> caller = CallerOf(context);
  if (!caller || token.shard_id.empty() || token.shard_id == caller->id) return {};
  return {Code::kPermissionDenied,
          fmt::format("shard_id: {} may not act for shard {}", caller->ToString(), model::Quoted(token.shard_id))};
}

class ProviderService final : public pb::CapacityProvider::CallbackService {
 public:
  explicit ProviderService(contract::ProviderPort& provider) : provider_(provider), encoders_(kEncoders) {
    SetMessageAllocatorFor_List(&lists_);
  }

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Ack = contract::TransitionAck;

  Reactor* Create(Context* context, const pb::CreateRequest* request, pb::TransitionAck* reply) override {
    return Serve<Ack>(*context, *request, *reply);
  }
  Reactor* Configure(Context* context, const pb::ConfigureRequest* request, pb::TransitionAck* reply) override {
    return Serve<Ack>(*context, *request, *reply);
  }
  Reactor* Drain(Context* context, const pb::DrainRequest* request, pb::TransitionAck* reply) override {
    return Serve<Ack>(*context, *request, *reply);
  }
  Reactor* Delete(Context* context, const pb::DeleteRequest* request, pb::TransitionAck* reply) override {
    return Serve<Ack>(*context, *request, *reply);
  }
  Reactor* Get(Context* context, const pb::MachineRef* request, pb::Machine* reply) override {
    return Serve<contract::GetReply>(*context, *request, *reply);
  }
  Reactor* List(Context* context, const pb::ListFilter* request, pb::MachineList* reply) override {
    return Serve<contract::ListReply>(*context, *request, *reply);
  }

  // gRPC keeps the context and the reply until Finish, which happens in the port's answer.
  template <class Reply, class WireRequest, class WireReply>
  Reactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    Reactor* reactor = context.DefaultReactor();
    auto request = FromWire(wire);
    const Status refused = [&]() -> Status {
      if (!request) return request.error();
      if constexpr (requires { request->fence; }) return CheckShard(context, request->fence);
      return {};
    }();
    if (!refused.ok()) {
      reactor->Finish(ToGrpc(refused));
      return reactor;
    }
    provider_.Ask(
        *std::move(request), kTimeout<Reply>, [this, reactor, &wire_reply](Result<contract::ProviderReply> answer) {
          if (!answer) return reactor->Finish(ToGrpc(answer.error()));
          auto& reply = Expect<Reply>(*answer);
          const size_t rows = RowsOf(reply);
          FinishWith(reactor, encoders_, rows, [reply = std::move(reply), &wire_reply] { ToWire(reply, wire_reply); });
        });
    return reactor;
  }

  contract::ProviderPort& provider_;
  ArenaMessages<pb::ListFilter, pb::MachineList> lists_;
  Worker encoders_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeProviderService(contract::ProviderPort& provider) {
  return std::make_shared<ProviderService>(provider);
}

}  // namespace muster::rpc
