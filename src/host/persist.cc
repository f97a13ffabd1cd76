#include "host/persist.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/probe.h"

namespace muster::host {
namespace {

constexpr int kApplicationId = 0x4d757374;  // "Must"
constexpr int kFormat = 1;

Code CodeOf(int sqlite_error) {
  switch (sqlite_error & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::kFailedPrecondition;
    case SQLITE_FULL: return Code::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kDataLoss;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY: return Code::kPermissionDenied;
    default: return Code::kUnavailable;
  }
}

std::string Advice(Code code) {
  switch (code) {
    case Code::kFailedPrecondition: return "another process has it open; stop that one first";
    case Code::kResourceExhausted: return "free space on its disk";
    case Code::kDataLoss: return "restore it from a backup";
    case Code::kPermissionDenied: return "check that its directory exists and may be written";
    default: return "check its disk";
  }
}

// Resets the statement on leaving, so that the next use starts clean whatever happened to this one.
class ScopedReset {
 public:
  explicit ScopedReset(sqlite3_stmt* statement) : statement_(statement) {}
  ~ScopedReset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  ScopedReset(const ScopedReset&) = delete;
  ScopedReset& operator=(const ScopedReset&) = delete;

 private:
  sqlite3_stmt* statement_;
};

void Bind(sqlite3_stmt* statement, int position, const std::string& bytes) {
  // A zero-length blob, not NULL, for an empty string.
  sqlite3_bind_blob64(statement, position, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
}

std::string Column(sqlite3_stmt* statement, int column) {
  const void* bytes = sqlite3_column_blob(statement, column);
  return {static_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(statement, column))};
}

}  // namespace

Result<std::unique_ptr<SqlitePersist>> SqlitePersist::Open(const std::string& path, const std::string& owner) {
  // SQLite would create it readable for everyone, and gives its log the mode of the file. If this fails, so does the
  // opening, and says why. Exclusive, because closing a file that is there would end the locks this process has on it.
  if (const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_CLOEXEC | O_RDWR, S_IRUSR | S_IWUSR); fd >= 0) close(fd);
  std::unique_ptr<SqlitePersist> persist(new SqlitePersist(path));
  if (sqlite3_open(path.c_str(), &persist->db_) != SQLITE_OK) {
    return std::unexpected(persist->Failure("open"));
  }
  if (Status status = persist->Initialise(owner); !status.ok()) return std::unexpected(std::move(status));
  return persist;
}

SqlitePersist::~SqlitePersist() {
  sqlite3_finalize(put_);
  sqlite3_finalize(remove_);
  sqlite3_close(db_);
}

Status SqlitePersist::Initialise(const std::string& owner) {
  sqlite3_extended_result_codes(db_, 1);
  // Exclusive locking: a second process is refused at once instead of racing.
  MUSTER_RETURN_IF_ERROR(Exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE"));
  sqlite3_stmt* query = nullptr;
  MUSTER_RETURN_IF_ERROR(
      Prepare("SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_master) "
              "FROM pragma_application_id a, pragma_user_version v",
              &query));
  const int row = sqlite3_step(query);
  const int application = row == SQLITE_ROW ? sqlite3_column_int(query, 0) : 0;
  const int format = row == SQLITE_ROW ? sqlite3_column_int(query, 1) : 0;
  const bool empty = row == SQLITE_ROW && sqlite3_column_int(query, 2) == 0;
  sqlite3_finalize(query);
  if (row != SQLITE_ROW) return Failure("read the format of");
  if (application == 0 && format == 0 && empty) {
    MUSTER_RETURN_IF_ERROR(
        Exec("CREATE TABLE state(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
             "CREATE TABLE owner(name BLOB NOT NULL)"));
    MUSTER_RETURN_IF_ERROR(
        Exec(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}", kApplicationId, kFormat).c_str()));
    MUSTER_RETURN_IF_ERROR(Prepare("INSERT INTO owner VALUES(?1)", &query));
    Bind(query, 1, owner);
    const bool inserted = sqlite3_step(query) == SQLITE_DONE;
    sqlite3_finalize(query);
    if (!inserted) return Failure("create");
  } else if (application != kApplicationId || format != kFormat) {
    return {Code::kFailedPrecondition,
            fmt::format("{} is not a state file of this version (format {}); name another file", path_, format)};
  }
  MUSTER_RETURN_IF_ERROR(Prepare("SELECT name FROM owner", &query));
  const std::string found = sqlite3_step(query) == SQLITE_ROW ? Column(query, 0) : "";
  sqlite3_finalize(query);
  MUSTER_RETURN_IF_ERROR(Exec("COMMIT"));
  MUSTER_RETURN_IF_ERROR(Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"));
  if (found != owner) {
    return {Code::kFailedPrecondition,
            fmt::format("{} belongs to '{}', not to '{}'; name another data directory", path_, found, owner)};
  }
  MUSTER_RETURN_IF_ERROR(Prepare("INSERT OR REPLACE INTO state VALUES(?1, ?2)", &put_));
  return Prepare("DELETE FROM state WHERE key = ?1", &remove_);
}

Status SqlitePersist::Commit(const contract::Persist& batch) {
  CRASH_POINT("persist.before_commit");
  MUSTER_RETURN_IF_ERROR(Exec("BEGIN IMMEDIATE"));
  Status status;
  for (const contract::Write& write : batch.writes) {
    status = Apply(write);
    if (!status.ok()) break;
  }
  if (status.ok()) status = Exec("COMMIT");
  if (!status.ok()) {
    // After some failures SQLite has rolled back by itself, and a second rollback is an error of no interest.
    if (sqlite3_get_autocommit(db_) == 0) MUSTER_RETURN_IF_ERROR(Exec("ROLLBACK"));
    return status;
  }
  CRASH_POINT("persist.after_commit");
  return {};
}

Result<contract::Recovered> SqlitePersist::Recover() {
  sqlite3_stmt* query = nullptr;
  if (Status status = Prepare("SELECT key, value FROM state", &query); !status.ok()) {
    return std::unexpected(std::move(status));
  }
  contract::Recovered rows;
  int step = sqlite3_step(query);
  for (; step == SQLITE_ROW; step = sqlite3_step(query)) rows.emplace(Column(query, 0), Column(query, 1));
  Status status = step == SQLITE_DONE ? Status() : Failure("read");
  sqlite3_finalize(query);
  if (!status.ok()) return std::unexpected(std::move(status));
  return rows;
}

Status SqlitePersist::Apply(const contract::Write& write) {
  sqlite3_stmt* statement = write.value ? put_ : remove_;
  const ScopedReset reset(statement);
  Bind(statement, 1, write.key);
  if (write.value) Bind(statement, 2, *write.value);
  return sqlite3_step(statement) == SQLITE_DONE ? Status() : Failure("write");
}

Status SqlitePersist::Exec(const char* sql) {
  return sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? Status() : Failure("write");
}

Status SqlitePersist::Prepare(const char* sql, sqlite3_stmt** statement) {
  return sqlite3_prepare_v2(db_, sql, -1, statement, nullptr) == SQLITE_OK ? Status() : Failure("read");
}

Status SqlitePersist::Failure(const char* what) const {
  const Code code = CodeOf(sqlite3_extended_errcode(db_));
  return {code, fmt::format("cannot {} the state file {}: {}; {}", what, path_, sqlite3_errmsg(db_), Advice(code))};
}

}  // namespace muster::host
