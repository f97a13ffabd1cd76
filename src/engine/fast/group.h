// Group: machines that a decision need not tell apart, and what a cycle notes about them.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "engine/fast/id_set.h"
#include "engine/fast/ids.h"
#include "engine/fast/names.h"
#include "model/machine.h"

namespace muster::engine::fast {

// Whether a machine in this state serves, or last served, a cluster.
inline bool IsBound(model::MachineState state) {
  using model::MachineState;
  return state == MachineState::kConfigured || state == MachineState::kConfiguring || state == MachineState::kDraining;
}

// What all machines of a group have in common.
struct Terms {
  ClassId cls = kNoId;  // kNoId: of machines in no group
  model::MachineState state = model::MachineState::kUnspecified;
  ClusterId cluster = kNoId;
  StampId stamp = kNoStamp;
  KeyId pledge = kNoId;
  uint16_t hold = 0;  // HoldSets

  bool operator==(const Terms&) const = default;
};

inline uint64_t HashOf(const Terms& terms) {
  Hasher hasher;
  hasher.Add((uint64_t{terms.cls.value()} << 32) | static_cast<uint64_t>(terms.state));
  hasher.Add((uint64_t{terms.cluster.value()} << 32) | terms.stamp.value());
  hasher.Add((uint64_t{terms.hold} << 32) | terms.pledge.value());
  return hasher.value();
}

struct alignas(64) Group {
  // The first cache line is all that a steady cycle reads.
  ClassId cls = kNoId;
  model::MachineState state = model::MachineState::kUnspecified;
  bool pledge_ended : 1 = false;  // the pledge was ended in this cycle
  bool has_clocks : 1 = false;    // Configured: the unclaimed clock of some member may run
  bool restamped : 1 = false;     // in Inventory::restamped_
  bool kept : 1 = false;          // bound: what no need claimed stays with its gang, and counts as claimed
  uint16_t hold = 0;              // for which clusters they are on hold (HoldSets)
  uint32_t size = 0;              // members
  uint32_t cycle = 0;             // for which the fields of a cycle are valid (Inventory::Open)
  uint32_t claimed = 0;           // in this cycle
  ClaimId first_claim = kNoId;    // list of this cycle's claims on it
  ClaimId last_claim = kNoId;
  StampId stamp = kNoStamp;  // bound: whose they are
  KeyId owner = kNoId;       // bound: the key of the stamp
  KeyId pledge = kNoId;      // Idle, Creating, Draining
  ClusterId cluster = kNoId;
  NeedId held_for = kNoId;  // pledged: the gang that counts on all of it
  uint32_t held = 0;        // pledged: machines that single needs count on (phase 2)
  uint32_t changes = 0;     // counts changes of its members
  uint32_t settled = 0;     // bound: what its owner's need takes of it while it is settled
  uint32_t bound_at = 0;    // bound: its place in Cluster::bound when the cycle last walked it

  // Where a merge with tied groups split it last, for as long as `split_changes` equals `changes` (Planner::TakeTied).
  uint32_t split_changes = 0xffffffff;
  uint32_t split = 0;                 // so many were taken
  MachineId split_last = kNoMachine;  // the last taken
  MachineId split_next = kNoMachine;  // the first left
  // Clocks were kept for this many claimed members (Cycle::KeepClocks).
  uint32_t clock_changes = 0xffffffff;
  uint32_t clock_claimed = 0;
  int64_t oldest_clock = 0;  // of its unclaimed members
  IdSet members;
  IdSet::Cursor cursor;       // at or before the first unclaimed machine (after phase 2, that was not taken either)
  uint32_t cursor_at = 0;     // its ordinal
  uint32_t cursor_cycle = 0;  // for which it is valid

  Terms terms() const {
    return {.cls = cls, .state = state, .cluster = cluster, .stamp = stamp, .pledge = pledge, .hold = hold};
  }
};
static_assert(sizeof(Group) == 128);

}  // namespace muster::engine::fast
