#include "model/workload.h"

#include <gtest/gtest.h>

namespace muster::model {
namespace {

TEST(Workload, DesiredStateNames) {
  for (const auto state : {DesiredState::kRunning, DesiredState::kStopped, DesiredState::kDeleted}) {
    EXPECT_EQ(ParseDesiredState(DesiredStateName(state)), state);
  }
  EXPECT_EQ(DesiredStateName(DesiredState::kStopped), "Stopped");
  EXPECT_EQ(ParseDesiredState("running"), DesiredState::kRunning);
  EXPECT_EQ(ParseDesiredState("STOP"), DesiredState::kStopped);
  EXPECT_EQ(ParseDesiredState("delete"), DesiredState::kDeleted);
  const auto unknown = ParseDesiredState("gone");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "unknown desired state \"gone\": use one of Running, Stopped, Deleted");
}

TEST(Workload, PhaseNames) {
  const std::vector<std::string_view> names = {"Pending", "Scheduled", "Updating",  "RetryPending",
                                               "Running", "Stopped",   "Completed", "Failed",
                                               "Unknown", "Deleting",  "Deleted"};
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(WorkloadPhaseName(static_cast<WorkloadPhase>(i)), names[i]);
    EXPECT_EQ(ParseWorkloadPhase(names[i]), static_cast<WorkloadPhase>(i));
  }
  EXPECT_EQ(WorkloadPhaseName(static_cast<WorkloadPhase>(names.size())), "invalid");
  EXPECT_FALSE(ParseWorkloadPhase("pending"));
}

TEST(Workload, RestartPolicyNames) {
  for (const auto policy : {RestartPolicy::kAlways, RestartPolicy::kOnFailure, RestartPolicy::kNever}) {
    EXPECT_EQ(ParseRestartPolicy(RestartPolicyName(policy)), policy);
  }
  EXPECT_EQ(RestartPolicyName(RestartPolicy::kOnFailure), "on-failure");
  EXPECT_EQ(ParseRestartPolicy("no"), RestartPolicy::kNever);
  EXPECT_EQ(ParseRestartPolicy("unless-stopped"), RestartPolicy::kAlways);
  EXPECT_FALSE(ParseRestartPolicy("sometimes"));
}

TEST(Workload, EveryStructuralInvariantCanBreak) {
  const Requirement in_zone{"zone", Operator::kIn, {"a"}};
  Workload valid{.id = "w-1", .type = WorkloadType::kProcess};
  valid.requirements = {in_zone};
  valid.spread = {{.topology_key = "rack"}};
  EXPECT_TRUE(CheckStructure(valid).ok());

  Workload workload = valid;
  workload.id.clear();
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"\": id: "));
  workload = valid;
  workload.type = WorkloadType::kUnspecified;
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": type: "));
  workload = valid;
  workload.replicas = 0;
  EXPECT_EQ(CheckStructure(workload).message(), "workload \"w-1\": replicas: 0 is below 1");
  workload = valid;
  workload.requirements.push_back({"gpu", Operator::kIn, {}});
  EXPECT_EQ(CheckStructure(workload).message(), "workload \"w-1\": requirements[1].values: In needs at least one");
  workload = valid;
  workload.spread.front().topology_key.clear();
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": spread[0].topologyKey: "));
}

}  // namespace
}  // namespace muster::model
