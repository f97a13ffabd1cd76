// Peers of a `muster shard` that speak the wire's own messages and can get them wrong, and the fixture of the tests
// that use them: a provider behind a Peer, a shard, and clusters that say what they are told to.
#pragma once

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bigfleet/v1alpha1/provider.grpc.pb.h"
#include "bigfleet/v1alpha1/shard.grpc.pb.h"
#include "host/http_get_for_test.h"
#include "rpc/channel.h"
#include "shard/fleet.h"

namespace muster::shard {

namespace pb = bigfleet::v1alpha1;

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
  // The same for Delete of one machine, before `habit`.
  std::function<grpc::Status(const std::string&)> deletes = [](const std::string&) { return grpc::Status::OK; };
  // A machine that Get does not find.
  std::function<bool(const std::string&)> hides = [](const auto&) { return false; };
  // Answers a Get in place of the real provider; false: it does not.
  std::function<bool(const std::string&, pb::Machine&)> gets = [](const auto&, auto&) { return false; };
  // Answers a list in place of the real provider; false: it does not.
  std::function<bool(const pb::ListFilter&, pb::MachineList&)> lists = [](const auto&, auto&) { return false; };
  // Calls so far.
  std::atomic<int> create_calls = 0;
  std::atomic<int> delete_calls = 0;

 private:
  using Context = grpc::ServerContext;

  grpc::Status Create(Context*, const pb::CreateRequest* request, pb::TransitionAck* reply) override {
    ++create_calls;
    return Pass([&](auto* to) { return real_->Create(to, *request, reply); });
  }
  grpc::Status Configure(Context*, const pb::ConfigureRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Configure(to, *request, reply); });
  }
  grpc::Status Drain(Context*, const pb::DrainRequest* request, pb::TransitionAck* reply) override {
    return Pass([&](auto* to) { return real_->Drain(to, *request, reply); });
  }
  grpc::Status Delete(Context*, const pb::DeleteRequest* request, pb::TransitionAck* reply) override {
    ++delete_calls;
    if (const grpc::Status status = deletes(request->machine_id()); !status.ok()) return status;
    return Pass([&](auto* to) { return real_->Delete(to, *request, reply); });
  }
  grpc::Status Get(Context*, const pb::MachineRef* request, pb::Machine* reply) override {
    if (hides(request->id())) return {grpc::StatusCode::NOT_FOUND, "no such machine"};
    if (gets(request->id(), *reply)) return grpc::Status::OK;
    grpc::ClientContext to;
    return real_->Get(&to, *request, reply);
  }
  grpc::Status List(Context*, const pb::ListFilter* request, pb::MachineList* reply) override {
    if (lists(*request, *reply)) return grpc::Status::OK;
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
    SayHello(cluster);
    reader_ = std::jthread([this] {
      for (pb::ShardMessage message; stream_->Read(&message);) {
        const std::lock_guard lock(mu_);
        heard_.push_back(message);
      }
      const std::lock_guard lock(mu_);
      ended_ = true;
    });
  }
  ~Speaker() {
    context_.TryCancel();
    reader_.join();
    [[maybe_unused]] const grpc::Status status = stream_->Finish();
  }
  Speaker(const Speaker&) = delete;
  Speaker& operator=(const Speaker&) = delete;

  void SayHello(const std::string& cluster) {
    pb::OperatorMessage hello;
    hello.mutable_hello()->set_cluster_id(cluster);
    hello.mutable_hello()->set_protocol_version(std::string(contract::kProtocolVersion));
    stream_->Write(hello);
  }
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
  // How often "hello" or "rollup" was acknowledged; a held roll-up is, with the reason behind the word.
  int acknowledged(const std::string& what = "rollup") const {
    const std::lock_guard lock(mu_);
    return static_cast<int>(std::ranges::count_if(heard_, [&](const pb::ShardMessage& message) {
      return message.has_ack() && (message.ack().echo() == what || message.ack().echo().starts_with(what + ": "));
    }));
  }
  // What the shard said, in order.
  std::vector<pb::ShardMessage> heard() const {
    const std::lock_guard lock(mu_);
    return heard_;
  }
  bool ended() const {
    const std::lock_guard lock(mu_);
    return ended_;
  }

 private:
  const std::string cluster_;
  const std::unique_ptr<pb::Shard::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::OperatorMessage, pb::ShardMessage>> stream_;
  mutable std::mutex mu_;
  std::vector<pb::ShardMessage> heard_;  // guarded by mu_
  bool ended_ = false;                   // guarded by mu_
  std::jthread reader_;
};

class PeersTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMachines = 32;

  PeersTest() : fleet_(kMachines), provider_(fleet_.ProviderCommand()) {}

  void StartShard(const std::string& provider, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--cycle-interval", "200ms"});
    shard_ = std::make_unique<ShardLife>(fleet_.ShardCommand(provider, ":0", more));
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
      return view.machine->state == model::MachineState::kConfigured;
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

}  // namespace muster::shard
