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
  for (int i = 0; i < 10; ++i) {
    const int32_t there = cluster.Node(fmt::format("n{}", i)).workloads;
    EXPECT_GE(there, 49) << "n" << i;
    EXPECT_LE(there, 51) << "n" << i;
  }
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

// Decisions by workload, in the order in which they came.
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

TEST(SchedulerLimits, EveryKindOfDecisionIsStreamedWithItsReason) {
  RoleOptions options = ShortSettings("memory:");
  options.config.max_attempts = 2;
  Cluster cluster(options);
  Decisions seen;
  const auto watch = cluster.client().Watch(
      {.decisions = true},
      {.changed = [&](const contract::ClusterChange& change) { seen.Add(change); }, .ended = [](const Status&) {}});
  // A refusal.
  ASSERT_EQ(cluster.Apply(Cluster::Container("large", 5'000'000)), Status());
  // A placement, two attempts, and the end of them.
  FakeAgent first("n1");
  first.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n1", NodeStatus::kReady));
  first.behave([](Behaviour& b) { b.apply_error = "image not found"; });
  ASSERT_EQ(cluster.Apply(Cluster::Container("broken")), Status());
  ASSERT_TRUE(cluster.Becomes("broken", kFailed));
  first.behave([](Behaviour& b) { b.apply_error.clear(); });
  // A failover.
  ASSERT_EQ(cluster.Apply(Cluster::Container("moves")), Status());
  ASSERT_TRUE(cluster.Becomes("moves", kRunning));
  FakeAgent second("n2");
  second.Register(cluster.address());
  ASSERT_TRUE(cluster.NodeBecomes("n2", NodeStatus::kReady));
  first.Stop();
  EXPECT_TRUE(Eventually([&] {
    return seen.Has(DecisionKind::kRefused, "large", "no-node") || seen.Has(DecisionKind::kRefused, "large", "fit.cpu");
  })) << seen.ToString();
  EXPECT_TRUE(seen.Has(DecisionKind::kPlaced, "broken", "placed")) << seen.ToString();
  EXPECT_TRUE(seen.Has(DecisionKind::kRetry, "broken", "retry.scheduled")) << seen.ToString();
  EXPECT_TRUE(seen.Has(DecisionKind::kGaveUp, "broken", "retry.exhausted")) << seen.ToString();
  EXPECT_TRUE(Eventually([&] { return seen.Has(DecisionKind::kFailedOver, "moves", "failover.moved"); }))
      << seen.ToString();
  EXPECT_TRUE(Eventually([&] { return seen.Has(DecisionKind::kNodeLost, "", "node.unreachable"); }) ||
              seen.Has(DecisionKind::kNodeLost, "", "node.heartbeat_expired"))
      << seen.ToString();
}

}  // namespace
}  // namespace muster::scheduler
