#include "rpc/agent_probe.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/sync_stream.h>

#include <utility>
#include <variant>

#include "muster/v1/agent.pb.h"
#include "persys/agent/v1/agent.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/bounded_read.h"
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

template <class WireRequest, class WireReply>
struct Method {
  using Request = WireRequest;
  using Reply = WireReply;
};
struct PersysApply : Method<pb::ApplyWorkloadRequest, pb::ApplyWorkloadResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/ApplyWorkload";
};
struct PersysDelete : Method<pb::DeleteWorkloadRequest, pb::DeleteWorkloadResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/DeleteWorkload";
};
struct PersysStatus : Method<pb::GetWorkloadStatusRequest, pb::GetWorkloadStatusResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/GetWorkloadStatus";
};
struct PersysList : Method<pb::ListWorkloadsRequest, pb::ListWorkloadsResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/ListWorkloads";
};
struct PersysHealth : Method<pb::HealthCheckRequest, pb::HealthCheckResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/HealthCheck";
};
struct PersysActions : Method<pb::ListActionsRequest, pb::ListActionsResponse> {
  static constexpr const char* kPath = "/persys.agent.v1.AgentService/ListActions";
};
struct NativeApply : Method<v1::ApplyOnAgent, v1::AppliedOnAgent> {
  static constexpr const char* kPath = "/muster.v1.Agent/Apply";
};
struct NativeDelete : Method<v1::DeleteOnAgent, v1::DeletedOnAgent> {
  static constexpr const char* kPath = "/muster.v1.Agent/Delete";
};
struct NativeStatus : Method<v1::GetStatusOnAgent, v1::WorkloadStatus> {
  static constexpr const char* kPath = "/muster.v1.Agent/GetStatus";
};
struct NativeList : Method<v1::ListOnAgent, v1::ListedOnAgent> {
  static constexpr const char* kPath = "/muster.v1.Agent/List";
};

class GrpcAgentProbe final : public AgentProbe {
 public:
  explicit GrpcAgentProbe(std::shared_ptr<grpc::Channel> channel) : channel_(std::move(channel)) {}

  Result<contract::AgentReply> Ask(Service service, const contract::AgentRequest& request) override {
    const bool persys = service == Service::kPersys;
    if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) {
      if (persys) return Call<PersysApply, contract::AppliedOnAgent>(*apply);
      return Call<NativeApply, contract::AppliedOnAgent>(*apply);
    }
    if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&request)) {
      if (persys) return Call<PersysDelete, contract::DeletedOnAgent>(*remove);
      return Call<NativeDelete, contract::DeletedOnAgent>(*remove);
    }
    if (const auto* get = std::get_if<contract::GetStatusOnAgent>(&request)) {
      if (persys) return Call<PersysStatus, contract::WorkloadStatus>(*get);
      return Call<NativeStatus, contract::WorkloadStatus>(*get);
    }
    const auto& list = std::get<contract::ListOnAgent>(request);
    if (persys) return Call<PersysList, contract::ListedOnAgent>(list);
    return Call<NativeList, contract::ListedOnAgent>(list);
  }

  Result<std::string> Logs(const std::string& workload) override {
    v1::LogsRequest request;
    ToWire(contract::ReadLogs{.workload = workload}, request);
    grpc::ClientContext context;
    SetDeadline(context, kTimeout);
    const grpc::internal::RpcMethod method("/muster.v1.Agent/Logs", grpc::internal::RpcMethod::SERVER_STREAMING);
    const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> stream(
        grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel_.get(), method, &context, request));
    std::string text;
    Status read;
    for (grpc::ByteBuffer bytes; read.ok() && text.size() < kMostLogBytes && stream->Read(&bytes);) {
      v1::LogChunk chunk;
      read = ReadBounded(bytes, kAgentReplyBounds, chunk);
      text += chunk.data();
    }
    if (!read.ok() || text.size() >= kMostLogBytes) context.TryCancel();
    const grpc::Status status = stream->Finish();
    if (!read.ok()) return std::unexpected(std::move(read));
    if (!status.ok() && text.size() < kMostLogBytes) return std::unexpected(FromGrpc(status));
    return text;
  }

  Result<contract::ListedOnAgent> ListOfType(model::WorkloadType type) override {
    pb::ListWorkloadsRequest request;
    request.set_type(ToPersys(type));
    pb::ListWorkloadsResponse reply;
    if (Status sent = Send<PersysList>(request, reply); !sent.ok()) return std::unexpected(std::move(sent));
    return TakeReply(reply);
  }

  Result<AgentHealth> Health() override {
    pb::HealthCheckResponse reply;
    if (Status sent = Send<PersysHealth>(pb::HealthCheckRequest(), reply); !sent.ok())
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
    if (Status sent = Send<PersysActions>(request, reply); !sent.ok()) return std::unexpected(std::move(sent));
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
    if (Status sent = Send<PersysApply>(request, reply); !sent.ok()) return std::unexpected(std::move(sent));
    return TakeReply(reply);
  }

 private:
  template <class Asked>
  Status Send(const typename Asked::Request& request, typename Asked::Reply& reply) {
    grpc::ClientContext context;
    SetDeadline(context, kTimeout);
    context.set_wait_for_ready(false);
    const grpc::internal::RpcMethod method(Asked::kPath, grpc::internal::RpcMethod::NORMAL_RPC);
    grpc::ByteBuffer bytes;
    const grpc::Status status = grpc::internal::BlockingUnaryCall<typename Asked::Request, grpc::ByteBuffer>(
        channel_.get(), method, &context, request, &bytes);
    return status.ok() ? ReadBounded(bytes, kAgentReplyBounds, reply) : FromGrpc(status);
  }

  template <class Asked, class Reply, class Request>
  Result<contract::AgentReply> Call(const Request& request) {
    typename Asked::Request wire;
    ToWire(request, wire);
    typename Asked::Reply reply;
    if (Status sent = Send<Asked>(wire, reply); !sent.ok()) return std::unexpected(std::move(sent));
    MUSTER_ASSIGN_OR_RETURN(Reply typed, TakeReply(reply));
    return typed;
  }

  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

Result<std::unique_ptr<AgentProbe>> MakeAgentProbe(const std::string& address, const TlsFiles& tls) {
  MUSTER_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel,
                          MakeChannel({.target = address,
                                       .tls = tls,
                                       .serves = {.kinds = {Identity::Kind::kNode}},
                                       .max_message_bytes = static_cast<int>(kAgentReplyBounds.bytes)}));
  return std::make_unique<GrpcAgentProbe>(std::move(channel));
}

}  // namespace muster::rpc
