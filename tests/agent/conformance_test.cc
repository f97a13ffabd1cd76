// The checks of `muster conformance agent` on an agent that keeps every rule, and on agents that break one.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/agent_conformance.h"
#include "host/docs_for_test.h"
#include "host/system_clock.h"
#include "muster/v1/agent.grpc.pb.h"
#include "persys/agent/v1/agent.grpc.pb.h"

namespace muster::cli {
namespace {

namespace pb = persys::agent::v1;
using provider::Verdict;

// An agent in memory, as small as the rules allow: what is applied is at once as it will be.
class PlainAgent {
 public:
  // `broken`: the rule that it breaks; empty: none.
  explicit PlainAgent(std::string broken) : broken_(std::move(broken)), persys_(*this), native_(*this) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&persys_);
    builder.RegisterService(&native_);
    server_ = builder.BuildAndStart();
  }
  ~PlainAgent() { server_->Shutdown(); }
  PlainAgent(const PlainAgent&) = delete;
  PlainAgent& operator=(const PlainAgent&) = delete;

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  size_t workloads() {
    const std::lock_guard lock(mu_);
    return rows_.size();
  }

 private:
  struct Row {
    pb::WorkloadType type = pb::WORKLOAD_TYPE_CONTAINER;
    std::string revision;
    pb::ActualState state = pb::ACTUAL_STATE_RUNNING;
  };
  bool Breaks(const char* rule) const { return broken_ == rule; }

  void Write(const std::string& id, const Row& row, pb::WorkloadStatus& status) const {
    status.set_id(id);
    status.set_type(row.type);
    status.set_revision_id(row.revision);
    status.set_actual_state(row.state);
    if (row.state == pb::ACTUAL_STATE_FAILED && !Breaks("job-failed")) status.set_message("exit code 3");
  }
  pb::ActualState StateOf(const pb::ApplyWorkloadRequest& request) const {
    if (request.desired_state() == pb::DESIRED_STATE_STOPPED) {
      return Breaks("stopped") ? pb::ACTUAL_STATE_FAILED : pb::ACTUAL_STATE_STOPPED;
    }
    const auto& command = request.spec().container().command();
    const std::string script = command.size() == 3 ? command[2] : "";
    if (script == "exit 0") return Breaks("job-done") ? pb::ACTUAL_STATE_FAILED : pb::ACTUAL_STATE_STOPPED;
    if (script.ends_with("exit 3")) return pb::ACTUAL_STATE_FAILED;
    return pb::ACTUAL_STATE_RUNNING;
  }
  grpc::Status Apply(const pb::ApplyWorkloadRequest& request, pb::ApplyWorkloadResponse& reply) {
    const bool vm = request.spec().has_vm();
    if (vm && !Breaks("no-runtime")) return {grpc::StatusCode::FAILED_PRECONDITION, "runtime not available: vm"};
    if (request.id().empty() && !Breaks("apply-no-id")) return {grpc::StatusCode::INVALID_ARGUMENT, "id: missing"};
    if (!request.has_spec() && !Breaks("apply-no-spec")) return {grpc::StatusCode::INVALID_ARGUMENT, "spec: missing"};
    const auto known = rows_.find(request.id());
    Row row{.type = request.type(), .revision = request.revision_id(), .state = StateOf(request)};
    const bool same =
        known != rows_.end() && known->second.revision == row.revision && known->second.state == row.state;
    if (Breaks("started-again") && known != rows_.end() && known->second.state == pb::ACTUAL_STATE_STOPPED) {
      row.state = pb::ACTUAL_STATE_FAILED;
    }
    if (Breaks("runs") && known == rows_.end() && row.state == pb::ACTUAL_STATE_RUNNING) {
      row.revision = "0";  // what runs is not what was asked for
    }
    reply.set_applied(!(Breaks("applied") && known == rows_.end()));
    reply.set_skipped(same && !Breaks("skipped"));
    if (Breaks("revision") && known != rows_.end() && !same) row.revision = known->second.revision;
    rows_[request.id()] = row;
    actions_.push_back("apply_workload " + request.id());
    Write(request.id(), row, *reply.mutable_status());
    reply.mutable_status()->set_revision_id(request.revision_id());
    return grpc::Status::OK;
  }
  grpc::Status NotFound(const char* rule) const {
    return Breaks(rule) ? grpc::Status(grpc::StatusCode::INTERNAL, "oops")
                        : grpc::Status(grpc::StatusCode::NOT_FOUND, "status not found");
  }

  class Persys final : public pb::AgentService::Service {
   public:
    explicit Persys(PlainAgent& agent) : agent_(agent) {}

   private:
    using Context = grpc::ServerContext;
    grpc::Status ApplyWorkload(Context* /*context*/, const pb::ApplyWorkloadRequest* request,
                               pb::ApplyWorkloadResponse* reply) override {
      const std::lock_guard lock(agent_.mu_);
      return agent_.Apply(*request, *reply);
    }
    grpc::Status DeleteWorkload(Context* /*context*/, const pb::DeleteWorkloadRequest* request,
                                pb::DeleteWorkloadResponse* reply) override {
      const std::lock_guard lock(agent_.mu_);
      const bool known = agent_.rows_.contains(request->id());
      const bool nothing = request->id().ends_with("nothing");
      if (!known && agent_.Breaks(nothing ? "delete-unknown" : "deleted-again")) {
        return {grpc::StatusCode::INTERNAL, "oops"};
      }
      if (!agent_.Breaks("deleted") || !request->id().ends_with("life")) agent_.rows_.erase(request->id());
      agent_.actions_.push_back("delete_workload " + request->id());
      reply->set_success(true);
      return grpc::Status::OK;
    }
    grpc::Status GetWorkloadStatus(Context* /*context*/, const pb::GetWorkloadStatusRequest* request,
                                   pb::GetWorkloadStatusResponse* reply) override {
      const std::lock_guard lock(agent_.mu_);
      const auto row = agent_.rows_.find(request->id());
      if (row == agent_.rows_.end()) {
        return request->id().ends_with("nothing") ? agent_.NotFound("status-unknown")
                                                  : grpc::Status(grpc::StatusCode::NOT_FOUND, "status not found");
      }
      agent_.Write(row->first, row->second, *reply->mutable_status());
      return grpc::Status::OK;
    }
    grpc::Status ListWorkloads(Context* /*context*/, const pb::ListWorkloadsRequest* request,
                               pb::ListWorkloadsResponse* reply) override {
      const std::lock_guard lock(agent_.mu_);
      for (const auto& [id, row] : agent_.rows_) {
        const bool other = request->type() != pb::WORKLOAD_TYPE_UNSPECIFIED && request->type() != row.type;
        if (other && !agent_.Breaks("list-filter")) continue;
        if (agent_.Breaks("listed") && id.ends_with("life")) continue;
        agent_.Write(id, row, *reply->add_workloads());
        if (agent_.Breaks("list-states")) agent_.Write(id, row, *reply->add_workloads());
      }
      return grpc::Status::OK;
    }
    grpc::Status HealthCheck(Context* /*context*/, const pb::HealthCheckRequest* /*request*/,
                             pb::HealthCheckResponse* reply) override {
      reply->set_healthy(true);
      if (!agent_.Breaks("health")) reply->set_version("1");
      (*reply->mutable_runtime_status())["container"] = "ok";
      return grpc::Status::OK;
    }
    grpc::Status ListActions(Context* /*context*/, const pb::ListActionsRequest* request,
                             pb::ListActionsResponse* reply) override {
      const std::lock_guard lock(agent_.mu_);
      const auto count = static_cast<int>(agent_.actions_.size());
      for (int i = 0; i < count; ++i) {
        const bool backwards = request->newest_first() && !agent_.Breaks("actions-newest");
        const int at = backwards ? count - 1 - i : i;
        const std::string& text = agent_.actions_[static_cast<size_t>(at)];
        const std::string workload = text.substr(text.find(' ') + 1);
        if (!request->workload_id().empty() && workload != request->workload_id()) continue;
        if (request->limit() > 0 && reply->actions_size() >= request->limit() && !agent_.Breaks("actions-limit")) break;
        pb::AgentAction& action = *reply->add_actions();
        action.set_workload_id(workload);
        action.set_action_type(text.substr(0, text.find(' ')));
        action.set_status(agent_.Breaks("actions-tell") ? "pending" : "completed");
        action.set_created_at(1000 + at);
      }
      return grpc::Status::OK;
    }
    PlainAgent& agent_;
  };

  class Native final : public v1::Agent::Service {
   public:
    explicit Native(PlainAgent& agent) : agent_(agent) {}

   private:
    using Context = grpc::ServerContext;
    grpc::Status Apply(Context* /*context*/, const v1::ApplyOnAgent* /*request*/, v1::AppliedOnAgent* reply) override {
      if (!agent_.Breaks("native-epoch")) return {grpc::StatusCode::FAILED_PRECONDITION, "another epoch"};
      reply->set_applied(true);
      return grpc::Status::OK;
    }
    grpc::Status GetStatus(Context* /*context*/, const v1::GetStatusOnAgent* /*request*/,
                           v1::WorkloadStatus* /*reply*/) override {
      return agent_.NotFound("native-status-unknown");
    }
    grpc::Status List(Context* /*context*/, const v1::ListOnAgent* /*request*/, v1::ListedOnAgent* /*reply*/) override {
      return grpc::Status::OK;
    }
    grpc::Status Logs(Context* /*context*/, const v1::LogsRequest* request,
                      grpc::ServerWriter<v1::LogChunk>* writer) override {
      if (!request->workload().ends_with("life")) return agent_.NotFound("native-logs-unknown");
      v1::LogChunk chunk;
      chunk.set_data(agent_.Breaks("logs") ? "other\n" : "first words\n");
      writer->Write(chunk);
      return grpc::Status::OK;
    }
    PlainAgent& agent_;
  };

  const std::string broken_;
  std::mutex mu_;
  std::map<std::string, Row> rows_;   // guarded by mu_
  std::vector<std::string> actions_;  // guarded by mu_: "type workload"
  Persys persys_;
  Native native_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::map<std::string, Verdict> Judge(PlainAgent& agent, bool use_workloads = true) {
  const auto probe = rpc::MakeAgentProbe(agent.address());
  EXPECT_TRUE(probe.has_value());
  const host::SystemClock clock;
  std::map<std::string, Verdict> verdicts;
  const AgentConformanceOptions options{
      .use_workloads = use_workloads, .image = "i", .run_id = "t", .patience = 100ms, .poll_every = 5ms};
  for (const provider::CheckResult& result : RunAgentConformance(**probe, options, clock)) {
    verdicts[result.name] = result.verdict;
    EXPECT_EQ(result.detail.empty(), result.verdict == Verdict::kHolds) << result.name << ": " << result.detail;
  }
  return verdicts;
}

TEST(AgentConformance, AnAgentThatKeepsEveryRulePassesEveryCheckAndIsLeftEmpty) {
  PlainAgent agent("");
  for (const auto& [name, verdict] : Judge(agent)) EXPECT_EQ(verdict, Verdict::kHolds) << name;
  EXPECT_EQ(agent.workloads(), 0U);
}

TEST(AgentConformance, EachRuleThatIsBrokenIsFoundByItsCheck) {
  for (const auto& [name, rule] : AgentConformanceChecks()) {
    PlainAgent agent{std::string(name)};
    auto verdicts = Judge(agent);
    EXPECT_EQ(verdicts[std::string(name)], Verdict::kBroken) << name << ": " << rule;
    // What a rule broken early leads to: the checks after it that need what did not come about.
    if (name == "runs" || name == "revision" || name == "deleted" || name == "listed") continue;
    verdicts.erase(std::string(name));
    for (const auto& [other, verdict] : verdicts) EXPECT_EQ(verdict, Verdict::kHolds) << name << " breaks " << other;
  }
}

TEST(AgentConformance, ThePageHasEveryRule) {
  std::string table = "| rule | |\n|---|---|\n";
  for (const auto& [name, rule] : AgentConformanceChecks()) table += fmt::format("| `{}` | {} |\n", name, rule);
  EXPECT_TRUE(host::PageShows("docs/agent.md", "checks", table));
}

TEST(AgentConformance, WithoutLeaveNothingIsChanged) {
  PlainAgent agent("");
  const auto verdicts = Judge(agent, false);
  EXPECT_EQ(verdicts.at("applied"), Verdict::kNotShown);
  EXPECT_EQ(verdicts.at("health"), Verdict::kHolds);
  EXPECT_EQ(agent.workloads(), 0U);
}

}  // namespace
}  // namespace muster::cli
