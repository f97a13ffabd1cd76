#include "core/scheduler/store_copy.h"

#include <charconv>
#include <limits>

#include "base/check.h"
#include "base/probe.h"

namespace muster::scheduler {
namespace {

constexpr std::string_view kNodeOwner = "_node.";
constexpr uint64_t kMostEvents = uint64_t{1} << 62;  // what is read of a ring is below; no ring comes to it

const std::set<std::string>& NoIds() {
  static const std::set<std::string> none;
  return none;
}

// What an event's id says of its place in the ring; 0: another program wrote it. Each place has one id.
uint64_t SequenceOf(std::string_view id, std::string_view owner) {
  uint64_t sequence = 0;
  if (!id.starts_with(owner) || id.size() <= owner.size() + 1 || id[owner.size()] != '.') return 0;
  const std::string_view digits = id.substr(owner.size() + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), sequence);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && digits.front() != '0';
  return whole ? sequence : 0;
}

template <class Map, class Key>
void Drop(Map& index, const Key& group, const std::string& id) {
  const auto found = index.find(group);
  if (found == index.end()) return;
  found->second.erase(id);
  if (found->second.empty()) index.erase(found);
}

}  // namespace

RecordKind RecordKindOf(contract::ObjectKind kind) {
  switch (kind) {
    case contract::ObjectKind::kWorkload: return RecordKind::kWorkload;
    case contract::ObjectKind::kSet: return RecordKind::kSet;
    case contract::ObjectKind::kQuota: return RecordKind::kQuota;
    case contract::ObjectKind::kNode: return RecordKind::kNode;
  }
  return RecordKind::kWorkload;
}

std::string NodeEventOwner(std::string_view node) { return std::string(kNodeOwner).append(node); }
std::string EventOwner(const EventRecord& event) {
  return event.workload.empty() ? NodeEventOwner(event.node) : event.workload;
}
std::string EventId(std::string_view owner, uint64_t sequence) { return fmt::format("{}.{}", owner, sequence); }

StoreCopy::StoreCopy(const Config& config, State state)
    : config_(config), state_(std::move(state)), indexes_(Indexes::Of(state_)) {}

// --- what is known

const StoreCopy::Events& StoreCopy::EventsOf(std::string_view owner) const {
  static const Events none;
  const auto found = state_.events.find(owner);
  return found == state_.events.end() ? none : found->second;
}

contract::Revision StoreCopy::RevisionOf(const std::string& key) const {
  const auto found = state_.revisions.find(key);
  return found == state_.revisions.end() ? 0 : found->second;
}

contract::Revision StoreCopy::DeletedAt(const ObjectId& object) const {
  const auto found = state_.deleted.find(Key(RecordKindOf(object.kind), object.name));
  const bool early = found != state_.deleted.end() && !MUTANT("scheduler.deletion_told_as_old");
  return early ? found->second : state_.revision;
}

contract::Compare StoreCopy::Unchanged(const std::string& key) const {
  return contract::IfUnchanged(key, RevisionOf(key));
}

const std::set<std::string>& StoreCopy::OnNode(std::string_view node) const {
  const auto found = indexes_.by_node.find(node);
  return found == indexes_.by_node.end() ? NoIds() : found->second;
}

const std::set<std::string>& StoreCopy::MembersOf(std::string_view set) const {
  const auto found = indexes_.by_set.find(set);
  return found == indexes_.by_set.end() ? NoIds() : found->second;
}

// --- what is told

bool StoreCopy::Newer(const std::string& key, contract::Revision revision) const {
  if (RevisionOf(key) >= revision) return false;
  const auto gone = state_.deleted.find(key);
  return gone == state_.deleted.end() || gone->second < revision;
}

void StoreCopy::Note(const std::string& key, contract::Revision revision) {
  state_.revisions[key] = revision;
  state_.deleted.erase(key);
}

// No revision that is known is one of the store as it is now: every row that it has is newer, and the rest is gone.
void StoreCopy::StartOver() {
  for (auto& [key, revision] : state_.revisions) revision = 0;
  state_.ahead.clear();
  state_.deleted.clear();
  state_.revision = 0;
}

void StoreCopy::List(const StoreListed& listed, StepContext& ctx) {
  if (IsOfAnother(listed) && !MUTANT("scheduler.another_store_unseen")) StartOver();
  std::set<std::string_view> there;
  for (const contract::KeyValue& row : listed.rows) {
    there.insert(row.key);
    if (!Newer(row.key, row.modified)) continue;
    const auto key = ParseKey(config_.prefix, row.key);
    if (!key) continue;
    Note(row.key, row.modified);
    Read(*key, row, ctx);
  }
  std::vector<std::string> gone;
  for (const auto& [key, revision] : state_.revisions) {
    if (revision <= listed.revision && !there.contains(key)) gone.push_back(key);
  }
  for (const std::string& key : gone) {
    PROBE("scheduler.gone_from_list");
    state_.revisions.erase(key);
    Remove(*ParseKey(config_.prefix, key));
  }
  state_.revision = std::max(state_.revision, listed.revision);
  state_.listed = true;
  std::erase_if(state_.ahead, [&](const auto& entry) { return entry.second <= state_.revision; });
  std::erase_if(state_.deleted, [&](const auto& entry) { return entry.second <= state_.revision; });
}

void StoreCopy::Apply(const StoreChanged& changed, StepContext& ctx) {
  for (const contract::Change& change : changed.changes) {
    const contract::KeyValue& row = change.now;
    if (!Newer(row.key, row.modified)) continue;
    const auto key = ParseKey(config_.prefix, row.key);
    if (!key) continue;
    if (change.deleted) {
      state_.revisions.erase(row.key);
      Remove(*key);
    } else {
      Note(row.key, row.modified);
      Read(*key, row, ctx);
    }
  }
  TakeUnshown(changed);
  state_.revision = std::max(state_.revision, changed.revision);
  std::erase_if(state_.deleted, [&](const auto& entry) { return entry.second <= state_.revision; });
}

// A watch that was interrupted shows the difference, without what came and went meanwhile. What this scheduler wrote
// itself and is not shown by the time the watch has passed it is gone.
void StoreCopy::TakeUnshown(const StoreChanged& changed) {
  if (state_.ahead.empty()) return;
  std::set<std::string_view> shown;
  for (const contract::Change& change : changed.changes) shown.insert(change.now.key);
  std::vector<std::string> gone;
  std::erase_if(state_.ahead, [&](const auto& entry) {
    const auto& [key, revision] = entry;
    if (revision > changed.revision) return false;
    if (!shown.contains(key) && RevisionOf(key) == revision) gone.push_back(key);
    return true;
  });
  for (const std::string& key : gone) {
    PROBE("scheduler.unshown");
    state_.revisions.erase(key);
    Remove(*ParseKey(config_.prefix, key));
  }
}

// Where the watch has passed a commit, it has shown what came of it.
bool StoreCopy::IsAhead(const std::string& key, contract::Revision revision) const {
  return revision > state_.revision && Newer(key, revision);
}

void StoreCopy::NoteOwn(const std::string& key, contract::Revision revision) {
  Note(key, revision);
  state_.ahead[key] = revision;
}

void StoreCopy::Read(const ParsedKey& key, const contract::KeyValue& row, StepContext& ctx) {
  const auto take = [&](auto decoded, auto&& set) {
    if (decoded) return set(*std::move(decoded));
    PROBE("scheduler.unreadable_record");
    ctx.Note("a record cannot be read and is left alone", row.key, decoded.error().message());
    Remove(key);
  };
  switch (key.kind) {
    case RecordKind::kNode:
      return take(DecodeNode(row.value), [&](NodeRecord record) { Set(key.id, std::move(record)); });
    case RecordKind::kWorkload:
      return take(DecodeWorkload(row.value), [&](WorkloadRecord record) { Set(key.id, std::move(record)); });
    case RecordKind::kSet:
      return take(DecodeSet(row.value), [&](SetRecord record) {
        state_.sets[key.id] = std::move(record);
        changed_.insert(SetObject(key.id));
      });
    case RecordKind::kQuota:
      return take(DecodeQuota(row.value), [&](model::Quota quota) {
        state_.quotas[key.id] = std::move(quota);
        changed_.insert(QuotaObject(key.id));
      });
    case RecordKind::kReconciliation:
      return take(DecodeReconciliation(row.value),
                  [&](ReconciliationRecord record) { state_.reconciliations[key.id] = std::move(record); });
    case RecordKind::kEvent:
      return take(DecodeEvent(row.value), [&](EventRecord event) {
        event.id = key.id;
        const std::string owner = EventOwner(event);
        const uint64_t sequence = SequenceOf(key.id, owner);
        const bool ours = sequence > 0 && sequence < kMostEvents;
        Remove(key);  // it may have been the other program's, or of another owner
        (ours ? state_.events[owner][sequence] : state_.foreign_events[key.id]) = std::move(event);
      });
    case RecordKind::kNodeStatus:
    case RecordKind::kAssignment:
    case RecordKind::kRetry: return;
  }
}

void StoreCopy::Remove(const ParsedKey& key) {
  switch (key.kind) {
    case RecordKind::kNode:
      if (const auto found = state_.nodes.find(key.id); found != state_.nodes.end()) {
        indexes_.Remove(found->second);
        state_.nodes.erase(found);
      }
      changed_.insert(NodeObject(key.id));
      return;
    case RecordKind::kWorkload:
      if (const auto found = state_.workloads.find(key.id); found != state_.workloads.end()) {
        indexes_.Remove(key.id, found->second);
        state_.workloads.erase(found);
      }
      changed_.insert(WorkloadObject(key.id));
      return;
    case RecordKind::kSet:
      state_.sets.erase(key.id);
      changed_.insert(SetObject(key.id));
      return;
    case RecordKind::kQuota:
      state_.quotas.erase(key.id);
      changed_.insert(QuotaObject(key.id));
      return;
    case RecordKind::kReconciliation: state_.reconciliations.erase(key.id); return;
    case RecordKind::kEvent: {
      if (state_.foreign_events.erase(key.id) > 0) return;
      const std::string owner = key.id.substr(0, key.id.rfind('.'));
      const auto found = state_.events.find(owner);
      if (found == state_.events.end()) return;
      std::erase_if(found->second, [&](const auto& event) { return event.second.id == key.id; });
      if (found->second.empty()) state_.events.erase(found);
      return;
    }
    case RecordKind::kNodeStatus:
    case RecordKind::kAssignment:
    case RecordKind::kRetry: return;
  }
}

void StoreCopy::Put(RecordKind kind, const std::string& id, Record record, contract::Revision revision) {
  const std::string key = Key(kind, id);
  if (!IsAhead(key, revision)) return;
  NoteOwn(key, revision);
  if (auto* workload = std::get_if<WorkloadRecord>(&record)) return Set(id, std::move(*workload));
  if (auto* node = std::get_if<NodeRecord>(&record)) return Set(id, std::move(*node));
  if (auto* set = std::get_if<SetRecord>(&record)) {
    state_.sets[id] = std::move(*set);
    changed_.insert(SetObject(id));
  } else {
    state_.quotas[id] = std::get<model::Quota>(std::move(record));
    changed_.insert(QuotaObject(id));
  }
}

void StoreCopy::Put(const ReconciliationRecord& record, contract::Revision revision) {
  const std::string key = Key(RecordKind::kReconciliation, record.workload);
  if (!IsAhead(key, revision)) return;
  NoteOwn(key, revision);
  state_.reconciliations[record.workload] = record;
}

void StoreCopy::Put(EventRecord event, contract::Revision revision) {
  const std::string key = Key(RecordKind::kEvent, event.id);
  if (!IsAhead(key, revision)) return;
  NoteOwn(key, revision);
  state_.foreign_events.erase(event.id);
  const std::string owner = EventOwner(event);
  Events& events = state_.events[owner];
  events[SequenceOf(event.id, owner)] = std::move(event);
}

void StoreCopy::PutShadow(RecordKind kind, const std::string& id, contract::Revision revision) {
  const std::string key = Key(kind, id);
  if (IsAhead(key, revision)) NoteOwn(key, revision);
}

void StoreCopy::Delete(RecordKind kind, const std::string& id, contract::Revision revision) {
  const std::string key = Key(kind, id);
  if (!IsAhead(key, revision)) return;
  state_.revisions.erase(key);
  state_.deleted[key] = revision;
  state_.ahead.erase(key);
  Remove({kind, id});
}

// --- records and what is derived from them

void StoreCopy::Indexes::Add(const std::string& id, const WorkloadRecord& record) {
  ++phases.at(static_cast<size_t>(record.workload.phase));
  ++desired.at(static_cast<size_t>(record.workload.desired));
  if (!record.workload.assigned_node.empty()) by_node[record.workload.assigned_node].insert(id);
  if (!record.workload.set.empty()) by_set[record.workload.set].insert(id);
}

void StoreCopy::Indexes::Remove(const std::string& id, const WorkloadRecord& record) {
  --phases.at(static_cast<size_t>(record.workload.phase));
  --desired.at(static_cast<size_t>(record.workload.desired));
  Drop(by_node, record.workload.assigned_node, id);
  Drop(by_set, record.workload.set, id);
}

StoreCopy::Indexes StoreCopy::Indexes::Of(const State& state) {
  Indexes indexes;
  for (const auto& [id, record] : state.workloads) indexes.Add(id, record);
  for (const auto& [id, record] : state.nodes) indexes.Add(record);
  return indexes;
}

void StoreCopy::Set(const std::string& id, WorkloadRecord record) {
  const auto [found, is_new] = state_.workloads.try_emplace(id);
  if (!is_new) indexes_.Remove(id, found->second);
  found->second = std::move(record);
  found->second.workload.id = id;
  indexes_.Add(id, found->second);
  changed_.insert(WorkloadObject(id));
}

void StoreCopy::Set(const std::string& id, NodeRecord record) {
  const auto [found, is_new] = state_.nodes.try_emplace(id);
  if (!is_new) indexes_.Remove(found->second);
  found->second = std::move(record);
  found->second.facts.node = id;
  indexes_.Add(found->second);
  changed_.insert(NodeObject(id));
}

void StoreCopy::CheckInvariants() const {
  const Indexes fresh = Indexes::Of(state_);
  MUSTER_CHECK(fresh.by_node == indexes_.by_node, "the index of workloads by node is not that of the records");
  MUSTER_CHECK(fresh.by_set == indexes_.by_set, "the index of workloads by set is not that of the records");
  MUSTER_CHECK(fresh.phases == indexes_.phases && fresh.desired == indexes_.desired, "workloads are miscounted");
  MUSTER_CHECK(fresh.node_statuses == indexes_.node_statuses, "nodes are miscounted");
  for (const auto& [id, record] : state_.workloads) {
    MUSTER_CHECK(RevisionOf(WorkloadObject(id)) != 0, "workload {} has a record and no key", id);
  }
  for (const auto& [id, event] : state_.foreign_events) {
    MUSTER_CHECK(RevisionOf(Key(RecordKind::kEvent, id)) != 0, "event {} has a record and no key", id);
  }
  for (const auto& [key, revision] : state_.deleted) {
    MUSTER_CHECK(!state_.revisions.contains(key), "key {} is there and deleted", key);
  }
}

}  // namespace muster::scheduler
