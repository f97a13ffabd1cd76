// A planted bug, searched for by the campaign of a world: the first failure is what its judge says.
#pragma once

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "base/probe.h"
#include "host/fault_table_for_test.h"
#include "sim/campaign.h"

namespace muster::sim {

inline void ExpectFound(const faults::Row& bug, const Scenario& scenario) {
  constexpr uint64_t kMostSeeds = 2000;  // a change of the product may move the seed
  const faults::ScopedMutant on(bug.name);
  InlineParallel parallel;
  const CampaignReport report = RunCampaign(
      scenario, {.first_seed = bug.from, .seeds = kMostSeeds, .repeats = 1, .stop_at_failure = true}, parallel);
  ASSERT_FALSE(report.failures.empty()) << bug.name << " survived " << report.seeds_run << " seeds from " << bug.from;
  const SeedFailure& first = report.failures.front();
  EXPECT_TRUE(first.what.contains(bug.says)) << "seed " << first.seed << ": " << first.what << "\nnot: " << bug.says;
}

}  // namespace muster::sim
