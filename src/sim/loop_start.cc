#include "sim/loop_start.h"

#include <algorithm>
#include <utility>

#include "core/scheduler/records.h"
#include "core/scheduler/sets.h"

namespace muster::sim {
namespace {

using model::MachineState;
using model::WorkloadPhase;
using scheduler::RecordKind;

constexpr uint64_t kMostRestarts = 1000;  // of a set that are told by its revision

scheduler::NodeRecord RecordOf(const contract::NodeView& view) {
  scheduler::NodeRecord record{.facts = {.node = view.node,
                                         .endpoint = view.endpoint,
                                         .agent_version = view.agent_version,
                                         .total = view.total,
                                         .supported_types = view.supported_types,
                                         .labels = view.labels,
                                         .taints = view.taints,
                                         .native = true},
                               .status = view.status,
                               .status_reason = view.status_reason,
                               .status_updated_by = view.status_updated_by,
                               .status_updated_at = view.status_updated_at,
                               .epoch = view.epoch,
                               .cordoned = view.cordoned};
  if (view.draining) {
    record.drain = scheduler::DrainOrder{.reason = view.drain_reason,
                                         .instruction = view.drain_instruction,
                                         .grace = {},
                                         .deadline = view.drain_deadline};
  }
  return record;
}

// What it waits for is tried again at once: the time at which it would have been belongs to another clock.
scheduler::WorkloadRecord RecordOf(const contract::WorkloadView& view) {
  scheduler::WorkloadRecord record{.workload = {.id = view.workload,
                                                .set = view.set,
                                                .tenant = view.tenant,
                                                .revision = view.revision,
                                                .labels = view.labels,
                                                .spec = view.spec,
                                                .desired = view.desired,
                                                .phase = view.phase,
                                                .assigned_node = view.node,
                                                .created_at = view.created_at},
                                   .agent_revision = view.revision,
                                   .metadata = view.metadata,
                                   .retry = {.attempts = view.attempts, .max_attempts = view.max_attempts},
                                   .actual = view.actual,
                                   .exit_code = view.exit_code,
                                   .reason = view.reason,
                                   .message = view.message,
                                   .updated_at = view.updated_at,
                                   .stamp = view.stamp};
  if (view.last_transition) record.last_transition = *view.last_transition;
  return record;
}

scheduler::SetRecord RecordOf(const contract::SetView& view) {
  scheduler::SetRecord record{.spec = view.spec, .revision = view.revision, .deleting = view.deleting};
  record.created_at = view.created_at;
  for (uint64_t restarts = 0; restarts < kMostRestarts; ++restarts) {
    if (scheduler::SpecRevision(view.spec, restarts) != view.revision) continue;
    record.restarts = restarts;
    break;
  }
  for (int32_t i = 0; i < view.completed; ++i) record.completed.push_back(i);
  return record;
}

}  // namespace

LoopSettings LivelySettings() {
  LoopSettings settings;
  settings.shard.cycle_interval = 200ms;
  settings.shard.reclaim_budget = {1'000'000};
  settings.shard.reclaim_window = 1min;
  settings.shard.policy.surplus_hold = 5s;
  settings.shard.policy.release_hold_on_demand = 30s;
  settings.shard.policy.release_hold_spot = 10s;
  return settings;
}

model::Machine AtRest(model::Machine machine) {
  switch (machine.state) {
    case MachineState::kCreating: machine.state = MachineState::kSpeculative; break;
    case MachineState::kConfiguring:
    case MachineState::kDeleting: machine.state = MachineState::kIdle; break;
    case MachineState::kDraining: machine.state = MachineState::kConfigured; break;
    default: break;
  }
  if (machine.state == MachineState::kSpeculative) machine.host = {};
  if (machine.state == MachineState::kSpeculative || machine.state == MachineState::kIdle) {
    machine.cluster.clear();
    machine.shard_metadata.clear();
  }
  return machine;
}

std::vector<contract::StoreWrite> StoreRows(const LoopClusterStart& cluster) {
  std::vector<contract::StoreWrite> rows;
  const auto add = [&rows](RecordKind kind, const std::string& id, std::string value) {
    rows.push_back(contract::Put(scheduler::KeyOf("", kind, id), std::move(value)));
  };
  for (const contract::NodeView& node : cluster.nodes) {
    add(RecordKind::kNode, node.node, scheduler::Encode(RecordOf(node)));
  }
  for (const contract::WorkloadView& workload : cluster.workloads) {
    add(RecordKind::kWorkload, workload.workload, scheduler::Encode(RecordOf(workload)));
  }
  for (const contract::SetView& set : cluster.sets) {
    add(RecordKind::kSet, set.spec.name, scheduler::Encode(RecordOf(set)));
  }
  for (const model::Quota& quota : cluster.quotas) add(RecordKind::kQuota, quota.tenant, scheduler::Encode(quota));
  return rows;
}

NodeMemory MemoryOf(const contract::NodeView& node, const std::vector<contract::WorkloadView>& workloads,
                    WallTime now) {
  NodeMemory memory;
  const auto put = [&memory](const contract::Write& write) { memory.rows[write.key] = *write.value; };
  put(contract::kFormatRow.Put(agent::kFormat));
  put(agent::kEpoch.Put(node.epoch));
  for (const contract::WorkloadView& view : workloads) {
    if (view.node != node.node) continue;
    const bool runs = view.phase == WorkloadPhase::kRunning;
    const bool ended = view.phase == WorkloadPhase::kCompleted || view.phase == WorkloadPhase::kFailed;
    const bool stopped = view.phase == WorkloadPhase::kStopped;
    // What is between two states is told to the agent when it joins.
    if (!runs && !ended && !stopped) continue;
    agent::Row row{.wanted = {.workload = view.workload,
                              .set = view.set,
                              .tenant = view.tenant,
                              .revision = view.revision,
                              .run = !stopped,
                              .spec = view.spec,
                              .labels = view.labels,
                              .stamp = {.epoch = node.epoch, .sequence = view.stamp.sequence}},
                   .launch = 1,
                   .given_up = view.phase == WorkloadPhase::kFailed,
                   .created_at = view.created_at,
                   .updated_at = view.updated_at};
    put(agent::kRows.Put(view.workload, row));
    memory.types[view.workload] = std::string(model::WorkloadTypeName(view.spec.type));
    memory.runs[view.workload] = {.workload = view.workload,
                                  .launch = 1,
                                  .revision = view.revision,
                                  .running = runs,
                                  .started_at = now,
                                  .ended_at = runs ? WallTime{} : now,
                                  .exit_code = runs ? std::nullopt : view.exit_code};
  }
  return memory;
}

}  // namespace muster::sim
