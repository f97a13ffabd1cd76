// Random histories: requests, agents that fail, hang and vanish, a store that loses answers and is written by others,
// restarts and journals. After each the faults end, and everything must come to be as it was asked for.
#include <cstdlib>

#include "base/rng.h"
#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::ActualState;

class History {
 public:
  explicit History(uint64_t seed) : rng_(seed), lab_(ConfigOf(rng_)) {
    lab_.reload = rng_.Chance(1, 10);
    const auto nodes = rng_.Between(1, 4);
    for (int64_t i = 0; i < nodes; ++i) {
      const std::string node = fmt::format("n{}", i);
      lab_.agents[node].native = rng_.Chance(1, 2);
      lab_.agents[node].start_takes = std::chrono::milliseconds(rng_.Between(0, 3000));
      nodes_.push_back(node);
      lab_.AddNode(node);
    }
  }

  void Run() {
    const auto steps = rng_.Between(10, 60);
    for (int64_t i = 0; i < steps; ++i) {
      Act();
      Fault();
      lab_.Run(std::chrono::milliseconds(rng_.Chance(1, 3) ? rng_.Between(0, 20) : rng_.Between(0, 30000)));
      CheckAnswers();
    }
    EndFaults();
    lab_.Run(10min);
    // What was deleted while a node was away is forgotten by a scheduler that restarts, and may be held.
    for (const std::string& node : nodes_) EXPECT_TRUE(lab_.Try(contract::AcceptNode{node}).ok());
    lab_.Run(20min);
    CheckAnswers();
    CheckDesired();
  }

 private:
  static Config ConfigOf(Rng& rng) {
    Config config;
    config.node_timeout = rng.Chance(1, 2) ? 3min : Duration(30s);
    config.monitor_interval = 10s;
    config.max_attempts = static_cast<int32_t>(rng.Between(1, 50));
    return config;
  }
  std::string SomeNode() { return nodes_[rng_.Below(nodes_.size())]; }
  std::string SomeWorkload() { return fmt::format("w{}", rng_.Below(6)); }
  LabAgent& SomeAgent() { return lab_.agents[SomeNode()]; }

  void Ask(contract::ClusterRequest body, const std::string& workload, std::optional<model::DesiredState> desired) {
    open_[lab_.Ask(std::move(body))] = {workload, desired};
  }

  void Act() {
    const std::string id = SomeWorkload();
    switch (rng_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        model::WorkloadTemplate spec = Lab::Template(rng_.Between(1, 4) * 1000);
        spec.image = fmt::format("image{}", rng_.Below(3));
        spec.priority = static_cast<int32_t>(rng_.Below(3));
        return Ask(Lab::ApplyOf(id, spec), id, model::DesiredState::kRunning);
      }
      case 4:
        return Ask(contract::ApplyWorkload{.workload = id, .desired = model::DesiredState::kStopped}, id,
                   model::DesiredState::kStopped);
      case 5:
        delete_asked_.insert(id);
        return Ask(contract::DeleteObject{.kind = contract::ObjectKind::kWorkload, .name = id}, id,
                   model::DesiredState::kDeleted);
      case 6: return Ask(contract::RetryWorkload{id}, id, std::nullopt);
      case 7: {
        model::WorkloadSpec set{.kind = model::WorkloadKind::kSet,
                                .name = "set",
                                .replicas = static_cast<int32_t>(rng_.Below(5)),
                                .spec = Lab::Template(500)};
        set.max_surge.amount = static_cast<int32_t>(rng_.Below(2));
        set.min_available.amount = static_cast<int32_t>(rng_.Below(2));
        set.spec.image = fmt::format("image{}", rng_.Below(3));
        return Ask(contract::ApplySpec{.spec = set}, "", std::nullopt);
      }
      case 8: return Ask(contract::CordonNode{.node = SomeNode(), .cordoned = rng_.Chance(1, 2)}, "", std::nullopt);
      case 9: return Ask(contract::DrainNode{.node = SomeNode(), .reason = "test"}, "", std::nullopt);
      case 10: return Ask(contract::DeleteObject{.kind = contract::ObjectKind::kSet, .name = "set"}, "", std::nullopt);
      default: return;
    }
  }

  void Fault() {
    switch (rng_.Below(16)) {
      case 0: SomeAgent().unreachable = rng_.Chance(1, 2); return;
      case 1: SomeAgent().hangs = rng_.Chance(1, 3); return;
      case 2: SomeAgent().workloads.clear(); return;
      case 3:
        SomeAgent().fails = {{SomeWorkload(), rng_.Chance(1, 3) ? "runtime not available" : "exit code 1"}};
        return;
      case 4: lab_.lose_answers = rng_.Chance(1, 2); return;
      case 5: lab_.lose_requests = rng_.Chance(1, 3); return;
      case 6: lab_.StopBeating(SomeNode()); return;
      case 7: {
        const std::string node = SomeNode();
        if (!lab_.beating.contains(node)) lab_.StartBeating(node);
        return;
      }
      case 8: lab_.LoseStore(); return;
      case 9: lab_.ReturnStore(); return;
      case 10:
        if (!rng_.Chance(1, 4)) return;
        lab_.Restart();
        open_.clear();  // whoever asked has lost the connection
        return;
      case 11: lab_.Post(LeadershipChanged{.leading = false, .leader = "other"}); return;
      case 12: lab_.Post(LeadershipChanged{.leading = true}); return;
      case 13: WriteByHand(); return;
      case 14: SomeAgent().fails.clear(); return;
      default: return;
    }
  }

  // Another program changes a record.
  void WriteByHand() {
    const std::string id = SomeWorkload();
    const auto row = lab_.store->rows.find("/workloads/" + id);
    if (row == lab_.store->rows.end()) return;
    auto record = DecodeWorkload(row->second.value);
    ASSERT_TRUE(record);
    record->metadata["hand"] = fmt::format("{}", rng_.Below(100));
    lab_.WriteBehind(row->first, Encode(*record));
  }

  // What an answer promised is in the store from then on.
  void CheckAnswers() {
    std::erase_if(open_, [&](const auto& entry) {
      const auto answer = lab_.answers.find(entry.first);
      if (answer == lab_.answers.end()) return false;
      const auto& [workload, desired] = entry.second;
      if (answer->second.status.ok() && desired) acknowledged_[workload] = *desired;
      return true;
    });
  }

  void EndFaults() {
    lab_.lose_answers = false;
    lab_.lose_requests = false;
    for (const std::string& node : nodes_) {
      LabAgent& agent = lab_.agents[node];
      agent.unreachable = false;
      agent.hangs = false;
      agent.fails.clear();
    }
    lab_.Post(LeadershipChanged{.leading = true});
    lab_.ReturnStore();
    lab_.Run(10s);
    for (const std::string& node : nodes_) {
      EXPECT_TRUE(lab_.Register(lab_.Facts(node)).accepted);
      EXPECT_TRUE(lab_.Try(contract::CordonNode{.node = node, .cordoned = false}).ok());
      if (!lab_.beating.contains(node)) lab_.StartBeating(node);
    }
  }

  void CheckDesired() {
    for (const auto& [id, desired] : acknowledged_) {
      if (desired == model::DesiredState::kDeleted || delete_asked_.contains(id)) continue;
      EXPECT_TRUE(lab_.Exists(id)) << "acknowledged " << id << " is lost";
    }
    std::map<std::string, int> live;
    for (const std::string& node : nodes_) {
      for (const contract::WorkloadStatus& status : lab_.StatusesOf(node)) {
        const WorkloadRecord* record = lab_.core.copy().Find<WorkloadRecord>(status.workload);
        ASSERT_NE(record, nullptr) << status.workload << " is on " << node << " and in no record";
        EXPECT_EQ(record->workload.assigned_node, node) << status.workload;
        live[status.workload] += status.actual == ActualState::kRunning;
      }
    }
    for (const auto& [id, record] : lab_.core.copy().All<WorkloadRecord>()) {
      EXPECT_NE(record.workload.desired, model::DesiredState::kDeleted) << id << " is not gone";
      const bool running = record.workload.phase == model::WorkloadPhase::kRunning;
      if (record.workload.desired == model::DesiredState::kStopped) {
        EXPECT_EQ(model::WorkloadPhaseName(record.workload.phase), "Stopped") << id;
        EXPECT_EQ(live[id], 0) << id;
      } else if (record.workload.phase != model::WorkloadPhase::kFailed) {
        const bool waits = record.workload.phase == model::WorkloadPhase::kPending && record.waits > 0;
        EXPECT_TRUE(running || waits) << id << " is " << model::WorkloadPhaseName(record.workload.phase) << ": "
                                      << record.message;
        if (running) {
          EXPECT_EQ(live[id], 1) << id;
          const auto& agent = lab_.agents[record.workload.assigned_node];
          EXPECT_EQ(agent.workloads.at(id).status.revision, record.agent_revision) << id;
        }
      }
    }
    // And it stays so: nothing is written or launched any more.
    const uint64_t commits = lab_.store->commits;
    lab_.Run(1h);
    EXPECT_EQ(lab_.store->commits, commits) << "the scheduler does not come to rest";
  }
  Rng rng_;
  Lab lab_;
  std::vector<std::string> nodes_;
  std::map<contract::RequestId, std::pair<std::string, std::optional<model::DesiredState>>> open_;
  std::map<std::string, model::DesiredState> acknowledged_;
  std::set<std::string> delete_asked_;  // it may be carried out though its answer is lost
};

TEST(SchedulerHistories, ComeToWhatWasAskedForOnceTheFaultsEnd) {
  // MUSTER_SEEDS=N runs more of them, MUSTER_FIRST_SEED=N begins there.
  const auto number = [](const char* name, uint64_t otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr ? otherwise : std::stoull(value);
  };
  const uint64_t first = number("MUSTER_FIRST_SEED", 1);
  const uint64_t seeds = number("MUSTER_SEEDS", 60);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::scheduler
