#include "core/scheduler/refusals.h"

#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {
namespace {

using contract::DecisionKind;

contract::ApplyWorkload ApplyOfShop(const std::string& id) {
  contract::ApplyWorkload apply = Lab::ApplyOf(id);
  apply.tenant = "shop";
  return apply;
}

std::vector<std::string> Refused(const Lab& lab) {
  std::vector<std::string> all;
  for (const contract::Decision& decision : lab.decisions) {
    if (decision.kind != DecisionKind::kRefused) continue;
    all.push_back(fmt::format("{} [{}] {}", decision.workload, decision.reason, decision.message));
  }
  return all;
}

TEST(SchedulerRefusals, WhatAQuotaRefusesIsADecisionWithTheFigures) {
  Lab lab;
  lab.AddNode("n1");
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .limits = {{"cpu", 1000}}}});
  EXPECT_TRUE(lab.Try(ApplyOfShop("first")).ok());
  lab.Run(2s);
  EXPECT_TRUE(lab.Try(contract::ApplyWorkload{.workload = "first", .desired = model::DesiredState::kStopped}).ok());
  lab.Run(2s);
  EXPECT_TRUE(lab.Try(ApplyOfShop("second")).ok());
  lab.Run(2s);
  EXPECT_EQ(Refused(lab), std::vector<std::string>());
  const Status third = lab.Try(ApplyOfShop("third"));
  EXPECT_EQ(third.code(), Code::kResourceExhausted);
  model::WorkloadSpec set{
      .kind = model::WorkloadKind::kSet, .name = "web", .tenant = "shop", .replicas = 2, .spec = Lab::Template()};
  const Status more = lab.Try(contract::ApplySpec{.spec = set});
  const Status again = lab.Try(contract::ApplyWorkload{.workload = "first", .desired = model::DesiredState::kRunning});
  EXPECT_EQ(lab.Try(contract::ApplySpec{.spec = set, .dry_run = true}), more) << "tried only: no decision";
  const std::string sentence = "[quota.full] the tenant's quota does not admit the request: ";
  EXPECT_EQ(Refused(lab), (std::vector<std::string>{"third " + sentence + third.message(),
                                                    " " + sentence + "set web: " + more.message(),
                                                    "first " + sentence + again.message()}));
  EXPECT_TRUE(third.message().contains("cpu 1 of 1 in use, 1 more asked for")) << third.message();
}

TEST(SchedulerRefusals, WhatARateRefusesIsADecision) {
  Lab lab;
  lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = "shop", .applies_milli_hz = 1, .burst = 1}});
  EXPECT_TRUE(lab.Try(ApplyOfShop("first")).ok());
  const Status second = lab.Try(ApplyOfShop("second"));
  EXPECT_EQ(second.code(), Code::kResourceExhausted);
  lab.decisions.erase(lab.decisions.begin());  // the first has no node
  EXPECT_EQ(Refused(lab), std::vector<std::string>{"second [quota.rate] the tenant applies faster than its rate: " +
                                                   second.message()});
}

TEST(SchedulerRefusals, OfAFloodTenASecondAreToldAndTheRestIsCounted) {
  Lab lab;
  for (const std::string tenant : {"shop", "bank"}) {
    lab.Get<contract::Applied>(contract::ApplyQuota{{.tenant = tenant, .limits = {{"cpu", 1}}}});
  }
  const auto flood = [&](int count) {
    lab.decisions.clear();
    for (int i = 0; i < count; ++i) lab.Ask(ApplyOfShop(fmt::format("w{}", i)));
    lab.Run(10ms);
  };
  flood(1000);
  EXPECT_EQ(Refused(lab).size(), 10U);
  contract::ApplyWorkload other = Lab::ApplyOf("other");
  other.tenant = "bank";
  EXPECT_FALSE(lab.Try(other).ok());
  EXPECT_EQ(Refused(lab).size(), 11U) << "each tenant has its own ten";
  lab.Run(1s);
  flood(1);
  ASSERT_EQ(Refused(lab).size(), 1U);
  EXPECT_TRUE(Refused(lab)[0].ends_with("; 990 refusals before this one were not told")) << Refused(lab)[0];
  lab.Run(1s);
  flood(1);
  ASSERT_EQ(Refused(lab).size(), 1U);
  EXPECT_FALSE(Refused(lab)[0].contains("not told")) << "it is said once";
  flood(100);
  lab.Run(2min);
  flood(1);
  EXPECT_FALSE(Refused(lab)[0].contains("not told")) << "long ago";
  EXPECT_EQ(lab.core.parts().refusals.state().tenants.size(), 1U);
}

}  // namespace
}  // namespace muster::scheduler
