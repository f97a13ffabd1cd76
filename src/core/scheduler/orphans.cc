#include "core/scheduler/orphans.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/probe.h"
#include "core/scheduler/reasons.h"

namespace muster::scheduler {
namespace {

constexpr size_t kAlwaysAllowed = 5;
constexpr size_t kMostCompared = 100;
constexpr size_t kMostReleased = 10000;

void GiveAlert(const std::string& node, size_t held, size_t reported, StepContext& ctx) {
  const std::string text = fmt::format("{} of {} workloads", held, reported);
  ctx.Note(std::string(ReasonSentence(Reason::kOrphansHeld)), node, text);
  ctx.Emit(Publish{contract::Decision{.kind = contract::DecisionKind::kOrphansHeld,
                                      .at = ctx.now.wall,
                                      .node = node,
                                      .reason = std::string(ReasonName(Reason::kOrphansHeld)),
                                      .message = ReasonText(Reason::kOrphansHeld, text)}});
}

}  // namespace

Orphans::Orphans(const StoreCopy& copy, Drafts& drafts, AgentCalls& calls, State state)
    : copy_(copy), drafts_(drafts), calls_(calls), state_(std::move(state)) {}

bool Orphans::IsOrphan(const std::string& node, const std::string& workload) const {
  if (copy_.OnNode(node).contains(workload)) return false;
  if (drafts_.Busy(WorkloadObject(workload)) || calls_.Has(node, workload)) return false;
  const WorkloadRecord* next = drafts_.Find<WorkloadRecord>(workload);
  return next == nullptr || next->workload.assigned_node != node;
}

bool Orphans::OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses,
                         StepContext& ctx) {
  std::map<std::string, uint64_t> moved;
  std::map<std::string, uint64_t> unknown;
  const std::set<std::string>& own = copy_.OnNode(node);
  for (const contract::WorkloadStatus& status : statuses) {
    const std::string& id = status.workload;
    if (own.contains(id)) continue;  // nearly always, and with every heartbeat: a few ids, not all that there are
    if (status.actual == contract::ActualState::kMissing || !IsOrphan(node, id)) continue;
    if (MUTANT("scheduler.orphans_stay")) continue;
    const WorkloadRecord* stored = copy_.Find<WorkloadRecord>(id);
    const uint64_t known = stored == nullptr ? 0 : stored->stamp.sequence;
    // An assignment that is newer than the stored one was made by a scheduler on a later store: this one was restored.
    const bool behind =
        stored != nullptr && status.stamp.sequence > known && !MUTANT("scheduler.restored_store_trusted");
    const bool counts = (stored == nullptr || behind) && !state_.released.contains({node, id});
    (counts ? unknown : moved).emplace(id, std::max(known, status.stamp.sequence));
  }
  if (moved.empty() && unknown.empty()) {
    const auto found = state_.nodes.find(node);
    if (found != state_.nodes.end() && found->second.checking.empty()) state_.nodes.erase(found);
    return true;
  }
  Node& here = state_.nodes[node];
  std::erase_if(here.held, [&](const std::string& id) { return !unknown.contains(id); });
  std::map<std::string, uint64_t> fresh;
  for (const auto& [id, sequence] : unknown) {
    if (here.accepted.contains(id)) {
      moved.emplace(id, sequence);
    } else {
      fresh.emplace(id, sequence);
    }
  }
  const size_t most = std::max(kAlwaysAllowed, statuses.size() / 2);
  const bool held = (fresh.size() > most || !here.held.empty()) && !MUTANT("scheduler.no_orphan_rail");
  if (held) {
    PROBE("scheduler.orphans_held");
    const bool alert = here.held.empty();
    for (const auto& [id, sequence] : fresh) here.held.insert(id);
    if (alert) GiveAlert(node, here.held.size(), statuses.size(), ctx);
  } else {
    moved.insert(fresh.begin(), fresh.end());
  }
  if (moved.empty() || !here.checking.empty()) return !held;
  std::vector<contract::Compare> compares;
  for (const auto& [id, sequence] : moved) {
    if (compares.size() >= kMostCompared) break;
    compares.push_back(copy_.Unchanged(copy_.Key(RecordKind::kWorkload, id)));
    here.checking.emplace(id, sequence);
  }
  drafts_.Check(std::move(compares), node, ctx);
  return !held;
}

void Orphans::OnChecked(const std::string& node, bool holds, StepContext& ctx) {
  const auto found = state_.nodes.find(node);
  if (found == state_.nodes.end()) return;
  for (const auto& [id, sequence] : std::exchange(found->second.checking, {})) {
    if (!holds || !IsOrphan(node, id) || copy_.Find<NodeRecord>(node) == nullptr) continue;
    PROBE("scheduler.orphan_deleted");
    ++ctx.counters.orphans_deleted;
    calls_.Enqueue({.kind = CallKind::kOrphan, .node = node, .workload = id, .sequence = sequence});
    const Reason reason = copy_.Find<WorkloadRecord>(id) == nullptr ? Reason::kOrphan : Reason::kOrphanMoved;
    ctx.Emit(Publish{contract::Decision{.kind = contract::DecisionKind::kOrphanDeleted,
                                        .at = ctx.now.wall,
                                        .workload = id,
                                        .node = node,
                                        .reason = std::string(ReasonName(reason)),
                                        .message = std::string(ReasonSentence(reason))}});
  }
}

void Orphans::OnDeleted(const AgentCall& call, const CallDone& done, StepContext& ctx) {
  const auto* reply = done.reply ? std::get_if<contract::DeletedOnAgent>(&*done.reply) : nullptr;
  const bool refused = done.status.ok() ? reply != nullptr && !reply->success : done.status.code() != Code::kNotFound;
  if (refused) {  // reported again, and tried again
    if (IsUnreachable(done.status)) return;
    const std::string text = done.status.ok() ? reply->message : done.status.ToString();
    return ctx.Emit(Publish{contract::Decision{.kind = contract::DecisionKind::kRefused,
                                               .at = ctx.now.wall,
                                               .workload = call.workload,
                                               .node = call.node,
                                               .reason = std::string(ReasonName(Reason::kDeleteFailed)),
                                               .message = ReasonText(Reason::kDeleteFailed, text)}});
  }
  state_.released.erase({call.node, call.workload});
  const auto found = state_.nodes.find(call.node);
  if (found != state_.nodes.end()) found->second.accepted.erase(call.workload);
}

void Orphans::Release(const std::string& node, const std::string& workload) {
  if (node.empty() || state_.released.size() >= kMostReleased) return;
  state_.released.emplace(node, workload);
}

size_t Orphans::Accept(const std::string& node) {
  const auto found = state_.nodes.find(node);
  if (found == state_.nodes.end()) return 0;
  const size_t held = found->second.held.size();
  found->second.accepted.merge(found->second.held);
  found->second.held.clear();
  return held;
}

void Orphans::DropChecks() {
  for (auto& [node, entry] : state_.nodes) entry.checking.clear();
}

size_t Orphans::Held(std::string_view node) const {
  const auto found = state_.nodes.find(node);
  return found == state_.nodes.end() ? 0 : found->second.held.size();
}

size_t Orphans::held() const {
  size_t held = 0;
  for (const auto& [node, entry] : state_.nodes) held += entry.held.size();
  return held;
}

void Orphans::CheckInvariants() const {
  for (const auto& [node, entry] : state_.nodes) {
    for (const std::string& id : entry.held) {
      MUSTER_CHECK(!entry.accepted.contains(id) && !entry.checking.contains(id), "{} on {} is held, and deleted", id,
                   node);
    }
  }
}

}  // namespace muster::scheduler
