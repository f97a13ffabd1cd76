// Table: the rows and the history of a store in memory, without time, faults or callbacks: what a MemoryStore answers
// from, and the model that the other stores are compared with.
//
// Thread-safety: one thread at a time.
//
// Invariants:
//   1. history_ holds the changes of the revisions after compacted_, in order.
//   2. keys_of_ holds each key that has a lease, and every lease there is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace muster::store {

class Table {
 public:
  Revision revision() const { return revision_; }
  Revision compacted() const { return compacted_; }

  // A conflict if a condition does not hold; else refused with NOT_FOUND if a write names a lease that is not there.
  // The transaction is valid.
  CommitOutcome Apply(const Transaction& transaction);
  RangeReply Read(const KeyRange& range) const;
  // Changes of the range from revision `from` on, which is after compacted().
  std::vector<contract::Change> History(const KeyRange& range, Revision from) const;

  LeaseId AddLease();
  bool HasLease(LeaseId lease) const { return keys_of_.contains(lease); }
  // Deletes the lease and its keys, in the order of their names. False if there is no such lease.
  bool EndLease(LeaseId lease);

  // OUT_OF_RANGE for a revision in the future.
  Status Compact(Revision revision);

  // Becomes what `backup` says, at its revision, without history. No lease is part of it, nor a key that has one; the
  // leases that were are gone, and their ids are not given again.
  void GoBackTo(const RangeReply& backup);

  // Aborts if an invariant does not hold.
  void CheckInvariants() const;

 private:
  bool Holds(const contract::Compare& compare) const;
  // One write at revision `at`; whether it changed anything.
  bool Write(const contract::StoreWrite& write, Revision at);
  void Unbind(const KeyValue& row);

  std::map<std::string, KeyValue> rows_;
  std::deque<contract::Change> history_;
  std::map<LeaseId, std::set<std::string>> keys_of_;
  Revision revision_ = 1;
  Revision compacted_ = 0;
  LeaseId last_lease_ = 0;
};

}  // namespace muster::store
