// What a process workload sees of a real agent: nothing of its files, nor of other workloads'.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/cluster_for_test.h"
#include "host/temp_dir_for_test.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using model::WorkloadPhase;

TEST(AgentIsolation, AWorkloadReadsAndWritesNoFileOfTheAgent) {
  if (geteuid() != 0) GTEST_SKIP() << "users can be changed by root alone";
  const host::TempDir dir;
  Cluster cluster;
  const auto agent = cluster.Agent("n1", dir.path(), {{"--journal", dir.File("journal")}});
  model::WorkloadTemplate victim = Cluster::Process("umask 077; echo secret > file; echo up; exec sleep 1000");
  victim.secret_env = {{"TOKEN", "s3cr3t"}};
  cluster.Apply("victim", victim);
  cluster.WaitFor("victim", WorkloadPhase::kRunning);
  ASSERT_TRUE(WaitUntil([&] { return cluster.Logs("victim").contains("up\n"); }));

  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir.path())) paths.push_back(entry.path());
  std::ranges::sort(paths);
  const auto has = [&](const std::string& end) {
    return std::ranges::any_of(paths, [&](const std::string& path) { return path.contains(end); });
  };
  for (const char* const part : {"/state.db", "/secrets/", "/control.sock", "/journal/", "/processes/victim/log",
                                 "/processes/victim/launch", "/processes/victim/work/file"}) {
    EXPECT_TRUE(has(part)) << part << " is not where the test looks";
  }
  // The kernel is asked for each, and files are opened too.
  std::string script = fmt::format("[ -r {0} ] && echo LISTS {0}; [ -w {0} ] && echo WRITES {0}\n", dir.path());
  for (const std::string& path : paths) {
    script += fmt::format("[ -r '{0}' ] && echo READS '{0}'; [ -w '{0}' ] && echo WRITES '{0}'\n", path);
    script += fmt::format("cat '{0}' >/dev/null 2>&1 && echo OPENS '{0}'\n", path);
  }
  script += "echo own > mine && cat mine; echo looked; exec sleep 1000";
  cluster.Apply("thief", script);
  cluster.WaitFor("thief", WorkloadPhase::kRunning);
  EXPECT_TRUE(WaitUntil([&] { return cluster.Logs("thief").contains("looked\n"); })) << cluster.Logs("thief");
  EXPECT_EQ(cluster.Logs("thief"), "own\nlooked\n");
  cluster.Delete("thief");
  cluster.Delete("victim");
}

}  // namespace
}  // namespace muster
