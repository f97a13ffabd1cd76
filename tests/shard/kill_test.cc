// The real programs, killed: a shard and its provider, at every crash point of the shard and at random moments, while
// three clusters change their minds. Afterwards every cluster has what it wants, no machine is lost, the provider's
// ledger has no operation twice, the epoch has grown with every life and an old one is refused; and a restart at static
// demand does nothing.
//
// MUSTER_KILLS says how many random kills, 10 unless given, and ten times how often each crash point is tried.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "base/rng.h"
#include "host/fault_table_for_test.h"
#include "shard/fleet.h"

namespace muster::shard {
namespace {

constexpr uint64_t kMachines = 120;
constexpr int64_t kClusters = 3;

int Kills() {
  const char* asked = std::getenv("MUSTER_KILLS");
  return asked != nullptr ? std::stoi(asked) : 10;
}

// Those of the loop and of its own shell.
std::set<std::string> CrashPoints() {
  std::set<std::string> names;
  for (const char* area : {"host", "shard"}) {
    for (const faults::Row& row : faults::RowsOf("Killed.AtEveryCrashPoint", area, "crash")) names.insert(row.name);
  }
  return names;
}

class Killed : public ::testing::Test {
 protected:
  Killed() : fleet_(kMachines) {}

  void StartProvider() {
    life_ = std::make_unique<provider::Life>(fleet_.ProviderCommand(provider_));
    ASSERT_TRUE(life_->up()) << life_->process().err();
    provider_ = life_->grpc();
  }
  // Whether it listens: with a crash point it may die before.
  bool StartShard(const std::string& crash_point = {}) {
    std::vector<std::string> command = fleet_.ShardCommand(provider_, shard_, {"--max-actions-per-cycle", "20"});
    if (!crash_point.empty()) command.insert(command.begin(), {"env", "MUSTER_CRASH_POINT=" + crash_point});
    shard_life_ = std::make_unique<ShardLife>(command);
    if (!shard_life_->up()) return false;
    shard_ = shard_life_->grpc();
    return true;
  }
  void StartClusters() {
    for (int64_t i = 0; i < kClusters; ++i) {
      const std::string id = fmt::format("c-{}", i);
      clusters_.push_back(std::make_unique<TestCluster>(id, shard_));
    }
    ChangeMinds(0);
  }
  // Every cluster wants something else now, all together no more than there is. It never wants less than a tenth of
  // what it wanted before: the shard would hold such a roll-up for 30 s, and a cluster of this test sends each only
  // once.
  void ChangeMinds(uint64_t seed) {
    Rng rng(seed);
    int64_t wanted = 0;
    for (int64_t i = 0; i < kClusters; ++i) {
      const std::string id = fmt::format("c-{}", i);
      const auto half = static_cast<int64_t>(kMachines) / (2 * kClusters);
      const int64_t low = 3 + static_cast<int64_t>(rng.Below(half - 2));
      const int64_t high = 3 + static_cast<int64_t>(rng.Below(half - 2));
      wanted += low + high;
      clusters_[static_cast<size_t>(i)]->Want({NeedOf(id, low, 10), NeedOf(id, high, 20)});
    }
    wanted_ = wanted;
  }
  static void Kill(smoke::Server& server) {
    server.process().Signal(SIGKILL);
    ASSERT_EQ(server.process().Wait(), 128 + SIGKILL) << server.process().err();
  }

  size_t AuditLines() const {
    std::ifstream file(fleet_.File("audit.log"));
    return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }
  std::vector<contract::MachineRecord> ListAll() {
    const auto reply = Wait<contract::ProviderReply>(
        [&](auto done) { life_->client().Ask(contract::ListRequest{}, kPatience, std::move(done)); });
    if (!reply) return {};
    std::vector<contract::MachineRecord> machines = std::get<contract::ListReply>(*reply).machines;
    std::ranges::sort(machines, {}, [](const auto& m) -> const std::string& { return m->id; });
    return machines;
  }

  void Judge() {
    ASSERT_TRUE(Eventually([&] { return AtRest(); })) << shard_life_->process().err();
    const std::vector<contract::MachineRecord> machines = ListAll();
    ASSERT_EQ(machines.size(), kMachines) << "no machine is lost";
    ExpectOncePerOperation();
    // The shard sees what the provider has.
    const auto seen = shard_life_->Ask<contract::MachinesListed>(contract::ListMachines{});
    ASSERT_TRUE(seen);
    ASSERT_EQ(seen->machines.size(), machines.size());
    for (size_t i = 0; i < machines.size(); ++i) {
      const auto it = std::ranges::find(machines, seen->machines[i].machine->id, [](const auto& m) { return m->id; });
      ASSERT_NE(it, machines.end());
      EXPECT_EQ(seen->machines[i].machine->cluster, (*it)->cluster) << (*it)->id;
    }
    ExpectOldEpochIsRefused(machines);
    ExpectARestartDoesNothing(machines);
  }

  void ExpectOncePerOperation() const {
    std::ifstream ledger(fleet_.File("provider/cloud.log"));
    std::set<std::string> seen;
    for (std::string line; std::getline(ledger, line);) {
      const std::string operation = line.substr(0, line.find('\t'));
      EXPECT_TRUE(seen.insert(operation).second) << operation << " was done twice";
    }
    EXPECT_GT(seen.size(), 0u);
  }

  // A machine that a later life has bound takes no call of the first one, however high its sequence.
  void ExpectOldEpochIsRefused(const std::vector<contract::MachineRecord>& machines) {
    const auto later = std::ranges::find_if(machines, [](const auto& m) {
      const auto by = m->shard_metadata.find("muster.v1/bound-by");
      return by != m->shard_metadata.end() && by->second != "1/shard-0";
    });
    ASSERT_NE(later, machines.end());
    const auto reply = Wait<contract::ProviderReply>([&](auto done) {
      life_->client().Ask(contract::DrainRequest{.machine_id = (*later)->id,
                                                 .grace_period_seconds = 0,
                                                 .fence = {.shard_id = "shard-0", .epoch = 1, .sequence = 1'000'000}},
                          kPatience, std::move(done));
    });
    ASSERT_FALSE(reply) << "an epoch of an earlier life was taken";
    EXPECT_EQ(reply.error().code(), Code::kFailedPrecondition) << reply.error().ToString();
  }

  void ExpectARestartDoesNothing(const std::vector<contract::MachineRecord>& before) {
    const size_t lines = AuditLines();
    Kill(*shard_life_);
    ASSERT_TRUE(StartShard()) << shard_life_->process().err();
    ASSERT_TRUE(Eventually([&] { return AtRest(); })) << shard_life_->process().err();
    const int64_t cycle = shard_life_->Cycle();
    ASSERT_TRUE(Eventually([&] { return shard_life_->Cycle() > cycle + 5; }));
    EXPECT_EQ(AuditLines(), lines) << "a restart at static demand causes no action";
    const std::vector<contract::MachineRecord> after = ListAll();
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i]->cluster, before[i]->cluster) << after[i]->id;
      EXPECT_EQ(after[i]->shard_metadata, before[i]->shard_metadata) << after[i]->id;
    }
  }

  // Clusters have what they want, and everything else is given back.
  bool AtRest() {
    if (!shard_life_->Settled(2 * kClusters)) return false;
    const std::vector<contract::MachineRecord> machines = ListAll();
    const auto count = [&](model::MachineState state) {
      return std::ranges::count_if(machines, [&](const auto& m) { return m->state == state; });
    };
    return count(model::MachineState::kConfigured) == wanted_ &&
           count(model::MachineState::kSpeculative) == static_cast<int64_t>(kMachines) - wanted_;
  }

  // So many lines of the audit log have come.
  bool Progress(size_t lines) {
    const size_t until = AuditLines() + lines;
    return Eventually([&] { return !shard_life_->process().Ended() && AuditLines() >= until; });
  }

  Fleet fleet_;
  std::string provider_ = ":0";
  std::string shard_ = ":0";
  std::unique_ptr<provider::Life> life_;
  std::unique_ptr<ShardLife> shard_life_;
  std::vector<std::unique_ptr<TestCluster>> clusters_;
  int lives_ = 1;       // of the shard
  int64_t wanted_ = 0;  // machines, by all clusters
};

TEST_F(Killed, AtRandomMoments) {
  StartProvider();
  if (HasFatalFailure()) return;
  ASSERT_TRUE(StartShard()) << shard_life_->process().err();
  StartClusters();
  Rng rng(7);
  const int kills = Kills();
  for (int i = 0; i < kills; ++i) {
    ChangeMinds(static_cast<uint64_t>(i) + 1);
    // A moment drawn in actions, not in seconds; few enough that there is always one more.
    ASSERT_TRUE(Progress(1 + rng.Below(12))) << shard_life_->process().err();
    const uint64_t whom = rng.Below(3);
    if (whom != 0) Kill(*shard_life_);
    if (whom != 1) {
      Kill(*life_);
      StartProvider();
    }
    if (HasFatalFailure()) return;
    if (whom != 0) {
      ASSERT_TRUE(StartShard()) << shard_life_->process().err();
      ++lives_;
    }
  }
  Judge();
  std::cout << fmt::format("{} kills, {} lives of the shard, {} lines in the audit log\n", kills, lives_, AuditLines());
}

TEST_F(Killed, AtEveryCrashPoint) {
  const std::set<std::string> points = CrashPoints();
  EXPECT_GE(points.size(), 8u);
  StartProvider();
  if (HasFatalFailure()) return;
  ASSERT_TRUE(StartShard()) << shard_life_->process().err();
  StartClusters();
  ASSERT_TRUE(Eventually([&] { return AtRest(); })) << shard_life_->process().err();
  Kill(*shard_life_);
  Rng rng(1);
  uint64_t seed = 0;
  const int rounds = std::max(1, Kills() / 10);
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& point : points) {
      StartShard(fmt::format("{}:{}", point, round == 0 ? 3 : 1 + rng.Below(20)));
      ++lives_;
      // Whoever passes it seldom is given reasons to pass it again.
      ASSERT_TRUE(Eventually([&] {
        ChangeMinds(++seed);
        return shard_life_->process().Ended();
      })) << point;
      EXPECT_EQ(shard_life_->process().Wait(), 128 + SIGKILL) << point << "\n" << shard_life_->process().err();
      if (HasFailure()) return;
    }
  }
  ASSERT_TRUE(StartShard()) << shard_life_->process().err();
  Judge();
  std::cout << fmt::format("{} kills at {} crash points, {} lines in the audit log\n",
                           rounds * static_cast<int>(points.size()), points.size(), AuditLines());
}

}  // namespace
}  // namespace muster::shard
