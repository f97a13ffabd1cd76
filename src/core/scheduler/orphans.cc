#include "core/scheduler/orphans.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {
namespace {

constexpr size_t kAlwaysAllowed = 5;
constexpr size_t kMostCompared = 100;
constexpr size_t kMostReleased = 10000;
constexpr size_t kMostNoted = 10000;  // of a node, from reports that are not complete

size_t MostAllowed(size_t of) { return std::max(kAlwaysAllowed, of / 2); }

}  // namespace

Orphans::Orphans(const Config& config, const StoreCopy& copy, const NodeHealth& health, Drafts& drafts,
                 AgentCalls& calls, State state)
    : config_(config), copy_(copy), health_(health), drafts_(drafts), calls_(calls), state_(std::move(state)) {}

bool Orphans::IsOrphan(const std::string& node, const std::string& workload) const {
  if (copy_.OnNode(node).contains(workload)) return false;
  if (drafts_.Busy(WorkloadObject(workload)) || calls_.Has(node, workload)) return false;
  const WorkloadRecord* next = drafts_.Find<WorkloadRecord>(workload);
  return next == nullptr || next->workload.assigned_node != node;
}

// Every node that lives reports within a node timeout. Until then a few unknown workloads may be the first of many.
bool Orphans::IsCounting(MonoTime now) const {
  if (MUTANT("scheduler.counts_too_early")) return false;
  return !state_.counted_from || now - *state_.counted_from < config_.node_timeout;
}

bool Orphans::IsBehind(const WorkloadRecord& stored, const std::string& node,
                       const contract::WorkloadStatus& status) const {
  if (MUTANT("scheduler.restored_store_trusted")) return false;
  // An assignment that is newer than the one that was replaced was made by a scheduler on a later store: this one was
  // restored. That the record was given to another node since, above all that the old store gave, says nothing.
  const NodeRecord* there = copy_.Find<NodeRecord>(node);
  if (there == nullptr || !there->facts.native) {
    return stored.previous_node != node && !health_.AreOneAgent(stored.previous_node, node);
  }
  const uint64_t sequence = status.stamp.sequence;
  // Every record of a move has the sequence that was replaced, but for those of a version that did not keep it, and for
  // one that waits for its second node.
  if (stored.previous_sequence == 0 && !stored.previous_node.empty()) return sequence > stored.stamp.sequence;
  return sequence > stored.previous_sequence && sequence != stored.stamp.sequence;
}

bool Orphans::WasUnknown(const std::string& node, const std::string& workload) const {
  const auto report = state_.reports.find(node);
  // What is not in a set that is full may not have been noted.
  const auto has = [&](const std::set<std::string>& noted) {
    return noted.size() >= kMostNoted || noted.contains(workload);
  };
  if (report != state_.reports.end() && has(report->second.unknown)) return true;
  const auto here = state_.nodes.find(node);
  return here != state_.nodes.end() && has(here->second.held);
}

Orphans::Found Orphans::Sort(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses,
                             MonoTime now) const {
  Found found;
  const std::set<std::string>& own = copy_.OnNode(node);
  const NodeRecord* there = copy_.Find<NodeRecord>(node);
  const bool foreign = there == nullptr || !there->facts.native;
  for (const contract::WorkloadStatus& status : statuses) {
    const std::string& id = status.workload;
    if (own.contains(id)) continue;  // nearly always, and with every heartbeat: a few ids, not all that there are
    if (status.actual == contract::ActualState::kMissing || !IsOrphan(node, id)) continue;
    if (MUTANT("scheduler.orphans_stay")) continue;
    const WorkloadRecord* stored = copy_.Find<WorkloadRecord>(id);
    // The node that it is assigned to is this one, under the id that it had: what runs there runs where it should.
    if (stored != nullptr && health_.AreOneAgent(stored->workload.assigned_node, node)) continue;
    const uint64_t known = stored == nullptr ? 0 : stored->stamp.sequence;
    const bool released = state_.released.contains({node, id});
    const bool counts = !released && (stored == nullptr || IsBehind(*stored, node, status) || WasUnknown(node, id));
    // It came from here, and may have come back since a backup was made: it is started where the record says first.
    if (foreign && !counts && !released && IsCounting(now)) continue;
    if (!counts && MUTANT("scheduler.moved_stay")) continue;
    (counts ? found.unknown : found.moved).emplace(id, std::max(known, status.stamp.sequence));
  }
  return found;
}

void Orphans::NoteReport(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses,
                         const Stamped& unknown, bool complete, MonoTime now) {
  Report& report = state_.reports[node];
  const auto was_passed = [&](const contract::WorkloadStatus& status) {
    return state_.passed.contains({node, status.workload});
  };
  const auto passed = state_.passed.empty() ? 0 : std::ranges::count_if(statuses, was_passed);
  const uint64_t workloads = statuses.size() - static_cast<uint64_t>(passed);
  report.at = now;
  report.workloads = complete ? workloads : std::max(report.workloads, workloads);
  if (complete) report.unknown.clear();
  if (report.unknown.size() < kMostNoted) {  // one that is full stays so until a complete report
    for (const contract::WorkloadStatus& status : statuses) report.unknown.erase(status.workload);
  }
  for (const auto& [id, sequence] : unknown) {
    if (!complete && report.unknown.size() >= kMostNoted) break;
    report.unknown.insert(id);
  }
  report.workloads = std::max<uint64_t>(report.workloads, complete ? 0 : report.unknown.size());
  const auto released = state_.released.lower_bound({node, ""});
  if (released == state_.released.end() || released->first != node) return;
  std::set<std::string> there;
  for (const contract::WorkloadStatus& status : statuses) there.insert(status.workload);
  for (auto at = released; at != state_.released.end() && at->first == node;) {
    const std::string& id = at->second;
    // What it does not have any more is not waited for; what it was given again since is its own.
    const bool gone = complete && !there.contains(id);
    const bool again = copy_.OnNode(node).contains(id) && !drafts_.Busy(WorkloadObject(id));
    at = gone || again ? state_.released.erase(at) : std::next(at);
  }
}

Orphans::Count Orphans::CountAll(MonoTime now) {
  const auto is_old = [&](MonoTime at) { return now - at > config_.node_timeout; };
  std::erase_if(state_.reports, [&](const auto& entry) { return is_old(entry.second.at); });
  std::erase_if(state_.passed, [&](const auto& entry) { return is_old(entry.second); });
  Count count;
  for (const auto& [node, report] : state_.reports) {
    count.unknown += report.unknown.size();
    // What the store has for another node is started there too, and is one workload all the same.
    const auto stored = static_cast<uint64_t>(std::ranges::count_if(
        report.unknown, [&](const std::string& id) { return copy_.Find<WorkloadRecord>(id) != nullptr; }));
    count.all += report.workloads - std::min(report.workloads, stored);
  }
  for (const auto& [where, at] : state_.passed) {
    const auto report = state_.reports.find(where.first);
    count.all += 1;
    count.unknown += report == state_.reports.end() || !report->second.unknown.contains(where.second) ? 1 : 0;
  }
  return count;
}

Orphans::Hold Orphans::WhyHeld(const Stamped& unknown, size_t reported, MonoTime now) {
  if (unknown.empty() || MUTANT("scheduler.no_orphan_rail")) return {};
  if (unknown.size() > MostAllowed(reported)) {
    return {.reason = Reason::kOrphansHeld, .detail = fmt::format("{} of {} workloads", unknown.size(), reported)};
  }
  if (copy_.All<WorkloadRecord>().empty() && !MUTANT("scheduler.empty_store_trusted")) {
    return {.reason = Reason::kOrphansOfEmptyStore, .detail = fmt::format("{} workloads", unknown.size())};
  }
  if (IsCounting(now) || MUTANT("scheduler.no_cluster_rail")) return {};
  const Count count = CountAll(now);
  if (count.unknown <= MostAllowed(count.all)) return {};
  return {.reason = Reason::kOrphansOfCluster,
          .detail = fmt::format("{} of {} workloads of all nodes, {} of them here", count.unknown, count.all,
                                unknown.size())};
}

bool Orphans::OnReported(const std::string& node, const std::vector<contract::WorkloadStatus>& statuses, bool complete,
                         StepContext& ctx) {
  auto [moved, unknown] = Sort(node, statuses, ctx.now.mono);
  const auto known = state_.nodes.find(node);
  Stamped fresh = unknown;
  if (known != state_.nodes.end()) {
    std::erase_if(fresh, [&](const auto& entry) { return known->second.accepted.contains(entry.first); });
  }
  NoteReport(node, statuses, fresh, complete, ctx.now.mono);
  const bool nothing = moved.empty() && unknown.empty();
  if (nothing && complete) {
    if (known != state_.nodes.end() && known->second.checking.empty()) state_.nodes.erase(known);
    return true;
  }
  if (nothing && known == state_.nodes.end()) return true;
  Node& here = state_.nodes[node];
  if (complete) std::erase_if(here.held, [&](const std::string& id) { return !unknown.contains(id); });
  for (const auto& [id, sequence] : unknown) {
    if (!fresh.contains(id)) moved.emplace(id, sequence);  // accepted
  }
  const Hold hold = WhyHeld(fresh, statuses.size(), ctx.now.mono);
  const bool alerted = !here.held.empty();
  const bool held = alerted || hold.reason != Reason::kNone;
  const bool waits = !held && !fresh.empty() && IsCounting(ctx.now.mono) && !MUTANT("scheduler.no_orphan_rail");
  if (held) {
    PROBE("scheduler.orphans_held");
    for (const auto& [id, sequence] : fresh) {
      if (!complete && here.held.size() >= kMostNoted) break;
      if (!here.checking.contains(id)) here.held.insert(id);  // that one had moved, before the set was full
    }
    if (!alerted) {
      ctx.Note(std::string(ReasonSentence(hold.reason)), node, hold.detail);
      ctx.Emit(Publish{contract::Decision{.kind = contract::DecisionKind::kOrphansHeld,
                                          .at = ctx.now.wall,
                                          .node = node,
                                          .reason = std::string(ReasonName(hold.reason)),
                                          .message = ReasonText(hold.reason, hold.detail)}});
    }
  } else if (waits) {
    PROBE("scheduler.orphans_counted");
  } else {
    for (const auto& [id, sequence] : fresh) state_.passed[{node, id}] = ctx.now.mono;
    moved.insert(fresh.begin(), fresh.end());
  }
  Check(node, here, moved, ctx);
  return !held && !waits;
}

void Orphans::Check(const std::string& node, Node& here, const Stamped& orphans, StepContext& ctx) {
  if (orphans.empty() || !here.checking.empty()) return;
  std::vector<contract::Compare> compares;
  for (const auto& [id, sequence] : orphans) {
    if (compares.size() >= kMostCompared) break;
    compares.push_back(copy_.Unchanged(copy_.Key(RecordKind::kWorkload, id)));
    here.checking.emplace(id, sequence);
  }
  drafts_.Check(std::move(compares), node, ctx);
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
  if (copy_.Find<NodeRecord>(node) == nullptr || state_.released.size() >= kMostReleased) return;
  state_.released.emplace(node, workload);
}

void Orphans::Forget(const std::string& node) {
  state_.nodes.erase(node);
  state_.reports.erase(node);
  std::erase_if(state_.released, [&](const OnNode& entry) { return entry.first == node; });
}

void Orphans::StartOver() {
  state_.released.clear();
  for (auto& [node, entry] : state_.nodes) entry.accepted.clear();
}

size_t Orphans::Accept(const std::string& node) {
  const auto found = state_.nodes.find(node);
  if (found == state_.nodes.end()) return 0;
  const size_t held = found->second.held.size();
  if (const auto report = state_.reports.find(node); report != state_.reports.end()) {
    for (const std::string& id : found->second.held) report->second.unknown.erase(id);
  }
  found->second.accepted.merge(found->second.held);
  found->second.held.clear();
  return held;
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
  for (const auto& [node, workload] : state_.released) {
    MUSTER_CHECK(copy_.Find<NodeRecord>(node) != nullptr, "{} is released by {}, which is not known", workload, node);
  }
  for (const auto& [node, entry] : state_.nodes) {
    for (const std::string& id : entry.held) {
      MUSTER_CHECK(!entry.accepted.contains(id) && !entry.checking.contains(id), "{} on {} is held, and deleted", id,
                   node);
    }
  }
}

}  // namespace muster::scheduler
