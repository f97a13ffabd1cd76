// What several workers did in one cycle (broker.cc).
#pragma once

#include <cstdint>

namespace muster::engine::fast {

// The plans of one mode. Every need that was planned has one that stands.
struct ModeStats {
  uint64_t proposals = 0;      // plans, speculated or made in turn
  uint64_t nanos = 0;          // what planning them took, by the clock of Parallel
  uint64_t conflicts = 0;      // proposals whose buckets had moved
  uint64_t displacements = 0;  // accepted proposals that a need of higher precedence took machines from
  uint64_t retries = 0;        // plans made again in turn; each of them stands

  uint64_t commits() const { return proposals - conflicts - displacements; }
  // Conflicts per plan that stands.
  double conflict_fraction() const {
    return commits() == 0 ? 0 : static_cast<double>(conflicts) / static_cast<double>(commits());
  }
};

// How the speculation went. Claims are machines.
struct BrokerStats {
  ModeStats incremental;          // plain needs
  ModeStats all_or_nothing;       // gangs: planned in turn, so that they neither conflict nor are displaced
  uint64_t accepted_claims = 0;   // tentative claims the broker accepted
  uint64_t displaced_claims = 0;  // and took back
  uint64_t claimed = 0;           // acquisitions that stand

  ModeStats& of(bool is_gang) { return is_gang ? all_or_nothing : incremental; }
  ModeStats total() const {
    return {.proposals = incremental.proposals + all_or_nothing.proposals,
            .nanos = incremental.nanos + all_or_nothing.nanos,
            .conflicts = incremental.conflicts + all_or_nothing.conflicts,
            .displacements = incremental.displacements + all_or_nothing.displacements,
            .retries = incremental.retries + all_or_nothing.retries};
  }
};

}  // namespace muster::engine::fast
