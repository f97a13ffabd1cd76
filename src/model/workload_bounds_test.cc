#include "model/workload_bounds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <climits>

#include "model/compose.h"

namespace muster::model {
namespace {

TEST(WorkloadBounds, CountsOfMembers) {
  const auto problem = [](auto set) {
    WorkloadSpec spec{.kind = WorkloadKind::kSet, .name = "web"};
    set(spec);
    return CountsProblem(spec);
  };
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.replicas = kMostReplicas; }), "");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.replicas = INT32_MAX; }),
            "replicas: 2147483647 is not from 0 to 100000");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.replicas = -1; }), "replicas: -1 is not from 0 to 100000");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.max_surge = {.amount = INT32_MAX}; }),
            "update.maxSurge: 2147483647 is not from 0 to 100000");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.max_unavailable = {.amount = 101, .percent = true}; }),
            "update.maxUnavailable: 101% is not from 0 to 100%");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.min_available = {.amount = 100, .percent = true}; }), "");
  EXPECT_EQ(problem([](WorkloadSpec& spec) { spec.min_available = {.amount = -1}; }),
            "minAvailable: -1 is not from 0 to 100000");
}

TEST(WorkloadBounds, AllMembersTogether) {
  WorkloadSpec spec{.kind = WorkloadKind::kSet, .name = "web", .replicas = kMostReplicas};
  spec.max_surge = {.amount = 100, .percent = true};
  for (int i = 0; i < 10; ++i) spec.spec.env[fmt::format("NAME_{}", i)] = "value";
  EXPECT_EQ(MembersProblem(spec), "") << "a usual template";
  spec.spec.env["LARGE"] = std::string(5'000, 'x');
  EXPECT_TRUE(MembersProblem(spec).starts_with("replicas: 200000 members of ")) << MembersProblem(spec);
  EXPECT_TRUE(MembersProblem(spec).ends_with(" MiB; at most 1024 are taken")) << MembersProblem(spec);
  spec.replicas /= 2;
  EXPECT_EQ(MembersProblem(spec), "");
}

TEST(WorkloadBounds, ATemplateIsBoundedInEveryPartAndAltogether) {
  WorkloadTemplate spec;
  spec.compose = std::string(kMostComposeBytes, '#');
  for (int i = 0; i < 400; ++i) spec.env[fmt::format("NAME_{}", i)] = "value";
  EXPECT_EQ(SizeProblem(spec), "") << "the largest compose file, with variables";
  spec.compose += '#';
  EXPECT_EQ(SizeProblem(spec), "compose: 262145 bytes are too many; at most 262144 are taken");

  spec = {};
  for (int i = 0; i < 1'000; ++i) spec.env[fmt::format("NAME_{}", i)] = "value";
  EXPECT_EQ(SizeProblem(spec), "");
  spec.env["ONE_MORE"] = "";
  EXPECT_EQ(SizeProblem(spec), "env: 1001 entries are too many; at most 1000 are taken");

  spec = {};
  spec.command = {"run", std::string((32 << 10) + 1, 'x')};
  EXPECT_EQ(SizeProblem(spec), "command[1]: 32769 bytes are too many; at most 32768 are taken");
  spec.command.pop_back();
  for (int i = 0; i < 20; ++i) spec.env[fmt::format("NAME_{}", i)] = std::string(30'000, 'x');
  EXPECT_EQ(SizeProblem(spec), "env: is too large; it takes 591 KiB, and a whole template at most 512");

  spec = {};
  for (int i = 0; i < 65; ++i) spec.resources.Set(fmt::format("example.com/{}", i), 1);
  EXPECT_EQ(SizeProblem(spec), "resources: 65 entries are too many; at most 64 are taken");
  spec = {};
  spec.requirements = {{{.key = "type", .op = Operator::kIn, .values = std::vector<std::string>(900, "m7i.48xlarge")}}};
  EXPECT_EQ(SizeProblem(spec), "");
  for (int i = 0; i < 3; ++i) spec.requirements[0].push_back(spec.requirements[0][0]);
  EXPECT_EQ(SizeProblem(spec), "requirements: with spread and colocate they take 72112 bytes; at most 49152 are taken");
  spec = {};
  spec.secret_env["TOKEN"] = std::string(60'000, 'x');
  EXPECT_EQ(SizeProblem(spec), "") << "a value of 32 KiB that is sealed";
}

TEST(WorkloadBounds, ASelectorHasAHundredRequirementsOfAHundredValues) {
  const Requirement one{.key = "app", .op = Operator::kIn, .values = std::vector<std::string>(100, "a")};
  std::vector<Requirement> selector(100, one);
  EXPECT_EQ(SelectorSizeProblem(selector), "");
  selector[7].values.emplace_back("b");
  EXPECT_EQ(SelectorSizeProblem(selector), "selector[7].values: 101 entries are too many; at most 100 are taken");
  selector.assign(101, {.key = "app", .op = Operator::kExists});
  EXPECT_EQ(SelectorSizeProblem(selector), "selector: 101 entries are too many; at most 100 are taken");
  WorkloadTemplate spec;
  spec.exclude.push_back({.topology_key = "zone", .selector = selector});
  EXPECT_EQ(SizeProblem(spec), "exclude[0].selector: 101 entries are too many; at most 100 are taken");
}

TEST(WorkloadBounds, LabelsAreBounded) {
  std::map<std::string, std::string> labels;
  for (int i = 0; i < 300; ++i) labels[fmt::format("label-{}", i)] = "value";
  EXPECT_EQ(TextsProblem("labels", labels), "");
  for (int i = 0; i < 5; ++i) labels[fmt::format("long-{}", i)] = std::string(30'000, 'x');
  EXPECT_EQ(TextsProblem("labels", labels), "labels: takes 236 KiB; at most 128 are taken");
}

}  // namespace
}  // namespace muster::model
