// A shard or an agent whose disk is full: it does nothing it could not remember, says so, and still answers what is
// asked.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "host/http_get_for_test.h"
#include "host/temp_dir_for_test.h"
#include "rpc/agent_client.h"
#include "shard/fleet.h"
#include "smoke/process.h"
#include "smoke/server.h"

namespace muster::guard {
namespace {

using shard::Eventually;

// Needs that are all different, so that each is a row on disk.
std::vector<model::Need> ManyNeeds(int32_t count) {
  std::vector<model::Need> needs;
  for (int32_t i = 0; i < count; ++i) needs.push_back(shard::NeedOf("blue", 1, i));
  return needs;
}

// A disk of 4 MB, most of it taken; what takes it is removed when somebody writes to the pipe.
TEST(FullDisk, AShardRefusesOrdersAndAnswersQuestions) {
  const shard::Fleet fleet(4);
  provider::Life provider(fleet.ProviderCommand());
  ASSERT_TRUE(provider.up()) << provider.process().err();
  const std::string disk = fleet.File("disk");
  const std::string pipe = fleet.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::vector<std::string> words = fleet.ShardCommand(provider.grpc());
  for (std::string& word : words) {
    if (word == fleet.File("shard")) word = disk + "/data";
  }
  const std::string command = fmt::format(
      "mkdir {0} && mount -t tmpfs -o size=4m none {0} && head -c 3000000 /dev/zero > {0}/filler || exit 1\n"
      "(read -r word < {1}; rm {0}/filler) >/dev/null 2>&1 &\nexec {2}",
      disk, pipe, fmt::join(words, " "));
  shard::ShardLife life({"unshare", "-rm", "sh", "-c", command});
  ASSERT_TRUE(life.up()) << life.process().err();
  shard::TestCluster cluster("blue", life.grpc());
  cluster.Want({shard::NeedOf("blue", 2)});
  ASSERT_TRUE(Eventually([&] { return life.Settled(1); })) << life.process().err();

  cluster.Want(ManyNeeds(20'000));
  const host::Address http = *host::ParseListenAddress(life.http(), false, "http");
  ASSERT_TRUE(Eventually([&] { return host::HttpGet(http, "/readyz").body.contains("full"); }));
  const auto client = *rpc::MakeShardClient(life.grpc());
  const auto ask = [&](contract::ShardRequest request) {
    const auto start = std::chrono::steady_clock::now();
    auto reply =
        shard::Wait<contract::ShardReply>([&](auto done) { client->Ask(std::move(request), std::move(done)); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
    return reply;
  };
  for (int round = 0; round < 3; ++round) {
    for (const contract::ShardRequest& question :
         {contract::ShardRequest(contract::ListClusters{}), contract::ShardRequest(contract::ListMachines{}),
          contract::ShardRequest(contract::InspectNeeds{.limit = 3}), contract::ShardRequest(contract::ListActions{}),
          contract::ShardRequest(contract::Explain{.subject = "none"})}) {
      const auto reply = ask(question);
      EXPECT_TRUE(reply || reply.error().code() == Code::kNotFound) << reply.error().ToString();
    }
    const auto refused = ask(contract::SetActuation{.mode = contract::ActuationMode::kPaused, .reason = "full"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
    EXPECT_TRUE(refused.error().message().contains("state cannot be stored")) << refused.error().message();
  }
  EXPECT_EQ(host::HttpGet(http, "/livez").status, 200);

  std::ofstream(pipe) << "free\n";
  EXPECT_TRUE(Eventually([&] {
    return life
        .Ask<contract::ActuationSet>(
            contract::SetActuation{.mode = contract::ActuationMode::kPaused, .reason = "there is room"})
        .has_value();
  }));
  life.process().Signal(SIGTERM);
  EXPECT_EQ(life.process().Wait(), 0) << life.process().err();
}

// One workload fills the disk of its node: the others run on, the scheduler sees that they do, and is told to put
// nothing else there.
TEST(FullDisk, AnAgentRefusesChangesAndAnswersQuestions) {
  const host::TempDir dir;
  const std::string disk = dir.File("disk");
  const std::string free = dir.File("free");
  const std::string command = fmt::format(
      "mkdir {0} && mount -t tmpfs -o size=6m none {0} || exit 1\n"
      "exec {1} agent --listen 127.0.0.1:0 --metrics-addr 127.0.0.1:0 --data-dir {0}/data --node-id n1 "
      "--process-user agent",
      disk, smoke::ProgramUnderTest());
  smoke::Server agent({"unshare", "-rm", "sh", "-c", command});
  ASSERT_NE(agent.grpc(), "") << agent.process().err();
  const auto client = *rpc::MakeAgentClient();
  const auto ask = [&](contract::AgentRequest request) {
    return shard::Wait<contract::AgentReply>(
        [&](auto done) { client->Ask({.address = agent.grpc()}, std::move(request), 2s, std::move(done)); });
  };
  const auto apply = [&](const std::string& id, const std::string& script) {
    contract::ApplyOnAgent request{.workload = id, .revision = "1", .stamp = {.epoch = 0, .sequence = 1}};
    request.spec.type = model::WorkloadType::kProcess;
    request.spec.command = {"/bin/sh", "-c", script};
    request.spec.env = {{"ROOM", std::string(10'000, 'x')}};
    return ask(request);
  };
  const auto runs = [&](const std::string& id) {
    const auto status = ask(contract::GetStatusOnAgent{.workload = id});
    return status && std::get<contract::WorkloadStatus>(*status).actual == contract::ActualState::kRunning;
  };
  const auto good = apply("good", "exec sleep 1000");
  ASSERT_TRUE(good) << good.error().ToString();
  // It gives back what it took when the test says so.
  ASSERT_TRUE(apply("greedy", fmt::format("head -c 100000000 /dev/zero > filler; until test -e {}; do sleep 0.1; done; "
                                          "rm filler; exec sleep 1000",
                                          free)));
  ASSERT_TRUE(Eventually([&] { return runs("good") && runs("greedy"); })) << agent.process().err();
  Status refused;
  int applied = 0;
  ASSERT_TRUE(Eventually([&] {
    const auto reply = apply(fmt::format("more-{}", applied++), "exec sleep 1000");
    if (!reply) refused = reply.error();
    return refused.code() == Code::kResourceExhausted;
  })) << refused.ToString();
  EXPECT_TRUE(refused.message().contains("state cannot be stored")) << refused.message();
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(runs("good"));
    const auto list = ask(contract::ListOnAgent{});
    ASSERT_TRUE(list) << list.error().ToString();
    EXPECT_GE(std::get<contract::ListedOnAgent>(*list).workloads.size(), 2u);
    EXPECT_EQ(ask(contract::GetStatusOnAgent{.workload = "none"}).error().code(), Code::kNotFound);
    const auto removed = ask(contract::DeleteOnAgent{.workload = "good", .stamp = {.epoch = 0, .sequence = 2}});
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code(), Code::kResourceExhausted) << removed.error().ToString();
  }
  std::ofstream(free) << "free\n";
  EXPECT_TRUE(Eventually([&] {
    return ask(contract::DeleteOnAgent{.workload = "good", .stamp = {.epoch = 0, .sequence = 2}}).has_value();
  }));
  for (const std::string& id : {std::string("good"), std::string("greedy")}) {
    static_cast<void>(ask(contract::DeleteOnAgent{.workload = id, .stamp = {.epoch = 0, .sequence = 3}}));
  }
  for (int i = 0; i < applied; ++i) {
    static_cast<void>(
        ask(contract::DeleteOnAgent{.workload = fmt::format("more-{}", i), .stamp = {.epoch = 0, .sequence = 3}}));
  }
  EXPECT_TRUE(Eventually([&] {
    const auto list = ask(contract::ListOnAgent{});
    return list && std::get<contract::ListedOnAgent>(*list).workloads.empty();
  }));
  agent.process().Signal(SIGTERM);
  EXPECT_EQ(agent.process().Wait(), 0) << agent.process().err();
}

}  // namespace
}  // namespace muster::guard
