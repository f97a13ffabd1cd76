#include "store/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/probe.h"

namespace muster::store {

bool Table::Holds(const contract::Compare& compare) const {
  const auto found = rows_.find(compare.key);
  if (compare.value) return found != rows_.end() && found->second.value == *compare.value;
  if (MUTANT("store.revision_not_compared")) return true;
  return (found == rows_.end() ? 0 : found->second.modified) == compare.modified;
}

CommitOutcome Table::Apply(const Transaction& transaction) {
  if (!std::ranges::all_of(transaction.compares, [this](const auto& compare) { return Holds(compare); })) {
    return contract::Conflict{revision_};
  }
  for (const contract::StoreWrite& write : transaction.writes) {
    if (write.value && write.lease != 0 && !HasLease(write.lease)) {
      return contract::Unknown{{Code::kNotFound, fmt::format("lease {} has ended", write.lease)}};
    }
  }
  bool changed = false;
  for (const contract::StoreWrite& write : transaction.writes) {
    changed = Write(write, revision_ + 1) || changed;
    if (MUTANT("store.torn_transaction")) break;
  }
  if (changed) ++revision_;
  return contract::Committed{revision_};
}

bool Table::Write(const contract::StoreWrite& write, Revision at) {
  const auto found = rows_.find(write.key);
  if (!write.value) {
    if (found == rows_.end()) return false;
    Unbind(found->second);
    rows_.erase(found);
    history_.push_back({.deleted = true, .now = {.key = write.key, .modified = at}});
    return true;
  }
  if (found != rows_.end()) Unbind(found->second);
  KeyValue& row = rows_[write.key];
  row = {.key = write.key,
         .value = *write.value,
         .created = row.created != 0 ? row.created : at,
         .modified = at,
         .lease = write.lease};
  if (write.lease != 0) keys_of_[write.lease].insert(write.key);
  history_.push_back({.deleted = false, .now = row});
  return true;
}

void Table::Unbind(const KeyValue& row) {
  if (row.lease != 0) keys_of_[row.lease].erase(row.key);
}

RangeReply Table::Read(const KeyRange& range) const {
  RangeReply reply{.revision = revision_, .rows = {}};
  for (auto row = rows_.lower_bound(range.begin); row != rows_.end() && range.Contains(row->first); ++row) {
    if (MUTANT("store.stale_range") && row->second.modified == revision_) continue;
    reply.rows.push_back(row->second);
  }
  return reply;
}

std::vector<contract::Change> Table::History(const KeyRange& range, Revision from) const {
  std::vector<contract::Change> changes;
  auto change = std::ranges::lower_bound(history_, from, {}, [](const contract::Change& c) { return c.now.modified; });
  for (; change != history_.end(); ++change) {
    if (range.Contains(change->now.key)) changes.push_back(*change);
  }
  return changes;
}

LeaseId Table::AddLease() {
  keys_of_[++last_lease_];
  return last_lease_;
}

bool Table::EndLease(LeaseId lease) {
  const auto found = keys_of_.find(lease);
  if (found == keys_of_.end()) return false;
  const std::set<std::string> keys = std::move(found->second);
  keys_of_.erase(found);
  if (MUTANT("store.lease_leaves_keys")) return true;
  for (const std::string& key : keys) {
    rows_.erase(key);
    history_.push_back({.deleted = true, .now = {.key = key, .modified = revision_ + 1}});
  }
  if (!keys.empty()) ++revision_;
  return true;
}

void Table::GoBackTo(const RangeReply& backup) {
  rows_.clear();
  for (const KeyValue& row : backup.rows) {
    if (row.lease == 0) rows_.emplace(row.key, row);
  }
  history_.clear();
  keys_of_.clear();
  revision_ = backup.revision;
  compacted_ = backup.revision;
}

Status Table::Compact(Revision revision) {
  if (revision > revision_) {
    return {Code::kOutOfRange, fmt::format("revision {} is in the future: the store is at {}", revision, revision_)};
  }
  compacted_ = std::max(compacted_, revision);
  while (!history_.empty() && history_.front().now.modified <= compacted_) history_.pop_front();
  return {};
}

void Table::CheckInvariants() const {
  Revision last = compacted_ + 1;
  for (const contract::Change& change : history_) {
    MUSTER_CHECK(change.now.modified >= last && change.now.modified <= revision_, "history is out of order");
    last = change.now.modified;
  }
  size_t bound = 0;
  for (const auto& [key, row] : rows_) {
    MUSTER_CHECK(key == row.key && row.created <= row.modified && row.modified <= revision_, "row {} is wrong", key);
    if (row.lease == 0) continue;
    ++bound;
    MUSTER_CHECK(HasLease(row.lease) && keys_of_.at(row.lease).contains(key), "the lease of {} does not know it", key);
  }
  for (const auto& [lease, keys] : keys_of_) bound -= keys.size();
  MUSTER_CHECK(bound == 0, "a lease names a key that is not there");
}

}  // namespace muster::store
