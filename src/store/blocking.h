// Blocking: a store for a caller that waits, as command lines, suites and tests do.
//
// With a VirtualSchedule the caller's thread runs it while it waits; otherwise the thread blocks. A store that does not
// answer at all, which invariant 1 of store.h forbids, is found half a minute after the timeout: INTERNAL.
//
// Thread-safety: any thread, one call of each at a time; one thread with a VirtualSchedule.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/schedule.h"
#include "store/store.h"

namespace muster::store {

// Waits for something that another thread, or the virtual schedule, brings about.
class Waiter {
 public:
  explicit Waiter(VirtualSchedule* time = nullptr) : time_(time) {}

  // Changes what is waited for, under the lock.
  template <class Change>
  void Do(Change change) {
    const std::lock_guard lock(mu_);
    change();
    changed_.notify_all();
  }
  // Whether `ready` came true within `patience`. It runs under the lock.
  template <class Ready>
  bool Wait(Duration patience, Ready ready) {
    if (time_ != nullptr) {
      const MonoTime end = time_->now() + patience;
      while (!ready() && time_->RunOne(end)) {
      }
      return ready();
    }
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, patience, ready);
  }
  template <class Read>
  auto Get(Read read) {
    const std::lock_guard lock(mu_);
    return read();
  }

 private:
  VirtualSchedule* const time_;
  std::recursive_mutex mu_;
  std::condition_variable_any changed_;
};

class Blocking {
 public:
  explicit Blocking(Store& store, VirtualSchedule* time = nullptr) : store_(store), time_(time) {}

  Store& store() { return store_; }
  VirtualSchedule* time() { return time_; }
  void SetTimeout(Duration timeout) { timeout_ = timeout; }

  Result<RangeReply> Range(const KeyRange& range) {
    return Ask<Result<RangeReply>>([&](auto done) { store_.Range(range, timeout_, std::move(done)); },
                                   std::unexpected(Silent()));
  }
  // The row of one key, if it is there.
  Result<std::optional<KeyValue>> Get(const std::string& key) {
    MUSTER_ASSIGN_OR_RETURN(const RangeReply reply, Range(contract::OneKey(key)));
    return reply.rows.empty() ? std::nullopt : std::optional(reply.rows.front());
  }
  CommitOutcome Commit(const Transaction& transaction) {
    return Ask<CommitOutcome>([&](auto done) { store_.Commit(transaction, timeout_, std::move(done)); },
                              contract::Unknown{Silent()});
  }
  Result<Lease> Grant(Duration ttl) {
    return Ask<Result<Lease>>([&](auto done) { store_.Grant(ttl, timeout_, std::move(done)); },
                              std::unexpected(Silent()));
  }
  Result<Lease> KeepAlive(LeaseId lease) {
    return Ask<Result<Lease>>([&](auto done) { store_.KeepAlive(lease, timeout_, std::move(done)); },
                              std::unexpected(Silent()));
  }
  Status Revoke(LeaseId lease) {
    return Ask<Status>([&](auto done) { store_.Revoke(lease, timeout_, std::move(done)); }, Silent());
  }
  Status Compact(Revision revision) {
    return Ask<Status>([&](auto done) { store_.Compact(revision, timeout_, std::move(done)); }, Silent());
  }

 private:
  static Status Silent() { return {Code::kInternal, "the store never answered a call"}; }

  template <class Reply, class Call>
  Reply Ask(const Call& call, Reply never) {
    struct Open {
      explicit Open(VirtualSchedule* time) : waiter(time) {}
      Waiter waiter;
      std::optional<Reply> reply;
    };
    const auto open = std::make_shared<Open>(time_);  // an answer may come after the last moment
    call([open](Reply reply) { open->waiter.Do([&] { open->reply.emplace(std::move(reply)); }); });
    open->waiter.Wait(timeout_ + 30s, [&] { return open->reply.has_value(); });
    return open->waiter.Get([&] { return open->reply ? *std::move(open->reply) : std::move(never); });
  }

  Store& store_;
  VirtualSchedule* const time_;
  Duration timeout_ = 10s;
};

// What one watch has given so far.
class WatchLog {
 public:
  WatchLog(Store& store, const KeyRange& range, Revision from, VirtualSchedule* time = nullptr) : waiter_(time) {
    handle_ = store.Watch(range, from, [this](const WatchEvent& event) { Add(event); });
  }
  WatchLog(const WatchLog&) = delete;
  WatchLog& operator=(const WatchLog&) = delete;

  // Whether it has given the changes of `revision`, or more, or has ended as Compacted, within `patience`.
  bool WaitFor(Revision revision, Duration patience = 30s) {
    return waiter_.Wait(patience,
                        [&] { return compacted_ != 0 || (!batches_.empty() && batches_.back().revision >= revision); });
  }
  // Whether `ready` holds of what it has given, within `patience`.
  bool WaitUntil(const std::function<bool(const std::vector<WatchBatch>&)>& ready, Duration patience = 30s) {
    return waiter_.Wait(patience, [&] { return ready(batches_); });
  }
  std::vector<WatchBatch> batches() {
    return waiter_.Get([&] { return batches_; });
  }
  std::vector<contract::Change> changes() {
    return waiter_.Get([&] {
      std::vector<contract::Change> all;
      for (const WatchBatch& batch : batches_) all.insert(all.end(), batch.changes.begin(), batch.changes.end());
      return all;
    });
  }
  // 0: not compacted.
  Revision compacted() {
    return waiter_.Get([&] { return compacted_; });
  }

 private:
  void Add(const WatchEvent& event) {
    waiter_.Do([&] {
      if (const auto* batch = std::get_if<WatchBatch>(&event)) {
        batches_.push_back(*batch);
      } else {
        compacted_ = std::get<Compacted>(event).revision;
      }
    });
  }

  Waiter waiter_;
  std::vector<WatchBatch> batches_;
  Revision compacted_ = 0;
  std::unique_ptr<WatchHandle> handle_;  // last: it ends first
};

}  // namespace muster::store
