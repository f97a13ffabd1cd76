#include "role/shard/audit_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/probe.h"
#include "host/temp_dir_for_test.h"
#include "role/shard/audit_line.h"

namespace muster::shard {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class AuditLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open(AuditOptions options) {
    options.path = path_;
    auto log = AuditLog::Open(std::move(options));
    EXPECT_TRUE(log) << log.error().ToString();
    return log ? *std::move(log) : nullptr;
  }
  const host::TempDir dir_;
  const std::string path_ = dir_.File("audit.log");
};

TEST_F(AuditLogTest, GrowsOverLives) {
  for (int life = 1; life <= 2; ++life) {
    const auto log = Open({});
    log->Append(fmt::format("life {}", life));
    log->Sync();
    EXPECT_TRUE(log->status().ok());
  }
  EXPECT_EQ(Read(path_), "life 1\nlife 2\n");
}

TEST_F(AuditLogTest, RotatesAndKeepsSoMany) {
  for (int i = 0; i < 6; ++i) {
    const auto log = Open({.rotate_bytes = 16, .keep = 2});
    log->Append(fmt::format("line {:08}", i));
  }
  EXPECT_EQ(Read(path_), "line 00000005\n");
  EXPECT_EQ(Read(path_ + ".1"), "line 00000004\n");
  EXPECT_EQ(Read(path_ + ".2"), "line 00000003\n");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
}

TEST_F(AuditLogTest, ALineThatADeadProcessLeftIsEnded) {
  std::ofstream(path_) << "{\"cut";
  Open({})->Append("next");
  EXPECT_EQ(Read(path_), "{\"cut\nnext\n");
}

TEST_F(AuditLogTest, WhatIsTooMuchIsCounted) {
  {
    const auto log = Open({.most_waiting = 2});
    for (int i = 0; i < 5; ++i) log->Append("x");
  }
  EXPECT_EQ(Read(path_), "x\nx\n{\"lost\":3}\n");
}

// A device that takes nothing and cannot be cut.
TEST_F(AuditLogTest, ALineThatCannotBeUndoneIsCounted) {
  faults::ResetProbes();
  {
    const auto log = AuditLog::Open({.path = "/dev/full"});
    ASSERT_TRUE(log) << log.error().ToString();
    (*log)->Append("x");
  }
  EXPECT_EQ(faults::ProbeHits()["audit.partial_line"], 1u);
}

TEST_F(AuditLogTest, AFileThatCannotBeOpenedIsAnError) {
  const auto log = AuditLog::Open({.path = dir_.File("no/audit.log")});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(log.error().message().contains("no/audit.log")) << log.error().ToString();
}

TEST(AuditLine, HasTheKeysThatToolsKnowFirst) {
  Audit audit;
  audit.action = {.cycle = 7,
                  .decided = WallTime(1'700'000'000s),
                  .kind = "Reclaim",
                  .machine_id = "m-1",
                  .cluster_id = "blue",
                  .need_fingerprint = "p=1",
                  .need_group = "g",
                  .reason = model::Reason::kReclaimSurplus,
                  .grace_seconds = 600,
                  .outcome = "success",
                  .error = ""};
  audit.took = 1500ms;
  EXPECT_EQ(AuditLine(audit, "shard-0"),
            R"({"timestamp":"2023-11-14T22:13:21.500Z","cycle":7,"kind":"Reclaim","machine":"m-1","cluster":"blue",)"
            R"("reason":"phase3.reclaim","grace":600,"outcome":"success","shard":"shard-0","need":"p=1","group":"g",)"
            R"("error":"","tookSeconds":1.5})");
}

}  // namespace
}  // namespace muster::shard
