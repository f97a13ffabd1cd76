// FakeAgent: an agent of another make on a real socket, as persys.agent.v1 is served in the field: applies are answered
// before the work is done, an unknown workload is an error text and not a code, and it can be told to misbehave.
//
//   FakeAgent agent("n1");
//   agent.Register(scheduler_address);       // and heartbeats from then on
//   agent.behave([](Behaviour& b) { b.hang = true; });
//
// A workload that was applied is PENDING for the first GetWorkloadStatus and RUNNING from the second on.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "persys/agent/v1/agent.grpc.pb.h"
#include "persys/control/v1/control.grpc.pb.h"

namespace muster::scheduler {

struct Behaviour {
  bool hang = false;             // no call is answered, until it is told otherwise or stops
  std::string apply_error = {};  // of ApplyWorkload; empty: none
  grpc::StatusCode apply_code = grpc::StatusCode::UNKNOWN;
  std::string refuse = {};             // applied=false with this message
  std::string fail = {};               // accepted, and FAILED later with this message
  bool forget = false;                 // what is applied is not there afterwards
  bool exit_zero = false;              // what is applied runs to its end: STOPPED with exit code 0
  bool beat = true;                    // heartbeats are sent
  std::vector<std::string> lies = {};  // workloads that heartbeats and lists have besides, as RUNNING
};

class FakeAgent {
 public:
  using Duration = muster::Duration;

  explicit FakeAgent(std::string node, Duration beat_every = 100ms) : node_(std::move(node)), beat_every_(beat_every) {
    Listen(0);
  }
  ~FakeAgent() { Stop(); }
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  const std::string& node() const { return node_; }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_.load()); }

  template <class Change>
  void behave(const Change& change) {
    {
      const std::lock_guard lock(mu_);
      change(behaviour_);
    }
    changed_.notify_all();
  }

  // Registers and sends heartbeats from then on; registers again when the scheduler does not know the node.
  void Register(const std::string& scheduler, std::map<std::string, std::string> labels = {},
                std::vector<std::string> types = {"container"}) {
    beats_ = {};  // those to another scheduler
    scheduler_ =
        persys::control::v1::AgentControl::NewStub(grpc::CreateChannel(scheduler, grpc::InsecureChannelCredentials()));
    labels_ = std::move(labels);
    types_ = std::move(types);
    Say();
    beats_ = std::jthread([this](const std::stop_token& stop) { Beat(stop); });
  }
  // The server goes away, and with it the port; heartbeats go on.
  void StopServing() {
    behave([](Behaviour& b) { b.hang = false; });
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    server_.reset();
  }
  void ServeAgain() { Listen(port_); }
  void Stop() {
    beats_ = {};
    StopServing();
  }

  // --- what it has and was asked
  std::map<std::string, std::string> workloads() const {  // state by id: "PENDING", ...
    const std::lock_guard lock(mu_);
    std::map<std::string, std::string> states;
    for (const auto& [id, row] : rows_) states[id] = NameOf(row.state);
    return states;
  }
  bool Runs(const std::string& id) const {
    const std::lock_guard lock(mu_);
    const auto row = rows_.find(id);
    return row != rows_.end() && row->second.state == persys::agent::v1::ACTUAL_STATE_RUNNING;
  }
  std::string RevisionOf(const std::string& id) const {
    const std::lock_guard lock(mu_);
    const auto row = rows_.find(id);
    return row == rows_.end() ? "" : row->second.revision;
  }
  int calls(const std::string& method) const { return static_cast<int>(times_of(method).size()); }
  std::vector<std::chrono::steady_clock::time_point> times_of(const std::string& method) const {
    const std::lock_guard lock(mu_);
    const auto times = calls_.find(method);
    return times == calls_.end() ? std::vector<std::chrono::steady_clock::time_point>() : times->second;
  }
  // Something happens to a workload without the scheduler.
  void SetState(const std::string& id, persys::agent::v1::ActualState state) {
    const std::lock_guard lock(mu_);
    rows_[id].state = state;
  }
  void Lose(const std::string& id) {
    const std::lock_guard lock(mu_);
    rows_.erase(id);
  }

 private:
  using State = persys::agent::v1::ActualState;
  struct Row {
    std::string revision;
    State state = persys::agent::v1::ACTUAL_STATE_PENDING;
    State next = persys::agent::v1::ACTUAL_STATE_RUNNING;  // once a status has been read
    std::string message;
    bool exited = false;
  };

  static std::string NameOf(State state) {
    return persys::agent::v1::ActualState_Name(state).substr(std::string("ACTUAL_STATE_").size());
  }

  class Service final : public persys::agent::v1::AgentService::Service {
   public:
    explicit Service(FakeAgent& agent) : agent_(agent) {}

    grpc::Status ApplyWorkload(grpc::ServerContext* context, const persys::agent::v1::ApplyWorkloadRequest* request,
                               persys::agent::v1::ApplyWorkloadResponse* reply) override {
      return agent_.Serve("ApplyWorkload", *context, [&] { return agent_.Apply(*request, *reply); });
    }
    grpc::Status DeleteWorkload(grpc::ServerContext* context, const persys::agent::v1::DeleteWorkloadRequest* request,
                                persys::agent::v1::DeleteWorkloadResponse* reply) override {
      return agent_.Serve("DeleteWorkload", *context, [&] {
        agent_.rows_.erase(request->id());
        std::erase(agent_.behaviour_.lies, request->id());
        reply->set_success(true);
        return grpc::Status::OK;
      });
    }
    grpc::Status GetWorkloadStatus(grpc::ServerContext* context,
                                   const persys::agent::v1::GetWorkloadStatusRequest* request,
                                   persys::agent::v1::GetWorkloadStatusResponse* reply) override {
      return agent_.Serve("GetWorkloadStatus", *context, [&] {
        const auto row = agent_.rows_.find(request->id());
        if (row == agent_.rows_.end()) return grpc::Status(grpc::StatusCode::UNKNOWN, "status not found");
        agent_.Write(row->first, row->second, *reply->mutable_status());
        if (row->second.state == persys::agent::v1::ACTUAL_STATE_PENDING) row->second.state = row->second.next;
        return grpc::Status::OK;
      });
    }
    grpc::Status ListWorkloads(grpc::ServerContext* context, const persys::agent::v1::ListWorkloadsRequest* /*request*/,
                               persys::agent::v1::ListWorkloadsResponse* reply) override {
      return agent_.Serve("ListWorkloads", *context, [&] {
        for (const auto& [id, row] : agent_.rows_) agent_.Write(id, row, *reply->add_workloads());
        for (const std::string& id : agent_.behaviour_.lies) {
          agent_.Write(id, {.revision = "lie", .state = persys::agent::v1::ACTUAL_STATE_RUNNING},
                       *reply->add_workloads());
        }
        return grpc::Status::OK;
      });
    }

   private:
    FakeAgent& agent_;
  };

  void Listen(int port) {
    grpc::ServerBuilder builder;
    int chosen = 0;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort(fmt::format("127.0.0.1:{}", port), grpc::InsecureServerCredentials(), &chosen);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr) << "port " << port;
    port_ = chosen;
  }

  // Counts the call, hangs if it is told to, and answers under the lock.
  template <class Answer>
  grpc::Status Serve(const std::string& method, const grpc::ServerContext& context, const Answer& answer) {
    std::unique_lock lock(mu_);
    calls_[method].push_back(std::chrono::steady_clock::now());
    while (behaviour_.hang && !context.IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(20));
    if (context.IsCancelled()) return grpc::Status::CANCELLED;
    return answer();
  }

  grpc::Status Apply(const persys::agent::v1::ApplyWorkloadRequest& request,
                     persys::agent::v1::ApplyWorkloadResponse& reply) {
    using namespace persys::agent::v1;  // NOLINT(google-build-using-namespace): the names of its enums
    if (!behaviour_.apply_error.empty()) return {behaviour_.apply_code, behaviour_.apply_error};
    if (!behaviour_.refuse.empty()) {
      reply.set_applied(false);
      reply.set_message(behaviour_.refuse);
      return grpc::Status::OK;
    }
    const bool run = request.desired_state() != DESIRED_STATE_STOPPED;
    Row& row = rows_[request.id()];
    const bool same = row.revision == request.revision_id() && row.state != ACTUAL_STATE_FAILED &&
                      (row.state == ACTUAL_STATE_STOPPED) == !run;
    reply.set_applied(true);
    reply.set_skipped(same && !row.revision.empty());
    if (!reply.skipped()) {
      row = {.revision = request.revision_id(),
             .state = ACTUAL_STATE_PENDING,
             .next = run ? ACTUAL_STATE_RUNNING : ACTUAL_STATE_STOPPED};
      if (!behaviour_.fail.empty()) {
        row.next = ACTUAL_STATE_FAILED;
        row.message = behaviour_.fail;
      } else if (run && behaviour_.exit_zero) {
        row.next = ACTUAL_STATE_STOPPED;
        row.exited = true;
      }
    }
    Write(request.id(), row, *reply.mutable_status());
    if (behaviour_.forget) rows_.erase(request.id());
    return grpc::Status::OK;
  }

  static void Write(const std::string& id, const Row& row, persys::agent::v1::WorkloadStatus& status) {
    status.set_id(id);
    status.set_type(persys::agent::v1::WORKLOAD_TYPE_CONTAINER);
    status.set_revision_id(row.revision);
    status.set_actual_state(row.state);
    if (row.state == persys::agent::v1::ACTUAL_STATE_FAILED) status.set_message(row.message);
    if (row.exited && row.state == persys::agent::v1::ACTUAL_STATE_STOPPED) {
      (*status.mutable_metadata())["container.exit_code"] = "0";
    }
  }

  // --- to the scheduler

  void Say() {
    persys::control::v1::RegisterNodeRequest request;
    request.set_node_id(node_);
    request.set_grpc_endpoint(address());
    request.mutable_capabilities()->set_cpu_total_millicores(8000);
    request.mutable_capabilities()->set_memory_total_mb(16384);
    for (const std::string& type : types_) request.mutable_capabilities()->add_supported_workload_types(type);
    for (const auto& [key, value] : labels_) (*request.mutable_labels())[key] = value;
    persys::control::v1::RegisterNodeResponse reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    context.set_wait_for_ready(true);
    scheduler_->RegisterNode(&context, request, &reply);
  }

  void Beat(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      persys::control::v1::HeartbeatRequest request;
      request.set_node_id(node_);
      bool send = false;
      {
        std::unique_lock lock(mu_);
        changed_.wait_for(lock, beat_every_, [&] { return stop.stop_requested(); });
        send = behaviour_.beat && !stop.stop_requested();
        for (const auto& [id, row] : rows_) AddStatus(id, NameOf(row.state), request);
        for (const std::string& id : behaviour_.lies) AddStatus(id, "RUNNING", request);
      }
      if (!send) continue;
      persys::control::v1::HeartbeatResponse reply;
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
      if (scheduler_->Heartbeat(&context, request, &reply).error_code() == grpc::StatusCode::NOT_FOUND) Say();
    }
  }
  static void AddStatus(const std::string& id, const std::string& state,
                        persys::control::v1::HeartbeatRequest& request) {
    auto& status = *request.add_workload_statuses();
    status.set_workload_id(id);
    status.set_state(state);
  }

  const std::string node_;
  const Duration beat_every_;
  std::atomic<int> port_ = 0;
  Service service_{*this};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<persys::control::v1::AgentControl::Stub> scheduler_;
  std::map<std::string, std::string> labels_;
  std::vector<std::string> types_;

  mutable std::mutex mu_;
  std::condition_variable_any changed_;
  // Guarded by mu_.
  Behaviour behaviour_;
  std::map<std::string, Row> rows_;
  std::map<std::string, std::vector<std::chrono::steady_clock::time_point>> calls_;

  std::jthread beats_;  // last: it uses the rest
};

}  // namespace muster::scheduler
