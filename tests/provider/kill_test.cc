// The real program, killed: at every crash point and at random moments, with hundreds of transitions under way, and on
// a disk that is full. Afterwards nothing is lost, nothing was done twice, fences and operation ids are those of
// before.
//
// MUSTER_KILLS says how many random kills; 10 unless given.
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
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "base/rng.h"
#include "contract/provider.h"
#include "host/temp_dir_for_test.h"
#include "rpc/provider_client.h"
#include "smoke/process.h"

namespace muster::provider {
namespace {

using contract::ProviderRequest;
using contract::TransitionAck;
using model::MachineState;

constexpr uint64_t kMachines = 300;
constexpr size_t kWorkers = 8;

constexpr std::string_view kCatalogue = R"(
zones: [a, b]
types:
  - name: quick
    capacity: on-demand
    resources: {cpu: 1}
    price: 1
    create: {median: 20ms, p99: 300ms}
    configure: {median: 20ms, p99: 300ms, fails: 0.02}
    drain: {median: 20ms, p99: 300ms}
    delete: {median: 20ms, p99: 300ms}
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

std::string ProgramUnderTest() {
  const char* program = std::getenv("MUSTER");
  return program != nullptr ? program : "build/muster";
}

// The command line of a provider, as one word each.
std::vector<std::string> Provider(const std::string& data_dir, const std::string& catalogue) {
  return {ProgramUnderTest(), "provider",
          "--listen",         ":0",
          "--metrics-addr",   ":0",
          "--data-dir",       data_dir,
          "--name",           "m",
          "--catalogue",      catalogue,
          "--machines",       std::to_string(kMachines)};
}

// One life of the program, and a client to it.
class Life {
 public:
  explicit Life(std::vector<std::string> command) : process_(std::move(command)) {
    const std::string line = process_.WaitForErrorLine("\"msg\":\"listening\"");
    std::smatch found;
    if (!std::regex_search(line, found, std::regex("\"grpc\":\"(127.0.0.1:[0-9]+)\""))) return;  // died on the way
    auto client = rpc::MakeProviderClient(found[1]);
    if (client) client_ = *std::move(client);
  }
  bool up() const { return client_ != nullptr; }
  contract::ProviderPort& client() { return *client_; }
  smoke::Process& process() { return process_; }

 private:
  smoke::Process process_;
  std::unique_ptr<contract::ProviderPort> client_;
};

// What the shards know for certain, over all lives of the provider.
struct Memory {
  struct Passed {
    contract::FenceToken token;
    size_t kind = 0;
    std::string operation;
  };
  std::mutex mu;
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
                                        .cluster_id = "c",
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

// A new life knows the fences and the operations of the last one.
void ExpectRemembered(contract::ProviderPort& port, Memory& memory, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::pair<std::string, Memory::Passed>> some;
  for (const auto& entry : memory.last) {
    if (rng.Chance(1, 10)) some.push_back(entry);
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

// Nobody asks for anything: every machine comes to rest, and the ledger of the cloud has each operation once.
void ExpectAllDoneOnce(contract::ProviderPort& port, const Memory& memory, const std::string& ledger) {
  std::map<std::string, model::Machine> machines;
  for (bool moving = true; moving;) {
    const auto reply = Ask(port, contract::ListRequest{});
    ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
    moving = false;
    for (const contract::MachineRecord& machine : std::get<contract::ListReply>(*reply).machines) {
      machines[machine->id] = *machine;
      moving = moving || !(model::IsStable(machine->state) || machine->state == MachineState::kFailed);
    }
  }
  ASSERT_EQ(machines.size(), kMachines);
  std::ifstream file(ledger);
  std::set<std::string> done;
  std::map<std::string, int> last_kind;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string operation;
    std::string kind_text;
    std::string machine;
    std::string code;
    std::getline(in, operation, '\t');
    std::getline(in, kind_text, '\t');
    std::getline(in, machine, '\t');
    std::getline(in, code, '\t');
    EXPECT_TRUE(done.insert(operation).second) << operation << " was done twice";
    const int kind = std::stoi(kind_text);
    const int before = last_kind.contains(machine) ? last_kind[machine] : 3;
    const bool legal = kind == 3 || (kind == 0 && before == 3) || (kind == 1 && (before == 0 || before == 2)) ||
                       (kind == 2 && before == 1);
    EXPECT_TRUE(legal) << machine << ": " << kind << " after " << before;
    last_kind[machine] = kind;
  }
  for (const auto& [operation, what] : memory.acknowledged) {
    const model::Machine& machine = machines[what.first];
    EXPECT_TRUE(done.contains(operation) || !machine.last_error.empty())
        << operation << " on " << what.first << " is lost";
  }
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
    ExpectRemembered(life.client(), memory_, 1);
    ExpectAllDoneOnce(life.client(), memory_, dir_.File("data") + "/cloud.log");
    life.process().Signal(SIGTERM);
    EXPECT_EQ(life.process().Wait(), 0) << life.process().err();
  }

  const host::TempDir dir_;
  std::string catalogue_;
  Memory memory_;
};

TEST_F(Killed, AtRandomMoments) {
  const char* asked = std::getenv("MUSTER_KILLS");
  const int kills = asked != nullptr ? std::stoi(asked) : 10;
  for (int i = 0; i < kills; ++i) {
    Life life(Provider(dir_.File("data"), catalogue_));
    ASSERT_TRUE(life.up()) << life.process().err();
    ExpectRemembered(life.client(), memory_, static_cast<uint64_t>(i));
    // A moment drawn in transitions, not in seconds: so many are acknowledged, then the power goes.
    Rng rng(static_cast<uint64_t>(i));
    size_t before = 0;
    {
      const std::lock_guard lock(memory_.mu);
      before = memory_.acknowledged.size();
    }
    const size_t until = before + 50 + rng.Below(400);
    WorkUntil(life, memory_, static_cast<uint64_t>(i), [&] {
      for (bool enough = false; !enough;) {
        std::this_thread::yield();
        const std::lock_guard lock(memory_.mu);
        enough = memory_.acknowledged.size() >= until || HasFailure();
      }
      life.process().Signal(SIGKILL);
      EXPECT_EQ(life.process().Wait(), 128 + SIGKILL) << life.process().err();
    });
    if (HasFailure()) return;
  }
  Judge();
}

TEST_F(Killed, AtEveryCrashPoint) {
  for (const char* point :
       {"persist.before_commit", "persist.after_commit", "provider.before_answer", "provider.after_answer",
        "provider.before_start", "provider.before_ledger", "provider.after_ledger"}) {
    std::vector<std::string> command = Provider(dir_.File("data"), catalogue_);
    command.insert(command.begin(), {"env", fmt::format("MUSTER_CRASH_POINT={}:40", point)});
    Life life(command);
    // Some are passed often enough while it asks again for what was under way: then it dies before it listens.
    const auto dies = [&] { EXPECT_EQ(life.process().Wait(), 128 + SIGKILL) << point << "\n" << life.process().err(); };
    if (life.up()) {
      WorkUntil(life, memory_, 99, dies);
    } else {
      dies();
    }
    if (HasFailure()) return;
  }
  Judge();
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
  // Until it says that it is full.
  std::string refusal;
  for (uint64_t i = 0; refusal.empty() && i < 100'000; ++i) {
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
  std::ofstream(pipe) << "free\n";
  for (bool waits = true; waits;) {
    const auto got = Ask(life.client(), contract::GetRequest{MachineId(0)}, 2s);
    waits = !got.has_value();
    const Code code = waits ? got.error().code() : Code::kOk;
    ASSERT_TRUE(!waits || code == Code::kUnavailable || code == Code::kDeadlineExceeded) << CodeName(code);
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
