// The real program, killed: a scheduler on SQLite and on etcd, at every crash point of its shell and at random moments,
// while clients apply workloads in bursts. Afterwards every apply that was acknowledged is there and runs on one node
// alone, and nodes have reserved what their workloads ask for and nothing else. And two schedulers on one etcd, of
// which the leader is killed, or stopped.
//
// MUSTER_KILLS says how many random kills there are on each store, 5 unless given; MUSTER_BURST how many applies are
// under way at each of them, 400 unless given, and 2,000 from 20 kills on; MUSTER_AWAY for how many seconds an etcd is
// away, 5 unless given.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/rng.h"
#include "host/address.h"
#include "host/fault_table_for_test.h"
#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "rpc/open_store.h"
#include "scheduler/cluster_for_test.h"
#include "scheduler/fake_agent_for_test.h"
#include "scheduler/life_for_test.h"
#include "store/blocking.h"
#include "store/etcd_process.h"

namespace muster::scheduler {
namespace {

constexpr int kNodes = 6;         // with room for 20 bursts of 2,000
constexpr int64_t kCpuMilli = 1;  // of a workload
constexpr Duration kLong = 60s;

int Variable(const char* name, int otherwise) {
  const char* asked = std::getenv(name);
  return asked != nullptr ? std::stoi(asked) : otherwise;
}
int Kills() { return Variable("MUSTER_KILLS", 5); }
int AppliesPerKill() { return Variable("MUSTER_BURST", Kills() >= 20 ? 2000 : 400); }
Duration Away() { return std::chrono::seconds(Variable("MUSTER_AWAY", 5)); }

// Clients that apply as fast as they are answered, and remember what was acknowledged.
class Burst {
 public:
  // Sends `count` applies to the scheduler, and comes back at once.
  void Begin(rpc::ClusterClient& client, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string id = fmt::format("w{:05}", next_++);
      {
        const std::lock_guard lock(mu_);
        ++open_;
      }
      client.Ask(Cluster::Container(id, kCpuMilli), [this, id](const Result<contract::ClusterReply>& reply) {
        const std::lock_guard lock(mu_);
        --open_;
        if (reply) {
          acknowledged_.insert(id);
        } else {
          refusal_ = reply.error().ToString();
        }
      });
    }
  }
  size_t acknowledged() const {
    const std::lock_guard lock(mu_);
    return acknowledged_.size();
  }
  bool answered() const {
    const std::lock_guard lock(mu_);
    return open_ == 0;
  }
  std::string refusal() const {
    const std::lock_guard lock(mu_);
    return fmt::format("{} open, the last refusal: {}", open_, refusal_);
  }
  std::set<std::string> ids() const {
    const std::lock_guard lock(mu_);
    return acknowledged_;
  }

 private:
  int next_ = 0;
  mutable std::mutex mu_;
  int open_ = 0;                        // guarded by mu_
  std::set<std::string> acknowledged_;  // guarded by mu_
  std::string refusal_;                 // guarded by mu_
};

// Agents, in this process, of the scheduler at one address.
class Agents {
 public:
  explicit Agents(const std::string& scheduler) {
    for (int i = 0; i < kNodes; ++i) agents_.push_back(std::make_unique<FakeAgent>(fmt::format("n{}", i), 200ms));
    Register(scheduler);
  }
  // From here on their heartbeats go to this one.
  void Register(const std::string& scheduler) {
    for (const auto& agent : agents_) agent->Register(scheduler);
  }
  // On which nodes each workload is.
  std::map<std::string, std::vector<std::string>> Places() const {
    std::map<std::string, std::vector<std::string>> places;
    for (const auto& agent : agents_) {
      for (const auto& [id, state] : agent->workloads()) places[id].push_back(agent->node());
    }
    return places;
  }

 private:
  std::vector<std::unique_ptr<FakeAgent>> agents_;
};

// Why the cluster is not as its clients were told; nothing if it is.
std::string Wrong(SchedulerLife& life, const Agents& agents, const std::set<std::string>& acknowledged) {
  std::map<std::string, int64_t> reserved;
  std::set<std::string> seen;
  const auto places = agents.Places();
  for (const contract::WorkloadView& view : life.Workloads()) {
    seen.insert(view.workload);
    if (view.phase != model::WorkloadPhase::kRunning) {
      return fmt::format("{} is {}: {}", view.workload, model::WorkloadPhaseName(view.phase), view.message);
    }
    reserved[view.node] += kCpuMilli;
    const auto place = places.find(view.workload);
    if (place == places.end() || place->second != std::vector{view.node}) {
      return fmt::format("{} is not on {} alone", view.workload, view.node);
    }
  }
  for (const std::string& id : acknowledged) {
    if (!seen.contains(id)) return fmt::format("{} was acknowledged and is lost", id);
  }
  for (const contract::NodeView& node : life.Nodes()) {
    if (node.reserved.Get("cpu") != reserved[node.node]) {
      return fmt::format("{} has {} reserved for {}", node.node, node.reserved.Get("cpu"), reserved[node.node]);
    }
  }
  return "";
}

class SchedulerKilled : public testing::TestWithParam<std::string> {
 protected:
  SchedulerKilled() {
    if (GetParam() == "etcd") etcd_.emplace();
  }

  std::string Store() const { return etcd_ ? etcd_->url() : "sqlite:" + dir_.path(); }
  // Whether it listens: with a crash point it may die before.
  bool Start(const std::string& crash_point = {}) {
    life_ = std::make_unique<SchedulerLife>(SchedulerCommand(Store(), listen_, crash_point));
    if (!life_->up()) return false;
    listen_ = life_->grpc();
    if (!agents_) agents_.emplace(listen_);
    return true;
  }
  void Kill() {
    life_->process().Signal(SIGKILL);
    ASSERT_EQ(life_->process().Wait(), 128 + SIGKILL) << life_->process().err();
    ASSERT_TRUE(Eventually([&] { return burst_.answered(); }));
  }
  bool Ready() {
    return Eventually([&] { return life_->Leads() && life_->Nodes().size() == kNodes; }, kLong);
  }
  // Every workload takes calls to its agent, and there are more of them with every kill.
  void Judge(int kills = 1) {
    std::string wrong;
    const Duration patience = std::max(1, kills / 2) * kLong;
    EXPECT_TRUE(Eventually([&] { return (wrong = Wrong(*life_, *agents_, burst_.ids())).empty(); }, patience)) << wrong;
  }

  host::TempDir dir_;
  std::optional<store::Etcd> etcd_;
  std::string listen_ = ":0";
  std::optional<Agents> agents_;
  Burst burst_;
  std::unique_ptr<SchedulerLife> life_;
};

TEST_P(SchedulerKilled, AtRandomMoments) {
  ASSERT_TRUE(Start());
  ASSERT_TRUE(Ready());
  Rng rng(11);
  const int kills = Kills();
  const int applies = AppliesPerKill();
  for (int i = 0; i < kills; ++i) {
    const size_t before = burst_.acknowledged();
    burst_.Begin(life_->client(), applies);
    // A moment drawn in acknowledgements, not in seconds.
    const size_t until = before + 1 + rng.Below(static_cast<uint64_t>(applies) * 7 / 8);
    ASSERT_TRUE(Eventually([&] { return !life_->process().Ended() && burst_.acknowledged() >= until; }, kLong))
        << burst_.refusal();
    Kill();
    if (HasFatalFailure()) return;
    ASSERT_TRUE(Start()) << life_->process().err();
    ASSERT_TRUE(Ready());
  }
  Judge(kills);
  std::cout << fmt::format("{}: {} kills in bursts of {}, {} acknowledged applies\n", GetParam(), kills, applies,
                           burst_.acknowledged());
}

TEST_P(SchedulerKilled, AtEveryCrashPoint) {
  std::set<std::string> points = {"host.in_step", "host.after_step"};
  for (const faults::Row& row : faults::RowsOf("SchedulerKilled.AtEveryCrashPoint", "scheduler_role", "crash")) {
    points.insert(row.name);
  }
  ASSERT_EQ(points.size(), 7);
  if (!etcd_) {  // whose own are in another process
    for (const faults::Row& row : faults::RowsOf("SqliteStoreKilled.AtEveryCrashPoint", "store", "crash")) {
      points.insert(row.name);
    }
    ASSERT_EQ(points.size(), 9);
  }
  ASSERT_TRUE(Start());
  ASSERT_TRUE(Ready());
  burst_.Begin(life_->client(), 10);
  ASSERT_TRUE(Eventually([&] { return burst_.answered(); }));
  for (const std::string& point : points) {
    Kill();
    if (HasFatalFailure()) return;
    if (Start(point + ":12")) {
      burst_.Begin(life_->client(), 10);
      ASSERT_TRUE(Eventually([&] {
        if (burst_.answered() && !life_->process().Ended()) burst_.Begin(life_->client(), 10);
        return life_->process().Ended();
      })) << point;
    }
    EXPECT_EQ(life_->process().Wait(), 128 + SIGKILL) << point << life_->process().err();
    ASSERT_TRUE(Eventually([&] { return burst_.answered(); }));
    ASSERT_TRUE(Start()) << life_->process().err();
    ASSERT_TRUE(Ready());
  }
  Judge();
}
INSTANTIATE_TEST_SUITE_P(Stores, SchedulerKilled, testing::Values("sqlite", "etcd"),
                         [](const auto& row) { return row.param; });

// --- several schedulers

class SchedulerPair : public testing::Test {
 protected:
  void SetUp() override {
    for (auto& life : lives_) {
      life = std::make_unique<SchedulerLife>(SchedulerCommand(etcd_.url()));
      ASSERT_TRUE(life->up()) << life->process().err();
    }
    client_ = *rpc::MakeClusterClient(lives_[0]->grpc() + "," + lives_[1]->grpc());
    ASSERT_TRUE(Eventually([&] { return Leader() != nullptr; }));
  }
  SchedulerLife* Leader() {
    for (auto& life : lives_) {
      if (!life->process().Ended() && life->Leads()) return life.get();
    }
    return nullptr;
  }
  SchedulerLife* Other(const SchedulerLife* one) { return lives_[0].get() == one ? lives_[1].get() : lives_[0].get(); }
  Result<contract::ClusterReply> Ask(contract::ClusterRequest request) {
    std::promise<Result<contract::ClusterReply>> answer;
    client_->Ask(std::move(request), [&](Result<contract::ClusterReply> reply) { answer.set_value(std::move(reply)); });
    return answer.get_future().get();
  }
  bool Runs(const std::string& id) {
    const auto reply = Ask(contract::GetWorkload{.workload = id});
    return reply && std::get<contract::WorkloadView>(*reply).phase == model::WorkloadPhase::kRunning;
  }

  store::Etcd etcd_;
  std::array<std::unique_ptr<SchedulerLife>, 2> lives_;
  std::unique_ptr<rpc::ClusterClient> client_;
};

TEST_F(SchedulerPair, AStandbyAnswersQuestionsAndNamesTheLeaderToThoseWhoChange) {
  SchedulerLife& leader = *Leader();
  SchedulerLife& standby = *Other(&leader);
  // A leader refuses changes until it has seen all that was written before it was elected.
  ASSERT_TRUE(Eventually([&] { return Ask(Cluster::Container("web")).has_value(); }));
  EXPECT_TRUE(Eventually([&] { return standby.Workloads().size() == 1; }));
  // Who leads reaches the standby by its own look at the lease, apart from the workloads.
  std::string refusal;
  EXPECT_TRUE(Eventually([&] {
    const auto refused = standby.Ask(Cluster::Container("other"));
    if (refused.has_value()) return false;
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
    refusal = refused.error().message();
    return refusal.contains(leader.grpc());
  })) << refusal;
  EXPECT_EQ(standby.Workloads().size(), 1U);
}

// The election's key is held by one that does not say who it is.
TEST(SchedulerReadiness, IsNotThereWhileTheStoreAnswersAndNoLeaderIsKnown) {
  store::Etcd etcd;
  const auto store = rpc::OpenStore(etcd.url());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  store::Blocking writer(**store);
  const auto hold = [&](const std::string& leader) {
    const auto outcome = writer.Commit({.compares = {}, .writes = {{.key = "/leader", .value = leader}}});
    return std::holds_alternative<contract::Committed>(outcome);
  };
  ASSERT_TRUE(Eventually([&] { return hold(""); }, kLong)) << "the etcd has just been started";
  SchedulerLife life(SchedulerCommand(etcd.url()));
  ASSERT_TRUE(life.up()) << life.process().err();
  const host::Address http = *host::ParseListenAddress(life.http(), false, "http");
  std::string body;
  EXPECT_TRUE(Eventually([&] {
    life.process().Ended();
    body = host::HttpGet(http, "/readyz").body;
    return body == "leadership: no leader is known yet\n";
  })) << body;
  EXPECT_EQ(host::HttpGet(http, "/readyz").status, 503);
  ASSERT_TRUE(hold("10.0.0.9:8085"));
  EXPECT_TRUE(Eventually([&] { return host::HttpGet(http, "/readyz").status == 200; }))
      << host::HttpGet(http, "/readyz").body;
}

TEST(SchedulerHistory, OfAnEtcdIsCompactedByTheLeader) {
  store::Etcd etcd;
  std::vector<std::string> command = SchedulerCommand(etcd.url());
  command.insert(command.end(), {"--store-compact-every", "200ms"});
  SchedulerLife life(command);
  ASSERT_TRUE(life.up()) << life.process().err();
  ASSERT_TRUE(Eventually([&] { return life.Ask(Cluster::Container("web")).has_value(); }, kLong));
  const auto store = rpc::OpenStore(etcd.url());
  ASSERT_TRUE(store.has_value()) << store.error().ToString();
  EXPECT_TRUE(Eventually([&] {
    life.process().Ended();
    store::WatchLog log(**store, contract::EveryKey(), 1);
    return log.WaitFor(1) && log.compacted() > 1;
  })) << life.process().err();
  EXPECT_EQ(life.Workloads().size(), 1U);
}

TEST_F(SchedulerPair, TheOtherTakesOverWhenTheLeaderIsKilledAndNothingRunsTwice) {
  SchedulerLife& leader = *Leader();
  SchedulerLife& standby = *Other(&leader);
  // Agents know one address each: those of the standby are refused until it leads.
  FakeAgent first("n1");
  first.Register(leader.grpc());
  ASSERT_TRUE(Eventually([&] { return !leader.Nodes().empty(); }));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(Cluster::Container(fmt::format("w{}", i))).has_value());
  ASSERT_TRUE(Eventually([&] { return Runs("w19") && Runs("w0"); }));
  const int applied = first.calls("ApplyWorkload");
  const MonoTime killed = host::SystemClock().Read().mono;
  leader.process().Signal(SIGKILL);
  leader.process().Wait();
  first.Register(standby.grpc());
  ASSERT_TRUE(Eventually([&] { return Ask(Cluster::Container("after")).has_value(); }));
  const Duration took = host::SystemClock().Read().mono - killed;
  EXPECT_LT(took, 6s);
  EXPECT_TRUE(Eventually([&] { return Runs("after"); }));
  EXPECT_EQ(first.calls("ApplyWorkload"), applied + 1) << "what ran is not applied again";
  EXPECT_EQ(first.calls("DeleteWorkload"), 0);
  std::cout << fmt::format("taken over after {} ms\n",
                           std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
}

// The assignments that watches show: which node a workload was given under which sequence, and the decisions of that.
class Assignments {
 public:
  void Add(const contract::ClusterChange& change) {
    if (const auto* decision = std::get_if<contract::Decision>(&change)) return Add(*decision);
    const auto& object = std::get<contract::ObjectChanged>(change);
    if (const auto* view = std::get_if<contract::WorkloadView>(&object.now)) Add(*view);
  }
  void Add(const contract::Decision& decision) {
    const std::lock_guard lock(mu_);
    if (decision.kind == contract::DecisionKind::kPlaced) ++placed_[decision.workload];
    if (decision.kind == contract::DecisionKind::kFailedOver) ++failed_over_[decision.workload];
  }
  void Add(const contract::WorkloadView& view) {
    if (view.node.empty()) return;
    const std::lock_guard lock(mu_);
    const auto [at, is_new] = nodes_.try_emplace({view.workload, view.stamp.sequence}, view.node);
    if (at->second != view.node) {
      twice_.push_back(
          fmt::format("{} under {} on {} and {}", view.workload, view.stamp.sequence, at->second, view.node));
    }
  }
  std::vector<std::string> twice() const {
    const std::lock_guard lock(mu_);
    return twice_;
  }
  // A workload is placed once, whichever scheduler decides it: a placement is told once it is durable, and one whose
  // commit was lost, or is in doubt, is not told, and is decided again under the same sequence. Another sequence comes
  // of a failover alone, which is told by its name: a node may be slow while the machine is busy.
  std::vector<std::string> decided_again() const {
    const std::lock_guard lock(mu_);
    std::vector<std::string> found;
    for (const auto& [id, times] : placed_) {
      if (times > 1) found.push_back(fmt::format("{} was placed {} times", id, times));
    }
    std::map<std::string, int> sequences;
    for (const auto& [assignment, node] : nodes_) ++sequences[assignment.first];
    for (const auto& [id, count] : sequences) {
      const auto moves = failed_over_.find(id);
      const int told = moves == failed_over_.end() ? 0 : moves->second;
      if (count > 1 + told) found.push_back(fmt::format("{} has {} sequences and {} failovers", id, count, told));
    }
    return found;
  }
  size_t placed() const {
    const std::lock_guard lock(mu_);
    return placed_.size();
  }
  size_t workloads() const {
    const std::lock_guard lock(mu_);
    std::set<std::string> ids;
    for (const auto& [assignment, node] : nodes_) ids.insert(assignment.first);
    return ids.size();
  }

 private:
  mutable std::mutex mu_;
  std::map<std::pair<std::string, uint64_t>, std::string> nodes_;  // guarded by mu_
  std::vector<std::string> twice_;                                 // guarded by mu_
  std::map<std::string, int> placed_;                              // guarded by mu_
  std::map<std::string, int> failed_over_;                         // guarded by mu_
};

TEST_F(SchedulerPair, TheLeaderIsKilledInTheMiddleOfABurst) {
  constexpr int kApplies = 400;
  SchedulerLife& leader = *Leader();
  SchedulerLife& standby = *Other(&leader);
  Agents agents(leader.grpc());
  ASSERT_TRUE(Eventually([&] { return leader.Nodes().size() == kNodes; }));
  // A watch of one that has not read the store yet is told to list again.
  ASSERT_TRUE(Eventually([&] { return standby.Nodes().size() == kNodes; }));
  Assignments assignments;
  std::atomic<bool> standby_ended = false;  // a watch ends when its scheduler loses the store
  std::vector<std::unique_ptr<rpc::OpenStream>> watches;
  for (SchedulerLife* life : {&leader, &standby}) {
    watches.push_back(
        life->client().Watch({.workloads = true, .decisions = true},
                             {.changed = [&](const contract::ClusterChange& change) { assignments.Add(change); },
                              .ended =
                                  [&standby_ended, of_standby = life == &standby](const Status& why) {
                                    if (!of_standby) return;
                                    std::cout << "the standby's watch has ended: " << why.ToString() << "\n";
                                    standby_ended = true;
                                  }}));
  }

  Burst burst;
  burst.Begin(leader.client(), kApplies);
  ASSERT_TRUE(Eventually([&] { return !leader.process().Ended() && burst.acknowledged() >= kApplies / 8; }, kLong))
      << burst.refusal();
  leader.process().Signal(SIGKILL);
  leader.process().Wait();
  ASSERT_TRUE(Eventually([&] { return burst.answered(); }));
  const size_t before = burst.acknowledged();
  ASSERT_LT(before, kApplies) << "it was not in the middle";
  agents.Register(standby.grpc());
  ASSERT_TRUE(Eventually([&] { return standby.Leads() && standby.Nodes().size() == kNodes; }, kLong));
  ASSERT_TRUE(Eventually([&] { return standby.Ask(Cluster::Container("first", kCpuMilli)).has_value(); }, kLong));
  burst.Begin(standby.client(), kApplies / 4);
  ASSERT_TRUE(Eventually([&] { return !standby.process().Ended() && burst.answered(); }, kLong)) << burst.refusal();
  EXPECT_EQ(burst.acknowledged(), before + kApplies / 4) << burst.refusal();

  std::string wrong;
  EXPECT_TRUE(Eventually([&] { return (wrong = Wrong(standby, agents, burst.ids())).empty(); }, kLong)) << wrong;
  EXPECT_TRUE(Eventually([&] { return assignments.workloads() >= burst.acknowledged() || standby_ended; }));
  for (const contract::WorkloadView& view : standby.Workloads()) assignments.Add(view);
  EXPECT_GE(assignments.workloads(), burst.acknowledged());
  EXPECT_EQ(assignments.twice(), std::vector<std::string>()) << "a sequence names one assignment";
  EXPECT_EQ(assignments.decided_again(), std::vector<std::string>()) << "a workload has one assignment";
  EXPECT_GT(assignments.placed(), 0U);
  watches.clear();
  std::cout << fmt::format("{} of {} applies were acknowledged before the kill, {} in all\n", before, kApplies,
                           burst.acknowledged());
}

TEST_F(SchedulerPair, ALeaderThatIsToldToStopGivesItUpAtOnce) {
  SchedulerLife& leader = *Leader();
  SchedulerLife& standby = *Other(&leader);
  leader.process().Signal(SIGTERM);
  EXPECT_TRUE(Eventually([&] { return standby.Leads(); }, 2s));
  EXPECT_EQ(leader.process().Wait(), 0);
}

// What a workload is and where, without what only says when.
std::string PlaceOf(const contract::WorkloadView& view) {
  return fmt::format("{} {} {} {}", view.workload, model::WorkloadPhaseName(view.phase), view.node,
                     view.stamp.sequence);
}

// Longer than a node may be silent, so that every age would be too old if it went on counting.
TEST_F(SchedulerPair, WhileEtcdIsAwayQuestionsAreAnsweredAndNothingMoves) {
  SchedulerLife& leader = *Leader();
  // Alone: the agents know one address each.
  Other(&leader)->process().Signal(SIGTERM);
  ASSERT_EQ(Other(&leader)->process().Wait(), 0);
  FakeAgent first("n1");
  FakeAgent second("n2");
  for (FakeAgent* agent : {&first, &second}) agent->Register(leader.grpc());
  ASSERT_TRUE(Eventually([&] { return leader.Nodes().size() == 2; }));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Ask(Cluster::Container(fmt::format("w{}", i))).has_value());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Eventually([&] { return Runs(fmt::format("w{}", i)); }));
  std::vector<std::string> before;
  for (const contract::WorkloadView& view : leader.Workloads()) before.push_back(PlaceOf(view));
  const int applied = first.calls("ApplyWorkload") + second.calls("ApplyWorkload");

  etcd_.Pause(0);
  const MonoTime gone = host::SystemClock().Read().mono;
  ASSERT_TRUE(Eventually([&] {
    const auto reply = leader.Ask(contract::ListWorkloads{});
    return reply && std::get<contract::WorkloadsListed>(*reply).stale_since.has_value();
  }));
  for (const contract::ClusterRequest& one : {contract::ClusterRequest(contract::GetWorkload{.workload = "w0"}),
                                              contract::ClusterRequest(contract::GetNode{.node = "n1"})}) {
    const auto reply = leader.Ask(one);
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
    const auto* workload = std::get_if<contract::WorkloadView>(&*reply);
    EXPECT_TRUE(workload != nullptr ? workload->stale_since.has_value()
                                    : std::get<contract::NodeView>(*reply).stale_since.has_value());
  }
  EXPECT_EQ(leader.Ask(Cluster::Container("other")).error().code(), Code::kUnavailable);
  int answered = 0;
  ASSERT_TRUE(Eventually(
      [&] {
        const auto reply = leader.Ask(contract::ListWorkloads{});
        if (!reply || std::get<contract::WorkloadsListed>(*reply).workloads.size() != 10) return true;
        ++answered;
        return host::SystemClock().Read().mono - gone >= Away();
      },
      Away() + kLong));
  EXPECT_GE(host::SystemClock().Read().mono - gone, Away()) << "a question was not answered from memory";
  etcd_.Resume(0);

  ASSERT_TRUE(Eventually([&] { return Ask(Cluster::Container("other")).has_value(); }, kLong));
  ASSERT_TRUE(Eventually([&] { return Runs("other"); }));
  std::vector<std::string> after;
  for (const contract::WorkloadView& view : leader.Workloads()) {
    if (view.workload != "other") after.push_back(PlaceOf(view));
  }
  EXPECT_EQ(after, before) << "nothing healthy fails over";
  EXPECT_EQ(first.calls("DeleteWorkload") + second.calls("DeleteWorkload"), 0);
  EXPECT_EQ(first.calls("ApplyWorkload") + second.calls("ApplyWorkload"), applied + 1);
  std::cout << fmt::format("etcd was away for {} s, {} questions were answered meanwhile\n", Away() / 1s, answered);
}

// Its etcd loses its data and begins again at a lower revision, while the scheduler and its nodes go on.
TEST(SchedulerStoreLost, AnEmptyEtcdInPlaceOfTheOneBeforeDeletesNothing) {
  store::Etcd etcd;
  RoleOptions options = ShortSettings(etcd.url());
  Cluster cluster(options);
  ASSERT_TRUE(Eventually([&] { return cluster.role().View()->leading; }, kLong));
  FakeAgent first("n1");
  FakeAgent second("n2");
  for (FakeAgent* agent : {&first, &second}) {
    agent->Register(cluster.address());
    ASSERT_TRUE(cluster.NodeBecomes(agent->node(), model::NodeStatus::kReady));
  }
  for (int i = 0; i < 20; ++i) ASSERT_EQ(cluster.Apply(Cluster::Container(fmt::format("w{}", i))), Status());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(cluster.Becomes(fmt::format("w{}", i), model::WorkloadPhase::kRunning, kLong));
  }
  etcd.Kill();
  etcd.Wipe();
  etcd.Start(0);
  const auto held = [&](const std::string& node) {
    const auto reply = cluster.Ask(contract::GetNode{.node = node});
    return reply ? std::get<contract::NodeView>(*reply).orphans_held : 0;
  };
  ASSERT_TRUE(Eventually([&] { return held("n1") + held("n2") == 20; }, kLong)) << held("n1") << " " << held("n2");
  EXPECT_FALSE(cluster.Has("w0"));
  EXPECT_EQ(cluster.Apply(Cluster::Container("other")), Status());
  ASSERT_TRUE(cluster.Becomes("other", model::WorkloadPhase::kRunning, kLong));
  EXPECT_EQ(first.calls("DeleteWorkload") + second.calls("DeleteWorkload"), 0);
  EXPECT_EQ(first.workloads().size() + second.workloads().size(), 21U);
}

}  // namespace
}  // namespace muster::scheduler
