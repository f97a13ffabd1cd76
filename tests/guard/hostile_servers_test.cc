// What a hostile server can cost the program that calls it: a provider its shard, an agent its scheduler. Each bomb is
// an answer over the wire; what the caller's memory grows by is measured by the kernel.
#include <grpcpp/generic/async_generic_service.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <vector>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "guard/hostile.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/agent_client.h"
#include "rpc/cluster_client.h"
#include "rpc/provider_client.h"
#include "shard/fleet.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

using shard::Eventually;

constexpr double kMostMiB = 64;  // that a bomb may cost

// Answers every call to a method with the bytes that were said for it, and UNIMPLEMENTED where none were.
class HostileServer final : public grpc::CallbackGenericService {
 public:
  HostileServer() {
    grpc::ServerBuilder builder;
    builder.SetMaxSendMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~HostileServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return fmt::format("127.0.0.1:{}", port_); }

  void Say(const std::string& method, std::string bytes) {
    const std::lock_guard lock(mu_);
    answers_[method] = Bytes(bytes);
    said_ = 0;
  }
  // Answers to that method that were taken since.
  int said() const { return said_; }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(HostileServer& server, const std::string& method) : server_(server) {
      const std::lock_guard lock(server.mu_);
      const auto found = server.answers_.find(method);
      if (found == server.answers_.end()) return Finish({grpc::StatusCode::UNIMPLEMENTED, "not here"});
      answer_ = found->second;
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
      counts_ = true;
    }
    void OnDone() override {
      if (counts_) ++server_.said_;
      delete this;
    }

   private:
    HostileServer& server_;
    grpc::ByteBuffer answer_;
    bool counts_ = false;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Call(*this, context->method());
  }

  int port_ = 0;
  std::mutex mu_;
  std::map<std::string, grpc::ByteBuffer> answers_;  // guarded by mu_
  std::atomic<int> said_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// What the bomb costs the process until it has been taken a few times.
double GrowthUnder(smoke::Server& caller, HostileServer& server, const std::string& method, const std::string& bomb) {
  const pid_t pid = caller.process().pid();
  ForgetPeak(pid);
  const double before = PeakMiB(pid);
  server.Say(method, bomb);
  EXPECT_TRUE(Eventually([&] { return server.said() >= 3; })) << method << " is not called";
  const double growth = PeakMiB(pid) - before;
  std::cout << fmt::format("{} with {} bytes: grew by {:.1f} MiB\n", method, bomb.size(), growth);
  EXPECT_FALSE(caller.process().Ended()) << caller.process().err();
  return growth;
}

bigfleet::v1alpha1::Machine HonestMachine(int number) {
  bigfleet::v1alpha1::Machine machine;
  machine.set_id(fmt::format("i-{:017x}", number));
  machine.set_state(bigfleet::v1alpha1::MACHINE_STATE_IDLE);
  machine.mutable_host()->set_provider("cloud");
  machine.mutable_host()->set_ref(fmt::format("arn:instance/{:017x}", number));
  machine.set_instance_type("m7i.4xlarge");
  machine.set_zone(fmt::format("eu-central-1{}", "abc"[number % 3]));
  machine.set_capacity_type(bigfleet::v1alpha1::CAPACITY_TYPE_ON_DEMAND);
  machine.set_price_per_hour(0.9216);
  for (const auto& [name, amount] : std::map<std::string, std::string>{
           {"cpu", "16"}, {"memory", "64Gi"}, {"ephemeral-storage", "100Gi"}, {"pods", "234"}}) {
    (*machine.mutable_resources()->mutable_resources())[name] = amount;
    (*machine.mutable_allocatable()->mutable_resources())[name] = amount;
  }
  auto& labels = *machine.mutable_labels();
  for (int i = 0; i < 12; ++i) labels[fmt::format("example.com/label-{}", i)] = fmt::format("value-{}", i * 7);
  labels["kubernetes.io/hostname"] = machine.id();  // so that no two machines have the same labels
  return machine;
}

TEST(HostileProvider, ItsListCostsAShardNoMoreThanTheFleetItNames) {
  const std::string list = "/bigfleet.v1alpha1.CapacityProvider/List";
  HostileServer provider;
  provider.Say(list, "");
  const shard::Fleet fleet(1);
  smoke::Server shard(fleet.ShardCommand(provider.target(), ":0", {"--cycle-interval", "200ms"}));
  ASSERT_NE(shard.grpc(), "") << shard.process().err();
  // Records without anything, more than six hundred bytes each once they are made.
  EXPECT_LT(GrowthUnder(shard, provider, list, Repeated(std::string_view("\x0A\x00", 2), 10'000'000)), kMostMiB);
  // Fifty thousand labels of one record.
  std::string labels;
  for (int i = 0; i < 50'000; ++i) {
    labels += "\x52" + Delimited("\x0A" + Delimited(fmt::format("{:x}", i)));
  }
  EXPECT_LT(GrowthUnder(shard, provider, list, "\x0A" + Delimited(labels)), kMostMiB);
  // Ten million fields that no record has.
  EXPECT_LT(
      GrowthUnder(shard, provider, list, "\x0A" + Delimited(Repeated(std::string_view("\xF8\x07\x01", 3), 10'000'000))),
      kMostMiB);
  // Records that are machines, of ten thousand labels each, of which no two are equal.
  std::string machines;
  for (int number = 0; number < 300; ++number) {
    bigfleet::v1alpha1::Machine machine = HonestMachine(number);
    for (int i = 0; i < 6'000; ++i) (*machine.mutable_labels())[fmt::format("{:x}", i * 300 + number)] = "";
    machines += "\x0A" + Delimited(machine.SerializeAsString());
  }
  EXPECT_LT(GrowthUnder(shard, provider, list, machines), kMostMiB);
}

TEST(HostileProvider, AnHonestListOfALargeFleetPasses) {
  constexpr int kMachines = 225'000;
  const std::string list = "/bigfleet.v1alpha1.CapacityProvider/List";
  HostileServer provider;
  {
    std::string machines;
    for (int number = 0; number < kMachines; ++number) {
      machines += "\x0A" + Delimited(HonestMachine(number).SerializeAsString());
    }
    std::cout << fmt::format("{} bytes\n", machines.size());
    provider.Say(list, machines + "\x12" + Delimited("revision 7"));
  }
  const auto client = *rpc::MakeProviderClient(provider.target());
  const auto reply = shard::Wait<contract::ProviderReply>(
      [&](auto done) { client->Ask(contract::ListRequest{}, 60s, std::move(done)); });
  ASSERT_TRUE(reply.has_value()) << reply.error().ToString();
  const auto& listed = std::get<contract::ListReply>(*reply);
  EXPECT_EQ(listed.machines.size(), kMachines);
  EXPECT_TRUE(listed.rejected.empty()) << listed.rejected.front().reason;
  EXPECT_EQ(listed.revision, "revision 7");
  EXPECT_EQ(listed.machines.back()->labels.size(), 13u);
}

TEST(HostileAgent, ItsAnswersCostASchedulerLittle) {
  HostileServer agent;
  smoke::Server scheduler({smoke::ProgramUnderTest(), "scheduler", "--store", "memory:", "--listen", "127.0.0.1:0",
                           "--metrics-addr", "127.0.0.1:0", "--reconcile-interval", "200ms"});
  ASSERT_NE(scheduler.grpc(), "") << scheduler.process().err();
  // One answer for whatever an agent is asked: rows without anything where the answer has rows, fields that it does not
  // have elsewhere; and one beyond the bound in bytes.
  const std::string rows = Repeated(std::string_view("\x0A\x00", 2), 4'000'000);
  const std::string fields = Repeated(std::string_view("\xF8\x07\x01", 3), 2'700'000);
  const std::string large = "\x1A" + Delimited(std::string(100 << 20, 'x'));
  persys::control::v1::RegisterNodeRequest node;
  node.set_node_id("n-1");
  node.set_grpc_endpoint(agent.target());
  node.mutable_capabilities()->set_cpu_total_millicores(64'000);
  node.mutable_capabilities()->set_memory_total_mb(64'000);
  node.mutable_capabilities()->add_supported_workload_types("container");
  EXPECT_TRUE(Eventually([&] {
    return RawCall(OpenChannel(scheduler.grpc()), "/persys.control.v1.AgentControl/RegisterNode",
                   node.SerializeAsString())
        .ok();
  }));
  const auto client = *rpc::MakeClusterClient(scheduler.grpc());
  contract::ApplySpec set{.spec = {.kind = model::WorkloadKind::kSet, .name = "web"}};
  set.spec.spec.type = model::WorkloadType::kContainer;
  set.spec.spec.image = "image";
  set.spec.replicas = 8;
  const auto applied = shard::Wait<contract::ClusterReply>([&](auto done) { client->Ask(set, std::move(done)); });
  EXPECT_TRUE(applied.has_value()) << applied.error().ToString();
  for (const char* method :
       {"/persys.agent.v1.AgentService/ApplyWorkload", "/persys.agent.v1.AgentService/ListWorkloads"}) {
    for (const std::string& bomb : {rows, fields, large}) {
      EXPECT_LT(GrowthUnder(scheduler, agent, method, bomb), kMostMiB);
    }
  }
}

TEST(HostileAgent, AnAnswerBeyondTheBoundsIsRefusedByName) {
  HostileServer agent;
  const auto client = *rpc::MakeAgentClient();
  const auto ask = [&](const std::string& answer) {
    agent.Say("/muster.v1.Agent/List", answer);
    const auto reply = shard::Wait<contract::AgentReply>(
        [&](auto done) { client->Ask({.address = agent.target()}, contract::ListOnAgent{}, 20s, std::move(done)); });
    return reply ? Status() : reply.error();
  };
  EXPECT_EQ(ask(""), Status());
  EXPECT_EQ(ask(Repeated(std::string_view("\x0A\x00", 2), 100'000)),
            Status(Code::kInternal, fmt::format("agent {} answers with a bad answer: workloads: the message has more "
                                                "than 20000 rows; send less at a time",
                                                agent.target())));
  EXPECT_EQ(ask(Repeated(std::string_view("\xF8\x07\x01", 3), 2'700'000)).code(), Code::kInternal);
  EXPECT_EQ(ask("\x0A" + Delimited("\x0A" + Delimited(std::string(9 << 20, 'x')))).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace muster::guard
