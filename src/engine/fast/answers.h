// What the fast engine answers with: plain values that name clusters, needs and machines, never rows of its tables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/types.h"

namespace muster::engine::fast {

// An action with the profile of the need it is for, if it is for one.
struct NamedAction {
  Action action;
  std::optional<model::Profile> profile;
};

// A need that the last decision did not cover.
struct ShortNeed {
  NeedKey key;
  model::Profile profile;
  model::Resources shortage;
  int32_t age = 0;       // cycles in a row that it is short
  bool pending = false;  // not short: all it lacks is on its way to it, or waits for the reclaim budget
};

// What changed about which needs are short.
struct ShortChanges {
  struct Change {
    NeedKey key;
    int32_t priority = 0;
    NeedMemory memory;  // age_unmet 1: it became short in this cycle
  };
  // Needs that became short, and those that are short in another way: their memory says something else than one cycle
  // more of what it said when they were last told. In the order of decision.
  std::vector<Change> changed;
  // Needs that are no longer short, each once, ascending. A need whose memory was restored is among them if it is not
  // short.
  std::vector<NeedKey> ended;
};
// Called for every need that is short, changed or not; and with age 0 for one that is pending and remembered.
using ShortVisitor = std::function<void(int32_t priority, int32_t age)>;

// Machines that can serve a profile's need, regardless of who has them.
struct Available {
  model::Profile profile;
  int64_t idle = 0;
  int64_t speculative = 0;
  bool in_use = false;    // some serve a need
  model::Money price;     // of the cheapest that is free
  model::Resources each;  // what that one offers
};

}  // namespace muster::engine::fast
