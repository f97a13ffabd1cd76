// What a shard shows of itself: an immutable view for metrics and readiness.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "contract/shard.h"
#include "model/machine.h"
#include "model/penalty.h"

namespace muster::shard {

// How a need proposes: machine by machine, or a gang as a whole.
enum class PlanMode : uint8_t { kIncremental = 0, kAllOrNothing = 1 };
inline constexpr size_t kPlanModes = 2;

// Plans of needs, speculated or made in turn.
struct PlanTotals {
  uint64_t kept = 0;
  uint64_t conflicts = 0;  // made again, because what they counted on was gone
  uint64_t retries = 0;    // made again, for whatever reason
};

// Since the start of this life. Names of metrics are in docs/operating-shard.md.
struct Counters {
  std::map<std::string, uint64_t> actions;                           // decided, by kind
  std::map<std::pair<std::string, std::string>, uint64_t> outcomes;  // by kind and outcome
  std::map<std::string, uint64_t> suppressed;                        // by kind
  std::map<std::string, uint64_t> dry_run;                           // by kind
  std::map<std::string, uint64_t> machines_rejected;                 // by field
  std::map<std::string, uint64_t> rollups_rejected;                  // by cluster
  std::map<std::string, uint64_t> above_ceiling;                     // by cluster: actions that were not begun
  uint64_t deferred = 0;                                             // by MaxActionsPerCycle
  uint64_t dropped = 0;                                              // the queue was full
  uint64_t deduped = 0;          // the machine had an operation, or is on hold, or a probe goes first
  uint64_t reclaims_capped = 0;  // times a cluster had more to give up in a cycle than it may
  uint64_t idle_releases = 0;
  uint64_t sessions_installed = 0;
  uint64_t sessions_removed = 0;
  uint64_t sessions_replaced = 0;
  uint64_t list_failures = 0;
  uint64_t reports = 0;
  std::array<PlanTotals, kPlanModes> plans;  // by PlanMode
  uint64_t plans_displaced = 0;              // and taken back for a need of higher precedence
};

// Actions that a cycle decided and that do not begin before something else has happened.
struct PutOff {
  int64_t growth = 0;  // machines that are being configured for the cluster are done
  int64_t trial = 0;   // a Configure of the cluster has ended well
  int64_t loss = 0;    // more of what the cluster lacks since the start is given up
};

// How machines are counted.
struct MachineKind {
  model::MachineState state = model::MachineState::kUnspecified;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;
  model::PenaltyBucket interruption = model::PenaltyBucket::kZero;  // of the need it was bound for

  auto operator<=>(const MachineKind&) const = default;
};

struct Snapshot {
  bool ready = false;  // the machines have been seen
  Status stopped;      // not OK: why it does nothing more
  int64_t epoch = 0;
  int64_t cycle = 0;
  contract::ActuationMode mode = contract::ActuationMode::kActive;
  std::map<MachineKind, uint64_t> machines;
  std::map<model::PenaltyBucket, uint64_t> demand;   // needs of the demand in force, counted now and then
  std::map<model::PenaltyBucket, uint64_t> claimed;  // machines that needs have or get, counted with them
  std::set<std::string> clusters;  // that are connected, have a demand, a machine or a mode of their own
  uint64_t sessions = 0;
  uint64_t shortfalls = 0;                // needs that are short
  uint64_t pending = 0;                   // needs that are not, because all they lack is on its way
  std::map<std::string, uint64_t> holds;  // after failed calls, by HoldKindName
  bool provider_away = false;             // transitions are not called for now
  std::map<int32_t, uint64_t> shortfalls_by_priority;
  std::array<uint64_t, 4> shortfalls_aged{};   // 1-9, 10-59, 60-299 and 300 or more cycles
  std::map<std::string, int32_t> quarantined;  // clusters whose roll-up is held: how many in a row
  bool pages_unchecked = false;                // the provider's pages could not be checked: there may be more machines
  uint64_t missing = 0;                        // machines that the lists no longer show and that are not given up
  uint64_t under_repair = 0;                   // machines
  // Alerts that wait for an operator: clusters, and the fleet under the empty name, of which too many machines failed
  // or vanished at once.
  std::set<std::string, std::less<>> losses_failed;
  std::set<std::string, std::less<>> losses_vanished;
  uint64_t failing = 0;     // machines called Failed in masses that are not given up
  int64_t lacking = 0;      // machines that clusters lack since the start and that are not given up
  PutOff put_off;           // in the last cycle
  bool halted = false;      // calls for two machines were fenced
  uint64_t operations = 0;  // begun and not ended
  uint64_t calls = 0;       // of them, in the provider's hands
  Counters counters;
};

}  // namespace muster::shard
