// The protocol as operators, providers and dashboards of the Go implementation speak it, over real gRPC; and orders:
// who gave them, why and when.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "bigfleet/v1alpha1/coordinator.grpc.pb.h"
#include "shard/peers.h"

namespace muster::shard {
namespace {

using Protocol = PeersTest;

TEST_F(Protocol, AClusterIsToldLabelsAndTheBareRefOfItsNodes) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  {
    TestCluster blue("blue", shard_->grpc());
    blue.Want({NeedOf("blue", 2)});
    ASSERT_TRUE(Eventually([&] { return Configured() == 2; }));
  }
  Speaker blue(shard_->grpc(), "blue");
  const auto updates = [&] {
    std::vector<pb::NodeStateUpdate> all;
    for (const pb::ShardMessage& message : blue.heard()) {
      if (message.has_node_state_update()) all.push_back(message.node_state_update());
    }
    return all;
  };
  ASSERT_TRUE(Eventually([&] { return updates().size() >= 2; }));
  const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{.cluster_id = "blue"});
  ASSERT_TRUE(listed.has_value());
  for (const pb::NodeStateUpdate& update : updates()) {
    EXPECT_EQ(update.labels().at("node.kubernetes.io/instance-type"), "quick");
    EXPECT_TRUE(update.labels().at("topology.kubernetes.io/zone") == "a" ||
                update.labels().at("topology.kubernetes.io/zone") == "b");
    const auto machine = std::ranges::find(listed->machines, update.machine_id(),
                                           [](const contract::MachineView& view) { return view.machine->id; });
    ASSERT_NE(machine, listed->machines.end());
    EXPECT_EQ(update.provider_id(), machine->machine->host.ref);
    EXPECT_FALSE(update.provider_id().contains("://")) << update.provider_id();
  }
}

TEST_F(Protocol, HelloSaidAgainIsAcknowledgedAndTheStreamGoesOn) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.SayHello("blue");
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged("hello") == 2; }));
  blue.SayHello("green");
  blue.Say(1, 1);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 1; })) << "the stream goes on";
  EXPECT_FALSE(blue.ended());
  EXPECT_EQ(blue.acknowledged("hello"), 2) << "another cluster's name is ignored";
  const std::string clusters = Run({"clusters", "-o", "json"});
  EXPECT_TRUE(clusters.contains("\"blue\"") && !clusters.contains("\"green\"")) << clusters;
}

TEST_F(Protocol, APenaltyThatTheFileDoesNotGiveGoesOutAsUnspecified) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  std::ofstream(fleet_.File("needs.yaml")) << "- {priority: 1, aggregate: {cpu: 1}}\n"
                                              "- {priority: 2, interruptionPenalty: 0, aggregate: {cpu: 1}}\n";
  smoke::Process rollup({smoke::ProgramUnderTest(), "rollup", "--shard", shard_->grpc(), "--cluster", "blue", "-f",
                         fleet_.File("needs.yaml")});
  ASSERT_EQ(rollup.Wait(), 0) << rollup.err();
  const auto needs = shard_->Needs();
  ASSERT_TRUE(needs.has_value());
  ASSERT_EQ(needs->needs.size(), 2u);
  EXPECT_EQ(needs->needs[0].need.profile.fingerprint(), "p=2|ipb=1|rpb=0|reqs=|spr=");
  EXPECT_EQ(needs->needs[1].need.profile.fingerprint(), "p=1|ipb=0|rpb=0|reqs=|spr=");
}

// Keeps the last report.
class Coordinator final : public pb::Coordinator::Service {
 public:
  Coordinator() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Coordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return fmt::format("127.0.0.1:{}", port_); }
  pb::ShardReport last() const {
    const std::lock_guard lock(mu_);
    return last_;
  }

 private:
  grpc::Status ReportShard(grpc::ServerContext*, const pb::ShardReport* report, pb::ReportAck* ack) override {
    const std::lock_guard lock(mu_);
    last_ = *report;
    ack->set_acknowledged(true);
    return grpc::Status::OK;
  }

  int port_ = 0;
  mutable std::mutex mu_;
  pb::ShardReport last_;  // guarded by mu_
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(Protocol, FreeMachinesOfAReportAreIdleOrCanBeBought) {
  ASSERT_TRUE(provider_.up());
  Coordinator coordinator;
  StartShard(provider_.grpc(),
             {"--coordinator-addr", coordinator.target(), "--coordinator-heartbeat-interval", "200ms"});
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 3)});
  ASSERT_TRUE(Eventually([&] { return Configured() == 3; }));
  EXPECT_TRUE(Eventually([&] {
    const pb::ShardReport report = coordinator.last();
    return report.summary().total_machines() == kMachines && report.summary().free_machines() == kMachines - 3;
  })) << coordinator.last().DebugString();
}

TEST_F(Protocol, PlansOfSeveralWorkersAreTimed) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc(), {"--phase1-workers", "2"});
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged("hello") == 1; }));
  blue.Say(20, 1);
  const std::string seconds = "bigfleet_shard_phase1_proposal_duration_seconds_";
  EXPECT_TRUE(Eventually([&] { return Metric(seconds + "count{mode=\"incremental\"}") > 0; }));
  EXPECT_GT(Metric(seconds + "sum{mode=\"incremental\"}"), 0);
}

TEST_F(Protocol, SeriesAreThereFromTheStartAndEndWithTheirCluster) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  for (const char* series : {"bigfleet_shard_actions_total{kind=\"Preempt\"}",
                             "bigfleet_shard_action_execute_outcomes_total{kind=\"Bootstrap\",outcome=\"fenced\"}",
                             "bigfleet_shard_action_execute_outcomes_total{kind=\"Bootstrap\",outcome=\"failed\"}",
                             "bigfleet_shard_action_execute_outcomes_total{kind=\"Provision\",outcome=\"on_hold\"}",
                             "bigfleet_shard_machines_rejected_total{reason=\"price\"}",
                             "bigfleet_shard_machines_rejected_total{reason=\"interruption_probability\"}",
                             "bigfleet_shard_machines_rejected_total{reason=\"structural\"}",
                             "bigfleet_shard_shortfalls_by_priority{priority_class=\"batch\"}",
                             "bigfleet_shard_shortfalls_by_priority{priority_class=\"service\"}",
                             "bigfleet_shard_shortfalls_by_priority{priority_class=\"critical\"}",
                             "bigfleet_shard_shortfalls_by_priority{priority_class=\"other\"}",
                             "bigfleet_shard_demand_machines{interruption_penalty_bucket=\"pinned\"}",
                             "bigfleet_shard_phase1_occ_conflict_fraction{mode=\"incremental\"}",
                             "bigfleet_shard_phase1_occ_conflict_fraction{mode=\"all-or-nothing\"}",
                             "bigfleet_shard_phase1_occ_retries_total{mode=\"incremental\",outcome=\"exhausted\"}",
                             "bigfleet_shard_phase1_proposal_duration_seconds_count{mode=\"all-or-nothing\"}",
                             "bigfleet_shard_provisioning_latency_seconds_count", "muster_shard_pending_needs"}) {
    EXPECT_EQ(Metric(series), 0) << series;
  }
  const std::string refused = "bigfleet_shard_rollups_rejected_total{cluster=\"blue\"}";
  const std::vector<std::string> of_blue{refused, "bigfleet_shard_rollup_quarantined{cluster=\"blue\"}",
                                         "muster_shard_actions_above_ceiling_total{cluster=\"blue\"}"};
  for (const std::string& series : of_blue) EXPECT_EQ(Metric(series), -1) << series;
  {
    Speaker blue(shard_->grpc(), "blue");
    ASSERT_TRUE(Eventually([&] { return Metric(refused) == 0; }));
    for (const std::string& series : of_blue) EXPECT_EQ(Metric(series), 0) << series;
    blue.Say(1, 1, [](auto& rollup) { rollup.set_cluster_id("green"); });
    ASSERT_TRUE(Eventually([&] { return Metric(refused) == 1; }));
  }
  for (const std::string& series : of_blue) {
    EXPECT_TRUE(Eventually([&] { return Metric(series) == -1; })) << series << ": it has no session or demand any more";
  }
}

TEST_F(Protocol, ShortNeedsAreCountedByTheClassOfTheirPriority) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.Say(5, 1, [](auto& rollup) {
    int row = 0;
    for (const int priority : {99, 100, 1000, 999'999, 1'000'000}) {
      rollup.mutable_needs(row)->set_priority(priority);
      (*rollup.mutable_needs(row++)->mutable_min_unit())["cpu"] = "64";  // no machine is that large
    }
  });
  for (const auto& [name, count] :
       std::map<std::string, double>{{"other", 1}, {"batch", 1}, {"service", 2}, {"critical", 1}}) {
    EXPECT_TRUE(Eventually([&] {
      return Metric(fmt::format("bigfleet_shard_shortfalls_by_priority{{priority_class=\"{}\"}}", name)) == count;
    })) << name;
  }
  EXPECT_EQ(Metric("bigfleet_shard_shortfalls"), 5) << "the sum of the classes";
}

TEST_F(Protocol, ProvisioningIsTimedFromTheDemandToTheNode) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 3, 7)});
  ASSERT_TRUE(Eventually([&] { return Configured() == 3; }));
  EXPECT_TRUE(Eventually([&] { return Metric("bigfleet_shard_provisioning_latency_seconds_count") == 1; }));
  EXPECT_GT(Metric("bigfleet_shard_provisioning_latency_seconds_sum"), 0.02) << "a create and a configure at least";
}

TEST_F(Protocol, PauseTogetherWithDryRunIsAPause) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc(), {"--actuation-paused", "--dry-run", "--available-capacity-interval", "0"});
  if (HasFatalFailure()) return;
  EXPECT_EQ(Metric("bigfleet_shard_actuation_paused"), 1);
}

using Orders = PeersTest;

TEST_F(Orders, GoToTheAuditLogWithWhoAndWhyAndShowInClusters) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged("hello") == 1; }));
  Run({"pause", "--cluster", "blue", "--reason", "network change"});
  Run({"pause", "--dry-run", "--reason", "a trial"});
  const std::string clusters = Run({"clusters"});
  EXPECT_TRUE(clusters.contains("pause by local at ") && clusters.contains(": network change")) << clusters;
  EXPECT_TRUE(clusters.contains("the shard is dry-run; last order: dry-run by local at ") &&
              clusters.contains(": a trial"))
      << clusters;
  smoke::Process mistyped({smoke::ProgramUnderTest(), "fleet", "decommission", "bleu", "--shard", shard_->grpc()});
  EXPECT_EQ(mistyped.Wait(), 1);
  EXPECT_TRUE(mistyped.err().contains("does not know a cluster \"bleu\"")) << mistyped.err();
  const auto log = [&] {
    std::ifstream file(fleet_.File("audit.log"));
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  ASSERT_TRUE(Eventually([&] { return log().contains("order.decommission"); }));
  for (const char* part :
       {R"("kind":"order.pause","machine":"","cluster":"blue","reason":"order","grace":0,"outcome":"taken")",
        R"("who":"local","why":"network change")", R"("kind":"order.dry-run")", R"("why":"a trial")",
        R"("outcome":"refused")", R"(does not know a cluster)"}) {
    EXPECT_TRUE(log().contains(part)) << part << "\n" << log();
  }
}

}  // namespace
}  // namespace muster::shard
