#include "rpc/coordinator_conversion.h"

#include <string>
#include <utility>
#include <vector>

#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using WireStrings = google::protobuf::RepeatedPtrField<std::string>;

void Write(const contract::ShardSummary& summary, pb::ShardSummary& wire) {
  wire.set_total_machines(summary.total_machines);
  wire.set_free_machines(summary.free_machines);
  for (const auto& [type, count] : summary.per_instance_type_counts) {
    (*wire.mutable_per_instance_type_counts())[type] = count;
  }
  for (const auto& [zone, count] : summary.per_zone_counts) (*wire.mutable_per_zone_counts())[zone] = count;
  wire.set_provider_address(summary.provider_address);
}

void Write(const contract::Shortfall& shortfall, pb::Shortfall& wire) {
  WriteRequirements(shortfall.requirements, *wire.mutable_requirements());
  WriteResources(shortfall.deficit, *wire.mutable_deficit());
  wire.set_priority(shortfall.priority);
  wire.set_age_cycles(shortfall.age_cycles);
  wire.set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(shortfall.interruption));
}

void Write(const contract::InstructAck& ack, pb::InstructAck& wire) {
  wire.set_instruction_id(ack.instruction_id);
  wire.set_outcome(static_cast<pb::InstructAck::Outcome>(ack.outcome));
  wire.set_reason(Readable(ack.reason));
}

template <class Wire>
contract::Domain TakeDomain(Wire& wire) {
  return {.key = std::move(*wire.mutable_topology_key()), .value = std::move(*wire.mutable_topology_value())};
}

std::vector<std::string> TakeStrings(WireStrings& wire) {
  return {std::make_move_iterator(wire.begin()), std::make_move_iterator(wire.end())};
}

contract::CoordinatorInstruction Take(pb::CoordinatorInstruction& wire) {
  contract::CoordinatorInstruction instruction{.coordinator_term = wire.coordinator_term(),
                                               .sequence_number = wire.sequence_number(),
                                               .instruction_id = std::move(*wire.mutable_instruction_id()),
                                               .payload = {}};
  switch (wire.payload_case()) {
    case pb::CoordinatorInstruction::kAssignDomain:
      instruction.payload = contract::AssignDomain{.domain = TakeDomain(*wire.mutable_assign_domain())};
      break;
    case pb::CoordinatorInstruction::kUnassignDomain:
      instruction.payload = contract::UnassignDomain{.domain = TakeDomain(*wire.mutable_unassign_domain())};
      break;
    case pb::CoordinatorInstruction::kReassignSpeculative:
      instruction.payload = contract::ReassignSpeculative{
          .machine_ids = TakeStrings(*wire.mutable_reassign_speculative()->mutable_machine_ids())};
      break;
    case pb::CoordinatorInstruction::kCrossShardDrain:
      instruction.payload = contract::CrossShardDrain{
          .machine_ids = TakeStrings(*wire.mutable_cross_shard_drain()->mutable_machine_ids()),
          .preemptor_priority = wire.cross_shard_drain().preemptor_priority()};
      break;
    case pb::CoordinatorInstruction::kTransferOwnership: {
      pb::TransferOwnership& transfer = *wire.mutable_transfer_ownership();
      instruction.payload = contract::TransferOwnership{.machine_ids = TakeStrings(*transfer.mutable_machine_ids()),
                                                        .from_shard_id = std::move(*transfer.mutable_from_shard_id()),
                                                        .to_shard_id = std::move(*transfer.mutable_to_shard_id())};
      break;
    }
    case pb::CoordinatorInstruction::PAYLOAD_NOT_SET: break;
  }
  return instruction;
}

}  // namespace

void ToWire(const contract::ShardReport& report, pb::ShardReport& wire) {
  wire.set_shard_id(report.shard_id);
  wire.set_cycle(report.cycle);
  wire.set_timestamp_unix_nanos(TimeToWire(report.timestamp));
  wire.set_shard_epoch(report.shard_epoch);
  Write(report.summary, *wire.mutable_summary());
  for (const contract::Shortfall& shortfall : report.shortfalls) Write(shortfall, *wire.add_shortfalls());
  for (const contract::InstructAck& ack : report.instruction_acks) Write(ack, *wire.add_instruction_acks());
  wire.set_shard_address(report.shard_address);
}

contract::ReportAck TakeReply(pb::ReportAck& wire) {
  contract::ReportAck ack{
      .coordinator_term = wire.coordinator_term(), .acknowledged = wire.acknowledged(), .instructions = {}};
  for (pb::CoordinatorInstruction& instruction : *wire.mutable_instructions()) {
    ack.instructions.push_back(Take(instruction));
  }
  return ack;
}

}  // namespace muster::rpc
