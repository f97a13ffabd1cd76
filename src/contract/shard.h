// What operators ask of a running shard, as plain values: what it thinks of every need and machine, what it did lately,
// and the orders they may give it (orders.h). bigfleet.v1alpha1.ShardRead and muster.v1.Fleet are these on the wire
// (docs/wire.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/orders.h"
#include "contract/provider.h"
#include "model/machine.h"
#include "model/money.h"
#include "model/need.h"
#include "model/reason.h"
#include "model/resources.h"

namespace muster::contract {

// --- questions

// Needs in the order of decision. No cluster: all of them. `limit` 0: no limit.
struct InspectNeeds {
  std::string cluster_id;
  int32_t limit = 0;

  MUSTER_FIELDS(InspectNeeds, cluster_id, limit)
};

// Machines in the order of their ids. No states: all. No cluster: every cluster's, and unbound ones.
struct ListMachines {
  std::vector<model::MachineState> states;
  std::string cluster_id;

  MUSTER_FIELDS(ListMachines, states, cluster_id)
};

// The latest first. `limit` 0: as many as the shard keeps.
struct ListActions {
  std::string cluster_id;
  int32_t limit = 0;

  MUSTER_FIELDS(ListActions, cluster_id, limit)
};

// Clusters by id: sessions, roll-ups held or refused, pauses.
struct ListClusters {
  MUSTER_FIELDS(ListClusters)
};

struct NeedRef {
  std::string cluster_id;
  std::string fingerprint;
  std::string group;

  bool operator==(const NeedRef&) const = default;
  MUSTER_FIELDS(NeedRef, cluster_id, fingerprint, group)
};

// Why a machine (by id) or a need is where it is.
struct Explain {
  std::variant<std::string, NeedRef> subject;

  MUSTER_FIELDS(Explain, subject)
};

// Machines that an operator dropped, by id.
struct ListForgotten {
  MUSTER_FIELDS(ListForgotten)
};

// Appended to only: journals number the types. The orders are in orders.h.
using ShardRequest =
    std::variant<InspectNeeds, ListMachines, ListActions, ListClusters, Explain, SetActuation, RepairMachine,
                 ForgetMachine, ListForgotten, RecallMachine, AcceptLosses, DecommissionCluster>;

// --- answers

struct MatchingSupply {  // machines that match the need and can host its smallest unit
  int64_t idle = 0;
  int64_t configured = 0;
  int64_t speculative = 0;

  bool operator==(const MatchingSupply&) const = default;
  MUSTER_FIELDS(MatchingSupply, idle, configured, speculative)
};

struct DomainCoverage {
  std::string domain;
  int32_t coverage_per_mille = 0;
  bool satisfiable = false;

  bool operator==(const DomainCoverage&) const = default;
  MUSTER_FIELDS(DomainCoverage, domain, coverage_per_mille, satisfiable)
};

// What became of one need in the cycle. The wire's need is `need`, its cluster, arrival and fingerprint included.
struct NeedView {
  model::Need need;
  bool satisfied = false;
  model::Resources residual;
  int32_t claimed_machines = 0;
  int32_t bootstraps = 0;
  int32_t provisions = 0;
  std::string same_domain;  // gangs: the chosen one
  bool same_satisfiable = false;
  bool parked = false;
  int32_t parked_age_cycles = 0;
  int32_t age_cycles_unmet = 0;
  model::Reason reason = model::Reason::kNone;  // why it is short
  MatchingSupply supply;
  int32_t victims = 0;
  model::Resources capacity_freed;  // by the victims
  std::vector<DomainCoverage> same_candidates;
  bool has_session = true;
  bool pending = false;  // not satisfied, but all it lacks is on its way: no shortfall
  int64_t on_hold = 0;   // of the supply, machines that it may not acquire for now

  bool operator==(const NeedView&) const = default;
  MUSTER_FIELDS(NeedView, need, satisfied, residual, claimed_machines, bootstraps, provisions, same_domain,
                same_satisfiable, parked, parked_age_cycles, age_cycles_unmet, reason, supply, victims, capacity_freed,
                same_candidates, has_session, pending, on_hold)
};

// `total` counts after the filter and before the limit. Before the first cycle: cycle 0, no rows.
struct NeedsInspected {
  int64_t cycle = 0;
  WallTime computed_at;
  int32_t total = 0;
  std::vector<NeedView> needs;

  MUSTER_FIELDS(NeedsInspected, cycle, computed_at, total, needs)
};

struct MachineView {
  MachineRecord machine;
  std::string need_fingerprint;  // the need it was last claimed for
  std::string need_group;
  model::Reason reason = model::Reason::kNone;  // why it is where it is
  std::string hold;                             // why it may not be acquired for now; empty: it may
  std::optional<WallTime> hold_until;           // there is a hold
  bool missing = false;                         // the provider's lists no longer show it, and it is not given up
  bool fenced = false;                          // the provider fenced a call for it: no more calls are made

  bool operator==(const MachineView&) const = default;
  MUSTER_FIELDS(MachineView, machine, need_fingerprint, need_group, reason, hold, hold_until, missing, fenced)
};

struct MachinesListed {
  std::vector<MachineView> machines;

  MUSTER_FIELDS(MachinesListed, machines)
};

// One decided action and what became of it. `outcome` is "pending" while it is under way, "suppressed" or "dryrun"
// where a mode kept it from being carried out, else how it ended: "success", or the kind of failure, with its message
// as `error`.
struct ActionView {
  int64_t cycle = 0;
  WallTime decided;
  std::string kind;  // Bootstrap, Provision, Preempt, Reclaim, Delete, Repair
  std::string machine_id;
  std::string cluster_id;
  std::string need_fingerprint;
  std::string need_group;
  model::Reason reason = model::Reason::kNone;
  int64_t grace_seconds = 0;
  std::string outcome;
  std::string error;

  bool operator==(const ActionView&) const = default;
  MUSTER_FIELDS(ActionView, cycle, decided, kind, machine_id, cluster_id, need_fingerprint, need_group, reason,
                grace_seconds, outcome, error)
};

struct ActionsListed {
  std::vector<ActionView> actions;

  MUSTER_FIELDS(ActionsListed, actions)
};

// The most that a cluster may ask for and have; what is not given has no limit.
struct Ceiling {
  std::optional<int32_t> highest_priority;
  std::optional<int64_t> most_machines;
  std::optional<model::Money> most_per_hour;

  bool operator==(const Ceiling&) const = default;
  MUSTER_FIELDS(Ceiling, highest_priority, most_machines, most_per_hour)
};
// By cluster; kEveryOther is that of clusters without a line of their own.
using Ceilings = std::map<std::string, Ceiling, std::less<>>;
inline constexpr std::string_view kEveryOther = "*";

// A cluster's ceiling, and how far it is filled.
struct CeilingView {
  std::optional<int32_t> highest_priority;
  std::optional<int64_t> most_machines;
  std::optional<model::Money> most_per_hour;
  int64_t machines = 0;   // it has or that are on their way to it
  model::Money per_hour;  // of them
  bool reached = false;   // something was decided for it that the ceiling does not allow

  bool operator==(const CeilingView&) const = default;
  MUSTER_FIELDS(CeilingView, highest_priority, most_machines, most_per_hour, machines, per_hour, reached)
};

struct ClusterView {
  std::string cluster_id;
  bool session = false;
  bool gate_open = false;
  ActuationMode mode = ActuationMode::kActive;  // its own or the shard's, whichever is stricter
  int32_t needs = 0;                            // rows of the accepted demand
  int32_t configured = 0;                       // machines bound to it
  int32_t held_rollups = 0;                     // suspicious ones in a row; the third is accepted
  std::string last_refusal;            // why the latest refused or held roll-up was not applied; empty after a good one
  int32_t reclaims_in_window = 0;      // of the budget
  std::optional<WallTime> hold_until;  // its Configures failed: it acquires nothing before
  OrderView last_order;                // about it or one of its machines; no kind: none
  int32_t missing = 0;                 // of its machines
  bool decommissioned = false;         // by order: it is gone, and its machines are reclaimed
  std::optional<CeilingView> ceiling;  // none: it has no ceiling
  bool losses_failed = false;          // an alert waits for an operator: too many of its machines failed at once
  bool losses_vanished = false;        // the same: vanished
  int32_t failing = 0;                 // of its machines, those called Failed in masses and not given up
  int32_t lacking = 0;                 // machines that it lost while the shard was down and that are not given up
  int32_t growth_waits = 0;            // machines that wait until fewer are being configured for it
  int32_t trial_waits = 0;             // actions for it that wait for a Configure that ends well

  bool operator==(const ClusterView&) const = default;
  MUSTER_FIELDS(ClusterView, cluster_id, session, gate_open, mode, needs, configured, held_rollups, last_refusal,
                reclaims_in_window, hold_until, last_order, missing, decommissioned, ceiling, losses_failed,
                losses_vanished, failing, lacking, growth_waits, trial_waits)
};

struct ClustersListed {
  std::vector<ClusterView> clusters;
  ActuationMode shard_mode = ActuationMode::kActive;
  OrderView last_order;        // about the whole shard, or a machine that serves no cluster; no kind: none
  bool losses_failed = false;  // alerts that wait for an operator, of the fleet as a whole
  bool losses_vanished = false;

  MUSTER_FIELDS(ClustersListed, clusters, shard_mode, last_order, losses_failed, losses_vanished)
};

// The order by which each machine was forgotten.
struct ForgottenListed {
  std::vector<OrderView> orders;

  MUSTER_FIELDS(ForgottenListed, orders)
};

struct Explained {
  int64_t cycle = 0;
  std::vector<std::string> lines;

  MUSTER_FIELDS(Explained, cycle, lines)
};

using ShardReply = std::variant<NeedsInspected, MachinesListed, ActionsListed, ClustersListed, Explained, ActuationSet,
                                OrderTaken, ForgottenListed, LossesAccepted>;

// The port. Thread-safety: any thread may ask, and `done` may run on any thread, also before Ask returns; it must not
// block.
class ShardPort {
 public:
  using Answer = std::function<void(Result<ShardReply>)>;

  virtual ~ShardPort() = default;
  // `done` runs exactly once: the reply that belongs to the request, or why there is none: INVALID_ARGUMENT naming the
  // field, NOT_FOUND for a machine, need or cluster the shard does not have, ABORTED for a machine that is not Failed,
  // UNAVAILABLE until the shard has seen its machines or while its state cannot be stored.
  virtual void Ask(ShardRequest request, Answer done) = 0;
};

}  // namespace muster::contract
