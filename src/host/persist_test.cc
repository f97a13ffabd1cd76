#include "host/persist.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/probe.h"
#include "host/temp_dir_for_test.h"

namespace muster::host {
namespace {

using contract::Persist;
using contract::Recovered;

std::unique_ptr<SqlitePersist> Open(const std::string& path) {
  auto opened = SqlitePersist::Open(path, "test");
  EXPECT_TRUE(opened.has_value()) << opened.error().ToString();
  return opened ? *std::move(opened) : nullptr;
}

TEST(SqlitePersist, KeepsRowsOverReopening) {
  const TempDir dir;
  const std::string bytes("\0\xff'\"", 4);
  {
    auto persist = Open(dir.File("state.db"));
    EXPECT_EQ(*persist->Recover(), Recovered{});
    EXPECT_TRUE(persist->Commit(Persist{{{"a", "1"}, {"b", ""}, {bytes, bytes}, {"gone", "x"}}}).ok());
    EXPECT_TRUE(persist->Commit(Persist{{{"a", "2"}, {"gone", std::nullopt}, {"never", std::nullopt}}}).ok());
  }
  EXPECT_EQ(*Open(dir.File("state.db"))->Recover(), (Recovered{{"a", "2"}, {"b", ""}, {bytes, bytes}}));
}

TEST(SqlitePersist, ASecondOpenIsRefusedWithAdvice) {
  const TempDir dir;
  auto first = Open(dir.File("state.db"));
  const auto second = SqlitePersist::Open(dir.File("state.db"), "test");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(second.error().message().find("another process has it open"), std::string::npos)
      << second.error().message();
}

// True if another process could open the file.
bool OpensInAnotherProcess(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SqlitePersist::Open(path, "test").has_value() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SqlitePersist, OneProcessAtATime) {
  const TempDir dir;
  const std::string path = dir.File("state.db");
  auto first = Open(path);
  EXPECT_FALSE(OpensInAnotherProcess(path));
  EXPECT_TRUE(first->Commit(Persist{{{"a", "1"}}}).ok());
  EXPECT_FALSE(OpensInAnotherProcess(path)) << "after the first commit";
  EXPECT_FALSE(SqlitePersist::Open(path, "test").has_value());
  EXPECT_FALSE(OpensInAnotherProcess(path)) << "an attempt of this process gives nothing away";
  first.reset();
  EXPECT_TRUE(OpensInAnotherProcess(path));
}

TEST(SqlitePersist, ItsFilesArePrivate) {
  const TempDir dir;
  const auto persist = Open(dir.File("state.db"));
  EXPECT_TRUE(persist->Commit(Persist{{{"a", "1"}}}).ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    ++files;
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << entry.path();
  }
  EXPECT_EQ(files, 2u) << "the state and its log";
}

TEST(SqlitePersist, RefusesWhatIsNotItsOwn) {
  const TempDir dir;
  Open(dir.File("state.db")).reset();
  const auto other = SqlitePersist::Open(dir.File("state.db"), "other");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message(),
            dir.File("state.db") + " belongs to 'test', not to 'other'; name another data directory");

  std::ofstream(dir.File("junk.db")) << std::string(5000, 'x');
  const auto junk = SqlitePersist::Open(dir.File("junk.db"), "test");
  ASSERT_FALSE(junk.has_value());
  EXPECT_EQ(junk.error().code(), Code::kDataLoss) << junk.error().ToString();

  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(dir.File("theirs.db").c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE mine(x)", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }
  const auto theirs = SqlitePersist::Open(dir.File("theirs.db"), "test");
  ASSERT_FALSE(theirs.has_value());
  EXPECT_EQ(theirs.error().code(), Code::kFailedPrecondition) << theirs.error().ToString();

  const auto nowhere = SqlitePersist::Open(dir.File("no/such/dir/state.db"), "test");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code(), Code::kPermissionDenied) << nowhere.error().ToString();
}

// Dies by SIGKILL at a crash point; returns what the next life finds.
Recovered CommitAndDieAt(const std::string& crash_point, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto persist = SqlitePersist::Open(path, "test");
    if (!(*persist)->Commit(Persist{{{"first", "1"}}}).ok()) ::_exit(1);
    if (!faults::EnableCrashPoint(crash_point).ok()) ::_exit(1);
    (void)(*persist)->Commit(Persist{{{"second", "1"}, {"third", "1"}}});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return *Open(path)->Recover();
}

TEST(SqlitePersist, ABatchIsAllOrNothingWhenTheProcessDies) {
  if (!faults::Compiled()) FAIL() << "the tests run on a build with MUSTER_FAULTS";
  const TempDir dir;
  EXPECT_EQ(CommitAndDieAt("persist.before_commit", dir.File("a.db")), (Recovered{{"first", "1"}}));
  EXPECT_EQ(CommitAndDieAt("persist.after_commit", dir.File("b.db")),
            (Recovered{{"first", "1"}, {"second", "1"}, {"third", "1"}}));
}

}  // namespace
}  // namespace muster::host
