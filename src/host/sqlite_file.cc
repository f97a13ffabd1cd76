#include "host/sqlite_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/probe.h"

namespace muster::host {
namespace {

constexpr int kApplicationId = 0x4d757374 + 1;  // "Musu": a store, not a core's state
constexpr int kFormat = 1;

// The rows of a group are dirty pages until its commit: those that find no room in the cache are written twice. Rows
// are put into few pages of the file, over and over: the log takes all of it, and the file gets each page once in a
// while. What the log has grown to is what is read again after the process was killed.
constexpr int64_t kCacheBytes = 32 << 20;
constexpr int64_t kLogBytes = 16 << 20;

constexpr std::string_view kRowWithoutSum = "a row does not have its sum";
constexpr std::string_view kChangeWithoutSum = "a row of its history does not have its sum";

Code CodeOf(int sqlite_error) {
  switch (sqlite_error & 0xff) {
    case SQLITE_FULL: return Code::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kDataLoss;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY: return Code::kPermissionDenied;
    default: return Code::kUnavailable;
  }
}

std::string_view Advice(Code code) {
  switch (code) {
    case Code::kResourceExhausted: return "free space on its disk";
    case Code::kDataLoss: return "move it away and restore a backup with `muster store restore`";
    case Code::kPermissionDenied: return "check that its directory exists and may be written";
    default: return "check its disk";
  }
}

// A row where it lies.
struct RowView {
  std::string_view key;
  std::string_view value;
  store::Revision created = 0;
  store::Revision modified = 0;
  store::LeaseId lease = 0;
};
RowView ViewOf(const store::KeyValue& row) {
  return {.key = row.key, .value = row.value, .created = row.created, .modified = row.modified, .lease = row.lease};
}

int64_t SumOfRow(const RowView& row) {
  Hasher hasher;
  hasher.Add(row.key);
  hasher.Add(row.value);
  hasher.Add(static_cast<uint64_t>(row.created));
  hasher.Add(static_cast<uint64_t>(row.modified));
  hasher.Add(static_cast<uint64_t>(row.lease));
  return static_cast<int64_t>(hasher.value());
}

int64_t SumOfChange(const RowView& now, bool deleted, int64_t op) {
  Hasher hasher;
  hasher.Add(static_cast<uint64_t>(SumOfRow(now)));
  hasher.Add(static_cast<uint64_t>(op) * 2 + (deleted ? 1 : 0));
  return static_cast<int64_t>(hasher.value());
}

int64_t SumOfHead(store::Revision revision, store::Revision compacted, store::LeaseId last_lease) {
  Hasher hasher;
  for (const int64_t number : {revision, compacted, last_lease}) hasher.Add(static_cast<uint64_t>(number));
  return static_cast<int64_t>(hasher.value());
}

}  // namespace

// One use of a prepared statement; resets it on leaving.
class SqliteFile::Query {
 public:
  Query(SqliteFile& file, std::string_view sql) : file_(file) {
    sqlite3_stmt*& statement = file.statements_[sql];
    if (statement == nullptr) {
      prepared_ = sqlite3_prepare_v3(file.db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                     &statement, nullptr) == SQLITE_OK;
    }
    statement_ = statement;
  }
  ~Query() {
    if (statement_ == nullptr) return;  // it could not be prepared
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Texts must live as long as the query.
  Query& Bind(int position, std::string_view bytes) {
    sqlite3_bind_blob64(statement_, position, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
    return *this;
  }
  Query& Bind(int position, int64_t number) {
    sqlite3_bind_int64(statement_, position, number);
    return *this;
  }
  // Whether there is a row; none after an error, which Run and status() give.
  bool Next() {
    last_ = prepared_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    return last_ == SQLITE_ROW;
  }
  Status Run(std::string_view what) {
    Next();
    return status(what);
  }
  Status status(std::string_view what) const {
    return last_ == SQLITE_DONE || last_ == SQLITE_ROW ? Status() : file_.Failure(what);
  }
  int64_t Number(int column) const { return sqlite3_column_int64(statement_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  // Until the next row.
  std::string_view Bytes(int column) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }
  std::string Text(int column) const { return std::string(Bytes(column)); }

 private:
  const SqliteFile& file_;
  sqlite3_stmt* statement_ = nullptr;
  bool prepared_ = true;
  int last_ = SQLITE_DONE;
};

Result<std::unique_ptr<SqliteFile>> SqliteFile::Open(const std::string& path, Options options) {
  // SQLite would create it readable for everyone. If this fails, so does the opening, and says why.
  if (options.create) {
    if (const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC | O_RDWR, S_IRUSR | S_IWUSR); fd >= 0) close(fd);
  } else if (access(path.c_str(), F_OK) != 0) {
    return Error(Code::kNotFound, fmt::format("there is no store file {}", path));
  }
  std::unique_ptr<SqliteFile> file(new SqliteFile(path, options));
  const int flags = options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (sqlite3_open_v2(path.c_str(), &file->db_, flags, nullptr) != SQLITE_OK) {
    return std::unexpected(file->Failure("open"));
  }
  if (Status status = file->Initialise(); !status.ok()) return std::unexpected(std::move(status));
  return file;
}

SqliteFile::~SqliteFile() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Status SqliteFile::Initialise() {
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, 10'000);
  if (!options_.create) MUSTER_RETURN_IF_ERROR(CheckFormat());
  if (!options_.read_only) {
    MUSTER_RETURN_IF_ERROR(Exec("PRAGMA journal_mode=WAL"));
    MUSTER_RETURN_IF_ERROR(Exec(options_.durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF"));
    if (options_.create) MUSTER_RETURN_IF_ERROR(CreateTables());
    MUSTER_RETURN_IF_ERROR(SetSizes());
  }
  MUSTER_RETURN_IF_ERROR(ReadHead(head_));
  if (!options_.read_only) {
    if (!MUTANT("store.file_not_checked")) MUSTER_RETURN_IF_ERROR(CheckWhole());
    MUSTER_RETURN_IF_ERROR(CountHistory());
  }
  stored_ = head_;
  return {};
}

Status SqliteFile::SetSizes() {
  int64_t page_bytes = 0;
  {
    Query query(*this, "PRAGMA page_size");
    if (!query.Next()) return Failure("read the format of");
    page_bytes = query.Number(0);
  }
  MUSTER_RETURN_IF_ERROR(Exec(fmt::format("PRAGMA cache_size=-{}", kCacheBytes / 1024).c_str()));
  MUSTER_RETURN_IF_ERROR(Exec(fmt::format("PRAGMA wal_autocheckpoint={}", kLogBytes / page_bytes).c_str()));
  // A reader can make it longer; it is cut when it begins anew.
  return Exec(fmt::format("PRAGMA journal_size_limit={}", kLogBytes).c_str());
}

Status SqliteFile::CheckFormat() {
  Query query(*this,
              "SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master) "
              "FROM pragma_application_id a, pragma_user_version v");
  if (!query.Next()) return Failure("read the format of");
  if (query.Number(0) == kApplicationId && query.Number(1) == kFormat) return {};
  const bool empty = query.Number(0) == 0 && query.Number(1) == 0 && query.Number(2) == 0;
  if (empty) return Damaged("it is empty, though a store never is");
  return {Code::kFailedPrecondition,
          fmt::format("{} is not a store of this version (format {}); name another directory", path_, query.Number(1))};
}

Status SqliteFile::CreateTables() {
  return Exec(fmt::format("BEGIN IMMEDIATE;"
                          "CREATE TABLE head(only INTEGER PRIMARY KEY CHECK(only = 1), revision INTEGER NOT NULL,"
                          " compacted INTEGER NOT NULL, last_lease INTEGER NOT NULL, sum INTEGER NOT NULL);"
                          "CREATE TABLE row(key BLOB PRIMARY KEY, value BLOB NOT NULL, created INTEGER NOT NULL,"
                          " modified INTEGER NOT NULL, lease INTEGER NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;"
                          "CREATE INDEX row_lease ON row(lease, key) WHERE lease <> 0;"
                          // A deleted key has no value.
                          "CREATE TABLE history(revision INTEGER NOT NULL, op INTEGER NOT NULL, key BLOB NOT NULL,"
                          " value BLOB, created INTEGER NOT NULL, lease INTEGER NOT NULL, sum INTEGER NOT NULL,"
                          " PRIMARY KEY(revision, op)) WITHOUT ROWID;"
                          "CREATE TABLE lease(id INTEGER PRIMARY KEY, ttl INTEGER NOT NULL);"
                          "INSERT INTO head VALUES(1, 1, 0, 0, {});"
                          "PRAGMA application_id={}; PRAGMA user_version={};"
                          "COMMIT",
                          SumOfHead(1, 0, 0), kApplicationId, kFormat)
                  .c_str());
}

Status SqliteFile::CheckPages() {
  Query query(*this, "PRAGMA quick_check(1)");
  if (!query.Next()) return Failure("check");
  const std::string verdict = query.Text(0);
  return verdict == "ok" ? Status() : Damaged(verdict);
}

// Pages by another reader of the file, at the same time as what they hold: whoever has a large store waits for this.
Status SqliteFile::CheckWhole() {
  Status pages;
  std::thread other([this, &pages] {
    const auto reader = Open(path_, {.read_only = true});
    pages = reader ? (*reader)->CheckPages() : reader.error();
  });
  Status content = CheckContent();
  other.join();
  return pages.ok() ? content : pages;
}

// Where it lies: a large store is not in memory twice while its scheduler waits.
Status SqliteFile::CheckContent() {
  Query rows(*this, "SELECT key, value, created, modified, lease, sum FROM row");
  while (rows.Next()) {
    const RowView row{.key = rows.Bytes(0),
                      .value = rows.Bytes(1),
                      .created = rows.Number(2),
                      .modified = rows.Number(3),
                      .lease = rows.Number(4)};
    if (SumOfRow(row) != rows.Number(5)) return Damaged(kRowWithoutSum);
  }
  MUSTER_RETURN_IF_ERROR(rows.status("read"));
  store::Revision last = 0;
  Query history(*this, "SELECT revision, op, key, value, created, lease, sum FROM history");
  while (history.Next()) {
    last = std::max<store::Revision>(last, history.Number(0));
    const RowView now{.key = history.Bytes(2),
                      .value = history.Bytes(3),
                      .created = history.Number(4),
                      .modified = history.Number(0),
                      .lease = history.Number(5)};
    if (SumOfChange(now, history.IsNull(3), history.Number(1)) != history.Number(6)) return Damaged(kChangeWithoutSum);
  }
  MUSTER_RETURN_IF_ERROR(history.status("read"));
  return last > head_.revision ? Damaged("its history is newer than its revision") : Status();
}

Status SqliteFile::CountHistory() {
  Query query(*this, "SELECT count(*) FROM history");
  if (!query.Next()) return Failure("read");
  head_.changes = query.Number(0);
  return {};
}

Status SqliteFile::ReadHead(Head& head) {
  Query query(*this, "SELECT revision, compacted, last_lease, sum FROM head");
  if (!query.Next()) {
    MUSTER_RETURN_IF_ERROR(query.status("read"));
    return Damaged("its head is missing");
  }
  head = {.revision = query.Number(0), .compacted = query.Number(1), .last_lease = query.Number(2)};
  const bool whole = SumOfHead(head.revision, head.compacted, head.last_lease) == query.Number(3);
  return whole ? Status() : Damaged("its head does not have its sum");
}

Status SqliteFile::WriteHead() {
  Query query(*this, "UPDATE head SET revision = ?1, compacted = ?2, last_lease = ?3, sum = ?4");
  return query.Bind(1, head_.revision)
      .Bind(2, head_.compacted)
      .Bind(3, head_.last_lease)
      .Bind(4, SumOfHead(head_.revision, head_.compacted, head_.last_lease))
      .Run("write");
}

Status SqliteFile::Begin() {
  MUSTER_RETURN_IF_ERROR(Exec(options_.read_only ? "BEGIN" : "BEGIN IMMEDIATE"));
  // Another process writes the file of a reader; that of an owner is as it was left.
  if (options_.read_only) {
    if (Status status = ReadHead(head_); !status.ok()) {
      Rollback();
      return status;
    }
  }
  stored_ = head_;
  return {};
}

Status SqliteFile::Commit() {
  Status status = head_ == stored_ ? Status() : WriteHead();
  CRASH_POINT("store.before_commit");
  if (status.ok()) status = Exec("COMMIT");
  if (!status.ok()) {
    Rollback();
    return status;
  }
  CRASH_POINT("store.after_commit");
  stored_ = head_;
  return {};
}

void SqliteFile::Rollback() {
  // After some failures SQLite has rolled back by itself.
  if (sqlite3_get_autocommit(db_) == 0) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
  head_ = stored_;
}

Result<bool> SqliteFile::Holds(const contract::Compare& compare, store::Revision& created) {
  if (compare.value) {
    Query query(*this, "SELECT key, value, created, modified, lease, sum FROM row WHERE key = ?1");
    MUSTER_ASSIGN_OR_RETURN(const std::vector<store::KeyValue> rows, ReadRows(query.Bind(1, compare.key)));
    created = rows.empty() ? 0 : rows.front().created;
    return !rows.empty() && rows.front().value == *compare.value;
  }
  Query query(*this, "SELECT created, modified FROM row WHERE key = ?1");
  const bool there = query.Bind(1, compare.key).Next();
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  created = there ? query.Number(0) : 0;
  return (there ? query.Number(1) : 0) == compare.modified;
}

Result<store::Revision> SqliteFile::CreatedAt(std::string_view key) {
  Query query(*this, "SELECT created FROM row WHERE key = ?1");
  const bool there = query.Bind(1, key).Next();
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  return there ? query.Number(0) : 0;
}

Result<std::optional<Duration>> SqliteFile::TtlOf(store::LeaseId lease) {
  Query query(*this, "SELECT ttl FROM lease WHERE id = ?1");
  const bool found = query.Bind(1, lease).Next();
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  return found ? std::optional(Duration(query.Number(0))) : std::nullopt;
}

Result<store::CommitOutcome> SqliteFile::Apply(store::Transaction transaction, std::vector<contract::Change>& changes) {
  std::map<std::string_view, store::Revision> created;  // of what was compared
  for (const contract::Compare& compare : transaction.compares) {
    MUSTER_ASSIGN_OR_RETURN(const bool holds, Holds(compare, created[compare.key]));
    if (!holds) return contract::Conflict{head_.revision};
  }
  for (const contract::StoreWrite& write : transaction.writes) {
    if (!write.value || write.lease == 0) continue;
    MUSTER_ASSIGN_OR_RETURN(const std::optional<Duration> ttl, TtlOf(write.lease));
    if (ttl > Duration::zero()) continue;
    return contract::Unknown{{Code::kNotFound, fmt::format("lease {} has ended", write.lease)}};
  }
  const size_t before = changes.size();
  for (contract::StoreWrite& write : transaction.writes) {
    const auto op = static_cast<int64_t>(changes.size() - before);
    const auto compared = created.find(write.key);
    Result<store::Revision> since = 0;
    if (compared == created.end()) {
      since = CreatedAt(write.key);
      if (!since) return std::unexpected(std::move(since.error()));
    } else {
      since = compared->second;
    }
    if (Status status = Write(std::move(write), *since, op, changes); !status.ok()) {
      return std::unexpected(std::move(status));
    }
  }
  if (changes.size() > before) ++head_.revision;
  return contract::Committed{head_.revision};
}

Status SqliteFile::Write(contract::StoreWrite write, store::Revision created, int64_t op,
                         std::vector<contract::Change>& changes) {
  const store::Revision at = head_.revision + 1;
  contract::Change change;
  if (write.value) {
    change.now = {.key = std::move(write.key),
                  .value = *std::move(write.value),
                  .created = created != 0 ? created : at,
                  .modified = at,
                  .lease = write.lease};
    MUSTER_RETURN_IF_ERROR(PutRow(change.now));
  } else {
    if (created == 0) return {};
    change = {.deleted = true, .now = {.key = std::move(write.key), .modified = at}};
    Query remove(*this, "DELETE FROM row WHERE key = ?1");
    MUSTER_RETURN_IF_ERROR(remove.Bind(1, change.now.key).Run("write"));
  }
  MUSTER_RETURN_IF_ERROR(Log(change, op));
  changes.push_back(std::move(change));
  return {};
}

Status SqliteFile::PutRow(const store::KeyValue& row) {
  Query put(*this, "INSERT OR REPLACE INTO row VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  return put.Bind(1, row.key)
      .Bind(2, row.value)
      .Bind(3, row.created)
      .Bind(4, row.modified)
      .Bind(5, row.lease)
      .Bind(6, SumOfRow(ViewOf(row)))
      .Run("write");
}

Status SqliteFile::Log(const contract::Change& change, int64_t op) {
  Query add(*this, "INSERT INTO history VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)");
  add.Bind(1, change.now.modified).Bind(2, op).Bind(3, change.now.key);
  if (!change.deleted) add.Bind(4, change.now.value);
  ++head_.changes;
  return add.Bind(5, change.now.created)
      .Bind(6, change.now.lease)
      .Bind(7, SumOfChange(ViewOf(change.now), change.deleted, op))
      .Run("write");
}

Result<store::KeyValue> SqliteFile::ReadRow(Query& query) {
  store::KeyValue row{.key = query.Text(0),
                      .value = query.Text(1),
                      .created = query.Number(2),
                      .modified = query.Number(3),
                      .lease = query.Number(4)};
  if (SumOfRow(ViewOf(row)) != query.Number(5)) return std::unexpected(Damaged(kRowWithoutSum));
  return row;
}

Result<std::vector<store::KeyValue>> SqliteFile::ReadRows(Query& query) {
  std::vector<store::KeyValue> rows;
  while (query.Next()) {
    MUSTER_ASSIGN_OR_RETURN(store::KeyValue row, ReadRow(query));
    rows.push_back(std::move(row));
  }
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  return rows;
}

Result<store::RangeReply> SqliteFile::Read(const store::KeyRange& range) {
  Query query(*this, range.end.empty() ? "SELECT key, value, created, modified, lease, sum FROM row WHERE key >= ?1 "
                                         "ORDER BY key"
                                       : "SELECT key, value, created, modified, lease, sum FROM row WHERE key >= ?1 "
                                         "AND key < ?2 ORDER BY key");
  query.Bind(1, range.begin);
  if (!range.end.empty()) query.Bind(2, range.end);
  MUSTER_ASSIGN_OR_RETURN(std::vector<store::KeyValue> rows, ReadRows(query));
  return store::RangeReply{.revision = head_.revision, .rows = std::move(rows)};
}

Result<std::vector<contract::Change>> SqliteFile::History(const store::KeyRange& range, store::Revision from,
                                                          size_t most, store::Revision& through) {
  Query query(*this,
              "SELECT revision, op, key, value, created, lease, sum FROM history WHERE revision >= ?1 "
              "AND revision <= ?2 ORDER BY revision, op");
  query.Bind(1, from).Bind(2, head_.revision);  // a reader's head may be behind the file
  std::vector<contract::Change> changes;
  size_t read = 0;
  store::Revision last = 0;
  through = head_.revision;
  while (query.Next()) {
    if (read++ >= most && query.Number(0) != last) {
      through = last;
      return changes;
    }
    last = query.Number(0);
    contract::Change change{.deleted = query.IsNull(3),
                            .now = {.key = query.Text(2),
                                    .value = query.Text(3),
                                    .created = query.Number(4),
                                    .modified = last,
                                    .lease = query.Number(5)}};
    if (SumOfChange(ViewOf(change.now), change.deleted, query.Number(1)) != query.Number(6)) {
      return std::unexpected(Damaged(kChangeWithoutSum));
    }
    if (range.Contains(change.now.key)) changes.push_back(std::move(change));
  }
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  return changes;
}

Result<store::LeaseId> SqliteFile::AddLease(Duration ttl) {
  Query add(*this, "INSERT INTO lease VALUES(?1, ?2)");
  if (Status status = add.Bind(1, ++head_.last_lease).Bind(2, ttl.count()).Run("write"); !status.ok()) {
    return std::unexpected(std::move(status));
  }
  return head_.last_lease;
}

Result<std::map<store::LeaseId, Duration>> SqliteFile::Leases() {
  Query query(*this, "SELECT id, ttl FROM lease");
  std::map<store::LeaseId, Duration> leases;
  while (query.Next()) leases[query.Number(0)] = Duration(query.Number(1));
  if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  return leases;
}

Result<bool> SqliteFile::EndLease(store::LeaseId lease, size_t most, std::vector<contract::Change>& changes) {
  MUSTER_ASSIGN_OR_RETURN(const std::optional<Duration> ttl, TtlOf(lease));
  if (!ttl) return Error(Code::kNotFound, "the lease has ended");
  std::vector<std::string> keys;
  {
    Query query(*this, "SELECT key FROM row WHERE lease = ?1 AND lease <> 0 ORDER BY key LIMIT ?2");
    query.Bind(1, lease).Bind(2, static_cast<int64_t>(most));
    while (query.Next()) keys.push_back(query.Text(0));
    if (Status status = query.status("read"); !status.ok()) return std::unexpected(std::move(status));
  }
  int64_t op = 0;
  for (const std::string& key : keys) {
    // They are there, whenever they were created.
    if (Status status = Write(contract::Delete(key), head_.revision, op++, changes); !status.ok()) {
      return std::unexpected(std::move(status));
    }
  }
  if (!keys.empty()) ++head_.revision;
  // A process that ends here leaves a lease that the next one ends, whatever its time was.
  const bool ended = keys.size() < most;
  Query note(*this, ended ? "DELETE FROM lease WHERE id = ?1" : "UPDATE lease SET ttl = 0 WHERE id = ?1");
  if (Status status = note.Bind(1, lease).Run("write"); !status.ok()) return std::unexpected(std::move(status));
  return ended;
}

Status SqliteFile::Compact(store::Revision revision) {
  if (revision > head_.revision) {
    return {Code::kOutOfRange,
            fmt::format("revision {} is in the future: the store is at {}", revision, head_.revision)};
  }
  if (revision <= head_.compacted) return {};
  head_.compacted = revision;
  Query remove(*this, "DELETE FROM history WHERE revision <= ?1");
  MUSTER_RETURN_IF_ERROR(remove.Bind(1, revision).Run("write"));
  head_.changes -= sqlite3_changes64(db_);
  return {};
}

Result<store::Revision> SqliteFile::RevisionOfLast(int64_t changes) {
  if (changes >= head_.changes) return head_.compacted + 1;
  Query query(*this, "SELECT revision FROM history ORDER BY revision, op LIMIT 1 OFFSET ?1");
  if (!query.Bind(1, head_.changes - changes).Next()) return std::unexpected(Failure("read"));
  return query.Number(0);
}

Status SqliteFile::Fill(const std::vector<store::KeyValue>& rows, store::Revision revision) {
  for (const store::KeyValue& row : rows) {
    MUSTER_RETURN_IF_ERROR(
        PutRow({.key = row.key, .value = row.value, .created = revision, .modified = revision, .lease = 0}));
  }
  head_.revision = revision;
  head_.compacted = revision;
  return {};
}

Status SqliteFile::Exec(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? Status() : Failure("write");
}

Status SqliteFile::Failure(std::string_view what) const {
  const Code code = CodeOf(sqlite3_extended_errcode(db_));
  return {code, fmt::format("cannot {} the store file {}: {}; {}", what, path_, sqlite3_errmsg(db_), Advice(code))};
}

Status SqliteFile::Damaged(std::string_view what) const {
  return {Code::kDataLoss, fmt::format("the store file {} is damaged: {}; {}", path_, what, Advice(Code::kDataLoss))};
}

}  // namespace muster::host
