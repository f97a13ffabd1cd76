#include "role/shard/shard_metrics.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "model/machine.h"

namespace muster::shard {
namespace {

// `count` bounds from `first`, each twice the one before.
std::vector<double> Doubling(double first, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= 2) bounds.push_back(bound);
  return bounds;
}

// From 10 ms to an hour and a half.
metrics::Histogram* Legs(metrics::Registry& registry, std::string_view name, std::string_view help) {
  return &registry.AddHistogram(name, help, Doubling(0.01, 20));
}

constexpr std::array kAges = {"1-9", "10-59", "60-299", "300+"};  // in cycles, as in Snapshot

}  // namespace

// Cycles take from microseconds to, if all goes wrong, half a minute: no bound may hide a tail.
ShardMetrics::ShardMetrics(metrics::Registry& registry)
    : registry_(registry),
      cycle_seconds_(registry.AddHistogram("bigfleet_shard_cycle_duration_seconds", "How long a decision cycle took.",
                                           Doubling(0.000125, 19))),
      legs_{Legs(registry, "bigfleet_shard_request_bootstrap_seconds",
                 "From the decision to bind a machine to the cluster's blob."),
            Legs(registry, "bigfleet_shard_provisioning_latency_seconds",
                 "From the provider's acknowledgement of Create until the machine was Idle."),
            Legs(registry, "bigfleet_shard_configure_phase_seconds",
                 "From the acknowledgement of Configure until the machine was Configured."),
            Legs(registry, "bigfleet_shard_drain_phase_seconds",
                 "From the acknowledgement of Drain until the machine was Idle.")},
      decode_seconds_(registry.AddHistogram("muster_shard_rollup_decode_seconds", "How long reading a roll-up took.",
                                            Doubling(0.000125, 16))),
      rollups_replaced_(registry.AddCounter("muster_shard_rollups_replaced_total",
                                            "Roll-ups that a newer one replaced before they were read.")),
      identity_rejected_(registry.AddCounter("bigfleet_shard_session_identity_rejected_total",
                                             "Sessions refused because the certificate is not the cluster's.")) {}

void ShardMetrics::PhaseEnded(std::string_view phase, Duration took) {
  registry_
      .AddHistogram("bigfleet_shard_cycle_phase_duration_seconds", "How long a phase of a decision cycle took.",
                    Doubling(0.000016, 20), {{"phase", std::string(phase)}})
      .Observe(std::chrono::duration<double>(took).count());
}

void ShardMetrics::Ended(const Lasted& lasted) {
  legs_[static_cast<size_t>(lasted.leg)]->Observe(std::chrono::duration<double>(lasted.took).count());
}

void ShardMetrics::Raise(std::string_view name, std::string_view help, const metrics::Labels& labels, uint64_t to) {
  metrics::Counter& counter = registry_.AddCounter(name, help, labels);
  if (const double more = static_cast<double>(to) - counter.value(); more > 0) counter.Add(more);
}

void ShardMetrics::Update(const Snapshot& snapshot) {
  const std::lock_guard lock(mu_);
  SetGauges(snapshot);
  RaiseCounters(snapshot.counters);
}

void ShardMetrics::SetGauges(const Snapshot& snapshot) {
  const auto gauge = [&](std::string_view name, std::string_view help, double value,
                         const metrics::Labels& labels = {}) { registry_.AddGauge(name, help, labels).Set(value); };
  std::map<MachineKind, uint64_t> machines = snapshot.machines;
  for (int s = 1; s <= 8; ++s) {  // every state of every type is given, also where there is no machine
    for (const model::CapacityType type : {model::CapacityType::kBareMetal, model::CapacityType::kReserved,
                                           model::CapacityType::kOnDemand, model::CapacityType::kSpot}) {
      machines.try_emplace({.state = static_cast<model::MachineState>(s), .capacity_type = type}, 0);
    }
  }
  for (const auto& [kind, count] : machines) {
    gauge("bigfleet_shard_inventory_machines",
          "Machines by state, capacity type and the interruption penalty of the need they were bound for.",
          static_cast<double>(count),
          {{"state", std::string(model::StateName(kind.state))},
           {"capacity_type", std::string(model::CapacityTypeName(kind.capacity_type))},
           {"interruption_penalty_bucket", model::BucketLabel(kind.interruption)}});
  }
  for (const auto& [bucket, count] : snapshot.demand) {
    gauge("bigfleet_shard_demand_machines", "Machines that needs have or get, by their interruption penalty.",
          static_cast<double>(count), {{"interruption_penalty_bucket", model::BucketLabel(bucket)}});
  }
  gauge("bigfleet_shard_shortfalls", "Needs that are short.", static_cast<double>(snapshot.shortfalls));
  for (size_t age = 0; age < kAges.size(); ++age) {
    gauge("bigfleet_shard_shortfalls_aged", "Needs that are short, by how many cycles they have been.",
          static_cast<double>(snapshot.shortfalls_aged[age]), {{"bucket", kAges[age]}});
  }
  for (const auto& [priority, count] : snapshot.shortfalls_by_priority) by_priority_.insert(std::to_string(priority));
  for (const std::string& priority : by_priority_) {
    const auto found = snapshot.shortfalls_by_priority.find(std::stoi(priority));
    gauge("bigfleet_shard_shortfalls_by_priority", "Needs that are short, by priority.",
          found == snapshot.shortfalls_by_priority.end() ? 0 : static_cast<double>(found->second),
          {{"priority_class", priority}});
  }
  for (const auto& [cluster, held] : snapshot.quarantined) quarantined_.insert(cluster);
  for (const std::string& cluster : quarantined_) {
    gauge("bigfleet_shard_rollup_quarantined", "1 while a cluster's roll-up is held.",
          snapshot.quarantined.contains(cluster) ? 1 : 0, {{"cluster", cluster}});
  }
  gauge("bigfleet_shard_active_sessions", "Clusters that are connected.", static_cast<double>(snapshot.sessions));
  gauge("bigfleet_shard_actuation_paused", "1 while the whole shard is paused.",
        snapshot.mode == contract::ActuationMode::kPaused ? 1 : 0);
  gauge("bigfleet_shard_action_queue_depth", "Actions that have begun and wait for a cluster or their turn.",
        static_cast<double>(snapshot.operations - snapshot.calls));
  gauge("bigfleet_shard_execute_inflight", "Transitions in the provider's hands.", static_cast<double>(snapshot.calls));
  gauge("muster_shard_epoch", "The shard's epoch; one higher in every life.", static_cast<double>(snapshot.epoch));
  gauge("muster_shard_cycle", "The number of the last cycle.", static_cast<double>(snapshot.cycle));
  gauge("muster_shard_ready", "1 once the shard has seen its machines.", snapshot.ready ? 1 : 0);
}

void ShardMetrics::RaiseCounters(const Counters& counters) {
  for (const auto& [kind, count] : counters.actions) {
    Raise("bigfleet_shard_actions_total", "Actions decided, by kind.", {{"kind", kind}}, count);
  }
  for (const auto& [which, count] : counters.outcomes) {
    Raise("bigfleet_shard_action_execute_outcomes_total", "How actions ended, by kind and outcome.",
          {{"kind", which.first}, {"outcome", which.second}}, count);
  }
  for (const auto& [kind, count] : counters.suppressed) {
    Raise("bigfleet_shard_actions_suppressed_total", "Actions that a pause kept back, by kind.", {{"kind", kind}},
          count);
  }
  for (const auto& [kind, count] : counters.dry_run) {
    Raise("bigfleet_shard_actions_dryrun_total", "Actions that dry run kept back, by kind.", {{"kind", kind}}, count);
  }
  for (const auto& [field, count] : counters.machines_rejected) {
    Raise("bigfleet_shard_machines_rejected_total", "Machine records refused, by field.", {{"reason", field}}, count);
  }
  for (const auto& [cluster, count] : counters.rollups_rejected) {
    Raise("bigfleet_shard_rollups_rejected_total", "Roll-ups refused, by cluster.", {{"cluster", cluster}}, count);
  }
  Raise("bigfleet_shard_actions_deferred_total", "Actions left to the next cycle by the limit of a cycle.", {},
        counters.deferred);
  Raise("bigfleet_shard_actions_dropped_total", "Actions not begun because too many are under way.", {},
        counters.dropped);
  Raise("bigfleet_shard_actions_deduped_total", "Actions not begun because their machine is busy or waits.", {},
        counters.deduped);
  Raise("bigfleet_shard_reclaims_capped_total", "Times a cluster could not be made to give up more.", {},
        counters.reclaims_capped);
  for (const auto& [outcome, count] :
       {std::pair{"committed", counters.plans_kept}, std::pair{"conflict", counters.plans_conflicts}}) {
    Raise("bigfleet_shard_phase1_occ_proposals_total", "Plans of needs, by whether they stood.", {{"outcome", outcome}},
          count);
  }
  Raise("bigfleet_shard_phase1_occ_displacements_total", "Plans taken back for a need of higher precedence.", {},
        counters.plans_displaced);
  // A plan that lost a race is made again in turn, as often as it takes (ADR 20).
  Raise("bigfleet_shard_phase1_occ_retries_exhausted_total", "Plans given up; never happens here.", {}, 0);
  Raise("bigfleet_shard_idle_releases_total", "Machines given back.", {}, counters.idle_releases);
  for (const auto& [event, count] :
       {std::pair{"installed", counters.sessions_installed}, std::pair{"removed", counters.sessions_removed},
        std::pair{"replaced", counters.sessions_replaced}}) {
    Raise("bigfleet_shard_session_lifecycle_total", "Sessions by what became of them.", {{"event", event}}, count);
  }
  Raise("muster_shard_list_failures_total", "Lists that the provider did not answer.", {}, counters.list_failures);
  Raise("muster_shard_reports_total", "Reports that the coordinator acknowledged.", {}, counters.reports);
}

}  // namespace muster::shard
