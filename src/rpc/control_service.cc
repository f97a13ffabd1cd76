#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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
#include "rpc/wire_parts.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = persys::control::v1;

std::vector<contract::NodeView>& RowsIn(contract::NodesListed& listed) { return listed.nodes; }
std::vector<contract::WorkloadView>& RowsIn(contract::WorkloadsListed& listed) { return listed.workloads; }

const std::string& NodeOf(const contract::RegisterNode& request) { return request.facts.node; }
const std::string& NodeOf(const contract::Heartbeat& request) { return request.node; }

// Asks for one page after the other; `done` gets all rows.
template <class Listed, class Request, class View>
void AskForAll(contract::ClusterPort& cluster, Request request, std::vector<View> rows,
               std::function<void(Result<std::variant<std::vector<View>>>)> done) {
  Request next = request;
  cluster.Ask(std::move(request), [&cluster, next = std::move(next), rows = std::move(rows),
                                   done = std::move(done)](Result<contract::ClusterReply> reply) mutable {
    if (!reply) return done(std::unexpected(reply.error()));
    auto& listed = Expect<Listed>(*reply);
    auto& page = RowsIn(listed);
    rows.insert(rows.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
    if (listed.next.empty()) return done(std::move(rows));
    next.page.token = listed.next;
    AskForAll<Listed>(cluster, std::move(next), std::move(rows), std::move(done));
  });
}

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
  using Nodes = std::vector<contract::NodeView>;
  using Workloads = std::vector<contract::WorkloadView>;

  MUSTER_UNARY_METHOD(RegisterNode, pb::RegisterNodeRequest, pb::RegisterNodeResponse, contract::NodeRegistered);
  MUSTER_UNARY_METHOD(Heartbeat, pb::HeartbeatRequest, pb::HeartbeatResponse, contract::HeartbeatAck);
  MUSTER_UNARY_METHOD(ApplyWorkload, pb::ApplyWorkloadRequest, pb::ApplyWorkloadResponse, contract::Applied);
  MUSTER_UNARY_METHOD(DeleteWorkload, pb::DeleteWorkloadRequest, pb::DeleteWorkloadResponse, contract::Done);
  MUSTER_UNARY_METHOD(RetryWorkload, pb::RetryWorkloadRequest, pb::RetryWorkloadResponse, contract::Done);
  MUSTER_UNARY_METHOD(ListNodes, pb::ListNodesRequest, pb::ListNodesResponse, Nodes);
  MUSTER_UNARY_METHOD(GetNode, pb::GetNodeRequest, pb::GetNodeResponse, contract::NodeView);
  MUSTER_UNARY_METHOD(ListWorkloads, pb::ListWorkloadsRequest, pb::ListWorkloadsResponse, Workloads);
  MUSTER_UNARY_METHOD(GetWorkload, pb::GetWorkloadRequest, pb::GetWorkloadResponse, contract::WorkloadView);
  MUSTER_UNARY_METHOD(GetClusterSummary, pb::GetClusterSummaryRequest, pb::GetClusterSummaryResponse,
                      contract::Summary);

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
          if constexpr (std::is_same_v<Reply, Nodes>) {
            AskForAll<contract::NodesListed, contract::ListNodes, contract::NodeView>(cluster_, std::move(asked), {},
                                                                                      std::move(done));
          } else if constexpr (std::is_same_v<Reply, Workloads>) {
            asked.tenant = TenantOf(CallerOf(context));  // empty: of all
            AskForAll<contract::WorkloadsListed, contract::ListWorkloads, contract::WorkloadView>(
                cluster_, std::move(asked), {}, std::move(done));
          } else {
            AskAs(CallerOf(context), cluster_, tenants_, std::move(asked),
                  contract::ClusterPort::Done(std::move(done)));
          }
        });
  }

  contract::ClusterPort& cluster_;
  NodeStreams& streams_;
  TenantPort& tenants_;
  Worker encoders_;
  Worker senders_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeControlService(contract::ClusterPort& cluster, NodeStreams& streams,
                                                  TenantPort& tenants) {
  return std::make_shared<ControlService>(cluster, streams, tenants);
}

}  // namespace muster::rpc
