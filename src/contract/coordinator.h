// What a shard and the coordinator say to each other: the report a shard makes now and then, and the instructions it
// gets with the answer. Fields are those of the wire (docs/wire.md), one to one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
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
  int32_t free_machines = 0;  // Idle
  std::map<std::string, int32_t> per_instance_type_counts;
  std::map<std::string, int32_t> per_zone_counts;
  std::string provider_address;

  bool operator==(const ShardSummary&) const = default;
  static constexpr std::string_view kTypeName = "ShardSummary";
  static constexpr auto Fields() {
    return std::tuple{Field{"total_machines", &ShardSummary::total_machines},
                      Field{"free_machines", &ShardSummary::free_machines},
                      Field{"per_instance_type_counts", &ShardSummary::per_instance_type_counts},
                      Field{"per_zone_counts", &ShardSummary::per_zone_counts},
                      Field{"provider_address", &ShardSummary::provider_address}};
  }
};

// Demand of one profile that the shard could not cover, over all clusters.
struct Shortfall {
  std::vector<model::Requirement> requirements;
  model::Resources deficit;
  int32_t priority = 0;
  int32_t age_cycles = 0;
  model::PenaltyBucket interruption = model::PenaltyBucket::kUnspecified;

  bool operator==(const Shortfall&) const = default;
  static constexpr std::string_view kTypeName = "Shortfall";
  static constexpr auto Fields() {
    return std::tuple{Field{"requirements", &Shortfall::requirements}, Field{"deficit", &Shortfall::deficit},
                      Field{"priority", &Shortfall::priority}, Field{"age_cycles", &Shortfall::age_cycles},
                      Field{"interruption", &Shortfall::interruption}};
  }
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
  static constexpr std::string_view kTypeName = "InstructAck";
  static constexpr auto Fields() {
    return std::tuple{Field{"instruction_id", &InstructAck::instruction_id}, Field{"outcome", &InstructAck::outcome},
                      Field{"reason", &InstructAck::reason}};
  }
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
  static constexpr std::string_view kTypeName = "ShardReport";
  static constexpr auto Fields() {
    return std::tuple{Field{"shard_id", &ShardReport::shard_id},
                      Field{"cycle", &ShardReport::cycle},
                      Field{"timestamp", &ShardReport::timestamp},
                      Field{"shard_epoch", &ShardReport::shard_epoch},
                      Field{"summary", &ShardReport::summary},
                      Field{"shortfalls", &ShardReport::shortfalls},
                      Field{"instruction_acks", &ShardReport::instruction_acks},
                      Field{"shard_address", &ShardReport::shard_address}};
  }
};

// The machines with this value of a topology key.
struct Domain {
  std::string key;
  std::string value;

  auto operator<=>(const Domain&) const = default;
  static constexpr std::string_view kTypeName = "Domain";
  static constexpr auto Fields() { return std::tuple{Field{"key", &Domain::key}, Field{"value", &Domain::value}}; }
};

struct AssignDomain {
  Domain domain;

  bool operator==(const AssignDomain&) const = default;
  static constexpr std::string_view kTypeName = "AssignDomain";
  static constexpr auto Fields() { return std::tuple{Field{"domain", &AssignDomain::domain}}; }
};

struct UnassignDomain {
  Domain domain;

  bool operator==(const UnassignDomain&) const = default;
  static constexpr std::string_view kTypeName = "UnassignDomain";
  static constexpr auto Fields() { return std::tuple{Field{"domain", &UnassignDomain::domain}}; }
};

struct ReassignSpeculative {
  std::vector<std::string> machine_ids;

  bool operator==(const ReassignSpeculative&) const = default;
  static constexpr std::string_view kTypeName = "ReassignSpeculative";
  static constexpr auto Fields() { return std::tuple{Field{"machine_ids", &ReassignSpeculative::machine_ids}}; }
};

struct CrossShardDrain {
  std::vector<std::string> machine_ids;
  int32_t preemptor_priority = 0;

  bool operator==(const CrossShardDrain&) const = default;
  static constexpr std::string_view kTypeName = "CrossShardDrain";
  static constexpr auto Fields() {
    return std::tuple{Field{"machine_ids", &CrossShardDrain::machine_ids},
                      Field{"preemptor_priority", &CrossShardDrain::preemptor_priority}};
  }
};

struct TransferOwnership {
  std::vector<std::string> machine_ids;
  std::string from_shard_id;
  std::string to_shard_id;

  bool operator==(const TransferOwnership&) const = default;
  static constexpr std::string_view kTypeName = "TransferOwnership";
  static constexpr auto Fields() {
    return std::tuple{Field{"machine_ids", &TransferOwnership::machine_ids},
                      Field{"from_shard_id", &TransferOwnership::from_shard_id},
                      Field{"to_shard_id", &TransferOwnership::to_shard_id}};
  }
};

// Delivered at least once, until acknowledged in a report. The first alternative: a kind this build does not know.
struct CoordinatorInstruction {
  int64_t coordinator_term = 0;
  int64_t sequence_number = 0;
  std::string instruction_id;
  std::variant<std::monostate, AssignDomain, UnassignDomain, ReassignSpeculative, CrossShardDrain, TransferOwnership>
      payload;

  bool operator==(const CoordinatorInstruction&) const = default;
  static constexpr std::string_view kTypeName = "CoordinatorInstruction";
  static constexpr auto Fields() {
    return std::tuple{Field{"coordinator_term", &CoordinatorInstruction::coordinator_term},
                      Field{"sequence_number", &CoordinatorInstruction::sequence_number},
                      Field{"instruction_id", &CoordinatorInstruction::instruction_id},
                      Field{"payload", &CoordinatorInstruction::payload}};
  }
};

struct ReportAck {
  int64_t coordinator_term = 0;
  bool acknowledged = false;
  std::vector<CoordinatorInstruction> instructions;

  bool operator==(const ReportAck&) const = default;
  static constexpr std::string_view kTypeName = "ReportAck";
  static constexpr auto Fields() {
    return std::tuple{Field{"coordinator_term", &ReportAck::coordinator_term},
                      Field{"acknowledged", &ReportAck::acknowledged}, Field{"instructions", &ReportAck::instructions}};
  }
};

}  // namespace muster::contract
