#include "kube/plan_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kube/catalogue_file.h"
#include "kube/dump_for_test.h"
#include "kube/pools.h"

namespace muster::kube {
namespace {

constexpr std::string_view kCatalogue = R"(
types:
- {name: m5.xlarge, resources: {cpu: 4, memory: 16Gi}, slots: 58, price: 0.2}
- {name: m5.2xlarge, resources: {cpu: 8, memory: 32Gi}, slots: 58, offers: [{price: 0.4}, {capacityType: spot, price: 0.1}]}
- {name: m6g.xlarge, arch: arm64, resources: {cpu: 4, memory: 16Gi}, slots: 58, price: 0.15}
)";

planner::Catalogue TestCatalogue() { return *ReadCatalogue(kCatalogue, "c.yaml"); }

Dump MustRead(const std::vector<std::string>& items) {
  auto dump = ReadObjects(items);
  EXPECT_TRUE(dump) << dump.error().message();
  return dump ? *dump : Dump();
}

PlanInput MustMake(const std::vector<std::string>& items, const PlanOptions& options = {}) {
  const Dump dump = MustRead(items);
  auto input = MakePlanInput(dump, {}, TestCatalogue(), options);
  EXPECT_TRUE(input) << input.error().message();
  return input ? *std::move(input) : PlanInput();
}

const planner::Candidate* Find(const std::vector<planner::Candidate>& candidates, std::string_view type,
                               std::string_view pool, std::string_view zone,
                               model::CapacityType capacity = model::CapacityType::kOnDemand) {
  for (const planner::Candidate& candidate : candidates) {
    if (candidate.type == type && candidate.pool == pool && candidate.zone == zone && candidate.capacity == capacity) {
      return &candidate;
    }
  }
  return nullptr;
}

TEST(Pools, NodesWithTheSameLastingLabelsAndTaints) {
  const Dump dump = MustRead(
      {NodeText("n-1", R"("eks.amazonaws.com/nodegroup":"general","topology.ebs.csi.aws.com/zone":"a")"),
       NodeText("n-2", R"("eks.amazonaws.com/nodegroup":"general","topology.ebs.csi.aws.com/zone":"b")",
                R"("taints":[{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}])", "m5.2xlarge", "b"),
       NodeText("n-3", R"("eks.amazonaws.com/nodegroup":"db")",
                R"("taints":[{"key":"dedicated","value":"db","effect":"NoSchedule"}])"),
       NodeText("n-4", R"("node-role.kubernetes.io/control-plane":"")")});
  const Pools pools = FindPools(dump, LabelsRead(dump));
  EXPECT_EQ(pools.of_node, (std::map<std::string, std::string>{{"n-1", "general"}, {"n-2", "general"}, {"n-3", "db"}}));
  ASSERT_EQ(pools.pools.size(), 2u);
  EXPECT_EQ(pools.pools[0].name, "db");
  EXPECT_EQ(pools.pools[0].taints.size(), 1u);
  EXPECT_TRUE(pools.pools[1].taints.empty()) << "a transient taint makes no pool";
}

// A label that no unit asks for makes no pool, whatever it says of each node.
TEST(Pools, LabelsThatNothingReadsMakeNone) {
  const auto nodes = [](std::vector<std::string> items) {
    for (int i = 0; i < 150; ++i) items.push_back(NodeText(fmt::format("n-{}", i), fmt::format(R"("rack":"r-{}")", i)));
    return MustRead(items);
  };
  const Dump unread = nodes({PodText{.node = "n-1"}.Text()});
  EXPECT_EQ(FindPools(unread, LabelsRead(unread)).pools.size(), 1u);
  for (const std::string_view spec :
       {R"(,"nodeSelector":{"rack":"r-1"})",
        R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[)"
        R"({"matchExpressions":[{"key":"rack","operator":"Exists"}]},{"matchFields":[{"key":"metadata.name",)"
        R"("operator":"In","values":["n-2"]}]}]}}})",
        R"(,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack","whenUnsatisfiable":"DoNotSchedule",)"
        R"("labelSelector":{"matchLabels":{"app":"web"}}}])",
        R"(,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack",)"
        R"("labelSelector":{"matchLabels":{"app":"web"}}}]}})"}) {
    const Dump read = nodes({PodText{.node = "n-1", .spec = spec}.Text()});
    const Pools pools = FindPools(read, LabelsRead(read));
    EXPECT_EQ(pools.pools.size(), kMostPools) << spec;
    EXPECT_EQ(pools.left_out, 22) << spec;
    const auto input = MakePlanInput(read, {}, TestCatalogue(), {});
    ASSERT_TRUE(input);
    EXPECT_EQ(
        input->notes.back(),
        "nodes of 150 makes, by labels that units ask for: machines are planned as the 128 with most nodes are made");
  }
}

// A workload file asks for a label of the nodes too.
TEST(Pools, LabelsThatWorkloadsReadMakePools) {
  const Dump dump = MustRead({NodeText("n-1", R"("disk":"fast")"), NodeText("n-2", R"("disk":"slow")")});
  const auto pools_with = [&](std::string_view requirements) {
    const auto file = model::ReadWorkloadFile(
        fmt::format("kind: Set\nname: web\nreplicas: 1\ntemplate: {{type: container, image: i, resources: {{cpu: 1, "
                    "memory: 1Gi}}{}}}\n",
                    requirements),
        "w.yaml");
    EXPECT_TRUE(file) << file.error().message();
    const auto input = MakePlanInput(dump, {*file}, TestCatalogue(), {});
    std::set<std::string> pools;
    for (const planner::Candidate& candidate : input->request.candidates) pools.insert(candidate.pool);
    return pools.size();
  };
  EXPECT_EQ(pools_with(""), 1u);
  EXPECT_EQ(pools_with(", requirements: [{key: disk, values: [fast]}]"), 2u);
}

TEST(Pools, CandidatesInEveryZoneOfTheDump) {
  const Dump dump =
      MustRead({NodeText("n-1", R"("pool":"general","topology.ebs.csi.aws.com/zone":"a")"),
                NodeText("n-2", R"("pool":"general","topology.ebs.csi.aws.com/zone":"b")", "", "m5.xlarge", "b")});
  const auto candidates = CandidatesFor(dump, FindPools(dump, LabelsRead(dump)), TestCatalogue());
  EXPECT_EQ(candidates.size(), 8u);
  const planner::Candidate* candidate = Find(candidates, "m5.2xlarge", "general", "b");
  ASSERT_NE(candidate, nullptr);
  EXPECT_EQ(candidate->labels.at("topology.ebs.csi.aws.com/zone"), "b");
  EXPECT_EQ(candidate->labels.at("topology.kubernetes.io/zone"), "b");
  EXPECT_EQ(candidate->labels.at("pool"), "general");
  EXPECT_FALSE(candidate->labels.contains("kubernetes.io/hostname"));
}

TEST(Pools, AllocatableSeenBeatsTheCatalogue) {
  // The node says 110 slots, the catalogue 58.
  const Dump dump = MustRead({NodeText("n-1")});
  const auto candidates = CandidatesFor(dump, FindPools(dump, LabelsRead(dump)), TestCatalogue());
  EXPECT_EQ(Find(candidates, "m5.xlarge", "pool", "a")->allocatable.Get("pods"), 110'000);
  EXPECT_EQ(Find(candidates, "m5.2xlarge", "pool", "a")->allocatable.Get("pods"), 58'000);
}

TEST(Pools, DaemonSetsAreTakenOffWhereTheyWouldRun) {
  const auto daemon = [](std::string_view name, std::string_view spec) {
    return fmt::format(
        R"({{"kind":"DaemonSet","metadata":{{"name":"{}","namespace":"kube-system"}},"spec":{{"template":{{"metadata":{{}},)"
        R"("spec":{{"containers":[{{"name":"a","resources":{{"requests":{{"cpu":"100m","memory":"1Gi"}}}}}}]{}}}}}}}}})",
        name, spec);
  };
  const Dump dump =
      MustRead({NodeText("n-1", R"("pool":"general")"),
                NodeText("n-2", R"("pool":"db")", R"("taints":[{"key":"db","effect":"NoSchedule"}])"),
                daemon("everywhere", R"(,"tolerations":[{"operator":"Exists"}])"), daemon("untainted", ""),
                daemon("arm", R"(,"nodeSelector":{"kubernetes.io/arch":"arm64"})")});
  const auto candidates = CandidatesFor(dump, FindPools(dump, LabelsRead(dump)), TestCatalogue());
  EXPECT_EQ(Find(candidates, "m5.xlarge", "general", "a")->allocatable.ToString(), "cpu=3800m memory=14Gi pods=108");
  EXPECT_EQ(Find(candidates, "m5.xlarge", "db", "a")->allocatable.ToString(), "cpu=3900m memory=15Gi pods=109");
  EXPECT_EQ(Find(candidates, "m6g.xlarge", "general", "a")->allocatable.ToString(), "cpu=3700m memory=13Gi pods=55");
}

TEST(Pools, StaticPodsAreTakenOffInTheirPool) {
  const Dump dump = MustRead({NodeText("n-1", R"("pool":"a")"), NodeText("n-2", R"("pool":"b")"),
                              PodText{.name = "proxy-n-1", .node = "n-1", .owner = "Node/n-1"}.Text()});
  const auto candidates = CandidatesFor(dump, FindPools(dump, LabelsRead(dump)), TestCatalogue());
  EXPECT_EQ(Find(candidates, "m5.xlarge", "a", "a")->allocatable.ToString(), "cpu=3 memory=15Gi pods=109");
  EXPECT_EQ(Find(candidates, "m5.xlarge", "b", "a")->allocatable.ToString(), "cpu=4 memory=16Gi pods=110");
}

TEST(Pools, SpotIsNeverPricedAsOnDemand) {
  const planner::Catalogue catalogue = TestCatalogue();
  const Dump dump = MustRead(
      {NodeText("a", "", "", "m5.2xlarge"), NodeText("b", R"("karpenter.sh/capacity-type":"spot")", "", "m5.2xlarge"),
       NodeText("c", R"("karpenter.sh/capacity-type":"spot")", "", "m5.xlarge"), NodeText("d", "", "", "unknown")});
  EXPECT_EQ(PriceOf(dump.nodes[0], catalogue), model::Money{400'000});
  EXPECT_EQ(PriceOf(dump.nodes[1], catalogue), model::Money{100'000});
  EXPECT_EQ(PriceOf(dump.nodes[2], catalogue), std::nullopt);
  EXPECT_EQ(PriceOf(dump.nodes[3], catalogue), std::nullopt);
}

TEST(PlanRequest, AUnitKeepsArchitectureAndTermsUnlessAllowed) {
  const std::vector<std::string> items = {NodeText("n-1"), PodText{.node = "n-1"}.Text()};
  const PlanInput strict = MustMake(items);
  EXPECT_EQ(strict.request.world.kinds[0].requirements,
            (std::vector<model::Requirement>{{"kubernetes.io/arch", model::Operator::kIn, {"amd64"}},
                                             {"kubernetes.io/os", model::Operator::kIn, {"linux"}},
                                             {"muster.io/capacity-type", model::Operator::kIn, {"on-demand"}}}));
  EXPECT_EQ(Find(strict.request.candidates, "m6g.xlarge", "pool", "a"), nullptr);
  EXPECT_EQ(Find(strict.request.candidates, "m5.2xlarge", "pool", "a", model::CapacityType::kSpot), nullptr);

  const PlanInput open = MustMake(items, {.allow = {"arm64", "spot"}});
  EXPECT_EQ(open.request.world.kinds[0].requirements[0].values, (std::vector<std::string>{"amd64", "arm64"}));
  EXPECT_EQ(open.request.world.kinds[0].requirements[2].values, (std::vector<std::string>{"on-demand", "spot"}));
  EXPECT_NE(Find(open.request.candidates, "m6g.xlarge", "pool", "a"), nullptr);
  EXPECT_NE(Find(open.request.candidates, "m5.2xlarge", "pool", "a", model::CapacityType::kSpot), nullptr);
}

TEST(PlanRequest, APendingPodGoesWhereItsOwnerRunsAndNeverToSpotByItself) {
  const std::string spot = NodeText("s-1", R"("karpenter.sh/capacity-type":"spot")");
  const PlanInput input = MustMake({NodeText("n-1"), spot, PodText{.name = "web-1", .node = "s-1"}.Text(),
                                    PodText{.name = "web-2"}.Text(), PodText{.name = "new", .owner = "Job/x"}.Text()});
  ASSERT_EQ(input.request.pending.size(), 2u);
  const auto terms = [&](const placement::Unit& unit) {
    return input.request.world.kinds[unit.kind.value()].requirements.back().values;
  };
  EXPECT_EQ(input.request.pending[0].id, "shop/new");
  EXPECT_EQ(terms(input.request.pending[0]), std::vector<std::string>{"on-demand"});
  EXPECT_EQ(terms(input.request.pending[1]), std::vector<std::string>{"spot"});
}

TEST(PlanRequest, WhatIsNotAUnit) {
  const PlanInput input = MustMake(
      {NodeText("n-1"), PodText{.name = "web", .node = "n-1"}.Text(),
       PodText{.name = "daemon", .node = "n-1", .owner = "DaemonSet/d"}.Text(),
       PodText{.name = "leaving", .node = "n-1", .metadata = R"(,"deletionTimestamp":"2026-06-01T00:00:00Z")"}.Text()},
      {.keep = planner::Keep::kNodes});
  EXPECT_EQ(input.units, 1);
  EXPECT_EQ(input.daemon_pods, 1);
  EXPECT_EQ(input.terminating_pods, 1);
  ASSERT_EQ(input.request.world.placed.size(), 1u);
  EXPECT_EQ(input.request.world.nodes[0].reserved.ToString(), "cpu=1 memory=1Gi pods=1");
}

TEST(PlanRequest, RequestsCanBeAssumed) {
  const std::vector<std::string> items = {NodeText("n-1"), PodText{.requests = ""}.Text()};
  const PlanInput bare = MustMake(items);
  EXPECT_EQ(bare.without_requests, 1);
  EXPECT_EQ(bare.request.world.kinds[0].request.ToString(), "pods=1");
  ASSERT_FALSE(bare.notes.empty());
  EXPECT_TRUE(bare.notes[0].starts_with("1 pod requests neither cpu nor memory, taken as needing nothing"));
  const PlanInput assumed = MustMake(items, {.assume_requests = *ParseAssumedRequests("cpu=100m,memory=128Mi")});
  EXPECT_EQ(assumed.request.world.kinds[0].request.ToString(), "cpu=100m memory=128Mi pods=1");
}

TEST(PlanRequest, WhatCannotMoveStaysInTheIdealFleet) {
  const PlanInput input = MustMake(
      {NodeText("cp", R"("node-role.kubernetes.io/control-plane":"")"), NodeText("n-1"), NodeText("n-2"),
       PodText{.name = "etcd", .node = "cp", .owner = ""}.Text(),
       PodText{.name = "tied", .node = "n-1", .spec = R"(,"nodeSelector":{"kubernetes.io/hostname":"n-1"})"}.Text(),
       PodText{.name = "web", .node = "n-2"}.Text()});
  ASSERT_EQ(input.fixed.size(), 2u);
  EXPECT_EQ(input.fixed[0].because, "it is a control plane");
  EXPECT_EQ(input.fixed[1].because, "pod shop/tied is tied to its name");
  EXPECT_EQ(input.units, 1);
  EXPECT_EQ(input.request.world.placed.size(), 3u);
  EXPECT_TRUE(input.request.nodes.at("cp").fixed);
  EXPECT_TRUE(input.request.nodes.at("n-1").fixed);
  EXPECT_FALSE(input.request.nodes.at("n-2").fixed);
}

// The database has a local volume and stays; what must be in its zone is planned there, and what its node's DaemonSet
// excludes does not come to that node.
TEST(PlanRequest, WhatStaysHasNeighboursInTheIdealFleet) {
  const auto affinity = [](std::string_view kind, std::string_view key, std::string_view app) {
    return fmt::format(
        R"(,"affinity":{{"{}":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"{}","labelSelector":)"
        R"({{"matchLabels":{{"app":"{}"}}}}}}]}}}})",
        kind, key, app);
  };
  const std::string near = affinity("podAffinity", "topology.kubernetes.io/zone", "db");
  const std::string alone = affinity("podAntiAffinity", "kubernetes.io/hostname", "batch");
  PlanInput input = MustMake(
      {NodeText("n-1", "", "", "m5.xlarge", "b"), NodeText("n-2"),
       R"({"kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{"local":{}}})",
       R"({"kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop"},"spec":{"volumeName":"pv"}})",
       PodText{.name = "db",
               .node = "n-1",
               .labels = R"("app":"db")",
               .spec = R"(,"volumes":[{"persistentVolumeClaim":{"claimName":"c"}}])"}
           .Text(),
       PodText{.name = "quiet", .node = "n-1", .owner = "DaemonSet/quiet", .labels = R"("app":"quiet")", .spec = alone}
           .Text(),
       PodText{.name = "web", .node = "n-2", .spec = near}.Text(),
       PodText{.name = "batch", .node = "n-2", .labels = R"("app":"batch")"}.Text()});
  ASSERT_EQ(input.request.residents.size(), 1u);
  input.request.exact = true;
  const auto plan = planner::MakePlan(input.request);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->unplaced.empty());
  const auto node_of = [&](std::string_view unit) {
    return std::ranges::find(plan->assignments, unit, &planner::Assignment::unit)->node;
  };
  EXPECT_EQ(node_of("shop/web"), "n-1") << "in the zone of the database, and its node has room";
  EXPECT_NE(node_of("shop/batch"), "n-1");
}

TEST(PlanRequest, WhyANodeHasToStay) {
  const auto because = [](const std::vector<std::string>& pods, std::string_view labels = "") {
    std::vector<std::string> items = pods;
    items.push_back(NodeText("n-1", labels));
    return MustMake(items, {.keep = planner::Keep::kNodes}).request.nodes.at("n-1").stays_because;
  };
  const auto budget = [](std::string_view name, int allowed) {
    return fmt::format(
        R"({{"kind":"PodDisruptionBudget","metadata":{{"name":"{}","namespace":"shop"}},"spec":{{"selector":)"
        R"({{"matchLabels":{{"app":"web"}}}}}},"status":{{"disruptionsAllowed":{}}}}})",
        name, allowed);
  };
  const std::string pod = PodText{.node = "n-1"}.Text();
  EXPECT_EQ(because({pod}), "");
  EXPECT_EQ(because({pod}, R"("node-role.kubernetes.io/master":"")"), "it is a control plane");
  EXPECT_EQ(because({PodText{.node = "n-1", .owner = ""}.Text()}),
            "pod shop/web-1 has no controller that would make it again");
  EXPECT_EQ(
      because({PodText{.node = "n-1", .metadata = R"(,"annotations":{"karpenter.sh/do-not-disrupt":"true"})"}.Text()}),
      "an annotation of pod shop/web-1 forbids its eviction");
  EXPECT_EQ(because({pod, budget("a", 1)}), "");
  EXPECT_EQ(because({pod, budget("a", 0)}), "disruption budget shop/a allows no eviction of pod shop/web-1");
  EXPECT_EQ(because({pod, budget("a", 1), budget("b", 1)}),
            "pod shop/web-1 is under two disruption budgets: no eviction is allowed");
  EXPECT_EQ(
      because(
          {pod, R"({"kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{"local":{}}})",
           R"({"kind":"PersistentVolumeClaim","metadata":{"name":"c","namespace":"shop"},"spec":{"volumeName":"pv"}})",
           PodText{.name = "db", .node = "n-1", .spec = R"(,"volumes":[{"persistentVolumeClaim":{"claimName":"c"}}])"}
               .Text()}),
      "pod shop/db has a local volume");
}

TEST(PlanRequest, WorkloadFilesBecomeUnits) {
  const auto file = model::ReadWorkloadFile(
      "kind: Set\nname: web\nreplicas: 3\ntemplate: {type: container, image: i, resources: {cpu: 1, gpu: 2}, "
      "spread: [{topologyKey: zone}]}\n---\nkind: Quota\ntenant: t\nlimits: {workloads: 2}\n",
      "w.yaml");
  ASSERT_TRUE(file) << file.error().message();
  const auto input = MakePlanInput({}, {*file}, TestCatalogue(), {});
  ASSERT_TRUE(input) << input.error().message();
  ASSERT_EQ(input->request.pending.size(), 3u);
  EXPECT_EQ(input->request.pending[2].id, "web-2");
  const placement::Kind& kind = input->request.world.kinds[0];
  EXPECT_EQ(kind.request.ToString(), "cpu=1 pods=1");
  EXPECT_EQ(kind.devices.whole, 2);
  // A workload that runs nowhere yet is taken to be made for the common architecture, and not for spot.
  EXPECT_EQ(kind.requirements,
            (std::vector<model::Requirement>{
                {"kubernetes.io/arch", model::Operator::kIn, {"amd64"}},
                {"kubernetes.io/os", model::Operator::kIn, {"linux"}},
                {"muster.io/capacity-type", model::Operator::kIn, {"bare-metal", "on-demand", "reserved"}}}));
  EXPECT_EQ(kind.spread[0].selector.all,
            (std::vector<model::Requirement>{{"muster.io/set", model::Operator::kIn, {"web"}}}));
  EXPECT_EQ(input->request.world.quotas.at("t").Get("workloads"), 2000);
  EXPECT_FALSE(MakePlanInput({}, {*file, *file}, TestCatalogue(), {}));
}

// A pod asks for nvidia.com/gpu, a workload for gpu: both are devices, and no machine gives its GPUs to both.
TEST(PlanRequest, GpusAreDevicesOfNodesAndOfWhatIsBought) {
  const auto catalogue = ReadCatalogue(
      "types:\n- {name: g, resources: {cpu: 16, memory: 64Gi, nvidia.com/gpu: 2}, slots: 58, price: 1}\n", "c.yaml");
  ASSERT_TRUE(catalogue) << catalogue.error().message();
  const auto file = model::ReadWorkloadFile(
      "kind: Set\nname: train\nreplicas: 1\ntemplate: {type: container, image: i, resources: {cpu: 1, gpu: 2}}\n---\n"
      "kind: Set\nname: part\nreplicas: 1\ntemplate: {type: container, image: i, resources: {cpu: 1, gpu-milli: "
      "250}}\n",
      "w.yaml");
  ASSERT_TRUE(file) << file.error().message();
  constexpr std::string_view kAllocatable = R"("allocatable":{)";
  std::string node = NodeText("g-1", "", "", "old-g");
  node.insert(node.find(kAllocatable) + kAllocatable.size(), R"("nvidia.com/gpu":"4",)");
  const Dump dump = MustRead(
      {node, PodText{.name = "serve", .node = "g-1", .requests = R"("nvidia.com/gpu":"1")"}.Text(),
       PodText{.name = "job", .requests = R"("nvidia.com/gpu":"2")"}.Text(),
       PodText{.name = "agent", .node = "g-1", .owner = "DaemonSet/agent", .requests = R"("nvidia.com/gpu":"1")"}
           .Text()});

  const auto kept = MakePlanInput(dump, {*file}, *catalogue, {.keep = planner::Keep::kNodes});
  ASSERT_TRUE(kept);
  const placement::Node& there = kept->request.world.nodes[0];
  EXPECT_EQ(there.devices, (std::vector<int32_t>{1000, 1000, 1000})) << "of 4, the DaemonSet has one";
  EXPECT_EQ(there.total.Get("nvidia.com/gpu"), 0);
  EXPECT_EQ(there.reserved.Get("nvidia.com/gpu"), 0);
  for (const placement::Kind& kind : kept->request.world.kinds) EXPECT_EQ(kind.request.Get("nvidia.com/gpu"), 0);
  for (const planner::Candidate& candidate : kept->request.candidates) {
    EXPECT_EQ(candidate.allocatable.Get("nvidia.com/gpu"), 0);
  }
  planner::Request exact = kept->request;
  exact.exact = true;
  const auto plan = planner::MakePlan(exact);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(plan->unplaced.empty());
  // Two devices are free on the node: one of the two pairs goes there, the other and the part are bought for.
  EXPECT_EQ(plan->machines.size(), 2u);
  const auto row = std::ranges::find(plan->utilisation, "devices", &planner::Utilisation::resource);
  ASSERT_NE(row, plan->utilisation.end());
  EXPECT_EQ(row->requested, 5250);
  EXPECT_EQ(row->allocatable, 7000);

  auto ideal = MakePlanInput(dump, {*file}, *catalogue, {.keep = planner::Keep::kNone});
  ASSERT_TRUE(ideal);
  ideal->request.exact = true;
  const auto fleet = planner::MakePlan(ideal->request);
  ASSERT_TRUE(fleet) << fleet.error().message();
  EXPECT_EQ(fleet->machines.size(), 3u) << "1 + 2 + 2 devices and a part, on machines of two";
}

TEST(PlanRequest, ATypeWithoutSlotsTakesWhatAKubeletDoes) {
  const auto catalogue = ReadCatalogue("types:\n- {name: a, resources: {cpu: 4, memory: 16Gi}, price: 1}\n", "c.yaml");
  const Dump dump = MustRead({NodeText("n-1"), PodText{.node = "n-1"}.Text()});
  const auto input = MakePlanInput(dump, {}, *catalogue, {});
  ASSERT_TRUE(input);
  ASSERT_EQ(input->request.candidates.size(), 1U);
  EXPECT_EQ(input->request.candidates[0].allocatable.Get("pods"), 110'000);
  EXPECT_EQ(input->notes.back(),
            "the catalogue does not say how many pods (slots) a take: 110 each, as a kubelet does by default");
  const auto plan = planner::MakePlan(input->request);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->unplaced.empty());
}

TEST(PlanRequest, QuotasAreComparedByName) {
  const auto file = model::ReadWorkloadFile(
      "kind: Set\nname: web\ntenant: t\nreplicas: 3\ntemplate: {type: container, image: i, resources: {cpu: 2, memory: "
      "1Gi}}\n---\nkind: Quota\ntenant: t\nlimits: {cpu: 5, workloads: 2}\n---\nkind: Quota\ntenant: calm\nlimits: "
      "{cpu: 5}\n",
      "w.yaml");
  ASSERT_TRUE(file) << file.error().message();
  const auto input = MakePlanInput({}, {*file}, TestCatalogue(), {});
  ASSERT_TRUE(input);
  EXPECT_EQ(input->notes,
            (std::vector<std::string>{"quota of tenant \"t\": 6 of cpu is asked for and 5 allowed; a "
                                      "scheduler lets the rest wait, the plan has room for all",
                                      "quota of tenant \"t\": 3 of workloads is asked for and 2 allowed; a "
                                      "scheduler lets the rest wait, the plan has room for all",
                                      "within quota: tenant \"calm\""}));
}

TEST(PlanRequest, ListsOnTheCommandLine) {
  EXPECT_EQ(ParseAllowed("arm64,spot"), (std::vector<std::string>{"arm64", "spot"}));
  EXPECT_EQ(ParseAllowed(""), std::vector<std::string>());
  EXPECT_TRUE(ParseAllowed("arm").error().message().starts_with("\"arm\" is none of amd64, arm64"));
  EXPECT_FALSE(ParseAssumedRequests("cpu"));
  EXPECT_FALSE(ParseAssumedRequests("cpu=x"));
  EXPECT_FALSE(ParseAssumedRequests("cpu=1,cpu=2"));
}

TEST(PlaceInput, ASchedulersView) {
  const Dump dump = MustRead(
      {NodeText("n-1"), PodText{.name = "a", .node = "n-1"}.Text(), PodText{.name = "b"}.Text(),
       PodText{.name = "d", .node = "n-1", .owner = "DaemonSet/d"}.Text(),
       PodText{.name = "t", .node = "n-1", .metadata = R"(,"deletionTimestamp":"2026-06-01T00:00:00Z")"}.Text()});
  const PlaceInput input = MakePlaceInput(dump);
  EXPECT_EQ(input.pending.size(), 1u);
  ASSERT_EQ(input.world.placed.size(), 3u);
  EXPECT_FALSE(input.world.placed[1].may_evict);
  EXPECT_TRUE(input.world.placed[2].terminating);
  EXPECT_TRUE(placement::CheckStructure(input.world).ok());
  EXPECT_TRUE(input.notes.empty());
}

TEST(PlaceInput, SaysWhatItTakesOtherwise) {
  const Dump dump = MustRead({NodeText("n-1"), PodText{.name = "a", .requests = ""}.Text(),
                              PodText{.name = "b", .spec = R"(,"schedulerName":"volcano")"}.Text(),
                              PodText{.name = "c", .node = "n-7"}.Text(),
                              PodText{.name = "d", .node = "n-1", .owner = "DaemonSet/d", .requests = ""}.Text()});
  const PlaceInput input = MakePlaceInput(dump);
  ASSERT_EQ(input.notes.size(), 3u);
  EXPECT_EQ(input.notes[0], "1 pod requests neither cpu nor memory, taken as needing nothing");
  EXPECT_EQ(input.notes[1], "pods on nodes that the dump does not have, taken as pending: 1");
  EXPECT_EQ(input.notes[2].substr(0, 10), "pods with ");
}

// Fourteen nodes that stay hide no other note.
TEST(PlanRequest, NodesThatStayAreOneNoteForEachReason) {
  std::vector<std::string> items = {NodeText("cp", R"("node-role.kubernetes.io/control-plane":"")")};
  std::vector<std::string> names;
  for (int i = 10; i < 24; ++i) {
    names.push_back(fmt::format("n-{}", i));
    const std::string selector = fmt::format(R"(,"nodeSelector":{{"kubernetes.io/hostname":"{}"}})", names.back());
    const std::string name = fmt::format("tied-{}", i);
    items.push_back(NodeText(names.back()));
    items.push_back(PodText{.name = name, .node = names.back(), .spec = selector}.Text());
  }
  const PlanInput input = MustMake(items);
  EXPECT_EQ(input.fixed.size(), 15u);
  EXPECT_EQ(input.notes,
            (std::vector<std::string>{"node cp stays: it is a control plane",
                                      "14 nodes stay, such as n-10: pod shop/tied-10 is tied to its name"}));
}

}  // namespace
}  // namespace muster::kube
