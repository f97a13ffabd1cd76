// NeedsTable: every cluster's demand as last accepted, whole. A roll-up replaces what its cluster said before, never
// merges with it, and an empty one withdraws everything.
//
// Arrival is when a roll-up first listed (cluster, fingerprint, group); it is kept while the key stays listed and never
// goes back, whatever the wall clock does: it decides who is served first among equals.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/types.h"
#include "model/need.h"

namespace muster::engine {

class NeedsTable {
 public:
  // `rows` in the roll-up's order; their arrivals are set here. A row may name its arrival: it
  // counts when its key is listed for the first time.
  void Replace(const std::string& cluster, std::vector<model::Need> rows, WallTime now);
  // All rows, clusters by id, each cluster's in its own order.
  std::vector<model::Need> Rows() const;

  const std::map<NeedKey, WallTime>& arrivals() const { return arrivals_; }
  // For a restart: arrivals of keys that are listed again keep their place.
  void RestoreArrivals(std::map<NeedKey, WallTime> arrivals);

 private:
  std::map<std::string, std::vector<model::Need>> rows_;
  std::map<NeedKey, WallTime> arrivals_;
  WallTime latest_;  // no new arrival is earlier
};

}  // namespace muster::engine
