// One cluster's session may ask for everything; it gets what the file of --cluster-limits allows, as the file is now.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "host/http_get_for_test.h"
#include "shard/fleet.h"

namespace muster::guard {
namespace {

using shard::Eventually;
using shard::NeedOf;

class Ceilings : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(provider_.up()) << provider_.process().err(); }
  void Write(const std::string& text) {
    std::ofstream(limits_ + ".new") << text;
    std::filesystem::rename(limits_ + ".new", limits_);
  }
  std::vector<std::string> Command() const {
    return fleet_.ShardCommand(provider_.grpc(), ":0", {"--cluster-limits", limits_, "--cycle-interval", "200ms"});
  }
  static int64_t Bound(shard::ShardLife& life, const std::string& cluster) {
    const auto listed = life.Ask<contract::ClustersListed>(contract::ListClusters{});
    if (!listed) return -1;
    for (const contract::ClusterView& view : listed->clusters) {
      if (view.cluster_id == cluster) return view.configured;
    }
    return -1;
  }
  static std::string Printed(shard::ShardLife& life, std::vector<std::string> words) {
    words.insert(words.begin(), {smoke::ProgramUnderTest(), "fleet"});
    words.insert(words.end(), {"--shard", life.grpc()});
    smoke::Process process(words);
    EXPECT_EQ(process.Wait(), 0) << process.err();
    return process.out();
  }

  const shard::Fleet fleet_{12};
  provider::Life provider_{fleet_.ProviderCommand()};
  const std::string limits_ = fleet_.File("limits.yaml");
};

TEST_F(Ceilings, AreKeptShownAuditedAndReadAgain) {
  Write("clusters:\n  greedy: {highestPriority: 100, mostMachines: 3}\n");
  shard::ShardLife life(Command());
  ASSERT_TRUE(life.up()) << life.process().err();
  shard::TestCluster greedy("greedy", life.grpc());
  shard::TestCluster modest("modest", life.grpc());
  greedy.Want({NeedOf("greedy", 12, 100)});
  modest.Want({NeedOf("modest", 6, 1)});
  ASSERT_TRUE(Eventually([&] { return Bound(life, "greedy") == 3 && Bound(life, "modest") == 6; }))
      << Printed(life, {"clusters"});
  const std::string clusters = Printed(life, {"clusters"});
  EXPECT_TRUE(clusters.contains("at its ceiling: 3 of 3 machines, priority up to 100")) << clusters;
  EXPECT_TRUE(Printed(life, {"clusters", "-o", "json"}).contains(R"("atCeiling":true)"));
  EXPECT_TRUE(Printed(life, {"actions"}).contains("ceiling"));

  Write("clusters:\n  greedy: {mostMachines: three}\n");
  const std::string warning = life.process().WaitForErrorLine("cluster limits not fit for use");
  EXPECT_TRUE(warning.contains("limits.yaml:2:26: clusters.greedy.mostMachines")) << warning;
  EXPECT_EQ(Bound(life, "greedy"), 3) << "the last limits stay";

  Write("clusters:\n  greedy: {highestPriority: 100, mostMachines: 5}\n");
  EXPECT_TRUE(Eventually([&] { return Bound(life, "greedy") == 5; })) << Printed(life, {"clusters"});
  greedy.Want({NeedOf("greedy", 12, 101)});
  EXPECT_TRUE(Eventually([&] {
    return Printed(life, {"clusters"})
        .contains("needs[0].priority: 101 is above 100, the highest that this cluster may ask for");
  }));
  const std::string metrics = host::HttpGet(*host::ParseListenAddress(life.http(), false, "http"), "/metrics").body;
  EXPECT_TRUE(metrics.contains("muster_shard_actions_above_ceiling_total{cluster=\"greedy\"}"));
  std::ifstream audit(fleet_.File("audit.log"));
  const std::string lines(std::istreambuf_iterator<char>(audit), {});
  EXPECT_TRUE(lines.contains(R"("kind":"Ceiling")")) << lines.substr(0, 1000);
  EXPECT_TRUE(lines.contains(R"("outcome":"ceiling")"));
}

TEST_F(Ceilings, ABadFileAtTheStartIsRefusedByLineAndField) {
  Write("clusters:\n  greedy: {mostMachines: -3}\n");
  smoke::Process process(Command());
  EXPECT_NE(process.Wait(), 0);
  EXPECT_TRUE(process.err().contains("limits.yaml:2:26: clusters.greedy.mostMachines: must not be negative"))
      << process.err();
}

}  // namespace
}  // namespace muster::guard
