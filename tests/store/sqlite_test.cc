// The SQLite store when things go wrong: killed while it writes, on a full disk, with a damaged file; and its backup.
//
// MUSTER_KILLS says how many random kills, 10 unless given.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/probe.h"
#include "base/rng.h"
#include "base/source_dir_for_test.h"
#include "host/fault_table_for_test.h"
#include "host/sqlite_file.h"
#include "host/sqlite_store.h"
#include "host/store_backup.h"
#include "host/temp_dir_for_test.h"
#include "smoke/process.h"
#include "store/blocking.h"

namespace muster::store {
namespace {

using contract::Put;

constexpr int kClients = 4;

int Kills() {
  const char* asked = std::getenv("MUSTER_KILLS");
  return asked != nullptr ? std::stoi(asked) : 10;
}

std::vector<std::string> Writer(const std::string& dir, const std::string& bug = "") {
  std::vector<std::string> command = {BuildDir() + "/store_writer", dir, std::to_string(kClients)};
  if (!bug.empty()) command.push_back(bug);
  return command;
}

// What the clients were told, over all lives of the store.
struct Told {
  std::map<int, int64_t> acknowledged;  // client -> its last number
  int lines = 0;

  void Read(const std::string& text) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string kind;
      int client = 0;
      int64_t number = 0;
      Revision revision = 0;
      if (!(words >> kind >> client >> number >> revision) || kind != "ack") continue;
      acknowledged[client] = std::max(acknowledged[client], number);
      ++lines;
    }
  }
};

Result<std::unique_ptr<Store>> Open(const std::string& dir) { return host::OpenSqliteStore(dir); }

// Every acknowledged write is there, and none is torn. What was not acknowledged is there as a whole or not at all;
// once it has been read it must stay, so it counts as acknowledged from then on.
Status CheckKept(const std::string& dir, Told& told) {
  const auto store = Open(dir);
  if (!store) return store.error();
  Blocking blocking(**store);
  for (auto& [client, number] : told.acknowledged) {
    const auto a = blocking.Get(fmt::format("/w/{}/a", client));
    const auto b = blocking.Get(fmt::format("/w/{}/b", client));
    if (!a || !b || !*a || !*b) return {Code::kDataLoss, "a key is missing"};
    if ((*a)->value != (*b)->value || (*a)->modified != (*b)->modified) return {Code::kDataLoss, "a commit is torn"};
    const int64_t found = std::stoll((*a)->value);
    if (found < number) return {Code::kDataLoss, fmt::format("{} was acknowledged, {} is there", number, found)};
    if (found > number + 1)
      return {Code::kInternal, fmt::format("{} was acknowledged last, {} is there", number, found)};
    number = found;
  }
  return {};
}

TEST(SqliteStoreKilled, AtRandomMoments) {
  const host::TempDir dir;
  Told told;
  Rng rng(7);
  for (int kill = 0; kill < Kills(); ++kill) {
    smoke::Process writer(Writer(dir.File("store")));
    ASSERT_FALSE(writer.WaitForErrorLine("open").empty()) << writer.err();
    for (int64_t acks = rng.Between(1, 60); acks > 0; --acks) ASSERT_FALSE(writer.WaitForErrorLine("ack").empty());
    writer.Signal(SIGKILL);
    writer.Wait();
    told.Read(writer.err());
    const Status kept = CheckKept(dir.File("store"), told);
    ASSERT_TRUE(kept.ok()) << "kill " << kill << ": " << kept.ToString();
  }
  RecordProperty("kills", Kills());
  RecordProperty("acknowledged", told.lines);
}

TEST(SqliteStoreKilled, AtEveryCrashPoint) {
  for (const faults::Row& row : faults::RowsOf("SqliteStoreKilled.AtEveryCrashPoint", "store", "crash")) {
    for (const int hit : {1, 3, 17}) {
      const host::TempDir dir;
      setenv("MUSTER_CRASH_POINT", fmt::format("{}:{}", row.name, hit).c_str(), 1);
      smoke::Process writer(Writer(dir.File("store")));
      unsetenv("MUSTER_CRASH_POINT");
      ASSERT_EQ(writer.Wait(), 128 + SIGKILL) << row.name;
      Told told;
      told.Read(writer.err());
      EXPECT_EQ(CheckKept(dir.File("store"), told), Status()) << row.name;
    }
  }
}

TEST(SqliteStoreKilled, FindsAnAcknowledgementThatCameTooSoon) {
  Status found;
  for (int hit = 20; hit < 60 && found.ok(); ++hit) {  // a group may be of reads alone
    const host::TempDir dir;
    setenv("MUSTER_CRASH_POINT", fmt::format("store.before_commit:{}", hit).c_str(), 1);
    smoke::Process writer(Writer(dir.File("store"), "store.acknowledged_before_durable"));
    unsetenv("MUSTER_CRASH_POINT");
    ASSERT_EQ(writer.Wait(), 128 + SIGKILL);
    Told told;
    told.Read(writer.err());
    found = CheckKept(dir.File("store"), told);
  }
  EXPECT_EQ(found.code(), Code::kDataLoss) << found.ToString();
}

// A disk of four megabytes, which fills up and gets room again.
TEST(SqliteStoreFull, SaysSoLosesNothingAndGoesOn) {
  const host::TempDir dir;
  const std::string room = dir.File("room");
  const std::string end = dir.File("end");
  ASSERT_EQ(::mkfifo(room.c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(end.c_str(), 0600), 0);
  // The disk goes with its process, so its files are copied in the end.
  const std::string command = fmt::format(
      "mkdir {0} && mount -t tmpfs -o size=4m none {0} && head -c 2500000 /dev/zero > {0}/filler || exit 1\n"
      "(read -r word < {1}; rm {0}/filler) >/dev/null 2>&1 &\n"
      "{2} & writer=$!\n"
      "read -r word < {3}; kill -9 $writer; cp -r {0}/store {4}",
      dir.File("disk"), room, fmt::format("{}", fmt::join(Writer(dir.File("disk/store")), " ")), end, dir.File("copy"));
  smoke::Process process({"unshare", "-rm", "sh", "-c", command});
  ASSERT_FALSE(process.WaitForErrorLine("open").empty()) << process.err();
  const std::string refusal = process.WaitForErrorLine("refused");
  EXPECT_NE(refusal.find("RESOURCE_EXHAUSTED"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("free space on its disk"), std::string::npos) << refusal;
  std::ofstream(room) << "free\n";
  for (int acks = 0; acks < 50; ++acks) ASSERT_FALSE(process.WaitForErrorLine("ack").empty());
  std::ofstream(end) << "end\n";
  ASSERT_EQ(process.Wait(), 0) << process.err().substr(0, 500);
  Told told;
  told.Read(process.err());
  EXPECT_EQ(CheckKept(dir.File("copy"), told), Status());
}

// Keys 0..99 in a new store.
void Fill(const std::string& dir) {
  const auto store = Open(dir);
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  Blocking blocking(**store);
  for (int i = 0; i < 100; ++i) {
    const auto outcome = blocking.Commit({{}, {Put(fmt::format("/k/{:03}", i), std::string(300, 'x'))}});
    ASSERT_TRUE(std::holds_alternative<contract::Committed>(outcome));
  }
}

// The rows of the store in a directory, as a backup.
host::Backup BackupOf(const std::string& dir) {
  const auto reader = host::OpenSqliteStore(dir, {.read_only = true});
  EXPECT_TRUE(reader.has_value()) << reader.error().ToString();
  const auto everything = Blocking(**reader).Range(contract::EveryKey());
  EXPECT_TRUE(everything.has_value()) << everything.error().ToString();
  return host::MakeBackup(*everything);
}

void Damage(const std::string& file, std::streamoff at, size_t bytes) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(at);
  out << std::string(bytes, '\xa5');
}

// Where the file has a value, which SQLite has no sum of.
std::streamoff PlaceOfAValue(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  const size_t found = text.str().find(std::string(300, 'x'));
  EXPECT_NE(found, std::string::npos);
  return static_cast<std::streamoff>(found);
}

TEST(SqliteStoreDamaged, IsRefusedWithAdviceAndRestoredFromItsBackup) {
  const host::TempDir dir;
  Fill(dir.File("store"));
  const host::Backup backup = BackupOf(dir.File("store"));
  const std::string file = dir.File("store/store.db");
  const auto pages = static_cast<std::streamoff>(std::filesystem::file_size(file) / 4096);
  const std::filesystem::path whole = dir.File("whole");
  std::filesystem::copy_file(file, whole);
  // Every page, in its head and in its middle.
  for (std::streamoff page = 0; page < pages; ++page) {
    for (const std::streamoff offset : {0, 2000}) {
      std::filesystem::copy_file(whole, file, std::filesystem::copy_options::overwrite_existing);
      Damage(file, page * 4096 + offset, 64);
      const auto opened = Open(dir.File("store"));
      // What lies in no row, index or structure harms nothing.
      if (opened) {
        const auto all = Blocking(**opened).Range(contract::EveryKey());
        ASSERT_TRUE(all.has_value()) << all.error().ToString();
        ASSERT_EQ(all->rows.size(), 100u) << "page " << page << " offset " << offset;
        continue;
      }
      EXPECT_TRUE(opened.error().code() == Code::kDataLoss || opened.error().code() == Code::kFailedPrecondition)
          << opened.error().ToString();
    }
  }
  std::filesystem::copy_file(whole, file, std::filesystem::copy_options::overwrite_existing);
  Damage(file, PlaceOfAValue(file) + 10, 100);
  const auto opened = Open(dir.File("store"));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), Code::kDataLoss);
  EXPECT_NE(opened.error().message().find("move it away and restore a backup with `muster store restore`"),
            std::string::npos)
      << opened.error().ToString();
  // As the message says.
  EXPECT_EQ(host::CreateSqliteStore(dir.File("store"), backup.rows, 5).code(), Code::kFailedPrecondition);
  std::filesystem::rename(file, dir.File("damaged"));
  ASSERT_EQ(host::CreateSqliteStore(dir.File("store"), backup.rows, backup.revision + host::kRestoreGap), Status());
  const auto restored = Open(dir.File("store"));
  ASSERT_TRUE(restored.has_value()) << restored.error().ToString();
  Blocking blocking(**restored);
  const auto all = blocking.Range(contract::EveryKey());
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->rows.size(), 100u);
  EXPECT_EQ(all->revision, backup.revision + host::kRestoreGap);
  // A watch from before is told to list again.
  WatchLog log(**restored, contract::EveryKey(), backup.revision + 1);
  ASSERT_TRUE(log.WaitFor(1));
  EXPECT_EQ(log.compacted(), all->revision);
}

// A file that is there and is empty is no new store: rows were in it.
TEST(SqliteStoreDamaged, IsRefusedWhenItWasCutShort) {
  const host::TempDir dir;
  Fill(dir.File("store"));
  const host::Backup backup = BackupOf(dir.File("store"));
  const std::filesystem::path file = dir.File("store/store.db");
  const uintmax_t whole = std::filesystem::file_size(file);
  std::filesystem::copy_file(file, dir.File("whole"));
  for (const uintmax_t length : {whole - 1, whole / 2, uintmax_t{4096}, uintmax_t{100}, uintmax_t{1}, uintmax_t{0}}) {
    std::filesystem::copy_file(dir.File("whole"), file, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(file, length);
    const auto opened = Open(dir.File("store"));
    ASSERT_FALSE(opened.has_value()) << length << " bytes";
    EXPECT_EQ(opened.error().code(), Code::kDataLoss) << length << " bytes: " << opened.error().ToString();
    EXPECT_NE(opened.error().message().find("restore a backup with `muster store restore`"), std::string::npos)
        << opened.error().ToString();
    // A reader does not check the whole file, but every row that it reads.
    const auto reader = host::OpenSqliteStore(dir.File("store"), {.read_only = true});
    EXPECT_TRUE(!reader || length == whole - 1) << length << " bytes";
  }
  EXPECT_NE(Open(dir.File("store")).error().message().find("it is empty"), std::string::npos);
  // As the message says.
  std::filesystem::rename(file, dir.File("empty"));
  ASSERT_EQ(host::CreateSqliteStore(dir.File("store"), backup.rows, backup.revision + host::kRestoreGap), Status());
  EXPECT_EQ(BackupOf(dir.File("store")).rows, backup.rows);
}

TEST(SqliteStoreDamaged, IsRefusedWhenOnlyItsLogIsLeft) {
  const host::TempDir dir;
  {
    const auto store = Open(dir.File("store"));
    Blocking blocking(**store);
    static_cast<void>(blocking.Commit({{}, {Put("k", "v")}}));
    std::filesystem::copy_file(dir.File("store/store.db-wal"), dir.File("log"));
  }
  std::filesystem::remove(dir.File("store/store.db"));
  std::filesystem::copy_file(dir.File("log"), dir.File("store/store.db-wal"));
  const auto opened = Open(dir.File("store"));
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), Code::kDataLoss) << opened.error().ToString();
  EXPECT_EQ(host::CreateSqliteStore(dir.File("store"), {}, 5).code(), Code::kDataLoss);
  std::filesystem::remove(dir.File("store/store.db-wal"));
  EXPECT_TRUE(Open(dir.File("store")).has_value());
}

// The process ended while it made the file.
TEST(SqliteStore, IsMadeWholeOrNotAtAll) {
  const host::TempDir dir;
  std::filesystem::create_directory(dir.File("store"));
  std::ofstream(dir.File("store/store.db.partial")) << "half of a file";
  {
    const auto store = Open(dir.File("store"));
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    EXPECT_TRUE(std::holds_alternative<contract::Committed>(Blocking(**store).Commit({{}, {Put("k", "v")}})));
  }
  EXPECT_FALSE(std::filesystem::exists(dir.File("store/store.db.partial")));
  EXPECT_EQ(BackupOf(dir.File("store")).rows.size(), 1u);
}

TEST(SqliteStoreDamaged, WouldBeServedIfItWereNotChecked) {
  const host::TempDir dir;
  Fill(dir.File("store"));
  const std::string file = dir.File("store/store.db");
  Damage(file, PlaceOfAValue(file) + 10, 4);
  EXPECT_EQ(Open(dir.File("store")).error().code(), Code::kDataLoss);
  const faults::ScopedMutant bug("store.file_not_checked");
  EXPECT_TRUE(Open(dir.File("store")).has_value());
}

TEST(SqliteStore, HasOneOwnerAndManyReaders) {
  const host::TempDir dir;
  const auto owner = Open(dir.File("store"));
  ASSERT_TRUE(owner.has_value());
  const auto second = Open(dir.File("store"));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition) << second.error().ToString();
  const auto reader = host::OpenSqliteStore(dir.File("store"), {.read_only = true});
  ASSERT_TRUE(reader.has_value()) << reader.error().ToString();
  Blocking writes(**owner);
  Blocking reads(**reader);
  WatchLog log(**reader, contract::EveryKey(), 1);
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(writes.Commit({{}, {Put("k", std::to_string(i))}}));
    const auto row = reads.Get("k");
    ASSERT_TRUE(row.has_value() && row->has_value());
    EXPECT_EQ((*row)->value, std::to_string(i));
  }
  ASSERT_TRUE(log.WaitFor(11));
  EXPECT_EQ(log.changes().size(), 10u);
  const auto refused = reads.Commit({{}, {Put("k", "x")}});
  ASSERT_TRUE(std::holds_alternative<contract::Unknown>(refused));
  EXPECT_TRUE(std::get<contract::Unknown>(refused).Refused());
}

TEST(SqliteStore, LeasesOutliveTheProcess) {
  const host::TempDir dir;
  LeaseId lease = 0;
  {
    const auto store = Open(dir.File("store"));
    Blocking blocking(**store);
    lease = blocking.Grant(1s)->id;
    static_cast<void>(blocking.Commit({{}, {Put("k", "v", lease)}}));
  }
  const auto store = Open(dir.File("store"));
  Blocking blocking(**store);
  const auto row = blocking.Get("k");
  ASSERT_TRUE(row.has_value() && row->has_value());
  EXPECT_EQ((*row)->lease, lease);
  EXPECT_NE(blocking.Grant(1h)->id, lease) << "an id is given once";
  WatchLog log(**store, contract::EveryKey(), (*row)->modified + 1);
  ASSERT_TRUE(log.WaitFor((*row)->modified + 1)) << "the lease never ends";
  EXPECT_TRUE(log.changes().front().deleted);
}

// Keys /e/0000 and so on, which live by the lease; it is kept meanwhile.
void PutWithLease(Store& store, LeaseId lease, int keys) {
  Blocking blocking(store);
  for (int i = 0; i < keys; i += 100) {
    Transaction transaction;
    for (int k = i; k < i + 100; ++k) transaction.writes.push_back(Put(fmt::format("/e/{:04}", k), "v", lease));
    ASSERT_TRUE(std::holds_alternative<contract::Committed>(blocking.Commit(transaction)));
    ASSERT_TRUE(blocking.KeepAlive(lease).has_value());
  }
}

bool IsRefused(const contract::CommitOutcome& outcome, Code code) {
  const auto* unknown = std::get_if<contract::Unknown>(&outcome);
  return unknown != nullptr && unknown->status.code() == code;
}

// What the store is asked for at the sight of the first slice is carried out before the last one.
TEST(SqliteStore, EndsALeaseOfManyKeysInSlices) {
  const host::TempDir dir;
  const auto opened = host::OpenSqliteStore(dir.File("store"), {.durable = false});
  ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
  Store& store = **opened;
  const LeaseId lease = Blocking(store).Grant(2s)->id;
  PutWithLease(store, lease, 4500);
  Waiter waiter;
  std::map<Revision, size_t> deleted;
  contract::CommitOutcome between = contract::Conflict{};
  contract::CommitOutcome leased = contract::Conflict{};
  Status kept;
  const auto ask = [&] {
    store.Commit({{}, {Put("/between", "v")}}, 30s, [&](auto outcome) { waiter.Do([&] { between = outcome; }); });
    store.Commit({{}, {Put("/e/x", "v", lease)}}, 30s, [&](auto outcome) { waiter.Do([&] { leased = outcome; }); });
    store.KeepAlive(lease, 30s, [&](const Result<Lease>& renewed) {
      waiter.Do([&] { kept = renewed ? Status() : renewed.error(); });
    });
  };
  const auto watch = store.Watch(contract::KeysUnder("/e/"), 1, [&](const WatchEvent& event) {
    waiter.Do([&] {
      const bool first = deleted.empty();
      for (const contract::Change& change : std::get<WatchBatch>(event).changes) {
        if (change.deleted) ++deleted[change.now.modified];
      }
      if (first && !deleted.empty()) ask();
    });
  });
  const auto all = [&] {
    size_t sum = 0;
    for (const auto& [revision, keys] : deleted) sum += keys;
    return sum == 4500 && !kept.ok();
  };
  ASSERT_TRUE(waiter.Wait(60s, all));
  std::vector<size_t> slices;
  for (const auto& [revision, keys] : deleted) slices.push_back(keys);
  EXPECT_EQ(slices, (std::vector<size_t>{2000, 2000, 500}));
  ASSERT_TRUE(std::holds_alternative<contract::Committed>(between));
  EXPECT_LT(std::get<contract::Committed>(between).revision, deleted.rbegin()->first);
  EXPECT_TRUE(IsRefused(leased, Code::kNotFound)) << "a lease that is ending is written with";
  EXPECT_EQ(kept.code(), Code::kNotFound);
}

// The process ended between two slices: the lease has no time of its own any more, though it was granted for an hour.
TEST(SqliteStore, EndsALeaseThatWasEndingWhenTheProcessEnded) {
  const host::TempDir dir;
  LeaseId lease = 0;
  {
    const auto store = Open(dir.File("store"));
    lease = Blocking(**store).Grant(1h)->id;
    PutWithLease(**store, lease, 4500);
  }
  Revision at = 0;
  {
    const auto file = host::SqliteFile::Open(dir.File("store/store.db"), {});
    ASSERT_TRUE(file.has_value()) << file.error().ToString();
    std::vector<contract::Change> changes;
    ASSERT_EQ((*file)->Begin(), Status());
    const auto ended = (*file)->EndLease(lease, kLeaseSlice, changes);
    ASSERT_TRUE(ended.has_value()) << ended.error().ToString();
    EXPECT_FALSE(*ended);
    EXPECT_EQ(changes.size(), kLeaseSlice);
    ASSERT_EQ((*file)->Commit(), Status());
    at = (*file)->revision();
  }
  const auto store = Open(dir.File("store"));
  Blocking blocking(**store);
  const auto kept = blocking.KeepAlive(lease);
  EXPECT_EQ(kept ? Status() : kept.error(), Status(Code::kNotFound, "the lease has ended"));
  WatchLog log(**store, contract::KeysUnder("/e/"), at + 1);
  ASSERT_TRUE(log.WaitFor(at + 2));
  EXPECT_EQ(log.changes().size(), 2500U);
  const auto rows = blocking.Range(contract::KeysUnder("/e/"));
  ASSERT_TRUE(rows.has_value());
  EXPECT_TRUE(rows->rows.empty());
}

TEST(SqliteStore, KeepsItsHistoryBounded) {
  const host::TempDir dir;
  const auto store = host::OpenSqliteStore(dir.File("store"), {.durable = false, .keep_history = 500});
  Blocking blocking(**store);
  Revision last = 0;
  for (int i = 0; i < 3000; ++i) last = std::get<contract::Committed>(blocking.Commit({{}, {Put("k", "v")}})).revision;
  WatchLog old(**store, contract::EveryKey(), 2);
  ASSERT_TRUE(old.WaitFor(last));
  EXPECT_GT(old.compacted(), 1000);
  WatchLog kept(**store, contract::EveryKey(), last - 499);
  ASSERT_TRUE(kept.WaitFor(last));
  EXPECT_EQ(kept.compacted(), 0);
  EXPECT_EQ(kept.changes().size(), 500u);
}

// A transaction is one revision, however much it changes.
TEST(SqliteStore, KeepsTheChangesOfItsHistoryBounded) {
  const host::TempDir dir;
  Revision last = 0;
  for (int life = 0; life < 2; ++life) {
    const auto store = host::OpenSqliteStore(dir.File("store"), {.durable = false, .keep_changes = 500});
    Blocking blocking(**store);
    for (int i = 0; i < 37; ++i) {
      std::vector<contract::StoreWrite> writes;
      for (int k = 0; k < 100; ++k) writes.push_back(Put(fmt::format("/k/{:02}", k), "v"));
      last = std::get<contract::Committed>(blocking.Commit({{}, std::move(writes)})).revision;
    }
    // 1,500 changes become 500: at the 15th transaction, and at every tenth after it.
    WatchLog old(**store, contract::EveryKey(), 2);
    ASSERT_TRUE(old.WaitFor(last));
    EXPECT_EQ(old.compacted(), last - (life == 0 ? 7 : 14));
    WatchLog kept(**store, contract::EveryKey(), last - 4);
    ASSERT_TRUE(kept.WaitFor(last));
    EXPECT_EQ(kept.compacted(), 0);
    EXPECT_EQ(kept.changes().size(), 500u);
  }
}

// The first group after an upgrade is not held up by all that an older version kept.
TEST(SqliteStore, CompactsWhatIsFarBeyondItsBoundsInSteps) {
  const host::TempDir dir;
  {
    const auto store = host::OpenSqliteStore(dir.File("store"), {.durable = false});
    Blocking blocking(**store);
    std::vector<contract::StoreWrite> writes;
    for (int k = 0; k < 100; ++k) writes.push_back(Put(fmt::format("/k/{:02}", k), "v"));
    for (int i = 0; i < 500; ++i)
      ASSERT_TRUE(std::holds_alternative<contract::Committed>(blocking.Commit({{}, writes})));
  }
  // Revisions 2 to 501 of 100 changes each.
  const auto store = host::OpenSqliteStore(dir.File("store"), {.durable = false, .keep_changes = 500});
  for (const Revision compacted : {201, 401, 496}) {
    WatchLog old(**store, contract::EveryKey(), 2);  // one group
    ASSERT_TRUE(old.WaitFor(501));
    EXPECT_EQ(old.compacted(), compacted);
  }
}

TEST(StoreBackup, ComesBackAsItWas) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  RangeReply all{.revision = 7,
                 .rows = {{.key = every, .value = ""},
                          {.key = "a", .value = "plain \"text\" \xc3\xa9\n"},
                          {.key = "b", .value = every},
                          {.key = "leased", .value = "v", .lease = 3}}};
  const host::Backup backup = host::MakeBackup(all);
  EXPECT_EQ(backup.rows.size(), 3u);
  const std::string text = host::ToText(backup);
  std::istringstream in(text);
  const auto read = host::ReadBackup(in, "file");
  ASSERT_TRUE(read.has_value()) << read.error().ToString();
  EXPECT_EQ(read->revision, 7);
  EXPECT_EQ(read->rows, backup.rows);
  // Cut short anywhere, or with another row, it is refused.
  const auto refusal = [](const std::string& changed) {
    std::istringstream wrong(changed);
    const auto result = host::ReadBackup(wrong, "file");
    return result ? Status() : result.error();
  };
  for (size_t length = 0; length + 1 < text.size(); length += 7)
    EXPECT_FALSE(refusal(text.substr(0, length)).ok()) << length;
  std::string changed = text;
  changed.replace(changed.find("plain"), 5, "plane");
  EXPECT_EQ(refusal(changed).code(), Code::kDataLoss) << refusal(changed).ToString();
  EXPECT_EQ(refusal("{\"musterStoreBackup\":1,\"revision\":1}\n").code(), Code::kInvalidArgument);
  changed = text;
  changed.replace(changed.find("\"revision\":7"), 12, "\"revision\":8");
  EXPECT_EQ(refusal(changed).code(), Code::kDataLoss) << "another revision: " << refusal(changed).ToString();
}

// Each says its line: what a store would not take, or would take for something else.
TEST(StoreBackup, IsRefusedLineByLine) {
  const std::string text =
      host::ToText({.revision = 7, .rows = {{.key = "a", .value = "1"}, {.key = "b", .value = "2"}}});
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u);
  const auto refusal = [&](size_t at, const std::string& line) {
    std::string changed;
    for (size_t i = 0; i < lines.size(); ++i) changed += (i == at ? line : lines[i]) + "\n";
    if (at == lines.size()) changed += line + "\n";
    std::istringstream wrong(changed);
    const auto result = host::ReadBackup(wrong, "file");
    return result ? "taken" : result.error().ToString();
  };
  const auto row = [](const std::string& key, const std::string& value) {
    return fmt::format(R"({{"key":"{}","value":"{}"}})", key, value);
  };
  const auto expect = [](const std::string& found, const std::string& place, const std::string& why) {
    EXPECT_NE(found.find(place), std::string::npos) << found;
    EXPECT_NE(found.find(why), std::string::npos) << found;
  };
  expect(refusal(2, row("a", "2")), "file:3", "a key is there twice");
  expect(refusal(2, row("0", "2")), "file:3", "lines were moved");
  expect(refusal(2, row("", "2")), "file:3", "is empty");
  expect(refusal(2, row(std::string(4097, 'k'), "2")), "file:3", "4097 bytes; the limit is 4096");
  expect(refusal(2, row("b", std::string(1 << 20, 'v'))), "file:3", "the limit is 1048576");
  expect(refusal(2, R"({"key":"b"})"), "file:3", "value");
  expect(refusal(2, R"({"key":"b","keyHex":"62","value":"2"})"), "file:3", "one of the two");
  expect(refusal(2, R"({"keyHex":"6","value":"2"})"), "file:3", "not hexadecimal");
  expect(refusal(4, lines[3]), "file:5", "follows the line that ends the backup");
  expect(refusal(4, row("c", "3")), "file:5", "follows the line that ends the backup");
}

}  // namespace
}  // namespace muster::store
