// `muster shard` and peers that speak the wire's own messages and get them wrong: clusters whose roll-ups are bad or
// suspicious, providers that list garbage, hang, dawdle or fail. What is wrong is refused by name and counted, what was
// good stays, and cycles go on.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "bigfleet/v1alpha1/shard.grpc.pb.h"
#include "host/http_get_for_test.h"
#include "rpc/channel.h"
#include "shard/fleet.h"

namespace muster::shard {
namespace {

namespace pb = bigfleet::v1alpha1;
using model::MachineState;

constexpr uint64_t kMachines = 32;

// In front of a real provider.
class Peer : public pb::CapacityProvider::Service {
 public:
  explicit Peer(const std::string& target)
      : real_(pb::CapacityProvider::NewStub(*rpc::MakeChannel({.target = target}))) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Peer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return fmt::format("127.0.0.1:{}", port_); }

  // Changes a list on its way.
  std::function<void(pb::MachineList&)> spoil = [](pb::MachineList&) {};
  // Says how a transition fares: OK is passed on.
  std::function<grpc::Status()> habit = [] { return grpc::Status::OK; };

 private:
  using Context = grpc::ServerContext;

  grpc::Status Create(Context*, const pb::CreateRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Create(to, *request, reply); });
  }
  grpc::Status Configure(Context*, const pb::ConfigureRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Configure(to, *request, reply); });
  }
  grpc::Status Drain(Context*, const pb::DrainRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Drain(to, *request, reply); });
  }
  grpc::Status Delete(Context*, const pb::DeleteRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Delete(to, *request, reply); });
  }
  grpc::Status Get(Context*, const pb::MachineRef* request, pb::Machine* reply) override {
    grpc::ClientContext to;
    return real_->Get(&to, *request, reply);
  }
  grpc::Status List(Context*, const pb::ListFilter* request, pb::MachineList* reply) override {
    grpc::ClientContext to;
    const grpc::Status status = real_->List(&to, *request, reply);
    spoil(*reply);
    return status;
  }
  template <class Call>
  grpc::Status Pass(const Call& call) {
    const grpc::Status status = habit();
    if (!status.ok()) return status;
    grpc::ClientContext to;
    return call(&to);
  }

  const std::unique_ptr<pb::CapacityProvider::Stub> real_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A cluster that says what it is told to, and no more.
class Speaker {
 public:
  Speaker(const std::string& target, const std::string& cluster)
      : cluster_(cluster), stub_(pb::Shard::NewStub(*rpc::MakeChannel({.target = target}))) {
    stream_ = stub_->Session(&context_);
    pb::OperatorMessage hello;
    hello.mutable_hello()->set_cluster_id(cluster);
    hello.mutable_hello()->set_protocol_version(std::string(contract::kProtocolVersion));
    stream_->Write(hello);
    reader_ = std::jthread([this] {
      for (pb::ShardMessage message; stream_->Read(&message);) {
        acknowledged_ += message.has_ack() && message.ack().echo() == "rollup" ? 1 : 0;
      }
    });
  }
  ~Speaker() {
    context_.TryCancel();
    reader_.join();
    [[maybe_unused]] const grpc::Status status = stream_->Finish();
  }
  Speaker(const Speaker&) = delete;
  Speaker& operator=(const Speaker&) = delete;

  // `rows` needs of `cpus` each, with priorities from 1, changed by `change`.
  void Say(int rows, int cpus, const std::function<void(pb::ClusterCapacityNeeds&)>& change = [](auto&) {}) {
    pb::OperatorMessage message;
    pb::ClusterCapacityNeeds& rollup = *message.mutable_rollup();
    rollup.set_cluster_id(cluster_);
    rollup.set_timestamp_unix_nanos(1);
    for (int row = 1; row <= rows; ++row) {
      pb::CapacityNeed& need = *rollup.add_needs();
      need.set_priority(row);
      (*need.mutable_aggregate_resources())["cpu"] = std::to_string(cpus);
      (*need.mutable_min_unit())["cpu"] = "1";
    }
    change(rollup);
    stream_->Write(message);
  }
  int acknowledged() const { return acknowledged_; }

 private:
  const std::string cluster_;
  const std::unique_ptr<pb::Shard::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::OperatorMessage, pb::ShardMessage>> stream_;
  std::atomic<int> acknowledged_ = 0;
  std::jthread reader_;
};

class Input : public ::testing::Test {
 protected:
  Input() : fleet_(kMachines), provider_(fleet_.ProviderCommand()) {}

  void StartShard(const std::string& provider) {
    shard_ = std::make_unique<ShardLife>(fleet_.ShardCommand(provider, ":0", {"--cycle-interval", "200ms"}));
    ASSERT_TRUE(shard_->up()) << shard_->process().err();
  }
  std::string Run(std::vector<std::string> words) {
    words.insert(words.begin(), {smoke::ProgramUnderTest(), "fleet"});
    words.insert(words.end(), {"--shard", shard_->grpc()});
    smoke::Process process(words);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    return process.out();
  }
  double Metric(const std::string& name) {
    const std::string text = host::HttpGet(*host::ParseListenAddress(shard_->http(), false, "http"), "/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  size_t Configured() {
    const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{});
    if (!listed) return 0;
    return static_cast<size_t>(std::ranges::count_if(listed->machines, [](const contract::MachineView& view) {
      return view.machine->state == MachineState::kConfigured;
    }));
  }
  // Cycles go on, one after a roll-up and one each time the clock says so.
  bool KeepsPace() {
    const int64_t before = shard_->Cycle();
    return Eventually([&] { return shard_->Cycle() >= before + 10; });
  }

  Fleet fleet_;
  provider::Life provider_;
  std::unique_ptr<ShardLife> shard_;
};

TEST_F(Input, WrongRollupsAreRefusedOrHeldAndTheReasonIsShown) {
  ASSERT_TRUE(provider_.up());
  StartShard(provider_.grpc());
  if (HasFatalFailure()) return;
  Speaker blue(shard_->grpc(), "blue");
  blue.Say(1000, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 1; }));

  struct Wrong {
    const char* reason;
    std::function<void(pb::ClusterCapacityNeeds&)> change;
  };
  double refused = 0;
  for (const auto& [reason, change] : std::vector<Wrong>{
           {"needs[7].aggregate_resources.cpu: quantity \\\"4x\\\"",
            [](auto& rollup) { (*rollup.mutable_needs(7)->mutable_aggregate_resources())["cpu"] = "4x"; }},
           {"needs[7].interruption_penalty_bucket: penalty bucket 28: ",
            [](auto& rollup) {
              rollup.mutable_needs(7)->set_interruption_penalty_bucket(static_cast<pb::PenaltyBucket>(28));
            }},
           {"cluster_id: ", [](auto& rollup) { rollup.set_cluster_id("green"); }}}) {
    blue.Say(1000, 20, change);
    ++refused;
    EXPECT_TRUE(Eventually([&] {
      return Metric("bigfleet_shard_rollups_rejected_total{cluster=\"blue\"}") == refused;
    })) << reason;
    EXPECT_TRUE(Run({"clusters", "-o", "json"}).contains(reason)) << Run({"clusters", "-o", "json"});
  }
  EXPECT_EQ(blue.acknowledged(), 1) << "what is refused is not acknowledged";

  blue.Say(1, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 2; })) << "held is acknowledged";
  const auto held = [&](double value) {
    return Eventually([&] { return Metric("bigfleet_shard_rollup_quarantined{cluster=\"blue\"}") == value; });
  };
  EXPECT_TRUE(held(1));
  const std::string fewer_rows = Run({"clusters", "-o", "json"});
  EXPECT_TRUE(fewer_rows.contains("\"heldRollups\":1") && fewer_rows.contains("1 rows after 1000")) << fewer_rows;
  blue.Say(1000, 1);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 3; }));
  EXPECT_TRUE(held(1));
  const std::string smaller = Run({"clusters", "-o", "json"});
  EXPECT_TRUE(smaller.contains("\"heldRollups\":2") && smaller.contains("cpu")) << smaller;

  const auto needs = shard_->Needs();
  ASSERT_TRUE(needs.has_value());
  ASSERT_EQ(needs->needs.size(), 1000u) << "the last good one stays";
  for (const contract::NeedView& view : needs->needs) EXPECT_EQ(view.need.aggregate.Get("cpu"), 20'000);
  blue.Say(1000, 20);
  ASSERT_TRUE(Eventually([&] { return blue.acknowledged() == 4; }));
  EXPECT_TRUE(held(0));
}

TEST_F(Input, GarbageInAListIsRefusedByNameAndTheRestIsUsed) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  peer.spoil = [](pb::MachineList& list) {
    const auto bad = [&](const std::string& id) {
      pb::Machine& machine = *list.add_machines();
      machine.set_id(id);
      machine.set_state(pb::MACHINE_STATE_SPECULATIVE);
      machine.set_capacity_type(pb::CAPACITY_TYPE_ON_DEMAND);
      (*machine.mutable_resources()->mutable_resources())["cpu"] = "64";
      return &machine;
    };
    bad("bad-price")->set_price_per_hour(std::numeric_limits<double>::quiet_NaN());
    bad("bad-probability")->set_interruption_probability(2);
    bad("bad-state")->set_state(static_cast<pb::MachineState>(99));
    (*bad("bad-resources")->mutable_resources()->mutable_resources())["gpu"] = "much";
    bad("twice")->set_price_per_hour(100);
    bad("twice")->set_price_per_hour(1);
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 4)});
  EXPECT_TRUE(Eventually([&] { return Configured() == 4; }));
  EXPECT_TRUE(KeepsPace());
  for (const char* field : {"price_per_hour", "interruption_probability", "state", "resources", "id"}) {
    EXPECT_GT(Metric(fmt::format("bigfleet_shard_machines_rejected_total{{reason=\"{}\"}}", field)), 0) << field;
  }
  const std::string machines = Run({"machines", "-o", "json", "--limit", "0"});
  EXPECT_FALSE(machines.contains("\"bad-")) << machines;
  const auto listed = shard_->Ask<contract::MachinesListed>(contract::ListMachines{});
  ASSERT_TRUE(listed.has_value());
  const auto twice =
      std::ranges::find(listed->machines, "twice", [](const contract::MachineView& view) { return view.machine->id; });
  ASSERT_NE(twice, listed->machines.end());
  EXPECT_EQ(twice->machine->price_per_hour.micros, 100'000'000) << "the first of the two counts";
  shard_->process().Signal(SIGTERM);
  EXPECT_EQ(shard_->process().Wait(), 0);
  const std::string log = shard_->process().err();
  for (const char* id : {"bad-price", "bad-probability", "bad-state", "bad-resources", "twice"}) {
    EXPECT_TRUE(log.contains(id)) << id;
  }
}

TEST_F(Input, AHungProviderDoesNotStopTheCycles) {
  ASSERT_TRUE(provider_.up());
  std::atomic<bool> hung = true;
  std::atomic<int> held = 0;
  Peer peer(provider_.grpc());
  peer.habit = [&] {
    ++held;
    hung.wait(true);
    return grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 6)});
  EXPECT_TRUE(Eventually([&] { return held > 0; }));
  EXPECT_TRUE(KeepsPace());
  EXPECT_EQ(Configured(), 0u);
  hung = false;
  hung.notify_all();
  EXPECT_TRUE(Eventually([&] { return Configured() == 6; }));
}

TEST_F(Input, AProviderThatTakesFiveSecondsForEveryCallGetsThereInTheEnd) {
  ASSERT_TRUE(provider_.up());
  Peer peer(provider_.grpc());
  peer.habit = [] {
    std::this_thread::sleep_for(5s);  // nobody waits for it: this is what slow means
    return grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 6)});
  EXPECT_TRUE(KeepsPace());
  EXPECT_TRUE(Eventually([&] { return Configured() == 6; }));
}

TEST_F(Input, AProviderThatFailsEveryThirdCallGetsThereInTheEnd) {
  ASSERT_TRUE(provider_.up());
  std::atomic<int> calls = 0;
  Peer peer(provider_.grpc());
  peer.habit = [&] {
    return ++calls % 3 == 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now") : grpc::Status::OK;
  };
  StartShard(peer.target());
  if (HasFatalFailure()) return;
  TestCluster blue("blue", shard_->grpc());
  blue.Want({NeedOf("blue", 10)});
  EXPECT_TRUE(KeepsPace());
  EXPECT_TRUE(Eventually([&] { return Configured() == 10; }));
  EXPECT_GE(calls, 20 + 6);  // a Create and a Configure for each, and those that failed
}

}  // namespace
}  // namespace muster::shard
