// SqliteStore: the store of one machine, in one file, DIR/store.db. The default.
//
// One thread does all the work. It takes what has been asked since it last looked as one *group*: a single SQLite
// transaction in which every request is carried out in turn, and after which all are answered. So many callers share
// one sync of the disk, and no answer shows what is not durable. If the disk refuses, the group is rolled back and
// every request of it is told so; the next group begins from what is durable.
//
// A process owns the directory while it has the store open. Others may open it to read: they see what is committed, and
// their watches look every 50 ms.
//
// Invariants, besides those of store.h:
//   1. Leases outlive the process; their time begins anew when the store is opened.
//   2. The last `keep_history` revisions are there for watches, or as many as the last `keep_changes` changes are of,
//      if those are fewer; older ones are compacted as the store is used, at most 20,000 changes with a group, or one
//      revision that has more. A transaction is one revision, whatever it changes: revisions alone would not bound the
//      file, all of which is read when it is opened.
//
// Thread-safety: as store.h. The destructor waits for the group under way; what was not begun is not answered.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/store.h"

namespace muster::host {

struct SqliteStoreOptions {
  bool read_only = false;  // commits, leases and compactions are refused with PERMISSION_DENIED
  bool durable = true;     // false: nothing is synced; for tests whose files need not survive
  store::Revision keep_history = 10'000;
  int64_t keep_changes = 100'000;
};

// Opens DIR/store.db; directory and file are made if they are not there, unless read_only. FAILED_PRECONDITION if
// another process owns the directory, DATA_LOSS if the file is damaged, empty or cut short, with what to do.
Result<std::unique_ptr<store::Store>> OpenSqliteStore(const std::string& directory, SqliteStoreOptions options = {});

// Makes a store in DIR that has these rows as of `revision`: all of it, or nothing. FAILED_PRECONDITION if there is
// one.
Status CreateSqliteStore(const std::string& directory, const std::vector<store::KeyValue>& rows,
                         store::Revision revision);

}  // namespace muster::host
