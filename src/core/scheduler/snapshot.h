// Snapshot: what metrics and readiness read of the scheduler, immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/fields.h"
#include "model/node.h"
#include "model/workload.h"

namespace muster::scheduler {

inline constexpr size_t kPhases = static_cast<size_t>(model::WorkloadPhase::kDeleted) + 1;
inline constexpr size_t kDesiredStates = static_cast<size_t>(model::DesiredState::kDeleted) + 1;
inline constexpr size_t kNodeStatuses = static_cast<size_t>(model::NodeStatus::kDraining) + 1;

// Counts since the start of this life; not saved.
struct Counters {
  uint64_t scheduling_attempts = 0;  // workloads that were to be placed
  uint64_t scheduling_failures = 0;  // of them those that no node took
  uint64_t retries = 0;              // attempts that failed and are made again
  uint64_t nodes_lost = 0;           // transitions to NotReady
  uint64_t failovers = 0;
  uint64_t orphans_deleted = 0;
  uint64_t commits = 0;                          // that were committed
  uint64_t conflicts = 0;                        // commits that compared with something else
  uint64_t unknowns = 0;                         // commits of unknown outcome, or refused
  std::map<std::string, uint64_t> store_writes;  // by category: spec, retry, assignment, reconciliation, event
};

struct Snapshot {
  bool ready = false;  // the store was listed, and it answers
  bool leading = false;
  bool leader_known = false;  // this one, or another whose address is known
  std::array<int64_t, kNodeStatuses> nodes{};
  std::array<int64_t, kPhases> workloads{};
  std::array<int64_t, kDesiredStates> desired{};
  uint64_t commits_in_flight = 0;
  uint64_t calls_in_flight = 0;
  uint64_t waiting = 0;       // workloads that wait for a node
  uint64_t orphans_held = 0;  // on all nodes
  Counters counters;
};

}  // namespace muster::scheduler
