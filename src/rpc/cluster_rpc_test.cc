// The scheduler's services and their clients against each other over a real socket, with a scheduler that answers as it
// is told.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "base/codec.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "persys/control/v1/control.grpc.pb.h"
#include "rpc/agent_client.h"
#include "rpc/bounded_service.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/cluster_client.h"
#include "rpc/cluster_conversion.h"
#include "rpc/cluster_services.h"
#include "rpc/join_client.h"
#include "rpc/server.h"
#include "rpc/whole_list.h"

namespace muster::rpc {
namespace {

namespace pb = persys::control::v1;
using contract::ClusterReply;
using contract::ClusterRequest;

constexpr Duration kPatience = 20s;

// What comes one by one, for a test that waits for it.
template <class T>
class Inbox {
 public:
  void Put(T item) {
    const std::lock_guard lock(mu_);
    items_.push_back(std::move(item));
    came_.notify_all();
  }
  std::optional<T> Take() {
    std::unique_lock lock(mu_);
    if (!came_.wait_for(lock, kPatience, [this] { return !items_.empty(); })) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mu_;
  std::condition_variable came_;
  std::deque<T> items_;
};

// Answers with what was put before it, in order; keeps the requests.
class ToldScheduler final : public contract::ClusterPort,
                            public WatchPort,
                            public contract::LogsPort,
                            public NodeStreams,
                            public TenantPort {
 public:
  void AskFor(const std::string& tenant, ClusterRequest request, Done done) override {
    tenants.Put(tenant);
    Ask(std::move(request), std::move(done));
  }
  void Ask(ClusterRequest request, Done done) override {
    Result<ClusterReply> answer = Error(Code::kInternal, "nothing was told");
    if (acks_every_beat && std::holds_alternative<contract::Heartbeat>(request)) {
      {
        const std::lock_guard lock(mu_);
        ++beats_;
      }
      return done(contract::HeartbeatAck{});
    }
    {
      const std::lock_guard lock(mu_);
      if (answers_later) {
        kept_.push_back(std::move(done));
        most_kept_ = std::max(most_kept_, kept_.size());
        asked_.notify_all();
        return;
      }
      if (!answers_.empty()) {
        answer = std::move(answers_.front());
        answers_.pop_front();
      }
    }
    requests.Put(std::move(request));
    done(std::move(answer));
  }
  // The oldest request that waits, once there is one.
  void AnswerOne(Result<ClusterReply> answer) {
    std::unique_lock lock(mu_);
    ASSERT_TRUE(asked_.wait_for(lock, kPatience, [this] { return !kept_.empty(); }));
    const Done done = std::move(kept_.front());
    kept_.pop_front();
    lock.unlock();
    done(std::move(answer));
  }
  // How many were acknowledged.
  int beats_taken() {
    const std::lock_guard lock(mu_);
    return beats_;
  }
  size_t most_kept() {
    const std::lock_guard lock(mu_);
    return most_kept_;
  }
  void WillAnswer(Result<ClusterReply> answer) {
    const std::lock_guard lock(mu_);
    answers_.push_back(std::move(answer));
  }

  void Watch(const contract::WatchCluster& what, std::shared_ptr<WatchSink> sink) override {
    watches.Put({what, std::move(sink)});
  }
  void Read(contract::ReadLogs request, std::shared_ptr<contract::LogsSink> sink) override {
    sink->Write({.stream = contract::LogStream::kStderr, .data = request.workload + "\n", .at = WallTime(7s)});
    sink->End({});
  }
  Id Opened(const std::string& node, std::shared_ptr<NodeStream> stream) override {
    streams.Put({node, std::move(stream)});
    return 7;
  }
  void Beat(Id /*stream*/, const std::vector<contract::WorkloadStatus>& statuses) override { beats.Put(statuses); }
  void Closed(Id stream) override { closed.Put(stream); }

  std::atomic<bool> answers_later = false;    // by AnswerOne; requests are not kept
  std::atomic<bool> acks_every_beat = false;  // which are not kept

  Inbox<ClusterRequest> requests;
  Inbox<std::string> tenants;  // that asked for changes
  Inbox<std::pair<contract::WatchCluster, std::shared_ptr<WatchSink>>> watches;
  Inbox<std::pair<std::string, std::shared_ptr<NodeStream>>> streams;
  Inbox<std::vector<contract::WorkloadStatus>> beats;
  Inbox<Id> closed;

 private:
  std::mutex mu_;
  std::condition_variable asked_;
  std::deque<Done> kept_;
  size_t most_kept_ = 0;
  int beats_ = 0;
  std::deque<Result<ClusterReply>> answers_;
};

// A server in front of one.
struct Served {
  Served() { EXPECT_EQ(server.Start(std::vector{control.get(), cluster.get()}), Status()); }
  std::string address() const { return server.address().ToString(); }

  ToldScheduler scheduler;
  std::shared_ptr<grpc::Service> control = MakeControlService(scheduler, scheduler, scheduler);
  std::shared_ptr<grpc::Service> cluster = MakeClusterService(scheduler, scheduler, scheduler, scheduler);
  Server server{{.address = {.host = "127.0.0.1", .port = 0}, .stop_grace = 100ms}};
};

Result<ClusterReply> AskAndWait(contract::ClusterPort& port, ClusterRequest request) {
  std::promise<Result<ClusterReply>> answer;
  port.Ask(std::move(request), [&](Result<ClusterReply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

std::string Bytes(const Result<ClusterReply>& reply) {
  return reply ? codec::ToBytes(*reply) : reply.error().ToString();
}

class ClusterRpc : public testing::Test {
 protected:
  ClusterRpc() : client_(*MakeClusterClient(served_.address())) {
    channel_ = *MakeChannel({.target = served_.address()});
    control_ = pb::AgentControl::NewStub(channel_);
  }

  Served served_;
  std::unique_ptr<ClusterClient> client_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::AgentControl::Stub> control_;
};

TEST_F(ClusterRpc, EachRequestReachesThePortAndItsReplyComesBack) {
  contract::ApplySpec spec;
  spec.spec.kind = model::WorkloadKind::kSet;
  spec.spec.name = "web";
  spec.spec.replicas = 3;
  spec.spec.spec.type = model::WorkloadType::kContainer;
  spec.spec.spec.image = "nginx";
  contract::WorkloadView workload;
  workload.workload = "web-0";
  workload.exit_code = 3;
  contract::NodeView node;
  node.node = "n";
  node.total = {{"cpu", 4000}};
  const std::vector<std::pair<ClusterRequest, ClusterReply>> rows = {
      {contract::ApplyWorkload{.workload = "w", .revision = "r"}, contract::Applied{.revision = "r"}},
      {spec, contract::Applied{.result = contract::ApplyResult::kConfigured, .store_revision = 7}},
      {contract::ApplyQuota{.quota = {.tenant = "t", .workloads = 5}}, contract::Applied{}},
      {contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "web"}, contract::Done{.message = "gone"}},
      {contract::RetryWorkload{.workload = "w"}, contract::Done{}},
      {contract::ScaleSet{.set = "web", .replicas = 0}, contract::Done{}},
      {contract::RestartSet{.set = "web"}, contract::Done{}},
      {contract::CordonNode{.node = "n", .cordoned = false}, contract::Done{}},
      {contract::DrainNode{.node = "n", .grace = 5s, .instruction = "i"}, contract::Done{}},
      {contract::AcceptNode{.node = "n"}, contract::Done{}},
      {contract::ReportMachines{.machines = {{.resources = {{"cpu", 4000}}, .labels = {{"zone", "b"}}}},
                                .valid_for = 9s},
       contract::Done{}},
      {contract::ListNodes{.status = "Ready", .page = {.limit = 2, .token = "m"}},
       contract::NodesListed{.nodes = {node}, .next = "n", .revision = 9}},
      {contract::ListWorkloads{.selector = {{"a", model::Operator::kIn, {"b"}}}},
       contract::WorkloadsListed{.workloads = {workload}, .stale_since = WallTime(9s)}},
      {contract::GetNode{.node = "n"}, node},
      {contract::GetWorkload{.workload = "web-0"}, workload},
      {contract::ListSets{.name = "web"}, contract::SetsListed{.sets = {{.spec = spec.spec, .running = 2}}}},
      {contract::ListQuotas{}, contract::QuotasListed{.quotas = {{.quota = {.tenant = "t"}, .workloads = 1}}}},
      {contract::ListEvents{.workload = "w", .limit = 3},
       contract::EventsListed{.events = {{.id = "e"}}, .stale_since = WallTime(9s)}},
      {contract::GetSummary{}, contract::Summary{.total_nodes = 4, .leader = "h:1"}},
      {contract::ExplainWorkload{.workload = "w"},
       contract::Explanation{.workload = workload, .story = {"s"}, .nodes = {{.node = "n", .reason = "fit.cpu"}}}},
  };
  for (const auto& [request, reply] : rows) {
    served_.scheduler.WillAnswer(reply);
    EXPECT_EQ(Bytes(AskAndWait(*client_, request)), codec::ToBytes(reply)) << request.index();
    EXPECT_EQ(codec::ToBytes(*served_.scheduler.requests.Take()), codec::ToBytes(request)) << request.index();
  }
  served_.scheduler.WillAnswer(Error(Code::kResourceExhausted, "quota: 5 of 5 workloads"));
  EXPECT_EQ(AskAndWait(*client_, contract::GetSummary{}).error(),
            Status(Code::kResourceExhausted, "quota: 5 of 5 workloads"));
}

TEST_F(ClusterRpc, ABadRequestIsRefusedByItsFieldAndThePortDoesNotGetIt) {
  EXPECT_EQ(AskAndWait(*client_, contract::GetNode{}).error(),
            Status(Code::kInvalidArgument, "node: missing; name the node"));
  EXPECT_EQ(AskAndWait(*client_, contract::ApplySpec{}).error(),
            Status(Code::kInvalidArgument, "spec.name: missing; name the workload"));
  contract::ApplySpec bare;
  bare.spec.name = "w";
  EXPECT_EQ(AskAndWait(*client_, bare).error(),
            Status(Code::kInvalidArgument, "spec.spec.type: missing; use one of process, container, compose, vm"));
  pb::ApplyWorkloadRequest request;
  pb::ApplyWorkloadResponse reply;
  grpc::ClientContext context;
  const grpc::Status status = control_->ApplyWorkload(&context, request, &reply);
  EXPECT_EQ(FromGrpc(status), Status(Code::kInvalidArgument, "workload_id: missing; name the workload"));
  served_.scheduler.WillAnswer(contract::Summary{});
  AskAndWait(*client_, contract::GetSummary{});
  EXPECT_TRUE(std::holds_alternative<contract::GetSummary>(*served_.scheduler.requests.Take()));
}

TEST(ClusterClients, AskTheNextSchedulerOfTheListWhenOneIsUnavailable) {
  Served standby;
  Served leader;
  const auto client = *MakeClusterClient("127.0.0.1:1," + standby.address() + "," + leader.address());
  standby.scheduler.WillAnswer(Error(Code::kUnavailable, "another leads"));
  leader.scheduler.WillAnswer(contract::Done{.message = "done"});
  EXPECT_TRUE(AskAndWait(*client, contract::RetryWorkload{.workload = "w"}).has_value());
  // The one that answered is asked first from then on.
  leader.scheduler.WillAnswer(contract::Done{});
  EXPECT_TRUE(AskAndWait(*client, contract::RetryWorkload{.workload = "w"}).has_value());
  ASSERT_TRUE(standby.scheduler.requests.Take());
  standby.server.Stop();
  leader.server.Stop();
  EXPECT_EQ(AskAndWait(*client, contract::RetryWorkload{.workload = "w"}).error().code(), Code::kUnavailable);
}

TEST_F(ClusterRpc, AWatchBringsChangesAndSaysWhyItEnds) {
  Inbox<contract::ClusterChange> changes;
  Inbox<Status> ends;
  const auto watch = client_->Watch({.workloads = true, .decisions = true, .from = 5},
                                    {.changed = [&](contract::ClusterChange change) { changes.Put(std::move(change)); },
                                     .ended = [&](Status status) { ends.Put(std::move(status)); }});
  auto [what, sink] = *served_.scheduler.watches.Take();
  EXPECT_EQ(codec::Describe(what),
            codec::Describe(contract::WatchCluster{.workloads = true, .decisions = true, .from = 5}));
  contract::WorkloadView view;
  view.workload = "w";
  const contract::ClusterChange changed =
      contract::ObjectChanged{.kind = contract::ObjectKind::kWorkload, .name = "w", .revision = 6, .now = view};
  const contract::ClusterChange decided = contract::Decision{.kind = contract::DecisionKind::kRefused, .workload = "w"};
  EXPECT_TRUE(sink->Send(std::make_shared<const contract::ClusterChange>(changed)));
  EXPECT_TRUE(sink->Send(std::make_shared<const contract::ClusterChange>(decided)));
  EXPECT_EQ(codec::ToBytes(*changes.Take()), codec::ToBytes(changed));
  EXPECT_EQ(codec::ToBytes(*changes.Take()), codec::ToBytes(decided));
  sink->Close({Code::kOutOfRange, "list again"});
  EXPECT_EQ(ends.Take(), Status(Code::kOutOfRange, "list again"));
  EXPECT_FALSE(sink->Send(std::make_shared<const contract::ClusterChange>(decided)));
}

// As a role serves it, with what callers are lent.
struct Bounded {
  Bounded() { EXPECT_EQ(server.Start(std::vector<grpc::Service*>{&cluster, &control}), Status()); }

  ToldScheduler scheduler;
  OpenStreams streams{{}};
  CallBudgets budgets;
  std::shared_ptr<grpc::Service> inner_cluster = MakeClusterService(scheduler, scheduler, scheduler, scheduler);
  std::shared_ptr<grpc::Service> inner_control = MakeControlService(scheduler, scheduler, scheduler);
  BoundedService cluster{kClusterService, *inner_cluster, streams, budgets, [](const Refusal&) {}};
  BoundedService control{kControlService, *inner_control, streams, budgets, [](const Refusal&) {}};
  Server server{{.address = {.host = "127.0.0.1", .port = 0}, .stop_grace = 100ms}};
};

TEST(ClusterBounds, WhatWaitsOnAllWatchesOfACallerIsBounded) {
  Bounded served;
  const auto channel = *MakeChannel({.target = served.server.address().ToString()});
  const auto stub = v1::Cluster::NewStub(channel);
  v1::WatchRequest everything;
  everything.set_decisions(true);
  grpc::ClientContext context;
  const auto watch = stub->Watch(&context, everything);
  const auto sink = served.scheduler.watches.Take()->second;
  grpc::ClientContext other_context;
  const auto other = stub->Watch(&other_context, everything);
  const auto other_sink = served.scheduler.watches.Take()->second;
  const auto change = std::make_shared<const contract::ClusterChange>(contract::Decision{
      .kind = contract::DecisionKind::kRefused, .workload = "w", .message = std::string(1 << 20, 'x')});
  constexpr int kFit = 60;  // of 64
  for (int i = 0; i < kFit; ++i) ASSERT_TRUE(sink->Send(change)) << i;
  int taken = 0;
  while (taken < kFit && other_sink->Send(change)) ++taken;
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 6);
  v1::WatchEvent event;
  while (other->Read(&event)) {
  }
  const Status end = FromGrpc(other->Finish());
  EXPECT_EQ(end.code(), Code::kResourceExhausted);
  EXPECT_TRUE(end.message().ends_with("of them of \"local\", and no more are allowed; read faster, and begin again"))
      << end.ToString();
  for (int i = 0; i < kFit; ++i) ASSERT_TRUE(watch->Read(&event));
  for (int i = 0; i < kFit; ++i) {  // room again
    ASSERT_TRUE(sink->Send(change));
    ASSERT_TRUE(watch->Read(&event));
  }
  context.TryCancel();
}

TEST_F(ClusterRpc, AWatchThatIsDestroyedLetsTheSchedulerKnow) {
  auto watch = client_->Watch({.nodes = true}, {.changed = [](auto) {}, .ended = [](auto) { FAIL(); }});
  auto [what, sink] = *served_.scheduler.watches.Take();
  watch.reset();
  const auto decided = std::make_shared<const contract::ClusterChange>(contract::Decision{});
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (sink->Send(decided) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_FALSE(sink->Send(decided));
}

TEST_F(ClusterRpc, LogsPassThrough) {
  Inbox<contract::LogChunk> chunks;
  Inbox<Status> ends;
  const auto reading = client_->Logs({.workload = "w"}, {.chunk = [&](contract::LogChunk chunk) { chunks.Put(chunk); },
                                                         .ended = [&](Status status) { ends.Put(status); }});
  EXPECT_EQ(chunks.Take(),
            (contract::LogChunk{.stream = contract::LogStream::kStderr, .data = "w\n", .at = WallTime(7s)}));
  EXPECT_EQ(ends.Take(), Status());
}

// --- nodes

class Node final : public JoinHandler {
 public:
  contract::RegisterNode Registration() override {
    contract::RegisterNode request;
    request.facts.node = "n";
    request.facts.endpoint = "127.0.0.1:1";
    request.facts.total = {{"cpu", 1000}};
    request.epoch = 3;
    return request;
  }
  void Joined(const std::string& /*scheduler*/, contract::NodeRegistered registered) override {
    joined.Put(std::move(registered));
  }
  void Acked(contract::HeartbeatAck ack) override { acks.Put(ack); }
  void Left(const std::string& /*scheduler*/, Status why) override { left.Put(std::move(why)); }

  Inbox<contract::NodeRegistered> joined;
  Inbox<contract::HeartbeatAck> acks;
  Inbox<Status> left;
};

TEST_F(ClusterRpc, ANodeJoinsBeatsAndJoinsAgainWhenItIsNotKnown) {
  contract::NodeRegistered registered{.accepted = true, .heartbeat_interval = 1s};
  registered.state.epoch = 4;
  registered.state.workloads.push_back({.workload = "w", .stamp = {.epoch = 4, .sequence = 2}});
  served_.scheduler.WillAnswer(registered);
  served_.scheduler.WillAnswer(contract::HeartbeatAck{.drain_node = true});
  served_.scheduler.WillAnswer(Error(Code::kNotFound, "register"));
  registered.state.epoch = 5;
  served_.scheduler.WillAnswer(registered);
  Node node;
  const auto client = *MakeJoinClient(served_.address(), node);

  const auto first = node.joined.Take();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->state.epoch, 4);
  EXPECT_EQ(first->state.workloads.front().stamp.sequence, 2);
  const auto request = std::get<contract::RegisterNode>(*served_.scheduler.requests.Take());
  EXPECT_TRUE(request.facts.native);
  EXPECT_EQ(request.facts.total.Get("cpu"), 1000);
  EXPECT_EQ(request.epoch, 3);

  client->Beat({.node = "n", .epoch = 4});
  EXPECT_TRUE(node.acks.Take()->drain_node);
  EXPECT_EQ(std::get<contract::Heartbeat>(*served_.scheduler.requests.Take()).epoch, 4);

  client->Beat({.node = "n", .epoch = 4});
  EXPECT_EQ(node.left.Take()->code(), Code::kNotFound);
  EXPECT_EQ(node.joined.Take()->state.epoch, 5);
}

TEST_F(ClusterRpc, AHeartbeatOfAnotherNodeEndsTheStream) {
  served_.scheduler.WillAnswer(contract::NodeRegistered{.accepted = true});
  Node node;
  const auto client = *MakeJoinClient(served_.address(), node);
  ASSERT_TRUE(node.joined.Take());
  client->Beat({.node = "other"});
  EXPECT_EQ(node.left.Take(),
            Status(Code::kInvalidArgument, R"(heartbeat.node: "other" is not the node that joined, "n")"));
}

v1::JoinMessage Joins() {
  v1::JoinMessage message;
  ToWire(Node().Registration(), *message.mutable_join());
  return message;
}
v1::JoinMessage Beats() {
  v1::JoinMessage message;
  message.mutable_heartbeat()->set_node("n");
  return message;
}

TEST_F(ClusterRpc, ANodeThatDoesNotReadItsAnswersIsDropped) {
  served_.scheduler.WillAnswer(contract::NodeRegistered{.accepted = true});
  served_.scheduler.acks_every_beat = true;
  const auto stub = v1::Cluster::NewStub(channel_);
  grpc::ClientContext context;
  SetDeadline(context, 3 * kPatience);
  const auto stream = stub->Join(&context);
  ASSERT_TRUE(stream->Write(Joins()));
  v1::JoinReply reply;
  ASSERT_TRUE(stream->Read(&reply)) << stream->Finish().error_message();
  std::jthread sends([&](const std::stop_token& stop) {
    const v1::JoinMessage beat = Beats();
    while (!stop.stop_requested() && stream->Write(beat)) {
    }
  });
  // It stands still while a thousand other calls are answered, a second at least: a busy machine stops those too.
  v1::GetNodeRequest question;
  question.set_node("n");
  for (int seen = -1; seen != served_.scheduler.beats_taken();) {
    seen = served_.scheduler.beats_taken();
    const auto end = std::chrono::steady_clock::now() + 1s;
    for (int others = 0; others < 1'000 || std::chrono::steady_clock::now() < end; ++others) {
      grpc::ClientContext other;
      v1::NodeView node;
      EXPECT_EQ(FromGrpc(stub->GetNode(&other, question, &node)).code(), Code::kInternal) << "nothing was told";
    }
  }
  int read = 0;
  while (stream->Read(&reply)) ++read;
  EXPECT_LT(read, served_.scheduler.beats_taken());
  sends.join();
  EXPECT_EQ(FromGrpc(stream->Finish()),
            Status(Code::kResourceExhausted, "too many answers wait to be read; read them, and join again"));
}

TEST_F(ClusterRpc, AMessageOfANodeIsReadWhenTheOneBeforeItIsAnswered) {
  constexpr int kBeats = 20;
  served_.scheduler.answers_later = true;
  const auto stub = v1::Cluster::NewStub(channel_);
  grpc::ClientContext context;
  const auto stream = stub->Join(&context);
  ASSERT_TRUE(stream->Write(Joins()));
  served_.scheduler.AnswerOne(contract::NodeRegistered{.accepted = true});
  for (int i = 0; i < kBeats; ++i) ASSERT_TRUE(stream->Write(Beats()));
  v1::JoinReply reply;
  EXPECT_TRUE(stream->Read(&reply));
  for (int i = 0; i < kBeats; ++i) {
    served_.scheduler.AnswerOne(contract::HeartbeatAck{});
    EXPECT_TRUE(stream->Read(&reply));
  }
  EXPECT_EQ(served_.scheduler.most_kept(), 1u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ClusterRpc, AMessageOfAControlStreamIsReadWhenTheOneBeforeItIsAnswered) {
  constexpr int kBeats = 20;
  served_.scheduler.answers_later = true;
  grpc::ClientContext context;
  const auto stream = control_->ControlStream(&context);
  pb::ControlMessage message;
  message.mutable_heartbeat()->set_node_id("n");
  for (int i = 0; i < kBeats; ++i) ASSERT_TRUE(stream->Write(message));
  for (int i = 0; i < kBeats; ++i) {
    served_.scheduler.AnswerOne(contract::HeartbeatAck{});
    EXPECT_TRUE(served_.scheduler.beats.Take());
  }
  EXPECT_EQ(served_.scheduler.most_kept(), 1u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ClusterRpc, AControlStreamRegistersBeatsAndBringsCommands) {
  served_.scheduler.WillAnswer(contract::NodeRegistered{.accepted = true});
  served_.scheduler.WillAnswer(contract::HeartbeatAck{});
  grpc::ClientContext context;
  const auto stream = control_->ControlStream(&context);
  pb::ControlMessage message;
  message.mutable_register_()->set_node_id("n");
  message.mutable_register_()->set_grpc_endpoint("10.255.255.1:50051");
  ASSERT_TRUE(stream->Write(message));
  const auto opened = served_.scheduler.streams.Take();
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->first, "n");
  EXPECT_FALSE(std::get<contract::RegisterNode>(*served_.scheduler.requests.Take()).facts.native);

  message.Clear();
  message.mutable_heartbeat()->set_node_id("n");
  message.mutable_heartbeat()->add_workload_statuses()->set_workload_id("w");
  message.mutable_heartbeat()->mutable_workload_statuses(0)->set_state("RUNNING");
  ASSERT_TRUE(stream->Write(message));
  const auto statuses = served_.scheduler.beats.Take();
  ASSERT_EQ(statuses->size(), 1);
  EXPECT_EQ(statuses->front().actual, contract::ActualState::kRunning);

  contract::ApplyOnAgent apply;
  apply.workload = "w";
  apply.spec.type = model::WorkloadType::kContainer;
  EXPECT_TRUE(opened->second->Send(apply));
  EXPECT_TRUE(opened->second->Send(contract::DeleteOnAgent{.workload = "v"}));
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.apply().workload_id(), "w");
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.delete_().workload_id(), "v");

  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(served_.scheduler.closed.Take(), 7);
  EXPECT_FALSE(opened->second->Send(apply));
}

TEST_F(ClusterRpc, AControlStreamOfANodeThatIsNotAcceptedEnds) {
  served_.scheduler.WillAnswer(contract::NodeRegistered{.accepted = false, .reason = "cpu: nothing"});
  grpc::ClientContext context;
  const auto stream = control_->ControlStream(&context);
  pb::ControlMessage message;
  message.mutable_register_()->set_node_id("n");
  message.mutable_register_()->set_grpc_endpoint("h:1");
  ASSERT_TRUE(stream->Write(message));
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(FromGrpc(stream->Finish()), Status(Code::kFailedPrecondition, "cpu: nothing"));
}

// --- under TLS

TEST(ClusterTls, ANodeSpeaksForItselfByItsUriOrWhereAllowedByItsDnsName) {
  const host::TempDir dir;
  CertificateAuthorityForTest ca;
  const TlsFiles own = ca.Write(dir.path(), "scheduler", ca.Sign("URI:muster://scheduler/c,IP:127.0.0.1"));
  const TlsFiles native = ca.Write(dir.path(), "native", ca.Sign("URI:muster://node/c/n1"));
  const TlsFiles foreign = ca.Write(dir.path(), "foreign", ca.Sign("DNS:n2"));
  ToldScheduler scheduler;
  const auto control = MakeControlService(scheduler, scheduler, scheduler);
  Server server({.address = {.host = "127.0.0.1", .port = 0},
                 .tls = own,
                 .foreign_nodes = ForeignNodes::kAllowed,
                 .stop_grace = 100ms});
  ASSERT_EQ(server.Start(std::vector{control.get()}), Status());
  const auto beat = [&](const TlsFiles& files, const std::string& node) {
    const auto channel = *MakeChannel({.target = server.address().ToString(), .tls = files, .own_connection = true});
    pb::HeartbeatRequest request;
    request.set_node_id(node);
    pb::HeartbeatResponse reply;
    grpc::ClientContext context;
    return FromGrpc(pb::AgentControl::NewStub(channel)->Heartbeat(&context, request, &reply)).code();
  };
  scheduler.WillAnswer(contract::HeartbeatAck{});
  EXPECT_EQ(beat(native, "n1"), Code::kOk);
  EXPECT_EQ(beat(native, "n2"), Code::kPermissionDenied);
  scheduler.WillAnswer(contract::HeartbeatAck{});
  EXPECT_EQ(beat(foreign, "n2"), Code::kOk);
  EXPECT_EQ(beat(foreign, "n1"), Code::kPermissionDenied);
}

TEST(ClusterTls, ATenantAsksForChangesInItsOwnName) {
  const host::TempDir dir;
  CertificateAuthorityForTest ca;
  const TlsFiles own = ca.Write(dir.path(), "scheduler", ca.Sign("URI:muster://scheduler/c,IP:127.0.0.1"));
  const TlsFiles tenant = ca.Write(dir.path(), "tenant", ca.Sign("URI:muster://tenant/shop"));
  const TlsFiles admin = ca.Write(dir.path(), "admin", ca.Sign("URI:bigfleet://admin"));
  ToldScheduler scheduler;
  const auto cluster = MakeClusterService(scheduler, scheduler, scheduler, scheduler);
  Server server({.address = {.host = "127.0.0.1", .port = 0}, .tls = own, .stop_grace = 100ms});
  ASSERT_EQ(server.Start(std::vector{cluster.get()}), Status());
  const auto ask = [&](const TlsFiles& files, ClusterRequest request) {
    const auto client = *MakeClusterClient(server.address().ToString(), files);
    std::promise<Status> answer;
    client->Ask(std::move(request),
                [&](const Result<ClusterReply>& reply) { answer.set_value(reply ? Status() : reply.error()); });
    return answer.get_future().get();
  };
  const contract::DeleteObject remove{.kind = contract::ObjectKind::kWorkload, .name = "web"};
  scheduler.WillAnswer(contract::Done{});
  EXPECT_EQ(ask(tenant, remove), Status());
  EXPECT_EQ(scheduler.tenants.Take(), "shop");
  // Others, and what a tenant may read, ask in nobody's name; a later answer would be the first to be seen.
  scheduler.WillAnswer(contract::Done{});
  EXPECT_EQ(ask(admin, remove), Status());
  scheduler.WillAnswer(contract::NodesListed{});
  EXPECT_EQ(ask(tenant, contract::ListNodes{}), Status());
  EXPECT_EQ(ask(tenant, contract::CordonNode{.node = "n1"}).code(), Code::kPermissionDenied);
  scheduler.WillAnswer(contract::Done{});
  EXPECT_EQ(ask(tenant, contract::ScaleSet{.set = "web", .replicas = 2}), Status());
  EXPECT_EQ(scheduler.tenants.Take(), "shop");
}

// --- clients of persys

TEST_F(ClusterRpc, ListsOfPersysArePutTogetherFromPages) {
  contract::NodeView a;
  a.node = "a";
  contract::NodeView b;
  b.node = "b";
  served_.scheduler.WillAnswer(contract::NodesListed{.nodes = {a}, .next = "a"});
  served_.scheduler.WillAnswer(contract::NodesListed{.nodes = {b}});
  pb::ListNodesResponse reply;
  grpc::ClientContext context;
  ASSERT_TRUE(control_->ListNodes(&context, {}, &reply).ok());
  ASSERT_EQ(reply.nodes_size(), 2);
  EXPECT_EQ(reply.nodes(1).node_id(), "b");
  ASSERT_TRUE(served_.scheduler.requests.Take());
  EXPECT_EQ(std::get<contract::ListNodes>(*served_.scheduler.requests.Take()).page.token, "a");
}

TEST(ClusterBounds, ListsOfPersysWaitForTheirTurn) {
  Bounded served;
  served.scheduler.answers_later = true;
  const auto channel = *MakeChannel({.target = served.server.address().ToString()});
  const auto stub = pb::AgentControl::NewStub(channel);
  struct List {
    grpc::ClientContext context;
    pb::ListWorkloadsRequest request;
    pb::ListWorkloadsResponse reply;
  };
  std::vector<std::unique_ptr<List>> lists;
  Inbox<Status> ends;
  for (size_t i = 0; i <= ListTurns::kOfCaller; ++i) {
    List& list = *lists.emplace_back(std::make_unique<List>());
    stub->async()->ListWorkloads(&list.context, &list.request, &list.reply,
                                 [&](const grpc::Status& status) { ends.Put(FromGrpc(status)); });
  }
  EXPECT_EQ(ends.Take(),
            Status(Code::kResourceExhausted,
                   "\"local\" has 16 lists of the whole cluster under way, and no more are allowed; wait for "
                   "those"));
  for (size_t i = 0; i < ListTurns::kOfCaller; ++i) {
    served.scheduler.AnswerOne(contract::WorkloadsListed());
  }
  for (size_t i = 0; i < ListTurns::kOfCaller; ++i) EXPECT_EQ(ends.Take(), Status());
  EXPECT_EQ(served.scheduler.most_kept(), ListTurns::kAtOnce);
}

TEST(ClusterBounds, AListOfPersysTakesFromTheBudgetWhileItGrows) {
  Bounded served;
  served.scheduler.answers_later = true;
  const auto channel = *MakeChannel({.target = served.server.address().ToString()});
  const auto stub = pb::AgentControl::NewStub(channel);
  const auto other = served.budgets.answers.Take("local", 60 << 20);  // of 64 MiB
  grpc::ClientContext context;
  const pb::ListWorkloadsRequest request;
  pb::ListWorkloadsResponse reply;
  std::promise<Status> ended;
  stub->async()->ListWorkloads(&context, &request, &reply,
                               [&](const grpc::Status& status) { ended.set_value(FromGrpc(status)); });
  contract::WorkloadView row;
  row.phase = model::WorkloadPhase::kRunning;
  row.message = std::string(3 << 19, 'x');  // in the answer, and once more as bytes
  served.scheduler.AnswerOne(contract::WorkloadsListed{.workloads = {row}, .next = "w"});
  served.scheduler.AnswerOne(contract::WorkloadsListed{.workloads = {row}, .next = "x"});
  EXPECT_EQ(ended.get_future().get().code(), Code::kResourceExhausted) << "no third page is asked for";
}

class Suggestions : public ClusterRpc {
 protected:
  pb::SubmitAutomationSuggestionResponse Submit(pb::AutomationActionType action, int replicas = 0, int delta = 0) {
    pb::SubmitAutomationSuggestionRequest request;
    request.mutable_suggestion()->set_target_workload("w");
    request.mutable_suggestion()->set_action_type(action);
    request.mutable_suggestion()->set_desired_replicas(replicas);
    request.mutable_suggestion()->set_replica_delta(delta);
    pb::SubmitAutomationSuggestionResponse reply;
    grpc::ClientContext context;
    status_ = FromGrpc(control_->SubmitAutomationSuggestion(&context, request, &reply));
    return reply;
  }
  Status status_;
};

TEST_F(Suggestions, AreCarriedOutOrRejectedWithTheReason) {
  served_.scheduler.WillAnswer(contract::Done{});
  EXPECT_TRUE(Submit(pb::AUTOMATION_ACTION_RETRY_WORKLOAD).accepted());
  served_.scheduler.WillAnswer(Error(Code::kNotFound, "no workload w"));
  const auto rejected = Submit(pb::AUTOMATION_ACTION_DELETE_WORKLOAD);
  EXPECT_FALSE(rejected.accepted());
  EXPECT_EQ(rejected.decision(), "rejected");
  EXPECT_EQ(rejected.reason(), "no workload w");
  EXPECT_TRUE(status_.ok());
  served_.scheduler.WillAnswer(Error(Code::kUnavailable, "another leads"));
  Submit(pb::AUTOMATION_ACTION_SET_DESIRED_STATE);
  EXPECT_EQ(status_.code(), Code::kUnavailable);
  Submit(pb::AUTOMATION_ACTION_TYPE_UNSPECIFIED);
  EXPECT_EQ(status_, Status(Code::kInvalidArgument, "suggestion.action_type: 0 is no action; use 1 to 4"));
}

// Such a call may have ended, and be gone, before the one who makes it goes on.
TEST(AgentLogs, OfAnAgentThatIsNotThereEndEachTime) {
  class Sink final : public contract::LogsSink {
   public:
    bool Write(contract::LogChunk /*chunk*/) override { return true; }
    bool Gone() const override { return false; }
    void OnGone(std::function<void()> gone) override { gone_ = std::move(gone); }
    void End(Status status) override { ended.set_value(std::move(status)); }
    std::promise<Status> ended;

   private:
    std::function<void()> gone_;
  };
  const auto client = *MakeAgentClient();
  for (int i = 0; i < 500; ++i) {
    const auto sink = std::make_shared<Sink>();
    auto ended = sink->ended.get_future();
    client->ReadLogs({"127.0.0.1:1"}, {.workload = "w"}, sink);
    ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(ended.get().code(), Code::kUnavailable);
  }
}

TEST_F(Suggestions, ReplicasAreThoseOfASet) {
  served_.scheduler.WillAnswer(contract::SetsListed{});
  EXPECT_EQ(Submit(pb::AUTOMATION_ACTION_SCALE_REPLICAS, 3).reason(), "\"w\" is no set: only a set has replicas");
  contract::SetView set;
  set.spec.replicas = 4;
  served_.scheduler.WillAnswer(contract::SetsListed{.sets = {set}});
  served_.scheduler.WillAnswer(contract::Done{});
  EXPECT_TRUE(Submit(pb::AUTOMATION_ACTION_SCALE_REPLICAS, 0, -1).accepted());
  ASSERT_TRUE(served_.scheduler.requests.Take());
  ASSERT_TRUE(served_.scheduler.requests.Take());
  EXPECT_EQ(std::get<contract::ScaleSet>(*served_.scheduler.requests.Take()).replicas, 3);
}

}  // namespace
}  // namespace muster::rpc
