#include "core/scheduler/refusals.h"

#include "core/scheduler/lab_for_test.h"
#include "model/workload_bounds.h"

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

// A caller without a tenant may name another one with each request.
TEST(SchedulerRefusals, WhatTheSchedulersOwnBoundRefusesCountsAsOfOneTenant) {
  auto store = std::make_shared<LabStore>();
  const std::string key = KeyOf("", RecordKind::kSet, "big");
  const SetRecord big{.spec = {.kind = model::WorkloadKind::kSet,
                               .name = "big",
                               .replicas = static_cast<int32_t>(model::kMostWorkloads),
                               .spec = Lab::Template()},
                      .revision = "r"};
  store->rows[key] = {.key = key, .value = Encode(big), .created = 1, .modified = 1};
  Lab lab({}, store);
  lab.Run(1s);
  for (int i = 0; i < 100; ++i) {
    contract::ApplyWorkload apply = Lab::ApplyOf(fmt::format("w{}", i));
    apply.tenant = fmt::format("invented-{}", i);
    EXPECT_TRUE(lab.Try(apply).message().starts_with("scheduler: workloads 250000 of 250000 in use"));
  }
  EXPECT_EQ(Refused(lab).size(), 10U);
  EXPECT_EQ(lab.core.parts().refusals.state().tenants.size(), 1U);
}

TEST(SchedulerRefusals, AtMostAThousandTenantsAreCountedApart) {
  std::vector<Effect> effects;
  Counters counters;
  Refusals refusals({});
  const auto refuse = [&](size_t tenant, Duration at) {
    StepContext ctx{.now = {.mono = MonoTime(at)}, .effects = effects, .counters = counters};
    const std::string name = fmt::format("t{}", tenant);
    refusals.Tell(name, WorkloadObject("w"), Reason::kQuotaFull,
                  Status(Code::kResourceExhausted, fmt::format("tenant {}: cpu 1 of 1 in use", name)), ctx);
  };
  for (size_t i = 0; i < 3 * Refusals::kMostTenants; ++i) refuse(i, 1h);
  EXPECT_EQ(effects.size(), Refusals::kMostTenants + 10) << "all others have ten decisions together";
  EXPECT_EQ(refusals.state().tenants.size(), Refusals::kMostTenants + 1);
  for (const size_t late : {1, 5'000, 5'001}) refuse(late, 1h + 2min);
  EXPECT_EQ(effects.size(), Refusals::kMostTenants + 13);
  EXPECT_EQ(refusals.state().tenants.size(), 3U) << "those of two minutes ago are forgotten";
}

}  // namespace
}  // namespace muster::scheduler
