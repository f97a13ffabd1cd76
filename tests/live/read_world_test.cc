// What of a running system a copy of it has, and what it says that it does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/live_run.h"
#include "cli/live_world.h"
#include "live/random_world.h"
#include "sim/loop_for_test.h"

namespace muster::live {
namespace {

// A loop whose shard shows what a test makes of it.
class ChangedHalves final : public cli::Halves {
 public:
  using Change = std::function<void(contract::ShardReply&)>;
  ChangedHalves(sim::Loop& loop, Change change) : halves_(loop), change_(std::move(change)) {}
  Result<contract::ClusterReply> AskCluster(contract::ClusterRequest request) override {
    return halves_.AskCluster(std::move(request));
  }
  Result<contract::ShardReply> AskShard(contract::ShardRequest request) override {
    auto reply = halves_.AskShard(std::move(request));
    if (reply) change_(*reply);
    return reply;
  }

 private:
  LoopHalves halves_;
  const Change change_;
};

class LiveWorldOf : public testing::Test {
 protected:
  LiveWorldOf() : LiveWorldOf(contract::Ceilings()) {}
  explicit LiveWorldOf(contract::Ceilings ceilings) {
    sim::LoopStart start{
        .machines = sim::Many(4, {.id = "m"}), .clusters = {{.id = kCluster}}, .settings = sim::LivelySettings()};
    start.ceilings = std::move(ceilings);
    loop_ = sim::MakeLoop(std::move(start));
    Apply("web", 8);
  }
  void Apply(const std::string& set, int32_t replicas) {
    sim::Apply(*loop_, kCluster, sim::Set(set, replicas, 1000));
    EXPECT_TRUE(loop_->RunUntilSettled().settled);
  }
  static model::WorkloadFile FileOf(const std::string& set, int32_t replicas) {
    model::WorkloadFile file;
    file.workloads.push_back(sim::Set(set, replicas, 1000).spec);
    return file;
  }
  static bool Says(const cli::LiveWorld& world, const std::string& text) {
    return std::ranges::any_of(world.notes, [&](const std::string& note) { return note.contains(text); });
  }
  cli::LiveWorld ReadAs(const std::function<void(contract::ClusterView&)>& change) {
    ChangedHalves halves(*loop_, [&](contract::ShardReply& reply) {
      if (auto* listed = std::get_if<contract::ClustersListed>(&reply)) {
        for (contract::ClusterView& view : listed->clusters) change(view);
      }
    });
    auto world = cli::ReadLiveWorld(halves, kCluster);
    EXPECT_TRUE(world.has_value()) << world.error().ToString();
    return world ? *std::move(world) : cli::LiveWorld();
  }

  std::unique_ptr<sim::Loop> loop_;
};

// Its operator is down, or has not deleted the node yet.
TEST_F(LiveWorldOf, ANodeWhoseMachineIsNotTheClustersBeginsWithoutIt) {
  for (const std::string cluster : {"", "other"}) {
    std::string machine;
    ChangedHalves halves(*loop_, [&](contract::ShardReply& reply) {
      auto* listed = std::get_if<contract::MachinesListed>(&reply);
      if (listed == nullptr) return;
      for (contract::MachineView& view : listed->machines) {
        if (view.machine->cluster != kCluster) continue;
        model::Machine given = *view.machine;
        given.state = cluster.empty() ? model::MachineState::kIdle : model::MachineState::kConfigured;
        given.cluster = cluster;
        machine = given.id;
        view.machine = contract::MachineRecord(given);
        return;
      }
    });
    const auto world = cli::ReadLiveWorld(halves, kCluster);
    ASSERT_TRUE(world.has_value()) << world.error().ToString();
    EXPECT_TRUE(Says(*world, "node " + machine + " leaves: its machine serves " +
                                 (cluster.empty() ? "no cluster" : "cluster other")));
    for (const contract::NodeView& node : world->start.clusters[0].nodes) EXPECT_NE(node.node, machine);
    const auto planned = cli::RunApply(*world, FileOf("more", 1));
    ASSERT_TRUE(planned.has_value()) << planned.error().ToString();
    EXPECT_TRUE(planned->settled.settled);
    EXPECT_TRUE(planned->pending.empty()) << "what ran there has a node again";
  }
}

TEST_F(LiveWorldOf, WhatKeepsTheFleetFromServingItsOwnClusterIsSaid) {
  EXPECT_TRUE(ReadAs([](contract::ClusterView&) {}).notes.empty());
  using View = contract::ClusterView;
  EXPECT_TRUE(Says(ReadAs([](View& view) { view.mode = contract::ActuationMode::kDryRun; }),
                   "cluster home is paused or in dry run"));
  EXPECT_TRUE(Says(ReadAs([](View& view) { view.session = false; }), "cluster home has no session"));
  EXPECT_TRUE(Says(ReadAs([](View& view) { view.hold_until = WallTime(1'767'225'600s); }),
                   "cluster home acquires nothing before 2026-01-01T00:00:00"));
  EXPECT_TRUE(Says(ReadAs([](View& view) { view.decommissioned = true; }), "cluster home is decommissioned"));
}

class LiveWorldWithACeiling : public LiveWorldOf {
 protected:
  LiveWorldWithACeiling() : LiveWorldOf({{kCluster, {.most_machines = 3}}}) {}
};

// Four machines could be had.
TEST_F(LiveWorldWithACeiling, ThePlanStaysBelowIt) {
  LoopHalves halves(*loop_);
  const auto world = cli::ReadLiveWorld(halves, kCluster);
  ASSERT_TRUE(world.has_value()) << world.error().ToString();
  const auto planned = cli::RunApply(*world, FileOf("more", 8));
  ASSERT_TRUE(planned.has_value()) << planned.error().ToString();
  EXPECT_EQ(planned->after.Bound(kCluster).size(), 3U);
  EXPECT_EQ(planned->pending.size(), 4U);
  Apply("more", 8);
  EXPECT_EQ(loop_->View().Bound(kCluster).size(), 3U) << "as it comes";
}

}  // namespace
}  // namespace muster::live
