// Agents that have joined a scheduler, both in this process, with real processes: from ApplySpec to what runs, and what
// happens when an agent goes and comes back.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "agent/cluster_for_test.h"
#include "host/temp_dir_for_test.h"

namespace muster {
namespace {

TEST(JoinedAgent, RunsWhatTheSchedulerAssigns) {
  const host::TempDir dir;
  Cluster cluster;
  auto agent = cluster.Agent("n1", dir.path());
  cluster.Apply("web", "echo up; exec sleep 1000");
  const contract::WorkloadView view = cluster.WaitFor("web", model::WorkloadPhase::kRunning);
  EXPECT_EQ(view.node, "n1");

  // An agent that is away for a moment: its process runs on and is adopted.
  agent.reset();
  agent = cluster.Agent("n1", dir.path());
  EXPECT_EQ(cluster.WaitFor("web", model::WorkloadPhase::kRunning).node, "n1");
  cluster.Delete("web");
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(dir.File("processes/web")); }));
}

TEST(JoinedAgent, AnAgentThatComesBackStopsWhatIsNoLongerItsOwn) {
  const host::TempDir first;
  const host::TempDir second;
  Cluster cluster;
  auto agent = cluster.Agent("n1", first.path());
  cluster.Apply("web", "exec sleep 1000");
  EXPECT_EQ(cluster.WaitFor("web", model::WorkloadPhase::kRunning).node, "n1");
  agent.reset();
  auto other = cluster.Agent("n2", second.path());
  EXPECT_TRUE(WaitUntil([&] {
    const contract::WorkloadView view = cluster.Get("web");
    return view.node == "n2" && view.phase == model::WorkloadPhase::kRunning;
  })) << "it runs elsewhere";
  EXPECT_TRUE(std::filesystem::exists(first.File("processes/web"))) << "and still where it was";
  agent = cluster.Agent("n1", first.path());
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(first.File("processes/web")); }));
  EXPECT_TRUE(std::filesystem::exists(second.File("processes/web")));
  cluster.Delete("web");
}

// A store that is lost, as `memory:` is with every restart of its scheduler: the second one counts from one again.
TEST(JoinedAgent, AnAgentThatKnowsAHigherEpochWorksForASchedulerWithAnEmptyStore) {
  const host::TempDir dir;
  uint64_t known = 0;
  {
    Cluster first;
    for (int i = 0; i < 3; ++i) {
      const auto agent = first.Agent("n1", dir.path());
      EXPECT_TRUE(WaitUntil([&] {
        const contract::NodeView node = first.GetNode("n1");
        return node.status == model::NodeStatus::kReady && node.epoch > known;
      }));
      first.Apply("web", "exec sleep 1000");
      first.WaitFor("web", model::WorkloadPhase::kRunning);
      known = first.GetNode("n1").epoch;
      first.Delete("web");
    }
  }
  Cluster second;
  const auto agent = second.Agent("n1", dir.path());
  second.Apply("other", "exec sleep 1000");
  second.WaitFor("other", model::WorkloadPhase::kRunning);
  EXPECT_GT(second.GetNode("n1").epoch, known);
  second.Delete("other");
}

}  // namespace
}  // namespace muster
