#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "base/weight.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/bounded_read.h"
#include "rpc/channel.h"
#include "rpc/cluster_conversion.h"
#include "rpc/cluster_services.h"
#include "rpc/join_stream.h"
#include "rpc/logs_stream.h"
#include "rpc/queued_stream.h"
#include "rpc/server_credentials.h"
#include "rpc/tenant_scope.h"
#include "rpc/unary_answer.h"
#include "rpc/work_budget.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

using Change = std::shared_ptr<const contract::ClusterChange>;

struct WaitingChange {
  Change change;
  std::shared_ptr<void> share;  // of the caller's budget
};

class WatchStream final : public QueuedStream<grpc::ServerWriteReactor<v1::WatchEvent>, WaitingChange, v1::WatchEvent>,
                          public WatchSink {
 public:
  WatchStream(Worker& senders, StreamBudget budget) : QueuedStream(senders), budget_(std::move(budget)) {}

  bool Send(Change change) override {
    if (waiting() >= kMostWaiting) {
      Drop({Code::kResourceExhausted, "too many changes wait to be read; read faster, and watch again"});
      return false;
    }
    auto share = budget_.Take(WeightOf(*change), idle());
    if (!share) {
      Drop(share.error());
      return false;
    }
    return Push({.change = std::move(change), .share = *std::move(share)});
  }
  void Close(Status status) override { End(std::move(status)); }

 private:
  static constexpr size_t kMostWaiting = 100'000;

  void Encode(const WaitingChange& item, v1::WatchEvent& out) override { ToWire(*item.change, out); }

  StreamBudget budget_;
};

class ClusterService final : public v1::Cluster::CallbackService {
  using Context = grpc::CallbackServerContext;

 public:
  ClusterService(contract::ClusterPort& cluster, WatchPort& watches, contract::LogsPort& logs, TenantPort& tenants)
      : cluster_(cluster), watches_(watches), logs_(logs), tenants_(tenants), encoders_(1), senders_(1) {
    ReadAsBytes<v1::JoinReply>(
        v1::Cluster::service_full_name(), "Join",
        [this](int index, grpc::internal::MethodHandler* handler) { MarkMethodCallback(index, handler); },
        [this](Context* context) {
          return std::make_shared<JoinStream>(senders_, cluster_, CallerOf(*context))->Begin();
        });
  }

 private:
  grpc::ServerWriteReactor<v1::WatchEvent>* Watch(Context* context, const v1::WatchRequest* request) override {
    const auto stream = std::make_shared<WatchStream>(senders_, StreamBudget(*context));
    auto* held = stream->Hold();
    auto what = FromWire(*request);
    if (!what) {
      stream->Close(what.error());
    } else if (const std::string tenant = TenantOf(CallerOf(*context)); tenant.empty()) {
      watches_.Watch(*what, stream);
    } else if (what->decisions) {  // which have a workload's name and not its tenant
      stream->Close({Code::kPermissionDenied, "decisions: a tenant may watch workloads, sets and nodes"});
    } else {
      watches_.Watch(*what, std::make_shared<TenantWatch>(tenant, stream));
    }
    return held;
  }
  grpc::ServerWriteReactor<v1::LogChunk>* Logs(Context* context, const v1::LogsRequest* request) override {
    const auto stream = std::make_shared<LogsStream>(senders_, StreamBudget(*context));
    auto* held = stream->Hold();
    auto what = FromWire(*request);
    if (!what) {
      stream->End(what.error());
    } else if (const std::string tenant = TenantOf(CallerOf(*context)); tenant.empty()) {
      logs_.Read(*std::move(what), stream);
    } else {
      contract::GetWorkload question{.workload = what->workload};
      tenants_.AskFor(tenant, std::move(question),
                      [this, stream, what = *std::move(what)](const Result<contract::ClusterReply>& own) {
                        if (!own) return stream->End(own.error());
                        logs_.Read(what, stream);
                      });
    }
    return held;
  }

  using Applied = contract::Applied;
  using Done = contract::Done;
  MUSTER_UNARY_METHOD(ApplyWorkload, v1::ApplyWorkloadRequest, v1::Applied, Applied);
  MUSTER_UNARY_METHOD(ApplySpec, v1::ApplySpecRequest, v1::Applied, Applied);
  MUSTER_UNARY_METHOD(ApplyQuota, v1::ApplyQuotaRequest, v1::Applied, Applied);
  MUSTER_UNARY_METHOD(DeleteObject, v1::DeleteObjectRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(RetryWorkload, v1::RetryWorkloadRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(ScaleSet, v1::ScaleSetRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(RestartSet, v1::RestartSetRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(CordonNode, v1::CordonNodeRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(DrainNode, v1::DrainNodeRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(AcceptNode, v1::AcceptNodeRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(ReportMachines, v1::ReportMachinesRequest, v1::Done, Done);
  MUSTER_UNARY_METHOD(ListNodes, v1::ListNodesRequest, v1::NodesListed, contract::NodesListed);
  MUSTER_UNARY_METHOD(ListWorkloads, v1::ListWorkloadsRequest, v1::WorkloadsListed, contract::WorkloadsListed);
  MUSTER_UNARY_METHOD(GetNode, v1::GetNodeRequest, v1::NodeView, contract::NodeView);
  MUSTER_UNARY_METHOD(GetWorkload, v1::GetWorkloadRequest, v1::WorkloadView, contract::WorkloadView);
  MUSTER_UNARY_METHOD(ListSets, v1::ListSetsRequest, v1::SetsListed, contract::SetsListed);
  MUSTER_UNARY_METHOD(ListQuotas, v1::ListQuotasRequest, v1::QuotasListed, contract::QuotasListed);
  MUSTER_UNARY_METHOD(ListEvents, v1::ListEventsRequest, v1::EventsListed, contract::EventsListed);
  MUSTER_UNARY_METHOD(GetSummary, v1::GetSummaryRequest, v1::Summary, contract::Summary);
  MUSTER_UNARY_METHOD(ExplainWorkload, v1::ExplainWorkloadRequest, v1::Explanation, contract::Explanation);

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    return AnswerCall<Reply>(
        context, FromWire(wire), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [&](auto asked, contract::ClusterPort::Done done) {
          AskAs(CallerOf(context), cluster_, tenants_, std::move(asked), std::move(done));
        });
  }

  contract::ClusterPort& cluster_;
  WatchPort& watches_;
  contract::LogsPort& logs_;
  TenantPort& tenants_;
  Worker encoders_;
  Worker senders_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeClusterService(contract::ClusterPort& cluster, WatchPort& watches,
                                                  contract::LogsPort& logs, TenantPort& tenants) {
  return std::make_shared<ClusterService>(cluster, watches, logs, tenants);
}

}  // namespace muster::rpc
