// `muster store`: looks into a cluster's store, backs it up, restores it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string_view>

#include "cli/store_flags.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "host/json_object.h"
#include "host/log_backend.h"
#include "host/signals.h"
#include "host/sqlite_store.h"
#include "host/store_backup.h"
#include "host/text_file.h"
#include "store/blocking.h"
#include "store/url.h"

namespace muster::cli {
namespace {

struct Flags {
  StoreFlags store;
  std::string key;
  std::string file;
  std::string prefix;
  std::string output = "text";
  bool keys_only = false;
  int64_t from = 0;
  uint64_t count = 0;
  int64_t keep = 0;
};

void PrintRow(const Flags& flags, const store::KeyValue& row, std::string_view kind = "") {
  if (flags.output == "json") {
    host::JsonObject json;
    if (!kind.empty()) json.Add("change", kind);
    host::AddBytes(json, "key", row.key);
    json.Add("revision", row.modified);
    if (kind != "delete") json.Add("created", row.created).Add("lease", row.lease);
    if (kind != "delete" && !flags.keys_only) host::AddBytes(json, "value", row.value);
    return Print(json.Take() + "\n");
  }
  const std::string_view gap = kind.empty() ? "" : " ";
  const std::string value = flags.keys_only || kind == "delete" ? "" : "  " + Printable(row.value);
  Print(fmt::format("{}{}{:>8}  {}{}\n", kind, gap, row.modified, Printable(row.key), value));
}

// The value alone, so that it can be piped.
Result<int> Get(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store, true));
  store::Blocking blocking(*store);
  MUSTER_ASSIGN_OR_RETURN(const std::optional<store::KeyValue> row, blocking.Get(flags.key));
  if (!row) return Error(Code::kNotFound, fmt::format("the key {} is not in the store", Printable(flags.key)));
  if (flags.output == "json") {
    PrintRow(flags, *row);
  } else {
    Print(row->value + "\n");
  }
  return kOk;
}

Result<int> List(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store, true));
  store::Blocking blocking(*store);
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply reply, blocking.Range(contract::KeysUnder(flags.prefix)));
  for (const store::KeyValue& row : reply.rows) PrintRow(flags, row);
  if (flags.output == "text") {
    std::fputs(fmt::format("{} keys at revision {}\n", reply.rows.size(), reply.revision).c_str(), stderr);
  }
  return kOk;
}

// Until a signal, or until so many changes were printed.
Result<int> Watch(const Flags& flags) {
  if (flags.from < 0)
    return InvalidArgument(fmt::format("--from: {} is negative; use a revision, or 0 for now", flags.from));
  host::Signals signals;
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store, true));
  store::Blocking blocking(*store);
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply now, blocking.Range(contract::OneKey("/")));
  const store::Revision from = flags.from > 0 ? flags.from : now.revision + 1;
  uint64_t left = flags.count;
  bool compacted = false;
  const auto watch = store->Watch(contract::KeysUnder(flags.prefix), from, [&](const store::WatchEvent& event) {
    if (const auto* lost = std::get_if<store::Compacted>(&event)) {
      std::fputs(fmt::format("muster: the history up to revision {} is compacted; list, and watch from there\n",
                             lost->revision)
                     .c_str(),
                 stderr);
      compacted = true;
      return signals.RequestStop("compacted");
    }
    for (const contract::Change& change : std::get<store::WatchBatch>(event).changes) {
      PrintRow(flags, change.now, change.deleted ? "delete" : "put");
      std::fflush(stdout);
      if (left > 0 && --left == 0) return signals.RequestStop("count");
    }
  });
  signals.WaitForStop();
  return compacted ? kFailed : kOk;
}

// To a new file beside it and then under its name, so that no backup is half a file. It is its owner's alone, as the
// store is.
Status WriteFile(const std::string& path, const std::string& text) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return {Code::kInvalidArgument, fmt::format("{} is not a regular file; name a file for the backup", path)};
  }
  const std::string partial = path + ".partial";
  const auto failed = [&] {
    std::filesystem::remove(partial, error);
    return Status(Code::kUnavailable, fmt::format("cannot write {}; check its directory and its disk", path));
  };
  std::filesystem::remove(partial, error);
  const int file = open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return failed();
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t written = write(file, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    left.remove_prefix(static_cast<size_t>(written));
  }
  const bool durable = left.empty() && fsync(file) == 0;
  if (close(file) != 0 || !durable) return failed();
  std::filesystem::rename(partial, path, error);
  return error ? failed() : Status();
}

Result<int> Backup(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store, true));
  store::Blocking blocking(*store);
  blocking.SetTimeout(5min);
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply everything, blocking.Range(contract::EveryKey()));
  const host::Backup backup = host::MakeBackup(everything);
  if (Status status = WriteFile(flags.file, host::ToText(backup)); !status.ok())
    return std::unexpected(std::move(status));
  Print(fmt::format("{} keys at revision {} in {}; {} with a lease left out\n", backup.rows.size(), backup.revision,
                    flags.file, everything.rows.size() - backup.rows.size()));
  return kOk;
}

// Into a store that has no key, in transactions of the size that every store takes.
Status PutAll(store::Store& store, const host::Backup& backup) {
  store::Blocking blocking(store);
  const auto there = blocking.Range(contract::EveryKey());
  if (!there) return there.error();
  if (!there->rows.empty()) {
    return {Code::kFailedPrecondition,
            fmt::format("the store has {} keys; restore into an empty one", there->rows.size())};
  }
  store::Transaction transaction;
  size_t bytes = 0;  // with the condition of each row
  const auto flush = [&]() -> Status {
    if (transaction.writes.empty()) return {};
    // A row of the largest size leaves no room for its condition.
    if (std::exchange(bytes, 0) <= contract::kMaxTransactionBytes) {
      for (const contract::StoreWrite& write : transaction.writes) {
        transaction.compares.push_back(contract::IfAbsent(write.key));
      }
    }
    const store::CommitOutcome outcome = blocking.Commit(std::exchange(transaction, {}));
    if (std::holds_alternative<contract::Committed>(outcome)) return {};
    const auto* unknown = std::get_if<contract::Unknown>(&outcome);
    const std::string why = unknown != nullptr ? unknown->status.ToString() : "another process writes to it";
    return {Code::kAborted, fmt::format("the restore stopped half way: {}; empty the store and try again", why)};
  };
  for (const store::KeyValue& row : backup.rows) {
    const size_t size = 2 * row.key.size() + row.value.size();
    if (transaction.writes.size() == contract::kMaxTransactionWrites || bytes + size > contract::kMaxTransactionBytes) {
      MUSTER_RETURN_IF_ERROR(flush());
    }
    transaction.writes.push_back(contract::Put(row.key, row.value));
    bytes += size;
  }
  return flush();
}

Result<int> Restore(const Flags& flags) {
  std::ifstream file(flags.file, std::ios::binary);
  if (!file) return InvalidArgument(fmt::format("cannot read {}{}", flags.file, host::NearestFile(flags.file)));
  MUSTER_ASSIGN_OR_RETURN(const host::Backup backup, host::ReadBackup(file, flags.file));
  if (backup.revision < 1 || backup.revision > std::numeric_limits<store::Revision>::max() / 2) {
    return InvalidArgument(
        fmt::format("{}: revision {} is none that a store can have had", flags.file, backup.revision));
  }
  Status status;
  MUSTER_ASSIGN_OR_RETURN(const std::string text, UrlOf(flags.store));
  MUSTER_ASSIGN_OR_RETURN(const store::StoreUrl url, store::ParseStoreUrl(text));
  if (url.kind == store::StoreUrl::Kind::kSqlite) {
    status = host::CreateSqliteStore(url.directory, backup.rows, backup.revision + host::kRestoreGap);
  } else {
    MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store));
    status = PutAll(*store, backup);
  }
  if (!status.ok()) return std::unexpected(std::move(status));
  Print(fmt::format("{} keys restored from {}\n", backup.rows.size(), flags.file));
  return kOk;
}

Result<int> Compact(const Flags& flags) {
  if (flags.keep < 0) return InvalidArgument("--keep must not be negative");
  MUSTER_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStore(flags.store));
  store::Blocking blocking(*store);
  blocking.SetTimeout(5min);
  MUSTER_ASSIGN_OR_RETURN(const store::RangeReply now, blocking.Range(contract::OneKey("/")));
  const store::Revision revision = now.revision - flags.keep;
  if (revision > 0) {
    if (Status status = blocking.Compact(revision); !status.ok()) return std::unexpected(std::move(status));
  }
  Print(fmt::format("history up to revision {} is compacted; the store is at {}\n",
                    std::max<store::Revision>(revision, 0), now.revision));
  return kOk;
}

Verb Add(Verb& store, const std::shared_ptr<Flags>& flags, const std::string& name, std::string summary,
         Result<int> (*run)(const Flags&)) {
  Verb verb = store.AddVerb(name, std::move(summary));
  AddStoreFlags(verb, flags->store);
  verb.Run([flags, run] {
    host::InstallLogBackend(log::Level::kWarn);
    return run(*flags);
  });
  return verb;
}

}  // namespace

void AddStore(CommandLine& app) {
  Verb store = app.AddVerb("store", "Look into a cluster's store, back it up, restore it")
                   .Example("muster store list --store sqlite:/var/lib/muster/store");
  const auto fresh = [] { return std::make_shared<Flags>(); };
  const auto output = [](Verb& verb, Flags& flags) {
    verb.Choice("-o,--output", flags.output, {"text", "json"}, "Form of the output; json is one object per line");
  };

  auto flags = fresh();
  Verb get = Add(store, flags, "get", "Print the value of one key", Get);
  get.Argument("KEY", flags->key, "Its key").Example("muster store get --store sqlite:DIR /nodes/n1");
  output(get, *flags);

  flags = fresh();
  Verb list = Add(store, flags, "list", "Print the keys below a prefix, with their revisions and values", List);
  list.Option("--prefix", flags->prefix, "Keys that begin with this; all unless given")
      .Flag("--keys-only", flags->keys_only, "Leave the values out")
      .Example("muster store list --store etcd://127.0.0.1:2379 --prefix /nodes/ --keys-only");
  output(list, *flags);

  flags = fresh();
  Verb watch = Add(store, flags, "watch", "Print changes as they come, until Ctrl-C", Watch);
  watch.Option("--prefix", flags->prefix, "Keys that begin with this; all unless given")
      .Option("--from", flags->from, "Begin at this revision; at the next one unless given")
      .Option("--count", flags->count, "End after so many changes; never unless given")
      .Flag("--keys-only", flags->keys_only, "Leave the values out")
      .Example("muster store watch --store etcd://127.0.0.1:2379 --prefix /workloads/");
  output(watch, *flags);

  flags = fresh();
  Verb backup =
      Add(store, flags, "backup", "Write all keys at one revision to a file, while the store is in use", Backup);
  backup.Argument("FILE", flags->file, "Where to").Example("muster store backup --store sqlite:DIR store.backup");

  flags = fresh();
  Verb restore = Add(store, flags, "restore", "Fill an empty store, of any kind, from a backup", Restore);
  restore.Argument("FILE", flags->file, "What `muster store backup` wrote")
      .Example("muster store restore --store sqlite:DIR store.backup");

  flags = fresh();
  Verb compact = Add(store, flags, "compact", "Forget the history that watches could begin from", Compact);
  compact.Option("--keep", flags->keep, "Keep so many of the newest revisions; none unless given")
      .Example("muster store compact --store etcd://127.0.0.1:2379 --keep 10000");
}

}  // namespace muster::cli
