// What of a running system a copy of it has, and what it says that it does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/live_run.h"
#include "cli/live_view.h"
#include "cli/live_world.h"
#include "cli/plan_live.h"
#include "cli/up_tree.h"
#include "host/temp_dir_for_test.h"
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

// Each changes what an apply leads to, or what the plan said beside it.
TEST_F(LiveWorldOf, APlanIdIsAnotherOnceAnythingThatThePlanTellsHasChanged) {
  using View = contract::ClusterView;
  const model::WorkloadFile file = FileOf("web", 9);
  const cli::LiveWorld world = ReadAs([](View&) {});
  const cli::PlanId planned = cli::PlanIdOf(world, file);
  const auto moved = [&](const cli::LiveWorld& now) {
    return cli::CheckPlanId(planned, cli::PlanIdOf(now, file)).message();
  };
  const auto with_phase = [&](model::WorkloadPhase phase) {
    cli::LiveWorld now = world;
    now.start.clusters[0].workloads[0].phase = phase;
    return moved(now);
  };
  EXPECT_EQ(moved(ReadAs([](View&) {})), "");
  EXPECT_EQ(with_phase(model::WorkloadPhase::kUpdating), "") << "it is to run, as before";
  for (const auto ended : {model::WorkloadPhase::kFailed, model::WorkloadPhase::kCompleted}) {
    EXPECT_TRUE(with_phase(ended).contains("the cluster's workloads changed")) << with_phase(ended);
  }
  const std::pair<const char*, std::function<void(View&)>> changes[] = {
      {"paused", [](View& view) { view.mode = contract::ActuationMode::kPaused; }},
      {"in dry run", [](View& view) { view.mode = contract::ActuationMode::kDryRun; }},
      {"without a session", [](View& view) { view.session = false; }},
      {"decommissioned", [](View& view) { view.decommissioned = true; }},
      {"on hold", [](View& view) { view.hold_until = WallTime(1'767'225'600s); }},
      {"below a ceiling", [](View& view) { view.ceiling = contract::CeilingView{.most_machines = 3}; }},
  };
  for (const auto& [how, change] : changes) {
    EXPECT_TRUE(moved(ReadAs(change)).contains("the fleet changed")) << how;
  }
}

TEST_F(LiveWorldOf, TheCheapestFleetCarriesWhatOfAJobHasNotCompleted) {
  LoopHalves halves(*loop_);
  const auto world = cli::ReadLiveWorld(halves, kCluster);
  ASSERT_TRUE(world.has_value()) << world.error().ToString();
  const auto machines_beside = [&](int32_t completed) {
    sim::LoopView view = loop_->View();
    contract::SetView job{.spec = sim::Set("job", 8, 1000).spec, .completed = completed};
    job.spec.kind = model::WorkloadKind::kJob;
    job.spec.spec.restart = model::RestartPolicy::kOnFailure;
    view.clusters.at(kCluster).sets.push_back(job);
    const auto cheapest = cli::FindCheapestFleet(*world, view);
    EXPECT_TRUE(cheapest.has_value()) << cheapest.error().ToString();
    int64_t machines = 0;
    for (const auto& [key, count] : cheapest->machines) machines += count.after;
    return machines;
  };
  EXPECT_EQ(machines_beside(0), 4);  // of four cpus each, with the eight of web
  EXPECT_EQ(machines_beside(4), 3);
  EXPECT_EQ(machines_beside(8), 2);
}

// On a running system of any size the copy may take a while.
TEST_F(LiveWorldOf, APlanThatTakesLongSaysSoAndThenHowToDoIt) {
  const host::TempDir dir;
  const std::string file = dir.File("it's more.yaml");
  std::ofstream(file) << "kind: Set\nname: more\nreplicas: 2\ntemplate: {type: process, command: [serve], resources: "
                         "{cpu: 1}}\n";
  for (const auto step : {0ms, 10ms}) {
    LoopHalves halves(*loop_);
    std::chrono::steady_clock::time_point now{};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto planned = cli::PlanLive(
        halves,
        {.files = {file}, .cluster = kCluster, .output = "table", .clock = [&now, step] { return now += step; }});
    const std::string out = testing::internal::GetCapturedStdout();
    const std::string err = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(planned.has_value()) << planned.error().ToString();
    EXPECT_EQ(err.substr(0, err.find(',')), step == 0ms ? "" : "running a copy of the cluster and the fleet");
    const std::string word = dir.path() + "/it'\\''s more.yaml'\n";
    EXPECT_TRUE(out.contains("nothing else moves: " + cli::ThisProgram().string() + " apply --plan-id p1.")) << out;
    EXPECT_TRUE(out.ends_with(" --cluster home -f '" + word)) << out;
    EXPECT_TRUE(out.contains("was run until it came to rest, with the settings of muster up")) << out;
  }
}

// Another shell's environment may name another scheduler and shard.
TEST_F(LiveWorldOf, ThePrintedApplyAsksWhomThePlanAsked) {
  const host::TempDir dir;
  std::ofstream(dir.File("more.yaml")) << "kind: Set\nname: more\nreplicas: 2\ntemplate: {type: process, command: "
                                          "[serve], resources: {cpu: 1}}\n";
  const auto printed = [&](cli::HalvesFlags flags) {
    LoopHalves halves(*loop_);
    testing::internal::CaptureStdout();
    const auto planned =
        cli::PlanLive(halves, {.files = {dir.File("more.yaml")}, .cluster = "", .output = "table", .halves = flags});
    const std::string out = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(planned.has_value()) << planned.error().ToString();
    const size_t begin = out.find(" p1.");
    return begin == std::string::npos ? out : out.substr(out.find(' ', begin + 1));
  };
  const std::string file = " -f " + dir.File("more.yaml") + "\n";
  cli::HalvesFlags flags;
  flags.cluster.scheduler = cli::DefaultScheduler();
  flags.shard.shard = cli::DefaultShard();
  EXPECT_EQ(printed(flags), file);
  flags.cluster.scheduler = "s1:8085,s2:8085";
  flags.shard.shard = "shard:7780";
  flags.cluster.tls = {.cert = "my certs/a.pem", .key = "a.key", .ca = "ca.pem", .crl = "crl.pem", .insecure = true};
  EXPECT_EQ(
      printed(flags),
      " --scheduler s1:8085,s2:8085 --shard shard:7780 --tls-cert 'my certs/a.pem' --tls-key a.key --tls-ca ca.pem"
      " --tls-crl crl.pem --insecure" +
          file);
}

// Twelve more would wait, and nothing else is otherwise.
TEST_F(LiveWorldOf, WhatIfSaysThatSomethingWouldChangeWhereOnlyMoreWaits) {
  Apply("web", 16);  // all machines are full
  const auto what_if = [&](const cli::Event& event) {
    LoopHalves halves(*loop_);
    const auto world = cli::ReadLiveWorld(halves, kCluster);
    EXPECT_TRUE(world.has_value()) << world.error().ToString();
    auto outcome = cli::RunEvent(*world, event);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().ToString();
    return *std::move(outcome);
  };
  const cli::LiveOutcome more = what_if({.demand = 1750});
  EXPECT_TRUE(more.moves.empty());
  EXPECT_EQ(more.cost_before, more.cost_after);
  EXPECT_EQ(more.pending.size(), 12U);
  EXPECT_EQ(more.shortfalls.size(), 1U);
  EXPECT_TRUE(more.changes_anything());
  EXPECT_FALSE(what_if({.prices = {{"small", 1000}}}).changes_anything()) << "the same price";

  // What waited before waits again: no change, neither for an event nor for the file that is applied already.
  Apply("web", 20);
  const cli::LiveOutcome same = what_if({.prices = {{"small", 1000}}});
  EXPECT_EQ(same.pending.size(), 4U);
  EXPECT_EQ(same.shortfalls.size(), 1U);
  EXPECT_FALSE(same.changes_anything());
  LoopHalves halves(*loop_);
  const auto world = cli::ReadLiveWorld(halves, kCluster);
  ASSERT_TRUE(world.has_value()) << world.error().ToString();
  const auto planned = cli::RunApply(*world, FileOf("web", 20));
  ASSERT_TRUE(planned.has_value()) << planned.error().ToString();
  EXPECT_EQ(planned->pending.size(), 4U);
  EXPECT_FALSE(planned->changes_anything());
}

// Longer than any pause after which something may still happen by itself (sim/loop.cc).
constexpr Duration kLongCreate = 15min;

// Machines are on their way when the event happens.
TEST_F(LiveWorldOf, AWorldThatWasNotAtRestBeforeTheEventIsNotSettled) {
  sim::Apply(*loop_, kCluster, sim::Set("web", 16, 1000));
  LoopHalves halves(*loop_);
  auto world = cli::ReadLiveWorld(halves, kCluster);
  ASSERT_TRUE(world.has_value()) << world.error().ToString();
  world->start.settings.dwell[0] = kLongCreate;
  const auto outcome = cli::RunEvent(*world, {.prices = {{"small", 2000}}});
  ASSERT_TRUE(outcome.has_value()) << outcome.error().ToString();
  EXPECT_EQ(outcome->after.Bound(kCluster).size(), 4U) << "it came to rest afterwards";
  EXPECT_FALSE(outcome->settled.settled);
  ASSERT_EQ(outcome->settled.in_flight.size(), 2U);
  EXPECT_TRUE(outcome->settled.in_flight[0].starts_with("before the event, machine m-"));
  EXPECT_TRUE(cli::OutcomeText(*outcome).contains("the copy did not come to rest.\n  before the event, machine m-"));
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
