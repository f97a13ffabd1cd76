// A shard whose disk is full: it does nothing it could not remember, says so, and still answers what is asked.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "host/http_get_for_test.h"
#include "shard/fleet.h"

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

}  // namespace
}  // namespace muster::guard
