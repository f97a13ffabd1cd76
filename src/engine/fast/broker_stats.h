// What several workers did in one cycle (broker.cc).
#pragma once

#include <cstdint>

namespace muster::engine::fast {

// How the speculation went. Claims are machines.
struct BrokerStats {
  uint64_t proposals_basic = 0;   // plans of plain needs, speculated or made in turn
  uint64_t proposals_gang = 0;    // all-or-nothing plans
  uint64_t nanos_basic = 0;       // what planning them took, by the clock of Parallel
  uint64_t nanos_gang = 0;        // the same
  uint64_t conflicts = 0;         // proposals whose buckets had moved
  uint64_t retries = 0;           // plans made again in turn
  uint64_t displacements = 0;     // accepted proposals that a need of higher precedence took machines from
  uint64_t accepted_claims = 0;   // tentative claims the broker accepted
  uint64_t displaced_claims = 0;  // and took back
  uint64_t claimed = 0;           // acquisitions that stand

  double conflict_fraction() const {
    const uint64_t proposals = proposals_basic + proposals_gang;
    return proposals == 0 ? 0 : static_cast<double>(conflicts) / static_cast<double>(proposals);
  }
};

}  // namespace muster::engine::fast
