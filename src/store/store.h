// Store: where a cluster's state lives, shared by all that read and write it. A port with three implementations that
// pass one suite (conformance.h): MemoryStore for tests and the simulator, host::SqliteStore on one machine,
// rpc::EtcdStore on several.
//
//   store.Range(contract::KeysUnder("/nodes/"), 5s, [](Result<RangeReply> reply) { ... });
//   store.Commit({{contract::IfUnchanged(key, seen)}, {contract::Put(key, json)}}, 5s, [](CommitOutcome) { ... });
//   watch = store.Watch(contract::KeysUnder("/nodes/"), reply->revision + 1, [](const WatchEvent&) { ... });
//
// The port is asynchronous: a call returns at once, and `done` gets the answer. Elections are built on it: campaign.h.
//
// Invariants, for every implementation:
//   1. `done` runs exactly once, never inside the call, and not after the store is destroyed; a call that is open then
//      may never be answered.
//   2. Ranges and commits are linearizable: each takes effect at one moment between call and answer, and an answer of
//      revision R shows every change up to R and none after.
//   3. What is Committed is durable, where the store is durable at all.
//   4. A watch gives every change of its keys from `from` on, once, in the order of revisions, and never a part of a
//      revision; or it says Compacted, once, and ends.
//   5. A transaction has at most 128 compares, 128 writes and 1 MiB, and writes no key twice (Validate). What breaks
//      that is refused with INVALID_ARGUMENT by every store, so that no store takes what another would not.
//
// Thread-safety: any thread may call, also from `done` and from a watch's handler. Those run on a thread of the store,
// one at a time for each watch, and must not block; they may not destroy the store.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "contract/store.h"

namespace muster::store {

using contract::CommitOutcome;
using contract::KeyRange;
using contract::KeyValue;
using contract::LeaseId;
using contract::Revision;
using contract::Transaction;

// A lease that ends with more keys may lose them in several revisions.
inline constexpr size_t kLeaseSlice = 2000;

struct RangeReply {
  Revision revision = 0;       // of the store when it was read
  std::vector<KeyValue> rows;  // in the order of their keys
};

// All changes of the watched keys in some revisions, in the order they were made; at least one.
struct WatchBatch {
  Revision revision = 0;  // of the last change
  std::vector<contract::Change> changes;
};
// The history that the watch asked for is gone, up to `revision`: list again, and watch from there.
struct Compacted {
  Revision revision = 0;
};
using WatchEvent = std::variant<WatchBatch, Compacted>;
using WatchHandler = std::function<void(const WatchEvent&)>;

struct Lease {
  LeaseId id = 0;
  Duration ttl{};  // as granted; may be longer than asked for
};

// What a watch and its owner share: the handler runs while the gate is open, and not after Close came back.
class WatchGate {
 public:
  explicit WatchGate(WatchHandler handler) : handler_(std::move(handler)) {}

  // False if the gate is closed.
  bool Deliver(const WatchEvent& event) {
    const std::lock_guard lock(mu_);
    if (open_) handler_(event);
    return open_;
  }
  bool open() const {
    const std::lock_guard lock(mu_);
    return open_;
  }
  // Waits for a handler that runs on another thread.
  void Close() {
    const std::lock_guard lock(mu_);
    open_ = false;
  }

 private:
  mutable std::recursive_mutex mu_;  // a handler may end its own watch
  bool open_ = true;                 // guarded by mu_
  const WatchHandler handler_;       // called under mu_
};

// A watch while it lives: destroying this ends it, before or after its store.
class WatchHandle {
 public:
  explicit WatchHandle(std::shared_ptr<WatchGate> gate) : gate_(std::move(gate)) {}
  ~WatchHandle() { gate_->Close(); }
  WatchHandle(const WatchHandle&) = delete;
  WatchHandle& operator=(const WatchHandle&) = delete;

 private:
  const std::shared_ptr<WatchGate> gate_;
};

class Store {
 public:
  using RangeDone = std::function<void(Result<RangeReply>)>;
  using CommitDone = std::function<void(CommitOutcome)>;
  using LeaseDone = std::function<void(Result<Lease>)>;
  using Done = std::function<void(Status)>;

  virtual ~Store() = default;

  // The rows of the range at one revision. UNAVAILABLE or DEADLINE_EXCEEDED if the store does not answer, DATA_LOSS if
  // it cannot read what it holds. A store that answers in parts may take `timeout` for each of them.
  virtual void Range(KeyRange range, Duration timeout, RangeDone done) = 0;
  // Unknown after `timeout` at the latest, except that a store on a local disk answers when the disk does.
  virtual void Commit(Transaction transaction, Duration timeout, CommitDone done) = 0;
  // From revision `from`, at least 1, on; it may lie in the future. Compacted if `from` is not after the compacted
  // revision. After a Range at R, `from` is R + 1. A store that cannot be reached is tried until it can.
  [[nodiscard]] virtual std::unique_ptr<WatchHandle> Watch(KeyRange range, Revision from, WatchHandler handler) = 0;

  // A lease of at least `ttl`, which is rounded up to seconds. It ends `ttl` after the last KeepAlive, and its keys are
  // deleted then, in one revision; more than kLeaseSlice keys perhaps in several, with other commits between them. A
  // store that restarts, or changes its leader, begins the time of a lease that has not ended anew.
  virtual void Grant(Duration ttl, Duration timeout, LeaseDone done) = 0;
  // Renews a lease once: about every third of its ttl. NOT_FOUND if it has ended.
  virtual void KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) = 0;
  // Ends a lease and deletes its keys, in one revision. NOT_FOUND if it has ended.
  virtual void Revoke(LeaseId lease, Duration timeout, Done done) = 0;

  // Forgets the history up to `revision`: no key, but the watches from there. OK if it is forgotten already;
  // OUT_OF_RANGE if the revision is in the future.
  virtual void Compact(Revision revision, Duration timeout, Done done) = 0;
};

// INVALID_ARGUMENT if the transaction breaks a limit of contract/store.h, has an empty key, or writes a key twice.
Status Validate(const Transaction& transaction);

}  // namespace muster::store
