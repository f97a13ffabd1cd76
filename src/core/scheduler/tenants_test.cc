#include "core/scheduler/tenants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kGibi = (int64_t{1} << 30) * 1000;

model::WorkloadSpec Spec(model::WorkloadKind kind, int32_t replicas, model::Resources each) {
  model::WorkloadSpec spec;
  spec.kind = kind;
  spec.name = "web";
  spec.tenant = "shop";
  spec.replicas = replicas;
  spec.spec.resources = std::move(each);
  return spec;
}

WorkloadRecord Record(model::Resources each) {
  WorkloadRecord record;
  record.workload.id = "one";
  record.workload.tenant = "shop";
  record.workload.spec.resources = std::move(each);
  return record;
}

TEST(Tenants, ARefusalHasTheFigures) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .limits = {{"cpu", 100'000}}});
  tenants.Replace(std::nullopt, HoldingOf(Spec(model::WorkloadKind::kSet, 49, {{"cpu", 2'000}})));
  const Status refused = tenants.Admit(std::nullopt, HoldingOf(Spec(model::WorkloadKind::kSet, 2, {{"cpu", 2'000}})));
  EXPECT_EQ(refused.ToString(), "RESOURCE_EXHAUSTED: tenant shop: cpu 98 of 100 in use, 4 more asked for");
  EXPECT_TRUE(tenants.Admit(std::nullopt, HoldingOf(Spec(model::WorkloadKind::kSet, 1, {{"cpu", 2'000}}))).ok());
}

TEST(Tenants, EveryLimitIsHeldAndNamed) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop",
                    .limits = {{"cpu", 1'000}, {"memory", kGibi}, {"disk", 2 * kGibi}, {"gpu", 1'000}},
                    .workloads = 2});
  const Status refused = tenants.Admit(
      std::nullopt, HoldingOf(Spec(model::WorkloadKind::kSet, 3,
                                   {{"cpu", 500}, {"memory", kGibi / 2}, {"disk", kGibi}, {"nvidia.com/gpu", 1'000}})));
  EXPECT_EQ(refused.message(),
            "tenant shop: cpu 0 of 1 in use, 1500m more asked for; memory 0 of 1Gi in use, 1536Mi more asked for; "
            "disk 0 of 2Gi in use, 3Gi more asked for; gpu 0 of 1 in use, 3 more asked for; "
            "workloads 0 of 2 in use, 3 more asked for");
}

TEST(Tenants, FractionsOfADeviceCount) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .limits = {{"gpu", 1'000}}});
  const auto quarters = [](int32_t count) {
    return HoldingOf(Spec(model::WorkloadKind::kSet, count, {{"gpu-milli", 250'000}}));
  };
  EXPECT_TRUE(tenants.Admit(std::nullopt, quarters(4)).ok());
  EXPECT_EQ(tenants.Admit(std::nullopt, quarters(5)).message(), "tenant shop: gpu 0 of 1 in use, 1250m more asked for");
}

TEST(Tenants, AChangeAsksForTheDifference) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .limits = {{"cpu", 10'000}}, .workloads = 10});
  const auto set = [](int32_t count, int64_t cpu) {
    return HoldingOf(Spec(model::WorkloadKind::kSet, count, {{"cpu", cpu}}));
  };
  tenants.Replace(std::nullopt, set(9, 1'000));
  EXPECT_TRUE(tenants.Admit(set(9, 1'000), set(10, 1'000)).ok());
  EXPECT_EQ(tenants.Admit(set(9, 1'000), set(11, 1'000)).message(),
            "tenant shop: cpu 9 of 10 in use, 2 more asked for; workloads 9 of 10 in use, 2 more asked for");
  // What is over a lowered quota may shrink, and may change in what it does not ask more of.
  tenants.SetQuota({.tenant = "shop", .limits = {{"cpu", 1'000}}});
  EXPECT_TRUE(tenants.Admit(set(9, 1'000), set(8, 1'000)).ok());
  EXPECT_TRUE(tenants.Admit(set(9, 1'000), set(9, 1'000)).ok());
  EXPECT_FALSE(tenants.Admit(set(9, 1'000), set(10, 1'000)).ok());
}

TEST(Tenants, TheWorkloadsOfAllTogetherAreLimited) {
  Tenants tenants;
  const auto set = [](std::string tenant, int32_t count) {
    model::WorkloadSpec spec = Spec(model::WorkloadKind::kSet, count, {});
    spec.tenant = std::move(tenant);
    return HoldingOf(spec);
  };
  for (const char* tenant : {"a", "b", ""}) tenants.Replace(std::nullopt, set(tenant, 80'000));
  EXPECT_TRUE(tenants.Admit(std::nullopt, set("c", 10'000)).ok());
  EXPECT_EQ(tenants.Admit(std::nullopt, set("c", 10'001)).ToString(),
            "RESOURCE_EXHAUSTED: scheduler: workloads 240000 of 250000 in use, 10001 more asked for");
  EXPECT_TRUE(tenants.Admit(set("a", 80'000), set("a", 90'000)).ok()) << "a change asks for the difference";
  EXPECT_TRUE(tenants.Admit(std::nullopt, set("c", 80'000), true, 80'000).ok()) << "so does one that moves from a";
  EXPECT_FALSE(tenants.Admit(std::nullopt, set("c", 90'001), true, 80'000).ok());
  tenants.Replace(std::nullopt, set("c", 30'000));
  EXPECT_TRUE(tenants.Admit(set("c", 30'000), set("c", 29'999)).ok()) << "what is beyond it may shrink";
  tenants.Replace(set("a", 80'000), std::nullopt);
  EXPECT_TRUE(tenants.Admit(std::nullopt, set("d", 1)).ok());
  tenants.Clear();
  EXPECT_TRUE(tenants.Admit(std::nullopt, set("d", 100'000)).ok());
}

TEST(Tenants, ASetWithoutMembersIsOneWorkload) {
  const Holding none = HoldingOf(Spec(model::WorkloadKind::kSet, 0, {{"cpu", 1'000}}));
  EXPECT_EQ(none.workloads, 1);
  EXPECT_EQ(none.running, 0);
  EXPECT_EQ(HoldingOf(Spec(model::WorkloadKind::kSet, 1, {})).workloads, 1);
}

TEST(Tenants, OtherTenantsAreNotLimited) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .workloads = 0});
  Holding other = HoldingOf(Spec(model::WorkloadKind::kWorkload, 1, {{"cpu", 1}}));
  EXPECT_FALSE(tenants.Admit(std::nullopt, other).ok());
  other.tenant = "blog";
  EXPECT_TRUE(tenants.Admit(std::nullopt, other).ok());
  // A workload that comes from another tenant asks for all of it.
  Holding moved = other;
  moved.tenant = "shop";
  tenants.Replace(std::nullopt, other);
  EXPECT_EQ(tenants.Admit(other, moved).message(), "tenant shop: workloads 0 of 0 in use, 1 more asked for");
}

TEST(Tenants, AWorkloadHoldsItsRequestUntilItHasStopped) {
  WorkloadRecord record = Record({{"cpu", 500}});
  EXPECT_EQ(HoldingOf(record)->running, 1);
  record.workload.desired = model::DesiredState::kStopped;
  record.workload.phase = model::WorkloadPhase::kRunning;
  EXPECT_EQ(HoldingOf(record)->running, 1);
  record.workload.phase = model::WorkloadPhase::kStopped;
  EXPECT_EQ(HoldingOf(record)->running, 0);
  EXPECT_EQ(HoldingOf(record)->workloads, 1);
  record.workload.desired = model::DesiredState::kDeleted;
  EXPECT_EQ(HoldingOf(record)->running, 1);
  record.workload.phase = model::WorkloadPhase::kCompleted;
  EXPECT_EQ(HoldingOf(record)->running, 0);
  record.workload.set = "web";
  EXPECT_FALSE(HoldingOf(record));
}

TEST(Tenants, AJobHoldsWhatHasNotCompleted) {
  SetRecord job;
  job.spec = Spec(model::WorkloadKind::kJob, 5, {{"cpu", 1'000}});
  job.completed = {1, 4, 7};
  EXPECT_EQ(HoldingOf(job).running, 3);
  EXPECT_EQ(HoldingOf(job).workloads, 5);
}

TEST(Tenants, UsageIsTheSumOfTheHoldings) {
  Rng rng(5);
  Tenants tenants;
  for (const std::string tenant : {"a", "b"}) tenants.SetQuota({.tenant = tenant, .workloads = 1'000});
  std::vector<std::optional<Holding>> holdings(20);
  for (int step = 0; step < 2'000; ++step) {
    std::optional<Holding>& holding = holdings[rng.Below(holdings.size())];
    std::optional<Holding> next;
    if (rng.Chance(2, 3)) {
      next = HoldingOf(Spec(model::WorkloadKind::kSet, static_cast<int32_t>(rng.Below(5)),
                            {{"cpu", rng.Between(0, INT64_MAX)}, {"memory", rng.Between(0, 4) * kGibi}}));
      next->tenant = rng.Chance(1, 2) ? "a" : "b";
    }
    tenants.Replace(holding, next);
    holding = next;
    for (const contract::QuotaView& view : tenants.Views("")) {
      int64_t workloads = 0;
      int64_t memory = 0;
      for (const std::optional<Holding>& one : holdings) {
        if (!one || one->tenant != view.quota.tenant) continue;
        workloads += one->workloads;
        memory += one->running * one->each.Get("memory");
      }
      ASSERT_EQ(view.workloads, workloads);
      ASSERT_EQ(view.used.Get("memory"), memory);
    }
  }
  for (std::optional<Holding>& holding : holdings) tenants.Replace(holding, std::nullopt);
  for (const contract::QuotaView& view : tenants.Views("")) EXPECT_TRUE(view.used.empty() && view.workloads == 0);
}

TEST(Tenants, ViewsAreOfQuotas) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .workloads = 5});
  tenants.SetQuota({.tenant = "blog", .workloads = 5});
  tenants.Replace(std::nullopt, HoldingOf(Record({{"cpu", 500}})));
  ASSERT_EQ(tenants.Views("").size(), 2u);
  EXPECT_EQ(tenants.Views("")[0].quota.tenant, "blog");
  ASSERT_EQ(tenants.Views("shop").size(), 1u);
  EXPECT_EQ(tenants.Views("shop")[0].used.ToString(), "cpu=500m");
  EXPECT_EQ(tenants.Views("shop")[0].workloads, 1);
  tenants.RemoveQuota("shop");
  EXPECT_TRUE(tenants.Views("shop").empty());
  tenants.Clear();
  EXPECT_TRUE(tenants.Views("").empty());
}

// --- rates

TEST(Tenants, ARateGivesItsBurstAndThenItsRate) {
  Tenants tenants;
  tenants.SetQuota({.tenant = "shop", .applies_milli_hz = 10'000, .burst = 3});
  MonoTime now(1h);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(tenants.TakeApply("shop", now).ok()) << i;
  EXPECT_EQ(tenants.TakeApply("shop", now).ToString(),
            "RESOURCE_EXHAUSTED: tenant shop: 10 applies a second (burst 3) are used up; try again in 100ms");
  EXPECT_EQ(tenants.TakeApply("shop", now + 60ms).message(),
            "tenant shop: 10 applies a second (burst 3) are used up; try again in 40ms");
  EXPECT_FALSE(tenants.TakeApply("shop", now + 99ms).ok());
  EXPECT_TRUE(tenants.TakeApply("shop", now + 100ms).ok());
  EXPECT_FALSE(tenants.TakeApply("shop", now + 101ms).ok());
  now += 1h;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(tenants.TakeApply("shop", now).ok()) << i;
  EXPECT_FALSE(tenants.TakeApply("shop", now).ok());
  EXPECT_TRUE(tenants.TakeApply("blog", now).ok());
}

TEST(Tenants, AClearedCopyGivesNoNewBurst) {
  Tenants tenants;
  const model::Quota quota{.tenant = "shop", .applies_milli_hz = 1'000, .burst = 1};
  tenants.SetQuota(quota);
  EXPECT_TRUE(tenants.TakeApply("shop", MonoTime(1s)).ok());
  tenants.Clear();
  tenants.SetQuota(quota);
  EXPECT_FALSE(tenants.TakeApply("shop", MonoTime(1s)).ok());
}

TEST(Tenants, NoWindowGetsMoreThanBurstAndRate) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    Tenants tenants;
    const int64_t rate = rng.Between(1, 20'000);
    const auto burst = static_cast<int32_t>(rng.Between(1, 5));
    tenants.SetQuota({.tenant = "shop", .applies_milli_hz = rate, .burst = burst});
    MonoTime now(1s);
    std::vector<MonoTime> granted;
    for (int i = 0; i < 400; ++i) {
      now += Duration(rng.Between(0, 300'000'000));
      if (tenants.TakeApply("shop", now).ok()) granted.push_back(now);
    }
    ASSERT_FALSE(granted.empty());
    for (size_t first = 0; first < granted.size(); ++first) {
      for (size_t last = first; last < granted.size(); ++last) {
        const double seconds = std::chrono::duration<double>(granted[last] - granted[first]).count();
        const double most = burst + seconds * static_cast<double>(rate) / 1000;
        ASSERT_LE(static_cast<double>(last - first + 1), most + 1e-6) << "seed " << seed;
      }
    }
    // Whoever waits as told is served.
    ASSERT_TRUE(tenants.TakeApply("shop", now + Duration(1'000'000'000'000 / rate + 1)).ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::scheduler
