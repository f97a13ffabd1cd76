#include "role/shard/shard_metrics.h"

#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "model/machine.h"
#include "model/penalty.h"

namespace muster::shard {
namespace {

const char* CapacityLabel(model::CapacityType type) {
  switch (type) {
    case model::CapacityType::kBareMetal: return "BareMetal";
    case model::CapacityType::kReserved: return "Reserved";
    case model::CapacityType::kOnDemand: return "OnDemand";
    case model::CapacityType::kSpot: return "Spot";
    case model::CapacityType::kUnspecified: break;
  }
  return "Unspecified";
}

// By PlanMode.
constexpr std::array kModes = {"incremental", "all-or-nothing"};
static_assert(kModes.size() == kPlanModes);

constexpr std::array kHoldKinds = {"machine", "class", "pair", "cluster", "rest"};

constexpr std::array kRejections = {"price", "interruption_probability", "structural"};
const char* RejectionOf(const std::string& field) {
  if (field == "price_per_hour") return kRejections[0];
  return field == "interruption_probability" ? kRejections[1] : kRejections[2];
}

constexpr std::array kPriorityClasses = {"batch", "service", "critical", "other"};
size_t PriorityClassOf(int32_t priority) {
  return priority >= 1'000'000 ? 2 : priority >= 1000 ? 1 : priority >= 100 ? 0 : 3;
}

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
  std::array<metrics::Histograms<0>, 5> legs{
      metrics::Histograms<0>{in,
                             "bigfleet_shard_request_bootstrap_seconds",
                             "From the decision to bind a machine to the cluster's blob.",
                             {},
                             LegBounds()},
      metrics::Histograms<0>{in,
                             "muster_shard_create_phase_seconds",
                             "From the acknowledgement of Create until the machine was Idle.",
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
                             LegBounds()},
      metrics::Histograms<0>{in,
                             "bigfleet_shard_provisioning_latency_seconds",
                             "From the roll-up in which a cluster first asked for a profile, or for more of it, until "
                             "a machine for it was Configured.",
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
      "Needs of the demand in force, by their interruption penalty; counted every --available-capacity-interval.",
      {"interruption_penalty_bucket"}};
  metrics::Gauges<1> claimed{
      in,
      "muster_shard_claimed_machines",
      "Machines that needs have or get, by their interruption penalty; counted every --available-capacity-interval.",
      {"interruption_penalty_bucket"}};
  metrics::Gauges<0> shortfalls{in, "bigfleet_shard_shortfalls", "Needs that are short."};
  metrics::Gauges<0> pending{in, "muster_shard_pending_needs",
                             "Needs that lack only what is on its way to them, and are not short."};
  metrics::Gauges<1> shortfalls_aged{
      in, "bigfleet_shard_shortfalls_aged", "Needs that are short, by how many cycles they have been.", {"bucket"}};
  metrics::Gauges<1> shortfalls_by_priority{
      in,
      "bigfleet_shard_shortfalls_by_priority",
      "Needs that are short, by priority: batch from 100 on, service from 1,000, critical from 1,000,000, else other.",
      {"priority_class"}};

  metrics::Gauges<1> holds{in,
                           "muster_shard_holds",
                           "What may not be acquired for now after calls that failed: machines, classes of a stock, "
                           "machines for one cluster "
                           "(pair), clusters, and machines that rest after a failed Drain or Delete.",
                           {"kind"}};
  metrics::Gauges<0> pages_unchecked{in, "muster_shard_pages_unchecked",
                                     "1 while the provider's pages could not be checked, so that it may have machines "
                                     "that the shard does not see."};
  metrics::Gauges<0> missing{in, "muster_shard_missing_machines",
                             "Machines that the provider's lists no longer show and that are not given up."};
  metrics::Gauges<0> under_repair{in, "muster_shard_machines_under_repair", "Failed machines that are being repaired."};
  metrics::Gauges<1> losses{in,
                            "muster_shard_losses_waiting",
                            "Clusters, and the fleet as one more, of which so many machines failed or vanished at once "
                            "that an operator must decide (muster fleet accept).",
                            {"kind"}};
  metrics::Gauges<0> failing{in, "muster_shard_failing_machines",
                             "Machines called Failed in masses that count as if they served until they are given up."};
  metrics::Gauges<0> lacking{in, "muster_shard_lacking_machines",
                             "Machines that clusters lost while the shard was down and that are not given up."};
  metrics::Gauges<1> put_off{in,
                             "muster_shard_actions_put_off",
                             "Actions that the last cycle decided and that wait: for machines that are being "
                             "configured (growth), for a Configure that ends well (trial), or until more of what was "
                             "lost while the shard was down is given up (loss).",
                             {"reason"}};
  metrics::Gauges<0> halted{in, "muster_shard_halted",
                            "1 while nothing is carried out, because calls for two machines were fenced."};
  metrics::Gauges<0> provider_away{in, "muster_shard_provider_away",
                                   "1 while no transition is called, because the provider does not answer."};

  metrics::Counters<1> actions{in,
                               "bigfleet_shard_actions_total",
                               "Actions decided, by kind; what growth and trial put off counts when it is its turn.",
                               {"kind"}};
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
      in, "bigfleet_shard_rollup_quarantined", "Roll-ups of a cluster in a row that are held; 0: none.", {"cluster"}};
  metrics::Counters<1> rollups_rejected{
      in, "bigfleet_shard_rollups_rejected_total", "Roll-ups refused, by cluster.", {"cluster"}};
  metrics::Counters<1> above_ceiling{in,
                                     "muster_shard_actions_above_ceiling_total",
                                     "Actions not begun because the cluster they are for may not have more "
                                     "(--cluster-limits).",
                                     {"cluster"}};
  metrics::Counters<1> machines_rejected{
      in,
      "bigfleet_shard_machines_rejected_total",
      "Machine records refused, by what was wrong with them; the log names the field.",
      {"reason"}};
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
  metrics::Counters<0> plans_displaced{
      in, "bigfleet_shard_phase1_occ_displacements_total",
      "Plans taken back for a need of higher precedence; only with several --phase1-workers."};
  metrics::Gauges<1> conflict_fraction{
      in,
      "bigfleet_shard_phase1_occ_conflict_fraction",
      "Plans made again for each plan that stood, since the metrics were read before; by how a need proposes; only "
      "with several --phase1-workers.",
      {"mode"}};
  metrics::Counters<2> plan_retries{in,
                                    "bigfleet_shard_phase1_occ_retries_total",
                                    "Plans made again in turn, by how a need proposes and how it ended; only with "
                                    "several --phase1-workers.",
                                    {"mode", "outcome"}};
  metrics::Histograms<1> proposal_seconds{
      in,
      "bigfleet_shard_phase1_proposal_duration_seconds",
      "How long making a plan took, by how a need proposes; only with several --phase1-workers.",
      {"mode"},
      metrics::DoublingBounds(0.0000005, 20)};
  // By mode: there are thousands of plans a cycle, too many to look the series up.
  const std::array<metrics::Histogram*, kPlanModes> plan_seconds = {&proposal_seconds.With(kModes[0]),
                                                                    &proposal_seconds.With(kModes[1])};
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

ShardMetrics::ShardMetrics(metrics::Declarations& in) : declared_(new Declared{in}) {
  const Declared& to = *declared_;
  for (const char* phase : {"reconcile", "snapread", "phase1", "phase2", "phase3", "emit", "execute"}) {
    to.phase_seconds.With(phase);
  }
  for (const char* mode : kModes) {
    to.conflict_fraction.With(mode);
    for (const char* outcome : {"committed", "exhausted"}) to.plan_retries.With(mode, outcome);
  }
  for (int bucket = 0; bucket < model::kPenaltyBuckets; ++bucket) {
    const std::string label = model::BucketLabel(static_cast<model::PenaltyBucket>(bucket));
    to.demand.With(label);
    to.claimed.With(label);
  }
  for (const char* kind : {"Bootstrap", "Provision", "Preempt", "Reclaim", "Delete"}) {
    to.actions.With(kind);
    to.suppressed.With(kind);
    to.dry_run.With(kind);
    AddOutcomes(kind);
  }
  for (const char* kind : {"Repair", "Recreate"}) AddOutcomes(kind);
  for (const char* kind : kHoldKinds) to.holds.With(kind);
  for (const char* kind : {"failed", "vanished"}) to.losses.With(kind);
  for (const char* reason : {"growth", "trial", "loss"}) to.put_off.With(reason);
  for (const char* reason : kRejections) to.machines_rejected.With(reason);
  for (const char* outcome : {"committed", "conflict"}) to.plans.With(outcome);
  for (const char* event : {"installed", "removed", "replaced"}) to.session_lifecycle.With(event);
}

// Every outcome but `pending`, which is none, and `ceiling`, which has a counter of its own.
void ShardMetrics::AddOutcomes(const char* kind) {
  for (const char* outcome :
       {"success", "failed", "no_session", "blob_error", "blob_timeout", "provider_error", "unimplemented",
        "stale_state", "inventory_miss", "on_hold", "fenced", "suppressed", "dryrun"}) {
    declared_->outcomes.With(kind, outcome);
  }
}
ShardMetrics::~ShardMetrics() = default;

void ShardMetrics::CycleEnded(Duration took) { declared_->cycle_seconds.With().Observe(Seconds(took)); }

void ShardMetrics::PhaseEnded(std::string_view phase, Duration took) {
  constexpr std::string_view kProposal = "proposal.";
  for (size_t mode = 0; mode < kPlanModes && phase.starts_with(kProposal); ++mode) {
    if (phase.substr(kProposal.size()) == kModes[mode]) return declared_->plan_seconds[mode]->Observe(Seconds(took));
  }
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
        .With(model::StateName(kind.state), CapacityLabel(kind.capacity_type), model::BucketLabel(kind.interruption))
        .Set(static_cast<double>(count));
  }
  for (const auto& [bucket, count] : snapshot.demand) {
    to.demand.With(model::BucketLabel(bucket)).Set(static_cast<double>(count));
  }
  for (const auto& [bucket, count] : snapshot.claimed) {
    to.claimed.With(model::BucketLabel(bucket)).Set(static_cast<double>(count));
  }
  for (const char* kind : kHoldKinds) {
    const auto held = snapshot.holds.find(kind);
    to.holds.With(kind).Set(held == snapshot.holds.end() ? 0 : static_cast<double>(held->second));
  }
  to.pages_unchecked.With().Set(snapshot.pages_unchecked ? 1 : 0);
  to.missing.With().Set(static_cast<double>(snapshot.missing));
  to.under_repair.With().Set(static_cast<double>(snapshot.under_repair));
  to.losses.With("failed").Set(static_cast<double>(snapshot.losses_failed.size()));
  to.losses.With("vanished").Set(static_cast<double>(snapshot.losses_vanished.size()));
  to.failing.With().Set(static_cast<double>(snapshot.failing));
  to.lacking.With().Set(static_cast<double>(snapshot.lacking));
  to.put_off.With("growth").Set(static_cast<double>(snapshot.put_off.growth));
  to.put_off.With("trial").Set(static_cast<double>(snapshot.put_off.trial));
  to.put_off.With("loss").Set(static_cast<double>(snapshot.put_off.loss));
  to.halted.With().Set(snapshot.halted ? 1 : 0);
  to.provider_away.With().Set(snapshot.provider_away ? 1 : 0);
  to.pending.With().Set(static_cast<double>(snapshot.pending));
  to.shortfalls.With().Set(static_cast<double>(snapshot.shortfalls));
  for (size_t age = 0; age < kAges.size(); ++age) {
    to.shortfalls_aged.With(kAges[age]).Set(static_cast<double>(snapshot.shortfalls_aged[age]));
  }
  std::array<uint64_t, kPriorityClasses.size()> by_class{};
  for (const auto& [priority, count] : snapshot.shortfalls_by_priority) by_class[PriorityClassOf(priority)] += count;
  for (size_t i = 0; i < by_class.size(); ++i) {
    to.shortfalls_by_priority.With(kPriorityClasses[i]).Set(static_cast<double>(by_class[i]));
  }
  SetClusters(snapshot);
  to.sessions.With().Set(static_cast<double>(snapshot.sessions));
  to.paused.With().Set(snapshot.mode == contract::ActuationMode::kPaused ? 1 : 0);
  to.queue_depth.With().Set(static_cast<double>(snapshot.operations - snapshot.calls));
  to.inflight.With().Set(static_cast<double>(snapshot.calls));
  to.epoch.With().Set(static_cast<double>(snapshot.epoch));
  to.cycle.With().Set(static_cast<double>(snapshot.cycle));
  to.ready.With().Set(snapshot.ready ? 1 : 0);
}

// A cluster's series begin when the shard first hears of it and end when it is gone.
void ShardMetrics::SetClusters(const Snapshot& snapshot) {
  const Declared& to = *declared_;
  for (const std::string& cluster : clusters_) {
    if (snapshot.clusters.contains(cluster)) continue;
    to.quarantined.Remove(cluster);
    to.rollups_rejected.Remove(cluster);
    to.above_ceiling.Remove(cluster);
  }
  clusters_ = snapshot.clusters;
  const auto of = [](const auto& counts, const std::string& cluster) {
    const auto found = counts.find(cluster);
    return found == counts.end() ? 0.0 : static_cast<double>(found->second);
  };
  for (const std::string& cluster : clusters_) {
    to.quarantined.With(cluster).Set(of(snapshot.quarantined, cluster));
    to.rollups_rejected.With(cluster).RaiseTo(of(snapshot.counters.rollups_rejected, cluster));
    to.above_ceiling.With(cluster).RaiseTo(of(snapshot.counters.above_ceiling, cluster));
  }
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
  std::map<std::string, uint64_t> rejections;
  for (const auto& [field, count] : counters.machines_rejected) rejections[RejectionOf(field)] += count;
  raise(to.machines_rejected, rejections);
  to.deferred.With().RaiseTo(static_cast<double>(counters.deferred));
  to.dropped.With().RaiseTo(static_cast<double>(counters.dropped));
  to.deduped.With().RaiseTo(static_cast<double>(counters.deduped));
  to.reclaims_capped.With().RaiseTo(static_cast<double>(counters.reclaims_capped));
  uint64_t kept = 0;
  uint64_t conflicts = 0;
  for (size_t mode = 0; mode < kPlanModes; ++mode) {
    const PlanTotals& plans = counters.plans[mode];
    const PlanTotals before = std::exchange(plans_[mode], plans);
    const auto stood = static_cast<double>(plans.kept - before.kept);
    const auto again = static_cast<double>(plans.conflicts - before.conflicts);
    to.conflict_fraction.With(kModes[mode]).Set(stood == 0 ? 0 : again / stood);
    to.plan_retries.With(kModes[mode], "committed").RaiseTo(static_cast<double>(plans.retries));
    kept += plans.kept;
    conflicts += plans.conflicts;
  }
  to.plans.With("committed").RaiseTo(static_cast<double>(kept));
  to.plans.With("conflict").RaiseTo(static_cast<double>(conflicts));
  to.plans_displaced.With().RaiseTo(static_cast<double>(counters.plans_displaced));
  to.idle_releases.With().RaiseTo(static_cast<double>(counters.idle_releases));
  to.session_lifecycle.With("installed").RaiseTo(static_cast<double>(counters.sessions_installed));
  to.session_lifecycle.With("removed").RaiseTo(static_cast<double>(counters.sessions_removed));
  to.session_lifecycle.With("replaced").RaiseTo(static_cast<double>(counters.sessions_replaced));
  to.list_failures.With().RaiseTo(static_cast<double>(counters.list_failures));
  to.reports.With().RaiseTo(static_cast<double>(counters.reports));
}

}  // namespace muster::shard
