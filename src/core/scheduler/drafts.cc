#include "core/scheduler/drafts.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "base/probe.h"
#include "model/text_scalars.h"

namespace muster::scheduler {
namespace {

// Room for the next transactions is better than a long queue in the store, whose timeouts begin at once.
constexpr size_t kMaxCommits = 64;
constexpr Duration kFirstPause = 50ms;
constexpr Duration kLongestPause = 2s;
// So often an object is committed again as soon as the copy is as new as the store was at the conflict.
constexpr int32_t kPromptAttempts = 3;
// By one pass. Commits of decisions find room beside them.
constexpr size_t kMostPruned = 16 * contract::kMaxTransactionWrites;

std::string_view CategoryOf(RecordKind kind) {
  switch (kind) {
    case RecordKind::kNode:
    case RecordKind::kNodeStatus: return "status";
    case RecordKind::kWorkload:
    case RecordKind::kSet:
    case RecordKind::kQuota: return "spec";
    case RecordKind::kAssignment: return "assignment";
    case RecordKind::kRetry: return "retry";
    case RecordKind::kReconciliation: return "reconciliation";
    case RecordKind::kEvent: return "event";
  }
  return "spec";
}

}  // namespace

Drafts::Drafts(const Config& config, StoreCopy& copy, State state)
    : config_(config), copy_(copy), state_(std::move(state)) {}

// --- drafts

bool Drafts::Busy(const ObjectId& object) const {
  if (state_.blocked.contains(object)) return true;
  const auto found = state_.drafts.find(object);
  return found != state_.drafts.end() && found->second.commit != 0;
}

const Record* Drafts::DoubtOf(const ObjectId& object) const {
  if (state_.doubts.empty()) return nullptr;
  const auto found = state_.doubts.find(object);
  const bool holds = found != state_.doubts.end() && copy_.RevisionOf(found->first) == found->second.base;
  return holds && !MUTANT("scheduler.doubt_ignored") ? &found->second.record : nullptr;
}

Draft& Drafts::Begin(const ObjectId& object) {
  MUSTER_CHECK(!Busy(object), "{} {} is busy", contract::ObjectKindName(object.kind), object.name);
  const auto [found, is_new] = state_.drafts.try_emplace(object);
  if (is_new) {
    found->second.opened = ++state_.opened;
    state_.open.emplace(TurnOf(object, found->second), object);
  }
  edited_.insert(object);
  return found->second;
}

Draft& Drafts::Open(const ObjectId& object) {
  const bool had = state_.drafts.contains(object);
  Draft& draft = Begin(object);
  if (had) return draft;
  const auto from = [&](const auto* record) {
    MUSTER_CHECK(record != nullptr, "there is no {} {}", contract::ObjectKindName(object.kind), object.name);
    draft.record = *record;
  };
  switch (object.kind) {
    case contract::ObjectKind::kWorkload: from(copy_.Find<WorkloadRecord>(object.name)); break;
    case contract::ObjectKind::kSet: from(copy_.Find<SetRecord>(object.name)); break;
    case contract::ObjectKind::kQuota: from(copy_.Find<model::Quota>(object.name)); break;
    case contract::ObjectKind::kNode: from(copy_.Find<NodeRecord>(object.name)); break;
  }
  return draft;
}

Draft& Drafts::OpenDraft(const ObjectId& object) {
  const auto found = state_.drafts.find(object);
  MUSTER_CHECK(found != state_.drafts.end() && found->second.commit == 0, "{} {} has no open draft",
               contract::ObjectKindName(object.kind), object.name);
  return found->second;
}

void Drafts::Remove(const ObjectId& object) { Open(object).removes = true; }

void Drafts::AddEvent(const ObjectId& object, EventType type, const std::string& node, std::string reason, Now now) {
  EventRecord event{
      .type = std::string(EventTypeName(type)), .node = node, .reason = std::move(reason), .at = now.wall};
  if (object.kind == contract::ObjectKind::kWorkload) event.workload = object.name;
  OpenDraft(object).events.push_back(std::move(event));
}

void Drafts::AddDecision(const ObjectId& object, contract::Decision decision) {
  OpenDraft(object).decisions.push_back(std::move(decision));
}

void Drafts::AddWaiter(const ObjectId& object, Waiter waiter) {
  OpenDraft(object).waiters.push_back(std::move(waiter));
}

void Drafts::Explain(const std::string& workload, Action action, bool success, std::string reason, StepContext& ctx) {
  ctx.Emit(Reconciled{.action = std::string(ActionName(action)), .success = success});
  OpenDraft(WorkloadObject(workload)).explained = ReconciliationRecord{.workload = workload,
                                                                       .action = std::string(ActionName(action)),
                                                                       .success = success,
                                                                       .reason = std::move(reason),
                                                                       .attempted_at = ctx.now.wall};
}

// --- what a draft writes

void Drafts::Write(RecordKind kind, const std::string& id, std::optional<std::string> value, Draft& draft,
                   Piece& piece) {
  const std::string key = copy_.Key(kind, id);
  piece.bytes += 2 * key.size() + (value ? value->size() : 0);
  if (!MUTANT("scheduler.no_compare")) piece.compares.push_back(copy_.Unchanged(key));
  draft.keys.push_back({.kind = kind, .id = id, .deleted = !value});
  const bool leased = kind == RecordKind::kEvent && value.has_value() && !MUTANT("scheduler.events_stay");
  piece.writes.push_back({.key = key, .value = std::move(value), .lease = leased ? state_.event_lease : 0});
}

void Drafts::AddRemoval(const ObjectId& object, Draft& draft, Piece& piece) {
  const auto erase = [&](RecordKind kind, const std::string& id) {
    if (copy_.RevisionOf(copy_.Key(kind, id)) != 0) Write(kind, id, std::nullopt, draft, piece);
  };
  erase(RecordKindOf(object.kind), object.name);
  std::string owner = object.name;
  if (object.kind == contract::ObjectKind::kNode) {
    erase(RecordKind::kNodeStatus, object.name);
    owner = NodeEventOwner(object.name);
  } else if (object.kind == contract::ObjectKind::kWorkload) {
    erase(RecordKind::kAssignment, object.name);
    erase(RecordKind::kRetry, object.name);
    erase(RecordKind::kReconciliation, object.name);
  } else {
    return;
  }
  draft.events.clear();
  for (const auto& [sequence, event] : copy_.EventsOf(owner)) erase(RecordKind::kEvent, event.id);
}

// The ring: what is too old or too much is deleted with what is added.
void Drafts::AddEvents(const ObjectId& object, Draft& draft, Piece& piece, StepContext& ctx) {
  if (draft.events.empty()) return;
  const std::string owner = object.kind == contract::ObjectKind::kNode ? NodeEventOwner(object.name) : object.name;
  const StoreCopy::Events& there = copy_.EventsOf(owner);
  uint64_t sequence = there.empty() ? 0 : there.rbegin()->first;
  for (EventRecord& event : draft.events) {
    event.id = EventId(owner, ++sequence);
    Write(RecordKind::kEvent, event.id, Encode(event), draft, piece);
  }
  int64_t excess = static_cast<int64_t>(there.size() + draft.events.size()) - config_.events_per_workload;
  for (const auto& [number, event] : there) {
    if (excess-- <= 0 && ctx.now.wall - event.at <= config_.event_ttl) continue;
    if (MUTANT("scheduler.events_unbounded")) break;
    Write(RecordKind::kEvent, event.id, std::nullopt, draft, piece);
  }
}

void Drafts::AddWorkload(const std::string& id, Draft& draft, Piece& piece, StepContext& ctx) {
  auto& record = std::get<WorkloadRecord>(draft.record);
  const WorkloadRecord* before = copy_.Find<WorkloadRecord>(id);
  const ReconciliationRecord* last = copy_.Find<ReconciliationRecord>(id);
  if (draft.explained && last != nullptr && last->action == draft.explained->action &&
      last->success == draft.explained->success) {
    draft.explained.reset();
  }
  if (draft.explained) {
    record.metadata["lastReconciliation"] = model::FormatWallTime(draft.explained->attempted_at);
    record.metadata["lastReconciliationAction"] = draft.explained->action;
    record.metadata["lastReconciliationSuccess"] = draft.explained->success ? "true" : "false";
  }
  record.updated_at = ctx.now.wall;
  Write(RecordKind::kWorkload, id, Encode(record), draft, piece);
  const std::string& node = record.workload.assigned_node;
  const bool moved = before == nullptr
                         ? !node.empty()
                         : before->workload.assigned_node != node || before->stamp.sequence != record.stamp.sequence;
  if (moved && !node.empty()) {
    const AssignmentRecord assignment{
        .workload = id, .node = node, .reason = record.message, .created_at = ctx.now.wall};
    Write(RecordKind::kAssignment, id, Encode(assignment), draft, piece);
  } else if (moved && copy_.RevisionOf(copy_.Key(RecordKind::kAssignment, id)) != 0) {
    Write(RecordKind::kAssignment, id, std::nullopt, draft, piece);
  }
  const bool retrying = record.retry.attempts > 0 || record.retry.next_retry_at.has_value();
  const bool retry_there = copy_.RevisionOf(copy_.Key(RecordKind::kRetry, id)) != 0;
  if (retrying && !(before != nullptr && retry_there && before->retry == record.retry)) {
    Write(RecordKind::kRetry, id, Encode(id, record.retry), draft, piece);
  } else if (!retrying && retry_there) {
    Write(RecordKind::kRetry, id, std::nullopt, draft, piece);
  }
  if (draft.explained) {
    Write(RecordKind::kReconciliation, id, Encode(*draft.explained), draft, piece);
  }
}

Drafts::Piece Drafts::PieceOf(const ObjectId& object, Draft& draft, StepContext& ctx) {
  Piece piece;
  draft.keys.clear();
  if (draft.removes) {
    AddRemoval(object, draft, piece);
    return piece;
  }
  switch (object.kind) {
    case contract::ObjectKind::kWorkload: AddWorkload(object.name, draft, piece, ctx); break;
    case contract::ObjectKind::kSet:
      Write(RecordKind::kSet, object.name, Encode(std::get<SetRecord>(draft.record)), draft, piece);
      break;
    case contract::ObjectKind::kQuota:
      Write(RecordKind::kQuota, object.name, Encode(std::get<model::Quota>(draft.record)), draft, piece);
      break;
    case contract::ObjectKind::kNode: {
      const auto& node = std::get<NodeRecord>(draft.record);
      const NodeRecord* before = copy_.Find<NodeRecord>(object.name);
      Write(RecordKind::kNode, object.name, Encode(node), draft, piece);
      if (before == nullptr || before->status != node.status) {
        Write(RecordKind::kNodeStatus, object.name, std::string(model::NodeStatusName(node.status)), draft, piece);
      }
      break;
    }
  }
  AddEvents(object, draft, piece, ctx);
  return piece;
}

// --- commits

void Drafts::SetLeader(std::string key, contract::Revision revision) {
  state_.leader_key = std::move(key);
  state_.leader_revision = revision;
}

void Drafts::Send(contract::Transaction transaction, Row row, StepContext& ctx) {
  const contract::CallId id = ++state_.last;
  for (const ObjectId& object : row.objects) {
    Draft& draft = state_.drafts.at(object);
    draft.commit = id;
    draft.base = copy_.RevisionOf(object);
    state_.open.erase(TurnOf(object, draft));
  }
  state_.commits.emplace(id, std::move(row));
  if (!state_.leader_key.empty() && !MUTANT("scheduler.leader_unguarded")) {
    transaction.compares.push_back(contract::IfUnchanged(state_.leader_key, state_.leader_revision));
  }
  ctx.Emit(contract::Commit{.id = id, .transaction = std::move(transaction), .timeout = config_.commit_timeout});
}

void Drafts::Flush(StepContext& ctx) {
  contract::Transaction transaction;
  Row row;
  size_t bytes = 0;
  const auto send = [&] {
    if (row.objects.empty()) return;
    Send(std::exchange(transaction, {}), std::exchange(row, {}), ctx);
    bytes = 0;
  };
  if (state_.commits.size() >= kMaxCommits) return;
  // No more than could go, each with one write: of 100,000 drafts that wait, a few thousand are looked at.
  const size_t most = (kMaxCommits - state_.commits.size()) * contract::kMaxTransactionWrites;
  std::vector<ObjectId> open;
  open.reserve(std::min(most, state_.open.size()));
  std::ranges::copy(state_.open | std::views::values | std::views::take(most), std::back_inserter(open));
  for (const ObjectId& object : open) {
    if (state_.commits.size() >= kMaxCommits) break;
    Piece piece = PieceOf(object, state_.drafts.at(object), ctx);
    const bool alone = state_.failures.contains(object);
    if (alone || transaction.writes.size() + piece.writes.size() > contract::kMaxTransactionWrites ||
        transaction.compares.size() + piece.compares.size() + 1 > contract::kMaxTransactionCompares ||
        bytes + piece.bytes > contract::kMaxTransactionBytes) {
      send();
    }
    for (const WrittenKey& key : state_.drafts.at(object).keys) {
      ++ctx.counters.store_writes[std::string(CategoryOf(key.kind))];
    }
    std::ranges::move(piece.compares, std::back_inserter(transaction.compares));
    std::ranges::move(piece.writes, std::back_inserter(transaction.writes));
    bytes += piece.bytes;
    row.objects.push_back(object);
    if (alone) send();
  }
  send();
}

void Drafts::Check(std::vector<contract::Compare> compares, const std::string& subject, StepContext& ctx) {
  Send({.compares = std::move(compares), .writes = {}}, {.objects = {}, .check = subject}, ctx);
}

void Drafts::PruneForeignEvents(StepContext& ctx) {
  contract::Transaction transaction;
  size_t left = kMostPruned;
  const auto send = [&] {
    if (transaction.writes.empty()) return;
    ctx.counters.store_writes[std::string(CategoryOf(RecordKind::kEvent))] += transaction.writes.size();
    Send(std::exchange(transaction, {}), {}, ctx);
  };
  for (const auto& [id, event] : copy_.state().foreign_events) {
    if (left == 0 || state_.commits.size() >= kMaxCommits) break;
    const ObjectId owner = event.workload.empty() ? NodeObject(event.node) : WorkloadObject(event.workload);
    const bool of_something = owner.name.empty() || copy_.RevisionOf(owner) != 0;
    const bool recent = event.at >= ctx.now.wall - config_.event_ttl && event.at <= ctx.now.wall + config_.event_ttl;
    if (of_something && recent) continue;
    PROBE("scheduler.foreign_event_pruned");
    --left;
    transaction.writes.push_back({.key = copy_.Key(RecordKind::kEvent, id), .value = std::nullopt});
    if (transaction.writes.size() == contract::kMaxTransactionWrites) send();
  }
  if (state_.commits.size() < kMaxCommits) send();
}

void Drafts::ApplyToCopy(const ObjectId& object, Draft& draft, contract::Revision revision) {
  for (const WrittenKey& key : draft.keys) {
    if (key.deleted) {
      copy_.Delete(key.kind, key.id, revision);
    } else if (key.kind == RecordKindOf(object.kind)) {
      copy_.Put(key.kind, key.id, std::move(draft.record), revision);
    } else if (key.kind != RecordKind::kEvent && key.kind != RecordKind::kReconciliation) {
      copy_.PutShadow(key.kind, key.id, revision);
    }
  }
  if (draft.removes) return;
  if (draft.explained) copy_.Put(*draft.explained, revision);
  for (EventRecord& event : draft.events) copy_.Put(std::move(event), revision);
}

void Drafts::BlockObject(const ObjectId& object, contract::Revision revision, MonoTime now) {
  const int32_t failures = state_.failures[object]++;
  const Duration pause = std::min<Duration>(kLongestPause, kFirstPause * (1 << std::min(failures, 10)));
  // After that, what it conflicts with is not what the copy shows: the election is lost, or the store is another one.
  state_.blocked[object] = {.until = now + pause, .revision = failures < kPromptAttempts ? revision : 0};
}

Drafts::Ended Drafts::OnCommitDone(const contract::CommitDone& done, StepContext& ctx) {
  const auto found = state_.commits.find(done.id);
  MUSTER_CHECK(found != state_.commits.end(), "the host ended commit {}, which is not open", done.id);
  const Row row = std::move(found->second);
  state_.commits.erase(found);
  ctx.counters.commits += std::holds_alternative<contract::Committed>(done.outcome);
  ctx.counters.conflicts += std::holds_alternative<contract::Conflict>(done.outcome);
  ctx.counters.unknowns += std::holds_alternative<contract::Unknown>(done.outcome);
  return End(row, done.outcome, ctx);
}

std::vector<Drafts::Ended> Drafts::Disown(StepContext& ctx) {
  const contract::CommitOutcome unknown = contract::Unknown{Status(Code::kUnavailable, "the store is another one")};
  std::vector<Ended> ended;
  for (auto& [id, row] : state_.commits) ended.push_back(End(std::exchange(row, {}), unknown, ctx));
  return ended;
}

Drafts::Ended Drafts::End(const Row& row, const contract::CommitOutcome& outcome, StepContext& ctx) {
  Ended ended;
  const auto* committed = std::get_if<contract::Committed>(&outcome);
  const auto* conflict = std::get_if<contract::Conflict>(&outcome);
  const auto* unknown = std::get_if<contract::Unknown>(&outcome);
  if (conflict != nullptr) PROBE("scheduler.conflict");
  if (unknown != nullptr) PROBE("scheduler.unknown");
  // The lease of events has ended: they are written without one until there is another.
  const bool lease_gone = unknown != nullptr && unknown->status.code() == Code::kNotFound && state_.event_lease != 0;
  if (lease_gone) PROBE("scheduler.event_lease_gone");
  if (lease_gone) state_.event_lease = 0;
  ended.check = row.check;
  ended.holds = committed != nullptr;
  const bool refused = unknown != nullptr && unknown->Refused() && !lease_gone;
  for (const ObjectId& object : row.objects) {
    auto node = state_.drafts.extract(object);
    Draft& draft = node.mapped();
    Resolved resolved{.object = object, .waiters = std::move(draft.waiters)};
    // From the draft: the watch may have shown already that the record is gone.
    if (const auto* gone = std::get_if<WorkloadRecord>(&draft.record); gone != nullptr && draft.removes &&
                                                                       conflict == nullptr && !refused &&
                                                                       object.kind == contract::ObjectKind::kWorkload) {
      // What has completed, or waits for a node, is of none: the node that it left last may have it still.
      const std::string& assigned = gone->workload.assigned_node;
      resolved.released = assigned.empty() ? gone->previous_node : assigned;
    }
    if (committed != nullptr || (unknown != nullptr && MUTANT("scheduler.unknown_is_committed"))) {
      resolved.revision = committed != nullptr ? committed->revision : copy_.state().revision + 1;
      state_.failures.erase(object);
      ApplyToCopy(object, draft, resolved.revision);
      for (contract::Decision& decision : draft.decisions) ctx.Emit(Publish{std::move(decision)});
    } else {
      BlockObject(object, conflict != nullptr ? conflict->revision : 0, ctx.now.mono);
      const bool takes = object.kind == contract::ObjectKind::kWorkload || object.kind == contract::ObjectKind::kSet;
      if (unknown != nullptr && !refused && !draft.removes && takes) {
        state_.doubts[object] = {
            .record = std::move(draft.record), .base = draft.base, .until = ctx.now.mono + 2 * config_.commit_timeout};
      }
      if (unknown != nullptr && !refused && !draft.removes && takes && draft.base == 0) {
        state_.late[object] = ctx.now.mono + 2 * config_.commit_timeout;
      }
      if (refused) PROBE("scheduler.commit_refused");
      resolved.kind = refused ? Resolved::Kind::kRefused : Resolved::Kind::kAgain;
      if (refused) resolved.status = unknown->status;
    }
    ended.objects.push_back(std::move(resolved));
  }
  if (refused) {
    ctx.Note("the store refuses a commit", row.objects.empty() ? row.check : row.objects.front().name,
             unknown->status.ToString());
  }
  return ended;
}

std::vector<ObjectId> Drafts::Release(const std::set<ObjectId>& shown, bool all, MonoTime now) {
  std::vector<ObjectId> released;
  for (const auto& [object, block] : state_.blocked) {
    const bool reached = block.revision != 0 && copy_.state().revision >= block.revision;
    if (all || reached || block.until <= now || shown.contains(object)) released.push_back(object);
  }
  for (const ObjectId& object : released) state_.blocked.erase(object);
  std::erase_if(state_.doubts, [&](const auto& entry) {
    const bool over = copy_.RevisionOf(entry.first) != entry.second.base || entry.second.until <= now;
    if (over) released.push_back(entry.first);
    return over;
  });
  std::erase_if(state_.late, [&](const auto& entry) {
    if (entry.second > now) return false;
    released.push_back(entry.first);
    return true;
  });
  return released;
}

Drafts::Dropped Drafts::DropOpen() {
  Dropped dropped;
  for (const auto& [turn, object] : std::exchange(state_.open, {})) {
    dropped.objects.insert(object);
    auto node = state_.drafts.extract(object);
    std::ranges::move(node.mapped().waiters, std::back_inserter(dropped.waiters));
  }
  return dropped;
}

std::optional<MonoTime> Drafts::NextWake() const {
  if (!state_.open.empty() && state_.commits.size() < kMaxCommits) return MonoTime{};
  std::optional<MonoTime> next;
  for (const auto& [object, block] : state_.blocked) {
    if (!next || block.until < *next) next = block.until;
  }
  for (const auto& [object, doubt] : state_.doubts) {
    if (!next || doubt.until < *next) next = doubt.until;
  }
  for (const auto& [object, until] : state_.late) {
    if (!next || until < *next) next = until;
  }
  return next;
}

void Drafts::CheckInvariants() const {
  for (const auto& [object, draft] : state_.drafts) {
    const bool open = draft.commit == 0;
    MUSTER_CHECK(open == state_.open.contains(TurnOf(object, draft)), "the draft of {} is miscounted", object.name);
    if (open) {
      MUSTER_CHECK(!state_.blocked.contains(object), "{} is blocked and has an open draft", object.name);
    } else {
      const auto row = state_.commits.find(draft.commit);
      MUSTER_CHECK(row != state_.commits.end(), "the draft of {} is in commit {}, which is not open", object.name,
                   draft.commit);
      MUSTER_CHECK(std::ranges::count(row->second.objects, object) == 1, "commit {} lacks {}", draft.commit,
                   object.name);
    }
  }
  MUSTER_CHECK(state_.open.size() <= state_.drafts.size(), "more open drafts than drafts");
}

}  // namespace muster::scheduler
