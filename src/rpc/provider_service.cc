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
  if (!caller || (token.given() && token.shard_id == caller->id)) return {};
  if (!token.given()) {
    return {
        Code::kInvalidArgument,
        fmt::format("shard_id: missing; {} must fence its calls with its id, epoch and sequence", caller->ToString())};
  }
  return {Code::kPermissionDenied,
          fmt::format("shard_id: {} may not act for shard {}", caller->ToString(), model::Quoted(token.shard_id))};
}

class ProviderService final : public pb::CapacityProvider::CallbackService {
 public:
  explicit ProviderService(contract::ProviderPort& provider) : provider_(provider), encoders_(kEncoders) {
    SetMessageAllocatorFor_List(&lists_);
  }

 private:
  using Ack = contract::TransitionAck;

  MUSTER_UNARY_METHOD(Create, pb::CreateRequest, pb::TransitionAck, Ack);
  MUSTER_UNARY_METHOD(Configure, pb::ConfigureRequest, pb::TransitionAck, Ack);
  MUSTER_UNARY_METHOD(Drain, pb::DrainRequest, pb::TransitionAck, Ack);
  MUSTER_UNARY_METHOD(Delete, pb::DeleteRequest, pb::TransitionAck, Ack);
  MUSTER_UNARY_METHOD(Get, pb::MachineRef, pb::Machine, contract::GetReply);
  MUSTER_UNARY_METHOD(List, pb::ListFilter, pb::MachineList, contract::ListReply);

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext& context, const WireRequest& wire,
                                  WireReply& wire_reply) {
    return AnswerCall<Reply>(
        context, FromWire(wire), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [&](auto request, contract::ProviderPort::Done done) {
          if constexpr (requires { request.fence; }) {
            const Status allowed = CheckShard(context, request.fence);
            if (!allowed.ok()) return done(std::unexpected(allowed));
          }
          provider_.Ask(std::move(request), kTimeout<Reply>, std::move(done));
        });
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
