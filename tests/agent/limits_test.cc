// What the limits and ends of processes become, all the way: from the workload that is applied, through a scheduler and
// an agent with real processes, to what `muster describe` prints.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "agent/cluster_for_test.h"
#include "host/temp_dir_for_test.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster {
namespace {

using model::WorkloadPhase;

class Limits : public testing::Test {
 protected:
  Limits()
      : cluster_({{"--max-attempts", "1"}, {"--retry-base", "100ms"}}),
        agent_(cluster_.Agent("n1", dir_.path(),
                              {{"--restart-pause", "50ms"}, {"--max-restarts", "2"}, {"--usage-interval", "200ms"}})) {}

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

TEST_F(Limits, ACpuHogIsHeldToItsShare) {
  model::WorkloadTemplate hog = Cluster::Process("while :; do :; done");
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

TEST_F(Limits, ACrashLoopIsRetriedAndThenFailedWithItsLastLines) {
  cluster_.Apply("loop", "echo start >> starts; echo first line; echo second line; exit 7");
  const contract::WorkloadView view = cluster_.WaitFor("loop", WorkloadPhase::kFailed);
  EXPECT_TRUE(view.message.contains("gave up after 2 restarts: exit code 7")) << view.message;
  const std::string text = Describe("loop");
  EXPECT_TRUE(text.contains("first line")) << text;
  EXPECT_TRUE(text.contains("second line")) << text;
  EXPECT_TRUE(text.contains("Failed")) << text;
  cluster_.Delete("loop");
}

}  // namespace
}  // namespace muster
