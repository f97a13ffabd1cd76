#include "kube/dump_reader.h"

#include <gtest/gtest.h>

#include "kube/dump_for_test.h"
#include "kube/dump_generator.h"

namespace muster::kube {
namespace {

Dump MustRead(const std::vector<std::string>& items) {
  auto dump = ReadObjects(items);
  EXPECT_TRUE(dump) << dump.error().message();
  return dump ? *dump : Dump();
}

TEST(DumpReader, ANodeAsItIs) {
  const Dump dump =
      MustRead({NodeText("n-1", R"("karpenter.sh/capacity-type":"spot","node-role.kubernetes.io/control-plane":"")",
                         R"("unschedulable":true,"taints":[{"key":"dedicated","value":"db","effect":"NoSchedule"}])")});
  ASSERT_EQ(dump.nodes.size(), 1u);
  const DumpNode& node = dump.nodes[0];
  EXPECT_EQ(node.node.id, "n-1");
  EXPECT_EQ(node.type, "m5.xlarge");
  EXPECT_EQ(node.zone, "a");
  EXPECT_EQ(node.arch, "amd64");
  EXPECT_EQ(node.capacity, model::CapacityType::kSpot);
  EXPECT_EQ(node.node.labels.at("muster.io/capacity-type"), "spot");
  EXPECT_TRUE(node.control_plane);
  EXPECT_TRUE(node.node.cordoned);
  EXPECT_EQ(node.node.taints,
            (std::vector<placement::Taint>{{"dedicated", "db", placement::TaintEffect::kNoSchedule}}));
  EXPECT_EQ(node.node.total.ToString(), "cpu=4 memory=16Gi pods=110");
}

TEST(DumpReader, EverythingASchedulerReadsOfAPod) {
  const Dump dump = MustRead({PodText{.metadata = R"(,"creationTimestamp":"2026-06-01T00:00:10Z")", .spec = R"(,
    "priority": 1000, "preemptionPolicy": "Never",
    "nodeSelector": {"pool": "web"},
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c", "effect": "NoExecute"}],
    "topologySpreadConstraints": [{"maxSkew": 2, "minDomains": 3, "topologyKey": "zone", "whenUnsatisfiable":
      "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["hash"],
      "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}],
    "affinity": {
      "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
          {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]},
          {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n-1"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": {"matchExpressions": [
          {"key": "disk", "operator": "Exists"}]}}]},
      "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector":
          {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}, "namespaces": ["other"],
          "namespaceSelector": {}}]},
      "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm":
          {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}, "mismatchLabelKeys": ["hash"]}}]}})"}
                                  .Text()});
  ASSERT_EQ(dump.pods.size(), 1u);
  const placement::Kind& kind = dump.kinds[0];
  EXPECT_EQ(dump.pods[0].unit.id, "shop/web-1");
  EXPECT_EQ(dump.pods[0].owner, "ReplicaSet/web");
  EXPECT_EQ(dump.pods[0].unit.order, 1780272010);
  EXPECT_EQ(kind.name_space, "shop");
  EXPECT_EQ(kind.priority, 1000);
  EXPECT_FALSE(kind.may_preempt);
  EXPECT_EQ(kind.request.ToString(), "cpu=1 memory=1Gi pods=1");
  EXPECT_EQ(kind.requirements, (std::vector<model::Requirement>{{"pool", model::Operator::kIn, {"web"}}}));
  ASSERT_EQ(kind.node_terms.size(), 2u);
  EXPECT_EQ(kind.node_terms[0].labels[0], (model::Requirement{"cores", model::Operator::kGt, {"4"}}));
  EXPECT_EQ(kind.node_terms[1].fields[0], (model::Requirement{"metadata.name", model::Operator::kIn, {"n-1"}}));
  ASSERT_EQ(kind.preferred_nodes.size(), 1u);
  EXPECT_EQ(kind.preferred_nodes[0].weight, 5);
  ASSERT_EQ(kind.tolerations.size(), 2u);
  EXPECT_TRUE(kind.tolerations[0].exists && kind.tolerations[0].every_effect);
  EXPECT_EQ(kind.tolerations[1].effect, placement::TaintEffect::kNoExecute);
  ASSERT_EQ(kind.spread.size(), 1u);
  EXPECT_EQ(kind.spread[0].max_skew, 2);
  EXPECT_EQ(kind.spread[0].min_domains, 3);
  EXPECT_EQ(kind.spread[0].match_label_keys, std::vector<std::string>{"hash"});
  EXPECT_EQ(kind.spread[0].node_affinity, placement::NodeInclusion::kIgnore);
  EXPECT_EQ(kind.spread[0].node_taints, placement::NodeInclusion::kHonor);
  ASSERT_EQ(kind.colocate.size(), 1u);
  EXPECT_EQ(kind.colocate[0].namespaces, std::vector<std::string>{"other"});
  EXPECT_TRUE(kind.colocate[0].namespace_selector.given);
  ASSERT_EQ(kind.preferred_exclude.size(), 1u);
  EXPECT_EQ(kind.preferred_exclude[0].weight, 7);
  EXPECT_EQ(kind.preferred_exclude[0].term.mismatch_label_keys, std::vector<std::string>{"hash"});
}

TEST(DumpReader, HostPortsOfContainersAndSidecars) {
  const Dump dump = MustRead({R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{
    "containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":8080,"protocol":"UDP","hostIP":"10.0.0.1"},
      {"containerPort":81}]}],
    "initContainers":[{"name":"i","ports":[{"hostPort":1}]},{"name":"s","restartPolicy":"Always","ports":[{"hostPort":2}]}]}})"});
  EXPECT_EQ(dump.kinds[0].ports, (std::vector<placement::HostPort>{{"UDP", "10.0.0.1", 8080}, {"TCP", "", 2}}));
}

TEST(DumpReader, EndedPodsAreLeftOutAndTerminatingOnesMarked) {
  const Dump dump = MustRead(
      {NodeText("n-1"), PodText{.name = "done", .status = R"(,"x":1)"}.Text(),
       R"({"kind":"Pod","metadata":{"name":"ended","namespace":"n"},"status":{"phase":"Succeeded"}})",
       R"({"kind":"Pod","metadata":{"name":"failed","namespace":"n"},"status":{"phase":"Failed"}})",
       PodText{.name = "leaving", .node = "n-1", .metadata = R"(,"deletionTimestamp":"2026-06-01T00:00:00Z")"}.Text()});
  EXPECT_EQ(dump.ended_pods, 2);
  ASSERT_EQ(dump.pods.size(), 2u);
  EXPECT_FALSE(dump.pods[0].terminating);
  EXPECT_TRUE(dump.pods[1].terminating);
}

TEST(DumpReader, OwnersAnnotationsAndMirrors) {
  const Dump dump = MustRead(
      {NodeText("n-1"), PodText{.name = "bare", .node = "n-1", .owner = ""}.Text(),
       PodText{.name = "daemon", .node = "n-1", .owner = "DaemonSet/d"}.Text(),
       PodText{.name = "mirror", .node = "n-1", .owner = "Node/n-1"}.Text(),
       PodText{.name = "pinned",
               .node = "n-1",
               .metadata = R"(,"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"})"}
           .Text(),
       PodText{.name = "quiet", .node = "n-1", .metadata = R"(,"annotations":{"karpenter.sh/do-not-disrupt":"true"})"}
           .Text()});
  ASSERT_EQ(dump.pods.size(), 5u);
  EXPECT_TRUE(dump.pods[0].owner.empty());
  EXPECT_TRUE(dump.pods[1].daemon);
  EXPECT_TRUE(dump.pods[2].is_static);
  EXPECT_TRUE(dump.pods[3].do_not_disrupt);
  EXPECT_TRUE(dump.pods[4].do_not_disrupt);
}

TEST(DumpReader, LabelsThatNoSelectorReadsDoNotMakeKinds) {
  const auto pods = [](std::string_view spec) {
    return std::vector<std::string>{
        PodText{.name = "db-0", .labels = R"("app":"db","pod-name":"db-0")", .spec = spec}.Text(),
        PodText{.name = "db-1", .labels = R"("app":"db","pod-name":"db-1")", .spec = spec}.Text()};
  };
  EXPECT_EQ(MustRead(pods("")).kinds.size(), 1u);
  EXPECT_EQ(MustRead(pods(R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":
    "DoNotSchedule","labelSelector":{"matchLabels":{"pod-name":"db-0"}}}])"))
                .kinds.size(),
            2u);
}

TEST(DumpReader, BudgetsByStatusAndBySpec) {
  const auto budget = [](std::string_view name, std::string_view spec, std::string_view status) {
    return fmt::format(
        R"({{"kind":"PodDisruptionBudget","metadata":{{"name":"{}","namespace":"shop"}},"spec":{{{}}},"status":{{{}}}}})",
        name, spec, status);
  };
  std::vector<std::string> items = {
      NodeText("n-1"),
      budget("a", R"("minAvailable":3,"selector":{"matchLabels":{"app":"web"}})", R"("disruptionsAllowed":2)"),
      budget("b", R"("minAvailable":"50%","selector":{})", ""),
      budget("c", R"("maxUnavailable":1,"selector":{"matchLabels":{"app":"web"}})", ""),
      budget("none", R"("minAvailable":1)", ""),
      PodText{.name = "other", .name_space = "elsewhere", .node = "n-1"}.Text()};
  const std::vector<std::string> names = {"web-1", "web-2", "web-3", "web-4", "web-5"};
  for (const std::string& name : names) items.push_back(PodText{.name = name, .node = "n-1"}.Text());
  items.push_back(PodText{.name = "web-6"}.Text());
  const Dump dump = MustRead(items);
  EXPECT_EQ(dump.budgets,
            (std::vector<placement::Budget>{{"shop/a", 2}, {"shop/b", 2}, {"shop/c", 0}, {"shop/none", 0}}));
  EXPECT_TRUE(dump.pods[0].budgets.empty()) << "another namespace";
  EXPECT_EQ(dump.pods[1].budgets, (std::vector<std::string>{"shop/a", "shop/b", "shop/c"}));
}

constexpr std::string_view kClaim =
    R"({"kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"shop"},"spec":{"volumeName":"pv-1"}})";
constexpr std::string_view kUsesClaim = R"(,"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"data"}}])";

TEST(DumpReader, AVolumePinsByItsAffinity) {
  const Dump dump =
      MustRead({NodeText("n-1"), std::string(kClaim), R"({"kind":"PersistentVolume","metadata":{"name":"pv-1"},
    "spec":{"csi":{"driver":"ebs"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
    {"key":"topology.ebs/zone","operator":"In","values":["a"]}]}]}}}})",
                PodText{.node = "n-1", .spec = kUsesClaim}.Text()});
  EXPECT_EQ(dump.kinds[0].requirements,
            (std::vector<model::Requirement>{{"topology.ebs/zone", model::Operator::kIn, {"a"}}}));
  EXPECT_FALSE(dump.pods[0].local_volume);
  EXPECT_EQ(dump.unknown_volumes, 0);
}

TEST(DumpReader, AnUnknownVolumePinsToTheZoneAndIsCounted) {
  const Dump dump = MustRead({NodeText("n-1"), std::string(kClaim), PodText{.node = "n-1", .spec = kUsesClaim}.Text()});
  EXPECT_EQ(dump.kinds[0].requirements,
            (std::vector<model::Requirement>{{"topology.kubernetes.io/zone", model::Operator::kIn, {"a"}}}));
  EXPECT_EQ(dump.unknown_volumes, 1);
}

TEST(DumpReader, ALocalVolumePinsToItsNode) {
  const Dump dump =
      MustRead({NodeText("n-1"), std::string(kClaim), R"({"kind":"PersistentVolume","metadata":{"name":"pv-1"},
    "spec":{"local":{"path":"/mnt"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[
    {"key":"kubernetes.io/hostname","operator":"In","values":["n-1"]}]}]}}}})",
                PodText{.node = "n-1", .spec = kUsesClaim}.Text()});
  EXPECT_TRUE(dump.pods[0].local_volume);
  EXPECT_EQ(dump.kinds[0].requirements,
            (std::vector<model::Requirement>{{"kubernetes.io/hostname", model::Operator::kIn, {"n-1"}}}));
}

TEST(DumpReader, AttachLimitsAreResources) {
  const Dump dump = MustRead(
      {NodeText("n-1"), NodeText("n-2"), std::string(kClaim),
       R"({"kind":"PersistentVolume","metadata":{"name":"pv-1"},"spec":{"csi":{"driver":"ebs"}}})",
       R"({"kind":"CSINode","metadata":{"name":"n-1"},"spec":{"drivers":[{"name":"ebs","allocatable":{"count":25}}]}})",
       PodText{.node = "n-1", .spec = kUsesClaim}.Text()});
  EXPECT_EQ(dump.nodes[0].node.total.Get("attachable-volumes-csi-ebs"), 25'000);
  EXPECT_EQ(dump.nodes[1].node.unlimited, std::vector<std::string>{"attachable-volumes-csi-ebs"});
  EXPECT_EQ(dump.kinds[0].request.Get("attachable-volumes-csi-ebs"), 1000);
}

TEST(DumpReader, PrioritiesByClass) {
  const Dump dump = MustRead({R"({"kind":"PriorityClass","metadata":{"name":"high"},"value":900})",
                              PodText{.name = "a", .spec = R"(,"priorityClassName":"high")"}.Text(),
                              PodText{.name = "b", .spec = R"(,"priorityClassName":"lost")"}.Text()});
  EXPECT_EQ(dump.kinds[dump.pods[0].unit.kind.value()].priority, 900);
  EXPECT_EQ(dump.not_understood.size(), 1u);
}

TEST(DumpReader, WhatIsNotUnderstoodIsCounted) {
  const Dump dump = MustRead({PodText{.name = "a", .spec = R"(,"resourceClaims":[{"name":"gpu"}])"}.Text(),
                              PodText{.name = "b", .spec = R"(,"schedulingGates":[{"name":"wait"}])"}.Text(),
                              PodText{.name = "c", .spec = R"(,"schedulerName":"volcano")"}.Text(),
                              PodText{.name = "d", .spec = R"(,"schedulerName":"volcano")"}.Text(),
                              R"({"kind":"Deployment","metadata":{"name":"x"}})"});
  EXPECT_EQ(dump.not_understood,
            (std::map<std::string, int64_t>{{"resourceClaims (devices are not counted)", 1},
                                            {"schedulerName (planned as by the default scheduler)", 2},
                                            {"schedulingGates (planned as if open)", 1}}));
  EXPECT_EQ(dump.other_objects, (std::map<std::string, int64_t>{{"Deployment", 1}}));
}

TEST(DumpReader, Refusals) {
  const auto error = [](const std::vector<std::string>& items) {
    const auto dump = ReadObjects(items);
    return dump ? "ok" : dump.error().message();
  };
  EXPECT_TRUE(error({}).starts_with("dump.json: there is neither a node nor a pod in it; write it with kubectl get"));
  EXPECT_EQ(error({NodeText("n"), NodeText("n")}),
            "dump.json:2:1: node \"n\" is there twice, first at dump.json:1:29; give every object once");
  EXPECT_EQ(error({PodText().Text(), PodText().Text()}),
            "dump.json:2:1: pod \"shop/web-1\" is there twice, first at dump.json:1:29; give every object once");
  EXPECT_EQ(error({R"({"metadata":{"name":"x"}})"}),
            "dump.json:1:29: items[0]: an object without a kind: use kubectl get -o json");
  EXPECT_EQ(error({PodText().Text(), PodText{.name = "b", .spec = R"(,"nodeSelector":{"a":1})"}.Text()}),
            "dump.json:2:1: items[1] (Pod shop/b): spec.nodeSelector.a: expected a string but found a number");
  EXPECT_TRUE(error({PodText{.spec = R"(,"tolerations":[{"key":"a","effect":"Never"}])"}.Text()})
                  .contains("(Pod shop/web-1): spec.tolerations[0]: unknown"));
  const Dump lost = MustRead({NodeText("n-1"), PodText{.node = "gone"}.Text()});
  EXPECT_EQ(lost.on_unknown_nodes, 1);
  EXPECT_TRUE(lost.pods[0].node.empty());
  EXPECT_EQ(lost.pods[0].missing_node, "gone");
}

TEST(DumpReader, TheOrderOfObjectsHasNoInfluence) {
  std::vector<std::string> items = {NodeText("n-1"), NodeText("n-2"), PodText{.name = "a", .node = "n-2"}.Text(),
                                    PodText{.name = "b", .requests = R"("cpu":"2")"}.Text()};
  const Dump one = MustRead(items);
  std::ranges::reverse(items);
  const Dump other = MustRead(items);
  ASSERT_EQ(one.pods.size(), other.pods.size());
  for (size_t i = 0; i < one.pods.size(); ++i) {
    EXPECT_EQ(one.pods[i].unit.id, other.pods[i].unit.id);
    EXPECT_EQ(one.kinds[one.pods[i].unit.kind.value()], other.kinds[other.pods[i].unit.kind.value()]);
  }
  EXPECT_EQ(one.nodes[0].node, other.nodes[0].node);
}

TEST(DumpReader, AGeneratedDumpIsReadAndFits) {
  std::string text;
  GenerateDump({.nodes = 40, .pods = 800, .pending = 10, .seed = 7}, [&](std::string_view piece) { text += piece; });
  std::string again;
  GenerateDump({.nodes = 40, .pods = 800, .pending = 10, .seed = 7}, [&](std::string_view piece) { again += piece; });
  EXPECT_EQ(text, again);
  const auto dump = ReadDumpText(text);
  ASSERT_TRUE(dump) << dump.error().message();
  EXPECT_EQ(dump->nodes.size(), 40u);
  EXPECT_EQ(dump->pods.size(), 800u);
  EXPECT_EQ(dump->daemon_sets.size(), 4u);
  std::map<std::string, model::Resources> used;
  int64_t pending = 0;
  for (const DumpPod& pod : dump->pods) {
    if (pod.node.empty()) {
      ++pending;
      continue;
    }
    model::Resources& sum = used[pod.node];
    sum = *model::Add(sum, dump->kinds[pod.unit.kind.value()].request);
  }
  EXPECT_GE(pending, 10);
  for (const DumpNode& node : dump->nodes) EXPECT_TRUE(node.node.total.Covers(used[node.node.id])) << node.node.id;
}

}  // namespace
}  // namespace muster::kube
