// Sessions over real sockets: the service in front of a shard that keeps what it hears, against our client and against
// the wire's own, which may break every rule.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/rng.h"
#include "bigfleet/v1alpha1/shard.grpc.pb.h"
#include "host/temp_dir_for_test.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/server.h"
#include "rpc/session_client.h"
#include "rpc/session_conversion.h"
#include "rpc/shard_services.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using contract::SessionId;

constexpr Duration kPatience = 30s;

contract::Acknowledgement Ack(int64_t number, std::string echo = "rollup") {
  return {.echo = std::move(echo), .coordinator_term = number};
}
contract::Hello HelloOf(const std::string& cluster) {
  return {.cluster_id = cluster, .protocol_version = std::string(contract::kProtocolVersion)};
}
contract::Rollup RollupOf(const std::string& cluster, int64_t number, size_t rows = 1) {
  model::Need need = FullNeed();
  need.cluster = cluster;
  return {.cluster_id = cluster,
          .timestamp = WallTime(Duration(number)),
          .rows = contract::NeedRows(std::vector<model::Need>(rows, need))};
}
contract::BootstrapResponse Blob(const std::string& id) { return {.request_id = id, .user_data = "blob"}; }

// Keeps what it hears, and notes every breach of the port's rules.
class KeptShard final : public contract::SessionPort {
 public:
  struct Session {
    contract::Hello hello;
    std::shared_ptr<contract::SessionSink> sink;
    std::vector<contract::OperatorMessage> messages;
    std::vector<Status> refusals;
    bool closed = false;
  };

  // Called inside Open, with the sink.
  std::function<void(contract::SessionSink&)> on_open = [](contract::SessionSink& sink) { sink.Send(Ack(0, "hello")); };
  // What is received is not looked at before LookAtAll.
  std::atomic<bool> looks_later = false;
  // Keeps roll-ups of these clusters from being taken, and with them the threads that read roll-ups.
  std::set<std::string> stuck;

  SessionId Open(contract::Hello hello, std::shared_ptr<contract::SessionSink> sink) override {
    SessionId id = 0;
    {
      const std::lock_guard lock(mu_);
      id = ++last_;
      sessions_[id] = {.hello = std::move(hello), .sink = sink, .messages = {}, .refusals = {}};
      changed_.notify_all();
    }
    on_open(*sink);
    return id;
  }
  void Receive(SessionId session, contract::OperatorMessage message, std::shared_ptr<void> until_taken) override {
    std::unique_lock lock(mu_);
    if (looks_later) {
      untaken_.push_back(std::move(until_taken));
      most_untaken_ = std::max(most_untaken_, untaken_.size());
    }
    const auto* rollup = std::get_if<contract::Rollup>(&message);
    if (rollup != nullptr && stuck.contains(rollup->cluster_id)) {
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return freed_; });
    }
    if (Session* open = Known(session, "Receive")) open->messages.push_back(std::move(message));
    changed_.notify_all();
  }
  void RefuseRollup(SessionId session, Status why, std::shared_ptr<void> until_taken) override {
    const std::lock_guard lock(mu_);
    if (looks_later) untaken_.push_back(std::move(until_taken));
    if (Session* open = Known(session, "RefuseRollup")) open->refusals.push_back(std::move(why));
    changed_.notify_all();
  }
  void Closed(SessionId session) override {
    const std::lock_guard lock(mu_);
    if (Session* open = Known(session, "Closed")) open->closed = true;
    changed_.notify_all();
  }

  void LookAtAll() {
    std::vector<std::shared_ptr<void>> taken;
    const std::lock_guard lock(mu_);
    taken.swap(untaken_);
  }
  size_t most_untaken() {
    const std::lock_guard lock(mu_);
    return most_untaken_;
  }
  void Free() {
    const std::lock_guard lock(mu_);
    freed_ = true;
    changed_.notify_all();
  }
  // Waits until `holds(sessions, stuck calls)`, and says whether it came to that.
  template <class Condition>
  bool Wait(const Condition& holds) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [&] { return holds(sessions_, waiting_); });
  }
  bool WaitFor(SessionId id, const std::function<bool(const Session&)>& holds) {
    return Wait([&](const auto& sessions, int) { return sessions.contains(id) && holds(sessions.at(id)); });
  }
  bool WaitForClosed(SessionId id) {
    return WaitFor(id, [](const Session& session) { return session.closed; });
  }
  Session session(SessionId id) {
    const std::lock_guard lock(mu_);
    return sessions_[id];
  }
  std::map<SessionId, Session> sessions() {
    const std::lock_guard lock(mu_);
    return sessions_;
  }
  std::vector<std::string> breaches() {
    const std::lock_guard lock(mu_);
    return breaches_;
  }
  void ForgetSinks() {
    const std::lock_guard lock(mu_);
    for (auto& [id, session] : sessions_) session.sink.reset();
  }

 private:
  Session* Known(SessionId id, const char* call) {
    const auto found = sessions_.find(id);
    if (found != sessions_.end() && !found->second.closed) return &found->second;
    breaches_.push_back(fmt::format("{} of session {}", call, id));
    return nullptr;
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<void>> untaken_;
  size_t most_untaken_ = 0;
  std::map<SessionId, Session> sessions_;
  std::vector<std::string> breaches_;
  SessionId last_ = 0;
  int waiting_ = 0;
  bool freed_ = false;
};

// Keeps what it hears.
class KeptCluster final : public SessionHandler {
 public:
  void Received(contract::ShardMessage message) override {
    const std::lock_guard lock(mu_);
    EXPECT_FALSE(ended_.has_value());
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }
  void Unreadable(Status why) override {
    const std::lock_guard lock(mu_);
    unreadable_.push_back(std::move(why));
    changed_.notify_all();
  }
  void Ended(Status status) override {
    const std::lock_guard lock(mu_);
    EXPECT_FALSE(ended_.has_value()) << "ended twice";
    ended_ = std::move(status);
    changed_.notify_all();
  }

  bool WaitForMessages(size_t count) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [&] { return messages_.size() >= count; });
  }
  std::optional<Status> WaitForEnd() {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, kPatience, [&] { return ended_.has_value(); });
    return ended_;
  }
  std::vector<contract::ShardMessage> messages() {
    const std::lock_guard lock(mu_);
    return messages_;
  }
  std::vector<Status> unreadable() {
    const std::lock_guard lock(mu_);
    return unreadable_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<contract::ShardMessage> messages_;
  std::vector<Status> unreadable_;
  std::optional<Status> ended_;
};

// The wire's own client: says what it is told, and reads only when it is told to.
class RawCluster {
 public:
  explicit RawCluster(const std::string& target)
      : stub_(pb::Shard::NewStub(*MakeChannel({.target = target, .max_message_bytes = kLargeMessageBytes}))) {
    SetDeadline(context_, 2 * kPatience);
    stream_ = stub_->Session(&context_);
  }
  ~RawCluster() {
    if (stream_) Cancel();
  }
  RawCluster(const RawCluster&) = delete;
  RawCluster& operator=(const RawCluster&) = delete;

  void Say(const contract::OperatorMessage& message) {
    pb::OperatorMessage wire;
    ToWire(message, wire);
    Say(wire);
  }
  void Say(const pb::OperatorMessage& wire) { stream_->Write(wire); }
  void SayNoMore() { stream_->WritesDone(); }
  std::optional<pb::ShardMessage> Read() {
    pb::ShardMessage message;
    if (!stream_->Read(&message)) return std::nullopt;
    return message;
  }
  void Cancel() {
    context_.TryCancel();
    [[maybe_unused]] const Status status = End();  // the shard may have been quicker
  }
  // What the shard ended it with, once all was read.
  Status End() {
    while (Read()) {
    }
    const Status status = FromGrpc(stream_->Finish());
    stream_.reset();
    return status;
  }

 private:
  const std::unique_ptr<pb::Shard::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::OperatorMessage, pb::ShardMessage>> stream_;
};

class SessionRpc : public testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void TearDown() override {
    shard_.Free();
    server_.reset();
    service_.reset();
    EXPECT_EQ(shard_.breaches(), std::vector<std::string>());
    for (const auto& [id, session] : shard_.sessions()) EXPECT_TRUE(session.closed) << id;
  }

  void Start(const TlsFiles& tls) {
    server_.reset();
    service_ = MakeSessionService(shard_, {.identity_rejected = [this] { ++rejected_; },
                                           .rollup_decoded =
                                               [this](Duration took) {
                                                 EXPECT_GT(took, 0s);
                                                 ++decoded_;
                                               },
                                           .rollup_replaced = [this] { ++replaced_; }});
    server_ = std::make_unique<Server>(ServerOptions{.address = {"127.0.0.1", 0},
                                                     .tls = tls,
                                                     .max_message_bytes = kLargeMessageBytes,
                                                     .max_request_bytes = kSessionMessageBytes,
                                                     .stop_grace = 0s});
    const std::array<grpc::Service*, 1> services = {service_.get()};
    ASSERT_EQ(server_->Start(services), Status());
  }
  std::string target() const { return server_->address().ToString(); }

  std::unique_ptr<SessionClient> Open(const std::string& cluster, SessionHandler& handler, const TlsFiles& tls = {}) {
    auto client = OpenSession(target(), HelloOf(cluster), handler, tls);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }

  KeptShard shard_;
  std::atomic<int> rejected_ = 0;
  std::atomic<int> decoded_ = 0;
  std::atomic<int> replaced_ = 0;
  std::shared_ptr<grpc::Service> service_;
  std::unique_ptr<Server> server_;
};

TEST_F(SessionRpc, AConversationGoesInOrderBothWays) {
  KeptCluster cluster;
  const auto client = Open("blue", cluster);
  ASSERT_TRUE(cluster.WaitForMessages(1));
  const auto sink = shard_.session(1).sink;
  EXPECT_EQ(shard_.session(1).hello, HelloOf("blue"));
  const std::vector<contract::ShardMessage> said = {
      Ack(0, "hello"), contract::BootstrapRequest{.request_id = "r", .requirements = {}, .cluster_id = "blue"},
      contract::ReclaimInstruction{.instruction_id = "i", .nodes = {"m"}, .grace_period_seconds = 5},
      contract::NodeStateUpdate{
          .supersedes_key = "node:m", .machine_id = "m", .state = model::MachineState::kConfigured},
      contract::AvailableCapacity{.supersedes_key = "available:f", .confidence = contract::Confidence::kHigh}};
  for (size_t i = 1; i < said.size(); ++i) sink->Send(said[i]);
  ASSERT_TRUE(cluster.WaitForMessages(said.size()));
  EXPECT_EQ(cluster.messages(), said);

  const contract::ReclaimAck ack{.instruction_id = "i", .nodes_started = 1};
  client->Send(Blob("r"));
  client->Send(ack);
  client->Send(Blob("s"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.messages.size() == 3; }));
  client->Send(RollupOf("blue", 7));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.messages.size() == 4; }));
  EXPECT_EQ(shard_.session(1).messages,
            (std::vector<contract::OperatorMessage>{Blob("r"), ack, Blob("s"), RollupOf("blue", 7)}));
  EXPECT_EQ(decoded_, 1);

  client->Close();
  EXPECT_EQ(cluster.WaitForEnd(), Status());
  EXPECT_TRUE(shard_.WaitForClosed(1));
}

TEST_F(SessionRpc, HelloComesFirst) {
  const Status missing(Code::kInvalidArgument, "hello: missing; it must be the first message");
  const auto end = [&](const std::vector<contract::OperatorMessage>& messages) {
    RawCluster cluster(target());
    for (const auto& message : messages) cluster.Say(message);
    return cluster.End();
  };
  EXPECT_EQ(end({RollupOf("blue", 1)}), missing);
  EXPECT_EQ(end({Blob("r")}), missing);
  {
    RawCluster cluster(target());
    cluster.Say(pb::OperatorMessage());
    EXPECT_EQ(cluster.End(), missing);
  }
  {
    RawCluster cluster(target());
    cluster.SayNoMore();
    EXPECT_EQ(cluster.End(), missing);
  }
  EXPECT_EQ(end({contract::Hello{}}),
            Status(Code::kInvalidArgument, "hello.cluster_id: missing; say which cluster this is"));
  EXPECT_TRUE(shard_.sessions().empty());
}

TEST_F(SessionRpc, HelloMayBeSaidAgain) {
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  cluster.Say(HelloOf("red"));
  cluster.Say(contract::Hello{});
  cluster.Say(HelloOf("blue"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return !session.messages.empty(); }));
  const auto messages = shard_.session(1).messages;
  ASSERT_EQ(messages.size(), 1u) << "as another cluster it is ignored";
  EXPECT_EQ(messages.front(), contract::OperatorMessage(HelloOf("blue")));
  EXPECT_EQ(shard_.sessions().size(), 1u);
  EXPECT_FALSE(shard_.session(1).closed);
}

TEST_F(SessionRpc, AMessageThatBreaksTheProtocolEndsTheSessionByName) {
  const auto end = [&](const auto& message) {
    RawCluster cluster(target());
    cluster.Say(HelloOf("blue"));
    cluster.Say(message);
    return cluster.End();
  };
  EXPECT_EQ(end(contract::OperatorMessage(contract::BootstrapResponse{.request_id = "r", .ttl = -1s})),
            Status(Code::kInvalidArgument, "bootstrap_response.ttl_seconds: -1 is negative; use zero or more"));
  EXPECT_EQ(end(contract::OperatorMessage(contract::ReclaimAck{})),
            Status(Code::kInvalidArgument, "reclaim_ack.instruction_id: missing; repeat that of the instruction"));
  pb::OperatorMessage no_text;
  no_text.mutable_reclaim_ack()->set_instruction_id("\xff");
  EXPECT_EQ(end(no_text),
            Status(Code::kInvalidArgument, "payload: cannot be parsed; send an OperatorMessage, with texts in UTF-8"));
}

TEST_F(SessionRpc, AFrameWithoutPayloadIsSkipped) {
  std::atomic<int> warnings = 0;
  log::SetSink([&](log::Level, std::string_view, std::span<const log::KeyValue>) { ++warnings; });
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  cluster.Say(pb::OperatorMessage());
  cluster.Say(pb::OperatorMessage());
  cluster.Say(Blob("r"));
  EXPECT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.messages.size() == 1; }));
  log::SetSink({});
  EXPECT_EQ(warnings, 1);
}

TEST_F(SessionRpc, ABadRollupIsRefusedByFieldAndTheSessionGoesOn) {
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  pb::OperatorMessage bad;
  ToWire(RollupOf("blue", 1, 20), bad);
  (*bad.mutable_rollup()->mutable_needs(17)->mutable_min_unit())["cpu"] = "-1";
  cluster.Say(bad);
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.refusals.size() == 1; }));
  bad.mutable_rollup()->set_cluster_id("\xff");
  cluster.Say(bad);
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.refusals.size() == 2; }));
  cluster.Say(RollupOf("blue", 2));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.messages.size() == 1; }));
  const KeptShard::Session session = shard_.session(1);
  EXPECT_EQ(session.refusals[0],
            Status(Code::kInvalidArgument,
                   "needs[17].min_unit.cpu: -1 is negative; an amount of a resource is zero or more"));
  EXPECT_EQ(session.refusals[1],
            Status(Code::kInvalidArgument, "payload: cannot be parsed; send an OperatorMessage, with texts in UTF-8"));
  EXPECT_EQ(session.messages[0], contract::OperatorMessage(RollupOf("blue", 2)));
  EXPECT_FALSE(session.closed);
}

TEST_F(SessionRpc, ARollupWaitsUntilTheOneThatCouldNotBeReadIsLookedAt) {
  shard_.looks_later = true;
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  pb::OperatorMessage bad;
  ToWire(RollupOf("blue", 1), bad);
  bad.mutable_rollup()->set_cluster_id("\xff");
  cluster.Say(bad);
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.refusals.size() == 1; }));
  cluster.Say(bad);
  cluster.Say(bad);
  cluster.Say(Blob("r"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.messages.size() == 1; }));
  EXPECT_EQ(replaced_, 1) << "the second waits, and the third takes its place";
  shard_.LookAtAll();
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto& session) { return session.refusals.size() == 2; }));
  shard_.looks_later = false;
  shard_.LookAtAll();
}

TEST_F(SessionRpc, EqualProfilesAreOneObjectFromRollupToRollup) {
  KeptCluster handler;
  const auto client = Open("blue", handler);
  for (size_t i = 1; i <= 2; ++i) {
    client->Send(RollupOf("blue", static_cast<int64_t>(i), 3));
    ASSERT_TRUE(shard_.WaitFor(1, [&](const auto& session) { return session.messages.size() == i; }));
  }
  std::set<const void*> objects;
  const KeptShard::Session session = shard_.session(1);
  for (const contract::OperatorMessage& message : session.messages) {
    for (const model::Need& need : std::get<contract::Rollup>(message).rows.needs()) {
      objects.insert(&need.profile.fingerprint());
    }
  }
  EXPECT_EQ(objects.size(), 1u);
}

// Both threads that read roll-ups are kept busy, so one that comes must wait: the newest takes the place, and what is
// no roll-up goes past it.
TEST_F(SessionRpc, OnlyTheNewestRollupThatWaitsIsReadAndNothingIsBehindIt) {
  shard_.stuck = {"busy-0", "busy-1"};
  KeptCluster handlers[3];
  const auto busy0 = Open("busy-0", handlers[0]);
  const auto busy1 = Open("busy-1", handlers[1]);
  busy0->Send(RollupOf("busy-0", 1));
  busy1->Send(RollupOf("busy-1", 1));
  ASSERT_TRUE(shard_.Wait([](const auto&, int stuck) { return stuck == 2; }));
  const auto client = Open("blue", handlers[2]);
  for (int i = 1; i <= 4; ++i) client->Send(RollupOf("blue", i));
  client->Send(Blob("r"));
  ASSERT_TRUE(shard_.WaitFor(3, [](const auto& session) { return session.messages.size() == 1; }));
  EXPECT_EQ(shard_.session(3).messages[0], contract::OperatorMessage(Blob("r")));
  EXPECT_EQ(replaced_, 3);
  shard_.Free();
  ASSERT_TRUE(shard_.WaitFor(3, [](const auto& session) { return session.messages.size() == 2; }));
  EXPECT_EQ(shard_.session(3).messages[1], contract::OperatorMessage(RollupOf("blue", 4)));
  EXPECT_EQ(decoded_, 3);
}

TEST_F(SessionRpc, ARollupSentBeforeTheEndStillCounts) {
  for (int64_t i = 1; i <= 20; ++i) {
    KeptCluster handler;
    const auto client = Open("blue", handler);
    client->Send(RollupOf("blue", i, 50));
    client->Close();
    EXPECT_EQ(handler.WaitForEnd(), Status());
    const auto id = static_cast<SessionId>(i);
    ASSERT_TRUE(shard_.WaitForClosed(id));
    EXPECT_EQ(shard_.session(id).messages, std::vector<contract::OperatorMessage>{RollupOf("blue", i, 50)});
  }
}

TEST_F(SessionRpc, WhatWasSaidBeforeCloseGoesOutFirst) {
  KeptCluster cluster;
  const auto client = Open("blue", cluster);
  ASSERT_TRUE(cluster.WaitForMessages(1));
  const auto sink = shard_.session(1).sink;
  const auto said = [](int i) { return Ack(i, fmt::format("{}", i)); };  // the same again would be said once
  for (int i = 1; i <= 1'000; ++i) sink->Send(said(i));
  sink->Close({Code::kAborted, "a newer session"});
  sink->Send(said(1'001));
  sink->Close({Code::kInternal, "never heard"});
  EXPECT_EQ(cluster.WaitForEnd(), Status(Code::kAborted, "a newer session"));
  const auto messages = cluster.messages();
  ASSERT_EQ(messages.size(), 1'001u);
  for (int i = 1; i <= 1'000; ++i) EXPECT_EQ(messages[static_cast<size_t>(i)], contract::ShardMessage(said(i)));
  EXPECT_TRUE(shard_.WaitForClosed(1));
}

TEST_F(SessionRpc, AShardMayRefuseInsideOpen) {
  shard_.on_open = [](contract::SessionSink& sink) { sink.Close({Code::kInvalidArgument, "protocol_version: no"}); };
  KeptCluster cluster;
  const auto client = Open("blue", cluster);
  EXPECT_EQ(cluster.WaitForEnd(), Status(Code::kInvalidArgument, "protocol_version: no"));
  EXPECT_TRUE(shard_.WaitForClosed(1));
}

// More than any window of the connection holds, so that what comes after it must wait here until the peer reads.
void FillTheConnection(contract::SessionSink& sink) {
  for (int i = 0; i < 320; ++i) sink.Send(Ack(i, fmt::format("{}{}", i, std::string(100'000, 'x'))));
}

TEST_F(SessionRpc, AnUnsentUpdateIsSupersededByTheNext) {
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto&) { return true; }));
  const auto sink = shard_.session(1).sink;
  FillTheConnection(*sink);
  const auto node = [](const std::string& id, model::MachineState state) {
    return contract::NodeStateUpdate{.supersedes_key = "node:" + id, .machine_id = id, .state = state};
  };
  sink->Send(node("a", model::MachineState::kConfiguring));
  sink->Send(node("b", model::MachineState::kConfiguring));
  sink->Send(node("a", model::MachineState::kConfigured));
  sink->Send(Ack(1'000));
  sink->Send(node("a", model::MachineState::kDraining));
  sink->Close({});
  std::vector<std::string> said;
  while (const auto message = cluster.Read()) {
    if (message->has_node_state_update()) {
      const pb::NodeStateUpdate& update = message->node_state_update();
      said.push_back(fmt::format("{} {}", update.machine_id(), static_cast<int>(update.state())));
    } else if (message->ack().coordinator_term() == 1'000) {
      said.emplace_back("ack");
    }
  }
  EXPECT_EQ(said, (std::vector<std::string>{"a 6", "b 4", "ack"}));
  EXPECT_EQ(cluster.End(), Status());
}

TEST_F(SessionRpc, APeerThatDoesNotReadIsClosedAndTheShardHearsOfItAtOnce) {
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto&) { return true; }));
  const auto sink = shard_.session(1).sink;
  FillTheConnection(*sink);
  EXPECT_FALSE(shard_.session(1).closed);
  for (int i = 0; i < 10'001; ++i) sink->Send(Ack(i, fmt::format("{}", i)));
  EXPECT_TRUE(shard_.WaitForClosed(1));
  EXPECT_EQ(cluster.End(), Status(Code::kResourceExhausted,
                                  "too much waits to be read by this cluster; read faster, and connect again"));
}

TEST_F(SessionRpc, WhatAReplacedPeerHasNotReadIsNotKept) {
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  ASSERT_TRUE(shard_.WaitFor(1, [](const auto&) { return true; }));
  const auto sink = shard_.session(1).sink;
  FillTheConnection(*sink);
  for (int i = 0; i < 2'000; ++i) sink->Send(Ack(1'000'000, fmt::format("{}", i)));
  sink->Close({Code::kAborted, "a newer session"});
  int late = 0;
  while (const auto message = cluster.Read()) late += message->ack().coordinator_term() == 1'000'000 ? 1 : 0;
  EXPECT_EQ(late, 0);
  EXPECT_EQ(cluster.End(), Status(Code::kAborted, "a newer session"));
}

TEST_F(SessionRpc, NoMoreIsReadThanTheShardLooksAt) {
  constexpr size_t kMost = 16;
  constexpr size_t kSaid = 3 * kMost;
  shard_.looks_later = true;
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  for (size_t i = 0; i < kSaid; ++i) cluster.Say(contract::ReclaimAck{.instruction_id = fmt::format("{}", i)});
  const auto received = [&](size_t most) {
    return shard_.WaitFor(1, [&](const auto& session) { return session.messages.size() >= most; });
  };
  EXPECT_TRUE(received(kMost));
  // As long as this takes, more could come.
  RawCluster other(target());
  other.Say(HelloOf("green"));
  EXPECT_TRUE(other.Read());
  for (size_t i = 1; i <= kSaid / kMost; ++i) {
    EXPECT_TRUE(received(i * kMost));
    shard_.LookAtAll();
  }
  EXPECT_EQ(shard_.session(1).messages.size(), kSaid);
  EXPECT_EQ(shard_.most_untaken(), kMost);
}

TEST_F(SessionRpc, ARollupIsReadWhenTheShardHasLookedAtTheOneBeforeIt) {
  shard_.looks_later = true;
  RawCluster cluster(target());
  cluster.Say(HelloOf("blue"));
  for (int i = 1; i <= 9; ++i) cluster.Say(RollupOf("blue", i));
  cluster.SayNoMore();
  int64_t last = 0;
  for (size_t read = 1; last < 9; ++read) {
    ASSERT_TRUE(shard_.WaitFor(1, [&](const auto& session) { return session.messages.size() == read; }));
    const auto messages = shard_.session(1).messages;
    last = std::get<contract::Rollup>(messages.back()).timestamp.time_since_epoch().count();
    shard_.LookAtAll();
  }
  EXPECT_EQ(cluster.End(), Status()) << "it ends in good order when the last was looked at";
  EXPECT_EQ(shard_.most_untaken(), 1u);
}

TEST_F(SessionRpc, APeerThatVanishesIsClosed) {
  for (SessionId id = 1; id <= 3; ++id) {
    RawCluster cluster(target());
    cluster.Say(HelloOf("blue"));
    ASSERT_TRUE(shard_.WaitFor(id, [](const auto&) { return true; }));
    const auto sink = shard_.session(id).sink;
    if (id == 2) FillTheConnection(*sink);  // with a write under way
    cluster.Cancel();
    EXPECT_TRUE(shard_.WaitForClosed(id));
    sink->Send(Ack(1));
  }
}

TEST_F(SessionRpc, ASinkIsSafeWhenEverythingElseIsGone) {
  KeptCluster cluster;
  const auto client = Open("blue", cluster);
  ASSERT_TRUE(cluster.WaitForMessages(1));
  const auto sink = shard_.session(1).sink;
  server_.reset();
  service_.reset();
  for (int i = 0; i < 10; ++i) sink->Send(Ack(i));
  sink->Close({Code::kAborted, "late"});
  EXPECT_TRUE(shard_.session(1).closed);
}

TEST_F(SessionRpc, WhenTheServerStopsSessionsEnd) {
  std::vector<std::unique_ptr<KeptCluster>> handlers;
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (int i = 0; i < 20; ++i) {
    handlers.push_back(std::make_unique<KeptCluster>());
    clients.push_back(Open(fmt::format("c{}", i), *handlers.back()));
  }
  for (const auto& handler : handlers) ASSERT_TRUE(handler->WaitForMessages(1));
  server_->Stop();
  for (const auto& handler : handlers) {
    const auto status = handler->WaitForEnd();
    ASSERT_TRUE(status.has_value());
    EXPECT_FALSE(status->ok());
  }
  EXPECT_TRUE(shard_.Wait([](const auto& sessions, int) {
    return std::ranges::all_of(sessions, [](const auto& session) { return session.second.closed; });
  }));
}

TEST_F(SessionRpc, ACertificateSpeaksForItsOwnClusterOnly) {
  const host::TempDir dir;
  CertificateAuthorityForTest ca;
  Start(ca.Write(dir.path(), "server", ca.Sign("IP:127.0.0.1")));
  const TlsFiles blue = ca.Write(dir.path(), "blue", ca.Sign("URI:bigfleet://cluster/blue"));
  KeptCluster other;
  const auto impostor = Open("green", other, blue);
  EXPECT_EQ(other.WaitForEnd(),
            Status(Code::kPermissionDenied,
                   "hello.cluster_id: \"bigfleet://cluster/blue\" may not speak for cluster \"green\""));
  EXPECT_EQ(rejected_, 1);
  EXPECT_TRUE(shard_.sessions().empty());
  KeptCluster own;
  const auto client = Open("blue", own, blue);
  EXPECT_TRUE(own.WaitForMessages(1));
  EXPECT_EQ(rejected_, 1);
  KeptCluster admin;
  const auto none = Open("blue", admin, ca.Write(dir.path(), "admin", ca.Sign("URI:bigfleet://admin")));
  EXPECT_EQ(admin.WaitForEnd()->code(), Code::kPermissionDenied);
  EXPECT_EQ(shard_.sessions().size(), 1u);
}

TEST_F(SessionRpc, TwoHundredSessionsSpeakAtOnce) {
  constexpr int kSessions = 200;
  constexpr int kRounds = 5;
  std::vector<std::unique_ptr<KeptCluster>> handlers;
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (int i = 0; i < kSessions; ++i) {
    handlers.push_back(std::make_unique<KeptCluster>());
    clients.push_back(Open(fmt::format("c{}", i), *handlers.back()));
  }
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kSessions; ++i) {
      clients[static_cast<size_t>(i)]->Send(RollupOf(fmt::format("c{}", i), round, 20));
      clients[static_cast<size_t>(i)]->Send(Blob(fmt::format("r{}", round)));
    }
  }
  const auto last_rollup = [](const KeptShard::Session& session) {
    WallTime last;
    for (const auto& message : session.messages) {
      const auto* rollup = std::get_if<contract::Rollup>(&message);
      if (rollup == nullptr) continue;
      if (rollup->cluster_id != session.hello.cluster_id || rollup->timestamp <= last) return WallTime();
      last = rollup->timestamp;
    }
    return last;
  };
  const auto blobs = [](const KeptShard::Session& session) {
    return std::ranges::count_if(session.messages, [](const auto& message) {
      return std::holds_alternative<contract::BootstrapResponse>(message);
    });
  };
  EXPECT_TRUE(shard_.Wait([&](const auto& sessions, int) {
    return sessions.size() == kSessions && std::ranges::all_of(sessions, [&](const auto& entry) {
             return last_rollup(entry.second) == WallTime(Duration(kRounds)) && blobs(entry.second) == kRounds;
           });
  }));
  for (const auto& [id, session] : shard_.sessions()) session.sink->Send(Ack(static_cast<int64_t>(id)));
  for (const auto& handler : handlers) EXPECT_TRUE(handler->WaitForMessages(2));
  clients.clear();
  for (const auto& handler : handlers) EXPECT_EQ(handler->WaitForEnd(), Status());
}

// Streams come, speak and die in every way at once, while the shard speaks to all of them and closes some; then the
// server stops under them. Whatever happens, each session that was opened is closed once, and nothing is heard after.
TEST_F(SessionRpc, StreamsThatComeAndGoLeaveNothingBehind) {
  std::atomic<bool> over = false;
  std::jthread talker([&] {
    Rng rng(7);
    while (!over) {
      for (const auto& [id, session] : shard_.sessions()) {
        if (session.closed) continue;
        for (int i = 0; i < 3; ++i) session.sink->Send(Ack(i));
        session.sink->Send(contract::NodeStateUpdate{
            .supersedes_key = "node:m", .machine_id = "m", .state = model::MachineState::kIdle});
        if (rng.Chance(1, 20)) session.sink->Close({Code::kAborted, "by chance"});
      }
    }
  });
  const auto live = [&](uint64_t seed) {
    Rng rng(seed);
    for (int i = 0; i < 60; ++i) {
      const std::string name = fmt::format("c{}-{}", seed, i);
      if (rng.Chance(1, 3)) {
        RawCluster raw(target());
        raw.Say(HelloOf(name));
        if (rng.Chance(1, 2)) raw.Say(RollupOf(name, 1, 30));
        if (rng.Chance(1, 2)) raw.Read();
        if (rng.Chance(1, 2)) raw.SayNoMore();
        continue;  // dies as it is
      }
      KeptCluster handler;
      const auto client = Open(name, handler);
      for (int64_t n = rng.Between(0, 5); n > 0; --n) {
        client->Send(RollupOf(name, n, 30));
        client->Send(Blob("r"));
      }
      if (rng.Chance(1, 2)) handler.WaitForMessages(1);
      if (rng.Chance(1, 2)) client->Close();
    }
  };
  {
    std::vector<std::jthread> lives;
    for (uint64_t seed = 1; seed <= 8; ++seed) lives.emplace_back(live, seed);
  }
  std::vector<std::unique_ptr<KeptCluster>> handlers;
  std::vector<std::unique_ptr<SessionClient>> clients;
  for (int i = 0; i < 50; ++i) {
    handlers.push_back(std::make_unique<KeptCluster>());
    clients.push_back(Open(fmt::format("last-{}", i), *handlers.back()));
    clients.back()->Send(RollupOf(fmt::format("last-{}", i), 1, 200));
  }
  server_->Stop();
  EXPECT_TRUE(shard_.Wait([](const auto& sessions, int) {
    return std::ranges::all_of(sessions, [](const auto& session) { return session.second.closed; });
  }));
  over = true;
  talker.join();
  EXPECT_GT(shard_.sessions().size(), 300u);
}

// A shard of another make that sends what it likes, and goes on when the cluster has said all it will.
class OddShard final : public pb::Shard::CallbackService {
 public:
  std::vector<pb::ShardMessage> messages;

 private:
  class Stream final : public grpc::ServerBidiReactor<pb::OperatorMessage, pb::ShardMessage> {
   public:
    explicit Stream(const std::vector<pb::ShardMessage>& messages) : messages_(messages) { StartRead(&in_); }

   private:
    void OnReadDone(bool ok) override {
      if (!ok) return;
      StartRead(&in_);
      if (next_ == 0) StartWrite(&messages_[next_++]);
    }
    void OnWriteDone(bool ok) override {
      if (ok && next_ < messages_.size()) StartWrite(&messages_[next_++]);
    }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

    const std::vector<pb::ShardMessage>& messages_;
    size_t next_ = 0;
    pb::OperatorMessage in_;
  };

  grpc::ServerBidiReactor<pb::OperatorMessage, pb::ShardMessage>* Session(
      grpc::CallbackServerContext* /*context*/) override {
    return new Stream(messages);
  }
};

TEST_F(SessionRpc, WhatAClusterCannotReadIsToldAndTheSessionGoesOn) {
  OddShard odd;
  odd.messages.resize(3);
  odd.messages[1].mutable_node_state_update()->set_machine_id("m");
  odd.messages[2].mutable_ack()->set_echo("rollup");
  Server server({.address = {"127.0.0.1", 0}, .stop_grace = 0s});
  const std::array<grpc::Service*, 1> services = {&odd};
  ASSERT_EQ(server.Start(services), Status());
  const std::string where = server.address().ToString();
  KeptCluster cluster;
  auto client = OpenSession(where, HelloOf("blue"), cluster);
  ASSERT_TRUE(client.has_value());
  ASSERT_TRUE(cluster.WaitForMessages(1));
  EXPECT_EQ(cluster.messages(), std::vector<contract::ShardMessage>{Ack(0)});
  const std::string who = fmt::format("shard {} sends a message that cannot be read: ", where);
  EXPECT_EQ(cluster.unreadable(),
            (std::vector<Status>{
                Status(Code::kInternal, who + "payload: missing, or of a kind that is not known here"),
                Status(Code::kInternal,
                       who + "node_state_update.state: 0 is not a state; use 1 (Speculative) to 8 (Failed)")}));
  client->reset();  // the shard does not end the stream, so the client does
  EXPECT_EQ(cluster.WaitForEnd(), Status());
}

TEST_F(SessionRpc, NobodyThereEndsTheSession) {
  const std::string where = target();
  server_->Stop();
  KeptCluster cluster;
  const auto client = OpenSession(where, HelloOf("blue"), cluster);
  ASSERT_TRUE(client.has_value());
  const auto status = cluster.WaitForEnd();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code(), Code::kUnavailable);
  EXPECT_TRUE(status->message().starts_with("shard " + where + " does not answer: ")) << status->message();
  (*client)->Send(Blob("r"));
  (*client)->Close();
}

TEST_F(SessionRpc, ATargetThatIsNoneIsAnError) {
  KeptCluster cluster;
  EXPECT_EQ(OpenSession("nowhere", HelloOf("blue"), cluster).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace muster::rpc
