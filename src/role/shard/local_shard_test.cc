// A shard on its threads, with providers that are good, silent, slow, unreliable or wrong.
#include "role/shard/local_shard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "host/data_dir.h"
#include "host/system_clock.h"
#include "host/temp_dir_for_test.h"

namespace muster::shard {
namespace {

using contract::MachineRecord;
using model::MachineState;

constexpr Duration kPatience = 60s;
constexpr int kMachines = 8;

bool Eventually(const std::function<bool()>& holds) {
  const host::SystemClock clock;
  for (const MonoTime end = clock.Read().mono + kPatience; clock.Read().mono < end;) {
    if (holds()) return true;
    std::this_thread::yield();
  }
  return false;
}

// Machines whose transitions end at once. What it does with a question besides is the test's business.
class TestProvider final : public contract::ProviderPort {
 public:
  // True: the question was dealt with.
  using Habit = std::function<bool(const contract::ProviderRequest&, Done&)>;

  TestProvider() {
    for (int i = 0; i < kMachines; ++i) {
      model::Machine machine{.id = fmt::format("m-{}", i), .state = MachineState::kSpeculative};
      machine.capacity_type = model::CapacityType::kOnDemand;
      machine.price_per_hour = {.micros = 1'000'000};
      machine.resources.Set("cpu", 1000);
      machines_[machine.id] = machine;
    }
  }
  // Not to be bought first.
  void MakeIdle() {
    const std::lock_guard lock(mu_);
    for (auto& [id, machine] : machines_) {
      machine.state = MachineState::kIdle;
      machine.host = {.provider = "test", .ref = id};
    }
  }
  void SetHabit(Habit habit) {
    const std::lock_guard lock(mu_);
    habit_ = std::move(habit);
  }

  void Ask(contract::ProviderRequest request, Duration, Done done) override {
    Habit habit;
    {
      const std::lock_guard lock(mu_);
      ++asked_;
      habit = habit_;
    }
    if (habit && habit(request, done)) return;
    done(Answer(request));
  }
  Result<contract::ProviderReply> Answer(const contract::ProviderRequest& request) {
    const std::lock_guard lock(mu_);
    if (std::holds_alternative<contract::ListRequest>(request)) {
      contract::ListReply reply;
      for (const auto& [id, machine] : machines_) reply.machines.emplace_back(machine);
      return reply;
    }
    if (const auto* get = std::get_if<contract::GetRequest>(&request)) {
      return contract::GetReply{MachineRecord(machines_.at(get->machine_id))};
    }
    model::Machine& machine = machines_.at(MachineOf(request));
    if (std::holds_alternative<contract::CreateRequest>(request)) {
      machine.state = MachineState::kIdle;
      machine.host = {.provider = "test", .ref = machine.id};
    } else if (const auto* configure = std::get_if<contract::ConfigureRequest>(&request)) {
      machine.state = MachineState::kConfigured;
      machine.cluster = configure->cluster_id;
      machine.shard_metadata = configure->shard_metadata;
    } else if (std::holds_alternative<contract::DrainRequest>(request)) {
      machine.state = MachineState::kIdle;
      machine.cluster.clear();
      machine.shard_metadata.clear();
    } else {
      machine.state = MachineState::kSpeculative;
      machine.host = {};
    }
    return contract::TransitionAck{.operation_id = "o", .machine = MachineRecord(machine)};
  }
  size_t Count(MachineState state) const {
    const std::lock_guard lock(mu_);
    return static_cast<size_t>(
        std::ranges::count_if(machines_, [&](const auto& entry) { return entry.second.state == state; }));
  }
  int asked() const {
    const std::lock_guard lock(mu_);
    return asked_;
  }

 private:
  static const std::string& MachineOf(const contract::ProviderRequest& request) {
    return std::visit(
        [](const auto& typed) -> const std::string& {
          if constexpr (requires { typed.machine_id; }) return typed.machine_id;
          static const std::string none;
          return none;
        },
        request);
  }
  mutable std::mutex mu_;
  std::map<std::string, model::Machine> machines_;  // guarded by mu_
  Habit habit_;                                     // guarded by mu_
  int asked_ = 0;                                   // guarded by mu_
};

// The stream of a cluster that answers everything at once.
class Sink final : public contract::SessionSink, public std::enable_shared_from_this<Sink> {
 public:
  explicit Sink(contract::SessionPort& shard) : shard_(shard) {}
  void Send(contract::ShardMessage message) override {
    session_.wait(0);
    if (const auto* request = std::get_if<contract::BootstrapRequest>(&message)) {
      shard_.Receive(session_, contract::BootstrapResponse{.request_id = request->request_id, .user_data = "join"});
    } else if (const auto* instruction = std::get_if<contract::ReclaimInstruction>(&message)) {
      shard_.Receive(session_, contract::ReclaimAck{.instruction_id = instruction->instruction_id});
    }
  }
  void Close(Status status) override {
    const std::lock_guard lock(mu_);
    closed_ = std::move(status);
  }
  void Open(const std::string& cluster) {
    session_ = shard_.Open({.cluster_id = cluster, .protocol_version = std::string(contract::kProtocolVersion)},
                           shared_from_this());
    session_.notify_all();
  }
  void Want(const std::string& cluster, int cpus) {
    model::Need need{.cluster = cluster};
    need.aggregate.Set("cpu", cpus * 1000);
    need.min_unit.Set("cpu", 1000);
    shard_.Receive(session_, contract::Rollup{.cluster_id = cluster, .rows = contract::NeedRows({need})});
  }
  Status closed() const {
    const std::lock_guard lock(mu_);
    return closed_;
  }
  contract::SessionId session() const { return session_; }

 private:
  contract::SessionPort& shard_;
  mutable std::mutex mu_;
  std::atomic<contract::SessionId> session_ = 0;  // until Open
  Status closed_;                                 // guarded by mu_
};

class LocalShardTest : public ::testing::Test {
 protected:
  void Start(const std::function<void(Config&)>& change = {}) {
    Config config;
    config.cycle_interval = 20ms;
    config.cycle_gap = 1ms;
    config.retry_first = 10ms;
    config.list_timeout = 200ms;
    config.call_timeout = 200ms;
    if (change) change(config);
    shard_ =
        std::make_unique<LocalShard>(LocalOptions{.data_dir = dir_.path(), .config = config}, provider_, nullptr,
                                     clock_, LocalEvents{.stopped = [this](const Status& why) { stopped_ = why; }});
    ASSERT_TRUE(shard_->Start().ok());
  }
  std::shared_ptr<Sink> Connect(const std::string& cluster) {
    auto sink = std::make_shared<Sink>(*shard_);
    sink->Open(cluster);
    return sink;
  }
  bool Ready() {
    return Eventually([&] { return shard_->View()->ready; });
  }

  const host::TempDir dir_;
  const host::SystemClock clock_;
  TestProvider provider_;
  Status stopped_;
  std::unique_ptr<LocalShard> shard_;
};

TEST_F(LocalShardTest, BindsWhatAClusterWants) {
  Start();
  const auto blue = Connect("blue");
  blue->Want("blue", 3);
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == 3; }));
}

TEST_F(LocalShardTest, KeepsNoBootstrapDataThatItDidNotAskFor) {
  Start();
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  for (int i = 0; i < 100; ++i) {
    shard_->Receive(blue->session(), contract::BootstrapResponse{.request_id = fmt::format("{}", i), .user_data = "x"});
  }
  EXPECT_EQ(shard_->blobs(), 0u);
  blue->Want("blue", 3);
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == 3; }));
  EXPECT_EQ(shard_->blobs(), 0u);
}

TEST_F(LocalShardTest, BootstrapDataGoesWithItsSession) {
  provider_.MakeIdle();
  Start([](Config& config) {
    config.execute_concurrency = 1;
    config.call_timeout = 1h;
  });
  ASSERT_TRUE(Ready());
  std::mutex mu;
  std::vector<contract::ProviderPort::Done> kept;
  provider_.SetHabit([&](const contract::ProviderRequest& request, contract::ProviderPort::Done& done) {
    if (!std::holds_alternative<contract::ConfigureRequest>(request)) return false;
    const std::lock_guard lock(mu);
    kept.push_back(std::move(done));
    return true;
  });
  const auto blue = Connect("blue");
  blue->Want("blue", 3);
  EXPECT_TRUE(Eventually([&] { return shard_->blobs() == 2; })) << "one Configure is under way, two wait";
  shard_->Closed(blue->session());
  EXPECT_EQ(shard_->blobs(), 0u);
  const auto again = Connect("blue");
  EXPECT_TRUE(Eventually([&] { return shard_->blobs() == 2; })) << "it is asked again";
  const auto newer = Connect("blue");
  EXPECT_TRUE(Eventually([&] { return shard_->blobs() == 4; })) << "so is the one that takes its place";
  shard_->Closed(again->session());
  EXPECT_EQ(shard_->blobs(), 2u);
  shard_->Closed(newer->session());
  EXPECT_EQ(shard_->blobs(), 0u);
  shard_->Stop();
}

TEST_F(LocalShardTest, CyclesKeepTheirPaceWhileTheProviderIsSilent) {
  Start();
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  std::deque<contract::ProviderPort::Done> kept;
  std::mutex mu;
  provider_.SetHabit([&](const contract::ProviderRequest&, contract::ProviderPort::Done& done) {
    const std::lock_guard lock(mu);
    kept.push_back(std::move(done));
    return true;
  });
  blue->Want("blue", 3);
  const int64_t cycle = shard_->View()->cycle;
  EXPECT_TRUE(Eventually([&] { return shard_->View()->cycle > cycle + 50; }));
  EXPECT_TRUE(Eventually([&] { return shard_->View()->counters.list_failures > 1; }));
  EXPECT_EQ(provider_.Count(MachineState::kConfigured), 0u);
  provider_.SetHabit({});
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == 3; })) << "it goes on by itself";
  shard_->Stop();
  // Answers that come late find nobody, and do no harm.
  const std::lock_guard lock(mu);
  for (auto& done : kept) done(Error(Code::kUnavailable, "late"));
}

TEST_F(LocalShardTest, CyclesKeepTheirPaceWhileTheProviderIsSlow) {
  Start([](Config& config) { config.list_timeout = config.call_timeout = 30s; });
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  std::vector<std::jthread> slow;
  std::mutex mu;
  provider_.SetHabit([&](const contract::ProviderRequest& request, contract::ProviderPort::Done& done) {
    const std::lock_guard lock(mu);
    slow.emplace_back([this, request, done = std::move(done)](const std::stop_token& stop) {
      std::mutex unused;
      std::unique_lock waiting(unused);
      std::condition_variable_any().wait_for(waiting, stop, 1s, [] { return false; });
      done(provider_.Answer(request));
    });
    return true;
  });
  const int64_t cycle = shard_->View()->cycle;
  const MonoTime began = clock_.Read().mono;
  blue->Want("blue", 2);
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == 2; }));
  EXPECT_GT(clock_.Read().mono - began, 1s);
  EXPECT_GT(shard_->View()->cycle, cycle + 20) << "decisions did not wait for answers";
  shard_->Stop();
  const std::lock_guard lock(mu);
  slow.clear();
}

TEST_F(LocalShardTest, EveryThirdCallMayFail) {
  Start();
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  std::atomic<int> calls = 0;
  provider_.SetHabit([&](const contract::ProviderRequest& request, contract::ProviderPort::Done& done) {
    if (std::holds_alternative<contract::GetRequest>(request) || ++calls % 3 != 0) return false;
    done(Error(Code::kUnavailable, "this call was chosen to fail"));
    return true;
  });
  blue->Want("blue", kMachines);
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == kMachines; }));
  EXPECT_TRUE(shard_->View()->counters.outcomes.contains({"Provision", "provider_error"}));
}

TEST_F(LocalShardTest, BadRecordsAreRefusedByNameAndGoodOnesKept) {
  provider_.SetHabit([&](const contract::ProviderRequest& request, contract::ProviderPort::Done& done) {
    if (!std::holds_alternative<contract::ListRequest>(request)) return false;
    auto reply = provider_.Answer(request);
    auto& list = std::get<contract::ListReply>(*reply);
    // What a client makes of NaN, a probability of 2 and an unknown state; and an id that comes twice.
    list.rejected = {{.id = "bad-1", .reason = "price_per_hour: not a number"},
                     {.id = "bad-2", .reason = "interruption_probability: 2 is above 1"},
                     {.id = "bad-3", .reason = "state: 77 is unknown"}};
    list.machines.push_back(list.machines.front());
    done(std::move(reply));
    return true;
  });
  Start();
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  blue->Want("blue", 2);
  EXPECT_TRUE(Eventually([&] { return provider_.Count(MachineState::kConfigured) == 2; }));
  const auto rejected = shard_->View()->counters.machines_rejected;
  for (const char* field : {"price_per_hour", "interruption_probability", "state", "id"}) {
    EXPECT_GT(rejected.contains(field) ? rejected.at(field) : 0, 0u) << field;
  }
}

TEST_F(LocalShardTest, StopAnswersWhoWaitsAndClosesStreams) {
  Start();
  ASSERT_TRUE(Ready());
  const auto blue = Connect("blue");
  shard_->Stop();
  EXPECT_EQ(blue->closed().code(), Code::kUnavailable);
  Status answer;
  shard_->Ask(contract::ListClusters{}, [&](Result<contract::ShardReply> reply) { answer = reply.error(); });
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  const auto late = Connect("green");
  EXPECT_EQ(late->closed().code(), Code::kUnavailable);
}

TEST_F(LocalShardTest, AFencedShardHaltsAndGoesOnWatching) {
  Start();
  ASSERT_TRUE(Ready());
  provider_.SetHabit([](const contract::ProviderRequest& request, contract::ProviderPort::Done& done) {
    if (std::holds_alternative<contract::ListRequest>(request)) return false;
    done(Error(Code::kFailedPrecondition, "fenced: a newer token was seen"));
    return true;
  });
  const auto blue = Connect("blue");
  blue->Want("blue", 2);
  ASSERT_TRUE(Eventually([&] { return shard_->View()->halted; }));
  EXPECT_TRUE(shard_->View()->stopped.ok());
  const int64_t cycle = shard_->View()->cycle;
  EXPECT_TRUE(Eventually([&] { return shard_->View()->cycle > cycle; }));
}

}  // namespace
}  // namespace muster::shard
