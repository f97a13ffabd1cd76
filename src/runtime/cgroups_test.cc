#include "runtime/cgroups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/temp_dir_for_test.h"
#include "runtime/process_lab_for_test.h"

namespace muster::runtime {
namespace {

namespace fs = std::filesystem;

std::string Text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

bool HasLimits(std::string_view controller) {
  const Cgroups cgroups = Cgroups::Detect(ThisHost(), "probe");
  if (cgroups.version() == 0) return false;
  for (const std::string& missing : cgroups.missing()) {
    if (missing.starts_with(controller)) return false;
  }
  return true;
}

TEST(Cgroups, AHostWithoutThemSaysSo) {
  const Cgroups none = Cgroups::Detect({.mounts = "", .own = ""}, "node");
  EXPECT_EQ(none.version(), 0);
  ASSERT_EQ(none.missing().size(), 3u);
  EXPECT_EQ(none.missing()[0], "memory: the host has no cgroups mounted");
  const auto files = none.Create("w", {.memory_bytes = 1 << 20});
  ASSERT_TRUE(files.has_value()) << "workloads run without limits";
  EXPECT_TRUE(files->procs.empty());
}

TEST(Cgroups, LimitsAreWrittenAsEachVersionReadsThem) {
  const CgroupLimits all{.memory_bytes = 32 << 20, .cpu_milli = 250, .pids = 4096};
  EXPECT_EQ(LimitFiles(1, all), (std::vector<LimitFile>{{"memory", "memory.limit_in_bytes", "33554432", true},
                                                        {"memory", "memory.memsw.limit_in_bytes", "33554432", false},
                                                        {"cpu", "cpu.cfs_period_us", "100000", true},
                                                        {"cpu", "cpu.cfs_quota_us", "25000", true},
                                                        {"pids", "pids.max", "4096", true}}));
  EXPECT_EQ(LimitFiles(2, all), (std::vector<LimitFile>{{"memory", "memory.max", "33554432", true},
                                                        {"memory", "memory.swap.max", "0", false},
                                                        {"memory", "memory.oom.group", "1", false},
                                                        {"cpu", "cpu.max", "25000 100000", true},
                                                        {"pids", "pids.max", "4096", true}}));
  EXPECT_EQ(LimitFiles(2, {.cpu_milli = 3500}), (std::vector<LimitFile>{{"cpu", "cpu.max", "350000 100000", true}}));
  EXPECT_EQ(LimitFiles(2, {.cpu_milli = 1}), (std::vector<LimitFile>{{"cpu", "cpu.max", "1000 100000", true}}))
      << "the kernel takes no less";
  for (const int version : {1, 2}) EXPECT_TRUE(LimitFiles(version, {}).empty()) << "what is not limited is not written";
}

// The files of version 2, in a directory: what is written where.
TEST(Cgroups, VersionTwoGetsItsFiles) {
  const host::TempDir dir;
  const fs::path root = dir.File("cg");
  const std::string mounts = "30 1 0:26 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  for (const fs::path& group : {root, root / "muster", root / "muster/node"})
    Write(group / "cgroup.subtree_control", "");
  const Cgroups cgroups = Cgroups::Detect({.mounts = mounts, .own = "0::/\n", .prefix = dir.path()}, "node");
  EXPECT_EQ(cgroups.version(), 2);
  EXPECT_TRUE(cgroups.missing().empty());
  EXPECT_TRUE(Text(root / "muster/cgroup.subtree_control").starts_with("+pids")) << "the last of the three controllers";

  const fs::path group = root / "muster/node/w";
  EXPECT_EQ(cgroups.Create("w", {.memory_bytes = 1 << 20}).error().message(),
            "cannot set " + (group / "memory.max").string() + " to 1048576: No such file or directory");
  fs::remove_all(group);
  EXPECT_EQ(cgroups.Create("w", {}).value().procs, std::vector{(group / "cgroup.procs").string()});
  Write(group / "cpu.stat", "usage_usec 1500\nuser_usec 1\n");
  Write(group / "memory.current", "9000\n");
  Write(group / "memory.stat", "anon 1\ninactive_file 1000\n");
  const CgroupUsage usage = cgroups.Read("w");
  EXPECT_EQ(usage.cpu_ns, 1'500'000);
  EXPECT_EQ(usage.memory_bytes, 8000);
}

TEST(Cgroups, VersionTwoSaysWhichControllerIsMissing) {
  const host::TempDir dir;
  const std::string mounts = "30 1 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
  Write(dir.File("cg/other"), "");
  const Cgroups cgroups = Cgroups::Detect({.mounts = mounts, .own = "0::/\n", .prefix = dir.path()}, "node");
  EXPECT_EQ(cgroups.version(), 0);
  ASSERT_EQ(cgroups.missing().size(), 3u);
  EXPECT_TRUE(cgroups.missing()[0].starts_with("memory: cannot be enabled below ")) << cgroups.missing()[0];
}

TEST(ProcessLimits, AMemoryHogIsKilledAndReportedAsSuch) {
  if (!HasLimits("memory")) GTEST_SKIP() << "this host gives no memory limits";
  ProcessLab lab;
  contract::StartRun start = ProcessLab::Launch("hog", {"tail", "/dev/zero"});
  start.spec.resources.Set("memory", (int64_t{32} << 20) * 1000);
  lab.Start(start);
  const contract::Run ended = lab.WaitForEnd("hog");
  EXPECT_TRUE(ended.oom_killed);
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
}

TEST(ProcessLimits, AWorkloadWithinItsMemoryIsNotCalledAHog) {
  ProcessLab lab;
  contract::StartRun start = ProcessLab::Launch("small", {"sh", "-c", "kill -9 $$"});
  start.spec.resources.Set("memory", (int64_t{32} << 20) * 1000);
  lab.Start(start);
  const contract::Run ended = lab.WaitForEnd("small");
  EXPECT_FALSE(ended.oom_killed);
  EXPECT_EQ(ended.exit_code, 128 + SIGKILL);
}

TEST(ProcessLimits, ACpuHogIsHeldToItsShare) {
  if (!HasLimits("cpu")) GTEST_SKIP() << "this host gives no cpu limits";
  ProcessLab lab;
  contract::StartRun start = ProcessLab::Launch("hog", {"sh", "-c", "while :; do :; done"});
  constexpr int64_t kShare = 100;  // thousandths of a cpu
  start.spec.resources.Set("cpu", kShare);
  lab.Start(start);
  const Cgroups cgroups = Cgroups::Detect(ThisHost(), std::filesystem::path(lab.path()).filename().string());
  const auto used = [&] { return cgroups.Read("hog").cpu_ns.value_or(0); };
  ASSERT_TRUE(WaitUntil([&] { return used() > 0; }));
  const int64_t before = used();
  const auto began = std::chrono::steady_clock::now();
  // Long enough for ten periods of the kernel's accounting.
  ASSERT_TRUE(WaitUntil([&] { return used() - before >= 100'000'000; }));
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  const int64_t milli = (used() - before) * 1000 / took.count();
  EXPECT_LE(milli, kShare * 3 / 2) << "of " << kShare;
}

}  // namespace
}  // namespace muster::runtime
