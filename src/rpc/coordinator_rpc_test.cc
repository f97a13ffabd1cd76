// The client against a coordinator that answers as it is told, over a real socket.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <mutex>

#include "bigfleet/v1alpha1/coordinator.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/coordinator_client.h"
#include "rpc/coordinator_conversion.h"
#include "rpc/server.h"
#include "rpc/wire_for_test.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;

constexpr Duration kPatience = 20s;

contract::ShardReport FullReport() {
  return {.shard_id = "shard-0",
          .cycle = 3,
          .timestamp = WallTime(4s),
          .shard_epoch = 5,
          .summary = {.total_machines = 6,
                      .free_machines = 7,
                      .per_instance_type_counts = {{"c5", 4}, {"m5", 2}},
                      .per_zone_counts = {{"a", 6}},
                      .provider_address = "p:1"},
          .shortfalls = {{.requirements = FullNeed().profile.requirements(),
                          .deficit = {{"cpu", 1'500}},
                          .priority = -8,
                          .age_cycles = 9,
                          .interruption = model::PenaltyBucket::kPinned}},
          .instruction_acks = {{.instruction_id = "i",
                                .outcome = contract::InstructOutcome::kRejectedStale,
                                .reason = "older \xff"}},
          .shard_address = "s:1"};
}

// Keeps the last report and answers with what it was given.
class ToldCoordinator final : public pb::Coordinator::CallbackService {
 public:
  void WillAnswer(const grpc::Status& status, const pb::ReportAck& ack = {}) {
    const std::lock_guard lock(mu_);
    status_ = status;
    ack_ = ack;
  }
  pb::ShardReport report() {
    const std::lock_guard lock(mu_);
    return report_;
  }

 private:
  grpc::ServerUnaryReactor* ReportShard(grpc::CallbackServerContext* context, const pb::ShardReport* report,
                                        pb::ReportAck* ack) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const std::lock_guard lock(mu_);
    report_ = *report;
    *ack = ack_;
    reactor->Finish(status_);
    return reactor;
  }

  std::mutex mu_;
  grpc::Status status_;
  pb::ReportAck ack_;
  pb::ShardReport report_;
};

class CoordinatorRpc : public testing::Test {
 protected:
  void SetUp() override {
    const std::array<grpc::Service*, 1> services = {&coordinator_};
    ASSERT_EQ(server_.Start(services), Status());
    auto client = MakeCoordinatorClient(server_.address().ToString());
    ASSERT_TRUE(client.has_value());
    client_ = *std::move(client);
  }

  Result<contract::ReportAck> Report() {
    std::promise<Result<contract::ReportAck>> answer;
    client_->Report(FullReport(), kPatience,
                    [&](Result<contract::ReportAck> ack) { answer.set_value(std::move(ack)); });
    return answer.get_future().get();
  }

  ToldCoordinator coordinator_;
  Server server_{{.address = {"127.0.0.1", 0}, .stop_grace = 0s}};
  std::unique_ptr<CoordinatorClient> client_;
};

TEST_F(CoordinatorRpc, AReportArrivesWithEveryField) {
  ASSERT_TRUE(Report().has_value());
  const pb::ShardReport report = coordinator_.report();
  EXPECT_EQ(UnsetFields(report), std::vector<std::string>());
  EXPECT_EQ(report.shard_id(), "shard-0");
  EXPECT_EQ(report.cycle(), 3);
  EXPECT_EQ(report.timestamp_unix_nanos(), 4'000'000'000);
  EXPECT_EQ(report.shard_epoch(), 5);
  EXPECT_EQ(report.shard_address(), "s:1");
  EXPECT_EQ(report.summary().total_machines(), 6);
  EXPECT_EQ(report.summary().free_machines(), 7);
  EXPECT_EQ(report.summary().per_instance_type_counts().at("m5"), 2);
  EXPECT_EQ(report.summary().per_zone_counts().at("a"), 6);
  EXPECT_EQ(report.summary().provider_address(), "p:1");
  ASSERT_EQ(report.shortfalls_size(), 1);
  EXPECT_EQ(report.shortfalls(0).requirements_size(), 3);
  EXPECT_EQ(report.shortfalls(0).deficit().resources().at("cpu"), "1500m");
  EXPECT_EQ(report.shortfalls(0).priority(), -8);
  EXPECT_EQ(report.shortfalls(0).age_cycles(), 9);
  EXPECT_EQ(report.shortfalls(0).interruption_penalty_bucket(), pb::PENALTY_BUCKET_PINNED);
  ASSERT_EQ(report.instruction_acks_size(), 1);
  EXPECT_EQ(report.instruction_acks(0).instruction_id(), "i");
  EXPECT_EQ(report.instruction_acks(0).outcome(), pb::InstructAck::OUTCOME_REJECTED_STALE);
  EXPECT_EQ(report.instruction_acks(0).reason(), "older ?");
}

TEST_F(CoordinatorRpc, EverySortOfInstructionComesBack) {
  pb::ReportAck wire;
  wire.set_coordinator_term(9);
  wire.set_acknowledged(true);
  const auto add = [&](const std::string& id) -> pb::CoordinatorInstruction& {
    pb::CoordinatorInstruction& instruction = *wire.add_instructions();
    instruction.set_coordinator_term(8);
    instruction.set_sequence_number(wire.instructions_size());
    instruction.set_instruction_id(id);
    return instruction;
  };
  pb::AssignDomain& assign = *add("assign").mutable_assign_domain();
  assign.set_topology_key("zone");
  assign.set_topology_value("a");
  pb::UnassignDomain& unassign = *add("unassign").mutable_unassign_domain();
  unassign.set_topology_key("zone");
  unassign.set_topology_value("b");
  add("reassign").mutable_reassign_speculative()->add_machine_ids("m-1");
  pb::CrossShardDrain& drain = *add("drain").mutable_cross_shard_drain();
  drain.add_machine_ids("m-2");
  drain.set_preemptor_priority(-3);
  pb::TransferOwnership& transfer = *add("transfer").mutable_transfer_ownership();
  transfer.add_machine_ids("m-3");
  transfer.add_machine_ids("m-4");
  transfer.set_from_shard_id("s-1");
  transfer.set_to_shard_id("s-2");
  add("of a kind that is not known here");
  coordinator_.WillAnswer(grpc::Status::OK, wire);

  const auto at = [](int64_t sequence, std::string id) {
    return contract::CoordinatorInstruction{
        .coordinator_term = 8, .sequence_number = sequence, .instruction_id = std::move(id), .payload = {}};
  };
  contract::ReportAck ack{.coordinator_term = 9, .acknowledged = true, .instructions = {}};
  ack.instructions.push_back(at(1, "assign"));
  ack.instructions.back().payload = contract::AssignDomain{.domain = {.key = "zone", .value = "a"}};
  ack.instructions.push_back(at(2, "unassign"));
  ack.instructions.back().payload = contract::UnassignDomain{.domain = {.key = "zone", .value = "b"}};
  ack.instructions.push_back(at(3, "reassign"));
  ack.instructions.back().payload = contract::ReassignSpeculative{.machine_ids = {"m-1"}};
  ack.instructions.push_back(at(4, "drain"));
  ack.instructions.back().payload = contract::CrossShardDrain{.machine_ids = {"m-2"}, .preemptor_priority = -3};
  ack.instructions.push_back(at(5, "transfer"));
  ack.instructions.back().payload =
      contract::TransferOwnership{.machine_ids = {"m-3", "m-4"}, .from_shard_id = "s-1", .to_shard_id = "s-2"};
  ack.instructions.push_back(at(6, "of a kind that is not known here"));
  EXPECT_EQ(Report(), ack);
}

TEST_F(CoordinatorRpc, CodesOfTheCoordinatorComeThrough) {
  coordinator_.WillAnswer({grpc::StatusCode::FAILED_PRECONDITION, "coordinator: not leader"});
  EXPECT_EQ(Report().error(), Status(Code::kFailedPrecondition, "coordinator: not leader"));
}

TEST_F(CoordinatorRpc, NobodyThereIsUnavailable) {
  server_.Stop();
  const Status status = Report().error();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_TRUE(status.message().starts_with("coordinator " + server_.address().ToString() + " does not answer: "))
      << status.message();
}

}  // namespace
}  // namespace muster::rpc
