#include "cli/explain_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/halves.h"
#include "core/operators/demand.h"

namespace muster::cli {
namespace {

// A cluster with one workload and one node of 4 cpus, whose machine is blue's, and a fleet with the needs and machines
// it is given.
class TwoClusters final : public Halves {
 public:
  TwoClusters() {
    web_.workload = "web";
    web_.reason = "fit.none";
    web_.spec.resources = {{"cpu", 1000}};
    node_.node = "m1";
    node_.total = {{"cpu", 4000}, {"memory", 1000}};
    AddMachine("m1", "blue");
  }
  // It serves the need of the workload's profile.
  void AddMachine(const std::string& id, const std::string& cluster) {
    contract::MachineView view;
    model::Machine machine;
    machine.id = id;
    machine.state = model::MachineState::kConfigured;
    machine.cluster = cluster;
    view.machine = contract::MachineRecord(machine);
    view.need_fingerprint = operators::UnitOf(web_).profile.fingerprint();
    machines_.push_back(std::move(view));
  }
  void AddNeed(const std::string& cluster, const std::string& group) {
    contract::NeedView view;
    view.need = {.cluster = cluster, .profile = operators::UnitOf(web_).profile, .group = group};
    view.need.aggregate = {{"cpu", 1000}};
    view.need.min_unit = {{"cpu", 1000}};
    view.satisfied = true;
    needs_.needs.push_back(view);
  }
  contract::WorkloadView& web() { return web_; }
  contract::NeedView& need() { return needs_.needs.front(); }

  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override {
    if (std::holds_alternative<contract::ExplainWorkload>(request)) return contract::Explanation{.workload = web_};
    if (std::holds_alternative<contract::ListNodes>(request)) return contract::NodesListed{.nodes = {node_}};
    return contract::WorkloadsListed{.workloads = {web_}};
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    if (std::holds_alternative<contract::InspectNeeds>(request)) return needs_;
    if (std::holds_alternative<contract::ListActions>(request)) return contract::ActionsListed{};
    if (std::holds_alternative<contract::Explain>(request)) return contract::Explained{};
    return contract::MachinesListed{.machines = machines_};
  }

 private:
  contract::WorkloadView web_;
  contract::NodeView node_;
  std::vector<contract::MachineView> machines_;
  contract::NeedsInspected needs_;
};

// What the chain says of its need.
std::string NeedText(const Result<ExplainedChain>& chain) {
  if (!chain.has_value()) return chain.error().ToString();
  std::string text;
  for (const ExplainedLink& link : chain->links) {
    if (link.kind != "need") continue;
    for (const std::string& line : link.lines) text += line + "\n";
  }
  return text;
}

// Another cluster may have a need of the same profile that is asked for by size, or folded: it is not this one's.
TEST(ExplainChain, TheNeedIsThatOfTheOwnCluster) {
  TwoClusters halves;
  halves.AddNeed("green", operators::GroupOfSize(halves.web().spec.resources));
  halves.AddNeed("blue", "");
  const auto chain = ExplainWorkload(halves, "web", {});
  ASSERT_TRUE(chain.has_value()) << chain.error().ToString();
  const auto need = std::ranges::find(chain->links, "need", &ExplainedLink::kind);
  ASSERT_NE(need, chain->links.end());
  EXPECT_EQ(need->verdict, "satisfied") << need->head;

  const std::string fingerprint = operators::UnitOf(halves.web()).profile.fingerprint();
  const auto of_need = ExplainNeed(halves, fingerprint, "", {.cluster = "blue"});
  ASSERT_TRUE(of_need.has_value()) << of_need.error().ToString();
  EXPECT_EQ(of_need->links.front().lines.front(), "the operator adds up 1 workload: cpu=1 (web)");
}

// The workloads are this scheduler's: they say nothing of a need of the same profile that another cluster has.
TEST(ExplainChain, AMachineOfAnotherClusterIsNotExplainedWithWorkloadsOfThisOne) {
  TwoClusters halves;
  halves.AddNeed("blue", "");
  halves.AddNeed("green", "");
  halves.AddMachine("m2", "green");
  EXPECT_EQ(NeedText(ExplainMachine(halves, "m1", {})),
            "the operator adds up 1 workload: cpu=1 (web)\n1 without a node: web\n");
  EXPECT_EQ(NeedText(ExplainMachine(halves, "m2", {})), "");
  EXPECT_EQ(NeedText(ExplainMachine(halves, "m2", {.cluster = "blue"})), "") << "the machine says whose it is";
}

TEST(ExplainChain, SaysWhyANeedIsMoreThanItsWorkloads) {
  const auto says = [](bool alone, int64_t asked) {
    TwoClusters halves;
    halves.AddNeed("blue", "");
    halves.need().need.aggregate = {{"cpu", asked}};
    halves.web().node = "m1";
    halves.web().reason.clear();
    if (alone) halves.web().spec.exclude = {{.topology_key = "kubernetes.io/hostname"}};
    return NeedText(ExplainWorkload(halves, "web", {}));
  };
  const std::string sum = "the operator adds up 1 workload: cpu=1 (web)\n";
  EXPECT_EQ(says(false, 1000), sum);
  EXPECT_EQ(says(false, 3000), sum +
                                   "it asks for cpu=2 more than that: room for workloads that no node takes although "
                                   "enough is bound\n");
  EXPECT_EQ(says(true, 4000),
            sum + "it asks for cpu=3 more than that: whole machines for members that exclude each other\n");
  EXPECT_EQ(says(true, 6000),
            sum +
                "it asks for cpu=5 more than that: whole machines for members that exclude each other, and room for "
                "workloads that no node takes although enough is bound\n");
}

}  // namespace
}  // namespace muster::cli
