#include "rpc/coordinator_conversion.h"

#include "bigfleet/v1alpha1/coordinator.pb.h"
#include "rpc/wire_oneof.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

namespace pb = bigfleet::v1alpha1;

namespace {

constexpr Numbers kBucket{.least = 0, .most = 27, .what = "a penalty bucket; use 0 to 27"};
constexpr Numbers kOutcome{.least = 0, .most = 4, .what = "an outcome; use 1 (accepted) to 4 (failed)"};

}  // namespace

MUSTER_WIRE_PART(contract::ShardSummary, pb::ShardSummary, MUSTER_WIRE(total_machines), MUSTER_WIRE(free_machines),
                 MUSTER_WIRE(per_instance_type_counts), MUSTER_WIRE(per_zone_counts), MUSTER_WIRE(provider_address));
MUSTER_WIRE_PART(contract::Shortfall, pb::Shortfall, MUSTER_WIRE(requirements), MUSTER_WIRE(deficit),
                 MUSTER_WIRE(priority), MUSTER_WIRE(age_cycles),
                 MUSTER_WIRE_AS(interruption, interruption_penalty_bucket, kBucket));
MUSTER_WIRE_PART(contract::InstructAck, pb::InstructAck, MUSTER_WIRE(instruction_id), MUSTER_WIRE(outcome, kOutcome),
                 MUSTER_WIRE(reason, AnyBytes()));
MUSTER_WIRE_REQUEST(contract::ShardReport, pb::ShardReport, MUSTER_WIRE(shard_id), MUSTER_WIRE(cycle),
                    MUSTER_WIRE_AS(timestamp, timestamp_unix_nanos), MUSTER_WIRE(shard_epoch), MUSTER_WIRE(summary),
                    MUSTER_WIRE(shortfalls), MUSTER_WIRE(instruction_acks), MUSTER_WIRE(shard_address));

MUSTER_WIRE_PART(contract::AssignDomain, pb::AssignDomain, MUSTER_WIRE_AS(domain.key, topology_key),
                 MUSTER_WIRE_AS(domain.value, topology_value));
MUSTER_WIRE_PART(contract::UnassignDomain, pb::UnassignDomain, MUSTER_WIRE_AS(domain.key, topology_key),
                 MUSTER_WIRE_AS(domain.value, topology_value));
MUSTER_WIRE_PART(contract::ReassignSpeculative, pb::ReassignSpeculative, MUSTER_WIRE(machine_ids));
MUSTER_WIRE_PART(contract::CrossShardDrain, pb::CrossShardDrain, MUSTER_WIRE(machine_ids),
                 MUSTER_WIRE(preemptor_priority));
MUSTER_WIRE_PART(contract::TransferOwnership, pb::TransferOwnership, MUSTER_WIRE(machine_ids),
                 MUSTER_WIRE(from_shard_id), MUSTER_WIRE(to_shard_id));
MUSTER_WIRE_PART(contract::CoordinatorInstruction, pb::CoordinatorInstruction, MUSTER_WIRE(coordinator_term),
                 MUSTER_WIRE(sequence_number), MUSTER_WIRE(instruction_id),
                 MUSTER_WIRE_ONEOF(payload, MUSTER_WIRE_CASE(contract::AssignDomain, assign_domain),
                                   MUSTER_WIRE_CASE(contract::UnassignDomain, unassign_domain),
                                   MUSTER_WIRE_CASE(contract::ReassignSpeculative, reassign_speculative),
                                   MUSTER_WIRE_CASE(contract::CrossShardDrain, cross_shard_drain),
                                   MUSTER_WIRE_CASE(contract::TransferOwnership, transfer_ownership)));
MUSTER_WIRE_REPLY(contract::ReportAck, pb::ReportAck, MUSTER_WIRE(coordinator_term), MUSTER_WIRE(acknowledged),
                  MUSTER_WIRE(instructions));

}  // namespace muster::rpc
