#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "bigfleet/v1alpha1/shardread.grpc.pb.h"
#include "muster/v1/fleet.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/row_stream.h"
#include "rpc/server_credentials.h"
#include "rpc/shard_conversion.h"
#include "rpc/shard_services.h"
#include "rpc/unary_answer.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

// What a list takes until it is read to its end, about.
size_t Takes(const contract::NeedsInspected& reply) { return reply.needs.size() * sizeof(contract::NeedView); }
size_t Takes(const contract::MachinesListed& reply) { return reply.machines.size() * sizeof(contract::MachineView); }

// Asks for a list and streams it: `rows(reply)` gives the function that fills one row after the other. The first is
// made on a thread of `encoders`, never on the one that answers.
template <class Reply, class Row, class WireRequest, class Rows>
grpc::ServerWriteReactor<Row>* StreamRows(grpc::CallbackServerContext& context, contract::ShardPort& shard,
                                          Worker& encoders, const WireRequest& wire, const Rows& rows) {
  auto* stream = new RowStream<Row>;  // frees itself
  auto request = FromWire(wire);
  if (!request) {
    stream->Fail(request.error());
    return stream;
  }
  shard.Ask(*std::move(request), [&context, &encoders, stream, rows](Result<contract::ShardReply> answer) {
    if (!answer) return stream->Fail(answer.error());
    const auto reply = std::make_shared<Reply>(std::move(Expect<Reply>(*answer)));
    if (const Status fit = TakeForAnswer(context, Takes(*reply)); !fit.ok()) return stream->Fail(fit);
    encoders.Post([stream, rows, reply] { stream->Begin(rows(reply)); });
  });
  return stream;
}

// Both services have it, in frames of their own.
template <class Frame>
grpc::ServerWriteReactor<Frame>* StreamNeeds(grpc::CallbackServerContext& context, contract::ShardPort& shard,
                                             Worker& encoders, const pb::InspectNeedsRequest& wire) {
  return StreamRows<contract::NeedsInspected, Frame>(
      context, shard, encoders, wire, [](const std::shared_ptr<contract::NeedsInspected>& reply) {
        return [reply, begun = false, at = size_t{0}](Frame& frame) mutable {
          if (!std::exchange(begun, true)) {
            ToWire(*reply, *frame.mutable_header());
            return true;
          }
          if (at == reply->needs.size()) return false;
          ToWire(reply->needs[at++], *frame.mutable_need());
          return true;
        };
      });
}

class ShardReadService final : public pb::ShardRead::CallbackService {
 public:
  explicit ShardReadService(contract::ShardPort& shard) : shard_(shard), encoders_(1) {}

 private:
  grpc::ServerWriteReactor<pb::InspectNeedsResponse>* InspectNeeds(grpc::CallbackServerContext* context,
                                                                   const pb::InspectNeedsRequest* request) override {
    return StreamNeeds<pb::InspectNeedsResponse>(*context, shard_, encoders_, *request);
  }

  contract::ShardPort& shard_;
  Worker encoders_;
};

class FleetService final : public v1::Fleet::CallbackService {
 public:
  explicit FleetService(contract::ShardPort& shard) : shard_(shard), encoders_(1) {}

 private:
  using Context = grpc::CallbackServerContext;

  grpc::ServerWriteReactor<v1::InspectNeedsResponse>* InspectNeeds(Context* context,
                                                                   const pb::InspectNeedsRequest* request) override {
    return StreamNeeds<v1::InspectNeedsResponse>(*context, shard_, encoders_, *request);
  }
  grpc::ServerWriteReactor<v1::MachineView>* ListMachines(Context* context,
                                                          const v1::ListMachinesRequest* request) override {
    return StreamRows<contract::MachinesListed, v1::MachineView>(
        *context, shard_, encoders_, *request, [](const std::shared_ptr<contract::MachinesListed>& reply) {
          return [reply, at = size_t{0}](v1::MachineView& row) mutable {
            if (at == reply->machines.size()) return false;
            ToWire(reply->machines[at++], row);
            return true;
          };
        });
  }
  MUSTER_UNARY_METHOD(ListActions, v1::ListActionsRequest, v1::ListActionsResponse, contract::ActionsListed);
  MUSTER_UNARY_METHOD(ListClusters, v1::ListClustersRequest, v1::ListClustersResponse, contract::ClustersListed);
  MUSTER_UNARY_METHOD(Explain, v1::ExplainRequest, v1::ExplainResponse, contract::Explained);
  MUSTER_UNARY_METHOD(SetActuation, v1::SetActuationRequest, v1::SetActuationResponse, contract::ActuationSet);
  MUSTER_UNARY_METHOD(RepairMachine, v1::RepairMachineRequest, v1::RepairMachineResponse, contract::OrderTaken);
  MUSTER_UNARY_METHOD(ForgetMachine, v1::ForgetMachineRequest, v1::ForgetMachineResponse, contract::OrderTaken);
  MUSTER_UNARY_METHOD(ListForgotten, v1::ListForgottenRequest, v1::ListForgottenResponse, contract::ForgottenListed);
  MUSTER_UNARY_METHOD(RecallMachine, v1::RecallMachineRequest, v1::RecallMachineResponse, contract::OrderTaken);
  MUSTER_UNARY_METHOD(AcceptLosses, v1::AcceptLossesRequest, v1::AcceptLossesResponse, contract::LossesAccepted);
  MUSTER_UNARY_METHOD(DecommissionCluster, v1::DecommissionClusterRequest, v1::DecommissionClusterResponse,
                      contract::OrderTaken);

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    auto request = FromWire(wire);
    if constexpr (requires { request->who; }) {
      if (request) request->who = CallerName(context);
    }
    return AnswerCall<Reply>(
        context, std::move(request), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [this](auto asked, contract::ShardPort::Answer done) { shard_.Ask(std::move(asked), std::move(done)); });
  }

  contract::ShardPort& shard_;
  Worker encoders_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeShardReadService(contract::ShardPort& shard) {
  return std::make_shared<ShardReadService>(shard);
}

std::shared_ptr<grpc::Service> MakeFleetService(contract::ShardPort& shard) {
  return std::make_shared<FleetService>(shard);
}

}  // namespace muster::rpc
