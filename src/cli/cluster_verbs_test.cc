#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/cluster_files.h"
#include "cli/fake_cluster_for_test.h"
#include "cli/halves.h"
#include "cli/live_world.h"
#include "host/temp_dir_for_test.h"

namespace muster::cli {
namespace {

using contract::ClusterReply;
using contract::ClusterRequest;

WallTime Ago(Duration age) { return WallTime(std::chrono::seconds(1'767'225'600)) - age; }

constexpr std::string_view kShop = R"(
kind: Set
name: web
replicas: 3
template: {type: process, command: [serve]}
---
kind: Quota
tenant: shop
limits: {workloads: 10}
---
kind: Workload
name: db
template: {type: process, command: [db]}
)";

class ClusterVerbs : public testing::Test {
 protected:
  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  void AnswerDone() {
    cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return contract::Done{}; };
  }
  // What is deleted is there for so many questions more.
  void AnswerGoneAfter(int looks) {
    cluster_.answer = [looks](const ClusterRequest& request) mutable -> Result<ClusterReply> {
      if (std::holds_alternative<contract::DeleteObject>(request)) return contract::Done{.message = "is being deleted"};
      const bool gone = looks-- <= 0;
      if (std::holds_alternative<contract::ListSets>(request)) {
        contract::SetView view;
        view.spec.name = std::get<contract::ListSets>(request).name;
        view.deleting = true;
        view.members = looks + 1;
        return gone ? contract::SetsListed{} : contract::SetsListed{.sets = {view}};
      }
      contract::WorkloadView view;
      view.desired = model::DesiredState::kDeleted;
      view.phase = model::WorkloadPhase::kRunning;
      view.node = "n1";
      if (gone) return Error(Code::kNotFound, "no");
      return view;
    };
  }
  void AnswerNotFound() {
    cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return Error(Code::kNotFound, "no"); };
  }

  host::TempDir dir_;
  FakeCluster cluster_;
};

// --- apply

TEST_F(ClusterVerbs, ApplyDeclaresEveryObjectQuotasFirst) {
  const std::string path = Write("shop.yaml", kShop);
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ApplyQuota>(request)) {
      return contract::Applied{.result = contract::ApplyResult::kConfigured};
    }
    const auto& spec = std::get<contract::ApplySpec>(request).spec;
    return contract::Applied{.result = contract::ApplyResult::kCreated,
                             .refusal = spec.name == "db" ? "1 node: cpu short by 1" : ""};
  };
  const Outcome outcome = RunMuster(cluster_, {"apply", "-f", path.c_str()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "quota/shop configured\n"
            "set/web created\n"
            "workload/db created; no node takes it yet: 1 node: cpu short by 1\n");
  const auto specs = cluster_.Asked<contract::ApplySpec>();
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].spec.replicas, 3);
  EXPECT_FALSE(specs[0].dry_run);
  EXPECT_FALSE(specs[0].expect);
}

TEST_F(ClusterVerbs, ADryRunAppliesNothing) {
  const std::string path = Write("shop.yaml", kShop);
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> {
    return contract::Applied{.result = contract::ApplyResult::kUnchanged};
  };
  const Outcome outcome = RunMuster(cluster_, {"apply", "--dry-run", "-f", path.c_str()});
  EXPECT_EQ(outcome.out,
            "quota/shop valid (dry run)\n"
            "set/web unchanged (dry run)\n"
            "workload/db unchanged (dry run)\n");
  EXPECT_TRUE(cluster_.Asked<contract::ApplyQuota>().empty());
  for (const contract::ApplySpec& asked : cluster_.Asked<contract::ApplySpec>()) EXPECT_TRUE(asked.dry_run);
}

// What has changed between the reading and the write is the scheduler's to refuse.
TEST_F(ClusterVerbs, ApplyOfAPlanSendsTheRevisionsThatItHasRead) {
  const std::string path = Write("shop.yaml", kShop);
  contract::SetView web;
  web.spec.name = "web";
  web.store_revision = 41;
  cluster_.answer = [&web](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListNodes>(request)) return contract::NodesListed{};
    if (std::holds_alternative<contract::ListWorkloads>(request)) return contract::WorkloadsListed{};
    if (std::holds_alternative<contract::ListSets>(request)) return contract::SetsListed{.sets = {web}};
    if (std::holds_alternative<contract::ListQuotas>(request)) return contract::QuotasListed{};
    return contract::Applied{};
  };
  cluster_.shard_answer = [](const contract::ShardRequest& request) -> Result<contract::ShardReply> {
    if (std::holds_alternative<contract::ListMachines>(request)) return contract::MachinesListed{};
    if (std::holds_alternative<contract::InspectNeeds>(request)) return contract::NeedsInspected{};
    return contract::ClustersListed{.clusters = {{.cluster_id = "home"}}};
  };
  RunningHalves halves(cluster_.Access(), {});
  const auto world = ReadLiveWorld(halves, "");
  ASSERT_TRUE(world.has_value()) << world.error().ToString();
  const std::string id = FormatPlanId(PlanIdOf(*world, *ReadWorkloadFiles({path})));

  EXPECT_EQ(RunMuster(cluster_, {"apply", "--plan-id", id.c_str(), "-f", path.c_str()}).err, "");
  const auto specs = cluster_.Asked<contract::ApplySpec>();
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].expect, 41) << "set/web";
  EXPECT_EQ(specs[1].expect, 0) << "workload/db must not exist";

  web.deleting = true;
  const Outcome moved = RunMuster(cluster_, {"apply", "--plan-id", id.c_str(), "-f", path.c_str()});
  EXPECT_EQ(moved.code, 1);
  EXPECT_TRUE(moved.err.contains("nothing was applied: the cluster's workloads changed")) << moved.err;
  EXPECT_EQ(cluster_.Asked<contract::ApplySpec>().size(), 2u);
}

TEST_F(ClusterVerbs, ARefusedObjectDoesNotStopTheOthers) {
  const std::string path = Write("shop.yaml", kShop);
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    const auto* apply = std::get_if<contract::ApplySpec>(&request);
    if (apply != nullptr && apply->spec.name == "web") {
      return Error(Code::kResourceExhausted, "tenant shop: workloads 9 of 10 in use, 3 more asked for");
    }
    return contract::Applied{.result = contract::ApplyResult::kCreated};
  };
  const Outcome outcome = RunMuster(cluster_, {"apply", "-f", path.c_str()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "quota/shop created\nworkload/db created\n");
  EXPECT_EQ(outcome.err, "muster: set/web: tenant shop: workloads 9 of 10 in use, 3 more asked for\n");
}

TEST_F(ClusterVerbs, AWrongFileChangesNothing) {
  const std::string good = Write("a.yaml", kShop);
  const std::string bad = Write("b.yaml", "kind: Set\nname: web\n");
  const Outcome outcome = RunMuster(cluster_, {"apply", "-f", good.c_str(), "-f", bad.c_str()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("b.yaml:1:1: replicas"), std::string::npos) << outcome.err;
  EXPECT_TRUE(cluster_.asked.empty());
  EXPECT_EQ(RunMuster(cluster_, {"apply"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"apply", "-f", (dir_.path() + "/none.yaml").c_str()}).code, 1);
}

TEST_F(ClusterVerbs, ADirectoryIsAllItsFiles) {
  Write("b.yaml", "kind: Workload\nname: b\ntemplate: {type: process, command: [b]}\n");
  Write("a.json", R"({"kind": "Workload", "name": "a", "template": {"type": "process", "command": ["a"]}})");
  Write("notes.txt", "not ours");
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return contract::Applied{}; };
  EXPECT_EQ(RunMuster(cluster_, {"apply", "-f", dir_.path().c_str()}).out,
            "workload/a unchanged\nworkload/b unchanged\n");
}

// --- delete

TEST_F(ClusterVerbs, DeleteTakesNamesAndFiles) {
  AnswerGoneAfter(0);
  EXPECT_EQ(RunMuster(cluster_, {"delete", "set/web", "job/batch", "quota/shop"}).out,
            "quota/shop deleted: is being deleted\nset/web deleted\nset/batch deleted\n");
  AnswerDone();
  EXPECT_EQ(RunMuster(cluster_, {"delete", "node", "n1", "--force"}).out, "node/n1 deleted\n");
  EXPECT_TRUE(cluster_.Asked<contract::DeleteObject>().back().force);
  const std::string path = Write("shop.yaml", kShop);
  AnswerGoneAfter(0);
  EXPECT_EQ(RunMuster(cluster_, {"delete", "-f", path.c_str()}).out,
            "quota/shop deleted: is being deleted\nset/web deleted\nworkload/db deleted\n");
  EXPECT_EQ(RunMuster(cluster_, {"delete", "-f", path.c_str(), "set/web"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"delete", "set"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"delete", "event/e1"}).code, 2);
}

TEST_F(ClusterVerbs, DeletingWhatIsNotThereIsAnErrorUnlessIgnored) {
  AnswerNotFound();
  const Outcome outcome = RunMuster(cluster_, {"delete", "set/web"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "muster: set/web does not exist; muster get sets lists those that do\n");
  EXPECT_EQ(RunMuster(cluster_, {"delete", "set/web", "--ignore-not-found"}).code, 0);
}

TEST_F(ClusterVerbs, ADeletionIsSaidOnceItIsDone) {
  AnswerGoneAfter(12);
  const Outcome set = RunMuster(cluster_, {"delete", "set/web"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_EQ(set.out, "set/web deleted\n");
  EXPECT_EQ(cluster_.Asked<contract::ListSets>().size(), 13u);
  EXPECT_EQ(set.err, "deleting set/web 83%, 2 s\n") << "from two seconds on";
  AnswerGoneAfter(2);
  EXPECT_EQ(RunMuster(cluster_, {"delete", "workload/db"}).out, "workload/db deleted\n");
  AnswerGoneAfter(1000);
  cluster_.asked.clear();
  EXPECT_EQ(RunMuster(cluster_, {"delete", "set/web", "workload/db", "--no-wait"}).out,
            "set/web is being deleted\nworkload/db is being deleted\n");
  EXPECT_EQ(cluster_.asked.size(), 2u) << "nothing is looked at";
}

TEST_F(ClusterVerbs, ADeletionThatTakesTooLongSaysWhatIsLeft) {
  AnswerGoneAfter(1000);
  const Outcome set = RunMuster(cluster_, {"delete", "set/web", "--timeout", "1s"});
  EXPECT_EQ(set.code, 1);
  EXPECT_EQ(set.out, "");
  EXPECT_EQ(set.err,
            "muster: set/web is not gone after 1s: 995 members are left; it goes on being deleted, and muster describe "
            "set/web says more\n");
  const Outcome both = RunMuster(cluster_, {"delete", "workload/db", "workload/other", "--timeout", "1s"});
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(both.err,
            "muster: workload/db is not gone after 1s: it is Running on node n1; it goes on being deleted, and muster "
            "describe workload/db says more\n"
            "muster: workload/other is not gone after 1s: it is Running on node n1; it goes on being deleted, and "
            "muster describe workload/other says more\n");
  EXPECT_EQ(RunMuster(cluster_, {"delete", "set/web", "--timeout", "1"}).code, 2);
}

TEST_F(ClusterVerbs, WhatIsMadeAgainUnderItsNameIsNotWaitedFor) {
  std::string set = "web";
  cluster_.answer = [&](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::DeleteObject>(request)) return contract::Done{};
    contract::WorkloadView view;
    view.set = set;
    return view;
  };
  EXPECT_EQ(RunMuster(cluster_, {"delete", "workload/web-0"}).out,
            "workload/web-0 deleted; set/web has made it again\n");
  set.clear();
  const Outcome applied = RunMuster(cluster_, {"delete", "workload/db"});
  EXPECT_EQ(applied.code, 1);
  EXPECT_EQ(applied.err, "muster: workload/db was applied again, and is not deleted\n");
}

// --- orders

TEST_F(ClusterVerbs, OrdersNameTheirObjects) {
  AnswerDone();
  EXPECT_EQ(RunMuster(cluster_, {"retry", "web-0", "workload/web-1"}).out,
            "workload/web-0 is tried again\nworkload/web-1 is tried again\n");
  EXPECT_EQ(RunMuster(cluster_, {"cordon", "n1", "--reason", "disk"}).out, "node/n1 cordoned\n");
  EXPECT_EQ(RunMuster(cluster_, {"uncordon", "node/n1"}).out, "node/n1 uncordoned\n");
  EXPECT_EQ(RunMuster(cluster_, {"accept", "node", "n1"}).out, "node/n1 accepted\n");
  EXPECT_EQ(RunMuster(cluster_, {"scale", "set/web", "--replicas", "0"}).out, "set/web scaled to 0\n");
  const auto cordons = cluster_.Asked<contract::CordonNode>();
  ASSERT_EQ(cordons.size(), 2u);
  EXPECT_TRUE(cordons[0].cordoned);
  EXPECT_EQ(cordons[0].reason, "disk");
  EXPECT_FALSE(cordons[1].cordoned);
  EXPECT_EQ(cluster_.Asked<contract::RetryWorkload>().size(), 2u);
  EXPECT_EQ(cluster_.Asked<contract::AcceptNode>().size(), 1u);
  EXPECT_EQ(cluster_.Asked<contract::ScaleSet>().at(0).replicas, 0);

  EXPECT_EQ(RunMuster(cluster_, {"scale", "set/web"}).code, 2);
  const Outcome too_many = RunMuster(cluster_, {"scale", "set/web", "--replicas", "2000000000"});
  EXPECT_EQ(too_many.code, 2);
  EXPECT_EQ(too_many.err, "muster: --replicas: 2000000000 are too many; a set has at most 100000\n");
  EXPECT_EQ(cluster_.Asked<contract::ScaleSet>().size(), 1u);
  EXPECT_EQ(RunMuster(cluster_, {"cordon"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"cordon", "set/web"}).code, 2);
  AnswerNotFound();
  EXPECT_EQ(RunMuster(cluster_, {"cordon", "n9"}).err,
            "muster: node/n9 does not exist; muster get nodes lists those that do\n");
}

TEST_F(ClusterVerbs, ADrainWaitsUntilTheNodeIsEmpty) {
  int32_t left = 3;
  cluster_.answer = [&](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::DrainNode>(request)) return contract::Done{};
    contract::NodeView view;
    view.node = "n1";
    view.draining = true;
    view.workloads = left;
    left = std::max(0, left - 2);
    return view;
  };
  const Outcome outcome = RunMuster(cluster_, {"drain", "n1", "--grace", "30s", "--reason", "kernel"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "node/n1 is cordoned; its workloads are being moved away\n"
            "node/n1: 3 workloads left\n"
            "node/n1: 1 workload left\n"
            "node/n1 drained\n");
  EXPECT_EQ(cluster_.Asked<contract::DrainNode>().at(0).grace, 30s);
  EXPECT_EQ(cluster_.Asked<contract::DrainNode>().at(0).reason, "kernel");
}

TEST_F(ClusterVerbs, ADrainThatTakesTooLongSaysWhatIsLeft) {
  bool draining = true;
  cluster_.answer = [&](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::DrainNode>(request)) return contract::Done{};
    contract::NodeView view;
    view.draining = draining;
    view.workloads = 2;
    return view;
  };
  const Outcome late = RunMuster(cluster_, {"drain", "n1", "--timeout", "5s"});
  EXPECT_EQ(late.code, 1);
  EXPECT_EQ(late.err,
            "muster: node/n1 still has 2 workloads after 5s; it stays cordoned, and the drain goes on; muster get "
            "workloads --node n1 lists them\n");
  const Outcome not_waited = RunMuster(cluster_, {"drain", "n1", "--no-wait"});
  EXPECT_EQ(not_waited.code, 0) << not_waited.err;
  EXPECT_EQ(not_waited.out, "node/n1 is cordoned; its workloads are being moved away\n");
  draining = false;
  EXPECT_EQ(RunMuster(cluster_, {"drain", "n1"}).err,
            "muster: node/n1 is no longer being drained; 2 workloads are left there\n");
  EXPECT_EQ(RunMuster(cluster_, {"drain", "n1", "--grace", "30"}).code, 2);
}

// --- roll-out

contract::SetView Set(int32_t current, int32_t available, int32_t members = 3) {
  contract::SetView view;
  view.spec.kind = model::WorkloadKind::kSet;
  view.spec.name = "web";
  view.spec.replicas = 3;
  view.members = members;
  view.current = current;
  view.available = available;
  return view;
}

// A member whose attempts are over.
contract::WorkloadView GivenUp(const std::string& name, const std::string& revision) {
  contract::WorkloadView view;
  view.workload = name;
  view.revision = revision;
  view.phase = model::WorkloadPhase::kFailed;
  view.attempts = 5;
  view.message = "exit code 3";
  return view;
}

TEST_F(ClusterVerbs, ARolloutIsFollowedToItsEnd) {
  std::vector<contract::SetView> views = {Set(1, 0), Set(1, 0), Set(3, 2, 4), Set(3, 3)};
  size_t next = 0;
  cluster_.answer = [&](const ClusterRequest&) -> Result<ClusterReply> {
    return contract::SetsListed{.sets = {views.at(next++)}};
  };
  const Outcome outcome = RunMuster(cluster_, {"rollout", "status", "set/web"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "set/web: 1 of 3 members have the revision, 0 are available\n"
            "set/web: 3 of 3 members have the revision, 2 are available, 1 to be removed\n"
            "set/web: 3 of 3 members have the revision, 3 are available; rolled out\n");
}

TEST_F(ClusterVerbs, ARolloutThatIsNotDoneEndsWithOne) {
  // Two members of the template before have failed, and are replaced.
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListWorkloads>(request)) {
      EXPECT_EQ(std::get<contract::ListWorkloads>(request).set, "web");
      return contract::WorkloadsListed{.workloads = {GivenUp("web-1", "r0"), GivenUp("web-2", "r0")}};
    }
    contract::SetView view = Set(3, 1);
    view.revision = "r1";
    view.failed = 2;
    return contract::SetsListed{.sets = {view}};
  };
  const Outcome once = RunMuster(cluster_, {"rollout", "status", "web", "--once"});
  EXPECT_EQ(once.code, 1);
  EXPECT_EQ(once.out, "set/web: 3 of 3 members have the revision, 1 are available, 2 failed\n");
  const Outcome late = RunMuster(cluster_, {"rollout", "status", "web", "--timeout", "1m"});
  EXPECT_EQ(late.code, 1);
  EXPECT_EQ(late.err, "muster: set/web is not rolled out after 1m; muster describe set/web shows its members\n");
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return contract::SetsListed{}; };
  EXPECT_EQ(RunMuster(cluster_, {"rollout", "status", "web"}).err,
            "muster: set/web does not exist; muster get sets lists those that do\n");
}

TEST_F(ClusterVerbs, ARolloutThatCannotEndIsNotWaitedFor) {
  std::vector<contract::WorkloadView> members = {GivenUp("web-0", "r0"), GivenUp("web-1", "r1")};
  model::WorkloadKind kind = model::WorkloadKind::kSet;
  cluster_.answer = [&](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListWorkloads>(request))
      return contract::WorkloadsListed{.workloads = members};
    contract::SetView view = Set(3, 1);
    view.spec.kind = kind;
    view.revision = "r1";
    view.failed = 2;
    return contract::SetsListed{.sets = {view}};
  };
  const Outcome one = RunMuster(cluster_, {"rollout", "status", "web"});
  EXPECT_EQ(one.code, 1);
  EXPECT_EQ(
      one.err,
      "muster: set/web comes to no end: 1 member was given up, web-1 after 5 attempts: exit code 3; muster explain "
      "web-1 says more, muster retry web-1 tries it again\n");
  members.push_back(GivenUp("web-2", "r1"));
  kind = model::WorkloadKind::kJob;
  const Outcome two = RunMuster(cluster_, {"rollout", "status", "job/web"});
  EXPECT_EQ(two.code, 1);
  EXPECT_TRUE(
      two.err.starts_with("muster: job/web comes to no end: 2 members were given up, the first web-1 after 5 "
                          "attempts: exit code 3;"))
      << two.err;
}

// A scheduler restarts, or hands over, while somebody waits.
TEST_F(ClusterVerbs, WaitingGoesOnWhileNoSchedulerAnswers) {
  int asked = 0;
  const auto away = [&](int from, int until, const FakeCluster::Answer& answer) {
    asked = 0;
    cluster_.answer = [&asked, from, until, answer](const ClusterRequest& request) -> Result<ClusterReply> {
      ++asked;
      if (asked >= from && asked < until) return Error(Code::kUnavailable, "no leader");
      return answer(request);
    };
  };
  const std::string note =
      "scheduler 127.0.0.1:8085: no leader; is it running? Name another one with --scheduler; waiting goes on\n";
  int left = 2;
  const auto deletes = [&left](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::DeleteObject>(request)) return contract::Done{};
    if (left-- <= 0) return Error(Code::kNotFound, "gone");
    contract::WorkloadView view;
    view.desired = model::DesiredState::kDeleted;
    return view;
  };
  away(2, 5, deletes);
  const Outcome deleted = RunMuster(cluster_, {"delete", "workload/db", "--scheduler", "127.0.0.1:8085"});
  EXPECT_EQ(deleted.code, 0) << deleted.err;
  EXPECT_EQ(deleted.out, "workload/db deleted\n");
  EXPECT_EQ(deleted.err, note) << "once for each outage";
  EXPECT_EQ(asked, 7);
  away(2, 1000, deletes);
  const Outcome late =
      RunMuster(cluster_, {"delete", "workload/db", "--timeout", "1s", "--scheduler", "127.0.0.1:8085"});
  EXPECT_EQ(late.code, 1);
  EXPECT_TRUE(late.err.contains("workload/db is not gone after 1s: scheduler 127.0.0.1:8085: no leader;")) << late.err;

  const auto rolls = [&left](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListWorkloads>(request)) return contract::WorkloadsListed{};
    contract::SetView view = Set(3, left-- <= 0 ? 3 : 1);
    view.failed = 1;  // its members are asked for too
    return contract::SetsListed{.sets = {view}};
  };
  for (const auto& [looks, from] : {std::pair(1, 3), std::pair(2, 4)}) {  // asked of the set, and of its members
    left = looks;
    away(from, 6, rolls);
    const Outcome rolled = RunMuster(cluster_, {"rollout", "status", "set/web", "--scheduler", "127.0.0.1:8085"});
    EXPECT_EQ(rolled.code, 0) << rolled.err;
    EXPECT_TRUE(rolled.out.ends_with("; rolled out\n")) << rolled.out;
    EXPECT_EQ(rolled.err, note);
  }
  away(1, 2, rolls);
  EXPECT_EQ(RunMuster(cluster_, {"rollout", "status", "set/web"}).code, 1) << "nobody has ever answered there";
  away(3, 1000,
       [](const ClusterRequest&) -> Result<ClusterReply> { return contract::SetsListed{.sets = {Set(3, 1)}}; });
  const Outcome never = RunMuster(cluster_, {"rollout", "status", "set/web", "--timeout", "5s"});
  EXPECT_EQ(never.code, 1);
  EXPECT_TRUE(never.err.contains("set/web is not rolled out after 5s: scheduler ")) << never.err;

  const auto drains = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::DrainNode>(request)) return contract::Done{};
    return contract::NodeView{};
  };
  away(2, 4, drains);
  const Outcome drained = RunMuster(cluster_, {"drain", "n1", "--scheduler", "127.0.0.1:8085"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_TRUE(drained.out.ends_with("node/n1 drained\n")) << drained.out;
  EXPECT_EQ(drained.err, note);
}

TEST_F(ClusterVerbs, AJobIsDoneWhenItsCompletionsAre) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> {
    contract::SetView view = Set(3, 0);
    view.spec.kind = model::WorkloadKind::kJob;
    view.completed = 3;
    return contract::SetsListed{.sets = {view}};
  };
  EXPECT_EQ(RunMuster(cluster_, {"rollout", "status", "job/web"}).out, "job/web: 3 of 3 completed, 0 running; done\n");
}

TEST_F(ClusterVerbs, ARestartSaysHowToFollowIt) {
  AnswerDone();
  EXPECT_EQ(RunMuster(cluster_, {"rollout", "restart", "set/web"}).out,
            "set/web restarts; muster rollout status set/web follows it\n");
  EXPECT_EQ(cluster_.Asked<contract::RestartSet>().at(0).set, "web");
}

// --- quotas

TEST_F(ClusterVerbs, AQuotaIsChangedInWhatIsGiven) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ApplyQuota>(request)) {
      return contract::Applied{.result = contract::ApplyResult::kConfigured};
    }
    return contract::QuotasListed{
        .quotas = {{.quota = {.tenant = "shop", .limits = {{"cpu", 1'000}, {"gpu", 1'000}}, .workloads = 5}}}};
  };
  EXPECT_EQ(RunMuster(cluster_, {"quota", "shop", "--limit", "cpu=100", "--limit", "gpu=none", "--limit", "workloads=7",
                                 "--rate", "2.5", "--burst", "10"})
                .out,
            "quota/shop configured\n");
  const model::Quota set = cluster_.Asked<contract::ApplyQuota>().at(0).quota;
  EXPECT_EQ(
      set,
      (model::Quota{
          .tenant = "shop", .limits = {{"cpu", 100'000}}, .workloads = 7, .applies_milli_hz = 2'500, .burst = 10}));
  EXPECT_EQ(RunMuster(cluster_, {"quota", "--limit", "cpu=1"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"quota", "shop", "--limit", "pods=1"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"quota", "shop", "--limit", "cpu=4x"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"quota", "shop", "--limit", "workloads=0.5"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"quota"}).out,
            "TENANT  CPU  MEMORY  DISK  GPU  WORKLOADS  RATE\n"
            "shop    0/1  -       -     0/1  0/5        -\n");
}

// --- describe and explain

contract::Explanation Explained() {
  contract::Explanation explanation;
  contract::WorkloadView& view = explanation.workload;
  view.workload = "web-7";
  view.set = "web";
  view.type = model::WorkloadType::kProcess;
  view.reason = "fit.memory";
  view.message = "3 nodes: memory short by 2Gi";
  view.revision = "r1";
  view.attempts = 0;
  view.max_attempts = 5;
  view.spec.command = {"serve", "--all"};
  view.spec.resources = {{"cpu", 500}};
  view.created_at = Ago(10min);
  explanation.story = {"applied 10m ago", "no node fits since then"};
  explanation.nodes = {{.node = "n1", .reason = "fit.memory", .detail = "memory short by 2Gi"},
                       {.node = "n2", .reason = "label", .detail = "zone=b is asked for"},
                       {.node = "n3", .reason = "fit.memory", .detail = "memory short by 1Gi"},
                       {.node = "n4", .reason = "fit.memory", .detail = "memory short by 1Gi"},
                       {.node = "n5", .reason = "fit.memory", .detail = "memory short by 1Gi"}};
  explanation.events = {{.id = "e1", .type = "WorkloadScheduled", .workload = "web-7", .at = Ago(10min)}};
  return explanation;
}

TEST_F(ClusterVerbs, ExplainSummarisesRefusalsByClass) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return Explained(); };
  const Outcome outcome = RunMuster(cluster_, {"explain", "workload", "web-7"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "workload web-7 is Pending and has no node: 3 nodes: memory short by 2Gi\n"
            "  a member of set web, asks for cpu=500m, priority 0\n"
            "  applied 10m ago\n"
            "  no node fits since then\n"
            "placement: 0 of 5 nodes would take it now\n"
            "  NODES  REASON      DETAIL               WHICH\n"
            "  4      fit.memory  memory short by 2Gi  n1, n3, n4 and 1 more\n"
            "  1      label       zone=b is asked for  n2\n"
            "shard: no answer, so that the chain ends here: no shard is known\n");
  EXPECT_NE(RunMuster(cluster_, {"explain", "workload", "web-7", "-o", "wide"})
                .out.find("n3    fit.memory  memory short by 1Gi\n"),
            std::string::npos);
  const std::string json = RunMuster(cluster_, {"explain", "workload", "web-7", "-o", "json"}).out;
  EXPECT_NE(json.find(R"("nodes":[{"node":"n1","fits":false,"reason":"fit.memory","detail":"memory short by 2Gi"},)"),
            std::string::npos)
      << json;
}

TEST_F(ClusterVerbs, ExplainTakesWhatOtherVerbsTake) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ExplainWorkload>(request)) return Explained();
    return Error(Code::kNotFound, "no");
  };
  const std::string whole = RunMuster(cluster_, {"explain", "workload", "web-7"}).out;
  EXPECT_TRUE(whole.starts_with("workload web-7 is Pending")) << whole;
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"explain", "web-7"},
                                             {"explain", "workload/web-7"},
                                             {"explain", "wl/web-7"},
                                             {"explain", "workloads", "web-7"},
                                             {"explain", "member/web-7"},
                                             {"explain", "workload", "workload/web-7"}}) {
    EXPECT_EQ(RunMuster(cluster_, words).out, whole) << words[1];
  }
  for (const contract::ExplainWorkload& asked : cluster_.Asked<contract::ExplainWorkload>()) {
    EXPECT_EQ(asked.workload, "web-7");
  }
  // A flag holds wherever it stands.
  const std::string json = RunMuster(cluster_, {"explain", "workload", "web-7", "-o", "json"}).out;
  EXPECT_EQ(RunMuster(cluster_, {"explain", "web-7", "-o", "json"}).out, json);
  EXPECT_EQ(RunMuster(cluster_, {"explain", "-o", "json", "workload", "web-7"}).out, json);
  EXPECT_TRUE(json.starts_with("{")) << json;

  const Outcome set = RunMuster(cluster_, {"explain", "set/web"});
  EXPECT_EQ(set.code, 2);
  EXPECT_EQ(set.err, "muster: a set is explained by its members: muster describe set/NAME lists them\n");
  const Outcome unknown = RunMuster(cluster_, {"explain", "pod/web-7"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(unknown.err.contains("\"pod\" is nothing that can be explained")) << unknown.err;
  EXPECT_EQ(RunMuster(cluster_, {"explain"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"explain", "workload/"}).code, 2);
  EXPECT_EQ(RunMuster(cluster_, {"explain", "node/n9"}).code, 1);
}

TEST_F(ClusterVerbs, DescribeTellsTheStoryOfAWorkload) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> { return Explained(); };
  const Outcome outcome = RunMuster(cluster_, {"describe", "workload/web-7"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "Name:      web-7\n"
            "Set:       web\n"
            "Type:      process\n"
            "Runs:      serve --all\n"
            "Status:    Pending (wanted Running, seen Unknown)\n"
            "Reason:    fit.memory\n"
            "Message:   3 nodes: memory short by 2Gi\n"
            "Revision:  r1\n"
            "Attempts:  0 of 5\n"
            "Requests:  cpu=500m\n"
            "Created:   2025-12-31T23:50:00.000Z (10m ago)\n"
            "Story:\n"
            "  applied 10m ago\n"
            "  no node fits since then\n"
            "Nodes:\n"
            "  NODES  REASON      DETAIL               WHICH\n"
            "  4      fit.memory  memory short by 2Gi  n1, n3, n4 and 1 more\n"
            "  1      label       zone=b is asked for  n2\n"
            "Events:\n"
            "  AGE  TYPE               NODE  REASON\n"
            "  10m  WorkloadScheduled  -     -\n");
  EXPECT_TRUE(cluster_.read.empty());
}

TEST_F(ClusterVerbs, DescribeShowsTheLastLinesOfWhatRuns) {
  cluster_.answer = [](const ClusterRequest&) -> Result<ClusterReply> {
    contract::Explanation explanation = Explained();
    explanation.workload.node = "n1";
    return explanation;
  };
  cluster_.logs = {{.data = "ready\nport 80\x1b[0m\n"}};
  EXPECT_TRUE(RunMuster(cluster_, {"describe", "workload", "web-7"})
                  .out.ends_with("Last lines:\n  ready\n  port 80\\x1b[0m\n"));
  EXPECT_EQ(cluster_.read.at(0).tail, 10);
  cluster_.logs_end = Status(Code::kUnavailable, "node n1 cannot be reached");
  EXPECT_TRUE(RunMuster(cluster_, {"describe", "workload", "web-7"})
                  .out.ends_with("Last lines:\n  not available: node n1 cannot be reached\n"));
}

TEST_F(ClusterVerbs, DescribeShowsANodeWithItsWorkloads) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListWorkloads>(request)) {
      EXPECT_EQ(std::get<contract::ListWorkloads>(request).node, "n1");
      contract::WorkloadView workload;
      workload.workload = "web-0";
      workload.spec.resources = {{"cpu", 500}};
      return contract::WorkloadsListed{.workloads = {workload}};
    }
    if (std::holds_alternative<contract::ListEvents>(request)) return contract::EventsListed{};
    contract::NodeView view;
    view.node = "n1";
    view.status = model::NodeStatus::kReady;
    view.status_reason = "registered";
    view.status_updated_by = "register";
    view.cordoned = true;
    view.endpoint = "10.0.0.1:50051";
    view.native = true;
    view.epoch = 2;
    view.total = {{"cpu", 4'000}};
    view.reserved = {{"cpu", 500}};
    view.available = {{"cpu", 3'500}};
    view.orphans_held = 9;
    return view;
  };
  const Outcome outcome = RunMuster(cluster_, {"describe", "node", "n1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "Name:      n1\n"
            "Status:    Ready,Cordoned\n"
            "Reason:    registered by register\n"
            "Endpoint:  10.0.0.1:50051\n"
            "Agent:     unknown version, epoch 2\n"
            "Orphans:   9 workloads that the store does not hold are left alone; muster accept node n1 deletes them\n"
            "Resources:\n"
            "  RESOURCE  TOTAL  RESERVED  USED  AVAILABLE\n"
            "  cpu       4      500m      0     3500m\n"
            "Workloads:\n"
            "  NAME   SET  STATUS   REQUESTS\n"
            "  web-0  -    Pending  cpu=500m\n");
}

TEST_F(ClusterVerbs, DescribeShowsASetWithItsMembers) {
  cluster_.answer = [](const ClusterRequest& request) -> Result<ClusterReply> {
    if (std::holds_alternative<contract::ListSets>(request)) return contract::SetsListed{.sets = {Set(2, 1)}};
    contract::WorkloadView member;
    member.workload = "web-0";
    member.set = "web";
    return contract::WorkloadsListed{.workloads = {member}};
  };
  const std::string out = RunMuster(cluster_, {"describe", "set/web"}).out;
  EXPECT_NE(out.find("Members:  1 of 3 available, 2 with this revision, 0 failed\n"), std::string::npos) << out;
  EXPECT_NE(out.find("Members:\n  NAME   SET  STATUS"), std::string::npos) << out;
}

TEST_F(ClusterVerbs, EveryVerbHasAnExample) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{{"apply"},
                                                                                     {"delete"},
                                                                                     {"get"},
                                                                                     {"describe"},
                                                                                     {"events"},
                                                                                     {"logs"},
                                                                                     {"scale"},
                                                                                     {"rollout"},
                                                                                     {"rollout", "status"},
                                                                                     {"rollout", "restart"},
                                                                                     {"retry"},
                                                                                     {"cordon"},
                                                                                     {"uncordon"},
                                                                                     {"drain"},
                                                                                     {"accept", "node"},
                                                                                     {"quota"},
                                                                                     {"explain", "workload"}}) {
    std::vector<const char*> asked = words;
    asked.push_back("--help");
    const Outcome outcome = RunMuster(cluster_, asked);
    EXPECT_EQ(outcome.code, 0) << words.back();
    EXPECT_NE(outcome.out.find("Examples:\n  "), std::string::npos) << words.back() << "\n" << outcome.out;
  }
}

}  // namespace
}  // namespace muster::cli
