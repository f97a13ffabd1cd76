// `muster store` and `muster conformance store`, from outside.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/sqlite_store.h"
#include "host/temp_dir_for_test.h"
#include "smoke/server.h"
#include "store/blocking.h"
#include "store/etcd_process.h"

namespace muster::store {
namespace {

using contract::Put;

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran Muster(std::vector<std::string> words) {
  words.insert(words.begin(), smoke::ProgramUnderTest());
  smoke::Process process(words);
  const int code = process.Wait();
  return {.code = code, .out = process.out(), .err = process.err()};
}

// A store in use by this process.
class StoreProgram : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = host::OpenSqliteStore(dir_.File("store"));
    ASSERT_TRUE(opened.has_value()) << opened.error().ToString();
    store_ = *std::move(opened);
    Blocking blocking(*store_);
    static_cast<void>(
        blocking.Commit({{}, {Put("/nodes/a", "{\"n\":1}"), Put("/nodes/b", "two"), Put("/other", "x")}}));
  }
  const host::TempDir dir_;
  const std::string url_ = "sqlite:" + dir_.File("store");
  std::unique_ptr<Store> store_;
};

TEST_F(StoreProgram, GetPrintsAValue) {
  EXPECT_EQ(Muster({"store", "get", "--store", url_, "/nodes/a"}).out, "{\"n\":1}\n");
  const Ran absent = Muster({"store", "get", "--store", url_, "/nodes/c"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_NE(absent.err.find("the key /nodes/c is not in the store"), std::string::npos) << absent.err;
}

TEST_F(StoreProgram, ListPrintsKeysBelowAPrefix) {
  const Ran listed = Muster({"store", "list", "--store", url_, "--prefix", "/nodes/", "-o", "json"});
  EXPECT_EQ(listed.out,
            "{\"key\":\"/nodes/a\",\"revision\":2,\"created\":2,\"lease\":0,\"value\":\"{\\\"n\\\":1}\"}\n"
            "{\"key\":\"/nodes/b\",\"revision\":2,\"created\":2,\"lease\":0,\"value\":\"two\"}\n");
  EXPECT_EQ(Muster({"store", "list", "--store", url_, "--keys-only"}).out,
            "       2  /nodes/a\n       2  /nodes/b\n       2  /other\n");
}

// Two keys that differ in a byte that is no text stay two keys.
TEST_F(StoreProgram, ListPrintsBytesWithoutLoss) {
  static_cast<void>(Blocking(*store_).Commit({{}, {Put("/x\xfe", std::string("\0", 1)), Put("/x\xff", "\xc3\xa9")}}));
  EXPECT_EQ(Muster({"store", "list", "--store", url_, "--prefix", "/x", "-o", "json"}).out,
            "{\"keyHex\":\"2f78fe\",\"revision\":3,\"created\":3,\"lease\":0,\"valueHex\":\"00\"}\n"
            "{\"keyHex\":\"2f78ff\",\"revision\":3,\"created\":3,\"lease\":0,\"value\":\"\xc3\xa9\"}\n");
}

TEST_F(StoreProgram, WatchPrintsChangesAsTheyCome) {
  smoke::Process process({smoke::ProgramUnderTest(), "store", "watch", "--store", url_, "--from", "2", "--count", "5"});
  Blocking blocking(*store_);
  static_cast<void>(blocking.Commit({{}, {contract::Delete("/other")}}));
  static_cast<void>(blocking.Commit({{}, {Put("/nodes/c", "three")}}));
  EXPECT_EQ(process.Wait(), 0) << process.err();
  EXPECT_EQ(process.out(),
            "put        2  /nodes/a  {\"n\":1}\nput        2  /nodes/b  two\nput        2  /other  x\n"
            "delete        3  /other\nput        4  /nodes/c  three\n");
}

TEST_F(StoreProgram, BackupWhileTheStoreIsInUseAndRestoreIntoAnyStore) {
  const std::string file = dir_.File("backup");
  const Ran backup = Muster({"store", "backup", "--store", url_, file});
  EXPECT_EQ(backup.code, 0) << backup.err;
  EXPECT_EQ(backup.out, "3 keys at revision 2 in " + file + "; 0 with a lease left out\n");
  const std::string other = "sqlite:" + dir_.File("other");
  EXPECT_EQ(Muster({"store", "restore", "--store", other, file}).code, 0);
  EXPECT_EQ(Muster({"store", "get", "--store", other, "/nodes/b"}).out, "two\n");
  const Ran again = Muster({"store", "restore", "--store", other, file});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("there is a store in"), std::string::npos) << again.err;
  const Etcd etcd;
  const std::string url = etcd.url() + "/restored";
  const Ran moved = Muster({"store", "restore", "--store", url, file});
  EXPECT_EQ(moved.code, 0) << moved.err;
  EXPECT_EQ(Muster({"store", "get", "--store", url, "/nodes/b"}).out, "two\n");
  EXPECT_NE(Muster({"store", "restore", "--store", url, file}).err.find("restore into an empty one"),
            std::string::npos);
}

TEST_F(StoreProgram, CompactForgetsHistoryAndIsTheOwnersAlone) {
  const Ran refused = Muster({"store", "compact", "--store", url_});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("another process"), std::string::npos) << refused.err;
  store_.reset();
  const Ran done = Muster({"store", "compact", "--store", url_});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "history up to revision 2 is compacted; the store is at 2\n");
  const Ran watched = Muster({"store", "watch", "--store", url_, "--from", "1"});
  EXPECT_EQ(watched.code, 1);
  EXPECT_NE(watched.err.find("is compacted; list, and watch from there"), std::string::npos) << watched.err;
}

TEST(StoreConformanceProgram, ChecksAStoreRuleByRule) {
  const host::TempDir dir;
  const Ran checked =
      Muster({"conformance", "store", "sqlite:" + dir.File("store"), "--keep-history", "--histories", "1"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("25 of 27 rules hold, 0 broken, 2 not shown"), std::string::npos) << checked.out;
  const Ran nobody = Muster({"conformance", "store", "redis://127.0.0.1:1"});
  EXPECT_EQ(nobody.code, 2);
  EXPECT_NE(nobody.err.find("is not a store"), std::string::npos) << nobody.err;
}

// It starts a real etcd, which ends with it.
TEST(StoreConformanceProgram, StartsAnEtcdOfItsOwn) {
  const Ran checked = Muster({"conformance", "store", "etcd:", "--histories", "1"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("27 of 27 rules hold, 0 broken, 0 not shown"), std::string::npos) << checked.out;
  const size_t url = checked.out.find("etcd://");
  ASSERT_NE(url, std::string::npos) << checked.out;
  const size_t address = url + std::string("etcd://").size();
  const std::string endpoint = checked.out.substr(address, checked.out.find_first_of(":/ \n", address + 10) - address);
  const auto client = Etcd::Client(rpc::EtcdOptions{.endpoints = {endpoint}});
  Blocking blocking(*client);
  blocking.SetTimeout(1s);
  EXPECT_FALSE(blocking.Range(contract::EveryKey()).has_value()) << "an etcd still answers at " << endpoint;
}

TEST(StoreConformanceProgram, ChecksAllThreeStoresUnlessOneIsNamed) {
  const Ran checked = Muster({"conformance", "store", "--check", "racing-writers", "-o", "json"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  std::istringstream lines(checked.out);
  std::vector<std::string> stores;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_NE(line.find("\"check\":\"racing-writers\",\"verdict\":\"holds\""), std::string::npos) << line;
    stores.push_back(line.substr(0, line.find(':', line.find(':') + 1)));
  }
  EXPECT_EQ(stores, (std::vector<std::string>{"{\"store\":\"memory", "{\"store\":\"sqlite", "{\"store\":\"etcd"}));
}

TEST(StoreConformanceProgram, NamesTheProgramThatIsMissing) {
  smoke::Process process({"env", "PATH=/nonexistent", smoke::ProgramUnderTest(), "conformance", "store", "etcd:"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_NE(process.err().find("there is no program etcd in PATH"), std::string::npos) << process.err();
  EXPECT_NE(process.err().find("etcd-server"), std::string::npos) << process.err();
}

}  // namespace
}  // namespace muster::store
