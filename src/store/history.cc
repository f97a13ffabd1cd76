#include "store/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/rng.h"

namespace muster::store {
namespace {

constexpr int kSequentialKeys = 5;

// One caller that draws its requests and writes down the answers.
class SequentialRun {
 public:
  SequentialRun(Blocking& store, std::string prefix, uint64_t seed)
      : store_(store), prefix_(std::move(prefix)), rng_(seed) {}

  Result<std::string> Run(int operations) {
    MUSTER_ASSIGN_OR_RETURN(const RangeReply first, store_.Range(contract::KeysUnder(prefix_)));
    base_ = revision_ = first.revision;
    for (int i = 0; i < operations; ++i) {
      if (Status status = One(); !status.ok()) return std::unexpected(std::move(status));
    }
    if (Status status = Watch(base_ + 1); !status.ok()) return std::unexpected(std::move(status));
    return std::move(text_);
  }

 private:
  Status One() {
    const uint64_t draw = rng_.Below(100);
    if (draw < 50) return Commit();
    if (draw < 75) return Range();
    if (draw < 82) return Grant();
    if (draw < 88) return Revoke();
    if (draw < 93) return Compact();
    return Watch(base_ + 1 + rng_.Between(0, revision_ - base_));
  }

  Status Commit() {
    Transaction transaction;
    for (uint64_t n = rng_.Below(4); n > 0; --n) transaction.compares.push_back(DrawCompare());
    std::set<std::string> keys;
    for (uint64_t n = rng_.Below(4); n > 0; --n) keys.insert(DrawKey());
    for (const std::string& key : keys) {
      transaction.writes.push_back(rng_.Chance(1, 3) ? contract::Delete(key)
                                                     : contract::Put(key, fmt::format("v{}", ++values_), DrawLease()));
    }
    const CommitOutcome outcome = store_.Commit(transaction);
    if (const auto* committed = std::get_if<contract::Committed>(&outcome)) {
      revision_ = committed->revision;
      Say("committed {}", Relative(revision_));
    } else if (const auto* conflict = std::get_if<contract::Conflict>(&outcome)) {
      Say("conflict {}", Relative(conflict->revision));
    } else {
      const Status& status = std::get<contract::Unknown>(outcome).status;
      if (status.code() != Code::kNotFound) return status;
      Say("lease ended");
    }
    return {};
  }
  contract::Compare DrawCompare() {
    const std::string key = DrawKey();
    const auto known = known_.find(key);
    const bool there = known != known_.end();
    switch (rng_.Below(5)) {
      case 0: return contract::IfAbsent(key);
      case 1: return contract::IfValue(key, there ? known->second.value : "");
      case 2: return contract::IfUnchanged(key, base_ + 1 + rng_.Between(0, revision_ - base_));
      default: return contract::IfUnchanged(key, there ? known->second.modified : 0);
    }
  }
  std::string DrawKey() { return fmt::format("{}k{}", prefix_, rng_.Below(kSequentialKeys)); }
  // Sometimes one that has ended.
  LeaseId DrawLease() { return leases_.empty() || !rng_.Chance(1, 3) ? 0 : leases_[rng_.Below(leases_.size())]; }

  Status Range() {
    const KeyRange range = rng_.Chance(1, 3) ? contract::OneKey(DrawKey()) : contract::KeysUnder(prefix_);
    const Result<RangeReply> reply = store_.Range(range);
    if (!reply) return reply.error();
    revision_ = reply->revision;
    Say("range {}", Relative(revision_));
    std::erase_if(known_, [&](const auto& row) { return range.Contains(row.first); });
    for (const KeyValue& row : reply->rows) {
      known_[row.key] = row;
      Say("  {}", Text(row));
    }
    return {};
  }

  Status Grant() {
    const Result<Lease> lease = store_.Grant(1h);
    if (!lease) return lease.error();
    leases_.push_back(lease->id);
    Say("granted");
    return {};
  }
  Status Revoke() {
    if (leases_.empty()) return {};
    const Status status = store_.Revoke(leases_[rng_.Below(leases_.size())]);
    if (!status.ok() && status.code() != Code::kNotFound) return status;
    Say("revoke {}", CodeName(status.code()));
    if (status.ok()) return Range();  // it may have raised the revision
    return {};
  }
  Status Compact() {
    const Revision at = rng_.Between(base_, revision_ + 1);
    const Status status = store_.Compact(at);
    if (!status.ok() && status.code() != Code::kOutOfRange) return status;
    Say("compact {} {}", Relative(at), CodeName(status.code()));
    return {};
  }

  // All changes from a revision on, up to here.
  Status Watch(Revision from) {
    if (Status status = Range(); !status.ok()) return status;
    WatchLog log(store_.store(), contract::KeysUnder(prefix_), from, store_.time());
    if (from <= revision_ && !log.WaitFor(revision_)) {
      return {Code::kInternal, fmt::format("a watch from {} did not reach {}", from, revision_)};
    }
    if (log.compacted() != 0) {
      Say("watch {} compacted {}", Relative(from), Relative(log.compacted()));
      return {};
    }
    Say("watch {}", Relative(from));
    for (const contract::Change& change : log.changes())
      Say("  {}{}", change.deleted ? "deleted " : "", Text(change.now));
    return {};
  }

  Revision Relative(Revision revision) const { return revision == 0 ? 0 : revision - base_; }
  std::string Text(const KeyValue& row) const {
    const auto lease = std::ranges::find(leases_, row.lease) - leases_.begin();
    return fmt::format("{}={} {} {} {}", row.key.substr(prefix_.size()), row.value, Relative(row.created),
                       Relative(row.modified), row.lease == 0 ? -1 : lease);
  }
  template <class... Args>
  void Say(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  Blocking& store_;
  const std::string prefix_;
  Rng rng_;
  Revision base_ = 0;
  Revision revision_ = 0;                  // the newest seen
  std::map<std::string, KeyValue> known_;  // as last read
  std::vector<LeaseId> leases_;            // all ever granted
  uint64_t values_ = 0;
  std::string text_;
};

// Many callers at once.
class ConcurrentRun {
 public:
  ConcurrentRun(Store& store, const HistoryOptions& options, const Clock& clock)
      : store_(store), options_(options), clock_(clock) {}

  Result<History> Run() {
    Blocking reader(store_);
    const KeyRange all = contract::KeysUnder(options_.prefix);
    MUSTER_ASSIGN_OR_RETURN(const RangeReply first, ReadFirst(reader, all));
    history_.begins = first.revision;
    std::vector<std::unique_ptr<WatchLog>> logs;
    logs.push_back(std::make_unique<WatchLog>(store_, all, first.revision + 1));
    std::vector<std::thread> clients;
    for (int client = 0; client < options_.clients; ++client) clients.emplace_back([this, client] { Client(client); });
    // These catch up while it goes on.
    while (static_cast<int>(logs.size()) < options_.watches) {
      const size_t least = logs.size();
      logs.front()->WaitUntil([&](const std::vector<WatchBatch>& batches) { return batches.size() >= least; }, 5s);
      logs.push_back(std::make_unique<WatchLog>(store_, all, first.revision + 1));
    }
    for (std::thread& client : clients) client.join();
    MUSTER_ASSIGN_OR_RETURN(const Revision last, LastChange(reader));
    for (const auto& log : logs) {
      if (!log->WaitFor(last)) return Error(Code::kInternal, fmt::format("a watch did not reach revision {}", last));
      if (log->compacted() != 0) return Error(Code::kInternal, "a watch was compacted, though nothing was");
      history_.watched.push_back(log->changes());
    }
    return std::move(history_);
  }

 private:
  // A store with faults may not answer at once.
  static Result<RangeReply> ReadFirst(Blocking& reader, const KeyRange& all) {
    Result<RangeReply> first = reader.Range(all);
    for (int attempt = 0; !first && attempt < 5; ++attempt) first = reader.Range(all);
    return first;
  }

  // A last write ends the history, so that there is something to wait for: its revision.
  Result<Revision> LastChange(Blocking& writer) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      static_cast<void>(writer.Range(contract::OneKey(options_.prefix)));  // waits for a store that answers
      Event event{.client = options_.clients};
      event.transaction.writes.push_back(
          contract::Put(Tag(options_.clients), fmt::format("{}-{}", options_.clients, attempt)));
      Call(writer, event);
      const auto* committed = std::get_if<contract::Committed>(&std::get<CommitOutcome>(event.answer));
      if (committed != nullptr) return committed->revision;
    }
    return Error(Code::kUnavailable, "the store does not commit any more");
  }

  void Client(int client) {
    Rng rng(options_.seed * 1000 + static_cast<uint64_t>(client));
    Blocking store(store_);
    store.SetTimeout(options_.timeout);
    for (int i = 0; i < options_.operations; ++i) {
      const std::string key = Key(rng.Below(static_cast<uint64_t>(options_.keys)));
      const std::string value = fmt::format("{}-{}", client, i);
      Event event{.client = client, .range = contract::OneKey(key)};
      if (rng.Chance(1, 6)) event.range = contract::KeysUnder(options_.prefix);
      const std::optional<RangeReply> seen = Read(store, event);
      if (!seen) continue;
      Event write{.client = client};
      Revision modified = 0;
      for (const KeyValue& row : seen->rows) modified = row.key == key ? row.modified : modified;
      if (!rng.Chance(1, 5)) write.transaction.compares.push_back(contract::IfUnchanged(key, modified));
      if (rng.Chance(1, 5)) {
        write.transaction.writes = {contract::Delete(key), contract::Put(Tag(client), value)};
      } else {
        write.transaction.writes = {contract::Put(key, value)};
        if (rng.Chance(1, 4)) write.transaction.writes.push_back(contract::Put(Tag(client), value + "t"));
      }
      Call(store, write);
    }
  }
  std::optional<RangeReply> Read(Blocking& store, Event event) {
    event.called = clock_.Read().mono;
    Result<RangeReply> reply = store.Range(event.range);
    event.answered = clock_.Read().mono;
    if (!reply) return std::nullopt;
    event.answer = *reply;
    Add(std::move(event));
    return *std::move(reply);
  }
  void Call(Blocking& store, Event& event) {
    event.called = clock_.Read().mono;
    event.answer = store.Commit(event.transaction);
    event.answered = clock_.Read().mono;
    Add(event);
  }
  void Add(Event event) {
    const std::lock_guard lock(mu_);
    history_.events.push_back(std::move(event));
  }
  std::string Key(uint64_t number) const { return fmt::format("{}k{}", options_.prefix, number); }
  std::string Tag(int client) const { return fmt::format("{}tag{}", options_.prefix, client); }

  Store& store_;
  const HistoryOptions options_;
  const Clock& clock_;
  std::mutex mu_;
  History history_;  // events guarded by mu_
};

}  // namespace

Result<std::string> RunSequentialHistory(Blocking& store, const std::string& prefix, uint64_t seed, int operations) {
  return SequentialRun(store, prefix, seed).Run(operations);
}

Result<History> RunConcurrentHistory(Store& store, const HistoryOptions& options, const Clock& clock) {
  return ConcurrentRun(store, options, clock).Run();
}

}  // namespace muster::store
