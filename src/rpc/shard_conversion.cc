#include "rpc/shard_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/fleet.pb.h"
#include "rpc/provider_conversion.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_optional.h"
#include "rpc/wire_table.h"

namespace muster::rpc {

namespace pb = bigfleet::v1alpha1;

namespace {

using model::Reason;

constexpr const char* kModes = "a mode; use 1 (active), 2 (dry-run) or 3 (paused)";
constexpr Numbers kMode{.least = 1, .most = 3, .what = kModes};
constexpr Numbers kModeOrNone{.least = 0, .most = 3, .what = kModes};
constexpr Required kMachineId{"name the machine"};
constexpr Required kClusterId{"name the cluster"};

}  // namespace

// Requests.

// An order: all but `who`, which the service tells by the connection.
#define MUSTER_WIRE_ORDER(Value, Wire, ...)                                     \
  MUSTER_WIRE_SOME(Value, Wire, __VA_ARGS__);                                   \
  Result<Value> FromWire(const Wire& wire) { return ReadByTable<Value>(wire); } \
  void ToWire(const Value& value, Wire& wire) { WriteTable(value, wire); }      \
  static_assert(true)

MUSTER_WIRE_REQUEST(contract::InspectNeeds, pb::InspectNeedsRequest, MUSTER_WIRE(cluster_id),
                    MUSTER_WIRE(limit, Count()));
MUSTER_WIRE_REQUEST(contract::ListMachines, v1::ListMachinesRequest, MUSTER_WIRE(states), MUSTER_WIRE(cluster_id));
MUSTER_WIRE_REQUEST(contract::ListActions, v1::ListActionsRequest, MUSTER_WIRE(cluster_id),
                    MUSTER_WIRE(limit, Count()));
MUSTER_WIRE_REQUEST(contract::ListClusters, v1::ListClustersRequest);
MUSTER_WIRE_REQUEST(contract::ListForgotten, v1::ListForgottenRequest);
MUSTER_WIRE_ORDER(contract::SetActuation, v1::SetActuationRequest, MUSTER_WIRE(cluster_id), MUSTER_WIRE(mode, kMode),
                  MUSTER_WIRE(reason));
MUSTER_WIRE_ORDER(contract::RepairMachine, v1::RepairMachineRequest, MUSTER_WIRE(machine_id, kMachineId),
                  MUSTER_WIRE(reason));
MUSTER_WIRE_ORDER(contract::ForgetMachine, v1::ForgetMachineRequest, MUSTER_WIRE(machine_id, kMachineId),
                  MUSTER_WIRE(reason));
MUSTER_WIRE_ORDER(contract::RecallMachine, v1::RecallMachineRequest, MUSTER_WIRE(machine_id, kMachineId),
                  MUSTER_WIRE(reason));
MUSTER_WIRE_ORDER(contract::AcceptLosses, v1::AcceptLossesRequest, MUSTER_WIRE(cluster_id), MUSTER_WIRE(reason));
MUSTER_WIRE_ORDER(contract::DecommissionCluster, v1::DecommissionClusterRequest, MUSTER_WIRE(cluster_id, kClusterId),
                  MUSTER_WIRE(reason));
MUSTER_WIRE_PART(contract::NeedRef, v1::NeedRef, MUSTER_WIRE(cluster_id, Required("say whose need it is")),
                 MUSTER_WIRE(fingerprint, Required("InspectNeeds tells it")), MUSTER_WIRE(group));

Result<contract::Explain> FromWire(const v1::ExplainRequest& wire) {
  switch (wire.subject_case()) {
    case v1::ExplainRequest::kMachineId:
      if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) {
        return std::unexpected(given);
      }
      return contract::Explain{.subject = wire.machine_id()};
    case v1::ExplainRequest::kNeed: {
      MUSTER_ASSIGN_OR_RETURN(contract::NeedRef need, ReadByTable<contract::NeedRef>(wire.need(), "need"));
      return contract::Explain{.subject = std::move(need)};
    }
    case v1::ExplainRequest::SUBJECT_NOT_SET: break;
  }
  return Refuse("", "subject", "missing; name a machine_id or a need");
}

void ToWire(const contract::Explain& request, v1::ExplainRequest& wire) {
  if (const auto* machine = std::get_if<std::string>(&request.subject)) return wire.set_machine_id(*machine);
  WriteTable(std::get<contract::NeedRef>(request.subject), *wire.mutable_need());
}

// Answers in one message.

MUSTER_WIRE_PART(contract::ActionView, v1::ActionView, MUSTER_WIRE(cycle), MUSTER_WIRE_AS(decided, decided_unix_nanos),
                 MUSTER_WIRE(kind), MUSTER_WIRE(machine_id), MUSTER_WIRE(cluster_id), MUSTER_WIRE(need_fingerprint),
                 MUSTER_WIRE(need_group), MUSTER_WIRE(reason), MUSTER_WIRE(grace_seconds), MUSTER_WIRE(outcome),
                 MUSTER_WIRE(error, AnyBytes()));
MUSTER_WIRE_PART(contract::OrderView, v1::OrderView, MUSTER_WIRE(kind), MUSTER_WIRE(cluster_id),
                 MUSTER_WIRE(machine_id), MUSTER_WIRE(who), MUSTER_WIRE(reason, AnyBytes()),
                 MUSTER_WIRE_AS(at, at_unix_nanos));
MUSTER_WIRE_PART(contract::CeilingView, v1::Ceiling, MUSTER_WIRE_OPTIONAL(highest_priority),
                 MUSTER_WIRE_OPTIONAL(most_machines), MUSTER_WIRE_OPTIONAL(most_per_hour), MUSTER_WIRE(machines),
                 MUSTER_WIRE(per_hour), MUSTER_WIRE(reached));
MUSTER_WIRE_PART(contract::ClusterView, v1::ClusterView, MUSTER_WIRE(cluster_id), MUSTER_WIRE(session),
                 MUSTER_WIRE(gate_open), MUSTER_WIRE(mode, kMode), MUSTER_WIRE(needs), MUSTER_WIRE(configured),
                 MUSTER_WIRE(held_rollups), MUSTER_WIRE(last_refusal, AnyBytes()), MUSTER_WIRE(reclaims_in_window),
                 MUSTER_WIRE(last_order), MUSTER_WIRE_AS(hold_until, hold_until_unix_nanos), MUSTER_WIRE(missing),
                 MUSTER_WIRE(decommissioned), MUSTER_WIRE_OPTIONAL(ceiling), MUSTER_WIRE(losses_failed),
                 MUSTER_WIRE(losses_vanished), MUSTER_WIRE(failing), MUSTER_WIRE(lacking), MUSTER_WIRE(growth_waits),
                 MUSTER_WIRE(trial_waits));
MUSTER_WIRE_REPLY(contract::ActionsListed, v1::ListActionsResponse, MUSTER_WIRE(actions));
MUSTER_WIRE_REPLY(contract::ClustersListed, v1::ListClustersResponse, MUSTER_WIRE(clusters),
                  MUSTER_WIRE(shard_mode, kModeOrNone), MUSTER_WIRE(last_order), MUSTER_WIRE(losses_failed),
                  MUSTER_WIRE(losses_vanished));
MUSTER_WIRE_REPLY(contract::ForgottenListed, v1::ListForgottenResponse, MUSTER_WIRE(orders));
MUSTER_WIRE_REPLY(contract::Explained, v1::ExplainResponse, MUSTER_WIRE(cycle), MUSTER_WIRE(lines, AnyBytes()));
MUSTER_WIRE_REPLY(contract::ActuationSet, v1::SetActuationResponse, MUSTER_WIRE(previous, kModeOrNone));
MUSTER_WIRE_REPLY(contract::OrderTaken, v1::RepairMachineResponse);
MUSTER_WIRE_REPLY(contract::OrderTaken, v1::ForgetMachineResponse);
MUSTER_WIRE_REPLY(contract::OrderTaken, v1::RecallMachineResponse);
MUSTER_WIRE_REPLY(contract::LossesAccepted, v1::AcceptLossesResponse, MUSTER_WIRE(missing), MUSTER_WIRE(failed));
MUSTER_WIRE_REPLY(contract::OrderTaken, v1::DecommissionClusterResponse);

// Rows of streamed answers. What the tables of views leave out is read and written by hand: needs and machines, and
// what a view says only under a condition.

MUSTER_WIRE_SOME(contract::NeedsInspected, pb::InspectNeedsHeader, MUSTER_WIRE(cycle),
                 MUSTER_WIRE_AS(computed_at, computed_at_unix_nanos), MUSTER_WIRE_AS(total, total_needs));
MUSTER_WIRE_SOME(contract::MachineView, v1::MachineView, MUSTER_WIRE(need_fingerprint), MUSTER_WIRE(need_group),
                 MUSTER_WIRE(reason), MUSTER_WIRE(hold, AnyBytes()), MUSTER_WIRE_AS(hold_until, hold_until_unix_nanos),
                 MUSTER_WIRE(missing), MUSTER_WIRE(fenced));
MUSTER_WIRE_PART(contract::DomainCoverage, pb::DomainCoverage, MUSTER_WIRE(domain), MUSTER_WIRE(coverage_per_mille),
                 MUSTER_WIRE(satisfiable));
MUSTER_WIRE_SOME(contract::NeedView, pb::NeedView, MUSTER_WIRE_AS(need.cluster, cluster_id),
                 MUSTER_WIRE_AS(need.arrival, arrival_unix_nanos), MUSTER_WIRE(satisfied),
                 MUSTER_WIRE_AS(claimed_machines, claimed_machine_count, Count()),
                 MUSTER_WIRE_AS(bootstraps, bootstrap_count, Count()),
                 MUSTER_WIRE_AS(provisions, provision_count, Count()), MUSTER_WIRE(same_domain),
                 MUSTER_WIRE(same_satisfiable), MUSTER_WIRE_AS(parked, acquisition_parked),
                 MUSTER_WIRE(parked_age_cycles, Count()), MUSTER_WIRE(age_cycles_unmet, Count()),
                 MUSTER_WIRE(same_candidates));

namespace {

constexpr std::pair<Reason, pb::UnmetReason> kUnmet[] = {
    {Reason::kPriorityStarved, pb::UNMET_REASON_PRIORITY_STARVED},
    {Reason::kNoMatchingSupply, pb::UNMET_REASON_NO_MATCHING_SUPPLY},
    {Reason::kTopologyUnsatisfiable, pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE},
    {Reason::kPreemptionExhausted, pb::UNMET_REASON_PREEMPTION_EXHAUSTED},
};

// A reason that the protocol has no number for becomes the one it would have derived from the rest.
pb::UnmetReason UnmetReasonOf(const contract::NeedView& view) {
  if (view.satisfied) return pb::UNMET_REASON_UNSPECIFIED;
  const auto* const row = std::ranges::find(kUnmet, view.reason, [](const auto& known) { return known.first; });
  if (row != std::ranges::end(kUnmet)) return row->second;
  const bool gang =
      std::ranges::count(view.need.profile.requirements(), model::Operator::kSame, &model::Requirement::op) > 0;
  if (gang && (!view.same_satisfiable || view.parked || view.same_domain.empty())) {
    return pb::UNMET_REASON_TOPOLOGY_UNSATISFIABLE;
  }
  const contract::MatchingSupply& supply = view.supply;
  if (supply.idle + supply.configured + supply.speculative == 0) return pb::UNMET_REASON_NO_MATCHING_SUPPLY;
  return pb::UNMET_REASON_PRIORITY_STARVED;
}

Reason ReasonOf(pb::UnmetReason unmet) {
  const auto* const row = std::ranges::find(kUnmet, unmet, [](const auto& known) { return known.second; });
  return row == std::ranges::end(kUnmet) ? Reason::kNone : row->first;
}

void WriteSupply(const contract::MatchingSupply& supply, pb::MatchingSupply& wire) {
  const auto cut = [&wire](int64_t count) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (count > kMost) wire.set_capped(true);
    return static_cast<int32_t>(std::clamp<int64_t>(count, 0, kMost));
  };
  wire.set_idle(cut(supply.idle));
  wire.set_configured(cut(supply.configured));
  wire.set_speculative(cut(supply.speculative));
}

void WritePreemption(const contract::NeedView& view, pb::PreemptionSummary& wire) {
  wire.set_victims_found(view.victims);
  wire.mutable_capacity_freed()->Clear();
  WriteResources(view.capacity_freed, *wire.mutable_capacity_freed());
}

}  // namespace

Result<contract::NeedView> TakeView(pb::NeedView& wire, std::string_view path, ProfileTable& profiles) {
  contract::NeedView view;
  MUSTER_ASSIGN_OR_RETURN(view.need, ReadNeed(wire.need(), fmt::format("{}.need", path), profiles));
  if (Status error; !ReadTable(wire, view, error)) {
    AddPath(path, error);
    return std::unexpected(std::move(error));
  }
  view.reason = ReasonOf(wire.unmet_reason());
  MUSTER_ASSIGN_OR_RETURN(view.residual,
                          ResourcesFromWire(wire.residual_deficit().resources(), path, "residual_deficit"));
  const pb::MatchingSupply& supply = wire.matching_supply();
  MUSTER_ASSIGN_OR_RETURN(view.supply.idle, CountFromWire(supply.idle(), path, "matching_supply.idle"));
  MUSTER_ASSIGN_OR_RETURN(view.supply.configured,
                          CountFromWire(supply.configured(), path, "matching_supply.configured"));
  MUSTER_ASSIGN_OR_RETURN(view.supply.speculative,
                          CountFromWire(supply.speculative(), path, "matching_supply.speculative"));
  const pb::PreemptionSummary& preemption = wire.preemption();
  MUSTER_ASSIGN_OR_RETURN(view.victims, CountFromWire(preemption.victims_found(), path, "preemption.victims_found"));
  MUSTER_ASSIGN_OR_RETURN(view.capacity_freed, ResourcesFromWire(preemption.capacity_freed().resources(), path,
                                                                 "preemption.capacity_freed"));
  return view;
}

Result<contract::NeedView> TakeView(v1::NeedView& wire, std::string_view path, ProfileTable& profiles) {
  MUSTER_ASSIGN_OR_RETURN(contract::NeedView view, TakeView(*wire.mutable_view(), path, profiles));
  view.reason = ReasonFromWire(wire.reason());
  view.has_session = wire.has_session();
  view.pending = wire.pending();
  view.on_hold = wire.on_hold();
  return view;
}

Result<contract::MachineView> TakeView(v1::MachineView& wire, std::string_view path) {
  SharedTexts texts;  // rows come one at a time, and go to whoever reads them
  MUSTER_ASSIGN_OR_RETURN(model::Machine machine, TakeMachine(*wire.mutable_machine(), path, texts));
  MUSTER_ASSIGN_OR_RETURN(contract::MachineView view, ReadByTable<contract::MachineView>(wire, path));
  view.machine = contract::MachineRecord(std::move(machine));
  return view;
}

void ToWire(const contract::NeedView& view, pb::NeedView& wire) {
  ToWire(view.need, *wire.mutable_need());
  WriteTable(view, wire);
  wire.set_profile_fingerprint(view.need.profile.fingerprint());
  if (!view.satisfied && !view.residual.empty()) WriteResources(view.residual, *wire.mutable_residual_deficit());
  wire.set_unmet_reason(UnmetReasonOf(view));
  if (!view.satisfied) WriteSupply(view.supply, *wire.mutable_matching_supply());
  if (wire.unmet_reason() == pb::UNMET_REASON_PREEMPTION_EXHAUSTED) WritePreemption(view, *wire.mutable_preemption());
}

void ToWire(const contract::NeedView& view, v1::NeedView& wire) {
  pb::NeedView& inner = *wire.mutable_view();
  ToWire(view, inner);
  WriteResources(view.residual, *inner.mutable_residual_deficit());
  WriteSupply(view.supply, *inner.mutable_matching_supply());
  WritePreemption(view, *inner.mutable_preemption());
  wire.set_reason(std::string(model::ReasonName(view.reason)));
  wire.set_has_session(view.has_session);
  wire.set_pending(view.pending);
  wire.set_on_hold(view.on_hold);
}

void ToWire(const contract::MachineView& view, v1::MachineView& wire) {
  ToWire(*view.machine, *wire.mutable_machine());
  WriteTable(view, wire);
}

Result<contract::NeedsInspected> FromWire(const pb::InspectNeedsHeader& wire) {
  return ReadByTable<contract::NeedsInspected>(wire);
}

void ToWire(const contract::NeedsInspected& reply, pb::InspectNeedsHeader& wire) { WriteTable(reply, wire); }

}  // namespace muster::rpc
