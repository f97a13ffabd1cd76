// Plan: which machines a set of units takes, what they cost, and where every unit would run.
//
//   MakePlan(request) -> Plan
//
// A pure function: the same request gives the same plan on every machine, for effort is counted in steps. Every plan
// was judged by the checker (checker.h) before it is returned and, unless `exact`, was replayed with the default
// scoring of Kubernetes (replay.h). docs/planner.md tells how it decides.
//
// Thread-safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "model/money.h"
#include "model/resources.h"
#include "placement/types.h"
#include "planner/catalogue.h"

namespace muster::planner {

// What the planner knows of a node besides what placement knows. A node without an entry is unpriced and may go.
struct NodeFacts {
  std::optional<model::Money> price;  // per hour; nothing: the catalogue has none for it
  std::string type;
  std::string zone;
  std::string pool;
  model::CapacityType capacity = model::CapacityType::kUnspecified;
  std::string stays_because;  // a sentence; empty: it may go ("control plane", "local volume of pod x/y")
  bool fixed = false;         // part of every fleet, the ideal one too, with all that is placed on it

  bool operator==(const NodeFacts&) const = default;
};

enum class Keep : uint8_t {
  kNone,   // the ideal fleet: nodes are left out and their units planned afresh, but for nodes that are fixed
  kNodes,  // placed units stay where they are and machines are added for the pending ones
};
std::string_view KeepName(Keep keep);  // "none", "nodes"
Result<Keep> ParseKeep(std::string_view name);

enum class Effort : uint8_t { kFast, kBest };
std::string_view EffortName(Effort effort);  // "fast", "best"
Result<Effort> ParseEffort(std::string_view name);

struct Request {
  placement::World world;  // kinds, nodes, placed units, namespaces
  std::vector<placement::Unit> pending;
  // Units that belong to their node, such as pods of DaemonSets: neighbours of what comes to nodes that are kept, and
  // never planned. Their kinds ask for nothing: what they take is reserved on the node. A consolidation leaves them
  // out.
  std::vector<placement::PlacedUnit> residents;
  std::map<std::string, NodeFacts> nodes;  // by node id
  std::vector<Candidate> candidates;
  Keep keep = Keep::kNone;
  Effort effort = Effort::kFast;
  bool exact = false;  // no replay: the units are where the plan says, and nowhere else
  uint64_t replay_seed = 1;
  // Asked now and then with the steps done and the steps allowed; false stops the search, and the plan says so.
  std::function<bool(uint64_t done, uint64_t allowed)> go_on;
};

// INVALID_ARGUMENT if a request is malformed: an id twice, a kind out of range, a negative price, a resident on an
// unknown node or with a request.
Status CheckStructure(const Request& request);

struct PlannedMachine {
  std::string id;            // "plan-0001": as a node's id in `assignments`
  uint32_t candidate = 0;    // in Request::candidates
  bool from_replay = false;  // added because the replay left units pending

  bool operator==(const PlannedMachine&) const = default;
};

struct Assignment {
  std::string unit;
  std::string node;              // a machine of the plan, or a node that is kept
  std::vector<int32_t> devices;  // of the node, ascending

  bool operator==(const Assignment&) const = default;
};

struct Unplaced {
  std::string unit;
  placement::Reason reason = placement::Reason::kNone;
  std::string detail;        // the figures: "memory short by 2Gi on the largest type"
  std::string nearest_type;  // that would take it if `nearest_needs` were so; empty: the catalogue is empty
  std::string nearest_needs;

  bool operator==(const Unplaced&) const = default;
};

// Of one resource over the machines and kept nodes, in thousandths. GPUs are the resource `devices`.
struct Utilisation {
  std::string resource;
  int64_t requested = 0;
  int64_t allocatable = 0;

  bool operator==(const Utilisation&) const = default;
};

// The nodes that a plan keeps: all of them, or with Keep::kNone those that are fixed. Refers to the request.
class KeptNodes {
 public:
  explicit KeptNodes(const Request& request);
  bool Has(const std::string& node) const;
  bool any() const { return all_ || !ids_.empty(); }

 private:
  bool all_ = false;
  std::unordered_set<std::string_view> ids_;
};

// What a default scheduler made of the machines.
struct ReplayReport {
  bool done = false;             // false: `exact`
  int64_t pending_at_first = 0;  // units without a node on the machines that were planned
  int64_t pending_at_last = 0;   // with the machines that were added; replay.h says what can keep units out
  int64_t machines_added = 0;
  model::Money cost_added;
  int64_t rounds = 0;

  bool operator==(const ReplayReport&) const = default;
};

struct Plan {
  std::vector<PlannedMachine> machines;  // to buy; by pool, zone, type
  std::vector<Assignment> assignments;   // one for each unit that has a place and was asked for, in the request's order
  std::vector<Unplaced> unplaced;        // in the request's order
  std::optional<model::Money> cost_before;  // of the nodes of the request; nothing: one of them is unpriced
  model::Money cost_machines;               // of `machines`, what the replay added among them
  std::optional<model::Money> cost_after;   // with the nodes that are kept; nothing: one of them is unpriced
  std::vector<std::string> unpriced_nodes;
  model::Money lower_bound;              // no machines that carry the placed units cost less: a cover of their sums
  std::vector<Utilisation> utilisation;  // by name
  ReplayReport replay;
  uint64_t steps = 0;          // of the search
  bool stopped_early = false;  // `go_on` said so: another run may give another plan

  bool operator==(const Plan&) const = default;
};

// INVALID_ARGUMENT as CheckStructure; INTERNAL with the checker's findings if the plan would break a rule, which is a
// bug of the planner.
Result<Plan> MakePlan(const Request& request);

// Machines, costs and assignments in one number.
uint64_t Digest(const Plan& plan);

}  // namespace muster::planner
