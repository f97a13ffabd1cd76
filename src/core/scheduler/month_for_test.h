// A month of a cluster's life, day by day, after which its store should be as large as before.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "core/scheduler/lab_for_test.h"

namespace muster::scheduler {

inline constexpr int kDays = 30;

inline void BeginMonth(Lab& lab) {
  lab.beat_every = 60s;
  lab.AddNode("n1");
  lab.AddNode("n2");
  lab.Get<contract::Applied>(contract::ApplySpec{
      .spec = {.kind = model::WorkloadKind::kSet, .name = "set", .replicas = 3, .spec = Lab::Template()}});
  lab.Apply("web");
  lab.Apply("quiet");
  lab.Run(1min);
}

// One workload fails and recovers, one comes and goes, the set is rolled, and a node is away for an hour. `hour` runs
// one hour.
template <class Hour>
void PlayDay(Lab& lab, int day, const Hour& hour) {
  const std::string node = lab.Workload("web").node;
  lab.agents[node].workloads.at("web").status.actual = contract::ActualState::kFailed;
  EXPECT_TRUE(lab.Beat(node).ok());
  lab.Apply(fmt::format("guest-{}", day));
  EXPECT_TRUE(lab.Try(contract::RestartSet{.set = "set"}).ok());
  hour();
  EXPECT_TRUE(lab.Delete(fmt::format("guest-{}", day)).ok());
  lab.StopBeating("n2");
  hour();
  lab.StartBeating("n2");
  for (int i = 2; i < 24; ++i) hour();
  EXPECT_EQ(lab.Phase("web"), "Running");
  EXPECT_EQ(lab.Workload("web").attempts, 0);
}

}  // namespace muster::scheduler
