// The operators' services and the client against each other over a real socket, with a shard that answers as it is
// told; and the client against a shard of another make, which has ShardRead only.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "base/codec.h"
#include "bigfleet/v1alpha1/shardread.grpc.pb.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/fleet.grpc.pb.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/server.h"
#include "rpc/shard_client.h"
#include "rpc/shard_services.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using contract::ShardReply;
using contract::ShardRequest;

constexpr Duration kPatience = 20s;

// Answers with what was put before it; keeps the requests. Without an answer it keeps the caller waiting.
class ToldShard final : public contract::ShardPort {
 public:
  void Ask(ShardRequest request, Answer done) override {
    std::unique_lock lock(mu_);
    requests_.push_back(codec::ToBytes(request));
    asked_.notify_all();
    if (answers_.empty()) {
      waiting_.push_back(std::move(done));
      return;
    }
    Result<ShardReply> answer = std::move(answers_.front());
    answers_.pop_front();
    lock.unlock();
    done(std::move(answer));
  }

  void WillAnswer(Result<ShardReply> answer) {
    const std::lock_guard lock(mu_);
    answers_.push_back(std::move(answer));
  }
  // In bytes, as the types of requests have no equality of their own.
  std::vector<std::string> requests() {
    const std::lock_guard lock(mu_);
    return requests_;
  }
  bool WaitForRequests(size_t count) {
    std::unique_lock lock(mu_);
    return asked_.wait_for(lock, kPatience, [&] { return requests_.size() >= count; });
  }
  void AnswerAll(const Status& status) {
    std::vector<Answer> waiting;
    {
      const std::lock_guard lock(mu_);
      waiting = std::move(waiting_);
    }
    for (const Answer& done : waiting) done(std::unexpected(status));
  }

 private:
  std::mutex mu_;
  std::condition_variable asked_;
  std::vector<std::string> requests_;
  std::deque<Result<ShardReply>> answers_;
  std::vector<Answer> waiting_;
};

Result<ShardReply> AskAndWait(contract::ShardPort& port, ShardRequest request) {
  std::promise<Result<ShardReply>> answer;
  port.Ask(std::move(request), [&](Result<ShardReply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

std::string Bytes(const Result<ShardReply>& reply) { return reply ? codec::ToBytes(*reply) : reply.error().ToString(); }

contract::MachineView Machine(const std::string& id) {
  return {.machine = contract::MachineRecord({.id = id,
                                              .state = model::MachineState::kIdle,
                                              .host = {.provider = "p", .ref = "h"},
                                              .resources = {{"cpu", 4'000}}}),
          .need_fingerprint = "f",
          .need_group = "g",
          .reason = model::Reason::kReleaseHold};
}

contract::NeedsInspected Needs(size_t count) {
  contract::NeedsInspected reply{.cycle = 7, .computed_at = WallTime(5s), .total = static_cast<int32_t>(count) + 1};
  for (size_t i = 0; i < count; ++i) {
    reply.needs.push_back({.need = FullNeed(), .reason = model::Reason::kNoSession, .has_session = false});
    reply.needs.back().need.group = fmt::format("gang-{}", i);
  }
  return reply;
}

class ShardRpc : public testing::Test {
 protected:
  void SetUp() override { Start({read_.get(), fleet_.get()}); }
  void TearDown() override { shard_.AnswerAll({Code::kUnavailable, "the test is over"}); }

  void Start(const std::vector<grpc::Service*>& services, const TlsFiles& tls = {}) {
    server_ = std::make_unique<Server>(ServerOptions{
        .address = {"127.0.0.1", 0}, .tls = tls, .max_message_bytes = kLargeMessageBytes, .stop_grace = 0s});
    ASSERT_EQ(server_->Start(services), Status());
  }

  std::unique_ptr<contract::ShardPort> Client(const TlsFiles& tls = {}) {
    auto client = MakeShardClient(server_->address().ToString(), tls);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }
  std::string Name() const { return "shard " + server_->address().ToString(); }

  ToldShard shard_;
  const std::shared_ptr<grpc::Service> read_ = MakeShardReadService(shard_);
  const std::shared_ptr<grpc::Service> fleet_ = MakeFleetService(shard_);
  std::unique_ptr<Server> server_;
};

TEST_F(ShardRpc, EverySortOfQuestionArrivesAndIsAnswered) {
  const auto client = Client();
  const std::vector<std::pair<ShardRequest, ShardReply>> calls = {
      {contract::InspectNeeds{.cluster_id = "blue", .limit = 3}, Needs(3)},
      {contract::InspectNeeds{}, contract::NeedsInspected{}},
      {contract::ListMachines{.states = {model::MachineState::kIdle}, .cluster_id = "blue"},
       contract::MachinesListed{.machines = {Machine("a"), Machine("b")}}},
      {contract::ListMachines{}, contract::MachinesListed{}},
      {contract::ListActions{.cluster_id = "blue", .limit = 9},
       contract::ActionsListed{.actions = {{.cycle = 1, .kind = "Delete", .grace_seconds = 5, .outcome = "pending"}}}},
      {contract::ListClusters{}, contract::ClustersListed{.clusters = {{.cluster_id = "blue", .session = true}},
                                                          .last_order = {.kind = "pause", .who = "local"}}},
      {contract::Explain{.subject = "m"}, contract::Explained{.cycle = 2, .lines = {"because"}}},
      {contract::Explain{.subject = contract::NeedRef{.cluster_id = "c", .fingerprint = "f", .group = "g"}},
       contract::Explained{.cycle = 2, .lines = {"because"}}},
      {contract::SetActuation{.cluster_id = "blue", .mode = contract::ActuationMode::kPaused, .reason = "test"},
       contract::ActuationSet{.previous = contract::ActuationMode::kActive}},
      {contract::RepairMachine{.machine_id = "m", .reason = "why"}, contract::OrderTaken{}},
      {contract::ForgetMachine{.machine_id = "m", .reason = "why"}, contract::OrderTaken{}},
      {contract::ListForgotten{}, contract::ForgottenListed{.orders = {{.kind = "forget", .machine_id = "m"}}}},
      {contract::RecallMachine{.machine_id = "m", .reason = "why"}, contract::OrderTaken{}},
      {contract::AcceptLosses{.cluster_id = "blue", .reason = "why"},
       contract::LossesAccepted{.missing = 3, .failed = 4}},
      {contract::DecommissionCluster{.cluster_id = "blue", .reason = "why"}, contract::OrderTaken{}},
  };
  std::vector<std::string> asked;
  for (auto [request, reply] : calls) {
    shard_.WillAnswer(reply);
    EXPECT_EQ(Bytes(AskAndWait(*client, request)), codec::ToBytes(reply)) << codec::Describe(request);
    std::visit(
        [](auto& order) {
          if constexpr (requires { order.who; }) order.who = "local";
        },
        request);  // told by the connection
    asked.push_back(codec::ToBytes(request));
  }
  EXPECT_EQ(shard_.requests(), asked);
}

TEST_F(ShardRpc, CodesOfTheShardComeThrough) {
  const auto client = Client();
  const std::vector<ShardRequest> requests = {contract::InspectNeeds{}, contract::ListMachines{},
                                              contract::RepairMachine{.machine_id = "m"}};
  for (const ShardRequest& request : requests) {
    for (const Code code : {Code::kNotFound, Code::kAborted, Code::kInvalidArgument}) {
      const Status said(code, "machine \"m\": why");
      shard_.WillAnswer(std::unexpected(said));
      EXPECT_EQ(AskAndWait(*client, request).error(), said);
    }
    shard_.WillAnswer(Error(Code::kUnavailable, "not yet"));
    EXPECT_EQ(AskAndWait(*client, request).error(), Status(Code::kUnavailable, Name() + " does not answer: not yet"));
  }
}

TEST_F(ShardRpc, WhatIsRefusedNeverReachesTheShard) {
  const auto client = Client();
  EXPECT_EQ(AskAndWait(*client, contract::RepairMachine{}).error(),
            Status(Code::kInvalidArgument, "machine_id: missing; name the machine"));
  EXPECT_EQ(AskAndWait(*client, contract::SetActuation{}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(AskAndWait(*client, contract::InspectNeeds{.limit = -1}).error(),
            Status(Code::kInvalidArgument, "limit: -1 is negative; use zero or more"));
  EXPECT_EQ(AskAndWait(*client, contract::ListMachines{.states = {model::MachineState::kUnspecified}}).error().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(shard_.requests().empty());
}

TEST_F(ShardRpc, LongListsComeThroughWhole) {
  const auto client = Client();
  contract::MachinesListed machines;
  for (int i = 0; i < 20'000; ++i) machines.machines.push_back(Machine(fmt::format("machine-with-a-long-name-{}", i)));
  shard_.WillAnswer(machines);
  EXPECT_EQ(Bytes(AskAndWait(*client, contract::ListMachines{})), codec::ToBytes(ShardReply(machines)));
  shard_.WillAnswer(Needs(5'000));
  EXPECT_EQ(Bytes(AskAndWait(*client, contract::InspectNeeds{})), codec::ToBytes(ShardReply(Needs(5'000))));
  contract::ActionsListed actions;
  for (int i = 0; i < 2'000; ++i) actions.actions.push_back({.cycle = i, .kind = "Delete"});
  shard_.WillAnswer(actions);
  EXPECT_EQ(Bytes(AskAndWait(*client, contract::ListActions{})), codec::ToBytes(ShardReply(actions)));
}

// The wire's own client, as other makes have it: one header, then the rows, with the protocol's reasons.
TEST_F(ShardRpc, ShardReadStreamsAHeaderAndThenTheNeeds) {
  shard_.WillAnswer(Needs(2));
  const auto channel = MakeChannel({.target = server_->address().ToString()});
  const auto stub = pb::ShardRead::NewStub(*channel);
  grpc::ClientContext context;
  SetDeadline(context, kPatience);
  const auto stream = stub->InspectNeeds(&context, {});
  pb::InspectNeedsResponse frame;
  ASSERT_TRUE(stream->Read(&frame));
  EXPECT_EQ(frame.header().cycle(), 7);
  EXPECT_EQ(frame.header().computed_at_unix_nanos(), 5'000'000'000);
  EXPECT_EQ(frame.header().total_needs(), 3);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Read(&frame));
    EXPECT_EQ(frame.need().need().group(), fmt::format("gang-{}", i));
    EXPECT_EQ(frame.need().unmet_reason(), pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE);
  }
  EXPECT_FALSE(stream->Read(&frame));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardRpc, AShardOfAnotherMakeIsAskedPlainly) {
  Start({read_.get()});
  const auto client = Client();
  shard_.WillAnswer(Needs(1));
  contract::NeedsInspected plain = Needs(1);
  plain.needs[0].reason = model::Reason::kTopologyUnsatisfiable;
  plain.needs[0].has_session = true;
  EXPECT_EQ(Bytes(AskAndWait(*client, contract::InspectNeeds{})), codec::ToBytes(ShardReply(plain)));
  const Status other(Code::kUnimplemented, Name() + " does not implement muster.v1.Fleet: it cannot be asked this");
  EXPECT_EQ(AskAndWait(*client, contract::ListMachines{}).error(), other);
  EXPECT_EQ(AskAndWait(*client, contract::ListClusters{}).error(), other);
  Start({});
  EXPECT_EQ(AskAndWait(*Client(), contract::InspectNeeds{}).error(),
            Status(Code::kUnimplemented, Name() + " does not implement muster.v1.Fleet: it cannot be asked this"));
}

// Streams what it was given, in whatever order.
class OddShard final : public pb::ShardRead::Service {
 public:
  std::vector<pb::InspectNeedsResponse> frames;

 private:
  grpc::Status InspectNeeds(grpc::ServerContext* /*context*/, const pb::InspectNeedsRequest* /*request*/,
                            grpc::ServerWriter<pb::InspectNeedsResponse>* writer) override {
    for (const pb::InspectNeedsResponse& frame : frames) writer->Write(frame);
    return grpc::Status::OK;
  }
};

TEST_F(ShardRpc, AnswersThatMakeNoSenseAreNamed) {
  OddShard odd;
  Start({&odd});
  const auto client = Client();
  pb::InspectNeedsResponse header;
  header.mutable_header()->set_cycle(1);
  pb::InspectNeedsResponse need;
  need.mutable_need()->set_cluster_id("blue");
  pb::InspectNeedsResponse bad = need;
  bad.mutable_need()->set_bootstrap_count(-4);
  const auto says = [&](std::vector<pb::InspectNeedsResponse> frames) {
    odd.frames = std::move(frames);
    const auto reply = AskAndWait(*client, contract::InspectNeeds{});
    return reply ? Status() : reply.error();
  };
  const Status order(Code::kInternal, Name() + " answers with a bad row: frame: there must be one header, then needs");
  EXPECT_EQ(says({header, need, need}), Status());
  EXPECT_EQ(says({}), order);
  EXPECT_EQ(says({need}), order);
  EXPECT_EQ(says({header, header}), order);
  EXPECT_EQ(says({header, {}}), order);
  EXPECT_EQ(says({header, need, bad, need}),
            Status(Code::kInternal,
                   Name() + " answers with a bad row: needs[1].bootstrap_count: -4 is negative; use zero or more"));
  server_->Stop();
}

TEST_F(ShardRpc, NobodyThereIsUnavailable) {
  const auto client = Client();
  server_->Stop();
  EXPECT_EQ(AskAndWait(*client, contract::ListClusters{}).error().code(), Code::kUnavailable);
  EXPECT_EQ(AskAndWait(*client, contract::ListMachines{}).error().code(), Code::kUnavailable);
}

TEST_F(ShardRpc, ADestroyedClientHasAnsweredEveryCall) {
  auto client = Client();
  std::mutex mu;
  std::vector<Code> codes;
  const std::vector<ShardRequest> requests = {contract::InspectNeeds{}, contract::ListMachines{},
                                              contract::ListClusters{}, contract::Explain{.subject = "m"}};
  for (const ShardRequest& request : requests) {
    client->Ask(request, [&](const Result<ShardReply>& reply) {
      const std::lock_guard lock(mu);
      codes.push_back(reply.error().code());
    });
  }
  ASSERT_TRUE(shard_.WaitForRequests(requests.size()));
  client.reset();
  EXPECT_EQ(codes, std::vector<Code>(requests.size(), Code::kCancelled));
}

TEST_F(ShardRpc, AClientThatGoesAwayLeavesNothingBehind) {
  contract::MachinesListed machines;
  for (int i = 0; i < 20'000; ++i) machines.machines.push_back(Machine(fmt::format("machine-{}", i)));
  shard_.WillAnswer(machines);
  {
    const auto channel = MakeChannel({.target = server_->address().ToString()});
    const auto stub = v1::Fleet::NewStub(*channel);
    grpc::ClientContext context;
    SetDeadline(context, kPatience);
    const auto stream = stub->ListMachines(&context, {});
    v1::MachineView row;
    ASSERT_TRUE(stream->Read(&row));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_->Stop();  // waits for the handlers
}

TEST_F(ShardRpc, ReadersReadAndAdministratorsOrder) {
  const host::TempDir dir;
  CertificateAuthorityForTest ca;
  Start({read_.get(), fleet_.get()}, ca.Write(dir.path(), "server", ca.Sign("IP:127.0.0.1")));
  const auto reader = Client(ca.Write(dir.path(), "reader", ca.Sign("URI:bigfleet://readonly")));
  const auto admin = Client(ca.Write(dir.path(), "admin", ca.Sign("URI:bigfleet://admin")));
  const auto cluster = Client(ca.Write(dir.path(), "cluster", ca.Sign("URI:bigfleet://cluster/blue")));
  const ShardRequest order = contract::ForgetMachine{.machine_id = "m", .reason = "why"};
  for (contract::ShardPort* caller : {reader.get(), admin.get()}) {
    shard_.WillAnswer(Needs(1));
    EXPECT_TRUE(AskAndWait(*caller, contract::InspectNeeds{}).has_value());
    shard_.WillAnswer(contract::ClustersListed{});
    EXPECT_TRUE(AskAndWait(*caller, contract::ListClusters{}).has_value());
  }
  EXPECT_EQ(AskAndWait(*reader, order).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(AskAndWait(*cluster, contract::InspectNeeds{}).error().code(), Code::kPermissionDenied);
  shard_.WillAnswer(contract::OrderTaken{});
  EXPECT_TRUE(AskAndWait(*admin, order).has_value());
  const ShardRequest taken = contract::ForgetMachine{.machine_id = "m", .reason = "why", .who = "bigfleet://admin"};
  EXPECT_EQ(shard_.requests().back(), codec::ToBytes(taken)) << "the certificate says who";
}

}  // namespace
}  // namespace muster::rpc
