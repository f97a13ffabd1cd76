// A scheduler over real gRPC as its clients see it: a client that knows reflection only, nodes that join by streams,
// watchers, and operators who look at its endpoints.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "host/http_get_for_test.h"
#include "host/replay.h"
#include "host/temp_dir_for_test.h"
#include "rpc/agent_services.h"
#include "rpc/join_client.h"
#include "rpc/server.h"
#include "scheduler/cluster_for_test.h"
#include "scheduler/fake_agent_for_test.h"
#include "scheduler/generic_client_for_test.h"

namespace muster::scheduler {
namespace {

using enum model::WorkloadPhase;
using model::NodeStatus;

constexpr const char* kControl = "persys.control.v1.AgentControl";

TEST(SchedulerClients, AGenericClientRegistersBeatsAndAppliesByReflection) {
  Cluster cluster(ShortSettings("memory:"));
  FakeAgent agent("n1");
  GenericClient client(cluster.address());
  const std::string registered = client.Call(kControl, "RegisterNode",
                                             fmt::format(R"(node_id: "n1" grpc_endpoint: "{}" capabilities {{
          cpu_total_millicores: 1000 memory_total_mb: 1024 supported_workload_types: "container" }})",
                                                         agent.address()));
  EXPECT_TRUE(registered.starts_with("accepted: true heartbeat_interval_seconds: 1 lease_expires_at")) << registered;
  EXPECT_TRUE(client.Call(kControl, "Heartbeat", R"(node_id: "n1")").starts_with("acknowledged: true"));
  EXPECT_EQ(client.Call(kControl, "ApplyWorkload",
                        R"(workload_id: "web" spec { type: "container" container { image: "i" } })"),
            "success: true");
  EXPECT_TRUE(Eventually([&] {
    client.Call(kControl, "Heartbeat", R"(node_id: "n1")");
    return client.Call(kControl, "GetWorkload", R"(workload_id: "web")").find(R"(status: "Running")") !=
           std::string::npos;
  }));
  EXPECT_NE(client.Call(kControl, "GetClusterSummary", "").find("running_workloads: 1"), std::string::npos);
  EXPECT_EQ(client.Call(kControl, "Heartbeat", R"(node_id: "n2")").substr(0, 2), "5 ");  // NOT_FOUND: register
  EXPECT_EQ(client.Call(kControl, "RegisterNode", R"(node_id: "n3")"),
            "3 grpc_endpoint: missing; give host:port at which the agent serves");
  EXPECT_EQ(client.Call("muster.v1.Cluster", "GetNode", R"(node: "a/b")").substr(0, 8), "3 node: ");
  EXPECT_TRUE(client.Call(kControl, "RegisterNode", R"(node_id: "n4" grpc_endpoint: "h:1")").starts_with("reason:"));
}

TEST(SchedulerClients, ANodeBehindAStreamRegistersBeatsAndGetsItsCommandsThere) {
  Cluster cluster(ShortSettings("memory:"));
  const auto stub = persys::control::v1::AgentControl::NewStub(
      grpc::CreateChannel(cluster.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->ControlStream(&context);
  persys::control::v1::ControlMessage message;
  auto& node = *message.mutable_register_();
  node.set_node_id("n1");
  node.set_grpc_endpoint("127.0.0.1:1");  // nothing listens there
  node.mutable_capabilities()->set_cpu_total_millicores(1000);
  node.mutable_capabilities()->set_memory_total_mb(1024);
  ASSERT_TRUE(stream->Write(message));
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  const auto beat = [&](const std::string& state) {
    message.Clear();
    message.mutable_heartbeat()->set_node_id("n1");
    if (!state.empty()) {
      auto& status = *message.mutable_heartbeat()->add_workload_statuses();
      status.set_workload_id("web");
      status.set_state(state);
    }
    return stream->Write(message);
  };
  ASSERT_TRUE(beat(""));
  ASSERT_EQ(cluster.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.apply().workload_id(), "web");
  EXPECT_EQ(message.apply().spec().container().image(), "i");
  ASSERT_TRUE(beat("RUNNING"));
  ASSERT_TRUE(cluster.Becomes("web", kRunning));
  EXPECT_EQ(cluster.Node("n1").status, NodeStatus::kReady);
  cluster.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "web"});
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.delete_().workload_id(), "web");
  ASSERT_TRUE(beat(""));
  EXPECT_TRUE(Eventually([&] { return !cluster.Has("web"); }));
  stream->WritesDone();
  context.TryCancel();
}

// An agent of ours, as far as a scheduler can tell: it knows stamps, and serves muster.v1.Agent.
class NativeAgent final : public rpc::JoinHandler, public contract::AgentPort, public contract::LogsPort {
 public:
  NativeAgent(std::string node, const std::string& scheduler) : node_(std::move(node)) {
    EXPECT_EQ(server_.Start(std::vector{service_.get()}), Status());
    client_ = *rpc::MakeJoinClient(scheduler, *this);
  }

  contract::RegisterNode Registration() override {
    contract::RegisterNode request;
    request.facts.node = node_;
    request.facts.endpoint = server_.address().ToString();
    request.facts.total = {{"cpu", 4000}, {"memory", (int64_t{1} << 30) * 1000}};
    request.facts.supported_types = {model::WorkloadType::kProcess};
    const std::lock_guard lock(mu_);
    for (const auto& [id, status] : statuses_) request.running.push_back(status);
    return request;
  }
  void Joined(const std::string& /*scheduler*/, contract::NodeRegistered registered) override {
    const std::lock_guard lock(mu_);
    joined_.push_back(std::move(registered));
  }
  void Acked(contract::HeartbeatAck /*ack*/) override {}
  void Left(const std::string& /*scheduler*/, Status /*why*/) override {}

  void Ask(contract::AgentRequest request, Done done) override {
    std::unique_lock lock(mu_);
    if (const auto* apply = std::get_if<contract::ApplyOnAgent>(&request)) {
      contract::WorkloadStatus& status = statuses_[apply->workload];
      status = {.workload = apply->workload,
                .type = apply->spec.type,
                .revision = apply->revision,
                .wanted_running = apply->run,
                .actual = contract::ActualState::kRunning,
                .stamp = apply->stamp};
      return done(contract::AppliedOnAgent{.applied = true, .status = status});
    }
    if (const auto* get = std::get_if<contract::GetStatusOnAgent>(&request)) {
      const auto status = statuses_.find(get->workload);
      if (status == statuses_.end()) return done(Error(Code::kNotFound, "no such workload"));
      return done(status->second);
    }
    if (const auto* remove = std::get_if<contract::DeleteOnAgent>(&request)) {
      statuses_.erase(remove->workload);
      return done(contract::DeletedOnAgent{.success = true});
    }
    contract::ListedOnAgent listed;
    for (const auto& [id, status] : statuses_) listed.workloads.push_back(status);
    done(listed);
  }
  void Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) override {
    sink->Write({.stream = contract::LogStream::kStdout, .data = "hello from " + request.workload + "\n"});
    sink->End({});
  }

  void Beat(uint64_t epoch) {
    contract::Heartbeat beat;
    beat.node = node_;
    beat.epoch = epoch;
    {
      const std::lock_guard lock(mu_);
      for (const auto& [id, status] : statuses_) beat.statuses.push_back(status);
    }
    client_->Beat(std::move(beat));
  }
  std::optional<contract::NodeRegistered> joined(size_t time) {
    const std::lock_guard lock(mu_);
    return joined_.size() > time ? std::optional(joined_[time]) : std::nullopt;
  }
  contract::Stamp StampOf(const std::string& id) {
    const std::lock_guard lock(mu_);
    return statuses_[id].stamp;
  }

 private:
  const std::string node_;
  std::mutex mu_;
  std::vector<contract::NodeRegistered> joined_;              // guarded by mu_
  std::map<std::string, contract::WorkloadStatus> statuses_;  // guarded by mu_
  std::shared_ptr<grpc::Service> service_ = rpc::MakeAgentService(*this, *this);
  rpc::Server server_{{.address = {.host = "127.0.0.1", .port = 0}, .stop_grace = 100ms}};
  std::unique_ptr<rpc::JoinClient> client_;
};

contract::ApplySpec Process(const std::string& name) {
  contract::ApplySpec apply;
  apply.spec.name = name;
  apply.spec.spec.type = model::WorkloadType::kProcess;
  apply.spec.spec.command = {"sleep", "1"};
  return apply;
}

TEST(SchedulerClients, ANativeAgentJoinsIsStampedAndGetsItsFullStateAgain) {
  Cluster cluster(ShortSettings("memory:"));
  auto agent = std::make_unique<NativeAgent>("n1", cluster.address());
  ASSERT_TRUE(Eventually([&] { return agent->joined(0).has_value(); }));
  const uint64_t epoch = agent->joined(0)->state.epoch;
  EXPECT_GT(epoch, 0);
  EXPECT_EQ(agent->joined(0)->heartbeat_interval, 1s);
  EXPECT_TRUE(cluster.Node("n1").native);

  cluster.Get<contract::Applied>(Process("job"));
  ASSERT_TRUE(cluster.Becomes("job", kRunning));
  EXPECT_EQ(agent->StampOf("job").epoch, epoch);
  EXPECT_GT(agent->StampOf("job").sequence, 0);
  agent->Beat(epoch);

  // Logs reach the client through the scheduler.
  std::mutex mu;
  std::condition_variable came;
  std::string text;
  std::optional<Status> end;
  const auto reading = cluster.client().Logs({.workload = "job"}, {.chunk =
                                                                       [&](contract::LogChunk chunk) {
                                                                         const std::lock_guard lock(mu);
                                                                         text += chunk.data;
                                                                       },
                                                                   .ended =
                                                                       [&](Status status) {
                                                                         const std::lock_guard lock(mu);
                                                                         end = status;
                                                                         came.notify_all();
                                                                       }});
  {
    std::unique_lock lock(mu);
    ASSERT_TRUE(came.wait_for(lock, kPatience, [&] { return end.has_value(); }));
    EXPECT_EQ(*end, Status());
    EXPECT_EQ(text, "hello from job\n");
  }

  // Another agent takes the node's name: a later epoch, and everything that is assigned to the node.
  agent.reset();
  agent = std::make_unique<NativeAgent>("n1", cluster.address());
  ASSERT_TRUE(Eventually([&] { return agent->joined(0).has_value(); }));
  EXPECT_GT(agent->joined(0)->state.epoch, epoch);
  ASSERT_EQ(agent->joined(0)->state.workloads.size(), 1);
  EXPECT_EQ(agent->joined(0)->state.workloads[0].workload, "job");
}

// What a watch brought.
struct Watched {
  std::mutex mu;
  std::vector<contract::ClusterChange> changes;  // guarded by mu
  std::optional<Status> end;                     // guarded by mu

  rpc::ClusterClient::Watcher Watcher() {
    return {.changed =
                [this](contract::ClusterChange change) {
                  const std::lock_guard lock(mu);
                  changes.push_back(std::move(change));
                },
            .ended =
                [this](Status status) {
                  const std::lock_guard lock(mu);
                  end = std::move(status);
                }};
  }
  bool Has(const std::function<bool(const contract::ClusterChange&)>& wanted) {
    const std::lock_guard lock(mu);
    return std::ranges::any_of(changes, wanted);
  }
};

TEST(SchedulerClients, AWatchFromARevisionMissesNothing) {
  Cluster cluster(ShortSettings("memory:"));
  FakeAgent agent("n1");
  agent.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  const contract::Revision from = cluster.Get<contract::WorkloadsListed>(contract::ListWorkloads{}).revision;
  ASSERT_EQ(cluster.Apply(Cluster::Container("before")), Status());
  ASSERT_TRUE(cluster.Becomes("before", kRunning));

  Watched seen;
  const auto watch = cluster.client().Watch({.workloads = true, .decisions = true, .from = from}, seen.Watcher());
  ASSERT_EQ(cluster.Apply(Cluster::Container("after")), Status());
  const auto running = [](const std::string& id) {
    return [id](const contract::ClusterChange& change) {
      const auto* object = std::get_if<contract::ObjectChanged>(&change);
      if (object == nullptr || object->name != id) return false;
      const auto* view = std::get_if<contract::WorkloadView>(&object->now);
      return view != nullptr && view->phase == kRunning;
    };
  };
  EXPECT_TRUE(Eventually([&] { return seen.Has(running("before")) && seen.Has(running("after")); }));
  EXPECT_TRUE(seen.Has([](const contract::ClusterChange& change) {
    const auto* decision = std::get_if<contract::Decision>(&change);
    return decision != nullptr && decision->kind == contract::DecisionKind::kPlaced && decision->workload == "after" &&
           decision->node == "n1";
  }));
  {
    const std::lock_guard lock(seen.mu);
    contract::Revision last = from;
    for (const contract::ClusterChange& change : seen.changes) {
      if (const auto* object = std::get_if<contract::ObjectChanged>(&change)) {
        EXPECT_GE(object->revision, last);
        last = object->revision;
      }
    }
  }
  cluster.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "after"});
  EXPECT_TRUE(Eventually([&] {
    return seen.Has([](const contract::ClusterChange& change) {
      const auto* object = std::get_if<contract::ObjectChanged>(&change);
      return object != nullptr && object->name == "after" && object->now.index() == 0;
    });
  }));
}

TEST(SchedulerClients, ListsComeInPages) {
  Cluster cluster(ShortSettings("memory:"));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(cluster.Apply(Cluster::Container(fmt::format("w{}", i))), Status());
  std::string ids;
  contract::ListWorkloads list;
  list.page.limit = 2;
  for (int pages = 0; pages < 3; ++pages) {
    const auto listed = cluster.Get<contract::WorkloadsListed>(list);
    EXPECT_EQ(listed.workloads.size(), pages < 2 ? 2 : 1);
    for (const auto& view : listed.workloads) ids += view.workload + " ";
    EXPECT_EQ(listed.next.empty(), pages == 2);
    list.page.token = listed.next;
  }
  EXPECT_EQ(ids, "w0 w1 w2 w3 w4 ");
}

TEST(SchedulerClients, AQuotaRefusesWithTheFigures) {
  Cluster cluster(ShortSettings("memory:"));
  contract::ApplyQuota quota;
  quota.quota.tenant = "t";
  quota.quota.workloads = 1;
  cluster.Get<contract::Applied>(quota);
  contract::ApplyWorkload apply = Cluster::Container("a");
  apply.tenant = "t";
  ASSERT_EQ(cluster.Apply(apply), Status());
  apply.workload = "b";
  const Status refused = cluster.Apply(apply);
  EXPECT_EQ(refused, Status(Code::kResourceExhausted, "tenant t: workloads 1 of 1 in use, 1 more asked for"));
  const auto quotas = cluster.Get<contract::QuotasListed>(contract::ListQuotas{.tenant = "t"});
  ASSERT_EQ(quotas.quotas.size(), 1);
  EXPECT_EQ(quotas.quotas[0].workloads, 1);
}

TEST(SchedulerClients, ASetIsScaledRolledAndMovedAwayFromADrainedNode) {
  Cluster cluster(ShortSettings("memory:"));
  FakeAgent first("n1");
  FakeAgent second("n2");
  for (FakeAgent* agent : {&first, &second}) {
    agent->Register(cluster.address());
    ASSERT_TRUE(cluster.NodeBecomes(agent->node(), NodeStatus::kReady));
  }
  contract::ApplySpec apply;
  apply.spec.kind = model::WorkloadKind::kSet;
  apply.spec.name = "web";
  apply.spec.replicas = 2;
  apply.spec.spec.type = model::WorkloadType::kContainer;
  apply.spec.spec.image = "i";
  apply.spec.spec.resources = {{"cpu", 100}};
  cluster.Get<contract::Applied>(apply);
  const auto available = [&] {
    const auto sets = cluster.Get<contract::SetsListed>(contract::ListSets{.name = "web"});
    return sets.sets.empty() ? -1 : sets.sets[0].available;
  };
  ASSERT_TRUE(Eventually([&] { return available() == 2; }));
  cluster.Get<contract::Done>(contract::ScaleSet{.set = "web", .replicas = 4});
  ASSERT_TRUE(Eventually([&] { return available() == 4; }));
  EXPECT_EQ(first.workloads().size(), 2);  // as many on each
  EXPECT_EQ(second.workloads().size(), 2);

  const std::string revision = first.RevisionOf(first.workloads().begin()->first);
  apply.spec.replicas = 4;
  apply.spec.spec.image = "j";
  cluster.Get<contract::Applied>(apply);
  ASSERT_TRUE(Eventually([&] {
    if (available() != 4) return false;
    for (FakeAgent* agent : {&first, &second}) {
      for (const auto& [id, state] : agent->workloads()) {
        if (agent->RevisionOf(id) == revision) return false;
      }
    }
    return true;
  }));

  cluster.Get<contract::Done>(contract::DrainNode{.node = "n1", .grace = 0s, .reason = "repair"});
  EXPECT_TRUE(Eventually([&] { return first.workloads().empty() && second.workloads().size() == 4; }));
  EXPECT_TRUE(cluster.Node("n1").cordoned);
  EXPECT_TRUE(Eventually([&] { return available() == 4; }));
}

TEST(SchedulerClients, AJournalIsReplayedWithTheSameEffects) {
  const host::TempDir dir;
  RoleOptions options = ShortSettings("memory:");
  options.server.journal = dir.File("journal");
  Cluster cluster(std::move(options));
  FakeAgent agent("n1");
  agent.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  ASSERT_EQ(cluster.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster.Becomes("web", kRunning));
  cluster.Stop();
  const auto report = host::Replay<Core>(dir.File("journal"));
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_FALSE(report->divergence) << *report->divergence;
  EXPECT_GT(report->steps, 10);
}

// One attempt fails, one workload finds no node, and one node is lost: each is counted once.
TEST(SchedulerClients, OperatorsSeeItsMetricsAndReadiness) {
  RoleOptions options = ShortSettings("memory:");
  options.config.retry_base = options.config.retry_cap = options.config.preempt_after = 1h;  // nothing is tried again
  options.config.node_timeout = 3s;
  Cluster cluster(options);
  FakeAgent agent("n1");
  agent.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  ASSERT_EQ(cluster.Apply(Cluster::Container("web")), Status());
  ASSERT_TRUE(cluster.Becomes("web", kRunning));
  FakeAgent silent("n2");
  silent.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n2", NodeStatus::kReady));
  silent.behave([](Behaviour& b) { b.beat = false; });
  ASSERT_TRUE(cluster.NodeBecomes("n2", NodeStatus::kNotReady));
  agent.behave([](Behaviour& b) { b.apply_error = "no such image"; });
  ASSERT_EQ(cluster.Apply(Cluster::Container("bad")), Status());
  ASSERT_TRUE(cluster.Becomes("bad", kRetryPending));
  ASSERT_EQ(cluster.Apply(Cluster::Container("large", 1'000'000)), Status());
  ASSERT_TRUE(cluster.Becomes("large", kPending));
  const host::Address http = cluster.role().metrics_address();
  EXPECT_EQ(host::HttpGet(http, "/readyz").status, 200);
  std::string text;
  // What a step counted is shown a moment after what it wrote.
  EXPECT_TRUE(Eventually([&] {
    text = host::HttpGet(http, "/metrics").body;
    return text.contains("muster_scheduler_workloads_waiting 1");
  }));
  for (const std::string line :
       {"persys_scheduler_grpc_server_requests_total{code=\"OK\",method=\"/persys.control.v1.AgentControl/"
        "RegisterNode\"}",
        "persys_scheduler_grpc_server_request_duration_seconds_bucket",
        "persys_scheduler_agent_rpc_requests_total{code=\"OK\",rpc=\"ApplyWorkload\"} 1",
        "persys_scheduler_agent_rpc_requests_total{code=\"UNKNOWN\",rpc=\"ApplyWorkload\"} 1",
        "persys_scheduler_agent_rpc_duration_seconds_bucket",
        "persys_scheduler_reconciliation_results_total",
        "persys_scheduler_reconciliation_actions_total",
        "persys_scheduler_reconciliation_cycle_duration_seconds",
        "persys_scheduler_reconciliation_cycles_total",
        "persys_scheduler_nodes_status{status=\"Ready\"} 1",
        "persys_scheduler_nodes_status{status=\"NotReady\"} 1",
        "persys_scheduler_workloads_status{status=\"Running\"} 1",
        "persys_scheduler_workloads_status{status=\"RetryPending\"} 1",
        "persys_scheduler_workloads_status{status=\"Pending\"} 1",
        "persys_scheduler_workloads_desired_state{desired_state=\"Running\"} 3",
        "persys_scheduler_state_store_writes_total{category=\"assignment\"}",
        "persys_scheduler_scheduling_attempts_total 3\n",
        "persys_scheduler_scheduling_failures_total 1\n",
        "persys_scheduler_retry_total 1\n",
        "persys_scheduler_node_unhealthy_total 1\n",
        "muster_scheduler_leading 1"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace muster::scheduler
