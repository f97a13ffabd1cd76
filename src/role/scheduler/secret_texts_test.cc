#include "role/scheduler/secret_texts.h"

#include <gtest/gtest.h>

namespace muster::scheduler {
namespace {

contract::ClusterRequest Applied(const std::string& name, const std::string& value, const std::string& tenant = "") {
  model::WorkloadSpec spec{.name = name, .tenant = tenant};
  spec.spec.type = model::WorkloadType::kProcess;
  spec.spec.command = {"serve"};
  spec.spec.secret_env = {{"TOKEN", value}};
  return contract::ApplySpec{.spec = spec};
}
std::string TokenOf(const contract::ClusterRequest& request) {
  return std::get<contract::ApplySpec>(request).spec.spec.secret_env.at("TOKEN");
}

TEST(SecretTexts, AreSealedAndOpened) {
  const rpc::SecretSeal seal = rpc::SecretSeal::Random();
  auto request = Applied("web", "hunter2");
  ASSERT_TRUE(SealSecrets(&seal, "", request).ok());
  const std::string sealed = TokenOf(request);
  EXPECT_TRUE(sealed.starts_with("sealed:"));
  contract::AgentRequest to_agent =
      contract::ApplyOnAgent{.workload = "web", .spec = std::get<contract::ApplySpec>(request).spec.spec};
  ASSERT_TRUE(OpenSecrets(&seal, to_agent).ok());
  EXPECT_EQ(std::get<contract::ApplyOnAgent>(to_agent).spec.secret_env.at("TOKEN"), "hunter2");
  auto again = Applied("web", "hunter2");
  ASSERT_TRUE(SealSecrets(&seal, "", again).ok());
  EXPECT_EQ(TokenOf(again), sealed) << "applying it again changes nothing";
}

TEST(SecretTexts, ASealedTextIsGoodForItsOwnWorkloadOnly) {
  const rpc::SecretSeal seal = rpc::SecretSeal::Random();
  auto request = Applied("web", "hunter2", "shop");
  ASSERT_TRUE(SealSecrets(&seal, "shop", request).ok());
  const std::string sealed = TokenOf(request);
  auto own = Applied("web", sealed);
  EXPECT_TRUE(SealSecrets(&seal, "shop", own).ok()) << "the tenant is that of the caller if none is named";
  EXPECT_EQ(TokenOf(own), sealed);
  for (auto other : {Applied("spy", sealed, "shop"), Applied("web", sealed, "rival")}) {
    const Status refused = SealSecrets(&seal, "", other);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_TRUE(refused.message().starts_with("spec.secretEnv.TOKEN: ")) << refused.message();
  }
}

TEST(SecretTexts, WithoutAKeyTheyAreRefused) {
  auto request = Applied("web", "hunter2");
  const Status refused = SealSecrets(nullptr, "", request);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(refused.message().contains("--secret-key")) << refused.message();
}

TEST(SecretTexts, OneThatCannotBeOpenedIsNotSentAndKeepsNobodyOut) {
  auto request = Applied("web", "hunter2");
  const rpc::SecretSeal before = rpc::SecretSeal::Random();
  ASSERT_TRUE(SealSecrets(&before, "", request).ok());
  const contract::ApplyOnAgent apply{.workload = "web", .spec = std::get<contract::ApplySpec>(request).spec.spec};
  const rpc::SecretSeal other = rpc::SecretSeal::Random();
  contract::AgentRequest to_agent = apply;
  EXPECT_EQ(OpenSecrets(&other, to_agent).code(), Code::kInvalidArgument) << "an attempt that failed";
  contract::FullState state{.epoch = 1, .workloads = {apply}};
  OpenSecrets(&other, state);
  EXPECT_EQ(state.workloads[0].spec.secret_env.at("TOKEN"), "");
}

}  // namespace
}  // namespace muster::scheduler
