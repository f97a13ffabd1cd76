#include "model/node.h"

#include <gtest/gtest.h>

namespace muster::model {
namespace {

TEST(Node, StatusNames) {
  for (const auto status : {NodeStatus::kUnknown, NodeStatus::kReady, NodeStatus::kNotReady, NodeStatus::kDraining}) {
    EXPECT_EQ(ParseNodeStatus(NodeStatusName(status)), status);
  }
  EXPECT_EQ(NodeStatusName(NodeStatus::kReady), "Ready");
  EXPECT_EQ(ParseNodeStatus("Active"), NodeStatus::kReady);
  EXPECT_EQ(ParseNodeStatus("nOTrEADY"), NodeStatus::kNotReady);
  const auto unknown = ParseNodeStatus("Read");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "unknown node status \"Read\": use one of Ready, NotReady, Draining, Unknown");
}

TEST(Node, WorkloadTypeNames) {
  for (const std::string_view name : {"process", "container", "compose", "vm"}) {
    const auto type = ParseWorkloadType(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(WorkloadTypeName(*type), name);
  }
  EXPECT_EQ(WorkloadTypeName(WorkloadType::kVm), "vm");
  EXPECT_EQ(WorkloadTypeName(WorkloadType::kUnspecified), "unspecified");
  EXPECT_FALSE(ParseWorkloadType("unspecified"));
  EXPECT_FALSE(ParseWorkloadType("VM"));
}

TEST(Node, EveryStructuralInvariantCanBreak) {
  Node valid{.id = "n-1"};
  valid.agent_endpoint = "10.0.0.1:7700";
  valid.total = {{"cpu", 4000}, {"memory", 1'000'000}};
  EXPECT_TRUE(CheckStructure(valid).ok());

  Node node = valid;
  node.id.clear();
  EXPECT_TRUE(CheckStructure(node).message().starts_with("node \"\": id: "));
  node = valid;
  node.agent_endpoint.clear();
  EXPECT_TRUE(CheckStructure(node).message().starts_with("node \"n-1\": agent_endpoint: "));
  node = valid;
  node.total.Set("cpu", 0);
  EXPECT_TRUE(CheckStructure(node).message().starts_with("node \"n-1\": total.cpu: "));
  node = valid;
  node.total.Set("memory", 0);
  EXPECT_TRUE(CheckStructure(node).message().starts_with("node \"n-1\": total.memory: "));
}

}  // namespace
}  // namespace muster::model
