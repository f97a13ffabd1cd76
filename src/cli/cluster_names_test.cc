#include "cli/cluster_names.h"

#include <gtest/gtest.h>

#include "model/requirement.h"

namespace muster::cli {
namespace {

using Words = std::vector<std::string>;
using Targets = std::vector<ClusterTarget>;

std::string Problem(const auto& result) { return result ? "none" : result.error().message(); }

TEST(ClusterNames, TypesAreTakenInTheirForms) {
  for (const std::string_view word : {"workload", "workloads", "wl", "Workloads", "WORKLOAD"}) {
    EXPECT_EQ(ParseClusterKind(word).value(), ClusterKind::kWorkload) << word;
  }
  EXPECT_EQ(ParseClusterKind("no").value(), ClusterKind::kNode);
  EXPECT_EQ(ParseClusterKind("job").value(), ClusterKind::kSet);
  EXPECT_EQ(ParseClusterKind("ev").value(), ClusterKind::kEvent);
  EXPECT_EQ(Problem(ParseClusterKind("worklods")), R"(unknown type "worklods", did you mean workloads?)");
  EXPECT_EQ(Problem(ParseClusterKind("pods")),
            R"(unknown type "pods": use one of workloads, nodes, sets, jobs, quotas, events)");
}

TEST(ClusterNames, TargetsAreTypesWithNamesOrTypeSlashName) {
  EXPECT_EQ(ParseTargets({"workloads"}).value(), (Targets{{ClusterKind::kWorkload, ""}}));
  EXPECT_EQ(ParseTargets({"workloads,nodes"}).value(),
            (Targets{{ClusterKind::kWorkload, ""}, {ClusterKind::kNode, ""}}));
  EXPECT_EQ(ParseTargets({"node", "a", "b"}).value(), (Targets{{ClusterKind::kNode, "a"}, {ClusterKind::kNode, "b"}}));
  EXPECT_EQ(ParseTargets({"set/web", "node/n1"}).value(),
            (Targets{{ClusterKind::kSet, "web"}, {ClusterKind::kNode, "n1"}}));
  EXPECT_EQ(Problem(ParseTargets({})), "the type is missing: use one of workloads, nodes, sets, jobs, quotas, events");
  EXPECT_EQ(Problem(ParseTargets({"set/web", "n1"})),
            R"("n1": write every word as TYPE/NAME, or the type once before the names)");
  EXPECT_EQ(Problem(ParseTargets({"set/"})), R"("set/": the name is missing)");
  EXPECT_EQ(Problem(ParseTargets({"node", ""})), "a name is empty");
  EXPECT_EQ(Problem(ParseNamedTargets({"nodes"})), "the name is missing: write node/NAME or node NAME");
}

TEST(ClusterNames, AVerbOfOneTypeTakesBareNames) {
  EXPECT_EQ(ParseNames({"n1", "node/n2"}, ClusterKind::kNode).value(), (Words{"n1", "n2"}));
  EXPECT_EQ(ParseNames({"node", "n1"}, ClusterKind::kNode).value(), Words{"n1"});
  EXPECT_EQ(ParseNames({"node"}, ClusterKind::kNode).value(), Words{"node"});  // a node may be called so
  EXPECT_EQ(Problem(ParseNames({"set/web"}, ClusterKind::kNode)), R"("set/web" is no node)");
  EXPECT_EQ(Problem(ParseNames({}, ClusterKind::kNode)), "the name of a node is missing");
  EXPECT_EQ(ParseSetName({"web"}).value(), "web");
  EXPECT_EQ(ParseSetName({"set/web"}).value(), "web");
  EXPECT_EQ(ParseSetName({"set", "web"}).value(), "web");
  EXPECT_EQ(Problem(ParseSetName({"node/n1"})), "write one set: set/NAME");
  EXPECT_EQ(Problem(ParseSetName({"set/a", "set/b"})), "write one set: set/NAME");
}

TEST(ClusterNames, SelectorsHaveTheGrammarOfKubectl) {
  const auto text = [](std::string_view selector) {
    std::string all;
    const auto parsed = ParseSelector(selector);
    if (!parsed) return parsed.error().message();
    for (const model::Requirement& requirement : *parsed) all += (all.empty() ? "" : "; ") + ToString(requirement);
    return all;
  };
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("app=web"), "app In [web]");
  EXPECT_EQ(text("app==web,tier!=db"), "app In [web]; tier NotIn [db]");
  EXPECT_EQ(text("zone in (a, b),!gpu , ssd"), "zone In [a, b]; gpu DoesNotExist; ssd Exists");
  EXPECT_EQ(text("zone notin (a)"), "zone NotIn [a]");
  EXPECT_EQ(text("=web"),
            R"(selector "=web": the key is missing; write it as app=web, tier!=db, zone in (a,b), gpu or !gpu)");
  EXPECT_TRUE(Selects(*ParseSelector("app=web,!gpu"), {{"app", "web"}}));
  EXPECT_FALSE(Selects(*ParseSelector("app=web,!gpu"), {{"app", "web"}, {"gpu", "1"}}));
}

}  // namespace
}  // namespace muster::cli
