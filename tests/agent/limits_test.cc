// What the limits and ends of processes become, all the way: from the workload that is applied, through a scheduler and
// an agent with real processes, to what `muster describe` prints.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "agent/cluster_for_test.h"
#include "host/temp_dir_for_test.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

using model::WorkloadPhase;

constexpr int32_t kAttempts = 3;  // of the scheduler
constexpr int32_t kRestarts = 2;  // of the agent, in each

class Limits : public testing::Test {
 protected:
  Limits()
      : cluster_({{"--max-attempts", std::to_string(kAttempts)}, {"--retry-base", "100ms"}}),
        agent_(cluster_.Agent("n1", dir_.path(),
                              {{"--restart-pause", "50ms"},
                               {"--max-restarts", std::to_string(kRestarts)},
                               {"--usage-interval", "200ms"}})) {}

  std::string Describe(const std::string& workload) {
    smoke::Process command(
        {smoke::ProgramUnderTest(), "describe", "workload/" + workload, "--scheduler", cluster_.address()});
    EXPECT_EQ(command.Wait(), 0) << command.err();
    return command.out();
  }

  const host::TempDir dir_;
  Cluster cluster_;
  std::unique_ptr<agent::AgentRole> agent_;
};

TEST_F(Limits, AMemoryHogIsKilledAndReportedAsSuch) {
  model::WorkloadTemplate hog =
      Cluster::Process("echo I am hungry; exec dd if=/dev/zero of=/dev/null bs=200M count=9999");
  hog.resources = {{"memory", int64_t{32} * 1024 * 1024 * 1000}};
  hog.restart = model::RestartPolicy::kNever;
  cluster_.Apply("hog", hog);
  const contract::WorkloadView view = cluster_.WaitFor("hog", WorkloadPhase::kFailed);
  EXPECT_TRUE(view.message.contains("killed: out of memory")) << view.message;
  const std::string text = Describe("hog");
  EXPECT_TRUE(text.contains("killed: out of memory")) << text;
  EXPECT_TRUE(text.contains("I am hungry")) << text;
  cluster_.Delete("hog");
}

// How often the kernel has held the group of a process back, in either version of control groups; 0: never, or it has
// no group with a quota.
int64_t TimesThrottled(const std::string& pid) {
  namespace fs = std::filesystem;
  int64_t times = 0;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator("/sys/fs/cgroup", fs::directory_options::skip_permission_denied, error)) {
    if (entry.path().filename() != "cpu.stat") continue;
    std::ifstream members(entry.path().parent_path() / "cgroup.procs");
    bool here = false;
    for (std::string line; std::getline(members, line);) here = here || line == pid;
    std::ifstream stat(entry.path());
    for (std::string line; here && std::getline(stat, line);) {
      if (line.starts_with("nr_throttled ")) times += std::atoll(line.c_str() + 13);
    }
  }
  return times;
}

TEST_F(Limits, ACpuHogIsHeldToItsShare) {
  model::WorkloadTemplate hog = Cluster::Process("echo $$ > pid; while :; do :; done");
  hog.resources = {{"cpu", 200}};
  cluster_.Apply("busy", hog);
  cluster_.WaitFor("busy", WorkloadPhase::kRunning);
  // Each figure is of the time since the one before: the quota holds in all of them, whatever else the machine does.
  int seen = 0;
  WallTime last;
  EXPECT_TRUE(WaitUntil([&] {
    const contract::WorkloadView view = cluster_.Get("busy");
    if (!view.usage || view.usage->collected_at == last || view.usage->cpu_milli == 0) return false;
    last = view.usage->collected_at;
    EXPECT_LT(view.usage->cpu_milli, 400);
    return ++seen == 3;
  })) << "no usage was reported";
  // A machine that is busy holds it back too: the kernel says that it was the quota.
  std::string pid;
  std::ifstream(dir_.File("processes/busy/work/pid")) >> pid;
  EXPECT_TRUE(WaitUntil([&] { return TimesThrottled(pid) > 0; })) << "process " << pid;
  cluster_.Delete("busy");
}

TEST_F(Limits, AJobThatExitsWithZeroIsCompleted) {
  model::WorkloadTemplate job = Cluster::Process("echo done");
  job.restart = model::RestartPolicy::kOnFailure;
  cluster_.Apply("job", job);
  const contract::WorkloadView view = cluster_.WaitFor("job", WorkloadPhase::kCompleted);
  EXPECT_EQ(view.exit_code, 0);
  EXPECT_TRUE(cluster_.Logs("job").contains("done"));
  cluster_.Delete("job");
}

// Two restarts by the agent in each of the scheduler's attempts.
TEST_F(Limits, ACrashLoopIsRetriedAndThenFailedWithItsLastLines) {
  cluster_.Apply("loop", "echo start >> starts; echo first line; echo second line; exit 7");
  const contract::WorkloadView view = cluster_.WaitFor("loop", WorkloadPhase::kFailed);
  EXPECT_EQ(view.attempts, kAttempts);
  EXPECT_TRUE(view.message.contains("gave up after 2 restarts: exit code 7")) << view.message;
  std::ifstream starts(dir_.File("processes/loop/work/starts"));
  int64_t count = 0;
  for (std::string line; std::getline(starts, line);) ++count;
  EXPECT_EQ(count, kAttempts * (1 + kRestarts));
  const std::string text = Describe("loop");
  EXPECT_TRUE(text.contains("first line")) << text;
  EXPECT_TRUE(text.contains("second line")) << text;
  EXPECT_TRUE(text.contains("Failed")) << text;
  cluster_.Delete("loop");
}

}  // namespace
}  // namespace muster
