#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cli/fake_cluster_for_test.h"
#include "host/temp_dir_for_test.h"
#include "model/workload_decode.h"

namespace muster::cli {
namespace {

using contract::ApplyResult;
using contract::ClusterReply;
using contract::ClusterRequest;

constexpr std::string_view kStored = R"(
kind: Set
name: web
replicas: 3
template: {type: process, command: [serve], env: {PORT: "80", MODE: slow}, resources: {cpu: 1}}
---
kind: Workload
name: db
template: {type: process, command: [db]}
---
kind: Quota
tenant: shop
limits: {workloads: 10}
)";

class ClusterDiff : public testing::Test {
 protected:
  // A scheduler that has what kStored declares, and compares as the real one does.
  ClusterDiff() : stored_(*model::ReadWorkloadFile(kStored, "stored")) {
    cluster_.answer = [this](const ClusterRequest& request) -> Result<ClusterReply> { return Answer(request); };
  }

  Result<ClusterReply> Answer(const ClusterRequest& request) {
    if (const auto* apply = std::get_if<contract::ApplySpec>(&request)) {
      EXPECT_TRUE(apply->dry_run);
      for (const model::WorkloadSpec& spec : stored_.workloads) {
        if (spec.name != apply->spec.name) continue;
        const bool is_set = spec.kind != model::WorkloadKind::kWorkload;
        return contract::Applied{
            .result = is_set && spec == apply->spec ? ApplyResult::kUnchanged : ApplyResult::kConfigured,
            .revision = spec.spec == apply->spec.spec ? "r1" : "r2"};
      }
      if (apply->spec.name == "huge") return Error(Code::kResourceExhausted, "tenant shop has 10 of 10 workloads");
      return contract::Applied{.result = ApplyResult::kCreated};
    }
    if (std::holds_alternative<contract::ListSets>(request)) {
      return contract::SetsListed{.sets = {{.spec = stored_.workloads[0], .revision = "r1", .members = 3}}};
    }
    if (std::holds_alternative<contract::GetWorkload>(request)) {
      return contract::WorkloadView{.workload = "db", .desired = desired_, .spec = stored_.workloads[1].spec};
    }
    if (const auto* quotas = std::get_if<contract::ListQuotas>(&request)) {
      contract::QuotasListed listed;
      if (quotas->tenant == "shop") listed.quotas.push_back({.quota = stored_.quotas[0]});
      return listed;
    }
    return Error(Code::kUnimplemented, "not asked by diff");
  }

  Outcome Diff(std::string_view text, std::vector<const char*> more = {}) {
    const std::string path = dir_.File("w.yaml");
    std::ofstream(path) << text;
    std::vector<const char*> words = {"diff", "-f", path.c_str()};
    words.insert(words.end(), more.begin(), more.end());
    return RunMuster(cluster_, words);
  }

  const model::WorkloadFile stored_;
  model::DesiredState desired_ = model::DesiredState::kRunning;
  const host::TempDir dir_;
  FakeCluster cluster_;
};

TEST_F(ClusterDiff, WhatIsThereAlreadyIsNoChange) {
  const Outcome outcome = Diff(kStored);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "quota/shop is unchanged\n"
            "set/web is unchanged\n"
            "workload/db is unchanged\n"
            "0 created, 0 changed, 3 unchanged\n");
}

TEST_F(ClusterDiff, EveryFieldIsNamedWithBothValues) {
  const Outcome outcome = Diff(R"(
kind: Set
name: web
replicas: 5
template: {type: process, command: [serve, fast], env: {PORT: "81", LOG: all}, resources: {cpu: 1}}
---
kind: Quota
tenant: shop
limits: {workloads: 20}
---
kind: Job
name: night
replicas: 2
template: {type: process, command: [sum]}
)");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out,
            "quota/shop changes\n"
            "  ~ limits.workloads: 10 -> 20\n"
            "set/web changes: 3 members -> 5, 3 of them replaced\n"
            "  ~ replicas: 3 -> 5\n"
            "  ~ template.command: [\"serve\"] -> [\"serve\",\"fast\"]\n"
            "  + template.env.LOG: \"all\"\n"
            "  ~ template.env.PORT: \"80\" -> \"81\"\n"
            "  - template.env.MODE: \"slow\"\n"
            "job/night is created: 2 members\n"
            "1 created, 2 changed, 0 unchanged\n");
}

TEST_F(ClusterDiff, ValuesOfSecretsAreNotShown) {
  const Outcome added =
      Diff("kind: Workload\nname: db\ntemplate: {type: process, command: [db], secretEnv: {TOKEN: hunter2}}\n");
  EXPECT_EQ(added.code, 2) << added.err;
  EXPECT_TRUE(added.out.contains("  + template.secretEnv.TOKEN: (secret)\n")) << added.out;
  EXPECT_FALSE(added.out.contains("hunter2")) << added.out;
}

TEST_F(ClusterDiff, AnApplyStartsWhatWasStopped) {
  desired_ = model::DesiredState::kStopped;
  const Outcome outcome = Diff("kind: Workload\nname: db\ntemplate: {type: process, command: [db]}\n");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_TRUE(outcome.out.contains("  ~ desired: \"Stopped\" -> \"Running\"\n")) << outcome.out;
}

TEST_F(ClusterDiff, JsonHasOneLineForEachObjectWithStableKeys) {
  const Outcome outcome = Diff(
      "kind: Set\nname: web\nreplicas: 4\ntemplate: {type: process, command: [serve], env: {PORT: \"80\", MODE: slow}, "
      "resources: {cpu: 1}}\n",
      {"-o", "json"});
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out,
            R"({"object":"set/web","result":"configured","fields":[{"field":"replicas","before":"3","after":"4"}],)"
            R"("members":{"before":3,"after":4,"replaced":0}})"
            "\n");
}

TEST_F(ClusterDiff, AnErrorIsOneAndNamesItsObject) {
  const Outcome refused = Diff("kind: Workload\nname: huge\ntemplate: {type: process, command: [x]}\n");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.contains("workload/huge: tenant shop has 10 of 10 workloads")) << refused.err;
  EXPECT_EQ(RunMuster(cluster_, {"diff"}).code, 1);
  const std::string near = dir_.File("v.yaml");
  const Outcome missing = RunMuster(cluster_, {"diff", "-f", near.c_str()});
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(missing.err.contains("did you mean " + dir_.File("w.yaml") + "?")) << missing.err;
}

}  // namespace
}  // namespace muster::cli
