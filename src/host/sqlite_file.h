// SqliteFile: the rows and the history of a store in one SQLite file. What store::Table is in memory, on disk: it knows
// no threads, no time and no callbacks, and every function may fail with the disk.
//
// Durability: WAL with full sync, so that what Commit() has acknowledged survives the loss of power. Every row carries
// a sum over its content; the owner checks the whole file when it opens it, so that a damaged page is found then and
// not when it is served.
//
// Invariants:
//   1. One owner at a time has a file open for writing (the caller holds its directory); readers of other processes see
//      what is committed.
//   2. Between Begin and Commit, revision() and compacted() are those of the transaction; Rollback puts them back.
//
// Thread-safety: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "store/store.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::host {

class SqliteFile {
 public:
  struct Options {
    bool create = false;  // the file is not there, and is made
    bool read_only = false;
    bool durable = true;  // false: nothing is synced; for tests whose files need not survive
  };
  // Opens the file. DATA_LOSS if it is damaged, empty or cut short, NOT_FOUND if there is none, FAILED_PRECONDITION if
  // it is no store of this version. A file that is being made is no store until it is closed: an end in between leaves
  // one that is refused as empty.
  static Result<std::unique_ptr<SqliteFile>> Open(const std::string& path, Options options);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  store::Revision revision() const { return head_.revision; }
  store::Revision compacted() const { return head_.compacted; }

  // A transaction of SQLite. Everything below is inside one.
  Status Begin();
  // Durable on return. After an error the transaction is rolled back; RESOURCE_EXHAUSTED: certainly, and for good.
  Status Commit();
  void Rollback();

  // As store::Table; the changes made are added to `changes`.
  Result<store::CommitOutcome> Apply(store::Transaction transaction, std::vector<contract::Change>& changes);
  Result<store::RangeReply> Read(const store::KeyRange& range);
  // Changes of the range from revision `from` on: of whole revisions, and about `most` at the most. `through` is the
  // revision up to which all are there.
  Result<std::vector<contract::Change>> History(const store::KeyRange& range, store::Revision from, size_t most,
                                                store::Revision& through);
  Result<store::LeaseId> AddLease(Duration ttl);
  Result<std::map<store::LeaseId, Duration>> Leases();
  // Deletes up to `most` of the lease's keys, in one revision. True once all are gone, and the lease with them; until
  // then nothing can be written with the lease, and Leases() gives it no time. NOT_FOUND if there is no such lease.
  Result<bool> EndLease(store::LeaseId lease, size_t most, std::vector<contract::Change>& changes);
  Status Compact(store::Revision revision);
  // How many changes the history has, and the revision of the first of the last `changes` of them.
  int64_t changes() const { return head_.changes; }
  Result<store::Revision> RevisionOfLast(int64_t changes);
  // Gives an empty store these rows, without leases, as of `revision`; there is no history before it.
  Status Fill(const std::vector<store::KeyValue>& rows, store::Revision revision);

 private:
  // The one row of the table `head`, and what is counted when the file is opened.
  struct Head {
    store::Revision revision = 1;
    store::Revision compacted = 0;
    store::LeaseId last_lease = 0;
    int64_t changes = 0;  // in the history; not stored, and of owners alone
    bool operator==(const Head&) const = default;
  };
  class Query;

  SqliteFile(std::string path, Options options) : path_(std::move(path)), options_(options) {}
  Status Initialise();
  Status CreateTables();
  Status SetSizes();
  Status CheckFormat();
  Status CheckWhole();
  Status CheckPages();
  Status CheckContent();
  Status CountHistory();
  Status ReadHead(Head& head);
  Status WriteHead();
  // `created`: of its key, 0 if there is none.
  Result<bool> Holds(const contract::Compare& compare, store::Revision& created);
  Result<store::Revision> CreatedAt(std::string_view key);
  // How long it lives; zero: it is ending; nothing: there is none.
  Result<std::optional<Duration>> TtlOf(store::LeaseId lease);
  // As a part of the next revision; `created`: of the row that is there, 0 if there is none.
  Status Write(contract::StoreWrite write, store::Revision created, int64_t op, std::vector<contract::Change>& changes);
  Status Log(const contract::Change& change, int64_t op);
  Status PutRow(const store::KeyValue& row);
  Result<store::KeyValue> ReadRow(Query& query);
  // The row, or nothing.
  Result<std::vector<store::KeyValue>> ReadRows(Query& query);
  Status Exec(const char* sql);
  Status Failure(std::string_view what) const;
  Status Damaged(std::string_view what) const;

  const std::string path_;
  const Options options_;
  sqlite3* db_ = nullptr;
  std::map<std::string_view, sqlite3_stmt*> statements_;  // by their text, a literal
  Head head_;                                             // of the open transaction, else as stored
  Head stored_;                                           // as it was at Begin
};

}  // namespace muster::host
