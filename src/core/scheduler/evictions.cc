#include "core/scheduler/evictions.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/probe.h"
#include "core/scheduler/set_members.h"
#include "core/scheduler/sets.h"

namespace muster::scheduler {

Evictions::Evictions(const StoreCopy& copy, Drafts& drafts, Transitions& transitions, State state)
    : copy_(copy), drafts_(drafts), transitions_(transitions), state_(std::move(state)) {}

void Evictions::OnNode(const std::string& node) {
  const NodeRecord* record = copy_.Find<NodeRecord>(node);
  if (record != nullptr && record->drain) {
    state_.draining.insert(node);
    state_.due = true;
  } else {
    state_.draining.erase(node);
  }
}

std::set<std::string> Evictions::Run(StepContext& ctx) {
  std::set<std::string> edited;
  if (!std::exchange(state_.due, false)) return edited;
  for (const std::string& node : state_.draining) Drain(node, *copy_.Find<NodeRecord>(node)->drain, edited, ctx);
  return edited;
}

// Whether its set can do without it.
bool Evictions::MayLeave(const WorkloadRecord& record) const {
  const SetRecord* set = drafts_.Find<SetRecord>(record.workload.set);
  if (set == nullptr || record.workload.phase != model::WorkloadPhase::kRunning) return true;
  if (set->spec.min_available.amount <= 0 || MUTANT("scheduler.drain_at_once")) return true;
  if (EvictionsAllowed(*set, MembersOf(record.workload.set, copy_, drafts_)) > 0) return true;
  PROBE("scheduler.drain_waits");
  return false;
}

void Evictions::Drain(const std::string& node, const DrainOrder& order, std::set<std::string>& edited,
                      StepContext& ctx) {
  const bool late = order.deadline && *order.deadline <= ctx.now.wall;
  const std::set<std::string> there = copy_.OnNode(node);
  for (const std::string& id : there) {
    const WorkloadRecord* record = drafts_.Find<WorkloadRecord>(id);
    if (record == nullptr || record->workload.assigned_node != node || record->evict ||
        record->workload.desired == model::DesiredState::kDeleted || drafts_.Busy(WorkloadObject(id))) {
      continue;
    }
    if (record->workload.phase == model::WorkloadPhase::kCompleted) {
      transitions_.Unassign(id, Action::kEvict, Reason::kDrained, node, ctx);
    } else if (late || MayLeave(*record)) {
      const Duration own = record->workload.spec.grace;
      transitions_.Evict(id, Reason::kDrained, order.reason.empty() ? node : node + ", " + order.reason,
                         order.grace ? std::optional(std::min(own, *order.grace)) : std::nullopt, ctx);
    } else {
      continue;
    }
    edited.insert(id);
  }
}

void Evictions::CheckInvariants() const {
  for (const auto& [id, record] : copy_.All<NodeRecord>()) {
    MUSTER_CHECK(record.drain.has_value() == state_.draining.contains(id), "node {} drains, or does not", id);
  }
}

}  // namespace muster::scheduler
