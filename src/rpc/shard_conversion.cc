#include "rpc/shard_conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "bigfleet/v1alpha1/shardread.pb.h"
#include "muster/v1/fleet.pb.h"
#include "rpc/provider_conversion.h"
#include "rpc/shared_texts.h"
#include "rpc/wire_parts.h"

namespace muster::rpc {
namespace {

namespace pb = bigfleet::v1alpha1;
using contract::ActuationMode;
using model::Reason;

// A mode that must be one, or may also be unspecified.
Result<ActuationMode> ModeFromWire(int number, int lowest, std::string_view path, std::string_view field) {
  if (number < lowest || number > static_cast<int>(ActuationMode::kPaused)) {
    return Refuse(path, field, fmt::format("{} is not a mode; use 1 (active), 2 (dry-run) or 3 (paused)", number));
  }
  return static_cast<ActuationMode>(number);
}

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

// The counts of a view, which are zero or more.
Status ReadCounts(const pb::NeedView& wire, std::string_view path, contract::NeedView& view) {
  const std::tuple<int32_t, const char*, int32_t*> counts[] = {
      {wire.claimed_machine_count(), "claimed_machine_count", &view.claimed_machines},
      {wire.bootstrap_count(), "bootstrap_count", &view.bootstraps},
      {wire.provision_count(), "provision_count", &view.provisions},
      {wire.parked_age_cycles(), "parked_age_cycles", &view.parked_age_cycles},
      {wire.age_cycles_unmet(), "age_cycles_unmet", &view.age_cycles_unmet},
      {wire.preemption().victims_found(), "preemption.victims_found", &view.victims},
  };
  for (const auto& [number, field, into] : counts) {
    const auto count = CountFromWire(number, path, field);
    if (!count) return count.error();
    *into = *count;
  }
  const std::tuple<int32_t, const char*, int64_t*> supplies[] = {
      {wire.matching_supply().idle(), "matching_supply.idle", &view.supply.idle},
      {wire.matching_supply().configured(), "matching_supply.configured", &view.supply.configured},
      {wire.matching_supply().speculative(), "matching_supply.speculative", &view.supply.speculative},
  };
  for (const auto& [number, field, into] : supplies) {
    const auto count = CountFromWire(number, path, field);
    if (!count) return count.error();
    *into = *count;
  }
  return {};
}

}  // namespace

Result<contract::InspectNeeds> FromWire(const pb::InspectNeedsRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(const int32_t limit, CountFromWire(wire.limit(), "", "limit"));
  return contract::InspectNeeds{.cluster_id = wire.cluster_id(), .limit = limit};
}

Result<contract::ListMachines> FromWire(const v1::ListMachinesRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(std::vector<model::MachineState> states, StatesFromWire(wire.states()));
  return contract::ListMachines{.states = std::move(states), .cluster_id = wire.cluster_id()};
}

Result<contract::ListActions> FromWire(const v1::ListActionsRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(const int32_t limit, CountFromWire(wire.limit(), "", "limit"));
  return contract::ListActions{.cluster_id = wire.cluster_id(), .limit = limit};
}

Result<contract::ListClusters> FromWire(const v1::ListClustersRequest& /*wire*/) { return contract::ListClusters(); }

Result<contract::Explain> FromWire(const v1::ExplainRequest& wire) {
  switch (wire.subject_case()) {
    case v1::ExplainRequest::kMachineId:
      if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) {
        return std::unexpected(given);
      }
      return contract::Explain{.subject = wire.machine_id()};
    case v1::ExplainRequest::kNeed: {
      const v1::NeedRef& need = wire.need();
      if (need.cluster_id().empty()) return Refuse("need", "cluster_id", "missing; say whose need it is");
      if (need.fingerprint().empty()) return Refuse("need", "fingerprint", "missing; InspectNeeds tells it");
      return contract::Explain{.subject = contract::NeedRef{.cluster_id = need.cluster_id(),
                                                            .fingerprint = need.fingerprint(),
                                                            .group = need.group()}};
    }
    case v1::ExplainRequest::SUBJECT_NOT_SET: break;
  }
  return Refuse("", "subject", "missing; name a machine_id or a need");
}

Result<contract::SetActuation> FromWire(const v1::SetActuationRequest& wire) {
  MUSTER_ASSIGN_OR_RETURN(const ActuationMode mode, ModeFromWire(wire.mode(), 1, "", "mode"));
  return contract::SetActuation{.cluster_id = wire.cluster_id(), .mode = mode, .reason = wire.reason()};
}

Result<contract::RepairMachine> FromWire(const v1::RepairMachineRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::RepairMachine{.machine_id = wire.machine_id()};
}

Result<contract::ForgetMachine> FromWire(const v1::ForgetMachineRequest& wire) {
  if (const Status given = CheckMachineId(wire.machine_id(), "machine_id"); !given.ok()) return std::unexpected(given);
  return contract::ForgetMachine{.machine_id = wire.machine_id()};
}

void ToWire(const contract::InspectNeeds& request, pb::InspectNeedsRequest& wire) {
  wire.set_cluster_id(request.cluster_id);
  wire.set_limit(request.limit);
}

void ToWire(const contract::ListMachines& request, v1::ListMachinesRequest& wire) {
  for (const model::MachineState state : request.states) wire.add_states(static_cast<pb::MachineState>(state));
  wire.set_cluster_id(request.cluster_id);
}

void ToWire(const contract::ListActions& request, v1::ListActionsRequest& wire) {
  wire.set_cluster_id(request.cluster_id);
  wire.set_limit(request.limit);
}

void ToWire(const contract::ListClusters& /*request*/, v1::ListClustersRequest& /*wire*/) {}

void ToWire(const contract::Explain& request, v1::ExplainRequest& wire) {
  if (const auto* machine = std::get_if<std::string>(&request.subject)) {
    wire.set_machine_id(*machine);
    return;
  }
  const auto& need = std::get<contract::NeedRef>(request.subject);
  wire.mutable_need()->set_cluster_id(need.cluster_id);
  wire.mutable_need()->set_fingerprint(need.fingerprint);
  wire.mutable_need()->set_group(need.group);
}

void ToWire(const contract::SetActuation& request, v1::SetActuationRequest& wire) {
  wire.set_cluster_id(request.cluster_id);
  wire.set_mode(static_cast<v1::ActuationMode>(request.mode));
  wire.set_reason(request.reason);
}

void ToWire(const contract::RepairMachine& request, v1::RepairMachineRequest& wire) {
  wire.set_machine_id(request.machine_id);
}

void ToWire(const contract::ForgetMachine& request, v1::ForgetMachineRequest& wire) {
  wire.set_machine_id(request.machine_id);
}

Result<contract::NeedView> TakeView(pb::NeedView& wire, std::string_view path, ProfileTable& profiles) {
  contract::NeedView view;
  MUSTER_ASSIGN_OR_RETURN(view.need, ReadNeed(wire.need(), fmt::format("{}.need", path), profiles));
  view.need.cluster = std::move(*wire.mutable_cluster_id());
  view.need.arrival = TimeFromWire(wire.arrival_unix_nanos());
  view.satisfied = wire.satisfied();
  MUSTER_ASSIGN_OR_RETURN(view.residual,
                          ResourcesFromWire(wire.residual_deficit().resources(), path, "residual_deficit"));
  view.same_domain = std::move(*wire.mutable_same_domain());
  view.same_satisfiable = wire.same_satisfiable();
  view.parked = wire.acquisition_parked();
  view.reason = ReasonOf(wire.unmet_reason());
  MUSTER_ASSIGN_OR_RETURN(view.capacity_freed, ResourcesFromWire(wire.preemption().capacity_freed().resources(), path,
                                                                 "preemption.capacity_freed"));
  if (const Status counts = ReadCounts(wire, path, view); !counts.ok()) return std::unexpected(counts);
  for (pb::DomainCoverage& candidate : *wire.mutable_same_candidates()) {
    view.same_candidates.push_back({.domain = std::move(*candidate.mutable_domain()),
                                    .coverage_per_mille = candidate.coverage_per_mille(),
                                    .satisfiable = candidate.satisfiable()});
  }
  return view;
}

Result<contract::NeedView> TakeView(v1::NeedView& wire, std::string_view path, ProfileTable& profiles) {
  MUSTER_ASSIGN_OR_RETURN(contract::NeedView view, TakeView(*wire.mutable_view(), path, profiles));
  view.reason = ReasonFromWire(wire.reason());
  view.has_session = wire.has_session();
  return view;
}

Result<contract::MachineView> TakeView(v1::MachineView& wire, std::string_view path) {
  SharedTexts texts;  // rows come one at a time, and go to whoever reads them
  MUSTER_ASSIGN_OR_RETURN(model::Machine machine, TakeMachine(*wire.mutable_machine(), path, texts));
  return contract::MachineView{.machine = contract::MachineRecord(std::move(machine)),
                               .need_fingerprint = std::move(*wire.mutable_need_fingerprint()),
                               .need_group = std::move(*wire.mutable_need_group()),
                               .reason = ReasonFromWire(wire.reason())};
}

void ToWire(const contract::NeedView& view, pb::NeedView& wire) {
  ToWire(view.need, *wire.mutable_need());
  wire.set_cluster_id(view.need.cluster);
  wire.set_arrival_unix_nanos(TimeToWire(view.need.arrival));
  wire.set_profile_fingerprint(view.need.profile.fingerprint());
  wire.set_satisfied(view.satisfied);
  if (!view.satisfied && !view.residual.empty()) WriteResources(view.residual, *wire.mutable_residual_deficit());
  wire.set_claimed_machine_count(view.claimed_machines);
  wire.set_bootstrap_count(view.bootstraps);
  wire.set_provision_count(view.provisions);
  wire.set_same_domain(view.same_domain);
  wire.set_same_satisfiable(view.same_satisfiable);
  wire.set_acquisition_parked(view.parked);
  wire.set_parked_age_cycles(view.parked_age_cycles);
  wire.set_age_cycles_unmet(view.age_cycles_unmet);
  wire.set_unmet_reason(UnmetReasonOf(view));
  if (!view.satisfied) WriteSupply(view.supply, *wire.mutable_matching_supply());
  if (wire.unmet_reason() == pb::UNMET_REASON_PREEMPTION_EXHAUSTED) WritePreemption(view, *wire.mutable_preemption());
  for (const contract::DomainCoverage& candidate : view.same_candidates) {
    pb::DomainCoverage& into = *wire.add_same_candidates();
    into.set_domain(candidate.domain);
    into.set_coverage_per_mille(candidate.coverage_per_mille);
    into.set_satisfiable(candidate.satisfiable);
  }
}

void ToWire(const contract::NeedView& view, v1::NeedView& wire) {
  pb::NeedView& inner = *wire.mutable_view();
  ToWire(view, inner);
  WriteResources(view.residual, *inner.mutable_residual_deficit());
  WriteSupply(view.supply, *inner.mutable_matching_supply());
  WritePreemption(view, *inner.mutable_preemption());
  wire.set_reason(std::string(model::ReasonName(view.reason)));
  wire.set_has_session(view.has_session);
}

void ToWire(const contract::MachineView& view, v1::MachineView& wire) {
  ToWire(*view.machine, *wire.mutable_machine());
  wire.set_need_fingerprint(view.need_fingerprint);
  wire.set_need_group(view.need_group);
  wire.set_reason(std::string(model::ReasonName(view.reason)));
}

contract::NeedsInspected HeaderFromWire(const pb::InspectNeedsHeader& wire) {
  return {.cycle = wire.cycle(),
          .computed_at = TimeFromWire(wire.computed_at_unix_nanos()),
          .total = wire.total_needs(),
          .needs = {}};
}

void ToWire(const contract::NeedsInspected& reply, pb::InspectNeedsHeader& wire) {
  wire.set_cycle(reply.cycle);
  wire.set_computed_at_unix_nanos(TimeToWire(reply.computed_at));
  wire.set_total_needs(reply.total);
}

Result<contract::ActionsListed> TakeReply(v1::ListActionsResponse& wire) {
  contract::ActionsListed reply;
  reply.actions.reserve(static_cast<size_t>(wire.actions_size()));
  for (v1::ActionView& action : *wire.mutable_actions()) {
    reply.actions.push_back({.cycle = action.cycle(),
                             .decided = TimeFromWire(action.decided_unix_nanos()),
                             .kind = std::move(*action.mutable_kind()),
                             .machine_id = std::move(*action.mutable_machine_id()),
                             .cluster_id = std::move(*action.mutable_cluster_id()),
                             .need_fingerprint = std::move(*action.mutable_need_fingerprint()),
                             .need_group = std::move(*action.mutable_need_group()),
                             .reason = ReasonFromWire(action.reason()),
                             .grace_seconds = action.grace_seconds(),
                             .outcome = std::move(*action.mutable_outcome()),
                             .error = std::move(*action.mutable_error())});
  }
  return reply;
}

Result<contract::ClustersListed> TakeReply(v1::ListClustersResponse& wire) {
  contract::ClustersListed reply;
  for (int i = 0; i < wire.clusters_size(); ++i) {
    v1::ClusterView& cluster = *wire.mutable_clusters(i);
    MUSTER_ASSIGN_OR_RETURN(const ActuationMode mode,
                            ModeFromWire(cluster.mode(), 1, fmt::format("clusters[{}]", i), "mode"));
    reply.clusters.push_back({.cluster_id = std::move(*cluster.mutable_cluster_id()),
                              .session = cluster.session(),
                              .gate_open = cluster.gate_open(),
                              .mode = mode,
                              .needs = cluster.needs(),
                              .configured = cluster.configured(),
                              .held_rollups = cluster.held_rollups(),
                              .last_refusal = std::move(*cluster.mutable_last_refusal()),
                              .reclaims_in_window = cluster.reclaims_in_window()});
  }
  return reply;
}

Result<contract::Explained> TakeReply(v1::ExplainResponse& wire) {
  contract::Explained reply{.cycle = wire.cycle(), .lines = {}};
  for (std::string& line : *wire.mutable_lines()) reply.lines.push_back(std::move(line));
  return reply;
}

Result<contract::ActuationSet> TakeReply(v1::SetActuationResponse& wire) {
  MUSTER_ASSIGN_OR_RETURN(const ActuationMode previous, ModeFromWire(wire.previous(), 0, "", "previous"));
  return contract::ActuationSet{.previous = previous};
}

Result<contract::OrderTaken> TakeReply(v1::RepairMachineResponse& /*wire*/) { return contract::OrderTaken(); }
Result<contract::OrderTaken> TakeReply(v1::ForgetMachineResponse& /*wire*/) { return contract::OrderTaken(); }

void ToWire(const contract::ActionsListed& reply, v1::ListActionsResponse& wire) {
  wire.mutable_actions()->Reserve(static_cast<int>(reply.actions.size()));
  for (const contract::ActionView& action : reply.actions) {
    v1::ActionView& into = *wire.add_actions();
    into.set_cycle(action.cycle);
    into.set_decided_unix_nanos(TimeToWire(action.decided));
    into.set_kind(action.kind);
    into.set_machine_id(action.machine_id);
    into.set_cluster_id(action.cluster_id);
    into.set_need_fingerprint(action.need_fingerprint);
    into.set_need_group(action.need_group);
    into.set_reason(std::string(model::ReasonName(action.reason)));
    into.set_grace_seconds(action.grace_seconds);
    into.set_outcome(action.outcome);
    into.set_error(Readable(action.error));
  }
}

void ToWire(const contract::ClustersListed& reply, v1::ListClustersResponse& wire) {
  for (const contract::ClusterView& cluster : reply.clusters) {
    v1::ClusterView& into = *wire.add_clusters();
    into.set_cluster_id(cluster.cluster_id);
    into.set_session(cluster.session);
    into.set_gate_open(cluster.gate_open);
    into.set_mode(static_cast<v1::ActuationMode>(cluster.mode));
    into.set_needs(cluster.needs);
    into.set_configured(cluster.configured);
    into.set_held_rollups(cluster.held_rollups);
    into.set_last_refusal(Readable(cluster.last_refusal));
    into.set_reclaims_in_window(cluster.reclaims_in_window);
  }
}

void ToWire(const contract::Explained& reply, v1::ExplainResponse& wire) {
  wire.set_cycle(reply.cycle);
  for (const std::string& line : reply.lines) wire.add_lines(Readable(line));
}

void ToWire(const contract::ActuationSet& reply, v1::SetActuationResponse& wire) {
  wire.set_previous(static_cast<v1::ActuationMode>(reply.previous));
}

void ToWire(const contract::OrderTaken& /*reply*/, v1::RepairMachineResponse& /*wire*/) {}
void ToWire(const contract::OrderTaken& /*reply*/, v1::ForgetMachineResponse& /*wire*/) {}

}  // namespace muster::rpc
