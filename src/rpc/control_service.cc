#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "host/system_clock.h"
#include "model/names.h"
#include "model/workload_bounds.h"
#include "persys/control/v1/control.grpc.pb.h"
#include "rpc/bounded_read.h"
#include "rpc/channel.h"
#include "rpc/cluster_services.h"
#include "rpc/control_conversion.h"
#include "rpc/control_stream.h"
#include "rpc/server_credentials.h"
#include "rpc/tenant_scope.h"
#include "rpc/unary_answer.h"
#include "rpc/whole_list.h"
#include "rpc/wire_parts.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = persys::control::v1;

// What rows that were added to an answer take, as messages and as bytes.
template <class Rows>
size_t TakenFrom(const Rows& rows, int first) {
  size_t bytes = 0;
  for (int i = first; i < rows.size(); ++i) bytes += rows.Get(i).SpaceUsedLong() + rows.Get(i).ByteSizeLong();
  return bytes;
}
size_t AddNodes(const contract::NodesListed& listed, pb::ListNodesResponse& wire) {
  const int before = wire.nodes_size();
  ToWire(listed.nodes, wire);
  return TakenFrom(wire.nodes(), before);
}
size_t AddWorkloads(const contract::WorkloadsListed& listed, pb::ListWorkloadsResponse& wire) {
  const int before = wire.workloads_size();
  ToWire(listed.workloads, wire);
  return TakenFrom(wire.workloads(), before);
}

const std::string& NodeOf(const contract::RegisterNode& request) { return request.facts.node; }
const std::string& NodeOf(const contract::Heartbeat& request) { return request.node; }

// One call of SubmitAutomationSuggestion; whoever answers last frees it.
class Suggestion : public std::enable_shared_from_this<Suggestion> {
 public:
  Suggestion(contract::ClusterPort& cluster, grpc::ServerUnaryReactor* reactor,
             const pb::SubmitAutomationSuggestionRequest& request, pb::SubmitAutomationSuggestionResponse& reply)
      : cluster_(cluster), reactor_(reactor), wire_(request.suggestion()), reply_(reply) {}

  void Begin(Result<contract::ClusterRequest> request) {
    if (!request) return reactor_->Finish(ToGrpc(request.error()));
    const bool scale = std::holds_alternative<contract::ListSets>(*request);
    cluster_.Ask(*std::move(request), [self = shared_from_this(), scale](Result<contract::ClusterReply> reply) {
      if (scale && reply) return self->Scale(Expect<contract::SetsListed>(*reply));
      self->Decide(reply);
    });
  }

 private:
  void Scale(const contract::SetsListed& listed) {
    if (listed.sets.empty()) {
      return Refused(fmt::format("{} is no set: only a set has replicas", model::Quoted(wire_.target_workload())));
    }
    const int32_t now = listed.sets.front().spec.replicas;
    const int64_t wanted =
        wire_.desired_replicas() > 0 ? wire_.desired_replicas() : int64_t{now} + wire_.replica_delta();
    if (wanted < 0) return Refused(fmt::format("{} replicas are too few", wanted));
    if (wanted > model::kMostReplicas) {
      return Refused(fmt::format("{} replicas are too many; a set has at most {}", wanted, model::kMostReplicas));
    }
    cluster_.Ask(contract::ScaleSet{.set = wire_.target_workload(), .replicas = static_cast<int32_t>(wanted)},
                 [self = shared_from_this()](const Result<contract::ClusterReply>& reply) { self->Decide(reply); });
  }

  // What the scheduler refuses is a decision; that it cannot decide is none.
  void Decide(const Result<contract::ClusterReply>& reply) {
    if (!reply) {
      const Code code = reply.error().code();
      const bool decided = code == Code::kNotFound || code == Code::kFailedPrecondition || code == Code::kAborted ||
                           code == Code::kResourceExhausted;
      if (!decided) return reactor_->Finish(ToGrpc(reply.error()));
      return Refused(reply.error().message());
    }
    reply_.set_accepted(true);
    reply_.set_decision("accepted");
    reply_.set_reason(wire_.reason());
    reply_.set_applied_action(pb::AutomationActionType_Name(wire_.action_type()));
    Finish();
  }

  void Refused(const std::string& why) {
    reply_.set_accepted(false);
    reply_.set_decision("rejected");
    reply_.set_reason(why);
    Finish();
  }

  void Finish() {
    const int64_t nanos = TimeToWire(host::SystemClock().Read().wall);
    reply_.mutable_decided_at()->set_seconds(nanos / 1'000'000'000);
    reply_.mutable_decided_at()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
    reactor_->Finish(grpc::Status::OK);
  }

  contract::ClusterPort& cluster_;
  grpc::ServerUnaryReactor* const reactor_;
  const pb::AutomationSuggestion wire_;
  pb::SubmitAutomationSuggestionResponse& reply_;  // gRPC keeps it until Finish
};

class ControlService final : public pb::AgentControl::CallbackService {
  using Context = grpc::CallbackServerContext;

 public:
  ControlService(contract::ClusterPort& cluster, NodeStreams& streams, TenantPort& tenants)
      : cluster_(cluster), streams_(streams), tenants_(tenants), encoders_(1), senders_(1) {
    ReadAsBytes<pb::ControlMessage>(
        pb::AgentControl::service_full_name(), "ControlStream",
        [this](int index, grpc::internal::MethodHandler* handler) { MarkMethodCallback(index, handler); },
        [this](Context* context) {
          return std::make_shared<rpc::ControlStream>(senders_, cluster_, streams_, CallerOf(*context))->Begin();
        });
  }

 private:
  MUSTER_UNARY_METHOD(RegisterNode, pb::RegisterNodeRequest, pb::RegisterNodeResponse, contract::NodeRegistered);
  MUSTER_UNARY_METHOD(Heartbeat, pb::HeartbeatRequest, pb::HeartbeatResponse, contract::HeartbeatAck);
  MUSTER_UNARY_METHOD(ApplyWorkload, pb::ApplyWorkloadRequest, pb::ApplyWorkloadResponse, contract::Applied);
  MUSTER_UNARY_METHOD(DeleteWorkload, pb::DeleteWorkloadRequest, pb::DeleteWorkloadResponse, contract::Done);
  MUSTER_UNARY_METHOD(RetryWorkload, pb::RetryWorkloadRequest, pb::RetryWorkloadResponse, contract::Done);
  MUSTER_UNARY_METHOD(GetNode, pb::GetNodeRequest, pb::GetNodeResponse, contract::NodeView);
  MUSTER_UNARY_METHOD(GetWorkload, pb::GetWorkloadRequest, pb::GetWorkloadResponse, contract::WorkloadView);
  MUSTER_UNARY_METHOD(GetClusterSummary, pb::GetClusterSummaryRequest, pb::GetClusterSummaryResponse,
                      contract::Summary);

  grpc::ServerUnaryReactor* ListNodes(Context* context, const pb::ListNodesRequest* request,
                                      pb::ListNodesResponse* reply) override {
    return List(*context, FromWire(*request), *reply, &AddNodes);
  }
  grpc::ServerUnaryReactor* ListWorkloads(Context* context, const pb::ListWorkloadsRequest* request,
                                          pb::ListWorkloadsResponse* reply) override {
    auto asked = FromWire(*request);
    if (asked) asked->tenant = TenantOf(CallerOf(*context));  // empty: of all
    return List(*context, std::move(asked), *reply, &AddWorkloads);
  }

  template <class Listed, class Request, class Reply>
  grpc::ServerUnaryReactor* List(Context& context, Result<Request> request, Reply& reply,
                                 size_t (*write)(const Listed&, Reply&)) {
    if (!request) {
      grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
      reactor->Finish(ToGrpc(request.error()));
      return reactor;
    }
    const auto list = std::make_shared<WholeList<Listed, Request, Reply>>(context, reply, cluster_, lists_,
                                                                          *std::move(request), write);
    return list->Begin(CallerName(context));
  }

  grpc::ServerUnaryReactor* SubmitAutomationSuggestion(Context* context,
                                                       const pb::SubmitAutomationSuggestionRequest* request,
                                                       pb::SubmitAutomationSuggestionResponse* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    SetSubject(*context, {.object = fmt::format("set/{}", request->suggestion().target_workload()),
                          .reason = request->suggestion().reason()});
    std::make_shared<Suggestion>(cluster_, reactor, *request, *reply)->Begin(FromWire(*request));
    return reactor;
  }

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    return AnswerCall<Reply>(
        context, FromWire(wire), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [&](auto asked, auto done) {
          using Asked = decltype(asked);
          if constexpr (std::is_same_v<Asked, contract::RegisterNode> || std::is_same_v<Asked, contract::Heartbeat>) {
            const Status allowed = CheckNode(CallerOf(context), NodeOf(asked));
            if (!allowed.ok()) return done(Result<contract::ClusterReply>(std::unexpected(allowed)));
          }
          AskAs(CallerOf(context), cluster_, tenants_, std::move(asked), contract::ClusterPort::Done(std::move(done)));
        });
  }

  contract::ClusterPort& cluster_;
  NodeStreams& streams_;
  TenantPort& tenants_;
  Worker encoders_;
  Worker senders_;
  ListTurns lists_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeControlService(contract::ClusterPort& cluster, NodeStreams& streams,
                                                  TenantPort& tenants) {
  return std::make_shared<ControlService>(cluster, streams, tenants);
}

}  // namespace muster::rpc
