// PersistBackend: where a core's own state is kept durable. One core, one backend.
//
// SqlitePersist is the real one: a file of rows, written in full-sync transactions, opened by one process at a time.
// (The simulator has a disk model of its own; the cluster's Store port is something else.)
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "base/status.h"
#include "contract/effects.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::host {

class PersistBackend {
 public:
  virtual ~PersistBackend() = default;
  // All writes of the batch or none; durable on return. An error leaves what was there; trying again is safe.
  virtual Status Commit(const contract::Persist& batch) = 0;
  // Every row. Called once, before the core starts.
  virtual Result<contract::Recovered> Recover() = 0;
};

// For a core that keeps nothing of its own: its durable state is somebody else's. Such a core persists nothing
// (checked).
class NoState final : public PersistBackend {
 public:
  Status Commit(const contract::Persist& batch) override {
    MUSTER_CHECK(batch.writes.empty(), "the core persists, and it has no state file");
    return {};
  }
  Result<contract::Recovered> Recover() override { return contract::Recovered(); }
};

// Thread-safety: one thread at a time.
class SqlitePersist final : public PersistBackend {
 public:
  // Opens or creates `path`, private to its user. FAILED_PRECONDITION if another process has it open or if it belongs
  // to something else
  // (`owner` is the name of the core that wrote it); DATA_LOSS if it is not a sound database.
  static Result<std::unique_ptr<SqlitePersist>> Open(const std::string& path, const std::string& owner);
  ~SqlitePersist() override;
  SqlitePersist(const SqlitePersist&) = delete;
  SqlitePersist& operator=(const SqlitePersist&) = delete;

  Status Commit(const contract::Persist& batch) override;
  Result<contract::Recovered> Recover() override;

 private:
  explicit SqlitePersist(std::string path) : path_(std::move(path)) {}
  Status Initialise(const std::string& owner);
  Status Exec(const char* sql);
  Status Prepare(const char* sql, sqlite3_stmt** statement);
  Status Apply(const contract::Write& write);
  Status Failure(const char* what) const;

  const std::string path_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
};

}  // namespace muster::host
