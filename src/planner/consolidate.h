// Consolidation: which nodes of a running cluster could go, in which order, and what that saves.
//
//   MakeConsolidation(request) -> Consolidation
//
// A node can go if every unit on it has a place on the nodes that stay or on cheaper machines bought for it
// (emptying.h). The steps come in waves: machines are bought and Ready before the first eviction of a wave, and a wave
// evicts from each budget no more than it allows; the next wave begins when the units of the last are Ready again.
// Units only ever move to nodes that stay, and only in ways that break no hard rule at any time on the way (movable.h).
// Every state between two waves was judged by a checker (consolidation_checker.h) before the answer is returned.
//
// Cannot go: nodes whose facts say so (control plane, local volumes), and nodes with a unit that may not be evicted
// (bare, do-not-disrupt, safe-to-evict=false), that is under two budgets or under one that allows none, that must share
// its node with other units, or whose own rules do not hold where it is.
//
// Thread-safety: functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "model/money.h"
#include "planner/plan.h"

namespace muster::planner {

struct Eviction {
  std::string unit;
  std::string from;
  std::string to;

  bool operator==(const Eviction&) const = default;
};

struct Wave {
  std::vector<PlannedMachine> machines;  // to buy, and Ready before the evictions
  std::vector<Eviction> evictions;
  std::vector<std::string> nodes;  // empty after the wave: they go

  bool operator==(const Wave&) const = default;
};

struct Stay {
  std::string node;
  std::string because;  // a sentence

  bool operator==(const Stay&) const = default;
};

struct Consolidation {
  std::vector<Wave> waves;
  std::vector<Stay> cannot_go;
  std::vector<std::string> not_worth;  // nodes that could go if their units had a cheaper place
  std::vector<std::string> unpriced;   // nodes that cannot be judged
  model::Money saved;                  // per hour: the nodes that go, less the machines that are bought

  bool operator==(const Consolidation&) const = default;
};

// Keep and pending units of the request are not read; candidates are what may be bought, none is fine. Effort counts
// steps, as in MakePlan, so the same request has the same answer on every machine. INVALID_ARGUMENT as MakePlan;
// INTERNAL with the checker's findings, which is a bug of the planner.
Result<Consolidation> MakeConsolidation(const Request& request);

}  // namespace muster::planner
