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
  Workload valid{.id = "w-1"};
  valid.spec.type = WorkloadType::kProcess;
  valid.spec.command = {"serve"};
  valid.spec.requirements = {{in_zone}};
  valid.spec.spread = {{.spread = {.topology_key = "rack"}}};
  EXPECT_TRUE(CheckStructure(valid).ok());

  Workload workload = valid;
  workload.id.clear();
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"\": id: "));
  workload.id = "a/b";
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"a/b\": id: "));
  workload = valid;
  workload.spec.type = WorkloadType::kUnspecified;
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": type: "));
  workload = valid;
  workload.spec.command.clear();
  EXPECT_EQ(CheckStructure(workload).message(), "workload \"w-1\": command: a process needs one");
  workload = valid;
  workload.spec.requirements[0].push_back({"gpu", Operator::kIn, {}});
  EXPECT_EQ(CheckStructure(workload).message(), "workload \"w-1\": requirements[1].values: In needs at least one");
  for (const std::string source :
       {"", ".", "..", "../x", "./x", "a/b", "a:b", "/a:b", "..?size_gb=1", "a?driver=x/y"}) {
    workload = valid;
    workload.spec.volumes = {{.source = "data", .target = "/data"}, {.source = source, .target = "/host"}};
    EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": volumes[1].source: ")) << source;
  }
  for (const std::string target : {"", "data", "../data", "/data:ro"}) {
    workload = valid;
    workload.spec.volumes = {{.source = "data", .target = target}};
    EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": volumes[0].target: ")) << target;
  }
  for (const std::string source : {"data", "/srv/data", "Data_1.2-3", "data?driver=nfs&size_gb=10"}) {
    workload = valid;
    workload.spec.volumes = {{.source = source, .target = "/data"}};
    EXPECT_TRUE(CheckStructure(workload).ok()) << source;
  }
  workload = valid;
  workload.spec.spread.front().spread.topology_key.clear();
  EXPECT_TRUE(CheckStructure(workload).message().starts_with("workload \"w-1\": spread[0].topologyKey: "));
}

TEST(Workload, MemberCounts) {
  EXPECT_EQ(ParseMemberCount("3"), (MemberCount{3, false}));
  EXPECT_EQ(ParseMemberCount("25%"), (MemberCount{25, true}));
  EXPECT_EQ(FormatMemberCount({25, true}), "25%");
  EXPECT_EQ((MemberCount{25, true}).Of(5), 2);
  EXPECT_EQ((MemberCount{3, false}).Of(5), 3);
  for (const std::string_view bad : {"", "%", "-1", "1.5", "x", "101%", "99999999999"}) {
    EXPECT_FALSE(ParseMemberCount(bad)) << bad;
  }
}

TEST(Workload, Ids) {
  EXPECT_TRUE(IsWorkloadId("a"));
  EXPECT_TRUE(IsWorkloadId("0._-Z"));
  EXPECT_TRUE(IsWorkloadId(std::string(253, 'a')));
  for (const std::string& bad : {std::string(""), std::string(".a"), std::string("a b"), std::string(254, 'a')}) {
    EXPECT_FALSE(IsWorkloadId(bad)) << bad;
  }
}

}  // namespace
}  // namespace muster::model
