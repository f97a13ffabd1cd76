// What a hostile server can cost the program that calls it: a provider its shard, an agent its scheduler, a scheduler
// or a shard the command line. Each bomb is an answer over the wire; what the caller's memory grows by is measured by
// the kernel.
#include <grpcpp/generic/async_generic_service.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <vector>

#include "bigfleet/v1alpha1/provider.pb.h"
#include "guard/hostile.h"
#include "host/temp_dir_for_test.h"
#include "muster/v1/cluster.grpc.pb.h"
#include "persys/control/v1/control.pb.h"
#include "rpc/agent_client.h"
#include "rpc/agent_probe.h"
#include "rpc/cluster_client.h"
#include "rpc/control_client.h"
#include "rpc/coordinator_client.h"
#include "rpc/enrol_client.h"
#include "rpc/join_client.h"
#include "rpc/provider_client.h"
#include "rpc/session_client.h"
#include "rpc/shard_client.h"
#include "shard/fleet.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

using shard::Eventually;

constexpr double kMostMiB = 64;    // that a bomb may cost
constexpr size_t kLargeMiB = 100;  // of one answer

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

  void Say(const std::string& method, std::string bytes, bool compressed = false) {
    const std::lock_guard lock(mu_);
    answers_[method] = {.bytes = Bytes(bytes), .compressed = compressed};
    said_ = 0;
  }
  // Answers to that method that were taken since.
  int said() const { return said_; }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(HostileServer& server, grpc::GenericCallbackServerContext& context) : server_(server) {
      const std::lock_guard lock(server.mu_);
      const auto found = server.answers_.find(context.method());
      if (found == server.answers_.end()) {
        Finish({grpc::StatusCode::UNIMPLEMENTED, "not here"});
        return;
      }
      answer_ = found->second.bytes;
      if (found->second.compressed) context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
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
    return new Call(*this, *context);
  }
  struct Answer {
    grpc::ByteBuffer bytes;
    bool compressed = false;
  };

  int port_ = 0;
  std::mutex mu_;
  std::map<std::string, Answer> answers_;  // guarded by mu_
  std::atomic<int> said_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// What the bomb costs the process until it has been taken a few times.
double GrowthUnder(smoke::Process& caller, HostileServer& server, const std::string& method, const std::string& bomb,
                   bool compressed = false) {
  const pid_t pid = caller.pid();
  ForgetPeak(pid);
  const double before = PeakMiB(pid);
  server.Say(method, bomb, compressed);
  EXPECT_TRUE(Eventually([&] { return server.said() >= 3; })) << method << " is not called";
  const double growth = PeakMiB(pid) - before;
  std::cout << fmt::format("{} with {} bytes: grew by {:.1f} MiB\n", method, bomb.size(), growth);
  EXPECT_FALSE(caller.Ended()) << caller.err();
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
  // A good list after each bomb, because the shard asks a provider that fails ever more seldom.
  const auto bombard = [&](const std::string& bomb) {
    EXPECT_LT(GrowthUnder(shard.process(), provider, list, bomb), kMostMiB);
    provider.Say(list, "");
    EXPECT_TRUE(Eventually([&] { return provider.said() >= 1; }));
  };
  // Records without anything, more than six hundred bytes each once they are made.
  bombard(Repeated(std::string_view("\x0A\x00", 2), 10'000'000));
  // Fifty thousand labels of one record.
  std::string labels;
  for (int i = 0; i < 50'000; ++i) {
    labels += "\x52" + Delimited("\x0A" + Delimited(fmt::format("{:x}", i)));
  }
  bombard("\x0A" + Delimited(labels));
  // Ten million fields that no record has.
  bombard("\x0A" + Delimited(Repeated(std::string_view("\xF8\x07\x01", 3), 10'000'000)));
  // Records that are machines, of ten thousand labels each, of which no two are equal.
  std::string machines;
  for (int number = 0; number < 300; ++number) {
    bigfleet::v1alpha1::Machine machine = HonestMachine(number);
    for (int i = 0; i < 6'000; ++i) (*machine.mutable_labels())[fmt::format("{:x}", i * 300 + number)] = "";
    machines += "\x0A" + Delimited(machine.SerializeAsString());
  }
  bombard(machines);
}

TEST(HostileProvider, ItsCompressedListIsNotUnpacked) {
  const std::string list = "/bigfleet.v1alpha1.CapacityProvider/List";
  HostileServer provider;
  provider.Say(list, "");
  const shard::Fleet fleet(1);
  smoke::Server shard(fleet.ShardCommand(provider.target(), ":0", {"--cycle-interval", "200ms"}));
  ASSERT_NE(shard.grpc(), "") << shard.process().err();
  EXPECT_LT(GrowthUnder(shard.process(), provider, list, std::string(96 << 20, '\0'), true), kMostMiB);
}

TEST(HostileServers, NoClientUnpacksAnAnswer) {
  HostileServer server;
  const std::string zeros(1 << 20, '\0');
  const std::string target = server.target();
  // Left as they are, the bytes are no message.
  const auto refused = [](const auto& reply) {
    return !reply && reply.error().code() == Code::kInternal && reply.error().message().contains("cannot be parsed");
  };
  server.Say("/bigfleet.v1alpha1.CapacityProvider/List", zeros, true);
  EXPECT_TRUE(RawCall(OpenChannel(target), "/bigfleet.v1alpha1.CapacityProvider/List", "").ok())
      << "a channel of gRPC's own takes it";
  const auto provider = *rpc::MakeProviderClient(target);
  EXPECT_TRUE(refused(shard::Wait<contract::ProviderReply>(
      [&](auto done) { provider->Ask(contract::ListRequest{}, 20s, std::move(done)); })));
  server.Say("/bigfleet.v1alpha1.Coordinator/ReportShard", zeros, true);
  const auto coordinator = *rpc::MakeCoordinatorClient(target);
  EXPECT_TRUE(
      refused(shard::Wait<contract::ReportAck>([&](auto done) { coordinator->Report({}, 20s, std::move(done)); })));
  server.Say("/muster.v1.Cluster/GetSummary", zeros, true);
  const auto cluster = *rpc::MakeClusterClient(target);
  EXPECT_TRUE(refused(
      shard::Wait<contract::ClusterReply>([&](auto done) { cluster->Ask(contract::GetSummary{}, std::move(done)); })));
  server.Say("/muster.v1.Enrol/CreateToken", zeros, true);
  const auto enrol = *rpc::MakeEnrolClient(target, {});
  EXPECT_TRUE(refused(shard::Wait<rpc::TokenText>([&](auto done) { enrol->CreateToken(std::move(done)); })));
  server.Say("/muster.v1.Agent/List", zeros, true);
  const auto agent = *rpc::MakeAgentClient({}, "");
  EXPECT_TRUE(refused(shard::Wait<contract::AgentReply>([&](auto done) {
    agent->Ask({.address = target, .node = "n-1"}, contract::ListOnAgent{}, 20s, std::move(done));
  })));
  server.Say("/muster.v1.Fleet/ListClusters", zeros, true);
  const auto fleet = *rpc::MakeShardClient(target);
  EXPECT_TRUE(refused(
      shard::Wait<contract::ShardReply>([&](auto done) { fleet->Ask(contract::ListClusters{}, std::move(done)); })));
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
  const std::string large = "\x1A" + Delimited(std::string(kLargeMiB << 20, 'x'));
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
  // What it asks of each workload that it has placed there, and of the node, which sends no heartbeats.
  for (const std::string& bomb : {rows, fields, large}) {
    for (const char* method : {"GetWorkloadStatus", "ListWorkloads"}) {
      EXPECT_LT(GrowthUnder(scheduler.process(), agent, std::string("/persys.agent.v1.AgentService/") + method, bomb),
                kMostMiB);
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

TEST(HostileAgent, ACheckOfItReadsLittle) {
  HostileServer agent;
  const auto probe = *rpc::MakeAgentProbe(agent.target());
  const std::string rows = Repeated(std::string_view("\x0A\x00", 2), 100'000);
  const std::string fields = Repeated(std::string_view("\xF8\x07\x01", 3), 2'700'000);
  const auto code = [](const auto& reply) { return reply ? Code::kOk : reply.error().code(); };
  for (const auto& [service, method] :
       {std::pair{rpc::AgentProbe::Service::kPersys, "/persys.agent.v1.AgentService/ListWorkloads"},
        std::pair{rpc::AgentProbe::Service::kNative, "/muster.v1.Agent/List"}}) {
    agent.Say(method, rows);
    const auto reply = probe->Ask(service, contract::ListOnAgent{});
    ASSERT_FALSE(reply.has_value()) << method;
    EXPECT_EQ(reply.error(),
              Status(Code::kResourceExhausted, "workloads: the message has more than 20000 rows; send less at a time"))
        << method;
  }
  agent.Say("/persys.agent.v1.AgentService/HealthCheck", fields);
  EXPECT_EQ(code(probe->Health()), Code::kResourceExhausted);
  agent.Say("/persys.agent.v1.AgentService/ListActions", rows);
  EXPECT_EQ(code(probe->Actions({})), Code::kResourceExhausted);
  agent.Say("/muster.v1.Agent/Logs", fields);
  EXPECT_EQ(code(probe->Logs("web")), Code::kResourceExhausted);
  agent.Say("/muster.v1.Agent/Logs", "\x0A" + Delimited(std::string(9 << 20, 'x')));
  EXPECT_EQ(code(probe->Logs("web")), Code::kResourceExhausted);
}

// A command that has ended.
struct Ran {
  int code = 0;
  std::string err;
  double peak = 0;  // MiB
};

Ran RunCommand(std::vector<std::string> words) {
  words.insert(words.begin(), smoke::ProgramUnderTest());
  smoke::Process process(words);
  Ran ran;
  while (!process.Ended()) ran.peak = std::max(ran.peak, PeakMiB(process.pid()));
  EXPECT_GT(ran.peak, 0) << "the command ended before it was looked at";
  ran.code = process.Wait();
  ran.err = process.err();
  return ran;
}

// A list that is asked for again in parts comes while gRPC still frees the answer before it.
constexpr double kMostMiBOfTwo = 96;

// Runs the command against each bomb as the answer of the method, and demands that it stays small and says which bound
// was passed. `quiet` is an answer that it takes.
void Bombard(HostileServer& server, const std::vector<std::string>& command, const std::string& method,
             const std::string& quiet = "", double most = kMostMiB) {
  server.Say(method, quiet);
  const double before = RunCommand(command).peak;
  const std::string rows = Repeated(std::string_view("\x0A\x00", 2), 7'500'000);
  const std::string fields = Repeated(std::string_view("\xF8\x07\x01", 3), 5'000'000);
  const std::string large = "\x0A" + Delimited(std::string(kLargeMiB << 20, 'x'));
  for (const std::string* bomb : {&rows, &fields, &large}) {
    server.Say(method, *bomb);
    const Ran ran = RunCommand(command);
    EXPECT_TRUE(Eventually([&] { return server.said() >= 1; })) << method << " is not called";
    const double growth = ran.peak - before;
    std::cout << fmt::format("muster {}, {} with {} bytes: grew by {:.1f} MiB\n", fmt::join(command, " "), method,
                             bomb->size(), growth);
    EXPECT_LT(growth, most);
    EXPECT_NE(ran.code, 0);
    const bool names_bound = ran.err.contains("the message has more than 100000 rows") ||
                             ran.err.contains("the message takes more than 48 MiB of memory") ||
                             ran.err.contains("cannot be parsed") ||
                             (bomb == &large && ran.err.contains("memory for messages that are not read yet"));
    EXPECT_TRUE(names_bound) << fmt::format("{}", fmt::join(command, " ")) << "\n" << ran.err;
  }
  server.Say(method, quiet);
}

TEST(HostileScheduler, ItsAnswersCostACommandLittle) {
  HostileServer scheduler;
  const std::string at = scheduler.target();
  const std::string service = "/muster.v1.Cluster/";
  for (const auto& [kind, method] : std::map<std::string, std::string>{{"workloads", "ListWorkloads"},
                                                                       {"nodes", "ListNodes"},
                                                                       {"sets", "ListSets"},
                                                                       {"quotas", "ListQuotas"},
                                                                       {"events", "ListEvents"}}) {
    Bombard(scheduler, {"get", kind, "--scheduler", at}, service + method, "", kMostMiBOfTwo);
  }
  Bombard(scheduler, {"delete", "set", "web", "--scheduler", at}, service + "DeleteObject");
  Bombard(scheduler, {"explain", "workload", "web", "--scheduler", at}, service + "ExplainWorkload");
  Bombard(scheduler, {"logs", "web", "--scheduler", at}, service + "Logs");
  scheduler.Say(service + "ListWorkloads", "");
  Bombard(scheduler, {"get", "workloads", "--watch", "--scheduler", at}, service + "Watch");
}

std::string StateOfANode(const std::string& workloads) {
  return "\x0A" + Delimited("\x08\x01\x2A" + Delimited("\x08\x01" + workloads));
}

// What a node hears when it joins, over and over.
TEST(HostileScheduler, ItsStateOfANodeCostsAnAgentLittle) {
  const host::TempDir dir;
  HostileServer scheduler;
  const std::string join = "/muster.v1.Cluster/Join";
  // It listens once it has joined, which it never does.
  smoke::Process agent({smoke::ProgramUnderTest(), "agent", "--node-id", "n-1", "--data-dir", dir.File("agent"),
                        "--scheduler", scheduler.target(), "--listen", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"});
  for (const std::string& bomb : {StateOfANode(Repeated(std::string_view("\x12\x00", 2), 7'500'000)),
                                  Repeated(std::string_view("\xF8\x07\x01", 3), 5'000'000)}) {
    EXPECT_LT(GrowthUnder(agent, scheduler, join, bomb), kMostMiB);
  }
}

TEST(HostileScheduler, AStateOfANodeBeyondTheBoundsIsRefusedByName) {
  struct Handler final : rpc::JoinHandler {
    contract::RegisterNode Registration() override { return {}; }
    void Joined(const std::string&, contract::NodeRegistered) override { ADD_FAILURE() << "it was taken"; }
    void Acked(contract::HeartbeatAck) override { ADD_FAILURE() << "it was taken"; }
    void Left(const std::string&, Status why) override {
      if (!std::exchange(told, true)) left.set_value(std::move(why));
    }
    bool told = false;
    std::promise<Status> left;
  };
  HostileServer scheduler;
  const auto hear = [&](const std::string& message) {
    scheduler.Say("/muster.v1.Cluster/Join", message);
    Handler handler;
    const auto client = *rpc::MakeJoinClient(scheduler.target(), handler);
    return handler.left.get_future().get();
  };
  const std::string sends = fmt::format("scheduler {} sends a bad answer: ", scheduler.target());
  EXPECT_EQ(hear(StateOfANode(Repeated(std::string_view("\x12\x00", 2), 200'000))),
            Status(Code::kInternal, sends + "workloads: the message has more than 100000 rows; send less at a time"));
  EXPECT_EQ(hear(Repeated(std::string_view("\xF8\x07\x01", 3), 5'000'000)),
            Status(Code::kInternal, sends + "the message takes more than 192 MiB of memory once it is read; send less "
                                            "at a time"));
  EXPECT_EQ(hear(std::string(129 << 20, 'x')).code(), Code::kResourceExhausted);
}

TEST(HostileScheduler, AnAnswerBeyondTheBoundsIsRefusedByName) {
  HostileServer scheduler;
  const std::string fields = Repeated(std::string_view("\xF8\x07\x01", 3), 1'300'000);
  const Status beyond(Code::kInternal,
                      fmt::format("scheduler {} answers with a bad answer: the message takes more than "
                                  "32 MiB of memory once it is read; send less at a time",
                                  scheduler.target()));
  const std::string large(5 << 20, 'x');
  const auto enrol = *rpc::MakeEnrolClient(scheduler.target(), {});
  const auto control = *rpc::MakeControlClient(scheduler.target());
  const auto token = [&](const std::string& answer) {
    scheduler.Say("/muster.v1.Enrol/CreateToken", answer);
    const auto made = shard::Wait<rpc::TokenText>([&](auto done) { enrol->CreateToken(std::move(done)); });
    return made ? Status() : made.error();
  };
  EXPECT_EQ(token(fields), beyond);
  EXPECT_EQ(token(large).code(), Code::kResourceExhausted);
  const auto sign = [&](const std::string& answer) {
    scheduler.Say("/muster.v1.Enrol/Sign", answer);
    const auto made = shard::Wait<rpc::SignedNode>([&](auto done) { enrol->Sign({.node = "n-1"}, std::move(done)); });
    return made ? Status() : made.error();
  };
  EXPECT_EQ(sign(fields), beyond);
  EXPECT_EQ(sign(large).code(), Code::kResourceExhausted);
  const auto beat = [&](const std::string& answer) {
    scheduler.Say("/persys.control.v1.AgentControl/Heartbeat", answer);
    std::promise<Status> ended;
    control->Beat({.node = "n-1"}, [&](Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  };
  EXPECT_EQ(beat("\x08\x01"), Status());
  EXPECT_EQ(beat(fields), beyond);
  EXPECT_EQ(beat(large).code(), Code::kResourceExhausted);
}

// A session as an operator has it.
TEST(HostileShard, AMessageBeyondTheBoundsIsRefusedByName) {
  struct Handler final : rpc::SessionHandler {
    void Received(contract::ShardMessage) override { ADD_FAILURE() << "it was taken"; }
    void Unreadable(Status why) override { refused = std::move(why); }
    void Ended(Status status) override { ended.set_value(std::move(status)); }
    Status refused;
    std::promise<Status> ended;
  };
  HostileServer shard;
  const auto hear = [&](const std::string& message) {
    shard.Say("/bigfleet.v1alpha1.Shard/Session", message);
    Handler handler;
    const auto session = *rpc::OpenSession(shard.target(), {.cluster_id = "blue"}, handler);
    const Status ended = handler.ended.get_future().get();
    return handler.refused.ok() ? ended : handler.refused;
  };
  const std::string sends = fmt::format("shard {} sends a message that cannot be read: ", shard.target());
  EXPECT_EQ(
      hear("\x12" + Delimited(Repeated(std::string_view("\x12\x00", 2), 7'500'000))),
      Status(Code::kInternal, sends + "requirements: the message has more than 100000 rows; send less at a time"));
  EXPECT_EQ(hear(Repeated(std::string_view("\xF8\x07\x01", 3), 5'000'000)),
            Status(Code::kInternal, sends + "the message takes more than 48 MiB of memory once it is read; send less "
                                            "at a time"));
  EXPECT_EQ(hear(std::string(17 << 20, 'x')).code(), Code::kResourceExhausted);
}

TEST(HostileShard, ItsAnswersCostACommandLittle) {
  HostileServer shard;
  const std::string service = "/muster.v1.Fleet/";
  for (const auto& [verb, method] : std::map<std::string, std::string>{{"machines", "ListMachines"},
                                                                       {"needs", "InspectNeeds"},
                                                                       {"clusters", "ListClusters"},
                                                                       {"actions", "ListActions"},
                                                                       {"pause", "SetActuation"}}) {
    Bombard(shard, {"fleet", verb, "--shard", shard.target()}, service + method);
  }
  // What else it asks of the shard: one machine, and no needs.
  const bigfleet::v1alpha1::Machine machine = HonestMachine(7);
  shard.Say(service + "ListMachines", "\x0A" + Delimited(machine.SerializeAsString()));
  shard.Say(service + "InspectNeeds", std::string("\x0A\x00", 2));
  Bombard(shard, {"explain", "machine", machine.id(), "--shard", shard.target(), "--scheduler", "127.0.0.1:1"},
          service + "Explain");
}

// As large as a template may be, about.
void FillLargest(v1::WorkloadTemplate& spec) {
  spec.set_type(v1::WORKLOAD_TYPE_CONTAINER);
  spec.set_image("registry.example.com/shop/web:2026.11");
  for (int i = 0; i < 16; ++i) (*spec.mutable_env())[fmt::format("VARIABLE_{}", i)] = std::string(31'000, 'v');
}

// A scheduler with so many workloads, page by page, of an earlier version: its pages end by their number alone.
class LargeScheduler final : public v1::Cluster::Service {
 public:
  explicit LargeScheduler(int workloads) : workloads_(workloads) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~LargeScheduler() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  static constexpr int kLarge = 400;  // the last ones

  grpc::Status ListWorkloads(grpc::ServerContext*, const v1::ListWorkloadsRequest* request,
                             v1::WorkloadsListed* reply) override {
    const int first = request->page().token().empty() ? 0 : std::stoi(request->page().token());
    const int end = std::min(workloads_, first + request->page().limit());
    for (int i = first; i < end; ++i) {
      v1::WorkloadView& view = *reply->add_workloads();
      view.set_workload(fmt::format("web-{}", i));
      view.set_set("web");
      view.set_type(v1::WORKLOAD_TYPE_CONTAINER);
      view.set_desired(v1::DESIRED_STATE_RUNNING);
      view.set_phase(v1::WORKLOAD_PHASE_RUNNING);
      view.set_node(fmt::format("n-{}", i % 1'000));
      v1::WorkloadTemplate& spec = *view.mutable_spec();
      if (i >= workloads_ - kLarge) {
        FillLargest(spec);
      } else {
        spec.set_type(v1::WORKLOAD_TYPE_CONTAINER);
        spec.set_image("registry.example.com/shop/web:2026.11");
      }
    }
    if (end < workloads_) reply->set_next(std::to_string(end));
    return grpc::Status::OK;
  }

  const int workloads_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(HostileScheduler, AnHonestListOfManyLargeWorkloadsPasses) {
  constexpr int kWorkloads = 100'000;
  const LargeScheduler scheduler(kWorkloads);
  smoke::Process process(
      {smoke::ProgramUnderTest(), "get", "workloads", "-o", "name", "--scheduler", scheduler.target()});
  EXPECT_EQ(process.Wait(), 0) << process.err();
  EXPECT_EQ(std::ranges::count(process.out(), '\n'), kWorkloads);
}

TEST(HostileScheduler, AnHonestSetOfTheLargestWorkloadsIsListed) {
  constexpr int kWorkloads = 150;  // 75 MB
  smoke::Server scheduler({smoke::ProgramUnderTest(), "scheduler", "--store", "memory:", "--listen", "127.0.0.1:0",
                           "--metrics-addr", "127.0.0.1:0"});
  ASSERT_NE(scheduler.grpc(), "") << scheduler.process().err();
  const auto apply = [&](int larger) {
    v1::ApplySpecRequest request;
    request.mutable_spec()->set_kind(v1::WORKLOAD_KIND_SET);
    request.mutable_spec()->set_name("web");
    request.mutable_spec()->set_replicas(kWorkloads);
    FillLargest(*request.mutable_spec()->mutable_spec());
    for (int i = 0; i < larger; ++i) {
      (*request.mutable_spec()->mutable_spec()->mutable_env())[fmt::format("MORE_{}", i)] = std::string(31'000, 'v');
    }
    return RawCall(OpenChannel(scheduler.grpc()), "/muster.v1.Cluster/ApplySpec", request.SerializeAsString());
  };
  const grpc::Status refused = apply(1);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "spec.spec.env: is too large; it takes 519 KiB, and a whole template at most 512");
  EXPECT_TRUE(Eventually([&] { return apply(0).ok(); }));
  const std::vector<std::string> get = {smoke::ProgramUnderTest(), "get", "workloads", "-o", "name", "--scheduler",
                                        scheduler.grpc()};
  EXPECT_TRUE(Eventually([&] {
    smoke::Process process(get);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    return std::ranges::count(process.out(), '\n') == kWorkloads;
  }));
}

// Pages without end.
TEST(HostileScheduler, AListThatDoesNotEndIsRefused) {
  HostileServer scheduler;
  const std::string next = "\x12" + Delimited("more");
  scheduler.Say("/muster.v1.Cluster/ListSets", next);
  const Ran same = RunCommand({"get", "sets", "--scheduler", scheduler.target()});
  EXPECT_NE(same.code, 0);
  EXPECT_TRUE(same.err.contains("the same page again and again")) << same.err;
}

}  // namespace
}  // namespace muster::guard
