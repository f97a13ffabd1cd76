// Service and client against each other over a real socket, with a provider that answers as it is told.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "host/temp_dir_for_test.h"
#include "rpc/certificates_for_test.h"
#include "rpc/channel.h"
#include "rpc/provider_client.h"
#include "rpc/provider_service.h"
#include "rpc/server.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using contract::ProviderReply;
using contract::ProviderRequest;

constexpr Duration kPatience = 20s;

contract::MachineRecord Idle(std::string id) {
  return contract::MachineRecord({.id = std::move(id),
                                  .state = model::MachineState::kIdle,
                                  .host = {.provider = "p", .ref = "h"},
                                  .resources = {{"cpu", 4'000}}});
}

// Answers with what was put before it; keeps the requests. Without an answer it keeps the caller waiting.
class ToldProvider final : public contract::ProviderPort {
 public:
  void Ask(ProviderRequest request, Duration /*timeout*/, Done done) override {
    std::unique_lock lock(mu_);
    requests_.push_back(std::move(request));
    asked_.notify_all();
    if (answers_.empty() && !last_word_) {
      waiting_.push_back(std::move(done));
      return;
    }
    Result<ProviderReply> answer = last_word_ ? std::unexpected(*last_word_) : std::move(answers_.front());
    if (!last_word_) answers_.pop_front();
    lock.unlock();
    done(std::move(answer));
  }

  void WillAnswer(Result<ProviderReply> answer) {
    const std::lock_guard lock(mu_);
    answers_.push_back(std::move(answer));
  }
  std::vector<ProviderRequest> requests() {
    const std::lock_guard lock(mu_);
    return requests_;
  }
  void WaitForRequests(size_t count) {
    std::unique_lock lock(mu_);
    asked_.wait(lock, [&] { return requests_.size() >= count; });
  }
  // To everybody who waits, and to whoever still comes.
  void AnswerAll(const Status& status) {
    std::vector<Done> waiting;
    {
      const std::lock_guard lock(mu_);
      waiting = std::move(waiting_);
      last_word_ = status;
    }
    for (const Done& done : waiting) done(std::unexpected(status));
  }

 private:
  std::mutex mu_;
  std::condition_variable asked_;
  std::vector<ProviderRequest> requests_;
  std::deque<Result<ProviderReply>> answers_;
  std::vector<Done> waiting_;
  std::optional<Status> last_word_;
};

Result<ProviderReply> AskAndWait(contract::ProviderPort& port, ProviderRequest request, Duration timeout = kPatience) {
  std::promise<Result<ProviderReply>> answer;
  port.Ask(std::move(request), timeout, [&](Result<ProviderReply> reply) { answer.set_value(std::move(reply)); });
  return answer.get_future().get();
}

class ProviderRpc : public testing::Test {
 protected:
  void SetUp() override { Start({}); }

  void Start(const TlsFiles& tls) {
    server_ = std::make_unique<Server>(ServerOptions{
        .address = {"127.0.0.1", 0}, .tls = tls, .max_message_bytes = kLargeMessageBytes, .stop_grace = 0s});
    const std::array<grpc::Service*, 1> services = {service_.get()};
    ASSERT_EQ(server_->Start(services), Status());
  }

  std::unique_ptr<contract::ProviderPort> Client(const TlsFiles& tls = {}) {
    auto client = MakeProviderClient(server_->address().ToString(), tls);
    EXPECT_TRUE(client.has_value());
    return *std::move(client);
  }

  ToldProvider provider_;
  const std::shared_ptr<grpc::Service> service_ = MakeProviderService(provider_);
  std::unique_ptr<Server> server_;
};

TEST_F(ProviderRpc, EverySortOfCallArrivesAndIsAnswered) {
  const auto client = Client();
  const contract::FenceToken token = {.shard_id = "s", .epoch = 1, .sequence = 2};
  const contract::TransitionAck ack = {.operation_id = "op", .machine = Idle("m")};
  const contract::ListReply list = {.machines = {Idle("a"), Idle("b")}, .revision = "\xff rev", .rejected = {}};
  const std::vector<std::pair<ProviderRequest, ProviderReply>> calls = {
      {contract::CreateRequest{.machine_id = "m", .fence = token}, ack},
      {contract::ConfigureRequest{.machine_id = "m",
                                  .cluster_id = "c",
                                  .bootstrap_blob = "\xff blob",
                                  .fence = token,
                                  .shard_metadata = {{"k", "v"}}},
       ack},
      {contract::DrainRequest{.machine_id = "m", .grace_period_seconds = 30, .fence = token}, ack},
      {contract::DeleteRequest{.machine_id = "m", .fence = token}, ack},
      {contract::GetRequest{.machine_id = "m"}, contract::GetReply{.machine = Idle("m")}},
      {contract::ListRequest{.states = {model::MachineState::kIdle}, .max_results = 2, .since_revision = "x"}, list},
  };
  std::vector<ProviderRequest> asked;
  for (const auto& [request, reply] : calls) {
    provider_.WillAnswer(reply);
    EXPECT_EQ(AskAndWait(*client, request), reply);
    asked.push_back(request);
  }
  EXPECT_EQ(provider_.requests(), asked);
}

TEST_F(ProviderRpc, CodesOfTheProviderComeThrough) {
  const auto client = Client();
  for (const Code code : {Code::kFailedPrecondition, Code::kNotFound, Code::kAborted, Code::kUnimplemented}) {
    const Status said(code, "machine \"m\": why");
    provider_.WillAnswer(std::unexpected(said));
    EXPECT_EQ(AskAndWait(*client, contract::GetRequest{.machine_id = "m"}).error(), said);
  }
}

TEST_F(ProviderRpc, WhatIsRefusedNeverReachesTheProvider) {
  const auto client = Client();
  EXPECT_EQ(AskAndWait(*client, contract::CreateRequest()).error(),
            Status(Code::kInvalidArgument, "machine_id: missing; name the machine"));
  const auto state = static_cast<model::MachineState>(77);
  EXPECT_EQ(AskAndWait(*client, contract::ListRequest{.states = {state}}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(provider_.requests().empty());
}

TEST_F(ProviderRpc, ABadRecordIsNotTakenForAMachine) {
  const auto client = Client();
  const contract::MachineRecord bad({.id = "m", .state = model::MachineState::kIdle});
  provider_.WillAnswer(contract::GetReply{.machine = bad});
  EXPECT_EQ(AskAndWait(*client, contract::GetRequest{.machine_id = "m"}).error(),
            Status(Code::kInternal, "provider " + server_->address().ToString() +
                                        " answers with a bad record: machine.host: a machine that is Idle must have "
                                        "one"));
  provider_.WillAnswer(contract::ListReply{.machines = {bad, Idle("n")}, .revision = {}, .rejected = {}});
  const auto reply = AskAndWait(*client, contract::ListRequest());
  ASSERT_TRUE(reply.has_value());
  const auto& list = std::get<contract::ListReply>(*reply);
  EXPECT_EQ(list.machines, std::vector{Idle("n")});
  EXPECT_EQ(list.rejected.size(), 1u);
}

// More than gRPC lets through unasked (4 MiB), and more than is encoded on the answering thread.
TEST_F(ProviderRpc, LargeListsComeThroughWhole) {
  contract::ListReply list;
  for (int i = 0; i < 60'000; ++i)
    list.machines.push_back(Idle("machine-with-a-rather-long-name-" + std::to_string(i)));
  provider_.WillAnswer(list);
  EXPECT_EQ(AskAndWait(*Client(), contract::ListRequest(), contract::kProviderListTimeout), ProviderReply(list));
}

TEST_F(ProviderRpc, ASilentProviderCostsNoMoreThanTheTimeout) {
  const auto client = Client();
  const Status status = AskAndWait(*client, contract::GetRequest{.machine_id = "m"}, 50ms).error();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(status.message().starts_with("provider " + server_->address().ToString() + " does not answer: "));
  provider_.AnswerAll({Code::kUnavailable, "too late"});
}

TEST_F(ProviderRpc, NobodyThereIsUnavailable) {
  const auto client = Client();
  server_->Stop();
  EXPECT_EQ(AskAndWait(*client, contract::GetRequest{.machine_id = "m"}).error().code(), Code::kUnavailable);
}

TEST_F(ProviderRpc, ADestroyedClientHasAnsweredEveryCall) {
  auto client = Client();
  std::mutex mu;
  std::vector<Code> codes;
  for (int i = 0; i < 5; ++i) {
    client->Ask(contract::GetRequest{.machine_id = "m"}, kPatience, [&](const Result<ProviderReply>& reply) {
      const std::lock_guard lock(mu);
      codes.push_back(reply.error().code());
    });
  }
  provider_.WaitForRequests(5);
  client.reset();
  EXPECT_EQ(codes, std::vector<Code>(5, Code::kCancelled));
  provider_.AnswerAll({Code::kUnavailable, "too late"});
}

TEST_F(ProviderRpc, ATextThatIsNoUtf8IsRefusedBeforeAnyHandler) {
  const auto channel = MakeChannel({.target = server_->address().ToString()});
  const auto stub = pb::CapacityProvider::NewStub(*channel);
  grpc::ClientContext context;
  SetDeadline(context, kPatience);
  pb::MachineRef ref;
  ref.set_id("\xff");
  pb::Machine machine;
  EXPECT_FALSE(stub->Get(&context, ref, &machine).ok());
  EXPECT_TRUE(provider_.requests().empty());
}

TEST_F(ProviderRpc, AShardSpeaksForItselfOnly) {
  const host::TempDir dir;
  CertificateAuthorityForTest ca;
  Start(ca.Write(dir.path(), "server", ca.Sign("IP:127.0.0.1")));
  const auto client = Client(ca.Write(dir.path(), "shard", ca.Sign("URI:bigfleet://shard/s-1")));
  const auto create = [&](const std::string& shard) {
    return AskAndWait(*client, contract::CreateRequest{.machine_id = "m", .fence = {.shard_id = shard}});
  };
  const ProviderReply ack = contract::TransitionAck{.operation_id = "op", .machine = Idle("m")};
  provider_.WillAnswer(ack);
  EXPECT_EQ(create("s-1"), ack);
  EXPECT_EQ(create("").error(),
            Status(Code::kInvalidArgument,
                   "shard_id: missing; bigfleet://shard/s-1 must fence its calls with its id, epoch and sequence"));
  EXPECT_EQ(create("s-2").error(),
            Status(Code::kPermissionDenied, "shard_id: bigfleet://shard/s-1 may not act for shard \"s-2\""));
  EXPECT_EQ(provider_.requests().size(), 1u);
  const auto reader = Client(ca.Write(dir.path(), "reader", ca.Sign("URI:bigfleet://readonly")));
  EXPECT_EQ(AskAndWait(*reader, contract::CreateRequest{.machine_id = "m"}).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(provider_.requests().size(), 1u);
}

}  // namespace
}  // namespace muster::rpc
