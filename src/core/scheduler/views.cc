#include "core/scheduler/views.h"

#include "core/scheduler/set_members.h"
#include "core/scheduler/sets.h"

namespace muster::scheduler {

contract::EventView EventViewOf(const EventRecord& event) {
  return {.id = event.id,
          .type = event.type,
          .workload = event.workload,
          .node = event.node,
          .reason = event.reason,
          .at = event.at,
          .details = event.details};
}

Views::Views(const StoreCopy& copy, const NodeHealth& health, const Rooms& rooms, const Orphans& orphans,
             const Reconciler& reconciler)
    : copy_(copy), health_(health), rooms_(rooms), orphans_(orphans), reconciler_(reconciler) {}

contract::NodeView Views::Node(const std::string& id) const {
  const NodeRecord& record = *copy_.Find<NodeRecord>(id);
  contract::NodeView view{.node = id,
                          .status = record.status,
                          .status_reason = record.status_reason,
                          .status_updated_by = record.status_updated_by,
                          .status_updated_at = record.status_updated_at,
                          .last_heartbeat = record.last_heartbeat,
                          .endpoint = record.facts.endpoint,
                          .agent_version = record.facts.agent_version,
                          .total = record.facts.total,
                          .reserved = rooms_.Reserved(id),
                          .supported_types = record.facts.supported_types,
                          .labels = record.facts.labels,
                          .taints = record.facts.taints,
                          .cordoned = record.cordoned,
                          .draining = record.drain.has_value(),
                          .last_order = record.last_order,
                          .native = record.facts.native,
                          .epoch = record.epoch,
                          .workloads = static_cast<int32_t>(copy_.OnNode(id).size()),
                          .orphans_held = static_cast<int32_t>(orphans_.Held(id)),
                          .revision = copy_.RevisionOf(NodeObject(id))};
  if (record.drain) {
    view.drain_reason = record.drain->reason;
    view.drain_instruction = record.drain->instruction;
    view.drain_deadline = record.drain->deadline;
  }
  if (const NodeHealth::Entry* entry = health_.Find(id)) {
    view.used = entry->used;
    if (entry->heard_at) view.last_heartbeat = entry->heard_at;
  }
  view.available = model::SubtractSaturating(view.total, model::Max(view.reserved, view.used));
  return view;
}

contract::WorkloadView Views::Workload(const std::string& id) const {
  const WorkloadRecord& record = *copy_.Find<WorkloadRecord>(id);
  const model::Workload& workload = record.workload;
  contract::WorkloadView view{.workload = id,
                              .set = workload.set,
                              .tenant = workload.tenant,
                              .type = workload.spec.type,
                              .desired = workload.desired,
                              .phase = workload.phase,
                              .node = workload.assigned_node,
                              .revision = workload.revision,
                              .actual = record.actual,
                              .attempts = record.retry.attempts,
                              .max_attempts = record.retry.max_attempts,
                              .next_retry_at = record.retry.next_retry_at,
                              .reason = record.reason,
                              .message = record.message,
                              .last_transition = record.last_transition,
                              .retryable = workload.phase != model::WorkloadPhase::kFailed,
                              .exit_code = record.exit_code,
                              .labels = workload.labels,
                              .metadata = record.metadata,
                              .spec = workload.spec,
                              .created_at = workload.created_at,
                              .updated_at = record.updated_at,
                              .stamp = record.stamp,
                              .store_revision = copy_.RevisionOf(WorkloadObject(id))};
  if (const Reconciler::Entry* entry = reconciler_.Find(id)) view.usage = entry->usage;
  return view;
}

contract::SetView Views::Set(const std::string& name) const {
  contract::SetView view = ViewOf(*copy_.Find<SetRecord>(name), StoredMembersOf(name, copy_));
  view.store_revision = copy_.RevisionOf(SetObject(name));
  return view;
}

contract::ObjectChanged Views::Changed(const ObjectId& object) const {
  contract::ObjectChanged changed{
      .kind = object.kind, .name = object.name, .revision = copy_.RevisionOf(object), .now = {}};
  // Of one that this scheduler deleted ahead of the watch, the revision is later than what the watch has told: whoever
  // listed before the deletion and watches from there must hear of it.
  if (changed.revision == 0) changed.revision = copy_.DeletedAt(object);
  switch (object.kind) {
    case contract::ObjectKind::kNode:
      if (copy_.Find<NodeRecord>(object.name) != nullptr) changed.now = Node(object.name);
      break;
    case contract::ObjectKind::kWorkload:
      if (copy_.Find<WorkloadRecord>(object.name) != nullptr) changed.now = Workload(object.name);
      break;
    case contract::ObjectKind::kSet:
      if (copy_.Find<SetRecord>(object.name) != nullptr) changed.now = Set(object.name);
      break;
    case contract::ObjectKind::kQuota: break;
  }
  return changed;
}

}  // namespace muster::scheduler
