// `muster logs -f`, all the way: a real program that follows, through a scheduler and an agent, what a real process
// writes.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "agent/cluster_for_test.h"
#include "host/temp_dir_for_test.h"
#include "smoke/process.h"

namespace muster {
namespace {

using model::WorkloadPhase;

// Each run waits for a file before it ends, so that the order of what happens is the test's.
constexpr const char* kTalks =
    "echo x >> runs; n=$(wc -l < runs); echo run $n; while ! [ -e go$n ]; do sleep 0.02; done; echo end $n; exit 1";

TEST(FollowedLogs, GoOnOverARestartAndEndWithTheWorkload) {
  const host::TempDir dir;
  Cluster cluster;
  const auto agent = cluster.Agent("n1", dir.path(), {{"--restart-pause", "50ms"}});
  cluster.Apply("talks", kTalks);
  cluster.WaitFor("talks", WorkloadPhase::kRunning);
  smoke::Process follower({smoke::ProgramUnderTest(), "logs", "talks", "-f", "--scheduler", cluster.address()});
  const auto says = [&](const std::string& text) {
    return WaitUntil([&] {
      EXPECT_FALSE(follower.Ended()) << follower.err();
      return follower.out().contains(text) || testing::Test::HasFailure();
    });
  };
  EXPECT_TRUE(says("run 1\n")) << follower.out();
  EXPECT_FALSE(follower.out().contains("end")) << "it has not been written yet";
  std::ofstream(dir.File("processes/talks/work/go1")) << "now";
  EXPECT_TRUE(says("end 1\n")) << "what is written while it follows: " << follower.out();
  EXPECT_TRUE(says("run 2\n")) << "the next run is followed: " << follower.out();
  cluster.Delete("talks");
  EXPECT_EQ(follower.Wait(), 0) << follower.err();
  EXPECT_EQ(follower.out(), "run 1\nend 1\nrun 2\n") << "each line once";
}

}  // namespace
}  // namespace muster
