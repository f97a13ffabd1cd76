#include "cli/explain_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "cli/halves.h"
#include "core/operators/demand.h"

namespace muster::cli {
namespace {

// A cluster with one workload and one node, whose machine is blue's, and a fleet with the needs it is given.
class TwoClusters final : public Halves {
 public:
  TwoClusters() {
    web_.workload = "web";
    web_.reason = "fit.none";
    web_.spec.resources = {{"cpu", 1000}};
    machine_.id = "m1";
    machine_.state = model::MachineState::kConfigured;
    machine_.cluster = "blue";
  }
  void AddNeed(const std::string& cluster, const std::string& group) {
    contract::NeedView view;
    view.need = {.cluster = cluster, .profile = operators::UnitOf(web_).profile, .group = group};
    view.need.aggregate = {{"cpu", 1000}};
    view.need.min_unit = {{"cpu", 1000}};
    view.satisfied = true;
    needs_.needs.push_back(view);
  }
  const contract::WorkloadView& web() const { return web_; }

  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override {
    if (std::holds_alternative<contract::ExplainWorkload>(request)) return contract::Explanation{.workload = web_};
    if (std::holds_alternative<contract::ListNodes>(request)) return contract::NodesListed{.nodes = {{.node = "m1"}}};
    return contract::WorkloadsListed{.workloads = {web_}};
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    if (std::holds_alternative<contract::InspectNeeds>(request)) return needs_;
    if (std::holds_alternative<contract::ListActions>(request)) return contract::ActionsListed{};
    if (std::holds_alternative<contract::Explain>(request)) return contract::Explained{};
    contract::MachineView view;
    view.machine = contract::MachineRecord(machine_);
    return contract::MachinesListed{.machines = {view}};
  }

 private:
  contract::WorkloadView web_;
  model::Machine machine_;
  contract::NeedsInspected needs_;
};

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

}  // namespace
}  // namespace muster::cli
