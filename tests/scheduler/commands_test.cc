// The commands of a cluster against a running scheduler with agents: what they print and how they end.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/command_line.h"
#include "host/temp_dir_for_test.h"
#include "scheduler/cluster_for_test.h"
#include "scheduler/fake_agent_for_test.h"

namespace muster::scheduler {
namespace {

struct Outcome {
  int code = 0;
  std::string out;
};

class Commands : public testing::Test {
 protected:
  Commands() : cluster_(ShortSettings("memory:")), one_("n1"), two_("n2") {}

  void StartAgents() {
    one_.Register(cluster_.address(), {{"zone", "a"}});
    two_.Register(cluster_.address(), {{"zone", "b"}});
    ASSERT_TRUE(cluster_.NodeBecomes("n1", model::NodeStatus::kReady));
    ASSERT_TRUE(cluster_.NodeBecomes("n2", model::NodeStatus::kReady));
  }

  // `muster WORDS`; the scheduler is the second of the list, and the first does not answer.
  Outcome Run(const std::vector<std::string>& words) {
    cli::CommandLine app({.version = "1.2.3", .commit = "abc", .compiler = "C", .build_type = "T", .faults = false});
    const cli::ClusterAccess access = cli::RealCluster();
    cli::AddClusterVerbs(app, access);
    cli::Verb explain = app.AddVerb("explain", "Explain");
    explain.Run(cli::AddExplainSubjects(explain, access));
    const std::string schedulers = "--scheduler=127.0.0.1:1," + cluster_.address();
    std::vector<const char*> argv = {"muster"};
    for (const std::string& word : words) argv.push_back(word.c_str());
    argv.push_back(schedulers.c_str());
    testing::internal::CaptureStdout();
    const int code = app.Main(static_cast<int>(argv.size()), argv.data());
    return {code, testing::internal::GetCapturedStdout()};
  }

  std::string Apply(const std::string& text) {
    std::ofstream(dir_.File("file.yaml")) << text;
    const Outcome outcome = Run({"apply", "-f", dir_.File("file.yaml")});
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    return outcome.out;
  }

  static std::string Web(int replicas, const std::string& image) {
    return fmt::format(
        "kind: Set\nname: web\nlabels: {{app: web}}\nreplicas: {}\nupdate: {{maxUnavailable: 1, maxSurge: 1}}\n"
        "template: {{type: container, image: {}, resources: {{cpu: 100m, memory: 16Mi}}}}\n",
        replicas, image);
  }
  int Lines(const std::string& text, const std::string& with) {
    int count = 0;
    for (size_t at = text.find(with); at != std::string::npos; at = text.find(with, at + 1)) ++count;
    return count;
  }

  host::TempDir dir_;
  Cluster cluster_;
  FakeAgent one_;
  FakeAgent two_;
};

TEST_F(Commands, ASetIsAppliedRolledOutDrainedAndDeleted) {
  StartAgents();
  EXPECT_EQ(Apply(Web(4, "web:1")), "set/web created\n");
  const Outcome rolled = Run({"rollout", "status", "set/web", "--timeout", "20s"});
  EXPECT_EQ(rolled.code, 0) << rolled.out;
  EXPECT_TRUE(rolled.out.ends_with("set/web: 4 of 4 members have the revision, 4 are available; rolled out\n"))
      << rolled.out;
  EXPECT_EQ(Run({"get", "workloads", "-l", "app=web", "--status", "running", "-o", "name"}).out,
            "workload/web-0\nworkload/web-1\nworkload/web-2\nworkload/web-3\n");
  const std::string nodes = Run({"get", "nodes"}).out;
  EXPECT_EQ(Lines(nodes, "  Ready   2          200m/"), 2) << nodes;

  EXPECT_EQ(Apply(Web(3, "web:2")), "set/web configured\n");
  EXPECT_EQ(Run({"rollout", "status", "set/web", "--timeout", "20s"}).code, 0);
  EXPECT_EQ(Lines(Run({"get", "workloads", "-o", "json"}).out, R"("image":"web:2")"), 3);

  const Outcome drained = Run({"drain", "n1", "--timeout", "20s", "--reason", "kernel"});
  EXPECT_EQ(drained.code, 0) << drained.out;
  EXPECT_TRUE(drained.out.ends_with("node/n1 drained\n")) << drained.out;
  EXPECT_EQ(Run({"get", "workloads", "--node", "n1", "-o", "name"}).out, "");
  EXPECT_EQ(Lines(Run({"get", "node/n1"}).out, "Ready,Draining"), 1);
  EXPECT_EQ(Run({"uncordon", "n1"}).code, 0);
  const std::string described = Run({"describe", "node", "n1"}).out;
  EXPECT_NE(described.find("Status:     Ready\n"), std::string::npos) << described;

  const Outcome deleted = Run({"delete", "set/web"});
  EXPECT_EQ(deleted.code, 0);
  EXPECT_EQ(deleted.out, "set/web deleted\n");
  EXPECT_EQ(Run({"get", "workloads,sets", "-o", "name"}).out, "") << "it is gone";
  EXPECT_EQ(Apply(Web(1, "web:3")), "set/web created\n");
  EXPECT_EQ(Run({"delete", "set/web", "--no-wait"}).out, "set/web is being deleted\n");
  EXPECT_TRUE(Eventually([this] { return Run({"get", "workloads,sets", "-o", "name"}).out.empty(); }));
}

TEST_F(Commands, AWorkloadThatNoNodeTakesIsExplained) {
  StartAgents();
  const std::string applied = Apply(
      "kind: Workload\nname: big\ntemplate: {type: container, image: i, resources: {cpu: 1000}, requirements: [{key: "
      "zone, values: [a]}]}\n");
  EXPECT_TRUE(applied.starts_with("workload/big created")) << applied;
  ASSERT_TRUE(Eventually([this] { return !cluster_.View("big").message.empty(); }));
  const Outcome explained = Run({"explain", "workload", "big"});
  EXPECT_EQ(explained.code, 0);
  EXPECT_TRUE(explained.out.starts_with("workload big is ")) << explained.out;
  EXPECT_EQ(Lines(explained.out, "  1      "), 2) << explained.out;  // two classes of one node each
  EXPECT_EQ(Run({"describe", "workload/big"}).code, 0);
  EXPECT_EQ(Run({"rollout", "status", "set/none", "--once"}).code, 1);
  EXPECT_EQ(Run({"retry", "big"}).code, 0);
}

TEST_F(Commands, AQuotaRefusesWithItsFigures) {
  EXPECT_EQ(Run({"quota", "shop", "--limit", "workloads=1"}).out, "quota/shop created\n");
  std::ofstream(dir_.File("two.yaml")) << "kind: Set\nname: s\ntenant: shop\nreplicas: 2\n"
                                          "template: {type: container, image: i}\n";
  testing::internal::CaptureStderr();
  const Outcome refused = Run({"apply", "-f", dir_.File("two.yaml")});
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(error.find("muster: set/s: tenant shop: workloads 0 of 1 in use, 2 more asked for\n"), std::string::npos)
      << error;
  EXPECT_EQ(Run({"delete", "quota/shop"}).out, "quota/shop deleted\n");
}

}  // namespace
}  // namespace muster::scheduler
