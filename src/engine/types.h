// What the decision engine reads and writes, as plain values.
//
//   Decide(world, memory, now, policy) -> Decision, and memory as it must be at the next cycle
//
// World is what the shard knows; Memory is what must survive from one cycle to the next and through a restart; Policy
// is what an operator may set. docs/engine.md tells how a decision is made.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/machine.h"
#include "model/need.h"
#include "model/reason.h"

namespace muster::engine {

// Names a need over cycles. Machines, pledges and parking belong to a key; equal rows share it.
struct NeedKey {  // in durable rows of the shard: it cannot gain a field
  std::string cluster;
  std::string fingerprint;
  std::string group;

  auto operator<=>(const NeedKey&) const = default;
  MUSTER_FIELDS(NeedKey, cluster, fingerprint, group)
};
NeedKey KeyOf(const model::Need& need);

struct ClusterState {
  bool session = true;    // without one the cluster is credited only: it acquires, preempts and loses nothing
  bool gate_open = true;  // shut: no surplus is taken from it and nothing reclaimed; Preempt is not barred
  int64_t reclaims_allowed = std::numeric_limits<int64_t>::max();  // what the shard's rails leave for this cycle
  bool paused = false;   // paused or in dry run: decided as if it had no session
  bool on_hold = false;  // its Configures fail: it acquires and preempts nothing for now, and may still lose machines

  // Others may take from it, and it gives back what it does not use.
  bool takes_part() const { return session && !paused; }
  bool acquires() const { return takes_part() && !on_hold; }

  bool operator==(const ClusterState&) const = default;
};

// Machines that are sold from one stock.
struct StockClass {
  std::string instance_type;
  std::string zone;
  model::CapacityType capacity_type = model::CapacityType::kUnspecified;

  auto operator<=>(const StockClass&) const = default;
  MUSTER_FIELDS(StockClass, instance_type, zone, capacity_type)
};
StockClass StockClassOf(const model::Machine& machine);

// What may not be acquired for now, after calls that failed. Machines on hold exist in every other respect.
struct Holds {
  std::set<std::string> machines;                       // ids: by no cluster
  std::set<std::pair<std::string, std::string>> pairs;  // (machine id, cluster): not by this cluster
  std::set<StockClass> classes;                         // out of stock: none of their Speculative machines

  bool operator==(const Holds&) const = default;
};

struct World {
  std::vector<model::Machine> machines;          // ids unique
  std::vector<model::Need> needs;                // arrivals stamped (NeedsTable); position is the last tie-break
  std::map<std::string, ClusterState> clusters;  // one not listed has no session and a shut gate
  Holds holds;
  bool counts_ages = true;  // this cycle adds to ages; false for one that follows another within the cycle interval
};

struct VictimWeights {  // in millionths
  int64_t priority_gap = 1'000'000;
  int64_t drain_speed = 100'000;
  int64_t interruption = 100'000;
  int64_t reclamation = 100'000;

  MUSTER_FIELDS(VictimWeights, priority_gap, drain_speed, interruption, reclamation)
};

struct Policy {
  Duration surplus_hold = 120s;
  Duration release_hold_on_demand = 10min;  // owned hardware has no hold: it is never released
  Duration release_hold_spot = 1min;
  VictimWeights victim_weights;
  int32_t park_after = 8;      // cycles without hope until a gang is parked
  int32_t reprobe_every = 32;  // a parked gang is tried in one cycle of so many
  // How often a plan that was overtaken may be made again. The first time is in its need's turn and stands, so that
  // more than one changes nothing; 0: nothing is planned ahead. Decisions are the same for every value.
  int32_t phase1_retries = 10;

  MUSTER_FIELDS(Policy, surplus_hold, release_hold_on_demand, release_hold_spot, victim_weights, park_after,
                reprobe_every, phase1_retries)
};

struct MachineMemory {
  std::optional<model::Attribution> attribution;  // of a bound machine: the need that claimed it last
  std::optional<NeedKey> pledge;                  // Creating, Draining or Idle: the need it was bought or taken for
  std::optional<MonoTime> unclaimed_since;        // Configured and claimed by nobody
  std::optional<MonoTime> idle_since;
  std::optional<MonoTime> draining_since;
  bool instead = false;  // Draining: surplus beyond the reclaim budget, taken instead of a machine that serves somebody

  bool operator==(const MachineMemory&) const = default;
  MUSTER_FIELDS(MachineMemory, attribution, pledge, unclaimed_since, idle_since, draining_since, instead)
};

struct NeedMemory {
  int32_t age_unmet = 0;    // cycles in a row it was short and not pending
  int32_t hopeless = 0;     // gangs: cycles in a row without a domain that could hold it
  int64_t supply_seen = 0;  // gangs: matching supply when it was last tried

  bool operator==(const NeedMemory&) const = default;
  MUSTER_FIELDS(NeedMemory, age_unmet, hopeless, supply_seen)
};

struct DrainMean {  // the value of a durable row of the shard: it cannot gain a field
  int64_t total_millis = 0;
  int64_t drains = 0;

  bool operator==(const DrainMean&) const = default;
  MUSTER_FIELDS(DrainMean, total_millis, drains)
};

struct Memory {
  std::map<std::string, MachineMemory> machines;  // by machine id; rows that say nothing are left out
  std::map<NeedKey, NeedMemory> needs;            // rows that say nothing are left out
  std::map<std::string, DrainMean> drains;        // by instance type

  bool operator==(const Memory&) const = default;
  MUSTER_FIELDS(Memory, machines, needs, drains)
};

enum class ActionKind : uint8_t { kBootstrap, kProvision, kPreempt, kReclaim, kDelete };
std::string_view ActionKindName(ActionKind kind);  // "Bootstrap", ...

struct Action {
  ActionKind kind = ActionKind::kBootstrap;
  std::string machine;
  std::string cluster;          // whom it is bound to, or taken from; empty for Delete
  std::optional<NeedKey> need;  // whom it is for: all but a surplus Reclaim and a Delete
  model::Reason reason = model::Reason::kNone;
  std::chrono::seconds grace{};  // Preempt and Reclaim

  bool operator==(const Action&) const = default;
  MUSTER_FIELDS(Action, kind, machine, cluster, need, reason, grace)
};

enum class ClaimKind : uint8_t { kCredit, kCreating, kBootstrap, kProvision };
std::string_view ClaimKindName(ClaimKind kind);  // "credit", "creating", "bootstrap", "provision"

struct Claim {
  std::string machine;
  size_t need = 0;  // index into Decision::needs
  ClaimKind kind = ClaimKind::kCredit;

  bool operator==(const Claim&) const = default;
  MUSTER_FIELDS(Claim, machine, need, kind)
};

struct DomainScore {
  std::string domain;              // the values of the Same keys, in the order of the keys, joined by '/'
  int64_t coverage_per_mille = 0;  // of the gang, all dimensions together
  bool satisfiable = false;

  bool operator==(const DomainScore&) const = default;
};

struct SupplyCount {  // machines that can serve the need
  int64_t idle = 0;
  int64_t speculative = 0;
  int64_t configured = 0;
  int64_t on_hold = 0;  // of the idle and speculative ones, those it may not acquire for now

  bool operator==(const SupplyCount&) const = default;
};

// What became of one need of the normalised list. Describes phase 1's claims.
struct NeedVerdict {
  model::Need need;          // normalised; of a folded one, the sum of its gangs
  std::vector<size_t> rows;  // positions in World::needs it stands for: one, or the folded gangs
  bool satisfied = false;
  bool pending = false;       // not satisfied, but all it lacks is on its way: no shortfall
  model::Resources residual;  // what is still short
  int64_t credited = 0;       // claims by kind
  int64_t creating = 0;
  int64_t bootstraps = 0;
  int64_t provisions = 0;
  std::optional<std::string> domain;  // gangs: the chosen one
  std::vector<DomainScore> domains;   // gangs: best first, at most six
  SupplyCount supply;
  int64_t victims = 0;  // machines phase 2 takes for it in this cycle
  int64_t pledged = 0;  // machines draining or held for it from earlier cycles
  int64_t lost = 0;     // claimed machines it loses to phase 2 in this cycle
  bool parked = false;
  bool has_session = true;
  bool paused = false;                          // its cluster is paused or in dry run
  int32_t age = 0;                              // cycles in a row it is short, this one included; 0 while pending
  model::Reason reason = model::Reason::kNone;  // why it is short, or what it waits for

  bool operator==(const NeedVerdict&) const = default;
};

struct MachineVerdict {
  std::string machine;
  std::optional<size_t> need;                   // claimed by, or held for: index into Decision::needs
  model::Reason reason = model::Reason::kNone;  // why it is where it is

  bool operator==(const MachineVerdict&) const = default;
};

struct Decision {
  std::vector<Action> actions;           // phase 1 in the order of needs, then phase 2, reclaims, releases
  std::vector<Claim> claims;             // by need, then machine id
  std::vector<NeedVerdict> needs;        // in the order of decision
  std::vector<MachineVerdict> machines;  // by machine id

  bool operator==(const Decision&) const = default;
};

// Claims and ordered actions in one number: equal decisions, equal digests, on every machine.
uint64_t Digest(const Decision& decision);

}  // namespace muster::engine
