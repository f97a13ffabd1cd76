// What a store holds and what is asked of it: keys with revisions, transactions, changes. Plain values, for the port
// (store/store.h) and its clients; and how a core commits: the effect Commit, answered by the event CommitDone.
//
// A store has one revision, which every change raises: it is global and monotonic, and it names a state of the whole
// store. A transaction that changes something is one revision, whatever it changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/time.h"
#include "contract/effects.h"

namespace muster::contract {

using Revision = int64_t;  // 0: of no key; the first change of an empty store has at least 2
using LeaseId = int64_t;   // 0: no lease

// Limits of every store, whichever it is: those of etcd.
constexpr size_t kMaxTransactionCompares = 128;
constexpr size_t kMaxTransactionWrites = 128;
constexpr size_t kMaxTransactionBytes = 1 << 20;  // of keys and values together
constexpr size_t kMaxKeyBytes = 4096;

struct KeyValue {
  std::string key;
  std::string value;
  Revision created = 0;   // when the key came to be; a key that is deleted and put again is created again
  Revision modified = 0;  // when it was put last
  LeaseId lease = 0;      // the key is deleted with it

  bool operator==(const KeyValue&) const = default;
  MUSTER_FIELDS(KeyValue, key, value, created, modified, lease)
};

// The keys from `begin` up to, and without, `end`. An empty `end` is no bound.
struct KeyRange {
  std::string begin;
  std::string end;

  bool Contains(const std::string& key) const { return key >= begin && (end.empty() || key < end); }
  bool operator==(const KeyRange&) const = default;
  MUSTER_FIELDS(KeyRange, begin, end)
};
inline KeyRange EveryKey() { return {}; }
inline KeyRange OneKey(const std::string& key) { return {.begin = key, .end = key + '\0'}; }
// The keys that begin with `prefix`.
inline KeyRange KeysUnder(const std::string& prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {.begin = prefix, .end = std::move(end)};
}

// A condition on one key: its value, if `value` is given, otherwise the revision of its last put, 0 for a key that is
// not there. No value equals that of a key that is not there.
struct Compare {
  std::string key;
  std::optional<std::string> value;
  Revision modified = 0;

  bool operator==(const Compare&) const = default;
  MUSTER_FIELDS(Compare, key, value, modified)
};
inline Compare IfAbsent(std::string key) { return {.key = std::move(key)}; }
inline Compare IfUnchanged(std::string key, Revision modified) {
  return {.key = std::move(key), .value = {}, .modified = modified};
}
inline Compare IfValue(std::string key, std::string value) {
  return {.key = std::move(key), .value = std::move(value)};
}

// Put, or delete if there is no value. A put without a lease ends the key's bond to the lease it had. Deleting what is
// not there changes nothing.
struct StoreWrite {
  std::string key;
  std::optional<std::string> value;
  LeaseId lease = 0;

  bool operator==(const StoreWrite&) const = default;
  MUSTER_FIELDS(StoreWrite, key, value, lease)
};
inline StoreWrite Put(std::string key, std::string value, LeaseId lease = 0) {
  return {.key = std::move(key), .value = std::move(value), .lease = lease};
}
inline StoreWrite Delete(std::string key) { return {.key = std::move(key)}; }

// If every condition holds, all writes happen, in one revision; otherwise none. A key is written once at the most.
struct Transaction {
  std::vector<Compare> compares;
  std::vector<StoreWrite> writes;

  bool operator==(const Transaction&) const = default;
  MUSTER_FIELDS(Transaction, compares, writes)
};

// One key as a change left it. A deleted key has its revision in `modified` and nothing else but its name.
struct Change {
  bool deleted = false;
  KeyValue now;

  bool operator==(const Change&) const = default;
  MUSTER_FIELDS(Change, deleted, now)
};

// How a transaction ended.
//
// `revision` is that of the store just after it: the revision of its writes, if it changed anything.
struct Committed {
  Revision revision = 0;

  bool operator==(const Committed&) const = default;
  MUSTER_FIELDS(Committed, revision)
};
// A condition did not hold at `revision`. Nothing was written. The caller reads again and decides again.
struct Conflict {
  Revision revision = 0;

  bool operator==(const Conflict&) const = default;
  MUSTER_FIELDS(Conflict, revision)
};
// The store gave no verdict, and `status` says why. Unless Refused(), the transaction may have happened, or may still
// happen: the caller reads again, and repeats only what its conditions guard.
struct Unknown {
  Status status;

  // Certainly nothing was written, and nothing will be: the request is wrong (INVALID_ARGUMENT), its lease is gone
  // (NOT_FOUND), the store is full (RESOURCE_EXHAUSTED), or the caller may not write (PERMISSION_DENIED).
  bool Refused() const {
    const Code code = status.code();
    return code == Code::kInvalidArgument || code == Code::kNotFound || code == Code::kResourceExhausted ||
           code == Code::kPermissionDenied;
  }
  bool operator==(const Unknown&) const = default;
  MUSTER_FIELDS(Unknown, status)
};
using CommitOutcome = std::variant<Committed, Conflict, Unknown>;

// Effect: a transaction for the cluster's store, which others write to as well; a core's private state is Persist's
// (effects.h). The host answers with exactly one CommitDone while the core lives, Unknown after `timeout` at the
// latest. Effects after a Commit do not wait for it.
struct Commit {
  CallId id = 0;  // among the core's commits
  Transaction transaction;
  Duration timeout{};

  MUSTER_FIELDS(Commit, id, transaction, timeout)
};

// Event: how a commit ended: Committed, Conflict or Unknown.
struct CommitDone {
  CallId id = 0;
  CommitOutcome outcome;

  MUSTER_FIELDS(CommitDone, id, outcome)
};

}  // namespace muster::contract
