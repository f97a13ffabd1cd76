// A scheduler over real gRPC under a burst, under a tenant's rate, and as the stream of its decisions tells it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "scheduler/cluster_for_test.h"
#include "scheduler/fake_agent_for_test.h"

namespace muster::scheduler {
namespace {

using contract::DecisionKind;
using enum model::WorkloadPhase;
using model::NodeStatus;

TEST(SchedulerLimits, ABurstOfFiveHundredAppliesOverTenEqualNodesIsSpreadEvenly) {
  Cluster cluster(ShortSettings("memory:"));
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int i = 0; i < 10; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(fmt::format("n{}", i)));
    agents.back()->Register(cluster.address());
    ASSERT_TRUE(cluster.NodeBecomes(fmt::format("n{}", i), NodeStatus::kReady));
  }
  std::atomic<int> open = 500;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 500; ++i) {
    cluster.client().Ask(Cluster::Container(fmt::format("w{:03}", i), 1),
                         [&](const Result<contract::ClusterReply>& reply) {
                           refused += reply ? 0 : 1;
                           --open;
                         });
  }
  ASSERT_TRUE(Eventually([&] { return open == 0; }));
  EXPECT_EQ(refused, 0);
  // Within one of each other: of 500 on 10 nodes, that is 50 on each.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cluster.Node(fmt::format("n{}", i)).workloads, 50) << "n" << i;
}

TEST(SchedulerLimits, ARateRefusesWhatIsAboveItAndSaysSo) {
  Cluster cluster(ShortSettings("memory:"));
  contract::ApplyQuota quota;
  quota.quota.tenant = "t";
  quota.quota.applies_milli_hz = 1;  // one in a thousand seconds, after the burst
  quota.quota.burst = 3;
  cluster.Get<contract::Applied>(quota);
  contract::ApplyWorkload apply = Cluster::Container("w0");
  apply.tenant = "t";
  for (int i = 0; i < 3; ++i) {
    apply.workload = fmt::format("w{}", i);
    EXPECT_EQ(cluster.Apply(apply), Status());
  }
  apply.workload = "w3";
  const Status refused = cluster.Apply(apply);
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_NE(refused.message().find("(burst 3)"), std::string::npos) << refused.message();
  apply.tenant.clear();
  EXPECT_EQ(cluster.Apply(apply), Status()) << "others are not limited";
}

// What the stream of decisions has said so far.
class Decisions {
 public:
  void Add(const contract::ClusterChange& change) {
    const auto* decision = std::get_if<contract::Decision>(&change);
    if (decision == nullptr) return;
    const std::lock_guard lock(mu_);
    seen_.push_back(*decision);
  }
  bool Has(DecisionKind kind, const std::string& workload, const std::string& reason) {
    const std::lock_guard lock(mu_);
    return std::ranges::any_of(seen_, [&](const contract::Decision& decision) {
      return decision.kind == kind && decision.workload == workload && decision.reason == reason &&
             !decision.message.empty();
    });
  }
  std::string ToString() {
    const std::lock_guard lock(mu_);
    std::string text;
    for (const contract::Decision& d : seen_) {
      text += fmt::format("{} {} {} [{}] {}\n", contract::DecisionKindName(d.kind), d.workload, d.node, d.reason,
                          d.message);
    }
    return text;
  }

 private:
  std::mutex mu_;
  std::vector<contract::Decision> seen_;  // guarded by mu_
};

// Each kind of decision has its place in one of the stories below.
static_assert(static_cast<int>(DecisionKind::kOrphansHeld) == 11, "a kind that is added is told in one of them");

class SchedulerDecisions : public testing::Test {
 protected:
  SchedulerDecisions() : cluster_(Settings()) {}

  // Who watches is told of what is decided from then on: so something is decided until the stream tells it.
  void SetUp() override {
    watch_ = cluster_.client().Watch({.decisions = true},
                                     {.changed = [this](const contract::ClusterChange& change) { seen_.Add(change); },
                                      .ended = [](const Status&) {}});
    cluster_.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "full", .limits = {{"cpu", 50}}}});
    contract::ApplyWorkload greedy = Cluster::Container("greedy");
    greedy.tenant = "full";
    ASSERT_TRUE(Eventually([&] {
      EXPECT_EQ(cluster_.Apply(greedy).code(), Code::kResourceExhausted);
      return seen_.Has(DecisionKind::kRefused, "greedy", "quota.full");
    })) << seen_.ToString();
  }
  void Comes(DecisionKind kind, const std::string& workload, const std::string& reason) {
    EXPECT_TRUE(Eventually([&] { return seen_.Has(kind, workload, reason); }))
        << contract::DecisionKindName(kind) << " " << workload << " [" << reason << "] is not among:\n"
        << seen_.ToString();
  }
  bool Join(FakeAgent& agent) {
    agent.Register(cluster_.address());
    return cluster_.NodeBecomes(agent.node(), NodeStatus::kReady);
  }
  bool Runs(const std::string& id) {
    EXPECT_EQ(cluster_.Apply(Cluster::Container(id)), Status());
    return cluster_.Becomes(id, kRunning);
  }

  static RoleOptions Settings() {
    RoleOptions options = ShortSettings("memory:");
    options.config.max_attempts = 2;
    options.store_lost_after = 1min;  // on a slow machine too: a watch ends when a lost store is back
    return options;
  }

  Cluster cluster_;
  Decisions seen_;
  std::unique_ptr<rpc::OpenStream> watch_;
};

TEST_F(SchedulerDecisions, OfPlacementAndAttemptsAreStreamed) {
  ASSERT_EQ(cluster_.Apply(Cluster::Container("large", 5'000'000)), Status());
  Comes(DecisionKind::kRefused, "large", "no-node");
  FakeAgent agent("n1");
  ASSERT_TRUE(Join(agent));
  Comes(DecisionKind::kRefused, "large", "fit.cpu");
  agent.behave([](Behaviour& b) { b.apply_error = "image not found"; });
  ASSERT_EQ(cluster_.Apply(Cluster::Container("broken")), Status());
  Comes(DecisionKind::kPlaced, "broken", "placed");
  Comes(DecisionKind::kRetry, "broken", "retry.scheduled");
  Comes(DecisionKind::kGaveUp, "broken", "retry.exhausted");
}

TEST_F(SchedulerDecisions, OfRatesAreStreamed) {
  contract::ApplyQuota quota;
  quota.quota.tenant = "fast";
  quota.quota.applies_milli_hz = 1;  // one in a thousand seconds, after the burst
  quota.quota.burst = 1;
  cluster_.Get<contract::Applied>(quota);
  contract::ApplyWorkload apply = Cluster::Container("first");
  apply.tenant = "fast";
  EXPECT_EQ(cluster_.Apply(apply), Status());
  apply.workload = "second";
  EXPECT_EQ(cluster_.Apply(apply).code(), Code::kResourceExhausted);
  Comes(DecisionKind::kRefused, "second", "quota.rate");
}

// A node that beats and cannot be called, and one that can be called and does not beat.
TEST_F(SchedulerDecisions, OfNodesAndFailoversAreStreamed) {
  FakeAgent first("n1");
  FakeAgent second("n2");
  ASSERT_TRUE(Join(first));
  ASSERT_TRUE(Runs("moves"));
  ASSERT_TRUE(Join(second));
  first.StopServing();
  Comes(DecisionKind::kNodeLost, "", "node.unreachable");
  Comes(DecisionKind::kFailedOver, "moves", "failover.moved");
  first.ServeAgain();
  Comes(DecisionKind::kNodeReady, "", "node.reachable");
  second.behave([](Behaviour& b) { b.beat = false; });
  Comes(DecisionKind::kNodeLost, "", "node.heartbeat_expired");
  second.behave([](Behaviour& b) { b.beat = true; });
  Comes(DecisionKind::kNodeReady, "", "node.heartbeat");
}

TEST_F(SchedulerDecisions, OfDrainsRollOutsAndDeletionsAreStreamed) {
  FakeAgent first("n1");
  FakeAgent second("n2");
  ASSERT_TRUE(Join(first));
  ASSERT_TRUE(Runs("moves"));
  ASSERT_TRUE(Join(second));
  cluster_.Get<contract::Done>(contract::DrainNode{.node = "n1"});
  Comes(DecisionKind::kEvicted, "moves", "evicted.drain");
  contract::ApplySpec set;
  set.spec.kind = model::WorkloadKind::kSet;
  set.spec.name = "web";
  set.spec.replicas = 1;
  set.spec.spec = *Cluster::Container("").spec;
  cluster_.Get<contract::Applied>(set);
  ASSERT_TRUE(Eventually([&] { return cluster_.Has("web-0"); }));
  ASSERT_TRUE(cluster_.Becomes("web-0", kRunning));
  set.spec.spec.image = "j";
  cluster_.Get<contract::Applied>(set);
  Comes(DecisionKind::kRolledOut, "web-0", "set.updated");
  ASSERT_TRUE(cluster_.Becomes("moves", kRunning));
  cluster_.Get<contract::Done>(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = "moves"});
  Comes(DecisionKind::kDeleted, "moves", "deleted");
}

TEST_F(SchedulerDecisions, OfOrphansAreStreamed) {
  FakeAgent agent("n1");
  ASSERT_TRUE(Join(agent));
  ASSERT_TRUE(Runs("known"));
  agent.behave([](Behaviour& b) { b.lies = {"ghost"}; });
  Comes(DecisionKind::kOrphanDeleted, "ghost", "orphan.unknown");
  agent.behave([](Behaviour& b) { b.lies = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9"}; });
  Comes(DecisionKind::kOrphansHeld, "", "orphan.held");
}

}  // namespace
}  // namespace muster::scheduler
