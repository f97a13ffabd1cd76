// What a shard and the coordinator say to each other: the report a shard makes now and then, and the instructions it
// gets with the answer. Fields are those of the wire (docs/wire.md), one to one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/time.h"
#include "model/penalty.h"
#include "model/requirement.h"
#include "model/resources.h"

namespace muster::contract {

// How many shortfalls a report names: those of the highest priority, the oldest first.
inline constexpr size_t kReportedShortfalls = 100;
inline constexpr Duration kReportTimeout = 10s;

struct ShardSummary {
  int32_t total_machines = 0;
  int32_t free_machines = 0;  // Idle and Speculative
  std::map<std::string, int32_t> per_instance_type_counts;
  std::map<std::string, int32_t> per_zone_counts;
  std::string provider_address;

  bool operator==(const ShardSummary&) const = default;
  MUSTER_FIELDS(ShardSummary, total_machines, free_machines, per_instance_type_counts, per_zone_counts,
                provider_address)
};

// Demand of one profile that the shard could not cover, over all clusters.
struct Shortfall {
  std::vector<model::Requirement> requirements;
  model::Resources deficit;
  int32_t priority = 0;
  int32_t age_cycles = 0;
  model::PenaltyBucket interruption = model::PenaltyBucket::kUnspecified;

  bool operator==(const Shortfall&) const = default;
  MUSTER_FIELDS(Shortfall, requirements, deficit, priority, age_cycles, interruption)
};

// Numbers are the wire's.
enum class InstructOutcome : uint8_t {
  kUnspecified = 0,
  kAccepted = 1,
  kRejectedStale = 2,
  kRejectedInvalid = 3,
  kFailed = 4,
};

struct InstructAck {
  std::string instruction_id;
  InstructOutcome outcome = InstructOutcome::kUnspecified;
  std::string reason;

  bool operator==(const InstructAck&) const = default;
  MUSTER_FIELDS(InstructAck, instruction_id, outcome, reason)
};

struct ShardReport {
  std::string shard_id;
  int64_t cycle = 0;
  WallTime timestamp;
  int64_t shard_epoch = 0;
  ShardSummary summary;
  std::vector<Shortfall> shortfalls;
  std::vector<InstructAck> instruction_acks;
  std::string shard_address;

  bool operator==(const ShardReport&) const = default;
  MUSTER_FIELDS(ShardReport, shard_id, cycle, timestamp, shard_epoch, summary, shortfalls, instruction_acks,
                shard_address)
};

// The machines with this value of a topology key.
struct Domain {
  std::string key;
  std::string value;

  auto operator<=>(const Domain&) const = default;
  MUSTER_FIELDS(Domain, key, value)
};

struct AssignDomain {
  Domain domain;

  bool operator==(const AssignDomain&) const = default;
  MUSTER_FIELDS(AssignDomain, domain)
};

struct UnassignDomain {
  Domain domain;

  bool operator==(const UnassignDomain&) const = default;
  MUSTER_FIELDS(UnassignDomain, domain)
};

struct ReassignSpeculative {
  std::vector<std::string> machine_ids;

  bool operator==(const ReassignSpeculative&) const = default;
  MUSTER_FIELDS(ReassignSpeculative, machine_ids)
};

struct CrossShardDrain {
  std::vector<std::string> machine_ids;
  int32_t preemptor_priority = 0;

  bool operator==(const CrossShardDrain&) const = default;
  MUSTER_FIELDS(CrossShardDrain, machine_ids, preemptor_priority)
};

struct TransferOwnership {
  std::vector<std::string> machine_ids;
  std::string from_shard_id;
  std::string to_shard_id;

  bool operator==(const TransferOwnership&) const = default;
  MUSTER_FIELDS(TransferOwnership, machine_ids, from_shard_id, to_shard_id)
};

// Delivered at least once, until acknowledged in a report. The first alternative: a kind this build does not know.
struct CoordinatorInstruction {
  int64_t coordinator_term = 0;
  int64_t sequence_number = 0;
  std::string instruction_id;
  std::variant<std::monostate, AssignDomain, UnassignDomain, ReassignSpeculative, CrossShardDrain, TransferOwnership>
      payload;

  bool operator==(const CoordinatorInstruction&) const = default;
  MUSTER_FIELDS(CoordinatorInstruction, coordinator_term, sequence_number, instruction_id, payload)
};

struct ReportAck {
  int64_t coordinator_term = 0;
  bool acknowledged = false;
  std::vector<CoordinatorInstruction> instructions;

  bool operator==(const ReportAck&) const = default;
  MUSTER_FIELDS(ReportAck, coordinator_term, acknowledged, instructions)
};

}  // namespace muster::contract
