// The real program, killed: at every crash point and at random moments, with hundreds of transitions under way,
// and on a disk that is full. Afterwards nothing is lost, nothing was done twice, fences and operation ids are those of
// before.
//
// MUSTER_KILLS says how many random kills, 10 unless given, and ten times how often each crash point is tried.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/rng.h"
#include "contract/provider.h"
#include "host/fault_table_for_test.h"
#include "host/temp_dir_for_test.h"
#include "provider/life.h"

namespace muster::provider {
namespace {

using contract::ProviderRequest;
using contract::TransitionAck;
using model::MachineState;

constexpr uint64_t kMachines = 400;
constexpr size_t kWorkers = 8;
constexpr std::string_view kCluster = "c";

constexpr std::string_view kCatalogue = R"(
zones: [a, b]
types:
  - name: quick
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    create: {median: 500ms, p99: 1s}
    configure: {median: 500ms, p99: 1s, fails: 0.02}
    drain: {median: 500ms, p99: 1s}
    delete: {median: 500ms, p99: 1s}
)";

// Blocks for the answer.
Result<contract::ProviderReply> Ask(contract::ProviderPort& port, ProviderRequest request, Duration timeout = 20s) {
  std::mutex mu;
  std::condition_variable answered;
  std::optional<Result<contract::ProviderReply>> result;
  port.Ask(std::move(request), timeout, [&](Result<contract::ProviderReply> reply) {
    const std::lock_guard lock(mu);
    result = std::move(reply);
    answered.notify_all();
  });
  std::unique_lock lock(mu);
  answered.wait(lock, [&] { return result.has_value(); });
  return *std::move(result);
}

std::vector<std::string> Provider(const std::string& data_dir, const std::string& catalogue) {
  return ProviderCommand(data_dir, catalogue, kMachines);
}

int Kills() {
  const char* asked = std::getenv("MUSTER_KILLS");
  return asked != nullptr ? std::stoi(asked) : 10;
}

// What the shards know for certain, over all lives of the provider.
struct Memory {
  struct Passed {
    contract::FenceToken token;
    size_t kind = 0;
    std::string operation;
  };
  std::mutex mu;
  std::condition_variable acknowledged_more;
  std::map<std::string, Passed> last;                                  // machine -> its last acknowledged transition
  std::map<std::string, int64_t> sent;                                 // machine -> sequence of the last one asked for
  std::map<std::string, std::pair<std::string, size_t>> acknowledged;  // operation -> machine and kind
  int64_t sequence = 0;

  int64_t NextSequence() {
    const std::lock_guard lock(mu);
    return ++sequence;
  }
};

ProviderRequest RequestFor(size_t kind, const std::string& machine, const contract::FenceToken& token) {
  switch (kind) {
    case 0: return contract::CreateRequest{.machine_id = machine, .fence = token};
    case 1:
      return contract::ConfigureRequest{.machine_id = machine,
                                        .cluster_id = std::string(kCluster),
                                        .bootstrap_blob = "b",
                                        .fence = token,
                                        .shard_metadata = {{"m", machine}}};
    case 2: return contract::DrainRequest{.machine_id = machine, .grace_period_seconds = 1, .fence = token};
    default: return contract::DeleteRequest{.machine_id = machine, .fence = token};
  }
}

std::string MachineId(uint64_t number) { return fmt::format("m-{:06}", number + 1); }

// One shard with its own machines: takes each from state to state until told to stop or the provider is gone.
void Work(contract::ProviderPort& port, Memory& memory, size_t worker, uint64_t seed, const std::atomic<bool>& stop) {
  Rng rng(seed);
  while (!stop) {
    const std::string machine = MachineId(rng.Below(kMachines / kWorkers) * kWorkers + worker);
    const auto got = Ask(port, contract::GetRequest{machine});
    if (!got) return;
    size_t kind = 4;
    switch (std::get<contract::GetReply>(*got).machine->state) {
      case MachineState::kSpeculative: kind = 0; break;
      case MachineState::kIdle: kind = rng.Chance(3, 4) ? 1 : 3; break;
      case MachineState::kConfigured: kind = 2; break;
      case MachineState::kFailed: kind = 3; break;
      default: continue;
    }
    const contract::FenceToken token{fmt::format("shard-{}", worker), 1, memory.NextSequence()};
    {
      const std::lock_guard lock(memory.mu);
      memory.sent[machine] = token.sequence;
    }
    const auto reply = Ask(port, RequestFor(kind, machine, token));
    if (!reply) {
      if (reply.error().code() == Code::kUnavailable) return;
      ADD_FAILURE() << machine << ": " << reply.error().ToString();
      return;
    }
    const std::string& id = std::get<TransitionAck>(*reply).operation_id;
    const std::lock_guard lock(memory.mu);
    memory.last[machine] = {.token = token, .kind = kind, .operation = id};
    memory.acknowledged[id] = {machine, kind};
    memory.acknowledged_more.notify_all();
  }
}

// Works until `end` has seen to it that the provider is dead.
void WorkUntil(Life& life, Memory& memory, uint64_t seed, const std::function<void()>& end) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> workers;
  for (size_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] { Work(life.client(), memory, i, seed * kWorkers + i, stop); });
  }
  end();
  stop = true;
  for (std::thread& worker : workers) worker.join();
}

// A new life knows the fences and the operations of the last one; asked of one machine in `every`.
void ExpectRemembered(contract::ProviderPort& port, Memory& memory, uint64_t seed, uint64_t every) {
  Rng rng(seed);
  std::vector<std::pair<std::string, Memory::Passed>> some;
  for (const auto& entry : memory.last) {
    if (rng.Chance(1, every)) some.push_back(entry);
  }
  for (const auto& [machine, passed] : some) {
    const auto old = Ask(port, RequestFor(passed.kind, machine, passed.token));
    ASSERT_FALSE(old.has_value()) << machine << ": its last token passed again";
    EXPECT_EQ(old.error().code(), Code::kFailedPrecondition) << old.error().ToString();
    // One that was asked for later and never answered may have been accepted or not.
    if (memory.sent[machine] != passed.token.sequence) continue;
    contract::FenceToken token = passed.token;
    token.sequence = memory.NextSequence();
    memory.sent[machine] = token.sequence;
    const auto again = Ask(port, RequestFor(passed.kind, machine, token));
    if (!again) {
      EXPECT_EQ(again.error().code(), Code::kAborted) << again.error().ToString();  // it failed, and says so
      EXPECT_NE(again.error().message().find("failed"), std::string::npos) << again.error().ToString();
      continue;
    }
    EXPECT_EQ(std::get<TransitionAck>(*again).operation_id, passed.operation) << machine;
    memory.last[machine].token = token;
  }
}

// The lines of the cloud's ledger.
struct Done {
  std::string operation;
  int kind = 0;
  std::string machine;
  bool failed = false;
};
std::vector<Done> ReadLedger(const std::string& path) {
  std::vector<Done> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind;
    std::string code;
    Done done;
    std::getline(in, done.operation, '\t');
    std::getline(in, kind, '\t');
    std::getline(in, done.machine, '\t');
    std::getline(in, code, '\t');
    done.kind = std::stoi(kind);
    done.failed = code != "0";
    lines.push_back(done);
  }
  return lines;
}

bool AtRest(const model::Machine& machine) {
  return model::IsStable(machine.state) || machine.state == MachineState::kFailed;
}

std::map<std::string, model::Machine> ListAll(contract::ProviderPort& port) {
  std::map<std::string, model::Machine> machines;
  const auto reply = Ask(port, contract::ListRequest{});
  EXPECT_TRUE(reply.has_value()) << reply.error().ToString();
  if (!reply) return machines;
  const auto& list = std::get<contract::ListReply>(*reply);
  EXPECT_TRUE(list.rejected.empty()) << list.rejected[0].reason;
  for (const contract::MachineRecord& machine : list.machines) machines[machine->id] = *machine;
  EXPECT_EQ(machines.size(), kMachines);
  return machines;
}

size_t UnderWay(const std::map<std::string, model::Machine>& machines) {
  return static_cast<size_t>(std::ranges::count_if(machines, [](const auto& entry) { return !AtRest(entry.second); }));
}

// The machine is what the cloud did to it last.
void ExpectIs(const model::Machine& machine, const Done* last) {
  if (last != nullptr && last->failed) {
    EXPECT_EQ(machine.state, MachineState::kFailed) << machine.id;
    EXPECT_NE(machine.last_error, "") << machine.id;
    return;
  }
  constexpr MachineState kAfter[] = {MachineState::kIdle, MachineState::kConfigured, MachineState::kIdle,
                                     MachineState::kSpeculative};
  const MachineState want = last == nullptr ? MachineState::kSpeculative : kAfter[last->kind];
  EXPECT_EQ(machine.state, want) << machine.id << ": " << machine.last_error;
  const bool bound = want == MachineState::kConfigured;
  EXPECT_EQ(machine.cluster, bound ? kCluster : "") << machine.id;
  const std::map<std::string, std::string> metadata = {{"m", machine.id}};
  EXPECT_EQ(machine.shard_metadata, bound ? metadata : decltype(metadata){}) << machine.id;
}

// Nobody asks for anything: every machine comes to rest, and the ledger of the cloud has each operation once.
void ExpectAllDoneOnce(contract::ProviderPort& port, const Memory& memory, const std::string& ledger) {
  std::map<std::string, model::Machine> machines = ListAll(port);
  while (UnderWay(machines) > 0 && !::testing::Test::HasFailure()) machines = ListAll(port);
  const std::vector<Done> lines = ReadLedger(ledger);
  std::set<std::string> done;
  std::map<std::string, const Done*> last;
  for (const Done& line : lines) {
    EXPECT_TRUE(done.insert(line.operation).second) << line.operation << " was done twice";
    const int before = last.contains(line.machine) ? last[line.machine]->kind : 3;
    const bool legal = line.kind == 3 || (line.kind == 0 && before == 3) ||
                       (line.kind == 1 && (before == 0 || before == 2)) || (line.kind == 2 && before == 1);
    EXPECT_TRUE(legal) << line.machine << ": " << line.kind << " after " << before;
    last[line.machine] = &line;
  }
  for (const auto& [operation, what] : memory.acknowledged) {
    EXPECT_TRUE(done.contains(operation)) << operation << " on " << what.first << " is lost";
  }
  for (const auto& [id, machine] : machines) ExpectIs(machine, last.contains(id) ? last[id] : nullptr);
}

// Those of the loop and of its own shell.
std::set<std::string> CrashPoints() {
  std::set<std::string> names;
  for (const char* area : {"host", "provider"}) {
    for (const faults::Row& row : faults::RowsOf("Killed.AtEveryCrashPoint", area, "crash")) names.insert(row.name);
  }
  return names;
}

class Killed : public ::testing::Test {
 protected:
  Killed() {
    catalogue_ = dir_.File("catalogue.yaml");
    std::ofstream(catalogue_) << kCatalogue;
  }
  void Judge() {
    Life life(Provider(dir_.File("data"), catalogue_));
    ASSERT_TRUE(life.up()) << life.process().err();
    ExpectRemembered(life.client(), memory_, 1, 1);
    ExpectAllDoneOnce(life.client(), memory_, dir_.File("data") + "/cloud.log");
    life.process().Signal(SIGTERM);
    EXPECT_EQ(life.process().Wait(), 0) << life.process().err();
  }

  const host::TempDir dir_;
  std::string catalogue_;
  Memory memory_;
};

TEST_F(Killed, AtRandomMoments) {
  const int kills = Kills();
  size_t under_way = 0;
  for (int i = 0; i < kills; ++i) {
    Life life(Provider(dir_.File("data"), catalogue_));
    ASSERT_TRUE(life.up()) << life.process().err();
    ExpectRemembered(life.client(), memory_, static_cast<uint64_t>(i), 10);
    // A moment drawn in transitions, not in seconds: so many are acknowledged, then the power goes.
    Rng rng(static_cast<uint64_t>(i));
    const size_t until = memory_.acknowledged.size() + 50 + rng.Below(400);
    WorkUntil(life, memory_, static_cast<uint64_t>(i), [&] {
      {
        std::unique_lock lock(memory_.mu);
        const bool enough = memory_.acknowledged_more.wait_for(
            lock, smoke::kPatience, [&] { return memory_.acknowledged.size() >= until || HasFailure(); });
        EXPECT_TRUE(enough) << "transitions stopped";
      }
      under_way += UnderWay(ListAll(life.client()));
      life.process().Signal(SIGKILL);
      EXPECT_EQ(life.process().Wait(), 128 + SIGKILL) << life.process().err();
    });
    if (HasFailure()) return;
  }
  Judge();
  std::cout << fmt::format("{} kills, {} transitions acknowledged, on average {} under way at a kill\n", kills,
                           memory_.acknowledged.size(), under_way / static_cast<size_t>(kills));
}

TEST_F(Killed, AtEveryCrashPoint) {
  const std::set<std::string> points = CrashPoints();
  EXPECT_GE(points.size(), 9u);
  const int rounds = std::max(1, Kills() / 10);
  Rng rng(1);
  for (int round = 0; round < rounds; ++round) {
    for (const std::string& point : points) {
      const uint64_t hit = round == 0 ? 40 : 1 + rng.Below(400);
      std::vector<std::string> command = Provider(dir_.File("data"), catalogue_);
      command.insert(command.begin(), {"env", fmt::format("MUSTER_CRASH_POINT={}:{}", point, hit)});
      Life life(command);
      const auto dies = [&] {
        EXPECT_EQ(life.process().Wait(), 128 + SIGKILL) << point << "\n" << life.process().err();
      };
      // Some are passed often enough while it asks again for what was under way: then it dies before it listens.
      if (life.up()) {
        WorkUntil(life, memory_, static_cast<uint64_t>(round), dies);
      } else {
        dies();
      }
      if (HasFailure()) return;
    }
  }
  Judge();
  std::cout << fmt::format("{} kills at {} crash points, {} transitions acknowledged\n",
                           rounds * static_cast<int>(points.size()), points.size(), memory_.acknowledged.size());
}

// A disk of 4 MB, most of it taken; what takes it is removed when somebody writes to the pipe.
TEST_F(Killed, OnAFullDisk) {
  const std::string disk = dir_.File("disk");
  const std::string pipe = dir_.File("pipe");
  const std::string command = fmt::format(
      "mkdir {0} && mount -t tmpfs -o size=4m none {0} && head -c 3400000 /dev/zero > {0}/filler || exit 1\n"
      "(read -r word < {1}; rm {0}/filler) >/dev/null 2>&1 &\nexec {2}",
      disk, pipe, fmt::format("{}", fmt::join(Provider(disk + "/data", catalogue_), " ")));
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Life life({"unshare", "-rm", "sh", "-c", command});
  ASSERT_TRUE(life.up()) << life.process().err();
  // Until it says that it is full, and goes on to: a batch that was refused may find room when it is tried again.
  std::string refusal;
  Result<contract::ProviderReply> list = Error(Code::kUnknown, "not asked for");
  const auto full = [&] {
    if (refusal.empty()) return false;
    list = Ask(life.client(), contract::ListRequest{}, 2s);
    return list && std::get<contract::ListReply>(*list).revision.empty();
  };
  for (uint64_t i = 0; !full() && i < 100'000; ++i) {
    const std::string machine = MachineId(i % kMachines);
    const contract::FenceToken token{"shard-0", 1, memory_.NextSequence()};
    const auto reply = Ask(life.client(), RequestFor(i % 4, machine, token), 2s);
    if (reply) {
      memory_.last[machine] = {
          .token = token, .kind = i % 4, .operation = std::get<TransitionAck>(*reply).operation_id};
    } else if (reply.error().code() == Code::kUnavailable) {
      refusal = reply.error().message();
    }
  }
  EXPECT_NE(refusal.find("state cannot be stored"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("full; free space on its disk"), std::string::npos) << refusal;
  ASSERT_TRUE(list) << list.error().ToString();
  EXPECT_EQ(std::get<contract::ListReply>(*list).machines.size(), kMachines);
  EXPECT_EQ(std::get<contract::ListReply>(*list).revision, "") << "it may tell of changes that a restart takes back";
  EXPECT_TRUE(Ask(life.client(), contract::GetRequest{MachineId(0)}, 2s));
  std::ofstream(pipe) << "free\n";
  for (bool waits = true; waits;) {
    const auto got = Ask(life.client(), contract::ListRequest{}, 2s);
    ASSERT_TRUE(got) << got.error().ToString();
    waits = std::get<contract::ListReply>(*got).revision.empty();
  }
  for (const auto& [machine, passed] : memory_.last) {
    const auto old = Ask(life.client(), RequestFor(passed.kind, machine, passed.token));
    ASSERT_FALSE(old.has_value()) << machine;
    EXPECT_EQ(old.error().code(), Code::kFailedPrecondition) << "what was acknowledged is remembered";
  }
  contract::FenceToken token{"shard-0", 2, 1};
  const auto moved = Ask(life.client(), RequestFor(0, MachineId(kMachines - 1), token));
  EXPECT_TRUE(moved || moved.error().code() == Code::kAborted) << moved.error().ToString();
  life.process().Signal(SIGTERM);
  EXPECT_EQ(life.process().Wait(), 0) << life.process().err();
}

}  // namespace
}  // namespace muster::provider
