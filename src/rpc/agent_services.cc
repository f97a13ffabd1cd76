#include "rpc/agent_services.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "muster/v1/agent.grpc.pb.h"
#include "persys/agent/v1/agent.grpc.pb.h"
#include "rpc/agent_conversion.h"
#include "rpc/channel.h"
#include "rpc/logs_stream.h"
#include "rpc/persys_agent_conversion.h"
#include "rpc/unary_answer.h"
#include "rpc/wire_parts.h"
#include "rpc/work_budget.h"
#include "rpc/worker.h"

namespace muster::rpc {
namespace {

namespace pb = persys::agent::v1;

// What a scheduler of the protocol looks for in the text.
constexpr const char* kNotFound = "status not found";

int64_t ToSeconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

class PersysAgentService final : public pb::AgentService::CallbackService {
 public:
  PersysAgentService(contract::AgentPort& agent, AgentFacts facts)
      : agent_(agent), facts_(std::move(facts)), encoders_(1) {}

 private:
  using Context = grpc::CallbackServerContext;

  MUSTER_UNARY_METHOD(ApplyWorkload, pb::ApplyWorkloadRequest, pb::ApplyWorkloadResponse, contract::AppliedOnAgent);
  MUSTER_UNARY_METHOD(DeleteWorkload, pb::DeleteWorkloadRequest, pb::DeleteWorkloadResponse, contract::DeletedOnAgent);
  MUSTER_UNARY_METHOD(GetWorkloadStatus, pb::GetWorkloadStatusRequest, pb::GetWorkloadStatusResponse,
                      contract::WorkloadStatus);

  grpc::ServerUnaryReactor* ListWorkloads(Context* context, const pb::ListWorkloadsRequest* request,
                                          pb::ListWorkloadsResponse* reply) override {
    using Listed = contract::ListedOnAgent;
    return AnswerCall<Listed>(
        *context, FromWire(*request), *reply, encoders_,
        [type = request->type()](const Listed& from, pb::ListWorkloadsResponse& to) {
          ToWire(from, to);
          if (type == pb::WORKLOAD_TYPE_UNSPECIFIED) return;
          auto& rows = *to.mutable_workloads();
          const auto others =
              std::stable_partition(rows.begin(), rows.end(), [type](const auto& row) { return row.type() == type; });
          rows.erase(others, rows.end());
        },
        [this](auto asked, contract::AgentPort::Done done) { agent_.Ask(std::move(asked), std::move(done)); });
  }

  grpc::ServerUnaryReactor* HealthCheck(Context* context, const pb::HealthCheckRequest* /*request*/,
                                        pb::HealthCheckResponse* reply) override {
    const AgentHealth health = facts_.health();
    reply->set_healthy(health.healthy);
    reply->set_version(health.version);
    for (const auto& [name, status] : health.runtimes) (*reply->mutable_runtime_status())[name] = status;
    reply->set_memory_utilization(health.memory_percent);
    reply->set_cpu_utilization(health.cpu_percent);
    reply->set_disk_utilization(health.disk_percent);
    return Finished(*context);
  }

  grpc::ServerUnaryReactor* ListActions(Context* context, const pb::ListActionsRequest* request,
                                        pb::ListActionsResponse* reply) override {
    std::vector<AgentAction> actions = facts_.actions();
    const auto differs = [](const std::string& wanted, const std::string& has) {
      return !wanted.empty() && wanted != has;
    };
    std::erase_if(actions, [&](const AgentAction& action) {
      return differs(request->workload_id(), action.workload) || differs(request->action_type(), action.type) ||
             differs(request->status(), action.status);
    });
    if (request->newest_first()) std::ranges::reverse(actions);
    if (request->limit() > 0 && actions.size() > static_cast<size_t>(request->limit())) {
      actions.resize(static_cast<size_t>(request->limit()));
    }
    for (const AgentAction& action : actions) {
      pb::AgentAction& row = *reply->add_actions();
      row.set_task_id(action.id);
      row.set_workload_id(action.workload);
      row.set_action_type(action.type);
      row.set_status(action.status);
      row.set_error(Readable(action.error));
      row.set_created_at(ToSeconds(action.created_at));
      row.set_started_at(ToSeconds(action.started_at));
      row.set_ended_at(ToSeconds(action.ended_at));
    }
    return Finished(*context);
  }

  static grpc::ServerUnaryReactor* Finished(Context& context) {
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    return AnswerCall<Reply>(
        context, FromWire(wire), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [this](auto asked, contract::AgentPort::Done done) {
          agent_.Ask(std::move(asked), [done = std::move(done)](Result<contract::AgentReply> reply) {
            const bool missing = !reply && reply.error().code() == Code::kNotFound;
            done(missing ? Error(Code::kNotFound, kNotFound) : std::move(reply));
          });
        });
  }

  contract::AgentPort& agent_;
  const AgentFacts facts_;
  Worker encoders_;
};

class AgentService final : public v1::Agent::CallbackService {
 public:
  AgentService(contract::AgentPort& agent, contract::LogsPort& logs)
      : agent_(agent), logs_(logs), encoders_(1), senders_(1) {}

 private:
  using Context = grpc::CallbackServerContext;

  MUSTER_UNARY_METHOD(Apply, v1::ApplyOnAgent, v1::AppliedOnAgent, contract::AppliedOnAgent);
  MUSTER_UNARY_METHOD(Delete, v1::DeleteOnAgent, v1::DeletedOnAgent, contract::DeletedOnAgent);
  MUSTER_UNARY_METHOD(GetStatus, v1::GetStatusOnAgent, v1::WorkloadStatus, contract::WorkloadStatus);
  MUSTER_UNARY_METHOD(List, v1::ListOnAgent, v1::ListedOnAgent, contract::ListedOnAgent);

  grpc::ServerWriteReactor<v1::LogChunk>* Logs(Context* context, const v1::LogsRequest* request) override {
    const auto stream = std::make_shared<LogsStream>(senders_, StreamBudget(*context));
    auto* held = stream->Hold();
    auto what = FromWire(*request);
    if (!what) {
      stream->End(what.error());
    } else {
      logs_.Read(*std::move(what), stream);
    }
    return held;
  }

  template <class Reply, class WireRequest, class WireReply>
  grpc::ServerUnaryReactor* Serve(Context& context, const WireRequest& wire, WireReply& wire_reply) {
    return AnswerCall<Reply>(
        context, FromWire(wire), wire_reply, encoders_, [](const Reply& from, WireReply& to) { ToWire(from, to); },
        [this](auto asked, contract::AgentPort::Done done) { agent_.Ask(std::move(asked), std::move(done)); });
  }

  contract::AgentPort& agent_;
  contract::LogsPort& logs_;
  Worker encoders_;
  Worker senders_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakePersysAgentService(contract::AgentPort& agent, AgentFacts facts) {
  return std::make_shared<PersysAgentService>(agent, std::move(facts));
}

std::shared_ptr<grpc::Service> MakeAgentService(contract::AgentPort& agent, contract::LogsPort& logs) {
  return std::make_shared<AgentService>(agent, logs);
}

}  // namespace muster::rpc
