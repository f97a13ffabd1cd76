#include "role/shard/shard_metrics.h"

#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "model/machine.h"

namespace muster::shard {
namespace {

constexpr std::array kAges = {"1-9", "10-59", "60-299", "300+"};  // in cycles, as in Snapshot

double Seconds(Duration took) { return std::chrono::duration<double>(took).count(); }

// Of a part of a machine's way: from 10 ms to an hour and a half.
const std::vector<double>& LegBounds() {
  static const std::vector<double> bounds = metrics::DoublingBounds(0.01, 20);
  return bounds;
}

}  // namespace

// Cycles take from microseconds to, if all goes wrong, half a minute: no bound may hide a tail.
struct ShardMetrics::Declared {
  metrics::Declarations& in;

  metrics::Histograms<0> cycle_seconds{in,
                                       "bigfleet_shard_cycle_duration_seconds",
                                       "How long a decision cycle took.",
                                       {},
                                       metrics::DoublingBounds(0.000125, 19)};
  metrics::Histograms<1> phase_seconds{
      in,
      "bigfleet_shard_cycle_phase_duration_seconds",
      "How long a phase of a decision cycle took. snapread: changes are taken in. phase1, phase2, phase3: the "
      "decision. "
      "emit: actions are collected. execute: the decision is stored and actions begin. reconcile: a list is read, in "
      "steps of its own.",
      {"phase"},
      metrics::DoublingBounds(0.000016, 20)};
  // By Leg.
  std::array<metrics::Histograms<0>, 4> legs{
      metrics::Histograms<0>{in,
                             "bigfleet_shard_request_bootstrap_seconds",
                             "From the decision to bind a machine to the cluster's blob.",
                             {},
                             LegBounds()},
      metrics::Histograms<0>{in,
                             "bigfleet_shard_provisioning_latency_seconds",
                             "From the provider's acknowledgement of Create until the machine was Idle.",
                             {},
                             LegBounds()},
      metrics::Histograms<0>{in,
                             "bigfleet_shard_configure_phase_seconds",
                             "From the acknowledgement of Configure until the machine was Configured.",
                             {},
                             LegBounds()},
      metrics::Histograms<0>{in,
                             "bigfleet_shard_drain_phase_seconds",
                             "From the acknowledgement of Drain until the machine was Idle.",
                             {},
                             LegBounds()}};

  metrics::Gauges<3> inventory{in,
                               "bigfleet_shard_inventory_machines",
                               "Machines by state, capacity type and the interruption penalty of the need they were "
                               "bound for, 0 where they are bound to none.",
                               {"state", "capacity_type", "interruption_penalty_bucket"}};
  metrics::Gauges<1> demand{
      in,
      "bigfleet_shard_demand_machines",
      "Machines that needs have or get, by their interruption penalty; counted every --available-capacity-interval.",
      {"interruption_penalty_bucket"}};
  metrics::Gauges<0> shortfalls{in, "bigfleet_shard_shortfalls", "Needs that are short."};
  metrics::Gauges<0> pending{in, "muster_shard_pending",
                             "Needs that are not short, because all they lack is on its way or within the budget."};
  metrics::Gauges<1> holds{in,
                           "muster_shard_holds",
                           "What is left alone for a while after failed calls, by kind: machine, class, pair of machine "
                           "and cluster, cluster, rest.",
                           {"kind"}};
  metrics::Gauges<0> provider_away{in, "muster_shard_provider_away",
                                   "1 while transitions are not called because the provider does not answer."};
  metrics::Gauges<1> shortfalls_aged{
      in, "bigfleet_shard_shortfalls_aged", "Needs that are short, by how many cycles they have been.", {"bucket"}};
  metrics::Gauges<1> shortfalls_by_priority{
      in, "bigfleet_shard_shortfalls_by_priority", "Needs that are short, by priority.", {"priority_class"}};

  metrics::Counters<1> actions{in, "bigfleet_shard_actions_total", "Actions decided, by kind.", {"kind"}};
  metrics::Counters<2> outcomes{in,
                                "bigfleet_shard_action_execute_outcomes_total",
                                "How actions ended, by kind and outcome.",
                                {"kind", "outcome"}};
  metrics::Counters<0> deferred{in, "bigfleet_shard_actions_deferred_total",
                                "Actions left to the next cycle by the limit of a cycle."};
  metrics::Counters<0> dropped{in, "bigfleet_shard_actions_dropped_total",
                               "Actions not begun because too many are under way."};
  metrics::Counters<0> deduped{in, "bigfleet_shard_actions_deduped_total",
                               "Actions not begun because their machine is busy or waits."};
  metrics::Counters<1> suppressed{
      in, "bigfleet_shard_actions_suppressed_total", "Actions that a pause kept back, by kind.", {"kind"}};
  metrics::Counters<1> dry_run{
      in, "bigfleet_shard_actions_dryrun_total", "Actions that dry run kept back, by kind.", {"kind"}};
  metrics::Gauges<0> queue_depth{in, "bigfleet_shard_action_queue_depth",
                                 "Actions that have begun and wait for a cluster or their turn."};
  metrics::Gauges<0> inflight{in, "bigfleet_shard_execute_inflight", "Transitions in the provider's hands."};
  metrics::Counters<0> reclaims_capped{in, "bigfleet_shard_reclaims_capped_total",
                                       "Times a cluster had more to give up in a cycle than its reclaim limit."};
  metrics::Counters<0> idle_releases{in, "bigfleet_shard_idle_releases_total", "Machines given back."};
  metrics::Gauges<0> paused{in, "bigfleet_shard_actuation_paused", "1 while the whole shard is paused."};

  metrics::Gauges<1> quarantined{
      in, "bigfleet_shard_rollup_quarantined", "1 while a cluster's roll-up is held.", {"cluster"}};
  metrics::Counters<1> rollups_rejected{
      in, "bigfleet_shard_rollups_rejected_total", "Roll-ups refused, by cluster.", {"cluster"}};
  metrics::Counters<1> machines_rejected{
      in, "bigfleet_shard_machines_rejected_total", "Machine records refused, by field.", {"reason"}};
  metrics::Gauges<0> sessions{in, "bigfleet_shard_active_sessions", "Clusters that are connected."};
  metrics::Counters<1> session_lifecycle{
      in, "bigfleet_shard_session_lifecycle_total", "Sessions by what became of them.", {"event"}};
  metrics::Counters<0> identity_rejected{in, "bigfleet_shard_session_identity_rejected_total",
                                         "Sessions refused because the certificate is not the cluster's."};

  metrics::Counters<1> plans{in,
                             "bigfleet_shard_phase1_occ_proposals_total",
                             "Plans of needs, by whether they stood (committed) or were made again (conflict); only "
                             "with several --phase1-workers.",
                             {"outcome"}};
  metrics::Counters<0> plans_displaced{in, "bigfleet_shard_phase1_occ_displacements_total",
                                       "Plans taken back for a need of higher precedence."};
  // A plan that lost a race is made again in turn, as often as it takes (ADR 20).
  metrics::Counters<0> plans_given_up{in, "bigfleet_shard_phase1_occ_retries_exhausted_total",
                                      "Plans given up; never happens here."};

  metrics::Gauges<0> epoch{in, "muster_shard_epoch", "The shard's epoch; one higher in every life."};
  metrics::Gauges<0> cycle{in, "muster_shard_cycle", "The number of the last cycle."};
  metrics::Gauges<0> ready{in, "muster_shard_ready", "1 once the shard has seen its machines."};
  metrics::Histograms<0> decode_seconds{in,
                                        "muster_shard_rollup_decode_seconds",
                                        "How long reading a roll-up took.",
                                        {},
                                        metrics::DoublingBounds(0.000125, 16)};
  metrics::Counters<0> rollups_replaced{in, "muster_shard_rollups_replaced_total",
                                        "Roll-ups that a newer one replaced before they were read."};
  metrics::Counters<0> list_failures{in, "muster_shard_list_failures_total", "Lists that the provider did not answer."};
  metrics::Counters<0> reports{in, "muster_shard_reports_total", "Reports that the coordinator acknowledged."};
};

ShardMetrics::ShardMetrics(metrics::Declarations& in) : declared_(new Declared{in}) {}
ShardMetrics::~ShardMetrics() = default;

void ShardMetrics::CycleEnded(Duration took) { declared_->cycle_seconds.With().Observe(Seconds(took)); }

void ShardMetrics::PhaseEnded(std::string_view phase, Duration took) {
  declared_->phase_seconds.With(phase).Observe(Seconds(took));
}

void ShardMetrics::Ended(const Lasted& lasted) {
  declared_->legs[static_cast<size_t>(lasted.leg)].With().Observe(Seconds(lasted.took));
}

void ShardMetrics::RollupDecoded(Duration took) { declared_->decode_seconds.With().Observe(Seconds(took)); }
void ShardMetrics::RollupReplaced() { declared_->rollups_replaced.With().Add(); }
void ShardMetrics::IdentityRejected() { declared_->identity_rejected.With().Add(); }

void ShardMetrics::Update(const Snapshot& snapshot) {
  const std::lock_guard lock(mu_);
  SetGauges(snapshot);
  RaiseCounters(snapshot.counters);
}

void ShardMetrics::SetGauges(const Snapshot& snapshot) {
  const Declared& to = *declared_;
  std::map<MachineKind, uint64_t> machines = snapshot.machines;
  for (int s = 1; s <= 8; ++s) {  // every state of every type is given, also where there is no machine
    for (const model::CapacityType type : {model::CapacityType::kBareMetal, model::CapacityType::kReserved,
                                           model::CapacityType::kOnDemand, model::CapacityType::kSpot}) {
      machines.try_emplace({.state = static_cast<model::MachineState>(s), .capacity_type = type}, 0);
    }
  }
  for (const auto& [kind, count] : machines) {
    to.inventory
        .With(model::StateName(kind.state), model::CapacityTypeName(kind.capacity_type),
              model::BucketLabel(kind.interruption))
        .Set(static_cast<double>(count));
  }
  for (const auto& [bucket, count] : snapshot.demand) {
    to.demand.With(model::BucketLabel(bucket)).Set(static_cast<double>(count));
  }
  to.shortfalls.With().Set(static_cast<double>(snapshot.shortfalls));
  to.pending.With().Set(static_cast<double>(snapshot.pending));
  for (const std::string_view kind : {"machine", "class", "pair", "cluster", "rest"}) {
    const auto found = snapshot.holds.find(std::string(kind));
    to.holds.With(kind).Set(found == snapshot.holds.end() ? 0 : static_cast<double>(found->second));
  }
  to.provider_away.With().Set(snapshot.provider_away ? 1 : 0);
  for (size_t age = 0; age < kAges.size(); ++age) {
    to.shortfalls_aged.With(kAges[age]).Set(static_cast<double>(snapshot.shortfalls_aged[age]));
  }
  for (const auto& [priority, count] : snapshot.shortfalls_by_priority) by_priority_.insert(std::to_string(priority));
  for (const std::string& priority : by_priority_) {
    const auto found = snapshot.shortfalls_by_priority.find(std::stoi(priority));
    to.shortfalls_by_priority.With(priority).Set(
        found == snapshot.shortfalls_by_priority.end() ? 0 : static_cast<double>(found->second));
  }
  for (const auto& [cluster, held] : snapshot.quarantined) quarantined_.insert(cluster);
  for (const std::string& cluster : quarantined_) {
    to.quarantined.With(cluster).Set(snapshot.quarantined.contains(cluster) ? 1 : 0);
  }
  to.sessions.With().Set(static_cast<double>(snapshot.sessions));
  to.paused.With().Set(snapshot.mode == contract::ActuationMode::kPaused ? 1 : 0);
  to.queue_depth.With().Set(static_cast<double>(snapshot.operations - snapshot.calls));
  to.inflight.With().Set(static_cast<double>(snapshot.calls));
  to.epoch.With().Set(static_cast<double>(snapshot.epoch));
  to.cycle.With().Set(static_cast<double>(snapshot.cycle));
  to.ready.With().Set(snapshot.ready ? 1 : 0);
}

void ShardMetrics::RaiseCounters(const Counters& counters) {
  const Declared& to = *declared_;
  const auto raise = [](const auto& family, const auto& counts) {
    for (const auto& [label, count] : counts) family.With(label).RaiseTo(static_cast<double>(count));
  };
  raise(to.actions, counters.actions);
  for (const auto& [which, count] : counters.outcomes) {
    to.outcomes.With(which.first, which.second).RaiseTo(static_cast<double>(count));
  }
  raise(to.suppressed, counters.suppressed);
  raise(to.dry_run, counters.dry_run);
  raise(to.machines_rejected, counters.machines_rejected);
  raise(to.rollups_rejected, counters.rollups_rejected);
  to.deferred.With().RaiseTo(static_cast<double>(counters.deferred));
  to.dropped.With().RaiseTo(static_cast<double>(counters.dropped));
  to.deduped.With().RaiseTo(static_cast<double>(counters.deduped));
  to.reclaims_capped.With().RaiseTo(static_cast<double>(counters.reclaims_capped));
  to.plans.With("committed").RaiseTo(static_cast<double>(counters.plans_kept));
  to.plans.With("conflict").RaiseTo(static_cast<double>(counters.plans_conflicts));
  to.plans_displaced.With().RaiseTo(static_cast<double>(counters.plans_displaced));
  to.idle_releases.With().RaiseTo(static_cast<double>(counters.idle_releases));
  to.session_lifecycle.With("installed").RaiseTo(static_cast<double>(counters.sessions_installed));
  to.session_lifecycle.With("removed").RaiseTo(static_cast<double>(counters.sessions_removed));
  to.session_lifecycle.With("replaced").RaiseTo(static_cast<double>(counters.sessions_replaced));
  to.list_failures.With().RaiseTo(static_cast<double>(counters.list_failures));
  to.reports.With().RaiseTo(static_cast<double>(counters.reports));
}

}  // namespace muster::shard
