// Verbs of `muster fleet` on shards that no test of the built program has: one of another make, which has needs to show
// and no machines, and one that was told to forget a machine.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "base/source_dir_for_test.h"
#include "cli/command_line.h"
#include "cli/verbs.h"
#include "rpc/server.h"
#include "rpc/shard_services.h"

namespace muster::cli {
namespace {

class ShardWithAShortNeed final : public contract::ShardPort {
 public:
  void Ask(contract::ShardRequest request, Answer done) override {
    if (!std::holds_alternative<contract::InspectNeeds>(request)) return done(Error(Code::kUnimplemented, "not this"));
    contract::NeedView need{.reason = model::Reason::kNoMatchingSupply};
    need.need.cluster = "blue";
    need.need.aggregate = need.residual = {{"cpu", 4000}};
    done(contract::NeedsInspected{.cycle = 7, .total = 1, .needs = {need}});
  }
};

class ShardThatForgot final : public contract::ShardPort {
 public:
  void Ask(contract::ShardRequest request, Answer done) override {
    if (!std::holds_alternative<contract::ListForgotten>(request)) return done(Error(Code::kUnimplemented, "not this"));
    done(contract::ForgottenListed{.orders = {{.kind = "forget",
                                               .cluster_id = "blue",
                                               .machine_id = "m-7",
                                               .who = "ann",
                                               .reason = "sold",
                                               .at = WallTime(std::chrono::seconds(1'767'225'600))}}});
  }
};

class ShardInTrouble final : public contract::ShardPort {
 public:
  void Ask(contract::ShardRequest request, Answer done) override {
    if (!std::holds_alternative<contract::ListClusters>(request)) return done(Error(Code::kUnimplemented, "not this"));
    done(contract::ClustersListed{.clusters = {{.cluster_id = "a", .losses_failed = true, .failing = 11, .lacking = 40},
                                               {.cluster_id = "b", .growth_waits = 69, .trial_waits = 5}},
                                  .losses_vanished = true});
  }
};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

// `muster fleet WORDS` of a server with this service.
Outcome Fleet(grpc::Service& service, std::vector<std::string> words) {
  rpc::Server server({.address = {"127.0.0.1", 0}, .stop_grace = 0s});
  const std::array<grpc::Service*, 1> services = {&service};
  EXPECT_EQ(server.Start(services), Status());
  CommandLine app({.version = "1", .commit = "c", .compiler = "C", .build_type = "T", .faults = false});
  AddFleet(app);
  words.insert(words.begin(), {"muster", "fleet"});
  words.insert(words.end(), {"--shard", server.address().ToString()});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = app.Main(static_cast<int>(argv.size()), argv.data());
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Fleet, NeedsAreShownThoughWhatWouldBeMissingCostsIsNotKnown) {
  ShardWithAShortNeed shard;
  const auto read = rpc::MakeShardReadService(shard);
  for (const std::string verb : {"needs", "shortfalls"}) {
    const Outcome outcome = Fleet(*read, {verb});
    EXPECT_EQ(outcome.code, kOk) << outcome.err;
    EXPECT_TRUE(outcome.out.contains("short  cpu=4     -           ")) << outcome.out;
    EXPECT_TRUE(outcome.err.starts_with("what would be missing costs is not known: ")) << outcome.err;
  }
}

TEST(Fleet, ClustersSayWhatWaitsAndForWhat) {
  ShardInTrouble shard;
  const auto fleet = rpc::MakeFleetService(shard);
  const Outcome outcome = Fleet(*fleet, {"clusters"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  for (const char* part :
       {"machines failed in masses: muster fleet accept --cluster a; 11 called Failed in masses; 40 lost while the "
        "shard was down\n",
        "69 machines wait for those that are being configured; on trial: 5 actions wait for a Configure that ends well",
        "of the fleet machines vanished in masses: muster fleet accept\n"}) {
    EXPECT_TRUE(outcome.out.contains(part)) << part << "\n" << outcome.out;
  }
}

TEST(Fleet, ForgottenMachinesHaveTheKeysOfThePage) {
  ShardThatForgot shard;
  const auto fleet = rpc::MakeFleetService(shard);
  const Outcome outcome = Fleet(*fleet, {"machines", "--forgotten", "-o", "json"});
  EXPECT_EQ(outcome.code, kOk) << outcome.err;
  EXPECT_EQ(
      outcome.out,
      R"({"id":"m-7","cluster":"blue","orderedBy":"ann","orderReason":"sold","orderedAt":"2026-01-01T00:00:00.000Z"})"
      "\n");
  std::ifstream page(SourceDir() + "/docs/commands.md");
  const std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(text.contains("\n| `fleet machines --forgotten` | id cluster orderedBy orderReason orderedAt |\n"));
}

}  // namespace
}  // namespace muster::cli
