// Need: one cluster's aggregate demand for one profile. It says how much, never how many machines: that is the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "model/profile.h"
#include "model/resources.h"

namespace muster::model {

struct Need {
  std::string cluster;
  Profile profile;
  Resources aggregate;  // the sum of everything that must run
  Resources min_unit;   // the largest single unit: every machine that serves the need can host one
  std::string group;    // co-location group; empty: none
  WallTime arrival;     // when the shard first accepted it; zero: unknown

  bool operator==(const Need&) const = default;
  MUSTER_FIELDS(Need, cluster, profile, aggregate, min_unit, group, arrival)
};

// Everything a need says but its cluster, as one number: a row of a roll-up that did not change is told by it.
uint64_t RowDigest(const Need& need);

// What the need of a profile says besides amounts and its group, in texts with a length each.
size_t TextsOf(const Profile& profile);
// With the group. A shard refuses a roll-up with a larger need: a need is a row of what operators of the fleet ask for,
// and one that is too large for an answer would keep them from seeing all others.
inline constexpr size_t kMostTextsOfNeed = 64 << 10;

// Sums needs of equal (cluster, fingerprint, group): aggregates added, min_units maxed per dimension, the earliest
// known arrival kept. Result in order of (cluster, fingerprint, group). OUT_OF_RANGE when a sum does not fit.
Result<std::vector<Need>> Aggregate(const std::vector<Need>& needs);

}  // namespace muster::model
