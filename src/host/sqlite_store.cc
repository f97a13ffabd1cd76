#include "host/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/probe.h"
#include "host/data_dir.h"
#include "host/sqlite_file.h"
#include "host/system_clock.h"

namespace muster::host {
namespace {

using store::KeyRange;
using store::LeaseId;
using store::Revision;

constexpr size_t kGroupRequests = 512;
constexpr size_t kAllKeys = 1u << 30;        // of a lease
constexpr size_t kCatchUpChanges = 1000;     // read at a time for a watch that is behind
constexpr Revision kCompactedAtOnce = 1000;  // so that no group is held up for long: revisions,
constexpr int64_t kChangesBeyond = 1000;     // or changes, unless one group makes more
constexpr int64_t kMostCompacted = 20'000;   // changes with one group, unless one revision has more
constexpr Duration kReaderLooksEvery = 50ms;
constexpr Duration kRetryAfterFailure = 100ms;

Status LeaseEnded() { return {Code::kNotFound, "the lease has ended"}; }
Status Overdue() { return {Code::kDeadlineExceeded, "the store did not come to the request in time"}; }

class SqliteStore final : public store::Store {
 public:
  SqliteStore(std::unique_ptr<DataDir> lock, std::unique_ptr<SqliteFile> file, SqliteStoreOptions options,
              const std::map<LeaseId, Duration>& leases)
      : lock_(std::move(lock)), options_(options), file_(std::move(file)), published_(file_->revision()) {
    for (const auto& [id, ttl] : leases) KeepLease(id, ttl);
    thread_ = std::thread([this] { Run(); });
  }
  ~SqliteStore() override {
    {
      const std::lock_guard lock(mu_);
      stopping_ = true;
    }
    wakes_.notify_all();
    thread_.join();
  }
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  void Range(KeyRange range, Duration timeout, RangeDone done) override {
    Ask<Result<store::RangeReply>>(
        timeout, [this, range = std::move(range)]() { return file_->Read(range); }, std::move(done));
  }
  void Commit(store::Transaction transaction, Duration timeout, CommitDone done) override {
    const Status valid = options_.read_only ? ReadOnly() : store::Validate(transaction);
    Ask<store::CommitOutcome>(
        timeout,
        [this, valid, transaction = std::move(transaction)]() mutable -> Result<store::CommitOutcome> {
          if (!valid.ok()) return contract::Unknown{valid};
          return file_->Apply(std::move(transaction), changes_);  // carried out once, whatever comes of it
        },
        std::move(done));
  }
  std::unique_ptr<store::WatchHandle> Watch(KeyRange range, Revision from, store::WatchHandler handler) override {
    auto gate = std::make_shared<store::WatchGate>(std::move(handler));
    Post({.work = [this, range = std::move(range), from, gate]() mutable -> Status {
            watches_.push_back({.range = std::move(range), .next = from, .gate = std::move(gate)});
            return {};
          },
          .answer = [](const Status&) {}});
    return std::make_unique<store::WatchHandle>(std::move(gate));
  }

  void Grant(Duration ttl, Duration timeout, LeaseDone done) override {
    ttl = std::max<Duration>(std::chrono::ceil<std::chrono::seconds>(ttl), 1s);
    Ask<Result<store::Lease>>(
        timeout,
        [this, ttl]() -> Result<store::Lease> {
          if (options_.read_only) return Refuse(ReadOnly());
          MUSTER_ASSIGN_OR_RETURN(const LeaseId id, file_->AddLease(ttl));
          granted_.push_back(id);
          KeepLease(id, ttl);
          return store::Lease{.id = id, .ttl = ttl};
        },
        std::move(done));
  }
  void KeepAlive(LeaseId lease, Duration timeout, LeaseDone done) override {
    Ask<Result<store::Lease>>(
        timeout,
        [this, lease]() -> Result<store::Lease> {
          const auto found = leases_.find(lease);
          if (found == leases_.end() || found->second.ttl == Duration::zero()) return Refuse(LeaseEnded());
          const Duration ttl = found->second.ttl;
          KeepLease(lease, ttl);
          return store::Lease{.id = lease, .ttl = ttl};
        },
        std::move(done));
  }
  void Revoke(LeaseId lease, Duration timeout, Done done) override {
    Ask<Status>(timeout, [this, lease]() { return EndLease(lease, kAllKeys); }, std::move(done));
  }
  void Compact(Revision revision, Duration timeout, Done done) override {
    Ask<Status>(
        timeout,
        [this, revision]() -> Status {
          Status status = options_.read_only ? ReadOnly() : file_->Compact(revision);
          return status.ok() ? status : Status(Refuse(std::move(status)).error());
        },
        std::move(done));
  }

 private:
  struct Request {
    std::function<Status()> work;               // inside the group's transaction; an error ends the group
    std::function<void(const Status&)> answer;  // after it; an error: the group came to nothing
  };
  struct HeldLease {
    Duration ttl{};
    MonoTime ends;
  };
  struct OpenWatch {
    KeyRange range;
    Revision next = 0;
    std::shared_ptr<store::WatchGate> gate;
  };

  MonoTime Mono() const { return clock_.Read().mono; }
  Status ReadOnly() const { return {Code::kPermissionDenied, "the store was opened to be read only"}; }
  // An error that is the request's own: it does not end the group.
  std::unexpected<Status> Refuse(Status status) {
    refused_ = true;
    return std::unexpected(std::move(status));
  }

  static store::CommitOutcome Failed(const Status& status, std::type_identity<store::CommitOutcome>) {
    return contract::Unknown{status};
  }
  static Status Failed(const Status& status, std::type_identity<Status>) { return status; }
  template <class T>
  static Result<T> Failed(const Status& status, std::type_identity<Result<T>>) {
    return std::unexpected(status);
  }
  static Status StatusOf(const Status& status) { return status; }
  template <class T>
  static Status StatusOf(const Result<T>& result) {
    return result ? Status() : result.error();
  }
  template <class T>
  static auto ValueOf(Result<T> result, std::type_identity<T>) {
    return *std::move(result);
  }
  template <class T>
  static T ValueOf(T result, std::type_identity<T>) {
    return result;
  }

  template <class Reply, class Work>
  void Ask(Duration timeout, Work work, std::function<void(Reply)> done) {
    struct Open {
      Work work;
      std::optional<Reply> reply;
    };
    auto open = std::make_shared<Open>(Open{std::move(work), {}});
    Post({.work = [this, open, deadline = Mono() + timeout]() -> Status {
            if (Mono() > deadline) {
              open->reply = Failed(Overdue(), std::type_identity<Reply>());
              return {};
            }
            refused_ = false;
            auto result = open->work();
            const Status status = StatusOf(result);
            if (!status.ok() && !refused_) return status;
            open->reply.emplace(ValueOf(std::move(result), std::type_identity<Reply>()));
            return {};
          },
          .answer =
              [open, done = std::move(done)](const Status& group) {
                done(group.ok() ? *std::move(open->reply) : Failed(group, std::type_identity<Reply>()));
              }});
  }

  void Post(Request request) {
    {
      const std::lock_guard lock(mu_);
      queue_.push_back(std::move(request));
    }
    wakes_.notify_one();
  }

  void Run() {
    std::unique_lock lock(mu_);
    while (true) {
      WaitForWork(lock);
      if (stopping_) return;
      std::vector<Request> group;
      while (!queue_.empty() && group.size() < kGroupRequests) {
        group.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      lock.unlock();
      failed_ = false;
      EndDueLeases();
      RunGroup(group);
      ServeWatches();
      lock.lock();
    }
  }

  void WaitForWork(std::unique_lock<std::mutex>& lock) {
    const auto ready = [this] { return stopping_ || !queue_.empty(); };
    std::optional<Duration> wait;
    const auto at_most = [&](Duration d) { wait = wait ? std::min(*wait, d) : d; };
    if (!lease_ends_.empty()) at_most(lease_ends_.begin()->first - Mono());
    if (options_.read_only && !watches_.empty()) at_most(kReaderLooksEvery);
    if (behind_) at_most(Duration::zero());
    if (failed_) wait = kRetryAfterFailure;
    if (!wait) {
      wakes_.wait(lock, ready);
    } else if (*wait > Duration::zero()) {
      wakes_.wait_for(lock, *wait, ready);
    }
  }

  // Inside a group. Deletes that many keys of the lease at the most; the rest is for the next time.
  Status EndLease(LeaseId lease, size_t most) {
    if (options_.read_only) return Refuse(ReadOnly()).error();
    const Result<bool> ended = file_->EndLease(lease, most, changes_);
    if (!ended && ended.error().code() == Code::kNotFound) return Refuse(ended.error()).error();
    if (!ended) return ended.error();
    if (*ended) {
      ended_.push_back(lease);
    } else {
      leases_[lease].ttl = {};
    }
    return {};
  }
  // A slice of what is due: the group of those who wait comes between one slice and the next.
  void EndDueLeases() {
    const MonoTime now = Mono();
    std::vector<Request> group;
    for (auto next = lease_ends_.begin(); next != lease_ends_.end() && next->first <= now; ++next) {
      if (group.size() == kGroupRequests) break;
      group.push_back({.work = [this, id = next->second]() -> Status {
                         const size_t deleted = changes_.size();
                         return deleted < store::kLeaseSlice ? EndLease(id, store::kLeaseSlice - deleted) : Status();
                       },
                       .answer = [](const Status&) {}});
    }
    RunGroup(group);
  }
  // Its time begins anew.
  void KeepLease(LeaseId id, Duration ttl) {
    ForgetLease(id);
    leases_[id] = {.ttl = ttl, .ends = Mono() + ttl};
    lease_ends_.emplace(leases_[id].ends, id);
  }
  void ForgetLease(LeaseId id) {
    const auto found = leases_.find(id);
    if (found == leases_.end()) return;
    lease_ends_.erase({found->second.ends, id});
    leases_.erase(found);
  }

  // All or nothing: one transaction of SQLite, then the answers.
  void RunGroup(const std::vector<Request>& group) {
    if (group.empty()) return;
    changes_.clear();
    granted_.clear();
    ended_.clear();
    Status status = file_->Begin();
    if (status.ok()) {
      for (const Request& request : group) {
        status = request.work();
        if (!status.ok()) break;
      }
      if (status.ok()) status = CompactOld();
      if (status.ok() && MUTANT("store.acknowledged_before_durable")) {
        for (const Request& request : group) request.answer(status);
      }
      if (status.ok()) {
        status = file_->Commit();
      } else {
        file_->Rollback();
      }
    }
    if (status.ok()) {
      std::ranges::move(changes_, std::back_inserter(unserved_));
    } else {
      failed_ = true;
      log::Err("store cannot be written", {{"error", status.ToString()}});
    }
    for (const LeaseId id : status.ok() ? ended_ : granted_) ForgetLease(id);
    if (status.ok() && MUTANT("store.acknowledged_before_durable")) return;
    for (const Request& request : group) request.answer(status);
  }
  // What is beyond either bound, a step with each group: a file of an older version may be far beyond them.
  Status CompactOld() {
    if (options_.read_only) return {};
    const Revision from = file_->compacted();
    Revision through = from;
    if (file_->revision() - through - options_.keep_history >= kCompactedAtOnce) through += kCompactedAtOnce;
    const int64_t changes = file_->changes();
    if (const int64_t beyond = changes - options_.keep_changes; beyond >= kChangesBeyond) {
      Result<Revision> kept = file_->RevisionOfLast(changes - std::min(beyond, kMostCompacted));
      if (kept && *kept - 1 <= from && beyond > kMostCompacted) {
        kept = file_->RevisionOfLast(options_.keep_changes);
      }
      if (!kept) return kept.error();
      through = std::max(through, *kept - 1);
    }
    if (through > from + 1 && changes > kMostCompacted) {
      const Result<Revision> kept = file_->RevisionOfLast(changes - kMostCompacted);
      if (!kept) return kept.error();
      through = std::min(through, std::max(*kept - 1, from + 1));
    }
    return file_->Compact(through);
  }

  // Gives each watch what it has not seen: from what was just committed, or, if it is behind, from the file.
  void ServeWatches() {
    std::erase_if(watches_, [](const OpenWatch& watch) { return !watch.gate->open(); });
    behind_ = false;
    if (options_.read_only && !watches_.empty()) {
      if (file_->Begin().ok()) static_cast<void>(file_->Commit());
    }
    for (OpenWatch& watch : watches_) {
      if (watch.next > file_->revision()) continue;
      if (!ServeWatch(watch)) watch.gate->Close();
      behind_ = behind_ || (watch.gate->open() && watch.next <= file_->revision());
    }
    published_ = file_->revision();
    unserved_.clear();
  }
  // False if the watch has ended.
  bool ServeWatch(OpenWatch& watch) {
    if (watch.next <= file_->compacted()) {
      watch.gate->Deliver(store::Compacted{file_->compacted()});
      return false;
    }
    store::WatchBatch batch;
    Revision through = file_->revision();
    if (watch.next > published_ && !options_.read_only) {
      for (const contract::Change& change : unserved_) {
        if (watch.range.Contains(change.now.key) && change.now.modified >= watch.next) batch.changes.push_back(change);
      }
    } else {
      auto changes = file_->History(watch.range, watch.next, kCatchUpChanges, through);
      if (!changes) {
        log::Err("store cannot be read for a watch", {{"error", changes.error().ToString()}});
        failed_ = true;  // try again after a pause
        return true;
      }
      batch.changes = *std::move(changes);
    }
    watch.next = through + 1;
    if (batch.changes.empty()) return true;
    batch.revision = batch.changes.back().now.modified;
    watch.gate->Deliver(batch);
    return true;
  }

  // Set at construction.
  const std::unique_ptr<DataDir> lock_;  // none for a reader
  const SqliteStoreOptions options_;
  const SystemClock clock_;

  // Owned by the thread.
  const std::unique_ptr<SqliteFile> file_;
  std::map<LeaseId, HeldLease> leases_;                // none for a reader
  std::set<std::pair<MonoTime, LeaseId>> lease_ends_;  // of leases_
  std::vector<OpenWatch> watches_;
  std::vector<contract::Change> changes_;   // of the group under way
  std::vector<LeaseId> granted_;            // by it
  std::vector<LeaseId> ended_;              // by it
  Revision published_;                      // the revision up to which watches were served, or are behind
  std::vector<contract::Change> unserved_;  // of the revisions after published_
  bool refused_ = false;                    // the request under way was refused by itself
  bool behind_ = false;                     // a watch has more to read
  bool failed_ = false;                     // the last group

  std::mutex mu_;
  std::condition_variable wakes_;
  std::deque<Request> queue_;  // guarded by mu_
  bool stopping_ = false;      // guarded by mu_
  std::thread thread_;
};

std::filesystem::path FileIn(const std::string& directory) { return std::filesystem::path(directory) / "store.db"; }

// The name of a file is durable with its directory.
Status SyncDirectory(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  if (synced) return {};
  return {Code::kUnavailable, fmt::format("cannot sync the directory {}; check its disk", directory.string())};
}

// SQLite would take what a lost file left behind for a part of the next one.
Status CheckNothingIsLeft(const std::filesystem::path& path) {
  const std::string wal = path.string() + "-wal";
  std::error_code error;
  if (std::filesystem::file_size(wal, error) == 0 || error) return {};
  return {Code::kDataLoss,
          fmt::format("{} is missing though {} is there; put it back, or move the other one away too and "
                      "restore a backup with `muster store restore`",
                      path.string(), wal)};
}

// Makes the file, which is not there. It has another name until it is whole: so a file of this name that is empty, or
// has no tables, was whole once.
Status CreateFile(const std::filesystem::path& path, bool durable, const std::function<Status(SqliteFile&)>& fill) {
  MUSTER_RETURN_IF_ERROR(CheckNothingIsLeft(path));
  const std::string partial = path.string() + ".partial";
  std::error_code error;
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(partial + part, error);
  {
    const auto file = SqliteFile::Open(partial, {.create = true, .durable = durable});
    if (!file) return file.error();
    MUSTER_RETURN_IF_ERROR(fill(**file));
  }  // closing it moves all of it into the one file
  std::filesystem::rename(partial, path, error);
  if (error) return {Code::kUnavailable, fmt::format("cannot rename {}: {}", partial, error.message())};
  return durable ? SyncDirectory(path.parent_path()) : Status();
}

}  // namespace

Result<std::unique_ptr<store::Store>> OpenSqliteStore(const std::string& directory, SqliteStoreOptions options) {
  std::unique_ptr<DataDir> lock;
  if (!options.read_only) {
    MUSTER_ASSIGN_OR_RETURN(lock, DataDir::Open(directory, "--store"));
  }
  const std::filesystem::path path = FileIn(directory);
  std::error_code error;
  if (!options.read_only && !std::filesystem::exists(path, error) && !error) {
    Status created = CreateFile(path, options.durable, [](SqliteFile&) { return Status(); });
    if (!created.ok()) return std::unexpected(std::move(created));
  }
  MUSTER_ASSIGN_OR_RETURN(std::unique_ptr<SqliteFile> file,
                          SqliteFile::Open(path, {.read_only = options.read_only, .durable = options.durable}));
  std::map<LeaseId, Duration> leases;
  if (!options.read_only) {
    MUSTER_ASSIGN_OR_RETURN(leases, file->Leases());
  }
  return std::make_unique<SqliteStore>(std::move(lock), std::move(file), options, leases);
}

Status CreateSqliteStore(const std::string& directory, const std::vector<store::KeyValue>& rows, Revision revision) {
  const auto lock = DataDir::Open(directory, "--store");
  if (!lock) return lock.error();
  const std::filesystem::path path = FileIn(directory);
  std::error_code error;
  if (std::filesystem::exists(path, error) || error) {
    return {Code::kFailedPrecondition,
            fmt::format("there is a store in {}; move {} away first, with its -wal file", directory, path.string())};
  }
  return CreateFile(path, true, [&](SqliteFile& file) -> Status {
    MUSTER_RETURN_IF_ERROR(file.Begin());
    if (Status status = file.Fill(rows, revision); !status.ok()) {
      file.Rollback();
      return status;
    }
    return file.Commit();
  });
}

}  // namespace muster::host
