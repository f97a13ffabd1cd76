// Campaign: many seeds of one scenario, each run as often as asked, with what was found.
//
// A scenario is a function of a seed. Runs of a campaign share nothing, so they may run on several threads; the report
// does not depend on how many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/time.h"

namespace muster::sim {

// What one run of one seed did.
struct RunResult {
  uint64_t log_hash = 0;
  uint64_t events = 0;
  uint64_t steps_checked = 0;  // places where the scenario compared the world with what must hold
  uint64_t crashes = 0;
  uint64_t messages = 0;
  uint64_t messages_lost = 0;
  uint64_t messages_doubled = 0;
  Duration simulated{};
  std::optional<std::string> failure;  // the first broken invariant
};

using Scenario = std::function<RunResult(uint64_t seed)>;

struct CampaignOptions {
  uint64_t first_seed = 0;
  uint64_t seeds = 1000;
  uint32_t repeats = 2;                              // every further run of a seed must give the same hash
  bool stop_at_failure = false;                      // how planted bugs are hunted
  std::function<void(uint64_t seeds_run)> progress;  // called now and then, if given
};

struct SeedFailure {
  uint64_t seed = 0;
  std::string what;
};

struct CampaignReport {
  uint64_t seeds_run = 0;
  RunResult total;                    // sums over first runs; log_hash combines all of them in seed order
  std::vector<SeedFailure> failures;  // in seed order
};

// With stop_at_failure the campaign ends soon after the first failure; failures are still in seed order.
CampaignReport RunCampaign(const Scenario& scenario, const CampaignOptions& options, Parallel& parallel);

}  // namespace muster::sim
