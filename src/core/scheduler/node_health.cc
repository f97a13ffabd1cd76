#include "core/scheduler/node_health.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "model/text_scalars.h"

namespace muster::scheduler {

Duration HeartbeatInterval(const Config& config) { return std::max<Duration>(1s, config.node_timeout / 3); }

NodeHealth::NodeHealth(const Config& config, const StoreCopy& copy, Drafts& drafts, State state)
    : config_(config), copy_(copy), drafts_(drafts), state_(std::move(state)) {}

// --- what is told

NodeHealth::Entry& NodeHealth::At(const std::string& node, MonoTime now) {
  const auto [found, is_new] = state_.entries.try_emplace(node);
  if (is_new) Restart(node, found->second, now);
  return found->second;
}

void NodeHealth::Restart(const std::string& node, Entry& entry, MonoTime now) {
  state_.expiries.erase({entry.judged_from, node});
  entry.judged_from = now;
  entry.stale = false;
  entry.expired = false;
  state_.expiries.emplace(now, node);
}

void NodeHealth::JudgeFrom(MonoTime now) {
  for (auto& [node, entry] : state_.entries) {
    if (!MUTANT("scheduler.ages_go_on")) Restart(node, entry, now);
    entry.heard = false;
    entry.spoke.reset();
    entry.unreachable = false;
    entry.reached = false;
    entry.failing_since.reset();
    state_.dirty.insert(node);
  }
  state_.next_round = now + config_.monitor_interval;
}

void NodeHealth::OnRecord(const std::string& node, MonoTime now) {
  if (copy_.Find<NodeRecord>(node) != nullptr) {
    At(node, now);
    state_.dirty.insert(node);
    return;
  }
  const auto found = state_.entries.find(node);
  if (found == state_.entries.end()) return;
  state_.expiries.erase({found->second.judged_from, node});
  state_.entries.erase(found);
  state_.dirty.erase(node);
}

void NodeHealth::OnHeartbeat(const std::string& node, std::optional<model::Resources> used, muster::Now now) {
  Entry& entry = At(node, now.mono);
  Restart(node, entry, now.mono);
  // A heartbeat out of turn makes the pause shorter, and one that was late does not make it longer than it may be.
  if (entry.spoke) {
    entry.pause = std::min(std::max(now.mono - *entry.spoke, entry.pause / 2), HeartbeatInterval(config_));
  }
  entry.heard = true;
  entry.spoke = now.mono;
  entry.heard_at = now.wall;
  if (MUTANT("scheduler.heartbeat_revives")) OnCallSucceeded(node);
  if (used) entry.used = *std::move(used);
  // One that is Ready stays so: heartbeats of nodes at rest lead to nothing.
  const NodeRecord* record = drafts_.Find<NodeRecord>(node);
  if (record == nullptr || record->status != model::NodeStatus::kReady) state_.dirty.insert(node);
}

void NodeHealth::OnRegistered(const std::string& node, muster::Now now) {
  OnHeartbeat(node, std::nullopt, now);
  At(node, now.mono).registered = now.mono;
}

bool NodeHealth::OnCallFailed(const std::string& node, const Status& status, MonoTime now) {
  const auto found = state_.entries.find(node);
  if (found == state_.entries.end()) return false;
  Entry& entry = found->second;
  entry.reached = false;
  entry.why = status.ToString();
  if (!entry.failing_since) entry.failing_since = now;
  if (entry.unreachable || now - *entry.failing_since < config_.unreachable_grace) return false;
  PROBE("scheduler.node_unreachable");
  entry.unreachable = true;
  state_.dirty.insert(node);
  return true;
}

void NodeHealth::OnCallSucceeded(const std::string& node) {
  const auto found = state_.entries.find(node);
  if (found == state_.entries.end()) return;
  found->second.failing_since.reset();
  const NodeRecord* record = drafts_.Find<NodeRecord>(node);
  const bool was = found->second.unreachable || (record != nullptr && record->unreachable);
  found->second.unreachable = false;
  found->second.reached = true;
  if (was) state_.dirty.insert(node);
}

std::vector<std::string> NodeHealth::RunDue(MonoTime now) {
  std::vector<std::string> lost;
  while (!state_.expiries.empty() && now - state_.expiries.begin()->first > config_.node_timeout) {
    const std::string node = state_.expiries.begin()->second;
    state_.expiries.erase(state_.expiries.begin());
    state_.entries.at(node).stale = true;
    lost.push_back(node);
  }
  if (!state_.next_round) state_.next_round = now + config_.monitor_interval;
  if (now < *state_.next_round) return lost;
  state_.next_round = now + config_.monitor_interval;
  for (auto& [node, entry] : state_.entries) {
    if (!entry.stale || entry.expired) continue;
    entry.expired = true;
    state_.dirty.insert(node);
  }
  return lost;
}

// --- transitions

void NodeHealth::WriteTransitions(StepContext& ctx) {
  std::vector<std::string> dirty(state_.dirty.begin(), state_.dirty.end());
  for (const std::string& node : dirty) {
    if (drafts_.Busy(NodeObject(node))) continue;
    state_.dirty.erase(node);
    Judge(node, ctx);
  }
}

void NodeHealth::Judge(const std::string& node, StepContext& ctx) {
  const NodeRecord* record = drafts_.Find<NodeRecord>(node);
  const Entry* entry = Find(node);
  if (record == nullptr || entry == nullptr) return;
  const bool ready = record->status == model::NodeStatus::kReady;
  if (entry->unreachable && !record->unreachable) {
    drafts_.Edit<NodeRecord>(node).unreachable = true;
    return Write(node, model::NodeStatus::kNotReady, "agent unreachable: " + entry->why, "reconciler",
                 Reason::kNodeUnreachable, ctx);
  }
  if (record->unreachable && !entry->unreachable && entry->reached) {
    drafts_.Edit<NodeRecord>(node).unreachable = false;
    if (entry->heard && !entry->stale) {
      Write(node, model::NodeStatus::kReady, "agent reachable again", "reconciler", Reason::kReachable, ctx);
    }
    return;
  }
  if (ready && entry->expired) {
    const WallTime last = entry->heard_at.value_or(record->last_heartbeat);
    return Write(node, model::NodeStatus::kNotReady,
                 fmt::format("heartbeat expired: last heartbeat {}", model::FormatWallTime(last)), "monitor",
                 Reason::kHeartbeatExpired, ctx);
  }
  if (!ready && entry->heard && !entry->stale && !record->unreachable) {
    Write(node, model::NodeStatus::kReady, "heartbeat received", "heartbeat", Reason::kHeartbeat, ctx);
  }
}

void NodeHealth::Write(const std::string& node, model::NodeStatus status, std::string reason, std::string_view by,
                       Reason why, StepContext& ctx) {
  auto& record = drafts_.Edit<NodeRecord>(node);
  const bool lost = status == model::NodeStatus::kNotReady;
  const bool changes = record.status != status;
  record.status = status;
  record.status_reason = reason;
  record.status_updated_by = by;
  record.status_updated_at = ctx.now.wall;
  const Entry* entry = Find(node);
  if (entry != nullptr && entry->heard_at) record.last_heartbeat = *entry->heard_at;
  if (!changes) return;
  ctx.counters.nodes_lost += lost;
  drafts_.AddEvent(NodeObject(node), lost ? EventType::kNodeLost : EventType::kNodeReady, node, reason, ctx.now);
  drafts_.AddDecision(NodeObject(node),
                      {.kind = lost ? contract::DecisionKind::kNodeLost : contract::DecisionKind::kNodeReady,
                       .at = ctx.now.wall,
                       .node = node,
                       .reason = std::string(ReasonName(why)),
                       .message = std::move(reason)});
}

// --- what is known

bool NodeHealth::Silent(const Entry& entry, MonoTime now) const {
  return !entry.spoke || now - *entry.spoke > entry.pause + config_.reconcile_interval;
}

const NodeHealth::Entry* NodeHealth::Find(std::string_view node) const {
  const auto found = state_.entries.find(node);
  return found == state_.entries.end() ? nullptr : &found->second;
}

bool NodeHealth::Available(std::string_view node) const {
  const Entry* entry = Find(node);
  const NodeRecord* stored = copy_.Find<NodeRecord>(node);
  const NodeRecord* next = drafts_.Find<NodeRecord>(node);
  return entry != nullptr && stored != nullptr && next != nullptr && !entry->stale && !entry->unreachable &&
         stored->status == model::NodeStatus::kReady && next->status == model::NodeStatus::kReady;
}

bool NodeHealth::AreOneAgent(std::string_view a, std::string_view b) const {
  const NodeRecord* one = copy_.Find<NodeRecord>(a);
  const NodeRecord* other = copy_.Find<NodeRecord>(b);
  if (a == b || one == nullptr || other == nullptr || MUTANT("scheduler.new_id_is_another")) return false;
  if (one->facts.native || other->facts.native || one->facts.endpoint != other->facts.endpoint) return false;
  const auto spoke_since = [&](std::string_view node, std::string_view registered) {
    const Entry* entry = Find(node);
    const Entry* since = Find(registered);
    return entry != nullptr && since != nullptr && entry->spoke &&
           (!since->registered || *entry->spoke > *since->registered);
  };
  return !(spoke_since(a, b) && spoke_since(b, a));
}

NodeNow NodeHealth::Now(std::string_view node) const {
  const Entry* entry = Find(node);
  if (entry == nullptr) return {};
  return {.available = !entry->unreachable, .fresh = !entry->stale, .used = entry->used};
}

std::optional<MonoTime> NodeHealth::NextWake() const {
  std::optional<MonoTime> next = state_.next_round;
  for (const std::string& node : state_.dirty) {
    if (!drafts_.Busy(NodeObject(node))) return MonoTime{};
  }
  // An age must exceed the timeout.
  if (!state_.expiries.empty()) {
    const MonoTime expiry = state_.expiries.begin()->first + config_.node_timeout + Duration(1);
    if (!next || expiry < *next) next = expiry;
  }
  return next;
}

void NodeHealth::CheckInvariants() const {
  for (const auto& [node, record] : copy_.All<NodeRecord>()) {
    MUSTER_CHECK(state_.entries.contains(node), "node {} has a record and no entry", node);
  }
  for (const auto& [node, entry] : state_.entries) {
    MUSTER_CHECK(entry.stale != state_.expiries.contains({entry.judged_from, node}), "the expiry of {} is wrong", node);
  }
}

}  // namespace muster::scheduler
