#include "role/agent/action_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::agent {
namespace {

// As schedulers of persys.agent.v1 know them.
const char* NameOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kApply: return "apply_workload";
    case ActionKind::kDelete: return "delete_workload";
    case ActionKind::kRestart: return "reconcile";
  }
  return "reconcile";
}
const char* NameOf(ActionState state) {
  switch (state) {
    case ActionState::kPending: return "pending";
    case ActionState::kRunning: return "running";
    case ActionState::kCompleted: return "completed";
    case ActionState::kFailed: return "failed";
  }
  return "failed";
}

}  // namespace

void ActionLog::Record(const Acted& acted, WallTime now) {
  const std::lock_guard lock(mu_);
  auto entry = std::ranges::lower_bound(entries_, acted.number, {}, &Entry::number);
  if (entry == entries_.end() || entry->number != acted.number) {
    if (acted.state != ActionState::kPending) return;  // it was dropped
    entries_.push_back({.number = acted.number,
                        .action = {.id = fmt::format("task-{}", acted.number),
                                   .workload = acted.workload,
                                   .type = NameOf(acted.kind),
                                   .created_at = now}});
    entry = std::prev(entries_.end());
  }
  rpc::AgentAction& action = entry->action;
  action.status = NameOf(acted.state);
  action.error = acted.error;
  if (acted.state != ActionState::kPending && action.started_at == WallTime{}) action.started_at = now;
  if (acted.state == ActionState::kCompleted || acted.state == ActionState::kFailed) action.ended_at = now;
  if (entries_.size() > most_) entries_.pop_front();
}

std::vector<rpc::AgentAction> ActionLog::List() const {
  const std::lock_guard lock(mu_);
  std::vector<rpc::AgentAction> actions;
  for (const Entry& entry : entries_) actions.push_back(entry.action);
  return actions;
}

}  // namespace muster::agent
