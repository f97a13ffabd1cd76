#include "rpc/agent_probe.h"

#include <grpcpp/grpcpp.h>

#include <utility>
#include <variant>

#include "muster/v1/agent.grpc.pb.h"
#include "persys/agent/v1/agent.grpc.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/channel.h"
#include "rpc/persys_agent_conversion.h"

namespace muster::rpc {
namespace {

namespace pb = persys::agent::v1;

constexpr Duration kTimeout = 10s;
constexpr size_t kMostLogBytes = 1U << 20;

pb::WorkloadType ToPersys(model::WorkloadType type) {
  switch (type) {
    case model::WorkloadType::kContainer: return pb::WORKLOAD_TYPE_CONTAINER;
    case model::WorkloadType::kCompose: return pb::WORKLOAD_TYPE_COMPOSE;
    case model::WorkloadType::kVm: return pb::WORKLOAD_TYPE_VM;
    default: return pb::WORKLOAD_TYPE_UNSPECIFIED;
  }
}

WallTime FromSeconds(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

class GrpcAgentProbe final : public AgentProbe {
 public:
  explicit GrpcAgentProbe(const std::shared_ptr<grpc::Channel>& channel)
      : persys_(pb::AgentService::NewStub(channel)), native_(v1::Agent::NewStub(channel)) {}

  Result<contract::AgentReply> Ask(Service service, const contract::AgentRequest& request) override {
    const bool persys = service == Service::kPersys;
    if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) {
      return persys ? Persys<contract::AppliedOnAgent>(&PersysStub::ApplyWorkload, *apply)
                    : Native<contract::AppliedOnAgent>(&NativeStub::Apply, *apply);
    }
    if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&request)) {
      return persys ? Persys<contract::DeletedOnAgent>(&PersysStub::DeleteWorkload, *remove)
                    : Native<contract::DeletedOnAgent>(&NativeStub::Delete, *remove);
    }
    if (const auto* get = std::get_if<contract::GetStatusOnAgent>(&request)) {
      return persys ? Persys<contract::WorkloadStatus>(&PersysStub::GetWorkloadStatus, *get)
                    : Native<contract::WorkloadStatus>(&NativeStub::GetStatus, *get);
    }
    const auto& list = std::get<contract::ListOnAgent>(request);
    return persys ? Persys<contract::ListedOnAgent>(&PersysStub::ListWorkloads, list)
                  : Native<contract::ListedOnAgent>(&NativeStub::List, list);
  }

  Result<std::string> Logs(const std::string& workload) override {
    v1::LogsRequest request;
    ToWire(contract::ReadLogs{.workload = workload}, request);
    grpc::ClientContext context;
    SetDeadline(context, kTimeout);
    const auto stream = native_->Logs(&context, request);
    std::string text;
    for (v1::LogChunk chunk; text.size() < kMostLogBytes && stream->Read(&chunk);) text += chunk.data();
    if (text.size() >= kMostLogBytes) context.TryCancel();
    const grpc::Status status = stream->Finish();
    if (!status.ok() && text.size() < kMostLogBytes) return std::unexpected(FromGrpc(status));
    return text;
  }

  Result<contract::ListedOnAgent> ListOfType(model::WorkloadType type) override {
    pb::ListWorkloadsRequest request;
    request.set_type(ToPersys(type));
    pb::ListWorkloadsResponse reply;
    if (Status sent = Send(*persys_, &PersysStub::ListWorkloads, request, reply); !sent.ok())
      return std::unexpected(std::move(sent));
    return TakeReply(reply);
  }

  Result<AgentHealth> Health() override {
    pb::HealthCheckResponse reply;
    if (Status sent = Send(*persys_, &PersysStub::HealthCheck, pb::HealthCheckRequest(), reply); !sent.ok())
      return std::unexpected(std::move(sent));
    AgentHealth health{.healthy = reply.healthy(),
                       .version = reply.version(),
                       .memory_percent = reply.memory_utilization(),
                       .cpu_percent = reply.cpu_utilization(),
                       .disk_percent = reply.disk_utilization()};
    health.runtimes = {reply.runtime_status().begin(), reply.runtime_status().end()};
    return health;
  }

  Result<std::vector<AgentAction>> Actions(const ActionFilter& filter) override {
    pb::ListActionsRequest request;
    request.set_workload_id(filter.workload);
    request.set_limit(filter.limit);
    request.set_newest_first(filter.newest_first);
    pb::ListActionsResponse reply;
    if (Status sent = Send(*persys_, &PersysStub::ListActions, request, reply); !sent.ok())
      return std::unexpected(std::move(sent));
    std::vector<AgentAction> actions;
    for (const pb::AgentAction& row : reply.actions()) {
      actions.push_back({.id = row.task_id(),
                         .workload = row.workload_id(),
                         .type = row.action_type(),
                         .status = row.status(),
                         .error = row.error(),
                         .created_at = FromSeconds(row.created_at()),
                         .started_at = FromSeconds(row.started_at()),
                         .ended_at = FromSeconds(row.ended_at())});
    }
    return actions;
  }

  Result<contract::AppliedOnAgent> ApplyWithoutSpec(const std::string& workload) override {
    pb::ApplyWorkloadRequest request;
    request.set_id(workload);
    request.set_revision_id("1");
    request.set_type(pb::WORKLOAD_TYPE_CONTAINER);
    request.set_desired_state(pb::DESIRED_STATE_RUNNING);
    pb::ApplyWorkloadResponse reply;
    if (Status sent = Send(*persys_, &PersysStub::ApplyWorkload, request, reply); !sent.ok())
      return std::unexpected(std::move(sent));
    return TakeReply(reply);
  }

 private:
  using PersysStub = pb::AgentService::Stub;
  using NativeStub = v1::Agent::Stub;
  template <class Stub, class WireRequest, class WireReply>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const WireRequest&, WireReply*);

  template <class Stub, class WireRequest, class WireReply>
  static Status Send(Stub& stub, Method<Stub, WireRequest, WireReply> method, const WireRequest& request,
                     WireReply& reply) {
    grpc::ClientContext context;
    SetDeadline(context, kTimeout);
    context.set_wait_for_ready(false);
    return FromGrpc((stub.*method)(&context, request, &reply));
  }

  template <class Reply, class Request, class WireRequest, class WireReply>
  Result<contract::AgentReply> Persys(Method<PersysStub, WireRequest, WireReply> method, const Request& request) {
    return Call<Reply>(*persys_, method, request);
  }
  template <class Reply, class Request, class WireRequest, class WireReply>
  Result<contract::AgentReply> Native(Method<NativeStub, WireRequest, WireReply> method, const Request& request) {
    return Call<Reply>(*native_, method, request);
  }
  template <class Reply, class Stub, class Request, class WireRequest, class WireReply>
  Result<contract::AgentReply> Call(Stub& stub, Method<Stub, WireRequest, WireReply> method, const Request& request) {
    WireRequest wire;
    ToWire(request, wire);
    WireReply reply;
    if (Status sent = Send(stub, method, wire, reply); !sent.ok()) return std::unexpected(std::move(sent));
    MUSTER_ASSIGN_OR_RETURN(Reply typed, TakeReply(reply));
    return typed;
  }

  const std::unique_ptr<PersysStub> persys_;
  const std::unique_ptr<NativeStub> native_;
};

}  // namespace

Result<std::unique_ptr<AgentProbe>> MakeAgentProbe(const std::string& address, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = address,
                                       .tls = tls,
                                       .serves = {.kinds = {Identity::Kind::kNode}},
                                       .max_message_bytes = kLargeMessageBytes}));
  return std::make_unique<GrpcAgentProbe>(channel);
}

}  // namespace muster::rpc
